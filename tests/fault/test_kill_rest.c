/* SPDX-License-Identifier: MIT */
/* Kills where the system gives less: no lists of children, no /proc, no right to kill. */
#include "asks.h"
#include "faulty.h"

static void start_escaping(struct world *w, struct job *j, const char *sleep)
{
	char command[512];

	(void)snprintf(command, sizeof(command),
		       "trap '' TERM; (setsid bash -c 'trap \"\" TERM; %s & %s; :' "
		       "</dev/null >/dev/null 2>&1 &); setsid %s & echo up; %s; :",
		       sleep, sleep, sleep, sleep);
	job_start(w, j, command);
	wait_until(w, count_alive(sleep) == 4);
}

TASK_TEST(without_lists_of_children_the_whole_tree_is_found)
{
	const char *sleep = own_sleep();
	struct job j;

	world_fault(w, "no-children");
	start_escaping(w, &j, sleep);
	run_kill(j.task);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
	assert_int_equal(j.end.processes_left, 0);
	assert_false(j.end.is_unproved);
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(without_lists_of_children_leftovers_are_counted)
{
	const char *sleep = own_sleep();
	char command[256];
	struct job j;

	world_fault(w, "no-children");
	(void)snprintf(command, sizeof(command), "%s & setsid %s >/dev/null 2>&1 & echo up",
		       sleep, sleep);
	job_run(w, &j, command);
	assert_in_range(j.end.processes_left, 1,
			2); /* setsid may not have come to it yet */
	run_kill(j.task);
	wait_until(w, count_alive(sleep) <= 1); /* the other one is not attached */
	end_all(sleep);
	wait_until(w, is_folder_free(w));
}

TASK_TEST(without_proc_the_group_is_killed_and_an_empty_tree_is_proof)
{
	const char *sleep = own_sleep();
	char command[256];
	struct job j;

	world_fault(w, "no-proc");
	(void)snprintf(command, sizeof(command), "%s & %s; :", sleep, sleep);
	job_start(w, &j, command);
	wait_until(w, count_alive(sleep) == 2);
	run_kill(j.task);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
	assert_int_equal(WTERMSIG(j.end.wait_status), SIGTERM);
	assert_false(j.end.is_unproved);
	assert_int_equal(count_alive(sleep), 0);
}

TASK_TEST(without_proc_what_stays_is_not_proved)
{
	const char *sleep = own_sleep();
	char command[256];
	struct job j;

	world_fault(w, "no-proc");
	(void)snprintf(command, sizeof(command), "setsid %s & exec sleep 60", sleep);
	job_start(w, &j, command);
	wait_until(w, count_alive(sleep) == 1);
	run_kill(j.task);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
	assert_true(j.end.is_unproved);
	assert_false(is_folder_free(w)); /* it stays, since something does */
	end_all(sleep);
	wait_until(w, is_folder_free(w));
}

TASK_TEST(without_proc_what_is_left_is_not_counted_and_is_released)
{
	const char *sleep = own_sleep();
	struct ask q;
	struct job j;

	world_fault(w, "no-proc");
	job_run(w, &j, detached(sleep));
	assert_int_equal(j.end.processes_left + j.end.detached_left, 0);
	assert_false(is_folder_free(w)); /* somebody is there, nobody knows who */
	expect_refused(w, ask_left(&j, &q),
		       "nobody can tell what is left: the supervisor cannot read /proc");
	expect_refused(w, ask_sweep(&j, &q, true),
		       "nobody can tell what is left: the supervisor cannot read /proc");
	run_drop(j.task);
	run_flush(w->run);
	wait_until(w, only_folder(w)[0] == 0);
	wait_until(w, count_alive(sleep) == 1); /* setsid may not have become it yet */
	end_all(sleep);
}

TASK_TEST(who_cannot_be_killed_is_named_and_the_shim_stays_with_it)
{
	const char *sleep = own_sleep();
	char command[128];
	struct job j;

	world_fault(w, "no-kill");
	(void)snprintf(command, sizeof(command), "exec %s", sleep);
	job_start(w, &j, command);
	wait_until(w, count_alive(sleep) == 1);
	run_kill(j.task);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_KILL);
	assert_int_equal(j.end.processes_left, 1);
	assert_int_equal(j.end.left_uid, geteuid());
	assert_true(is_alive(j.end.left_pid));
	assert_false(is_folder_free(w));
	end_all(sleep);
	wait_until(w, is_folder_free(w));
	assert_int_equal(j.ends, 1);
}
