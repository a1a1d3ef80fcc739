/* SPDX-License-Identifier: MIT */
/* Kills: the whole tree, with grace, then without; and nothing but the tree. */
#include "tasks.h"

#include "run/internal.h"

static void expect_killed_by(const struct job *j, int sig)
{
	assert_int_equal(j->end.cause, RUN_KILL);
	assert_true(WIFSIGNALED(j->end.wait_status));
	assert_int_equal(WTERMSIG(j->end.wait_status), sig);
	assert_int_equal(j->end.processes_left, 0);
}

static void kill_and_wait(struct world *w, struct job *j)
{
	run_kill(j->task);
	job_wait(w, j);
}

TASK_TEST(a_kill_ends_it_with_sigterm)
{
	struct job j;

	job_start(w, &j, "echo up; exec sleep 60");
	job_says(w, &j, "up");
	kill_and_wait(w, &j);
	expect_killed_by(&j, SIGTERM);
}

TASK_TEST(who_cleans_up_and_exits_is_killed_all_the_same)
{
	struct job j;

	job_start(
		w, &j,
		"trap 'echo cleanup; exit 0' TERM; echo up; while :; do sleep 0.05; done");
	job_says(w, &j, "up");
	kill_and_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
	assert_true(WIFEXITED(j.end.wait_status));
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 0);
	assert_true(log_has(&j, "cleanup"));
}

TASK_TEST(who_ignores_sigterm_gets_sigkill_after_the_grace)
{
	int64_t before;
	struct job j;

	job_start(w, &j, "trap '' TERM INT HUP; echo up; while :; do sleep 0.05; done");
	job_says(w, &j, "up");
	before = clock_mono_ms();
	kill_and_wait(w, &j);
	expect_killed_by(&j, SIGKILL);
	assert_true(clock_mono_ms() - before >= 290);
}

TASK_TEST(a_stopped_task_sees_sigterm)
{
	struct job j;

	job_start(w, &j, "trap 'echo seen; exit 5' TERM; echo up; kill -STOP $$; sleep 60");
	job_says(w, &j, "up");
	kill_and_wait(w, &j);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 5);
	assert_true(log_has(&j, "seen"));
}

TASK_TEST(an_own_session_is_no_way_out)
{
	const char *sleep = own_sleep();
	char command[256];
	struct job j;

	(void)snprintf(command, sizeof(command),
		       "setsid %s </dev/null >/dev/null 2>&1 & wait", sleep);
	job_start(w, &j, command);
	wait_until(w, count_alive(sleep) == 1);
	kill_and_wait(w, &j);
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(a_double_fork_is_no_way_out)
{
	const char *sleep = own_sleep();
	char command[256];
	struct job j;

	(void)snprintf(
		command, sizeof(command),
		"(setsid bash -c 'trap \"\" TERM; %s & wait; %s' >/dev/null 2>&1 &); "
		"sleep 60",
		sleep, sleep);
	job_start(w, &j, command);
	wait_until(w, count_alive(sleep) >= 1);
	kill_and_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(a_loop_does_not_go_on_to_its_next_child)
{
	const char *sleep = own_sleep();
	char command[256];
	struct job j;

	(void)snprintf(command, sizeof(command),
		       "for i in 1 2 3 4 5; do timeout 60 %s; done", sleep);
	job_start(w, &j, command);
	wait_until(w, count_alive(sleep) > 0);
	kill_and_wait(w, &j);
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(who_forks_while_it_is_killed_is_gone_as_well)
{
	const char *sleep = own_sleep();
	char command[256];
	struct job j;

	(void)snprintf(command, sizeof(command),
		       "trap '' TERM; while :; do setsid %s & sleep 0.005; done", sleep);
	job_start(w, &j, command);
	wait_until(w, count_alive(sleep) > 20);
	kill_and_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
	assert_int_equal(j.end.processes_left, 0);
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(a_chain_of_fifty_is_gone)
{
	const char *sleep = own_sleep();
	char command[512];
	struct job j;

	(void)snprintf(command, sizeof(command),
		       "f() { if [ $1 -gt 0 ]; then (trap '' TERM; f $(($1-1)); :) & wait; "
		       "else exec setsid %s; fi; }; f 50",
		       sleep);
	job_start(w, &j, command);
	wait_until(w, count_alive(sleep) > 0);
	kill_and_wait(w, &j);
	assert_int_equal(j.end.processes_left, 0);
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(a_kill_at_birth_is_obeyed_every_time)
{
	const char *sleep = own_sleep();
	struct job j[50];

	for (int i = 0; i < 50; i++) {
		job_start(w, &j[i], sleep);
		run_kill(j[i].task);
	}
	for (int i = 0; i < 50; i++) {
		job_wait(w, &j[i]);
		assert_int_equal(j[i].end.cause, RUN_KILL);
	}
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(a_kill_before_the_process_exists_is_kept)
{
	const char *argv[] = {"sleep", "60", NULL};
	struct run_spec spec = spec_of(w, argv);
	struct err err = {0};
	struct job j = {0};

	assert_int_equal(run_start(w->run, &spec, job_ended, &j, &j.task, &err), 0);
	run_kill(j.task);
	run_flush(w->run);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
}

TASK_TEST(asking_twice_is_asking_once)
{
	struct job j;

	job_start(w, &j,
		  "trap 'sleep 0.1; exit 4' TERM; echo up; while :; do sleep 0.02; done");
	job_says(w, &j, "up");
	run_kill(j.task);
	kill_and_wait(w, &j);
	run_kill(j.task);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 4);
	assert_int_equal(j.ends, 1);
}

TASK_TEST(a_kill_while_a_held_pipe_is_drained_takes_the_holder)
{
	const char *sleep = own_sleep();
	char command[256], text[32];
	struct job j;

	(void)snprintf(command, sizeof(command), "%s & echo $$ $PPID; exit 3", sleep);
	job_start(w, &j, command);
	job_says(w, &j, "\n");
	(void)snprintf(text, sizeof(text), "%ld", strtol(job_log(&j), NULL, 10));
	wait_until(w, !is_alive(strtol(text, NULL, 10)));
	run_kill(j.task);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_EXIT);
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 3);
	wait_until(w, count_alive(sleep) == 0);
}

TASK_TEST(sigterm_to_the_shim_is_a_request_to_end)
{
	struct job j;

	job_start(w, &j, "echo $PPID; exec sleep 60");
	job_says(w, &j, "\n");
	assert_int_equal(kill((pid_t)strtol(job_log(&j), NULL, 10), SIGTERM), 0);
	job_wait(w, &j);
	expect_killed_by(&j, SIGTERM);
}

TASK_TEST(a_stranger_beside_the_tree_lives)
{
	const char *sleep = own_sleep();
	struct job a, b;

	job_start(w, &a, sleep);
	job_start(w, &b, "sleep 60");
	wait_until(w, count_alive(sleep) == 1);
	kill_and_wait(w, &b);
	assert_int_equal(count_alive(sleep), 1);
	kill_and_wait(w, &a);
	assert_int_equal(count_alive(sleep), 0);
}

/* ---- a shim that has been stopped ---- */

static bool is_stopped(long pid)
{
	char path[64], line[512];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	if (!read_text(path, line, sizeof(line)))
		return false;
	at = strrchr(line, ')');
	return at && at[2] == 'T';
}

/* A task that stops its own shim, before or after that has said hello. */
static void start_stopping(struct world *w, struct job *j, const char *sleep)
{
	const char *argv[] = {"bash", "-c", "kill -STOP $PPID; exec $SLEEP", NULL};
	char variable[80];
	const char *env[] = {"PATH=/bin:/usr/bin", variable, NULL};
	struct run_spec spec = spec_of(w, argv);

	(void)snprintf(variable, sizeof(variable), "SLEEP=%s", sleep);
	w->context.env = env;
	job_start_spec(w, j, &spec);
	wait_until(w, count_alive(sleep) == 1);
}

static long shim_on_record(const struct world *w)
{
	struct proto_record r;

	read_status(only_folder(w), &r);
	return r.shim_pid;
}

TASK_TEST(a_task_that_stops_its_shim_is_killed_all_the_same)
{
	const char *sleep = own_sleep();
	struct job j;

	start_stopping(w, &j, sleep);
	wait_until(w, is_stopped(shim_on_record(w)));
	kill_and_wait(w, &j);
	expect_killed_by(&j, SIGTERM);
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(a_shim_that_is_stopped_before_its_host_knows_it_obeys_too)
{
	const char *sleep = own_sleep();
	struct job j;

	start_stopping(w, &j, sleep);
	wait_until(w, is_stopped(shim_on_record(w)));
	j.task->shim_pid = 0;
	kill_and_wait(w, &j);
	expect_killed_by(&j, SIGTERM);
}

TASK_TEST(a_stopped_shim_goes_when_its_host_leaves)
{
	const char *sleep = own_sleep();
	struct job j;

	start_stopping(w, &j, sleep);
	wait_until(w, is_stopped(shim_on_record(w)));
	run_leave(w->run);
	wait_until(w, count_alive(sleep) == 0);
	wait_until(w, only_folder(w)[0] == 0);
}

TASK_TEST(who_has_got_the_number_of_a_shim_is_left_alone)
{
	struct job j;
	pid_t other;

	job_start(w, &j, "exec sleep 60");
	wait_until(w, j.task->shim_pid != 0);
	other = fork();
	assert_true(other >= 0);
	if (other == 0) {
		(void)raise(SIGSTOP);
		_exit(0);
	}
	wait_until(w, is_stopped(other));
	j.task->shim_pid = other;
	j.task->shim_ticks = 1;
	kill_and_wait(w, &j);
	assert_true(is_stopped(other));
	(void)kill(other, SIGKILL);
}
