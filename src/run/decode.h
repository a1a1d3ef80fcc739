/* SPDX-License-Identifier: MIT */
/*
 * decode.h - from the raw bytes of a log to text for a model.
 *
 * The text is well-formed UTF-8 without control characters but tab and newline. Broken
 * sequences become U+FFFD, whole terminal escapes go with all that they carry, and of what
 * only begins like one the introducer, never text. A line that is written over with
 * carriage returns is left in its last state, a backspace takes the character before it, a
 * row of NULs becomes one visible U+2400, other controls go.
 *
 * Nothing is kept between calls: what may still become something else at the end (half a
 * character, half an escape, a carriage return that a newline may follow) is not consumed,
 * and is seen again by the next call.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct buf;

/* An escape that is longer is none: its introducer goes, the rest is text. A live reader
 * waits no longer for an end, either. Pictures come in pieces of 4 KiB and a head. */
#define DECODE_ESCAPE_MAX 8192

/*
 * Where the last part of a text begins, whose length is known from a call before: the
 * first places at or after @want bytes of text, as offsets in both. Those of a line are at
 * the beginning of one; they equal the lengths if there is none.
 */
struct decode_cut {
	size_t want;
	size_t raw, text;
	size_t line_raw, line_text;
};

/*
 * Append the text of @raw to @out; stop where that is full. Returns the bytes of @raw that
 * are consumed. @is_final: nothing will follow, so all that fits is. @cut may be NULL.
 */
size_t decode(struct buf *out, const char *raw, size_t len, bool is_final,
	      struct decode_cut *cut);
/*
 * The same for a terminal, where text comes as it is printed: carriage return and backspace
 * are left, since they do there, within a line, what decode() does in the text.
 */
size_t decode_terminal(struct buf *out, const char *raw, size_t len, bool is_final);
