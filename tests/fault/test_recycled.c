/* SPDX-License-Identifier: MIT */
/*
 * In the middle of a kill a process dies, and a stranger is born with its number: in a pid
 * namespace of its own, where a number can be chosen, and with a pidfd_open() before which
 * exactly that happens (--wrap=syscall).
 *
 *	init --+-- shim -- child -- victim
 *	       `-- midwife -- the stranger, later
 */
#include <linux/sched.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "faulty.h"
#include "shim/tree.h"

/* In processes of its own a test cannot use cmocka: an exit code says where it ended. */
#define must_be(claim)                                                                     \
	do {                                                                               \
		if (!(claim))                                                              \
			_exit(100 + __LINE__ % 100);                                       \
	} while (0)

/* Below those. */
#define NO_NAMESPACES 77

static pid_t victim; /* 0: nobody is to be replaced */
static int midwife;  /* takes a number, gives a byte when somebody has it */

static void rest(void)
{
	for (;;)
		(void)pause();
}

/* ---- the moment ---- */

/* Its parent has been killed already, so it comes up to us. */
static void bury(pid_t pid)
{
	int64_t until_ms = clock_mono_ms() + PATIENCE_MS;

	must_be(kill(pid, SIGKILL) == 0);
	while (kill(pid, 0) == 0) {
		must_be(clock_mono_ms() < until_ms);
		(void)waitpid(-1, NULL, WNOHANG);
	}
}

static void replace_victim(void)
{
	char done;

	bury(victim);
	must_be(write(midwife, &victim, sizeof(victim)) == sizeof(victim));
	must_be(read(midwife, &done, 1) == 1);
	victim = 0;
}

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
long __real_syscall(long number, ...);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f);
long __wrap_syscall(long number, long a, long b, long c, long d, long e, long f)
{
	if (number == SYS_pidfd_open && victim && a == victim)
		replace_victim();
	return __real_syscall(number, a, b, c, d, e, f);
}
/* NOLINTEND(bugprone-reserved-identifier) */

/* ---- the processes ---- */

/* A stranger with the number that is asked for, until the next word; its end is the answer. */
static void be_midwife(int asks)
{
	struct clone_args args = {.exit_signal = SIGCHLD, .set_tid_size = 1};
	pid_t number;
	int status;
	char word = 0;
	long pid;

	must_be(read(asks, &number, sizeof(number)) == sizeof(number));
	args.set_tid = (uint64_t)(uintptr_t)&number;
	pid = __real_syscall(SYS_clone3, &args, sizeof(args));
	if (pid == 0)
		rest();
	must_be(pid == number);
	must_be(write(asks, &word, 1) == 1);
	must_be(read(asks, &word, 1) == 1);
	/* Dead already, it would have died of something else. */
	must_be(kill(number, SIGTERM) == 0 && waitpid(number, &status, 0) == number);
	must_be(WIFSIGNALED(status));
	_exit(WTERMSIG(status));
}

static pid_t child_with_child(void)
{
	int fds[2];
	pid_t pid;

	must_be(pipe(fds) == 0);
	pid = fork();
	must_be(pid >= 0);
	if (pid == 0) {
		pid = fork();
		if (pid > 0)
			must_be(write(fds[1], &pid, sizeof(pid)) == sizeof(pid));
		rest();
	}
	must_be(read(fds[0], &pid, sizeof(pid)) == sizeof(pid));
	return pid;
}

typedef void kill_fn(const struct tree_scope *scope);

static void be_shim(kill_fn *kill_tree)
{
	struct tree_scope everybody = {.pipe_fd = -1};

	must_be(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	victim = child_with_child();
	kill_tree(&everybody);
	must_be(victim == 0); /* it has happened */
	must_be(write(midwife, "", 1) == 1);
	_exit(0);
}

/* Returns how the stranger ended. */
static int be_init(kill_fn *kill_tree)
{
	int pair[2], status = 0;
	pid_t other, shim;

	must_be(mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	must_be(mount("proc", "/proc", "proc", 0, NULL) == 0);
	must_be(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	other = fork();
	if (other == 0)
		be_midwife(pair[0]);
	midwife = pair[1];
	shim = fork();
	if (shim == 0)
		be_shim(kill_tree);
	must_be(other > 0 && shim > 0);
	must_be(waitpid(shim, &status, 0) == shim);
	if (status != 0)
		return WEXITSTATUS(status);
	must_be(waitpid(other, &status, 0) == other);
	return WEXITSTATUS(status);
}

static int stranger_ends_by(kill_fn *kill_tree)
{
	pid_t outer = fork();
	int status;

	assert_true(outer >= 0);
	if (outer == 0) {
		/* Not only for those who are not root: the namespace's own root may choose. */
		if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) != 0)
			_exit(NO_NAMESPACES);
		outer = fork();
		if (outer == 0)
			_exit(be_init(kill_tree));
		must_be(outer > 0 && waitpid(outer, &status, 0) == outer);
		_exit(WEXITSTATUS(status));
	}
	assert_int_equal(waitpid(outer, &status, 0), outer);
	return WEXITSTATUS(status);
}

TEST(a_stranger_with_the_number_of_a_victim_is_not_killed)
{
	int end = stranger_ends_by(tree_kill);

	if (end == NO_NAMESPACES)
		skip(); /* in a chroot, or in a container as they are by default */
	assert_int_equal(end, SIGTERM);
}
