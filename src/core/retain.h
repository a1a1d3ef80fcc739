/* SPDX-License-Identifier: MIT */
/* retain.h - what is kept of a text that does not fit (spec 5.2, 5.3). */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/*
 * Append @text + @suffix, in at most @limit bytes (0: all). What is cut goes from the left:
 * the end of @text stays, behind it "\n" + @word and the suffix. A text that ends with
 * @word already is not marked again.
 */
struct fit {
	const char *text, *suffix, *word;
	size_t len, suffix_len;
	uint64_t limit;
};
int fit_put(struct buf *out, const struct fit *f);
