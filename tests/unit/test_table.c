/* SPDX-License-Identifier: MIT */
/* Tests of text in cells of a terminal, and of tables that fit one. */
#include "check.h"

#include "cli/table.h"
#include "run/screen.h"

static const struct column two[] = {{"NAME", false, 1, 0}, {"N", true, 0, 0}};
static const struct column three[] = {
	{"ID", false, 0, 0}, {"LABEL", false, 1, 0}, {"LINE", false, 1, 0}};

static struct table table;
static struct buf out;

static const char *shown(const char *text, size_t columns)
{
	buf_release(&out);
	buf_init(&out, 1 << 20);
	screen_put(&out, text, strlen(text), columns);
	return buf_text(&out);
}

static void fresh(const struct column *columns, size_t n)
{
	table_release(&table);
	table_init(&table, columns, n);
}

static void add(const char *text)
{
	table_add(&table, text, strlen(text));
}

static const char *put(size_t width, size_t rows)
{
	buf_release(&out);
	buf_init(&out, 1 << 20);
	table_put(&table, width, rows, &out);
	return buf_text(&out);
}

/* The widest line of what was put. */
static size_t widest(void)
{
	size_t max = 0;

	for (const char *p = buf_text(&out); *p;) {
		size_t len = strcspn(p, "\n"), w = screen_width(p, len);

		max = w > max ? w : max;
		p += len + (p[len] == '\n');
	}
	return max;
}

/* ---- one text ---- */

TEST(a_text_is_as_wide_as_its_cells)
{
	CHECK_INT(screen_width("abc", 3), 3);
	CHECK_INT(screen_width("", 0), 0);
	CHECK_INT(screen_width("日本", 6), 4);
	CHECK_INT(screen_width("e\xcc\x81", 3), 1); /* a combining accent */
}

TEST(a_text_that_is_too_wide_ends_in_an_ellipsis)
{
	CHECK_STR(shown("abcdef", 6), "abcdef");
	CHECK_STR(shown("abcdefg", 6), "abcde…");
	CHECK_STR(shown("abc", 1), "…");
	CHECK_STR(shown("abc", 0), "");
}

TEST(half_a_wide_character_is_not_shown)
{
	CHECK_STR(shown("日本語", 6), "日本語");
	CHECK_STR(shown("日本語", 5), "日本…");
	CHECK_STR(shown("日本語", 4), "日…");
	CHECK_STR(shown("日本語", 2), "…");
}

TEST(no_escape_and_no_new_line_comes_through)
{
	CHECK_STR(shown("a\033[31mb\nc\rd\te\x07", 80), "a [31mb c d e ");
	CHECK_STR(shown("a\xc2\x9b"
			"31mb",
			80),
		  "a 31mb"); /* C1 */
	CHECK_STR(shown("a\xe2\x80\xae"
			"b",
			80),
		  "a\xef\xbf\xbd"
		  "b"); /* right to left */
	CHECK_STR(shown("a\xff\xc3", 80), "a\xef\xbf\xbd\xef\xbf\xbd");
}

/* ---- a table ---- */

TEST(columns_are_as_wide_as_their_widest_cell)
{
	fresh(two, 2);
	add("a"), add("1");
	add("longer"), add("12345");
	CHECK_STR(put(0, 100), "NAME        N\n"
			       "a           1\n"
			       "longer  12345\n");
}

TEST(what_is_too_wide_shrinks_where_it_may)
{
	fresh(two, 2);
	add("abcdefghijkl"), add("12345");
	CHECK_STR(put(15, 100), "NAME          N\n"
				"abcdefg…  12345\n");
	CHECK_INT(widest(), 15);
}

TEST(the_widest_shrinks_first)
{
	fresh(three, 3);
	add("bash-1"), add("short"), add("a very long last line");
	CHECK_STR(put(25, 100), "ID      LABEL  LINE\n"
				"bash-1  short  a very lo…\n");
}

TEST(no_line_is_wider_than_the_terminal)
{
	fresh(three, 3);
	add("bash-1"), add("日本語のとても長いラベル"), add("x");
	add("bash-2"), add("b"), add("日本語日本語日本語日本語日本語");
	for (size_t width = 1; width < 90; width++) {
		put(width, 100);
		CHECK(widest() <= width);
	}
}

TEST(what_can_be_done_without_is_left_out_before_a_column_says_nothing)
{
	static const struct column some[] = {
		{"ID", false, 0, 0}, {"CPU", true, 0, 1}, {"LINE", false, 9, 0}};

	fresh(some, 3);
	add("bash-1"), add("12ms"), add("the last line");
	CHECK_STR(put(23, 100), "ID       CPU  LINE\n"
				"bash-1  12ms  the last…\n");
	CHECK_STR(put(22, 100), "ID      LINE\n"
				"bash-1  the last line\n");
	CHECK_STR(put(12, 100), "ID      LINE\n"
				"bash-1  the…\n");
}

TEST(what_can_be_done_without_is_left_out_before_a_cell_is_cut)
{
	static const struct column some[] = {{"ID", false, 0, 0},
					     {"CPU", true, 0, 1},
					     {"KIND", false, 0, 2},
					     {"LINE", false, 1, 0}};

	fresh(some, 4);
	add("bash-1"), add("12ms"), add("bash"), add("the last line");
	CHECK_STR(put(33, 100), "ID       CPU  KIND  LINE\n"
				"bash-1  12ms  bash  the last line\n");
	CHECK_STR(put(24, 100), "ID       CPU  KIND  LINE\n"
				"bash-1  12ms  bash  the…\n");
	CHECK_STR(put(23, 100), "ID       CPU  LINE\n"
				"bash-1  12ms  the last…\n");
	CHECK_STR(put(17, 100), "ID      LINE\n"
				"bash-1  the last…\n");
	CHECK_STR(put(9, 100), "ID      …\n"
			       "bash-1  …\n");
}

TEST(cells_are_made_harmless)
{
	fresh(two, 2);
	add("a\033]0;evil\a\nb"), add("1");
	put(0, 100);
	CHECK(memchr(out.data, '\033', out.len) == NULL);
	CHECK_STR(buf_text(&out), "NAME          N\na ]0;evil  b  1\n");
}

TEST(a_low_screen_shows_the_last_rows)
{
	fresh(two, 2);
	add("a"), add("1");
	add("b"), add("2");
	add("c"), add("3");
	CHECK_STR(put(0, 2), "NAME  N\nb     2\nc     3\n");
}

TEST(a_table_without_rows_is_its_title)
{
	fresh(two, 2);
	CHECK_STR(put(0, 100), "NAME  N\n");
}
