/* SPDX-License-Identifier: MIT */
/*
 * utf8.h - the only code that validates, cuts or counts text.
 *
 * Lengths are bytes. "Well-formed" is Unicode's: no overlong forms, no surrogates, nothing
 * above U+10FFFF.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;

bool utf8_valid(const char *s, size_t len);
/* Length of the longest well-formed prefix. */
size_t utf8_valid_prefix(const char *s, size_t len);
/*
 * Decode the code point at @s (@len > 0). Returns its bytes and sets *@ret_cp, or 0 for an
 * ill-formed sequence, with *@ret_bad the bytes that one U+FFFD stands for (the maximal
 * subpart), or -1 if @s holds only the beginning of a sequence that may still become whole.
 */
int utf8_decode(const char *s, size_t len, uint32_t *ret_cp, size_t *ret_bad);
/* Bytes at the end of @s that are the beginning of an unfinished sequence (0 to 3). */
size_t utf8_unfinished(const char *s, size_t len);
/* Append @s with each ill-formed part replaced by U+FFFD. */
int utf8_clean(struct buf *out, const char *s, size_t len);
/* Append one code point. */
int utf8_put(struct buf *out, uint32_t cp);

/* Bytes of the longest head of @s that fits into @max without half a code point (spec 5.2). */
size_t utf8_head(const char *s, size_t len, size_t max);
/* The same for the tail. */
size_t utf8_tail(const char *s, size_t len, size_t max);

/* UTF-16 code units of well-formed @s. */
size_t utf8_units(const char *s, size_t len);
/* Bytes of the head that has at most @units UTF-16 units, never half a pair. */
size_t utf8_head_units(const char *s, size_t len, size_t units);
