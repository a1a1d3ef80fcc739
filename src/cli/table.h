/* SPDX-License-Identifier: MIT */
/*
 * table.h - rows of text in columns that fit a terminal.
 *
 * Cells are made harmless as they are put in. Where a line is too wide, the columns that may
 * shrink share what the others leave; where that is not enough, columns that can be done without
 * are left out. No line is ever wider than wanted.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"

#define TABLE_COLUMNS 12
/* Bytes of all cells; what is beyond them is not shown. */
#define TABLE_MAX ((size_t)64 << 20)

struct column {
	const char *title;
	bool is_number; /* to the right */
	/* Cells, its title's at least; 0: never. Further, to its title, only when there is nothing
	 * left to leave out. */
	size_t shrinks_to;
	unsigned expendable; /* the highest is left out first; 0: never, as the last one */
};

struct table {
	const struct column *columns;
	size_t n_columns, n_cells;
	struct buf cells; /* a NUL behind each */
};

void table_init(struct table *t, const struct column *columns, size_t n);
void table_release(struct table *t);
/* The next cell, row by row. */
void table_add(struct table *t, const char *text, size_t len);
/* Title and the last @rows rows, in lines of @width cells at most; 0: of any width. */
void table_put(const struct table *t, size_t width, size_t rows, struct buf *out);
