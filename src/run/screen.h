/* SPDX-License-Identifier: MIT */
/*
 * screen.h - text in cells of a terminal: one line, no controls, and as wide as wanted.
 */
#pragma once

#include <stddef.h>

struct buf;

/* Cells that @text takes, which holds no controls. */
size_t screen_width(const char *text, size_t len);
/* Append @text, with U+FFFD for each control that would reorder what stands beside it: U+061C, U+200E, U+200F,
 * U+202A-202E, U+2066-2069. */
void screen_show_bidi(struct buf *out, const char *text, size_t len);
/* Append @text on one line (D4), escapes and all made harmless, bidi shown; above @columns it ends in "…". */
void screen_put(struct buf *out, const char *text, size_t len, size_t columns);
