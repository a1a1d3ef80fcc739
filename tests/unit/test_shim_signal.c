/* SPDX-License-Identifier: MIT */
/* Signals and deadlines that a host asks for. */
#include "asks.h"

#include "hosts.h"
#include "run/internal.h"

TASK_TEST(an_end_by_a_signal_that_a_host_sent_was_asked_for)
{
	struct proto_record r;
	struct ask q;
	struct job j;

	job_start(w, &j, "echo up; exec sleep 60");
	job_says(w, &j, "up");
	expect_done(w, ask_signal(&j, &q, SIGINT, false));
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
	assert_int_equal(WTERMSIG(j.end.wait_status), SIGINT);
	read_status(only_folder(w), &r);
	assert_int_equal(r.signals, 1 << (SIGINT - 1));
}

TASK_TEST(an_end_by_another_signal_than_the_hosts_was_not)
{
	struct ask q;
	struct job j;

	job_start(w, &j, "trap : USR1; echo up; while :; do sleep 0.02; done");
	job_says(w, &j, "up");
	expect_done(w, ask_signal(&j, &q, SIGUSR1, false));
	run_signal(j.task, SIGUSR1, false, NULL, NULL,
		   NULL); /* nobody waits for this one */
	expect_done(w, ask_left(&j, &q));
	assert_int_equal(kill((pid_t)q.processes[0].pid, SIGKILL), 0);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_SIGNAL);
}

TASK_TEST(who_takes_a_signal_and_exits_has_ended_by_itself)
{
	struct ask q;
	struct job j;

	job_start(w, &j,
		  "trap 'echo seen; exit 7' HUP; echo up; while :; do sleep 0.02; done");
	job_says(w, &j, "up");
	expect_done(w, ask_signal(&j, &q, SIGHUP, false));
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_EXIT);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 7);
	assert_true(log_has(&j, "seen"));
}

TASK_TEST(a_signal_is_for_the_main_process_or_for_the_tree)
{
	static const char *const lines[] = {"main\n", "child\n"};
	struct ask q;
	struct job j;

	job_start(w, &j,
		  "(trap 'echo child' USR1; echo one; while :; do sleep 0.02; done) & "
		  "trap 'echo main' USR1; trap '' USR2; echo two; while :; do wait; done");
	job_says(w, &j, "one");
	job_says(w, &j, "two");
	expect_done(w, ask_signal(&j, &q, SIGUSR1, false));
	job_says(w, &j, lines[0]);
	assert_false(log_has(&j, lines[1]));
	/* Whoever is asleep between two looks dies of it; the shells do not. */
	expect_done(w, ask_signal(&j, &q, SIGUSR1, true));
	job_says(w, &j, lines[1]);
	run_kill(j.task);
	job_wait(w, &j);
}

TASK_TEST(a_signal_that_does_not_exist_is_refused)
{
	static const int bad[] = {0, -1, 65, 1 << 20};
	struct ask q;
	struct job j;

	job_start(w, &j, "exec sleep 60");
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_refused(w, ask_signal(&j, &q, bad[i], i % 2),
			       "there is no such signal or time");
	run_kill(j.task);
	job_wait(w, &j);
}

/* The main process is reaped before its number can be anybody else's. */
TASK_TEST(no_signal_reaches_a_task_that_has_ended)
{
	const char *sleep = own_sleep();
	char command[128];
	struct ask q;
	struct job j;

	(void)snprintf(command, sizeof(command), "%s & exit 0", sleep);
	job_run(w, &j, command);
	expect_refused(w, ask_signal(&j, &q, SIGKILL, false), "the task has ended");
	expect_refused(w, ask_signal(&j, &q, SIGKILL, true), "the task has ended");
	expect_refused(w, ask_extend(&j, &q, 1000), "the task has ended");
	assert_int_equal(count_alive(sleep), 1);
	expect_done(w, ask_sweep(&j, &q, false));
}

TASK_TEST(requests_before_the_start_and_after_the_end_are_refused_at_once)
{
	const char *argv[] = {"true", NULL};
	struct run_spec spec = spec_of(w, argv);
	struct ask q = {0};
	struct job j = {0};

	assert_int_equal(run_start(w->run, &spec, job_ended, &j, &j.task, NULL), 0);
	assert_int_equal(run_signal(j.task, SIGINT, false, on_answer, &q, &q.err),
			 -ERR_STATE);
	assert_string_equal(q.err.msg, "the task has not started yet");
	run_flush(w->run);
	job_wait(w, &j);
	assert_int_equal(run_leftovers(j.task, on_answer, &q, &q.err), -ERR_NOT_FOUND);
	assert_string_equal(q.err.msg, "the task has ended");
	assert_int_equal(q.answers, 0);
}

TASK_TEST(a_request_whose_shim_dies_is_answered_once)
{
	struct ask q;
	struct job j;

	job_start(w, &j, "echo $PPID; exec sleep 60");
	job_says(w, &j, "\n");
	assert_int_equal(kill((pid_t)strtol(job_log(&j), NULL, 10), SIGSTOP), 0);
	(void)ask_left(&j, &q); /* which would wake it, but it does not come to that */
	assert_int_equal(kill((pid_t)strtol(job_log(&j), NULL, 10), SIGKILL), 0);
	job_wait(w, &j);
	wait_until(w, q.answers > 0);
	assert_int_equal(q.answers, 1);
	if (q.answer.rc != 0) /* it may have been as quick as that */
		assert_string_equal(q.answer.why, "the task's supervisor has gone");
	assert_int_equal(j.end.cause, RUN_LOST);
}

TASK_TEST(more_requests_than_a_shim_takes_are_refused)
{
	struct ask q[64];
	struct job j;
	int rc = 0;

	job_start(w, &j, "exec sleep 60");
	for (int i = 0; i < 64; i++)
		(void)ask_left(&j, &q[i]);
	rc = run_leftovers(j.task, NULL, NULL, &q[0].err);
	assert_int_equal(rc, -ERR_LIMIT);
	assert_non_null(strstr(q[0].err.msg, "64 requests"));
	for (int i = 0; i < 64; i++)
		expect_done(w, &q[i]);
	run_kill(j.task);
	job_wait(w, &j);
}

/* ---- deadlines ---- */

static void start_with_deadline(struct world *w, struct job *j, int64_t ms,
				const char *command)
{
	const char *argv[] = {"bash", "-c", command, NULL};
	struct run_spec spec = spec_of(w, argv);

	spec.deadline_ms = ms;
	job_start_spec(w, j, &spec);
}

TASK_TEST(a_later_deadline_lets_a_task_finish)
{
	struct proto_record r;
	char command[512];
	struct ask q;
	struct job j;

	(void)snprintf(command, sizeof(command), "echo up; %s; exit 5", gate_shut(w));
	start_with_deadline(w, &j, 1000, command);
	expect_done(w, ask_extend(&j, &q, 60000));
	job_says(w, &j, "up");
	assert_true(run_deadline(w->run) > clock_mono_ms() + 30000);
	read_status(only_folder(w), &r);
	wait_until(w, clock_wall_ms() > r.started_ms + 1100); /* the first one has passed */
	gate_open(w);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_EXIT);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 5);
}

TASK_TEST(a_new_deadline_ends_a_task_and_is_the_one_that_is_told)
{
	struct proto_record r;
	struct ask q;
	struct job j;

	job_start(w, &j, "exec sleep 60");
	expect_done(w, ask_extend(&j, &q, 100));
	read_status(only_folder(w), &r);
	assert_true(r.deadline_ms >= 100);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_DEADLINE);
	assert_int_equal(j.end.deadline_ms, r.deadline_ms);
}

TASK_TEST(a_deadline_can_be_taken_away)
{
	struct proto_record r;
	struct ask q;
	struct job j;

	start_with_deadline(w, &j, 60000, "exec sleep 60");
	expect_done(w, ask_extend(&j, &q, 0));
	read_status(only_folder(w), &r);
	assert_int_equal(r.deadline_ms, 0);
	assert_true(run_deadline(w->run) == INT64_MAX);
	expect_refused(w, ask_extend(&j, &q, -1), "there is no such signal or time");
	expect_refused(w, ask_extend(&j, &q, INT64_MAX), "there is no such signal or time");
	run_kill(j.task);
	job_wait(w, &j);
}

TASK_TEST(what_is_being_ended_is_not_extended)
{
	struct ask q;
	struct job j;

	job_start(w, &j,
		  "trap 'while :; do sleep 0.02; done' TERM; echo up; "
		  "while :; do sleep 0.02; done");
	job_says(w, &j, "up");
	run_kill(j.task);
	expect_refused(w, ask_extend(&j, &q, 60000), "the task is being ended already");
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
}

TASK_TEST(a_task_that_stops_its_shim_does_not_miss_its_deadline)
{
	struct job j;

	start_with_deadline(w, &j, 200, "kill -STOP $PPID; echo up; exec sleep 60");
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_DEADLINE);
	assert_true(log_has(&j, "up"));
}

TASK_TEST(a_task_that_stops_its_shim_at_each_sign_of_the_end_ends)
{
	struct job j;

	start_with_deadline(w, &j, 200,
			    "trap 'kill -STOP $PPID' TERM; kill -STOP $PPID; "
			    "while :; do sleep 0.02; done");
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_DEADLINE);
}

TASK_TEST(a_new_host_keeps_the_deadline_of_a_stopped_shim)
{
	char uid[PROTO_UID_LEN + 1];
	struct proto_record r;
	struct ask q;
	struct job first, j = {0};

	start_with_deadline(w, &first, 0, "exec sleep 60");
	expect_done(w, ask_extend(&first, &q, 1500));
	read_status(only_folder(w), &r);
	(void)snprintf(uid, sizeof(uid), "%s", run_uid(first.task));
	run_drop(first.task);
	assert_int_equal(run_attach(w->run, uid, job_ended, &j, &j.task, NULL), 0);
	wait_until(w, j.task->shim_pid != 0);
	assert_int_equal(kill(r.shim_pid, SIGSTOP), 0);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_DEADLINE);
}
