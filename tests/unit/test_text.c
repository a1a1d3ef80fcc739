/* SPDX-License-Identifier: MIT */
/* Tests of src/base: utf8.c, buf.c, err.c, map.c, list.h. */
#include <errno.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"
#include "base/utf8.h"
#include "check.h"

#define PREFIX(s) utf8_valid_prefix(s, sizeof(s) - 1)
#define HEAD(s, max) utf8_head(s, sizeof(s) - 1, max)
#define TAIL(s, max) utf8_tail(s, sizeof(s) - 1, max)

TEST(well_formed_text_of_every_length_is_valid)
{
	CHECK(utf8_valid("plain text, long enough for words", 33));
	CHECK(utf8_valid("\xc3\xa9\xe7\x95\x8c\xf0\x9f\x98\x80", 9));
	CHECK(utf8_valid("", 0));
	CHECK(utf8_valid("\xf4\x8f\xbf\xbf\xed\x9f\xbf", 7));
}

TEST(overlong_forms_surrogates_and_high_values_are_not_valid)
{
	CHECK_INT(PREFIX("a\xc0\x80"), 1);
	CHECK_INT(PREFIX("\xe0\x80\x80"), 0);
	CHECK_INT(PREFIX("\xed\xa0\x80"), 0);
	CHECK_INT(PREFIX("\xf0\x80\x80\x80"), 0);
	CHECK_INT(PREFIX("\xf4\x90\x80\x80"), 0);
	CHECK_INT(PREFIX("ab\xff"), 2);
	CHECK_INT(PREFIX("abcdefgh\x80"), 8);
}

TEST(one_replacement_stands_for_each_ill_formed_part)
{
	struct buf b = BUF_INIT(100);

	CHECK_INT(utf8_clean(&b,
			     "a\xff\xe7\x95"
			     "b\xf0\x9f",
			     7),
		  0);
	CHECK_STR(b.data, "a\xef\xbf\xbd\xef\xbf\xbd"
			  "b\xef\xbf\xbd");
	buf_release(&b);
}

TEST(an_unfinished_end_is_counted)
{
	CHECK_INT(utf8_unfinished("a\xe7\x95", 3), 2);
	CHECK_INT(utf8_unfinished("\xf0\x9f\x98", 3), 3);
	CHECK_INT(utf8_unfinished("\xe7\x95\x8c", 3), 0);
	CHECK_INT(utf8_unfinished("a\xff", 2), 0);
	CHECK_INT(utf8_unfinished("\x80", 1), 0);
	CHECK_INT(utf8_unfinished("", 0), 0);
}

TEST(a_head_never_holds_half_a_code_point)
{
	CHECK_INT(HEAD("abc", 2), 2);
	CHECK_INT(HEAD("abc", 9), 3);
	CHECK_INT(HEAD("a\xe7\x95\x8c", 3), 1);
	CHECK_INT(HEAD("a\xe7\x95\x8c", 4), 4);
	CHECK_INT(HEAD("\xf0\x9f\x98\x80z", 3), 0);
	CHECK_INT(HEAD("\xf0\x9f\x98\x80z", 4), 4);
	CHECK_INT(HEAD("x", 0), 0);
}

TEST(a_tail_never_holds_half_a_code_point)
{
	CHECK_INT(TAIL("abc", 2), 2);
	CHECK_INT(TAIL("\xe7\x95\x8c"
		       "a",
		       3),
		  1);
	CHECK_INT(TAIL("\xf0\x9f\x98\x80", 3), 0);
	CHECK_INT(TAIL("x", 0), 0);
}

TEST(units_are_those_of_utf16)
{
	CHECK_INT(utf8_units("a\xe7\x95\x8c\xf0\x9f\x98\x80", 8), 4);
	CHECK_INT(utf8_head_units("a\xf0\x9f\x98\x80", 5, 2), 1);
	CHECK_INT(utf8_head_units("a\xf0\x9f\x98\x80", 5, 3), 5);
	CHECK_INT(utf8_head_units("abc", 3, 0), 0);
}

TEST(code_points_are_written_in_one_to_four_bytes)
{
	struct buf b = BUF_INIT(20);

	(void)utf8_put(&b, 'a');
	(void)utf8_put(&b, 0xe9);
	(void)utf8_put(&b, 0x754c);
	CHECK_INT(utf8_put(&b, 0x1f600), 0);
	CHECK_STR(b.data, "a\xc3\xa9\xe7\x95\x8c\xf0\x9f\x98\x80");
	buf_release(&b);
}

TEST(a_buffer_takes_its_maximum_and_not_a_byte_more)
{
	struct buf b = BUF_INIT(4);

	CHECK_INT(buf_adds(&b, "abcd"), 0);
	CHECK_INT(buf_addc(&b, 'e'), -ERR_LIMIT);
	CHECK_STR(b.data, "abcd");
	CHECK_INT(buf_room(&b), 0);
	buf_clear(&b);
	CHECK_INT(buf_addf(&b, "%d", 1234), 0);
	CHECK_INT(buf_addf(&b, "%s", ""), 0);
	buf_release(&b);
}

TEST(a_bad_buffer_stays_bad_until_it_is_cleared)
{
	struct buf b = BUF_INIT(2);

	CHECK_INT(buf_adds(&b, "abc"), -ERR_LIMIT);
	CHECK_INT(buf_adds(&b, "a"), -ERR_LIMIT);
	buf_clear(&b);
	CHECK_INT(buf_adds(&b, "a"), 0);
	buf_release(&b);
}

TEST(a_buffer_is_cut_dropped_and_taken)
{
	struct buf b = BUF_INIT(10);
	size_t len = 0;
	char *p;

	(void)buf_adds(&b, "abcdef");
	buf_drop(&b, 2);
	buf_cut(&b, 3);
	CHECK_STR(buf_text(&b), "cde");
	p = buf_take(&b, &len);
	CHECK_BYTES(p, len, "cde");
	CHECK_STR(buf_text(&b), "");
	mem_free(NULL, p);
	buf_drop(&b, 5);
	p = buf_take(&b, &len);
	CHECK_BYTES(p, len, "");
	mem_free(NULL, p);
}

static void *no_memory(void *ud, void *p, size_t n)
{
	(void)ud, (void)p, (void)n;
	return NULL;
}

TEST(a_buffer_without_memory_says_so_and_keeps_what_it_has)
{
	struct mem m = {.resize = no_memory};
	struct buf b = BUF_INIT(100);

	(void)buf_adds(&b, "kept");
	b.mem = &m;
	CHECK_INT(buf_reserve(&b, 90), -ERR_NOMEM);
	CHECK_STR(b.data, "kept");
	b.mem = NULL;
	buf_release(&b);
}

TEST(an_error_has_code_and_text_and_takes_context)
{
	struct err e;

	CHECK_INT(err_sys(&e, ENOENT, "cannot open '%s'", "out"), -ERR_SYS);
	CHECK_STR(e.msg, "cannot open 'out': No such file or directory");
	CHECK_INT(e.errnum, ENOENT);
	CHECK_INT(err_wrap(&e, "task %d", 3), -ERR_SYS);
	CHECK_STR(e.msg, "task 3: cannot open 'out': No such file or directory");
	CHECK_INT(err_set(NULL, ERR_ARG, "x"), -ERR_ARG);
	CHECK_INT(err_wrap(NULL, "x"), -ERR_SYS);
}

TEST(a_long_error_is_cut_at_a_code_point)
{
	char text[600];
	struct err e;

	for (size_t i = 0; i < sizeof(text) - 3; i += 3)
		memcpy(text + i, "\xe7\x95\x8c", 4);
	(void)err_set(&e, ERR_ARG, "x%s", text);
	CHECK(strlen(e.msg) >= ERR_TEXT - 4);
	CHECK(utf8_valid(e.msg, strlen(e.msg)));
	(void)err_wrap(&e, "y");
	CHECK(utf8_valid(e.msg, strlen(e.msg)));
}

TEST(a_map_gives_back_what_was_put_and_nothing_else)
{
	struct map m;
	int a, b;

	map_init(&m, NULL);
	CHECK(map_get(&m, 1) == NULL);
	map_del(&m, 1);
	map_put(&m, 1, &a);
	map_put(&m, 2, &b);
	map_put(&m, 1, &b);
	CHECK(map_get(&m, 1) == &b);
	CHECK_INT(m.count, 2);
	map_del(&m, 1);
	CHECK(map_get(&m, 1) == NULL);
	CHECK(map_get(&m, 2) == &b);
	map_release(&m);
}

TEST(a_map_survives_a_million_random_puts_and_deletes)
{
	enum {
		KEYS = 3000
	};
	static char there[KEYS];
	unsigned seed = 7;
	struct map m;

	map_init(&m, NULL);
	for (int i = 0; i < 1000000; i++) {
		uint64_t key = 1 + (uint64_t)rand_r(&seed) % (KEYS - 1);

		if (rand_r(&seed) % 2)
			map_put(&m, key, &there[key]);
		else
			map_del(&m, key);
		there[key] = map_get(&m, key) != NULL;
	}
	for (uint64_t key = 1; key < KEYS; key++)
		CHECK(map_get(&m, key) == (there[key] ? &there[key] : NULL));
	CHECK(m.cap <= 4 * (size_t)KEYS);
	map_release(&m);
}

struct item {
	int n;
	struct list node;
};

TEST(a_list_keeps_order_and_lets_the_current_entry_go)
{
	struct item items[3] = {{.n = 1}, {.n = 2}, {.n = 3}};
	struct list head;
	int sum = 0;

	list_init(&head);
	for (int i = 0; i < 3; i++)
		list_add(&head, &items[i].node);
	list_each(p, &head)
	{
		sum = sum * 10 + list_entry(p, struct item, node)->n;
		list_del(p);
	}
	CHECK_INT(sum, 123);
	CHECK(list_is_empty(&head));
	list_del(&items[0].node);
}
