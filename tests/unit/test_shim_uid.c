/* SPDX-License-Identifier: MIT */
/*
 * Kills under a user who may not: the shim and its host are nobody in particular, and a
 * setuid program in the task is root's. Only root can build that up: without it these tests
 * are skipped, which counts as failed where CI is set.
 */
#include <sys/resource.h>

#include "asks.h"

#include "run/bash_internal.h"

/* Whoever has it: the test owns nothing else by it. */
#define NOBODY 64321

/* A folder of root's with the programs, since the build's own may be closed to others. */
static char programs[64];
static char helper[128], shim[128];

static void copy_file(const char *from, const char *to, mode_t mode)
{
	char chunk[4096];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, chunk, sizeof(chunk))) > 0)
		assert_int_equal(write(out, chunk, (size_t)n), n);
	assert_int_equal(fchmod(out, mode), 0);
	(void)close(in);
	(void)close(out);
}

static void install_programs(void)
{
	char from[4096];

	(void)snprintf(programs, sizeof(programs), "/tmp/errand-test-XXXXXX");
	assert_non_null(mkdtemp(programs));
	assert_int_equal(chmod(programs, 0711), 0);
	(void)snprintf(helper, sizeof(helper), "%s/other-user", programs);
	(void)snprintf(shim, sizeof(shim), "%s/errand-shim", programs);
	(void)snprintf(from, sizeof(from), "%s/tests/unit/other-user",
		       getenv("ERRAND_BUILD"));
	copy_file(from, helper, 04755);
	copy_file(shim_path(), shim, 0755);
}

/* The saved id stays root's, for the way back; what it starts has nothing of it. */
static void become(uid_t who)
{
	assert_int_equal(setresuid(who, who, 0), 0);
}

static void back_to_root(void)
{
	if (setresuid(0, 0, 0) == 0 && programs[0])
		(void)nftw(programs, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	programs[0] = 0;
}

static struct world *world_of_nobody(void)
{
	struct world *w;

	back_to_root();
	if (geteuid() != 0)
		skip();
	install_programs();
	w = fresh_world();
	run_free(w->run);
	(void)nftw(w->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	become(NOBODY);
	assert_int_equal(mkdir(w->folder, 0700), 0);
	assert_int_equal(run_new(w->folder, shim, &w->run, NULL), 0);
	return w;
}

#define UID_TEST(what)                                                                     \
	static void with_nobody_##what(struct world *w);                                   \
	TEST(what)                                                                         \
	{                                                                                  \
		with_nobody_##what(world_of_nobody());                                     \
		back_to_root();                                                            \
		world_close(&the_world);                                                   \
	}                                                                                  \
	static void with_nobody_##what(struct world *w)

static long shim_of(const struct world *w)
{
	struct proto_record r;

	read_status(only_folder(w), &r);
	return r.shim_pid;
}

static void as_root_send(pid_t pid, int sig)
{
	become(0);
	assert_int_equal(kill(pid, sig), 0);
	become(NOBODY);
}

static void kill_beyond_reach(struct world *w, struct job *j)
{
	job_start(w, j, helper);
	job_says(w, j, "up");
	run_kill(j->task);
	job_wait(w, j);
	assert_int_equal(j->end.cause, RUN_KILL);
	assert_int_equal(j->end.processes_left, 1);
	assert_int_equal(j->end.left_uid, 0);
	assert_true(is_alive(j->end.left_pid));
}

UID_TEST(who_has_become_root_is_named_and_the_shim_stays)
{
	struct buf detail = BUF_INIT(4096);
	char want[128];
	struct job j;

	kill_beyond_reach(w, &j);
	(void)snprintf(want, sizeof(want), "kill incomplete: 1 left (pid %d, uid 0)",
		       j.end.left_pid);
	(void)bash_outcome(&j.end, &detail);
	assert_string_equal(buf_text(&detail), want);
	buf_release(&detail);
	assert_true(is_alive(shim_of(w)));
	as_root_send(j.end.left_pid, SIGKILL);
	wait_until(w, !is_alive(shim_of(w)));
	assert_int_equal(j.ends, 1);
}

UID_TEST(the_shim_tries_again_until_it_may)
{
	struct job j;

	kill_beyond_reach(w, &j);
	as_root_send(j.end.left_pid, SIGUSR1); /* it is nobody's again */
	wait_until(w, !is_alive(j.end.left_pid));
	wait_until(w, !is_alive(shim_of(w)));
}

UID_TEST(a_sweep_says_what_it_could_not_end)
{
	char command[256];
	struct ask q;
	struct job j;

	(void)snprintf(command, sizeof(command), "%s & exit 3", helper);
	job_run(w, &j, command);
	job_says(w, &j, "up");
	expect_done(w, ask_sweep(&j, &q, false));
	assert_int_equal(q.answer.found, 1);
	assert_int_equal(q.answer.attached, 1);
	expect_done(w, ask_left(&j, &q));
	as_root_send(q.processes[0].pid, SIGKILL);
	wait_until(w, !is_alive(shim_of(w)));
}

UID_TEST(a_signal_to_another_users_process_is_refused)
{
	char command[256];
	struct ask q;
	struct job j;

	(void)snprintf(command, sizeof(command), "exec %s", helper);
	job_start(w, &j, command);
	job_says(w, &j, "up");
	expect_refused(w, ask_signal(&j, &q, SIGTERM, false),
		       "the task has become another user's: the system refuses");
	expect_done(w, ask_left(&j, &q));
	as_root_send(q.processes[0].pid, SIGTERM);
	job_wait(w, &j);
	assert_int_equal(j.end.cause, RUN_SIGNAL); /* root's, not the host's */
}
