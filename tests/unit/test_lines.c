/* SPDX-License-Identifier: MIT */
/* Tests of src/transport: bytes become lines, lines become bytes. */
#include <stdlib.h>

#include "base/limits.h"
#include "check.h"
#include "transport/framing.h"
#include "transport/queue.h"

#define MAX_LINE 10

static struct framing framing;
static char seen[400];

/* Feed @len bytes; each line is appended to seen as <line>, a skipped one as <!>. */
static void feed(const char *data, size_t len)
{
	const char *line;
	enum frame what;
	size_t n, at;

	while ((what = framing_next(&framing, &data, &len, &line, &n)) != FRAME_NONE) {
		at = strlen(seen);
		if (what == FRAME_TOO_LONG)
			(void)snprintf(seen + at, sizeof(seen) - at, "<!>");
		else
			(void)snprintf(seen + at, sizeof(seen) - at, "<%.*s>", (int)n,
				       line);
	}
}

static void begin(void)
{
	framing_release(&framing);
	framing_init(&framing, MAX_LINE);
	seen[0] = 0;
}

static const char *lines_of(const char *text)
{
	begin();
	feed(text, strlen(text));
	return seen;
}

TEST(lines_end_with_a_newline)
{
	CHECK_STR(lines_of("a\nbc\n"), "<a><bc>");
	CHECK_STR(lines_of("\n\n"), "<><>");
	CHECK_STR(lines_of("unfinished"), "");
	CHECK_STR(lines_of(""), "");
}

TEST(a_line_may_come_byte_by_byte)
{
	begin();
	for (const char *p = "abc\n\ndef\n"; *p; p++)
		feed(p, 1);
	CHECK_STR(seen, "<abc><><def>");
}

TEST(a_line_of_the_maximum_passes_one_more_byte_does_not)
{
	CHECK_STR(lines_of("0123456789\nx\n"), "<0123456789><x>");
	CHECK_STR(lines_of("0123456789a\nx\n"), "<!><x>");
}

TEST(a_long_line_in_pieces_is_skipped_in_constant_memory)
{
	begin();
	for (int i = 0; i < 1000; i++)
		feed("aaaaaaa", 7);
	CHECK_INT(framing.carry.len, 0);
	feed("a\nok\n", 5);
	CHECK_STR(seen, "<!><ok>");
}

TEST(a_nul_is_a_byte_like_others)
{
	begin();
	feed("a\0b\n", 4);
	CHECK_STR(seen, "<a>");
	CHECK_INT(framing.carry.len, 0);
}

TEST(release_leaves_nothing)
{
	begin();
	feed("abc", 3);
	framing_release(&framing);
	CHECK_INT(framing.carry.len, 0);
}

/* ---- blocks ---- */

TEST(a_block_is_so_many_bytes_whatever_they_are)
{
	begin();
	framing_block(&framing, 5);
	feed("a\n\nb\nrest\n", 10);
	CHECK_STR(seen, "<a\n\nb\n><rest>");
}

TEST(a_block_may_come_byte_by_byte)
{
	begin();
	feed("line\n", 5);
	framing_block(&framing, 3);
	for (const char *p = "x\nynext\n"; *p; p++)
		feed(p, 1);
	CHECK_STR(seen, "<line><x\ny><next>");
	CHECK_INT(framing.carry.len, 0);
}

/* ---- the queue ---- */

static struct queue queue;

static void push(const char *text, uint64_t token)
{
	struct buf line = BUF_INIT(MAX_LINE);

	buf_adds(&line, text);
	queue_push(&queue, &line, token);
	CHECK(line.data == NULL);
}

static const char *next(void)
{
	static char text[40];
	const char *p;
	size_t len;

	if (!queue_next(&queue, &p, &len))
		return "(nothing)";
	(void)snprintf(text, sizeof(text), "%.*s", (int)len, p);
	return text;
}

TEST(lines_leave_in_order_each_as_a_whole)
{
	uint64_t token = 0;

	queue_init(&queue);
	push("one", 1);
	push("two", 2);
	CHECK_INT(queue.bytes, 8);
	CHECK_STR(next(), "one\n");
	CHECK(!queue_advance(&queue, 2, &token));
	CHECK_STR(next(), "e\n");
	CHECK(queue_advance(&queue, 2, &token));
	CHECK_INT(token, 1);
	CHECK_STR(next(), "two\n");
	CHECK(queue_advance(&queue, 4, &token));
	CHECK_INT(token, 2);
	CHECK_STR(next(), "(nothing)");
	CHECK_INT(queue.bytes, 0);
	queue_release(&queue);
}

TEST(a_line_of_the_maximum_has_room_for_its_newline)
{
	queue_init(&queue);
	push("0123456789", 0);
	CHECK_STR(next(), "0123456789\n");
	queue_release(&queue);
}

TEST(a_line_can_be_taken_back_until_it_is_begun)
{
	uint64_t token;

	queue_init(&queue);
	push("one", 1);
	push("two", 2);
	CHECK(!queue_remove(&queue, 3));
	CHECK(queue_remove(&queue, 2));
	CHECK(!queue_remove(&queue, 2));
	CHECK(!queue_advance(&queue, 1, &token));
	CHECK(!queue_remove(&queue, 1));
	CHECK_STR(next(), "ne\n");
	CHECK_INT(queue.bytes, 4);
	queue_release(&queue);
}
