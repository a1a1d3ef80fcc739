/* SPDX-License-Identifier: MIT */
/*
 * framing.h - bytes in pieces of any size become lines.
 *
 * A line that lies in one piece is not copied. What is begun is kept, up to the maximum; a
 * longer line is skipped in constant memory and reported when its end has come.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

struct framing {
	struct buf carry; /* the beginning of a line whose end has not come yet */
	size_t wanted;    /* bytes that are still to come of a block */
	bool is_skipping, is_handed_out;
};

enum frame {
	FRAME_NONE, /* the piece is used up */
	FRAME_LINE,
	FRAME_TOO_LONG,
};

void framing_init(struct framing *f, size_t max_line);
void framing_release(struct framing *f);
/* The next @n bytes, at least 1 and at most the maximum, are as one line. Between lines only. */
void framing_block(struct framing *f, size_t n);
/* Take the next line off the front of (*@data, *@len). The line has no newline, and is
 * borrowed until the next call. */
enum frame framing_next(struct framing *f, const char **data, size_t *len, const char **ret,
			size_t *ret_len);
