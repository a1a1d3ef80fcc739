/* SPDX-License-Identifier: MIT */
/* oneline.h - text that must stay on its line (D4), and how an end is written there. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

/* Append @text: each control character (C0, DEL, C1, U+2028, U+2029) is one space, bidi
 * controls (U+202A-202E, U+2066-2069) are left out. */
void oneline_put(struct buf *out, const char *text, size_t len);

/* What one line about a task says. @detail NULL: absent; empty is not absent (D18). */
struct task_line {
	const char *id, *kind, *label, *status, *detail;
	size_t id_len, kind_len, label_len, detail_len;
};
/* `[status: S]` or `[status: S, D]` (spec 4.3) */
void oneline_put_status(struct buf *out, const struct task_line *t);
