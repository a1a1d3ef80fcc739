/* SPDX-License-Identifier: MIT */
/* What outlives a task: attached or detached, listed, swept, released. */
#include "asks.h"

static long shim_of(const struct world *w)
{
	struct proto_record r;

	read_status(only_folder(w), &r);
	return r.shim_pid;
}

/* A task that ends and leaves @text behind; the commands in it end with '&'. */
static void leave(struct world *w, struct job *j, const char *text)
{
	char command[1024];

	(void)snprintf(command, sizeof(command), "%s sleep 0.1", text);
	job_run(w, j, command);
	assert_int_equal(j->end.cause, RUN_EXIT);
}

TASK_TEST(who_has_cut_all_ties_is_listed_and_not_counted)
{
	const char *sleep = own_sleep();
	struct ask q;
	struct job j;

	leave(w, &j, detached(sleep));
	assert_int_equal(j.end.processes_left, 0);
	assert_int_equal(j.end.detached_left, 1);
	assert_true(is_alive(shim_of(w))); /* it stays, so that nothing runs on unseen */
	expect_done(w, ask_left(&j, &q));
	assert_int_equal(q.answer.attached, 0);
	assert_int_equal(q.answer.detached, 1);
	assert_int_equal(q.answer.n_processes, 1);
	assert_true(q.processes[0].is_detached);
	assert_true(is_alive(q.processes[0].pid) && q.processes[0].ticks > 0);
	expect_done(w, ask_sweep(&j, &q, true));
}

TASK_TEST(a_sweep_leaves_alone_who_has_cut_all_ties)
{
	const char *held = own_sleep(), *free = own_sleep();
	char text[512];
	struct ask q;
	struct job j;

	(void)snprintf(text, sizeof(text), "(trap '' TERM; exec %s) & %s", held,
		       detached(free));
	leave(w, &j, text);
	assert_int_equal(j.end.processes_left, 1);
	expect_done(w, ask_sweep(&j, &q, false));
	assert_int_equal(q.answer.found, 1);
	assert_int_equal(q.answer.attached, 0);
	assert_int_equal(q.answer.detached, 1);
	assert_int_equal(count_alive(held), 0);
	assert_int_equal(count_alive(free), 1);
	run_kill(j.task); /* the contract's kill of an ended task takes no more */
	assert_true(are_left(w, &j, 0, 1));
	expect_done(w, ask_sweep(&j, &q, true));
}

TASK_TEST(on_request_a_sweep_takes_the_detached_too)
{
	const char *held = own_sleep(), *free = own_sleep();
	char text[512];
	struct ask q;
	struct job j;
	long shim;

	(void)snprintf(text, sizeof(text), "%s & %s", held, detached(free));
	leave(w, &j, text);
	shim = shim_of(w);
	expect_done(w, ask_sweep(&j, &q, true));
	assert_int_equal(q.answer.found, 2);
	assert_int_equal(q.answer.attached + q.answer.detached, 0);
	assert_int_equal(count_alive(held) + count_alive(free), 0);
	wait_until(w, !is_alive(shim));
	assert_int_equal(j.ends, 1);
}

TASK_TEST(a_detached_one_has_its_grace_and_then_none)
{
	const char *sleep = own_sleep();
	char text[512];
	struct ask q;
	struct job j;

	(void)snprintf(
		text, sizeof(text),
		"setsid bash -c 'trap \"\" TERM; exec %s' </dev/null >/dev/null 2>&1 &",
		sleep);
	leave(w, &j, text);
	wait_until(w, count_alive(sleep) == 1);
	expect_done(w, ask_sweep(&j, &q, true));
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(a_wider_sweep_may_come_while_the_first_is_on_its_way)
{
	const char *held = own_sleep(), *free = own_sleep();
	char text[512];
	struct ask first, wider;
	struct job j;

	(void)snprintf(text, sizeof(text), "(trap '' TERM; exec %s) & %s", held,
		       detached(free));
	leave(w, &j, text);
	(void)ask_sweep(&j, &first, false);
	expect_refused(w, ask_sweep(&j, &wider, true),
		       "the last request of this kind has not been answered yet");
	expect_done(w, &first);
	expect_done(w, ask_sweep(&j, &wider, true));
	assert_int_equal(wider.answer.found, 1);
	assert_int_equal(count_alive(held) + count_alive(free), 0);
}

TASK_TEST(a_double_fork_is_detached_when_it_has_cut_both_ties)
{
	const char *sleep = own_sleep();
	char text[512];
	struct ask q;
	struct job j;

	(void)snprintf(text, sizeof(text),
		       "(setsid bash -c '%s & exit' </dev/null >/dev/null 2>&1 &); ",
		       sleep);
	leave(w, &j, text);
	wait_until(w, are_left(w, &j, 0, 1)); /* its parent may take a moment */
	expect_done(w, ask_sweep(&j, &q, true));
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(a_shim_goes_with_the_last_detached_one)
{
	const char *sleep = own_sleep();
	struct job j;
	long shim;

	leave(w, &j, detached(sleep));
	shim = shim_of(w);
	assert_true(are_left(w, &j, 0, 1));
	end_all(sleep);
	wait_until(w, !is_alive(shim));
	assert_int_equal(j.ends, 1);
}

TASK_TEST(disposal_releases_what_is_detached)
{
	const char *held = own_sleep(), *free = own_sleep();
	char text[512];
	struct job j;
	long shim;

	(void)snprintf(text, sizeof(text), "%s & %s", held, detached(free));
	leave(w, &j, text);
	shim = shim_of(w);
	run_drop(j.task);
	run_flush(w->run);
	wait_until(w, !is_alive(shim));
	wait_until(w, only_folder(w)[0] == 0);
	assert_int_equal(count_alive(held), 0);
	assert_int_equal(count_alive(free), 1);
	end_all(free);
}

static void expect_dropped(const struct ask *q)
{
	assert_int_equal(q->answers, 1);
	assert_int_equal(q->answer.rc, -ERR_SYS);
	assert_string_equal(q->answer.why, "the task has been dropped");
}

TASK_TEST(a_request_to_a_task_that_is_dropped_is_answered)
{
	const char *held = own_sleep();
	struct ask sweep, extend;
	char text[256];
	struct job j;

	(void)snprintf(text, sizeof(text), "(trap '' TERM; exec %s) &", held);
	leave(w, &j, text);
	(void)ask_sweep(&j, &sweep, false);
	(void)ask_extend(&j, &extend, 1000);
	run_drop(j.task);
	assert_int_equal(sweep.answers, 0); /* not from inside whoever drops it */
	run_flush(w->run);
	expect_dropped(&sweep);
	expect_dropped(&extend);
	wait_until(w, only_folder(w)[0] == 0);
	assert_int_equal(count_alive(held), 0);
}

TASK_TEST(a_request_to_a_live_task_that_is_dropped_is_answered)
{
	const char *sleep = own_sleep();
	struct ask q;
	struct job j;

	job_start(w, &j, sleep);
	run_flush(w->run);
	wait_until(w, count_alive(sleep) == 1);
	(void)ask_extend(&j, &q, 60000);
	run_drop(j.task);
	run_flush(w->run);
	expect_dropped(&q);
	assert_int_equal(count_alive(sleep), 1); /* it is the next host's */
	assert_int_not_equal(only_folder(w)[0], 0);
	end_all(sleep);
}

static void expect_counted_and_ended(struct world *w, const char *before)
{
	struct job j;
	long pid;

	job_run(w, &j, headless(before));
	pid = strtol(job_log(&j), NULL, 10);
	assert_int_equal(j.end.processes_left, 1);
	assert_int_equal(j.end.detached_left, 0);
	assert_true(has_process(pid));
	run_drop(j.task);
	run_flush(w->run);
	wait_until(w, !has_process(pid));
	wait_until(w, only_folder(w)[0] == 0);
}

TASK_TEST(who_goes_on_without_its_first_thread_is_counted_and_ended)
{
	expect_counted_and_ended(w, "");       /* by its session */
	expect_counted_and_ended(w, "setsid"); /* by its pipe */
}

TASK_TEST(a_new_host_finds_the_detached_of_an_ended_task)
{
	const char *sleep = own_sleep();
	char uid[PROTO_UID_LEN + 1];
	struct job first, j = {0};
	struct ask q;

	leave(w, &first, detached(sleep));
	(void)snprintf(uid, sizeof(uid), "%s", run_uid(first.task));
	assert_int_equal(run_attach(w->run, uid, job_ended, &j, &j.task, NULL), 0);
	job_wait(w, &j);
	assert_int_equal(j.end.detached_left, 1);
	assert_true(are_left(w, &j, 0, 1));
	expect_done(w, ask_sweep(&j, &q, true));
	assert_int_equal(q.answer.found, 1);
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(a_living_task_is_listed_and_not_swept)
{
	const char *held = own_sleep(), *free = own_sleep();
	char command[512];
	struct ask q;
	struct job j;

	(void)snprintf(command, sizeof(command), "%s %s", detached(free), held);
	job_start(w, &j, command);
	wait_until(w, count_alive(held) == 1 && count_alive(free) == 1);
	wait_until(w, are_left(w, &j, 2, 1) || are_left(w, &j, 1, 1));
	expect_refused(w, ask_sweep(&j, &q, true),
		       "the task has not ended: kill it instead");
	run_kill(j.task);
	job_wait(w, &j);
	assert_int_equal(count_alive(held) + count_alive(free), 0);
}

TASK_TEST(a_long_list_is_cut_and_its_counts_are_not)
{
	const char *sleep = own_sleep();
	char text[512];
	struct ask q;
	struct job j;

	(void)snprintf(text, sizeof(text),
		       "for i in $(seq 230); do %s >/dev/null 2>&1 & done;", sleep);
	leave(w, &j, text);
	wait_until(w, count_alive(sleep) == 230);
	expect_done(w, ask_left(&j, &q));
	assert_int_equal(q.answer.attached, 230);
	assert_int_equal(q.answer.n_processes, PROTO_LIST_MAX);
	expect_done(w, ask_sweep(&j, &q, false));
	assert_int_equal(q.answer.found, 230);
	assert_int_equal(count_alive(sleep), 0);
}

/* Ten daemons cost ten shims: what that is, is measured here. */
TASK_TEST(a_shim_that_stays_is_small)
{
	const char *sleep = own_sleep();
	char path[64], text[8192];
	const char *own;
	struct ask q;
	struct job j;

	leave(w, &j, detached(sleep));
	assert_true(are_left(w, &j, 0, 1));
	(void)snprintf(path, sizeof(path), "/proc/%ld/smaps_rollup", shim_of(w));
	assert_true(read_text(path, text, sizeof(text)) > 0);
	own = strstr(text, "Anonymous:");
	assert_non_null(own);
	print_message("# %.30s\n", own);
#ifndef __SANITIZE_ADDRESS__
	assert_in_range(strtol(own + 10, NULL, 10), 1, 100);
#endif
	expect_done(w, ask_sweep(&j, &q, true));
}
