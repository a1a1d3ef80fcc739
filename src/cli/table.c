/* SPDX-License-Identifier: MIT */
#include "cli/table.h"

#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "run/screen.h"

#define GAP 2

void table_init(struct table *t, const struct column *columns, size_t n)
{
	*t = (struct table){.columns = columns, .n_columns = n};
	buf_init(&t->cells, TABLE_MAX);
}

void table_release(struct table *t)
{
	buf_release(&t->cells);
}

void table_add(struct table *t, const char *text, size_t len)
{
	size_t before = t->cells.len;

	screen_put(&t->cells, text, len, SIZE_MAX);
	if (buf_addc(&t->cells, 0) == 0)
		t->n_cells++;
	else
		buf_cut(&t->cells, before);
}

/* ---- widths ---- */

static size_t bigger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static size_t smaller(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* As wide as the widest cell. */
static void measure(const struct table *t, size_t *widths)
{
	const char *cell = buf_text(&t->cells);

	for (size_t i = 0; i < t->n_columns; i++)
		widths[i] = strlen(t->columns[i].title);
	for (size_t i = 0; i < t->n_cells; i++, cell += strlen(cell) + 1)
		widths[i % t->n_columns] = bigger(widths[i % t->n_columns],
						  screen_width(cell, strlen(cell)));
}

/* Of the columns that are shown: a width of 0 is none. */
static size_t total(const struct table *t, const size_t *widths)
{
	size_t sum = 0;

	for (size_t i = 0; i < t->n_columns; i++)
		sum += widths[i] ? widths[i] + (sum ? GAP : 0) : 0;
	return sum;
}

/* @is_last_resort: nothing is left to leave out. */
static size_t floor_of(const struct column *c, bool is_last_resort)
{
	size_t title = strlen(c->title);

	return is_last_resort ? title : bigger(title, c->shrinks_to);
}

/* The total when all have shrunk as far as they may while others can be left out. */
static size_t least(const struct table *t, const size_t *widths)
{
	size_t small[TABLE_COLUMNS];

	for (size_t i = 0; i < t->n_columns; i++)
		small[i] = t->columns[i].shrinks_to
				   ? smaller(widths[i], floor_of(&t->columns[i], false))
				   : widths[i];
	return total(t, small);
}

/* False: none can be left out. */
static bool leave_one_out(const struct table *t, size_t *widths)
{
	size_t which = t->n_columns;

	for (size_t i = 0; i < t->n_columns; i++)
		if (widths[i] && t->columns[i].expendable &&
		    (which == t->n_columns ||
		     t->columns[i].expendable > t->columns[which].expendable))
			which = i;
	if (which == t->n_columns)
		return false;
	widths[which] = 0;
	return true;
}

/* The widest of those that may shrink loses a cell, until all is well or nothing helps. */
static void shrink(const struct table *t, size_t *widths, size_t width, bool is_last_resort)
{
	for (size_t sum = total(t, widths); sum > width; sum--) {
		size_t widest = t->n_columns;

		for (size_t i = 0; i < t->n_columns; i++)
			if (t->columns[i].shrinks_to &&
			    widths[i] > floor_of(&t->columns[i], is_last_resort) &&
			    (widest == t->n_columns || widths[i] >= widths[widest]))
				widest = i;
		if (widest == t->n_columns)
			return;
		widths[widest]--;
	}
}

static void fit(const struct table *t, size_t *widths, size_t width)
{
	while (least(t, widths) > width && leave_one_out(t, widths))
		;
	shrink(t, widths, width, false);
	shrink(t, widths, width, true);
}

/* ---- lines ---- */

static void put_spaces(struct buf *out, size_t n)
{
	while (n--)
		buf_addc(out, ' ');
}

static void put_cell(const struct table *t, size_t column, const char *text, size_t width,
		     struct buf *out)
{
	autobuf struct buf cell = BUF_INIT(TABLE_MAX);
	bool is_last = column + 1 == t->n_columns;
	size_t used;

	if (!width)
		return;
	screen_put(&cell, text, strlen(text), width);
	used = screen_width(buf_text(&cell), cell.len);
	if (t->columns[column].is_number && used < width)
		put_spaces(out, width - used);
	buf_add(out, buf_text(&cell), cell.len);
	if (!is_last)
		put_spaces(out, GAP + (t->columns[column].is_number || used > width
					       ? 0
					       : width - used));
}

/* What still is too wide is cut. */
static void put_line(const struct buf *line, size_t width, struct buf *out)
{
	size_t len = line->len;

	while (len > 0 && line->data[len - 1] == ' ')
		len--;
	screen_put(out, buf_text(line), len, width ? width : SIZE_MAX);
	buf_addc(out, '\n');
}

void table_put(const struct table *t, size_t width, size_t rows, struct buf *out)
{
	autobuf struct buf line = BUF_INIT(TABLE_MAX);
	const char *cell = buf_text(&t->cells);
	size_t widths[TABLE_COLUMNS], n_rows = t->n_cells / t->n_columns;
	size_t skipped = n_rows > rows ? n_rows - rows : 0;

	measure(t, widths);
	if (width)
		fit(t, widths, width);
	for (size_t i = 0; i < t->n_columns; i++)
		put_cell(t, i, t->columns[i].title, widths[i], &line);
	put_line(&line, width, out);
	for (size_t row = 0; row < n_rows; row++) {
		buf_clear(&line);
		for (size_t i = 0; i < t->n_columns; i++, cell += strlen(cell) + 1)
			put_cell(t, i, cell, widths[i], &line);
		if (row >= skipped)
			put_line(&line, width, out);
	}
}
