/* SPDX-License-Identifier: MIT */
/* How tasks end: real processes under a real errand-shim. */
#include "tasks.h"

static void expect_exit(struct world *w, const char *command, int code)
{
	struct job j;

	job_run(w, &j, command);
	assert_int_equal(j.end.cause, RUN_EXIT);
	assert_true(WIFEXITED(j.end.wait_status));
	assert_int_equal(WEXITSTATUS(j.end.wait_status), code);
}

TASK_TEST(an_exit_code_is_what_the_kernel_gives)
{
	expect_exit(w, "exit 0", 0);
	expect_exit(w, "exit 7", 7);
	expect_exit(w, "exit 300", 44);
}

TASK_TEST(a_file_that_is_not_executable_gives_126)
{
	struct job j;

	job_run(w, &j,
		"f=$(mktemp); chmod 600 $f; trap \"rm $f\" EXIT; bash -c \"exec $f\"");
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 126);
	assert_true(log_has(&j, "Permission denied"));
}

TASK_TEST(its_own_segfault_is_a_signal_that_nobody_asked_for)
{
	struct job j;

	job_run(w, &j, "kill -SEGV $$");
	assert_int_equal(j.end.cause, RUN_SIGNAL);
	assert_int_equal(WTERMSIG(j.end.wait_status), SIGSEGV);
}

TASK_TEST(a_kill_from_outside_is_told_apart_from_ours)
{
	struct job j;
	long pid;

	job_start(w, &j, "echo $$; exec sleep 60");
	job_says(w, &j, "\n");
	pid = strtol(job_log(&j), NULL, 10);
	assert_int_equal(kill((pid_t)pid, SIGKILL), 0);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_SIGNAL);
	assert_int_equal(WTERMSIG(j.end.wait_status), SIGKILL);
}

TASK_TEST(a_kill_of_its_own_group_reaches_nobody_else)
{
	struct job j;

	job_run(w, &j, "echo hi; kill -TERM 0; sleep 5");
	assert_int_equal(j.end.cause, RUN_SIGNAL);
	assert_int_equal(WTERMSIG(j.end.wait_status), SIGTERM);
	expect_exit(w, "exit 3", 3);
}

TASK_TEST(a_program_that_is_not_there_is_named)
{
	const char *argv[] = {"no-such-program", NULL};
	struct run_spec spec = spec_of(w, argv);
	struct job j;

	job_start_spec(w, &j, &spec);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_NOT_STARTED);
	assert_string_equal(j.end.why,
			    "cannot run 'no-such-program': No such file or directory");
}

TASK_TEST(a_program_is_looked_up_in_the_path_of_the_task)
{
	const char *argv[] = {"true", NULL};
	const char *env[] = {"PATH=/nowhere", NULL};
	struct run_spec spec = spec_of(w, argv);
	struct job j;

	w->context.env = env;
	job_start_spec(w, &j, &spec);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_NOT_STARTED);
}

TASK_TEST(a_workdir_that_goes_before_the_start_is_named)
{
	const char *argv[] = {"true", NULL};
	struct run_spec spec = spec_of(w, argv);
	char dir[] = "/tmp/errand-gone-XXXXXX", want[128];
	struct err err = {0};
	struct job j = {0};

	assert_non_null(mkdtemp(dir));
	spec.workdir = dir;
	assert_int_equal(run_start(w->run, &spec, job_ended, &j, &j.task, &err), 0);
	assert_int_equal(rmdir(dir), 0);
	run_flush(w->run);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_NOT_STARTED);
	(void)snprintf(want, sizeof(want),
		       "cannot change to '%s': No such file or directory", dir);
	assert_string_equal(j.end.why, want);
}

TASK_TEST(a_missing_workdir_is_refused_and_nothing_is_made)
{
	const char *argv[] = {"true", NULL};
	struct run_spec spec = spec_of(w, argv);
	struct err err = {0};
	struct job j = {0};

	spec.workdir = "/no/such/place";
	assert_int_equal(run_start(w->run, &spec, job_ended, &j, &j.task, &err), -ERR_ARG);
	assert_string_equal(
		err.msg, "cannot use workdir '/no/such/place': No such file or directory");
	spec.workdir = "/etc/passwd";
	assert_int_equal(run_start(w->run, &spec, job_ended, &j, &j.task, &err), -ERR_ARG);
	assert_string_equal(err.msg, "cannot use workdir '/etc/passwd': Not a directory");
	run_flush(w->run);
	assert_string_equal(only_folder(w), "");
}

TASK_TEST(a_relative_workdir_starts_at_the_clients)
{
	const char *argv[] = {"pwd", NULL};
	struct run_spec spec = spec_of(w, argv);
	struct job j;

	w->context.cwd = "/usr";
	spec.workdir = "lib";
	job_start_spec(w, &j, &spec);
	job_wait(w, &j);
	assert_string_equal(job_log(&j), "/usr/lib\n");
}

TASK_TEST(an_argument_that_the_system_cannot_take_is_refused)
{
	static char big[200001];
	const char *argv[] = {"true", big, NULL};
	struct run_spec spec = spec_of(w, argv);
	struct err err = {0};
	struct job j = {0};

	memset(big, 'x', sizeof(big) - 1);
	assert_int_equal(run_start(w->run, &spec, job_ended, &j, &j.task, &err), -ERR_ARG);
	assert_non_null(strstr(err.msg, "200000 bytes"));
}

TASK_TEST(a_deadline_ends_it_and_says_so)
{
	const char *argv[] = {"sleep", "60", NULL};
	struct run_spec spec = spec_of(w, argv);
	struct job j;

	spec.deadline_ms = 100;
	job_start_spec(w, &j, &spec);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_DEADLINE);
	assert_int_equal(j.end.deadline_ms, 100);
	assert_int_equal(WTERMSIG(j.end.wait_status), SIGTERM);
}

TASK_TEST(a_deadline_is_not_told_of_what_ended_before)
{
	const char *argv[] = {"true", NULL};
	struct run_spec spec = spec_of(w, argv);
	struct job j;

	spec.deadline_ms = 60000;
	job_start_spec(w, &j, &spec);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_EXIT);
}

TASK_TEST(a_grandchild_with_the_pipe_does_not_hold_the_end_up)
{
	const char *sleep = own_sleep();
	char command[128];
	struct job j;

	(void)snprintf(command, sizeof(command), "%s & echo started", sleep);
	job_run(w, &j, command);
	assert_int_equal(j.end.cause, RUN_EXIT);
	assert_string_equal(job_log(&j), "started\n");
	assert_int_equal(count_alive(sleep), 1); /* nobody asked for its end */
	run_kill(j.task);
	wait_until(w, count_alive(sleep) == 0);
	assert_int_equal(j.ends, 1);
}

TASK_TEST(those_who_outlive_it_in_its_session_are_counted)
{
	const char *sleep = own_sleep();
	char command[256];
	struct job j;

	(void)snprintf(command, sizeof(command),
		       "%s >/dev/null 2>&1 & %s >/dev/null 2>&1 &", sleep, sleep);
	job_run(w, &j, command);
	assert_int_equal(j.end.cause, RUN_EXIT);
	assert_int_equal(j.end.processes_left, 2);
	run_kill(j.task);
	wait_until(w, count_alive(sleep) == 0);
	assert_int_equal(j.ends, 1);
}

TASK_TEST(who_holds_the_pipe_in_another_session_is_counted)
{
	const char *sleep = own_sleep();
	char command[256];
	struct job j;

	(void)snprintf(command, sizeof(command), "setsid %s & sleep 0.1; exit 5", sleep);
	job_run(w, &j, command);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 5);
	assert_int_equal(j.end.processes_left, 1);
	run_kill(j.task);
	wait_until(w, count_alive(sleep) == 0);
}

TASK_TEST(a_shim_goes_with_the_last_leftover)
{
	char command[512];
	struct proto_record r;
	struct job j;

	(void)snprintf(command, sizeof(command), "(%s) >/dev/null 2>&1 &", gate_shut(w));
	job_run(w, &j, command);
	assert_true(j.end.processes_left >= 1); /* it sleeps by a child */
	read_status(only_folder(w), &r);
	assert_true(is_alive(r.shim_pid));
	gate_open(w);
	wait_until(w, !is_alive(r.shim_pid));
	assert_int_equal(j.ends, 1);
}

TASK_TEST(what_a_leftover_prints_is_still_logged)
{
	struct job j;

	job_run(w, &j, "(sleep 0.5; echo late) &");
	job_says(w, &j, "late");
	assert_int_equal(j.ends, 1);
}

TASK_TEST(a_closed_output_is_not_the_end)
{
	struct job j;

	job_run(w, &j, "echo before; exec >&- 2>&-; sleep 0.3; exit 9");
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 9);
	assert_string_equal(job_log(&j), "before\n");
}

TASK_TEST(stdin_is_empty)
{
	struct job j;

	job_run(w, &j, "cat; echo after-cat; read -p 'ok? ' a; echo \"got:[$a]\"");
	assert_string_equal(job_log(&j), "after-cat\ngot:[]\n");
}

TASK_TEST(a_broken_pipe_inside_ends_only_its_writer)
{
	struct job j;

	job_run(w, &j, "yes | head -n 1; echo done");
	assert_string_equal(job_log(&j), "y\ndone\n");
	assert_int_equal(j.end.wait_status, 0);
}

TASK_TEST(orphans_are_reaped)
{
	struct job j;

	job_run(w, &j,
		"for i in 1 2 3 4 5 6 7 8; do (true & exec true) & done; wait; sleep 0.2;"
		"ps -o stat= --ppid $PPID | grep -c Z");
	assert_string_equal(job_log(&j), "0\n");
}

TASK_TEST(the_record_says_how_long_and_how_much)
{
	struct proto_record r;
	struct job j;

	job_run(w, &j, "echo 12345; sleep 0.05");
	read_status(only_folder(w), &r);
	assert_int_equal(r.state, PROTO_ENDED);
	assert_int_equal(r.cause, PROTO_CAUSE_EXIT);
	assert_int_equal(r.bytes_seen, 6);
	assert_true(r.took_ms >= 50 && r.ended_ms >= r.started_ms);
	assert_true(r.peak_kib > 0 && r.ticks >= r.shim_ticks && r.shim_ticks > 0);
}
