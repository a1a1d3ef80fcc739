/* SPDX-License-Identifier: MIT */
/*
 * The n-th call of each kind fails, for all n: the task ends once, and the end says what
 * happened; nothing of it is left.
 */
#include "asks.h"
#include "faulty.h"

/* Far more than a shim makes in a life as short as these. */
#define CALLS_MAX 400

static void check_end(struct world *w, const struct job *j, const char *fault,
		      bool is_killed)
{
	switch (j->end.cause) {
	case RUN_EXIT:
		assert_int_equal(WEXITSTATUS(j->end.wait_status), 3);
		break;
	case RUN_NOT_STARTED:
	case RUN_LOST:
		assert_true(j->end.why[0] != 0);
		break;
	case RUN_SIGNAL: /* its output could not be read any more */
		assert_int_equal(WTERMSIG(j->end.wait_status), SIGPIPE);
		break;
	case RUN_KILL:
		assert_true(is_killed);
		break;
	case RUN_DEADLINE:
	case RUN_OOM:
		fail_msg("%s: nobody asked for that", fault);
	}
	wait_until(w, is_folder_free(w));
	assert_int_equal(j->ends, 1);
	run_drop(j->task);
	run_flush(w->run);
	assert_string_equal(only_folder(w), "");
}

/* False: there is no n-th call. */
static bool nth_fails(struct world *w, const char *call, int n, int errnum)
{
	char fault[64];
	struct job j;

	(void)snprintf(fault, sizeof(fault), "fail %s %d %d", call, n, errnum);
	world_fault(w, fault);
	job_run(w, &j, "echo hi; exit 3");
	check_end(w, &j, fault, false);
	return has_happened(w);
}

/* The same for a task that does not want to go. */
static bool nth_fails_in_a_kill(struct world *w, const char *call, int n, int errnum)
{
	const char *sleep = own_sleep();
	char fault[64], command[256];
	const char *argv[] = {"bash", "-c", command, NULL};
	struct run_spec spec = spec_of(w, argv);
	struct job j;

	(void)snprintf(command, sizeof(command),
		       "trap '' TERM; setsid %s & echo up; %s; exit 3", sleep, sleep);
	(void)snprintf(fault, sizeof(fault), "fail %s %d %d", call, n, errnum);
	world_fault(w, fault);
	spec.grace_ms = 20;
	job_start_spec(w, &j, &spec);
	wait_until(w, j.ends > 0 || count_alive(sleep) == 2);
	run_kill(j.task);
	job_wait(w, &j);
	check_end(w, &j, fault, true);
	if (j.end.cause == RUN_KILL)
		assert_int_equal(count_alive(sleep), 0);
	end_all(sleep);
	return has_happened(w);
}

/* The same for a task that is written to. */
static bool nth_fails_with_input(struct world *w, const char *call, int n, int errnum)
{
	const char *argv[] = {"bash", "-c", "cat; exit 3", NULL};
	struct run_spec spec = spec_of(w, argv);
	char fault[64];
	struct job j;

	(void)snprintf(fault, sizeof(fault), "fail %s %d %d", call, n, errnum);
	world_fault(w, fault);
	spec.has_input = true;
	job_start_spec(w, &j, &spec);
	(void)run_input(j.task, "hi\n", 3, NULL, NULL, NULL);
	/* A request may be lost with its connection: its host hears of that. */
	do {
		struct ask q = {0};

		if (run_close_input(j.task, on_answer, &q, NULL) == 0)
			wait_until(w, q.answers > 0);
		world_turn(w, 5);
	} while (!j.ends);
	job_wait(w, &j);
	check_end(w, &j, fault, false);
	return has_happened(w);
}

typedef bool nth_fn(struct world *w, const char *call, int n, int errnum);

static void every_one_fails(struct world *w, const char *call, int errnum, nth_fn *nth)
{
	int n = 1;

	while (n < CALLS_MAX && nth(w, call, n, errnum))
		n++;
	assert_in_range(n, 2, CALLS_MAX - 1); /* there was one, and an end of them */
}

#define FAULT_TEST(what, call, errnum)                                                     \
	TASK_TEST(what)                                                                    \
	{                                                                                  \
		every_one_fails(w, call, errnum, nth_fails);                               \
	}

#define KILL_FAULT_TEST(what, call, errnum)                                                \
	TASK_TEST(what)                                                                    \
	{                                                                                  \
		every_one_fails(w, call, errnum, nth_fails_in_a_kill);                     \
	}

#define INPUT_FAULT_TEST(what, call, errnum)                                               \
	TASK_TEST(what)                                                                    \
	{                                                                                  \
		every_one_fails(w, call, errnum, nth_fails_with_input);                    \
	}

FAULT_TEST(every_open_may_fail, "open64", EMFILE)
FAULT_TEST(every_read_may_fail, "read", EIO)
FAULT_TEST(every_write_may_fail, "write", ENOSPC)
FAULT_TEST(every_write_of_the_record_may_fail, "pwrite64", ENOSPC)
FAULT_TEST(every_look_at_the_record_may_fail, "pread64", EIO)
FAULT_TEST(every_sync_may_fail, "fdatasync", EIO)
FAULT_TEST(every_fork_may_fail, "fork", EAGAIN)
FAULT_TEST(every_mapping_may_fail, "mmap64", ENOMEM)
FAULT_TEST(every_pipe_may_fail, "pipe2", EMFILE)
FAULT_TEST(every_lock_may_fail, "flock", EWOULDBLOCK)
FAULT_TEST(every_watch_may_fail, "epoll_ctl", ENOMEM)
FAULT_TEST(every_loop_may_fail, "epoll_create1", EMFILE)
FAULT_TEST(every_signalfd_may_fail, "signalfd", EMFILE)
FAULT_TEST(every_socket_may_fail, "socket", EACCES)
FAULT_TEST(every_bind_may_fail, "bind", EACCES)
FAULT_TEST(every_listen_may_fail, "listen", EACCES)
FAULT_TEST(every_packet_may_fail, "send", ENOBUFS)
FAULT_TEST(every_unlink_may_fail, "unlink", EROFS)
FAULT_TEST(every_change_of_folder_may_fail, "chdir", EIO)
FAULT_TEST(the_way_into_the_folder_may_fail, "fchdir", EIO)
FAULT_TEST(every_copy_of_a_descriptor_may_fail, "dup2", EBUSY)
FAULT_TEST(every_exec_may_fail, "execvp", ENOMEM)
FAULT_TEST(every_raw_call_may_fail, "syscall", ENOSYS)

KILL_FAULT_TEST(in_a_kill_every_signal_may_fail, "kill", EPERM)
KILL_FAULT_TEST(in_a_kill_every_open_may_fail, "open64", EMFILE)
KILL_FAULT_TEST(in_a_kill_every_read_may_fail, "read", EIO)
KILL_FAULT_TEST(in_a_kill_every_packet_may_fail, "send", ENOBUFS)
KILL_FAULT_TEST(a_shim_that_loses_its_host_is_found_again, "recv", EIO)

INPUT_FAULT_TEST(with_input_every_pipe_may_fail, "pipe2", EMFILE)
INPUT_FAULT_TEST(with_input_every_write_may_fail, "write", EIO)
INPUT_FAULT_TEST(with_input_every_watch_may_fail, "epoll_ctl", ENOMEM)
INPUT_FAULT_TEST(with_input_every_copy_of_a_descriptor_may_fail, "dup2", EBUSY)

TASK_TEST(a_full_disk_stops_the_log_and_not_the_task)
{
	struct proto_record r;
	struct job j;

	world_fault(w, "fail write 1 28");
	job_run(w, &j, "echo hi; exit 3");
	assert_true(has_happened(w));
	assert_int_equal(WEXITSTATUS(j.end.wait_status), 3);
	assert_int_equal(j.end.bytes_seen, 3);
	assert_int_equal(j.end.bytes_dropped, 3);
	read_status(only_folder(w), &r);
	assert_int_equal(r.log_errno, ENOSPC);
}

TASK_TEST(a_shim_that_cannot_begin_says_why)
{
	static const struct {
		const char *fault, *why;
	} rows[] = {
		{"fail fchdir 1 5", "cannot set up the supervisor: Input/output error"},
		{"fail signalfd 1 24", "cannot set up the supervisor: Too many open files"},
		{"fail open64 1 28",
		 "cannot take the lock of the run folder: No space left on device"},
		{"fail flock 1 37",
		 "cannot take the lock of the run folder: No locks available"},
		{"fail pwrite64 1 28", "cannot write the status: No space left on device"},
		{"fail epoll_create1 1 24", "cannot start a process: Too many open files"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct job j;

		world_fault(w, rows[i].fault);
		job_run(w, &j, "exit 3");
		assert_true(has_happened(w));
		assert_int_equal(j.end.cause, RUN_NOT_STARTED);
		assert_string_equal(j.end.why, rows[i].why);
		run_drop(j.task);
		run_flush(w->run);
	}
}
