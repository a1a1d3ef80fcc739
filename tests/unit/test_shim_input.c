/* SPDX-License-Identifier: MIT */
/* Bytes for a task's stdin, and what a task without a pipe or a terminal answers. */
#include "asks.h"

#include "hosts.h"

static void start_reading(struct world *w, struct job *j, const char *command)
{
	const char *argv[] = {"bash", "-c", command, NULL};
	struct run_spec spec = spec_of(w, argv);

	spec.has_input = true;
	job_start_spec(w, j, &spec);
}

TASK_TEST(input_reaches_the_task_and_its_end_does_too)
{
	struct ask q;
	struct job j;

	start_reading(w, &j, "cat; echo over; exit 4");
	expect_done(w, ask_input(&j, &q, "one\n", 4));
	assert_int_equal(q.answer.taken, 4);
	job_says(w, &j, "one\n");
	expect_done(w, ask_input(&j, &q, "two\n", 4));
	expect_done(w, ask_close(&j, &q));
	job_wait(w, &j);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 4);
	assert_string_equal(job_log(&j), "one\ntwo\nover\n");
}

TASK_TEST(io_08_a_reader_of_all_its_input_ends_when_that_is_closed)
{
	struct ask q;
	struct job j;

	start_reading(w, &j, "wc -c");
	expect_done(w, ask_input(&j, &q, "hello", 5));
	expect_done(w, ask_close(&j, &q));
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_EXIT);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 0);
	assert_string_equal(job_log(&j), "5\n");
}

TASK_TEST(a_task_without_an_input_says_so)
{
	struct ask q;
	struct job j;

	job_start(w, &j, "exec sleep 60");
	expect_refused(w, ask_input(&j, &q, "x", 1),
		       "the task was started without an input");
	expect_refused(w, ask_close(&j, &q), "the task was started without an input");
	run_kill(j.task);
	job_wait(w, &j);
}

TASK_TEST(a_closed_input_takes_nothing_more)
{
	char command[512];
	struct ask q;
	struct job j;

	(void)snprintf(command, sizeof(command), "%s; cat", gate_shut(w));
	start_reading(w, &j, command);
	expect_done(w, ask_input(&j, &q, "kept", 4));
	expect_done(w, ask_close(&j, &q));
	expect_refused(w, ask_input(&j, &q, "x", 1), "the task's input is closed");
	gate_open(w);
	job_wait(w, &j);
	assert_string_equal(job_log(&j), "kept");
}

TASK_TEST(a_task_that_closes_its_stdin_is_not_hurt_by_input)
{
	struct ask q = {0};
	struct job j;

	start_reading(w, &j, "exec <&-; echo shut; while :; do sleep 0.02; done");
	job_says(w, &j, "shut");
	/* The first one finds out. */
	wait_until(w, (ask_wait(w, ask_input(&j, &q, "x", 1)), q.answer.rc != 0));
	assert_string_equal(q.answer.why, "the task's input is closed");
	run_kill(j.task);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
}

/* More than pipe and shim hold: then a request is only answered when some was read. */
static void fill(struct world *w, struct job *j, struct ask *last, uint64_t *total)
{
	static char page[PROTO_INPUT_MAX];

	memset(page, 'x', sizeof(page));
	for (int i = 0; i < 1000; i++) {
		struct ask list;

		(void)ask_input(j, last, page, sizeof(page));
		expect_done(w, ask_left(j, &list)); /* it has been seen by now */
		if (!last->answers)
			return;
		assert_int_equal(last->answer.taken, sizeof(page));
		*total += last->answer.taken;
	}
	fail_msg("it takes without an end");
}

TASK_TEST(input_is_bounded_and_its_host_hears_when_there_is_room)
{
	char command[512], want[64];
	uint64_t total = 0;
	struct ask last, q;
	struct job j;

	(void)snprintf(command, sizeof(command), "%s; wc -c", gate_shut(w));
	start_reading(w, &j, command);
	fill(w, &j, &last, &total);
	assert_in_range(total, 64 << 10, 512 << 10);
	expect_refused(w, ask_input(&j, &q, "x", 1),
		       "the last request of this kind has not been answered yet");
	gate_open(w);
	expect_done(w, &last);
	assert_true(last.answer.taken < PROTO_INPUT_MAX);
	total += last.answer.taken;
	expect_done(w, ask_close(&j, &q));
	job_wait(w, &j);
	(void)snprintf(want, sizeof(want), "%llu\n", (unsigned long long)total);
	assert_string_equal(job_log(&j), want);
}

TASK_TEST(input_that_is_never_read_is_answered_at_the_end)
{
	uint64_t total = 0;
	struct ask last;
	struct job j;

	start_reading(w, &j, "exec sleep 60");
	fill(w, &j, &last, &total);
	run_kill(j.task);
	job_wait(w, &j);
	expect_refused(w, &last, "the task's input is closed");
}

/* One megabyte, as a host does it: the rest of what was not taken comes next. */
TASK_TEST(every_byte_arrives_in_its_order)
{
	enum {
		SIZE = 1 << 20
	};
	static char bytes[SIZE + 1];
	struct job j;

	for (int i = 0; i < SIZE; i++)
		bytes[i] = (char)('a' + i * 7 % 26);
	start_reading(w, &j, "exec cat");
	for (size_t done = 0; done < SIZE;) {
		struct ask q;

		expect_done(w, ask_input(&j, &q, bytes + done, SIZE - done));
		done += q.answer.taken;
	}
	run_close_input(j.task, NULL, NULL, NULL);
	job_wait(w, &j);
	assert_true(strcmp(job_log(&j), bytes) == 0);
}

TASK_TEST(a_reader_that_outlives_its_task_sees_the_end)
{
	struct job j;

	start_reading(w, &j, "(cat; echo seen) <&0 & exit 3");
	job_wait(w, &j);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 3);
	job_says(w, &j, "seen");
}

/* ---- packets by hand ---- */

static uint32_t reply_to(struct world *w, int fd, const struct proto_packet *p)
{
	uint8_t bytes[PROTO_PACKET_MAX];
	struct proto_packet got = {0};

	assert_true(send(fd, bytes, proto_put_packet(bytes, p), MSG_NOSIGNAL) > 0);
	do {
		wait_until(w, get_packet(fd, &got));
	} while (got.type != PROTO_MSG_REPLY);
	assert_int_equal(got.reply.serial, p->request.serial);
	return got.reply.result;
}

TASK_TEST(a_task_without_a_terminal_has_no_size)
{
	struct proto_packet p = {.type = PROTO_MSG_RESIZE,
				 .request = {.serial = 9, .value = 24 | 80 << 16}};
	struct job j;
	int fd = -1;

	job_start(w, &j, "exec sleep 60");
	wait_until(w, (fd = connect_to(only_folder(w))) >= 0);
	assert_int_equal(reply_to(w, fd, &p), PROTO_NO_TERMINAL);
	(void)close(fd);
	run_kill(j.task);
	job_wait(w, &j);
}

TASK_TEST(several_hosts_have_their_own_replies_and_hear_the_same_end)
{
	struct proto_packet p = {.type = PROTO_MSG_INPUT,
				 .request = {.len = 2, .bytes = (const uint8_t *)"a\n"}};
	struct job j;
	int fds[5];

	start_reading(w, &j, "head -n 5 | wc -l; exit 6");
	for (int i = 0; i < 5; i++) {
		wait_until(w, (fds[i] = connect_to(only_folder(w))) >= 0);
		p.request.serial = 100;
		assert_int_equal(reply_to(w, fds[i], &p), PROTO_DONE);
	}
	job_wait(w, &j);
	assert_string_equal(job_log(&j), "5\n");
	for (int i = 0; i < 5; i++) {
		wait_until(w, get_packet(fds[i], &p));
		assert_int_equal(p.type, PROTO_MSG_ENDED);
		assert_int_equal(WEXITSTATUS(p.ended.wait_status), 6);
		(void)close(fds[i]);
	}
}

TASK_TEST(an_unknown_kind_is_ignored_and_its_host_kept)
{
	uint8_t bytes[PROTO_PACKET_MAX];
	struct proto_packet p = {.type = PROTO_MSG_LIST, .request = {.serial = 1}};
	size_t len = proto_put_packet(bytes, &p);
	struct job j;
	int fd = -1;

	job_start(w, &j, "exec sleep 60");
	wait_until(w, (fd = connect_to(only_folder(w))) >= 0);
	bytes[6] = 77;
	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
	assert_int_equal(reply_to(w, fd, &p), PROTO_DONE);
	(void)close(fd);
	run_kill(j.task);
	job_wait(w, &j);
}
