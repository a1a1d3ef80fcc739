/* SPDX-License-Identifier: MIT */
/* From raw bytes to text for a model: over any split, whatever the bytes are. */
#include "check.h"

#include <stdbool.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "run/decode.h"

#define BYTES(s) s, sizeof(s) - 1

static void expect_bytes(const char *raw, size_t len, bool is_final, const char *want,
			 size_t want_used)
{
	autobuf struct buf out = BUF_INIT(1 << 20);
	size_t used = decode(&out, raw, len, is_final, NULL);

	assert_string_equal(buf_text(&out), want);
	assert_int_equal(used, want_used);
}

static void expect_text(const char *raw, size_t len, const char *want)
{
	expect_bytes(raw, len, true, want, len);
}

TEST(plain_text_stays)
{
	expect_text(BYTES("one\n\ttwo\n"), "one\n\ttwo\n");
	expect_text(BYTES("gr\xc3\xbcn \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x8e\x89"),
		    "gr\xc3\xbcn \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x8e\x89");
	expect_text(BYTES(""), "");
}

TEST(half_a_character_waits_for_its_rest)
{
	expect_bytes(BYTES("a\xf0\x9f\x8e"), false, "a", 1);
	expect_bytes(BYTES("a\xf0\x9f\x8e"), true, "a\xef\xbf\xbd", 4);
}

TEST(broken_bytes_become_one_replacement_each)
{
	expect_text(BYTES("a\xff\xfe.\xc3(\xe2\x82."),
		    "a\xef\xbf\xbd\xef\xbf\xbd.\xef\xbf\xbd(\xef\xbf\xbd.");
	expect_text(BYTES("\xed\xa0\x80"), "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd");
}

TEST(colours_go)
{
	expect_text(BYTES("\033[2m12:00\033[0m \033[1;34mjob\033[0m line 1\n"),
		    "12:00 job line 1\n");
}

TEST(titles_and_clipboards_go_with_what_they_carry)
{
	expect_text(BYTES("\033]0;owned\007\033[2J\033[H\033[31mPASSED\033[0m\n"
			  "\033]52;c;aGk=\007\033[?1000h\n"),
		    "PASSED\n\n");
	expect_text(BYTES("a\033]8;;http://x\033\\link\033]8;;\033\\b"), "alinkb");
	expect_text(BYTES("a\033Pq#0;2-\033\\b\033_x\033\\c\033^y\033\\d"), "abcd");
}

TEST(short_escapes_go)
{
	expect_text(BYTES("\033(B\033=\033>\0337a\0338\033cb"), "ab");
	expect_text(BYTES("\033\xc3\xbc"), "\xc3\xbc");
}

TEST(eight_bit_escapes_go)
{
	expect_text(BYTES("\xc2\x9b"
			  "31mred\xc2\x9d"
			  "0;t\xc2\x9cx\xc2\x85y\n"),
		    "redxy\n");
}

TEST(an_unfinished_escape_waits)
{
	expect_bytes(BYTES("a\033"), false, "a", 1);
	expect_bytes(BYTES("a\033[3"), false, "a", 1);
	expect_bytes(BYTES("a\033]0;ti"), false, "a", 1);
	expect_bytes(BYTES("a\033]0;ti\033"), false, "a", 1);
	expect_bytes(BYTES("a\033("), false, "a", 1);
}

TEST(of_an_escape_that_never_ends_only_its_beginning_goes)
{
	expect_bytes(BYTES("a\033]0;ti"), true, "a0;ti", 7);
	expect_bytes(BYTES("a\033]0;ti\033"), true, "a0;ti", 8);
	expect_bytes(BYTES("a\xc2\x9d"
			   "ti\xc2"),
		     true, "ati\xef\xbf\xbd", 6);
	expect_bytes(BYTES("a\033[3"), true, "a3", 4);
	expect_bytes(BYTES("a\033(#"), true, "a(#", 4);
	expect_bytes(BYTES("a\033"), true, "a", 2);
}

TEST(a_string_without_end_hides_no_line_behind_it)
{
	static const char *const begins[] = {"\033]",    "\033P",    "\033X",    "\033^",
					     "\033_",    "\xc2\x9d", "\xc2\x90", "\xc2\x98",
					     "\xc2\x9e", "\xc2\x9f"};

	for (size_t i = 0; i < sizeof(begins) / sizeof(begins[0]); i++) {
		char raw[64];
		int n = snprintf(raw, sizeof(raw), "cc %s0;x\nERROR: failed\n", begins[i]);

		expect_bytes(raw, (size_t)n, false, "cc 0;x\nERROR: failed\n", (size_t)n);
	}
}

TEST(whatever_breaks_a_string_off_leaves_what_it_held)
{
	expect_text(BYTES("a\033]0;t\tb\033[1mc\007d"), "a0;t\tbcd");
	expect_text(BYTES("a\033]0;t\033[1mERROR\033[0m\007b"), "a0;tERRORb");
	expect_text(BYTES("a\033P1\xc2\x85z\033\\b"), "a1zb");
	expect_text(BYTES("a\033]\xc2\x9d"
			  "b\xc2\x9c"
			  "c"),
		    "ac");
	expect_text(BYTES("a\033]0;t\030b\033Px\032c"), "abc");
}

TEST(whatever_breaks_a_sequence_off_leaves_what_it_held)
{
	expect_text(BYTES("\033[100%\n"), "100%\n");
	expect_text(BYTES("\033[12 34m"), "12 34m");
	expect_text(BYTES("\033[5\xc3\xbc"), "5\xc3\xbc");
	expect_text(BYTES("\xc2\x9b"
			  "7\177x"),
		    "7x");
	expect_text(BYTES("\033(\nb"), "(\nb");
}

TEST(an_escape_without_end_is_given_up)
{
	autobuf struct buf raw = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);

	buf_adds(&raw, "\033]");
	for (int i = 0; i < DECODE_ESCAPE_MAX + 10; i++)
		buf_addc(&raw, 'x');
	assert_int_equal(decode(&out, raw.data, raw.len, false, NULL), raw.len);
	assert_int_equal(out.len, raw.len - 2);
}

TEST(a_control_inside_an_escape_breaks_it_off)
{
	expect_text(BYTES("a\033[3\nb"), "a3\nb");
	expect_text(BYTES("a\033[\033[1mb"), "ab");
}

TEST(progress_is_left_in_its_last_state)
{
	expect_text(BYTES("\r 10%\r 50%\r100%\ndone\n"), "100%\ndone\n");
	expect_text(BYTES("get 1\rget 2\r\nnext\n"), "get 2\nnext\n");
	expect_text(BYTES("get 1\rget 2\r\r\nnext\n"), "get 2\nnext\n");
	expect_text(BYTES("50%\r"), "50%");
	expect_text(BYTES("\033[1G\033[0Kone\033[1G\033[0Ktwo\n"), "two\n");
}

TEST(a_return_at_the_end_waits_for_its_newline)
{
	expect_bytes(BYTES("a\r"), false, "a", 1);
	expect_bytes(BYTES("\r\nb"), false, "\nb", 3);
	expect_bytes(BYTES("\r"), false, "", 0);
}

TEST(a_backspace_takes_one_character_of_its_line)
{
	expect_text(BYTES("\b\bN\bNA\bA\n\bx\xc3\xbc\b\by"), "NA\ny");
}

TEST(other_controls_go_and_nuls_are_seen)
{
	expect_text(BYTES("a\a\v\f\x0e\x0f\x7f"
			  "b"),
		    "ab");
	expect_text(BYTES("x\0\0\0y\0"), "x\xe2\x90\x80y\xe2\x90\x80");
}

TEST(a_full_buffer_stops_at_a_whole_character)
{
	autobuf struct buf out = BUF_INIT(10);
	size_t used = decode(&out,
			     BYTES("\xe7\x95\x8c\xe7\x95\x8c\xe7\x95\x8c\xe7\x95\x8c"),
			     true, NULL);

	assert_int_equal(used, out.len);
	assert_true(used >= 6 && used <= 9);
	assert_true(utf8_valid(out.data, out.len));
}

/* Read as it comes in, @step bytes more at a time. */
static void read_in_steps(struct buf *out, const char *raw, size_t len, size_t step)
{
	size_t at = 0;

	for (size_t there = step; at < len; there += step) {
		size_t end = there < len ? there : len;

		at += decode(out, raw + at, end - at, end == len, NULL);
	}
}

TEST(every_split_gives_the_same_text)
{
	static const char raw[] = "\xe4\xbd\xa0\xe5\xa5\xbd\xf0\x9f\x8e\x89\xc3\xa9 "
				  "\033[1;31mred\033[0m\033]0;t\007\r\n"
				  "\033]0;never\nended\033[7\xc2\x9dso\xc2\x9b%"
				  "\xff\033(B\xc2\x9bK end\n\033Plast";
	autobuf struct buf whole = BUF_INIT(1000);

	(void)decode(&whole, raw, sizeof(raw) - 1, true, NULL);
	for (size_t step = 1; step < sizeof(raw); step++) {
		autobuf struct buf out = BUF_INIT(1000);

		read_in_steps(&out, raw, sizeof(raw) - 1, step);
		assert_string_equal(buf_text(&out), buf_text(&whole));
	}
}

TEST(each_delta_is_valid_utf8_whatever_the_bytes)
{
	uint32_t seed = 12345;
	char raw[400];

	for (int round = 0; round < 2000; round++) {
		autobuf struct buf out = BUF_INIT(4000);
		size_t used;

		for (size_t i = 0; i < sizeof(raw); i++) {
			seed = seed * 1664525 + 1013904223;
			raw[i] =
				"\033[]P\\\r\n\b\xc2\x9b\x9c\xe7\x95\x8c\xf0 a1;mG\a\x18\xff"
					[(seed >> 16) % 25];
		}
		used = decode(&out, raw, sizeof(raw), round % 2, NULL);
		assert_true(used <= sizeof(raw) && (!(round % 2) || used == sizeof(raw)));
		assert_true(utf8_valid(buf_text(&out), out.len));
		assert_null(strpbrk(buf_text(&out), "\033\r\b\a\x18"));
	}
}

TEST(a_cut_is_found_in_the_raw_bytes)
{
	static const char raw[] = "\033[1mone\033[0m\ntwo\nx\rthree\nfour\n";
	struct decode_cut cut = {.want = 5};
	autobuf struct buf out = BUF_INIT(1000);

	(void)decode(&out, raw, sizeof(raw) - 1, true, &cut);
	assert_string_equal(out.data, "one\ntwo\nthree\nfour\n");
	assert_int_equal(cut.text, 5);
	assert_string_equal(raw + cut.raw, "wo\nx\rthree\nfour\n");
	assert_int_equal(cut.line_text, 8);
	assert_string_equal(raw + cut.line_raw, "x\rthree\nfour\n");
}

TEST(a_cut_in_a_line_that_is_written_over_is_one_of_its_last_state)
{
	static const char raw[] = "aaaaaaaaaa\rbbbbbbbbbb";
	struct decode_cut cut = {.want = 4};
	autobuf struct buf out = BUF_INIT(1000);

	(void)decode(&out, raw, sizeof(raw) - 1, true, &cut);
	assert_string_equal(out.data, "bbbbbbbbbb");
	assert_string_equal(raw + cut.raw, "bbbbbb");
	assert_int_equal(cut.line_text, out.len);
}

TEST(a_cut_that_is_written_over_moves_back_with_its_line)
{
	static const char raw[] = "a\nbbbbbbbb\r\xe7\x95\x8c\xe7\x95\x8c";
	struct decode_cut cut = {.want = 1};
	autobuf struct buf out = BUF_INIT(1000);

	(void)decode(&out, raw, sizeof(raw) - 1, true, &cut);
	assert_int_equal(cut.text, 1);
	cut = (struct decode_cut){.want = 2};
	buf_clear(&out);
	(void)decode(&out, raw, sizeof(raw) - 1, true, &cut);
	assert_int_equal(cut.text, 2);
	cut = (struct decode_cut){.want = 3};
	buf_clear(&out);
	(void)decode(&out, raw, sizeof(raw) - 1, true, &cut);
	assert_int_equal(cut.text, 5);
	assert_string_equal(raw + cut.raw, "\xe7\x95\x8c");
}

/* ---- for a terminal ---- */

TEST(a_terminal_keeps_what_moves_within_a_line)
{
	autobuf struct buf out = BUF_INIT(1 << 10);

	assert_int_equal(decode_terminal(&out, BYTES("a\r\n10%\r20%\b\b\033[1Gx\r"), false),
			 18);
	assert_string_equal(buf_text(&out), "a\r\n10%\r20%\b\b\rx\r");
}

TEST(a_terminal_gets_no_escape_and_no_other_control)
{
	autobuf struct buf out = BUF_INIT(1 << 10);

	(void)decode_terminal(
		&out,
		BYTES("\033[2J\033]0;t\007a\033[31mb\007\013\014\016\x7f\xc2\x9b"
		      "1m\0\xff.\033]52;c;"),
		true);
	assert_string_equal(buf_text(&out), "ab\xe2\x90\x80\xef\xbf\xbd.52;c;");
}
