/* SPDX-License-Identifier: MIT */
/*
 * Readers beside the model's cursor: the same text over any split, every byte given or
 * counted. The logs are made by the shim's own code, without a shim.
 */
#include "shell.h"

#include "run/decode.h"
#include "run/logfile.h"
#include "run/reader.h"
#include "shim/log.h"

/* ---- a log ---- */

static struct {
	char path[64];
	int fd;
	struct log log;
	struct buf all; /* what was written */
} it;

static void forget_it(void)
{
	if (it.path[0])
		(void)nftw(it.path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	if (it.path[0])
		(void)close(it.fd);
	if (it.path[0] && it.log.head_fd >= 0)
		(void)close(it.log.head_fd);
	if (it.path[0] && it.log.tail_fd >= 0)
		(void)close(it.log.tail_fd);
	it.path[0] = 0;
	buf_release(&it.all);
}

static void fresh_log(uint64_t head, uint64_t tail)
{
	static bool is_registered;

	if (!is_registered)
		(void)atexit(forget_it);
	is_registered = true;
	forget_it();
	(void)snprintf(it.path, sizeof(it.path), "/tmp/errand-test-XXXXXX");
	assert_non_null(mkdtemp(it.path));
	it.fd = open(it.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(fchdir(it.fd), 0);
	buf_init(&it.all, 64 << 20);
	log_open(&it.log, head, tail);
	assert_int_equal(it.log.error, 0);
}

static void print(const char *bytes, size_t len)
{
	log_write(&it.log, bytes, len);
	buf_add(&it.all, bytes, len);
}

static void prints(const char *text)
{
	print(text, strlen(text));
}

/* Lines of 16 bytes, each with its number. */
static void print_lines(unsigned first, unsigned n)
{
	char line[32];

	for (unsigned i = first; i < first + n; i++) {
		(void)snprintf(line, sizeof(line), "%015u\n", i);
		prints(line);
	}
}

static void write_state(uint32_t state, uint64_t seen)
{
	int fd = openat(it.fd, PROTO_STATUS, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct proto_record r = {.state = state, .bytes_seen = seen};

	assert_true(fd >= 0);
	assert_int_equal(proto_write_status(fd, &r), 0);
	(void)close(fd);
}

static void end_it(void)
{
	write_state(PROTO_ENDED, it.log.seen);
}

/* ---- a reader ---- */

struct view {
	struct reader r;
	struct buf text;
	struct reader_part part; /* the last one */
	uint64_t dropped;        /* in all parts */
	struct err err;
};

static void view_open(struct view *v, enum reader_mode mode)
{
	*v = (struct view){.text = BUF_INIT(64 << 20)};
	assert_int_equal(reader_open(&v->r, it.fd, ".", mode, &v->err), 0);
}

static void view_close(struct view *v)
{
	reader_close(&v->r);
	buf_release(&v->text);
}

static int step(struct view *v)
{
	uint64_t before = v->r.at;
	int rc = reader_read(&v->r, &v->text, &v->part, &v->err);

	assert_int_equal(v->part.from, before + v->part.dropped);
	assert_int_equal(v->part.to, v->r.at);
	v->dropped += v->part.dropped;
	return rc;
}

/* Whatever is there now. */
static const char *read_on(struct view *v)
{
	int rc;

	while ((rc = step(v)) > 0)
		;
	assert_int_equal(rc, 0);
	return buf_text(&v->text);
}

static void expect_view(enum reader_mode mode, const char *want)
{
	struct view v;

	view_open(&v, mode);
	assert_string_equal(read_on(&v), want);
	view_close(&v);
}

/* ---- any split ---- */

static unsigned seed = 1;

static unsigned below(unsigned n)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % n;
}

/* What is hard about output, and text between it. */
static void print_something(void)
{
	static const char *const some[] = {
		"a",
		"word ",
		"\n",
		"\r",
		"\r\n",
		"\b",
		"\t",
		"\xe4\xbd\xa0",
		"\xf0\x9f\x8e\x89",
		"\xe4\xbd",
		"\xff",
		"\033[31m",
		"\033[G",
		"\033]0;title\007",
		"\033]8;;x",
		"\033\\",
		"\033",
		"\xc2\x9b",
		"100%",
		"\033[",
	};
	unsigned what = below(sizeof(some) / sizeof(some[0]) + 1);

	if (what < sizeof(some) / sizeof(some[0]))
		prints(some[what]);
	else
		print("\0\0\0", 1 + below(3));
}

/* Grow a log by small steps under readers of each mode, which read after each step. */
static void grow_under(struct view *views, size_t n, unsigned steps)
{
	for (unsigned i = 0; i < steps; i++) {
		for (unsigned more = below(4); more > 0; more--)
			print_something();
		for (size_t v = 0; v < n; v++)
			if (below(2))
				(void)read_on(&views[v]);
	}
}

static void expect_same(struct view *v, enum reader_mode mode)
{
	struct view once;

	view_open(&once, mode);
	(void)read_on(&once);
	(void)read_on(v);
	assert_int_equal(v->text.len, once.text.len);
	assert_memory_equal(buf_text(&v->text), buf_text(&once.text), once.text.len);
	assert_true(v->part.is_last && once.part.is_last);
	assert_int_equal(v->r.at, it.all.len);
	view_close(&once);
	view_close(v);
}

TEST(any_split_of_reads_gives_the_text_of_one_read)
{
	static const enum reader_mode modes[] = {READER_RAW, READER_TEXT, READER_TERMINAL};
	struct view views[3];

	for (int round = 0; round < 60; round++) {
		fresh_log(64 << 10, 1 << 20);
		write_state(PROTO_RUNNING, 0);
		for (size_t i = 0; i < 3; i++)
			view_open(&views[i], modes[i]);
		grow_under(views, 3, 200);
		end_it();
		for (size_t i = 0; i < 3; i++)
			expect_same(&views[i], modes[i]);
	}
}

TEST(its_text_is_the_decoders)
{
	autobuf struct buf want = BUF_INIT(1 << 20);
	struct view v;

	for (int round = 0; round < 60; round++) {
		fresh_log(1 << 20, 0);
		grow_under(NULL, 0, 300);
		end_it();
		view_open(&v, READER_TEXT);
		(void)read_on(&v);
		buf_clear(&want);
		(void)decode(&want, it.all.data, it.all.len, true, NULL);
		assert_string_equal(buf_text(&v.text), buf_text(&want));
		view_close(&v);
	}
}

TEST(raw_parts_are_the_logs_bytes_over_all_of_its_files)
{
	struct view v;

	fresh_log(100000, 1 << 20);
	view_open(&v, READER_RAW);
	for (int i = 0; i < 300; i++) {
		char bytes[4096];

		for (size_t k = 0; k < sizeof(bytes); k++)
			bytes[k] = (char)below(256);
		print(bytes, below(sizeof(bytes)));
		if (below(3) == 0)
			(void)read_on(&v);
	}
	(void)read_on(&v);
	assert_false(v.part.is_last);
	assert_int_equal(v.text.len, it.all.len);
	assert_memory_equal(v.text.data, it.all.data, it.all.len);
	assert_int_equal(v.dropped, 0);
	view_close(&v);
}

/* A line without an end: progress for hours, or one huge record. */
TEST(a_line_that_is_too_long_comes_in_the_same_pieces_over_any_split)
{
	struct view v;

	fresh_log(64 << 20, 0);
	view_open(&v, READER_TEXT);
	for (unsigned i = 0; it.all.len < 3 * READER_LINE_MAX; i++) {
		char bar[64];

		(void)snprintf(bar, sizeof(bar), "%u%s\033[3%um\xe4\xbd\xa0", i,
			       below(9) ? "." : "\r", below(8));
		prints(bar);
		if (below(50) == 0)
			(void)read_on(&v);
	}
	(void)read_on(&v);
	assert_true(v.text.len > 0);
	end_it();
	expect_same(&v, READER_TEXT);
}

TEST(a_piece_that_ends_in_half_an_escape_waits_for_the_rest)
{
	autobuf struct buf line = BUF_INIT(READER_LINE_MAX + 1);

	while (line.len < READER_LINE_MAX - 3)
		buf_addc(&line, 'x');
	fresh_log(1 << 20, 0);
	print(line.data, line.len);
	prints("\033[3");
	expect_view(READER_TEXT, line.data);
	prints("1m\n");
	buf_addc(&line, '\n');
	expect_view(READER_TEXT, line.data);
}

/* ---- lines ---- */

TEST(text_comes_in_whole_lines_until_the_end)
{
	struct view v;

	fresh_log(1 << 20, 0);
	write_state(PROTO_RUNNING, 0);
	view_open(&v, READER_TEXT);
	prints("one\n10%");
	assert_string_equal(read_on(&v), "one\n");
	prints("\r100%\nlast");
	assert_string_equal(read_on(&v), "one\n100%\n");
	assert_false(v.part.is_last);
	end_it();
	assert_string_equal(read_on(&v), "one\n100%\nlast");
	assert_true(v.part.is_last);
	view_close(&v);
}

TEST(the_unfinished_line_can_be_seen_and_stays_unread)
{
	autobuf struct buf rest = BUF_INIT(READER_PART_MAX);
	struct view v;

	fresh_log(1 << 20, 0);
	view_open(&v, READER_TEXT);
	prints("one\nPassword: \033[3");
	(void)read_on(&v);
	assert_int_equal(reader_rest(&v.r, &rest, &v.err), 0);
	assert_string_equal(buf_text(&rest), "Password: ");
	assert_int_equal(v.r.at, 4);
	prints("1m\n");
	assert_string_equal(read_on(&v), "one\nPassword: \n");
	buf_clear(&rest);
	assert_int_equal(reader_rest(&v.r, &rest, &v.err), 0);
	assert_int_equal(rest.len, 0);
	view_close(&v);
}

TEST(a_terminal_gets_at_once_what_moves_on_its_line_and_no_escape)
{
	struct view v;

	fresh_log(1 << 20, 0);
	view_open(&v, READER_TERMINAL);
	prints("10%\r\033]52;c;aGk=\007");
	assert_string_equal(read_on(&v), "10%\r");
	prints("20%\b\033[1G\xe4");
	assert_string_equal(read_on(&v), "10%\r20%\b\r");
	prints("\xbd\xa0\r\n");
	assert_string_equal(read_on(&v), "10%\r20%\b\r\xe4\xbd\xa0\r\n");
	print("\0\0", 2);
	(void)read_on(&v);
	print("\0x", 2);
	assert_string_equal(read_on(&v), "10%\r20%\b\r\xe4\xbd\xa0\r\n\xe2\x90\x80x");
	view_close(&v);
}

/* ---- gaps ---- */

TEST(a_gap_is_told_exactly_and_ends_what_waits_before_it)
{
	struct view v;

	fresh_log(1000, 2 * 65536); /* two segments */
	print_lines(0, 20000);      /* 320000 bytes; "out" ends inside a line */
	end_it();
	view_open(&v, READER_TEXT);
	while (step(&v) > 0 && !v.part.dropped)
		;
	assert_int_equal(v.part.dropped, it.log.tail_first - 1000);
	(void)read_on(&v);
	assert_true(begins_with(v.text.data + 992, "00000000"));
	assert_true(ends_with(buf_text(&v.text), "\n000000000019999\n"));
	assert_int_equal(v.text.len + v.dropped, 320000);
	view_close(&v);
}

TEST(what_was_printed_and_never_kept_is_told_at_the_end)
{
	struct view v;

	fresh_log(8, 0);
	prints("1\n2\n3\n4\n5\n6\n");
	view_open(&v, READER_RAW);
	assert_string_equal(read_on(&v), "1\n2\n3\n4\n");
	assert_int_equal(v.dropped, 0);
	assert_false(v.part.is_last);
	end_it();
	assert_string_equal(read_on(&v), "1\n2\n3\n4\n");
	assert_int_equal(v.dropped, 4);
	assert_int_equal(v.r.at, 12);
	assert_true(v.part.is_last);
	view_close(&v);
}

/* Each byte that comes stands where it says, and all others are counted. */
TEST(a_log_that_turns_over_under_a_reader_loses_nothing_unsaid)
{
	struct view v;
	uint64_t got = 0;
	int rc;

	fresh_log(1000, 2 * 65536);
	view_open(&v, READER_RAW);
	for (unsigned i = 0; i < 40; i++) {
		print_lines(i * 20000, 1 + below(20000));
		for (unsigned n = below(3); n > 0; n--) {
			buf_clear(&v.text);
			rc = step(&v);
			assert_true(rc >= 0);
			assert_memory_equal(buf_text(&v.text), it.all.data + v.part.from,
					    v.text.len);
			assert_int_equal(v.part.to - v.part.from, v.text.len);
			got += v.text.len;
		}
	}
	end_it();
	buf_clear(&v.text);
	(void)read_on(&v);
	assert_true(v.dropped > 0 && got > 65536);
	assert_int_equal(got + v.text.len + v.dropped, it.all.len);
	view_close(&v);
}

/* ---- places ---- */

static void expect_tail(uint64_t lines, const char *want)
{
	struct view v;

	view_open(&v, READER_RAW);
	assert_int_equal(reader_tail(&v.r, lines, &v.err), 0);
	assert_string_equal(read_on(&v), want);
	view_close(&v);
}

TEST(the_last_lines_are_found)
{
	fresh_log(1 << 20, 0);
	expect_tail(3, "");
	prints("one\ntwo\n\nfour\n");
	expect_tail(0, "");
	expect_tail(1, "four\n");
	expect_tail(3, "two\n\nfour\n");
	expect_tail(4, "one\ntwo\n\nfour\n");
	expect_tail(99, "one\ntwo\n\nfour\n");
	prints("fi");
	expect_tail(1, "fi");
	expect_tail(2, "four\nfi");
}

TEST(the_last_lines_are_found_across_files_and_far_back)
{
	struct view v;

	fresh_log(100001, 4 << 20);
	print_lines(0, 100000); /* 1.6 MB */
	view_open(&v, READER_RAW);
	for (unsigned n = 1; n < 100000; n = n * 3 + 7) {
		assert_int_equal(reader_tail(&v.r, n, &v.err), 0);
		assert_int_equal(v.r.at, 16 * (100000 - n));
	}
	view_close(&v);
}

TEST(more_lines_than_are_kept_behind_a_gap_begin_with_the_gap)
{
	struct view v;

	fresh_log(1000, 2 * 65536);
	print_lines(0, 20000);
	view_open(&v, READER_RAW);
	assert_int_equal(reader_tail(&v.r, 15000, &v.err), 0);
	assert_int_equal(v.r.at, 1000);
	(void)step(&v);
	assert_int_equal(v.part.dropped, it.log.tail_first - 1000);
	assert_int_equal(reader_tail(&v.r, 10, &v.err), 0);
	assert_int_equal(v.r.at, 320000 - 160);
	view_close(&v);
}

static void expect_range(uint64_t from, uint64_t to, const char *want, uint64_t dropped)
{
	struct view v;

	view_open(&v, READER_RAW);
	reader_range(&v.r, from, to);
	assert_string_equal(read_on(&v), want);
	assert_int_equal(v.dropped, dropped);
	assert_true(v.part.is_last);
	view_close(&v);
}

TEST(a_range_is_what_stands_there_and_no_more)
{
	fresh_log(16, 2 * 65536);
	print_lines(0, 20000);
	end_it();
	expect_range(4, 10, "000000", 0);
	expect_range(10, 10, "", 0);
	expect_range(10, 4, "", 0);
	expect_range(12, 40, "000\n", 24);
	expect_range(100, 200, "", 100);
	expect_range(319984, UINT64_MAX, "000000000019999\n", 0);
	expect_range(UINT64_MAX - 1, UINT64_MAX, "", 0);
}

TEST(a_range_of_text_does_not_wait_for_the_end_of_its_line)
{
	struct view v;

	fresh_log(1 << 20, 0);
	prints("a line\n");
	view_open(&v, READER_TEXT);
	reader_range(&v.r, 2, 4);
	assert_string_equal(read_on(&v), "li");
	view_close(&v);
}

/* ---- beginnings and ends ---- */

TEST(a_task_that_never_ran_has_a_log_that_ends)
{
	struct view v;

	fresh_log(1 << 20, 0);
	write_state(PROTO_VOID, 0);
	view_open(&v, READER_TEXT);
	assert_string_equal(read_on(&v), "");
	assert_true(v.part.is_last);
	view_close(&v);
}

TEST(what_a_leftover_prints_after_the_end_is_there_too)
{
	struct view v;

	fresh_log(1 << 20, 0);
	prints("main\n");
	end_it();
	view_open(&v, READER_TEXT);
	assert_string_equal(read_on(&v), "main\n");
	prints("left\n");
	assert_string_equal(read_on(&v), "main\nleft\n");
	view_close(&v);
}

TEST(a_deleted_folder_is_an_error_and_not_an_end)
{
	struct view v;

	fresh_log(1 << 20, 0);
	prints("gone\n");
	view_open(&v, READER_TEXT);
	(void)nftw(it.path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	assert_int_equal(step(&v), -ERR_NOT_FOUND);
	assert_string_equal(v.err.msg, "the log has been deleted");
	assert_false(v.part.is_last);
	view_close(&v);
}

TEST(a_buffer_without_room_for_a_part_is_refused)
{
	autobuf struct buf small = BUF_INIT(READER_PART_MAX - 1);
	struct view v;

	fresh_log(1 << 20, 0);
	prints("text\n");
	view_open(&v, READER_TEXT);
	assert_int_equal(reader_read(&v.r, &small, &v.part, &v.err), -ERR_LIMIT);
	assert_int_equal(v.r.at, 0);
	view_close(&v);
}

TEST(a_folder_that_is_none_is_refused)
{
	struct reader r;
	struct err err = {0};

	fresh_log(1 << 20, 0);
	assert_int_equal(reader_open(&r, it.fd, "0123", READER_RAW, &err), -ERR_SYS);
	assert_non_null(strstr(err.msg, "'0123'"));
	assert_int_equal(symlinkat("/tmp", it.fd, "link"), 0);
	assert_int_equal(reader_open(&r, it.fd, "link", READER_RAW, &err), -ERR_SYS);
}

/* ---- beside a model ---- */

static void view_of(struct view *v, const struct run_task *t, enum reader_mode mode)
{
	*v = (struct view){.text = BUF_INIT(64 << 20)};
	assert_int_equal(run_reader(t, &v->r, mode, &v->err), 0);
}

TASK_TEST(readers_of_a_live_task_go_each_at_its_own_pace)
{
	struct view quick, slow;
	struct job j;

	job_start(w, &j, "for i in 1 2 3 4 5 6 7 8; do seq 1 2000; sleep 0.01; done");
	view_of(&quick, j.task, READER_TEXT);
	view_of(&slow, j.task, READER_RAW);
	assert_true(step(&slow) >= 0);
	while (!j.ends) {
		(void)read_on(&quick);
		world_turn(w, 1);
	}
	assert_int_equal(j.end.bytes_dropped, 0);
	assert_int_equal(slow.r.at, slow.text.len);
	assert_string_equal(read_on(&quick), read_on(&slow));
	assert_int_equal(quick.text.len, j.end.bytes_seen);
	view_close(&quick);
	view_close(&slow);
}

TASK_TEST(a_task_that_is_only_planned_has_no_log_yet)
{
	const char *argv[] = {"true", NULL};
	struct run_spec spec = spec_of(w, argv);
	struct job j = {0};
	struct reader r;
	struct err err = {0};

	assert_int_equal(run_start(w->run, &spec, job_ended, &j, &j.task, &err), 0);
	assert_int_equal(run_reader(j.task, &r, READER_TEXT, &err), -ERR_STATE);
	run_flush(w->run);
	job_wait(w, &j);
	assert_int_equal(run_reader(j.task, &r, READER_TEXT, &err), 0);
	reader_close(&r);
}

SHELL_TEST(a_reader_takes_nothing_from_the_model, 10000)
{
	char path[4200];
	struct view v = {.text = BUF_INIT(1 << 20)};

	background(s, "echo one; echo two");
	shell_until(s, s->ended == 1);
	(void)snprintf(path, sizeof(path), "%s", only_folder(s->w));
	assert_int_equal(reader_open(&v.r, AT_FDCWD, path, READER_TEXT, &v.err), 0);
	assert_string_equal(read_on(&v), "one\ntwo\n");
	assert_string_equal(output(s, "bash-1", false),
			    "one\ntwo\n[status: completed, exit code: 0]");
	reader_range(&v.r, 0, UINT64_MAX);
	assert_string_equal(read_on(&v), "one\ntwo\none\ntwo\n");
	view_close(&v);
}
