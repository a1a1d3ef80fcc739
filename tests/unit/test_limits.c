/* SPDX-License-Identifier: MIT */
/*
 * The limits of a task, in a folder that stands in for the kernel's control groups: what is written
 * there, and what is made of what stands there. tests/vm has the kernel's own.
 */
#include "tasks.h"

#include <errno.h>
#include <sys/file.h>

#include "run/bash_internal.h"

#define OUT_OF_MEMORY "echo 'oom_kill 1' >$G/memory.events; "
#define LIMIT (64 << 20)

static const int64_t all[RUN_LIMITS] = {LIMIT, 50, 20};
static const int64_t only_memory[RUN_LIMITS] = {[RUN_MEMORY] = LIMIT};

static const char *path_in(const struct world *w, const char *group, const char *file)
{
	static char path[256];

	(void)snprintf(path, sizeof(path), "%s/groups/%s/%s", w->folder, group, file);
	return path;
}

static void put(const struct world *w, const char *group, const char *file,
		const char *text)
{
	int fd = open(path_in(w, group, file), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		      0600);

	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	(void)close(fd);
}

static const char *get(const struct world *w, const char *group, const char *file)
{
	static char text[256];

	(void)read_text(path_in(w, group, file), text, sizeof(text));
	return text;
}

/* What the kernel has of a new group. */
static void fill(const struct world *w, const char *group)
{
	static const char *const files[][2] = {
		{"cgroup.procs", ""},
		{"memory.max", "max\n"},
		{"memory.oom.group", "0\n"},
		{"memory.swap.max", "max\n"},
		{"memory.events", "low 0\noom 1\noom_kill 0\noom_group_kill 0\n"},
		{"memory.events.local", "low 0\noom 0\noom_kill 0\n"},
		{"pids.max", "max\n"},
		{"pids.events", "max 0\n"},
		{"cpu.max", "max 100000\n"},
	};

	(void)mkdir(path_in(w, group, ""), 0700);
	for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
		put(w, group, files[i][0], files[i][1]);
}

static unsigned limit(struct world *w, const int64_t limits[RUN_LIMITS], struct err *err)
{
	(void)mkdir(path_in(w, "", ""), 0700);
	return run_limit_in(w->run, open(path_in(w, "", ""), O_RDONLY | O_CLOEXEC), limits,
			    err);
}

static void limit_all(struct world *w, const int64_t limits[RUN_LIMITS])
{
	(void)mkdir(path_in(w, "", ""), 0700);
	put(w, "", "cgroup.subtree_control", "");
	assert_true(limit(w, limits, NULL) != 0);
}

/* Planned, with a group if that @is_filled; $G is that. The group's name. */
static const char *plan(struct world *w, struct job *j, const char *command, bool is_filled)
{
	static char text[4096];
	const char *argv[] = {"bash", "-c", text, NULL};
	struct run_spec spec = spec_of(w, argv);

	*j = (struct job){0};
	(void)snprintf(text, sizeof(text), "G=%s$ERRAND_TASK; %s", path_in(w, "", ""),
		       command);
	assert_int_equal(run_start(w->run, &spec, job_ended, j, &j->task, NULL), 0);
	if (is_filled)
		fill(w, run_uid(j->task));
	return run_uid(j->task);
}

static const char *run_limited(struct world *w, struct job *j, const char *command)
{
	const char *group = plan(w, j, command, true);

	run_flush(w->run);
	job_wait(w, j);
	return group;
}

static const char *detail_of(const struct job *j)
{
	static struct buf text = BUF_INIT(1024);

	buf_clear(&text);
	(void)bash_outcome(&j->end, &text);
	return buf_text(&text);
}

/* ---- the group ---- */

TASK_TEST(each_limit_is_set_in_the_group_that_the_task_is_put_into)
{
	const char *group;
	struct job j;

	limit_all(w, all);
	group = run_limited(w, &j, "true");
	assert_string_equal(get(w, group, "memory.max"), "67108864");
	assert_string_equal(get(w, group, "memory.oom.group"), "1\n");
	assert_string_equal(get(w, group, "memory.swap.max"), "0ax\n");
	assert_string_equal(get(w, group, "pids.max"), "50x\n");
	assert_string_equal(get(w, group, "cpu.max"), "20000 100000");
	assert_string_equal(get(w, group, "cgroup.procs"), "0");
	assert_string_equal(detail_of(&j), "exit code: 0");
}

TASK_TEST(what_is_not_limited_is_not_touched)
{
	const char *group;
	struct job j;

	limit_all(w, only_memory);
	assert_string_equal(get(w, "", "cgroup.subtree_control"), "+memory");
	group = run_limited(w, &j, "true");
	assert_string_equal(get(w, group, "memory.max"), "67108864");
	assert_string_equal(get(w, group, "pids.max"), "max\n");
	assert_string_equal(get(w, group, "cpu.max"), "max 100000\n");
}

TASK_TEST(a_kernel_without_swap_limits_memory_all_the_same)
{
	struct job j;
	const char *group;

	limit_all(w, only_memory);
	group = plan(w, &j, "true", true);
	assert_int_equal(unlink(path_in(w, group, "memory.swap.max")), 0);
	run_flush(w->run);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_EXIT);
}

TASK_TEST(a_limit_that_cannot_be_had_is_named_and_tasks_run)
{
	struct err err = {0};
	struct job j;

	assert_int_equal(limit(w, all, &err), 0);
	assert_string_equal(err.msg, "the control group cannot have controller 'cpu': "
				     "No such file or directory");
	job_run(w, &j, "true");
	assert_int_equal(j.end.cause, RUN_EXIT);
}

TASK_TEST(a_task_gets_no_descriptor_of_a_group)
{
	struct job j;

	limit_all(w, all);
	(void)run_limited(w, &j, "ls /proc/self/fd; ls -l /proc/self/fd | grep -c groups");
	assert_string_equal(job_log(&j), "0\n1\n2\n3\n0\n");
}

TASK_TEST(a_task_whose_limit_cannot_be_set_does_not_start)
{
	struct job j;

	limit_all(w, only_memory);
	(void)plan(w, &j, "true", false);
	run_flush(w->run);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_NOT_STARTED);
	assert_string_equal(j.end.why,
			    "cannot limit its memory: No such file or directory");
	assert_string_equal(only_folder(w), "");
	assert_int_equal(access(path_in(w, run_uid(j.task), ""), F_OK), -1);
}

TASK_TEST(a_task_that_its_group_does_not_take_does_not_start)
{
	const char *group;
	struct job j;

	limit_all(w, all);
	group = plan(w, &j, "echo ran", true);
	assert_int_equal(unlink(path_in(w, group, "cgroup.procs")), 0);
	assert_int_equal(symlink("/dev/full", path_in(w, group, "cgroup.procs")), 0);
	run_flush(w->run);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_NOT_STARTED);
	assert_string_equal(j.end.why, "cannot limit 'bash': No space left on device");
	assert_string_equal(job_log(&j), "");
	group = plan(w, &j, "echo ran", true);
	assert_int_equal(unlink(path_in(w, group, "cgroup.procs")), 0);
	run_flush(w->run);
	job_wait(w, &j);
	assert_string_equal(j.end.why, "cannot start a process: No such file or directory");
}

static bool is_gone(const struct world *w, const char *group)
{
	return access(path_in(w, group, ""), F_OK) < 0 && errno == ENOENT;
}

TASK_TEST(an_empty_group_goes_with_its_task)
{
	const char *group;
	struct job j;

	limit_all(w, all);
	group = run_limited(w, &j, "rm $G/*");
	wait_until(w, is_gone(w, group));
}

TASK_TEST(a_group_that_a_dead_supervisor_leaves_goes_when_that_is_found_out)
{
	const char *group;
	struct job j;

	limit_all(w, all);
	group = run_limited(w, &j, "rm $G/*; kill -9 $PPID; sleep 60");
	assert_int_equal(j.end.cause, RUN_LOST);
	assert_true(is_gone(w, group));
}

static bool is_without_shim(const struct world *w)
{
	char path[4200];
	autoclose int lock = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", only_folder(w), PROTO_LOCK);
	lock = open(path, O_RDWR | O_CLOEXEC);
	return lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) == 0;
}

TASK_TEST(a_group_that_is_left_goes_with_the_run_folder)
{
	char group[PROTO_UID_LEN + 1];
	struct job j;

	limit_all(w, all);
	(void)snprintf(group, sizeof(group), "%s", run_limited(w, &j, "rm $G/c* $G/m*"));
	wait_until(w, is_without_shim(w));
	assert_false(is_gone(w, group));
	assert_int_equal(unlink(path_in(w, group, "pids.max")), 0);
	assert_int_equal(unlink(path_in(w, group, "pids.events")), 0);
	run_drop(j.task);
	run_flush(w->run);
	assert_true(is_gone(w, group));
}

/* ---- the end ---- */

TASK_TEST(a_kill_for_the_task_s_own_memory_names_the_limit)
{
	struct job j;

	limit_all(w, all);
	(void)run_limited(w, &j,
			  OUT_OF_MEMORY "echo 'oom 3' >$G/memory.events.local; kill -9 $$");
	assert_int_equal(j.end.cause, RUN_OOM);
	assert_int_equal(j.end.memory_hit, LIMIT);
	assert_string_equal(detail_of(&j), "signal: SIGKILL, out of memory: limit 64 MiB");
}

TASK_TEST(a_kill_for_the_machine_s_memory_names_none)
{
	struct job j;

	limit_all(w, all);
	(void)run_limited(w, &j, OUT_OF_MEMORY "kill -9 $$");
	assert_int_equal(j.end.cause, RUN_OOM);
	assert_int_equal(j.end.memory_hit, 0);
	assert_string_equal(detail_of(&j), "signal: SIGKILL, out of memory");
}

TASK_TEST(another_signal_or_end_is_not_for_memory)
{
	struct job j;

	limit_all(w, all);
	(void)run_limited(w, &j, "kill -9 $$");
	assert_int_equal(j.end.cause, RUN_SIGNAL);
	assert_string_equal(detail_of(&j), "signal: SIGKILL");
	(void)run_limited(w, &j, OUT_OF_MEMORY "kill -SEGV $$");
	assert_int_equal(j.end.cause, RUN_SIGNAL);
	(void)run_limited(w, &j, OUT_OF_MEMORY "exit 3");
	assert_string_equal(detail_of(&j), "exit code: 3");
}

TASK_TEST(who_is_killed_on_request_is_not_out_of_memory)
{
	const char *group;
	struct job j;

	limit_all(w, all);
	group = plan(w, &j, OUT_OF_MEMORY "echo up; sleep 60", true);
	run_flush(w->run);
	job_says(w, &j, "up");
	assert_string_equal(get(w, group, "memory.events"), "oom_kill 1\n");
	run_kill(j.task);
	job_wait(w, &j);
	assert_string_equal(detail_of(&j), "signal: SIGTERM");
}

TASK_TEST(a_fork_that_met_the_limit_is_told)
{
	struct job j;

	limit_all(w, all);
	(void)run_limited(w, &j,
			  "echo 50 >$G/pids.max; echo max 7 >$G/pids.events; exit 3");
	assert_int_equal(j.end.processes_hit, 50);
	assert_string_equal(detail_of(&j), "exit code: 3, process limit 50 reached");
}

TEST(a_limit_is_told_in_the_unit_in_which_it_is_whole)
{
	static const struct {
		uint64_t bytes;
		const char *text;
	} rows[] = {
		{1000, "1000 bytes"},        {4096, "4 KiB"},
		{1536 << 20, "1536 MiB"},    {2ull << 30, "2 GiB"},
		{5000ull << 40, "5000 TiB"},
	};
	struct job j = {.end = {.cause = RUN_OOM, .wait_status = SIGKILL}};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		char want[128];

		j.end.memory_hit = rows[i].bytes;
		(void)snprintf(want, sizeof(want),
			       "signal: SIGKILL, out of memory: limit %s", rows[i].text);
		assert_string_equal(detail_of(&j), want);
	}
}

/* ---- where this process is ---- */

TEST(a_process_among_others_can_limit_nothing_and_is_told_why)
{
	struct err err = {0};

	assert_int_equal(run_can_limit(getpid(), &err), 0);
	assert_true(err.msg[0] != 0);
	assert_int_equal(run_can_limit(-1, &err), 0);
	assert_string_equal(err.msg, "cannot read '/proc/-1/cgroup': "
				     "No such file or directory");
}
