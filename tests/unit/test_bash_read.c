/* SPDX-License-Identifier: MIT */
/* What a reader gets of a command's output: the newest part of it, and exact counts. */
#include "shell.h"

/* "...[<N> bytes left out; whole output: <where>]\n[output truncated]..." */
static unsigned long left_out(const char *text, const char **ret_where)
{
	const char *at = strstr(text, " bytes left out; whole output: ");
	const char *number = at;

	assert_non_null(at);
	while (number > text && isdigit((unsigned char)number[-1]))
		number--;
	*ret_where = at + strlen(" bytes left out; whole output: ");
	return strtoul(number, NULL, 10);
}

SHELL_TEST(d11_a_long_output_shows_its_newest_part_and_counts_the_rest, 10000)
{
	const char *text, *where, *first;
	char folder[4096];
	unsigned long n;

	background(s, "seq 1 20000"); /* 108894 bytes */
	text = output(s, "bash-1", true);
	assert_true(strlen(text) <= 10000);
	assert_true(strlen(text) > 9000);
	assert_true(ends_with(text,
			      "]\n[output truncated]\n[status: completed, exit code: 0]"));
	assert_non_null(strstr(text, "\n20000\n["));
	n = left_out(text, &where);
	first = text + strcspn(text, "\n") + 1;
	/* What is shown and what is left out are the whole. */
	assert_int_equal(n + (size_t)(strstr(text, "\n[") + 1 - text), 108894);
	assert_true(strtoul(first, NULL, 10) == strtoul(text, NULL, 10) + 1);
	(void)snprintf(folder, sizeof(folder), "%s/out]", only_folder(s->w));
	assert_true(begins_with(where, folder));
	assert_string_equal(output(s, "bash-1", false),
			    "(no new output)\n[status: completed, exit code: 0]");
}

SHELL_TEST(what_fits_is_shown_whole, 10000)
{
	background(s, "seq 1 2000"); /* 8893 bytes */
	assert_true(begins_with(output(s, "bash-1", true), "1\n2\n3\n"));
	assert_null(strstr(s->text, "truncated"));
}

SHELL_TEST(a_long_line_is_cut_at_a_character, 4096)
{
	const char *where;
	unsigned long n;

	background(s, "python3 -c \"import sys; sys.stdout.write('\xe4\xbd\xa0'*50000)\"");
	(void)output(s, "bash-1", true);
	n = left_out(s->text, &where);
	assert_int_equal(n % 3, 0);
	assert_true(strlen(s->text) <= 4096);
	assert_true(begins_with(s->text, "\xe4\xbd\xa0"));
	assert_int_equal(n + (size_t)(strstr(s->text, "\n[") - s->text), 150000);
}

SHELL_TEST(d11_a_long_foreground_output_keeps_its_marker, 2000)
{
	(void)foreground(s, "seq 1 20000; exit 4");
	assert_true(strlen(s->text) <= 2000);
	assert_true(ends_with(s->text, "]\n[output truncated]\n[exit code: 4]"));
}

SHELL_TEST(a_tiny_limit_keeps_the_status, 100)
{
	background(s, "python3 -c \"print('\xf0\x9f\x8e\x89'*200)\"");
	(void)output(s, "bash-1", true);
	assert_true(strlen(s->text) <= 100);
	assert_true(ends_with(
		s->text, "\xf0\x9f\x8e\x89\n[output truncated]\n[status: completed, exit "
			 "code: 0]"));
}

SHELL_TEST(a_limit_of_511_bytes_leaves_the_cutting_to_the_controller, 511)
{
	background(s, "seq 1 20000");
	(void)output(s, "bash-1", true);
	assert_int_equal(strlen(s->text), 511);
	assert_null(strstr(s->text, "left out"));
	assert_true(ends_with(
		s->text, "\n20000\n[output truncated]\n[status: completed, exit code: 0]"));
}

SHELL_TEST(a_limit_of_512_bytes_has_room_for_the_line_and_some_text, 512)
{
	const char *where;

	background(s, "seq 1 20000");
	(void)output(s, "bash-1", true);
	assert_true(strlen(s->text) <= 512);
	assert_non_null(strstr(s->text, "\n20000\n["));
	assert_int_equal(left_out(s->text, &where) +
				 (size_t)(strstr(s->text, "\n[") + 1 - s->text),
			 108894);
	assert_true(ends_with(where,
			      "]\n[output truncated]\n[status: completed, exit code: 0]"));
}

SHELL_TEST(a_flood_says_what_was_dropped, 10000)
{
	const char *where;
	unsigned long n, dropped;

	background(s, "head -c 10000000 /dev/zero | tr '\\0' x | fold -w 99");
	(void)output(s, "bash-1", true);
	n = left_out(s->text, &where);
	assert_true(begins_with(where, "errand logs bash-1]"));
	assert_non_null(strstr(s->text, " bytes were dropped]\n["));
	dropped = strtoul(strstr(s->text, "\n[") + 2, NULL, 10);
	assert_true(dropped > 7500000);
	assert_int_equal(n + dropped + (size_t)(strstr(s->text, "\n[") - s->text),
			 10000000 + 10000000 / 99);
}

/* In a shell whose logs are capped: what the model sees of "seq 1 200000". */
static const char *read_capped(struct shell *s, uint64_t limit, uint64_t head,
			       uint64_t tail)
{
	struct bash_config c;

	*s = (struct shell){0};
	c = config_of(s, limit);
	c.log_head = head;
	c.log_tail = tail;
	s->w = fresh_world();
	shell_open(s, &c);
	background(s, "seq 1 200000"); /* 1288895 bytes */
	return output(s, "bash-1", true);
}

TEST(of_a_log_without_a_tail_the_newest_kept_part_is_shown)
{
	struct shell s;
	const char *where, *text = read_capped(&s, 10000, 50000, 0), *dropped;
	unsigned long n;

	n = left_out(text, &where);
	dropped = strstr(text, "\n[1238895 bytes were dropped]\n[");
	assert_non_null(dropped);
	assert_int_equal(n + (size_t)(dropped - text), 50000);
	assert_true(begins_with(where, "errand logs bash-1]\n[output truncated]\n[status"));
	assert_true(strlen(text) > 9000 && strlen(text) <= 10000);
	assert_string_equal(output(&s, "bash-1", false),
			    "(no new output)\n[status: completed, exit code: 0]");
	shell_close(&s);
}

TEST(a_kept_part_that_fits_is_followed_by_what_was_dropped)
{
	struct shell s;

	assert_string_equal(read_capped(&s, 10000, 8, 0),
			    "1\n2\n3\n4\n[1288887 bytes were dropped]\n"
			    "[status: completed, exit code: 0]");
	shell_close(&s);
	assert_string_equal(read_capped(&s, 10000, 0, 0),
			    "[1288895 bytes were dropped]\n"
			    "[status: completed, exit code: 0]");
	shell_close(&s);
}

TEST(a_kept_part_as_large_as_the_reply_is_cut_and_counted)
{
	const char *where, *text, *dropped;

	for (uint64_t head = 9700; head < 10000; head += 7) {
		struct shell s;
		unsigned long n = 0;

		text = read_capped(&s, 10000, head, 0);
		assert_true(strlen(text) <= 10000);
		dropped = strstr(text, " bytes were dropped]\n");
		assert_non_null(dropped);
		while (dropped[-1] != '[')
			dropped--;
		assert_int_equal(strtoul(dropped, NULL, 10), 1288895 - head);
		if (strstr(text, "left out"))
			n = left_out(text, &where);
		/* In front of the line stands a newline of the text, or one of its own. */
		assert_in_range(n + (size_t)(dropped - 1 - text), head, head + 1);
		shell_close(&s);
	}
}

/* Its end is cut off from outside, as a full disk does it; its front has a gap as well. */
SHELL_TEST(a_gap_in_front_and_one_behind_have_a_line_each, 10000)
{
	const char *text, *second, *where;
	uint64_t first = UINT64_MAX, start;
	unsigned long front, behind, n;
	struct dirent *e;
	DIR *dir;

	background(s, "seq 1 2000000; head -c 5000000 /dev/zero | tr '\\0' x");
	shell_until(s, s->ended == 1);
	dir = opendir(only_folder(s->w));
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		if (strncmp(e->d_name, PROTO_OUT_TAIL, 4) != 0)
			continue;
		start = strtoull(e->d_name + 4, NULL, 10);
		first = start < first ? start : first;
	}
	rewinddir(dir);
	while ((e = readdir(dir)))
		if (strncmp(e->d_name, PROTO_OUT_TAIL, 4) == 0 &&
		    strtoull(e->d_name + 4, NULL, 10) != first)
			assert_int_equal(unlinkat(dirfd(dir), e->d_name, 0), 0);
	(void)closedir(dir);
	text = output(s, "bash-1", true);
	n = left_out(text, &where);
	front = strtoul(text + 1, NULL, 10);
	assert_true(begins_with(strchr(text, ' '), " bytes were dropped]\n"));
	assert_int_equal(front, first - (1 << 20));
	second = strstr(text, "\n[");
	behind = strtoul(second + 2, NULL, 10);
	assert_true(begins_with(strchr(second, ' '), " bytes were dropped]\n["));
	assert_int_equal(front + behind + n + (size_t)(second - strchr(text, '\n') - 1),
			 14888896 + 5000000);
	assert_true(strlen(text) > 9000 && strlen(text) <= 10000);
}

SHELL_TEST(a_character_is_never_split_between_two_reads, 10000)
{
	autobuf struct buf all = BUF_INIT(10000);
	const char *want = "\xe4\xbd\xa0\xe5\xa5\xbd\xf0\x9f\x8e\x89\xc3\xa9";
	bool is_running = true;

	background(s, "for i in 1 2; do for b in e4 bd a0 e5 a5 bd f0 9f 8e 89 c3 a9; do "
		      "printf \"\\x$b\"; sleep 0.01; done; done");
	while (is_running) {
		const char *text = output(s, "bash-1", false);
		const char *status = strstr(text, "\n[status: ");

		assert_non_null(status);
		is_running = begins_with(status, "\n[status: running");
		if (!begins_with(text, "(no new output)"))
			buf_add(&all, text, (size_t)(status - text));
		shell_turn(s, 5);
	}
	assert_int_equal(all.len, 2 * strlen(want));
	assert_true(begins_with(all.data, want) && ends_with(all.data, want));
}

SHELL_TEST(without_a_limit_every_line_comes_once, 0)
{
	autobuf struct buf all = BUF_INIT(4 << 20);
	char want[16];
	const char *at;

	background(s, "seq 1 100000");
	for (;;) {
		const char *text = output(s, "bash-1", true);
		size_t len = (size_t)(strstr(text, "[status: ") - text);

		if (begins_with(text, "(no new output)"))
			break;
		buf_add(&all, text, len);
	}
	at = buf_text(&all);
	for (int i = 1; i <= 100000; i++) {
		(void)snprintf(want, sizeof(want), "%d\n", i);
		assert_true(begins_with(at, want));
		at += strlen(want);
	}
	assert_string_equal(at, "");
}

SHELL_TEST(without_a_limit_a_gap_is_told_where_it_is, 0)
{
	const char *gap;
	size_t before;

	background(s, "head -c 10000000 /dev/zero | tr '\\0' x | fold -w 99");
	(void)output(s, "bash-1", true);
	gap = strstr(s->text, " bytes were dropped]\n");
	assert_non_null(gap);
	before = (size_t)(strstr(s->text, "\n[") - s->text);
	assert_in_range(before, (1 << 20) - 100, (1 << 20) + 1);
}

SHELL_TEST(escapes_and_progress_never_reach_a_model, 10000)
{
	assert_string_equal(
		foreground(s, "printf '\\033]0;owned\\007\\033[31mred\\033[0m\\n'; "
			      "printf '\\r10%%\\r20%%\\r100%%\\n'; printf 'a\\0b\\n'"),
		"red\n100%\na\xe2\x90\x80"
		"b\n");
}
