/* SPDX-License-Identifier: MIT */
/*
 * faults.c - a system in which something goes wrong, for errand-shim-faults and for hosts.
 *
 * The linker sends the system calls through here (--wrap), so nothing of this is in the
 * program itself. ERRAND_FAULT in its environment, or faults_begin(), says what is to happen:
 *
 *	fail CALL N ERRNO     the N-th call of CALL fails, as the shim or its child counts
 *	kill N                SIGKILL to the shim in front of its N-th call of any kind
 *	kill-child N          the same in the process that becomes the task
 *	no-children           /proc has no lists of children
 *	no-proc               there is no /proc
 *	no-kill               nobody may be signalled
 *
 * If it has happened, the file that ERRAND_FAULT_MARK names is there. What changes a run folder
 * is noted, if somebody records (recorder.h).
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include <spawn.h>

#include "faults.h"
#include "recorder.h"

static struct {
	bool is_read;
	pid_t shim;
	char what[32], call[32];
	long n, errnum;
	const char *mark;
	bool is_child;
	long steps, matching; /* each process counts for itself */
} fault;

void faults_begin(const char *text)
{
	memset(&fault, 0, sizeof(fault));
	fault.is_read = true;
	fault.shim = getpid();
	fault.mark = getenv("ERRAND_FAULT_MARK");
	if (!text)
		return;
	if (sscanf(text, "fail %31s %ld %ld", fault.call, &fault.n, &fault.errnum) == 3)
		memcpy(fault.what, "fail", 5);
	else
		(void)sscanf(text, "%31s %ld", fault.what, &fault.n);
}

static bool is(const char *what)
{
	return strcmp(fault.what, what) == 0;
}

/* Past all wrappers. */
static void leave_mark(void)
{
	long fd;

	if (!fault.mark)
		return;
	fd = syscall(SYS_openat, AT_FDCWD, fault.mark, O_CREAT | O_WRONLY | O_CLOEXEC,
		     0600);
	if (fd >= 0)
		(void)syscall(SYS_close, fd);
}

long __real_syscall(long number, ...);

/* In front of each call. True: it is to fail, and errno says how. */
static bool step(const char *call)
{
	if (!fault.is_read)
		faults_begin(getenv("ERRAND_FAULT"));
	if (!fault.is_child && getpid() != fault.shim) {
		fault.is_child = true;
		fault.steps = 0;
	}
	fault.steps++;
	if (is(fault.is_child ? "kill-child" : "kill") && fault.steps == fault.n) {
		leave_mark();
		(void)__real_syscall(SYS_kill, getpid(), SIGKILL);
	}
	if (!is("fail") || strcmp(call, fault.call) != 0 || ++fault.matching != fault.n)
		return false;
	leave_mark();
	errno = (int)fault.errnum;
	return true;
}

static bool is_hidden(const char *path)
{
	size_t len = strlen(path);

	if (strncmp(path, "/proc", 5) != 0)
		return false;
	return is("no-proc") ||
	       (is("no-children") && len > 9 && strcmp(path + len - 9, "/children") == 0);
}

/* ---- the calls ---- */

#define WRAP(type, name, params, args)                                                     \
	type __real_##name params;                                                         \
	type __wrap_##name params;                                                         \
	type __wrap_##name params                                                          \
	{                                                                                  \
		return step(#name) ? (type)-1 : __real_##name args;                        \
	}

/* The same, with @noted for what has been done; its result is in rc. */
#define WRAP_NOTED(type, name, params, args, noted)                                        \
	type __real_##name params;                                                         \
	type __wrap_##name params;                                                         \
	type __wrap_##name params                                                          \
	{                                                                                  \
		type rc = step(#name) ? (type)-1 : __real_##name args;                     \
		int errnum = errno;                                                        \
		if (rc >= 0)                                                               \
			noted;                                                             \
		errno = errnum;                                                            \
		return rc;                                                                 \
	}

/* NOLINTBEGIN(bugprone-reserved-identifier): the linker's names */
WRAP(ssize_t, read, (int fd, void *buf, size_t n), (fd, buf, n))
WRAP_NOTED(ssize_t, write, (int fd, const void *buf, size_t n), (fd, buf, n),
	   recorder_note_fd(CHANGE_APPEND, fd, buf, (size_t)rc, 0))
WRAP_NOTED(ssize_t, pwrite64, (int fd, const void *buf, size_t n, off_t at),
	   (fd, buf, n, at),
	   recorder_note_fd(CHANGE_PUT, fd, buf, (size_t)rc, (uint64_t)at))
WRAP(ssize_t, pread64, (int fd, void *buf, size_t n, off_t at), (fd, buf, n, at))
WRAP(int, fdatasync, (int fd), (fd))
WRAP_NOTED(int, unlink, (const char *path), (path), recorder_note(CHANGE_UNLINK, path))
WRAP_NOTED(int, rmdir, (const char *path), (path), recorder_note(CHANGE_RMDIR, path))
WRAP(int, chdir, (const char *path), (path))
WRAP(int, fchdir, (int fd), (fd))
WRAP(int, dup2, (int a, int b), (a, b))
WRAP(int, pipe2, (int fds[2], int flags), (fds, flags))
WRAP(pid_t, fork, (void), ())
WRAP(int, flock, (int fd, int what), (fd, what))
WRAP(int, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags))
WRAP(int, epoll_create1, (int flags), (flags))
WRAP(int, epoll_ctl, (int e, int op, int fd, struct epoll_event *ev), (e, op, fd, ev))
WRAP(int, socket, (int a, int b, int c), (a, b, c))
WRAP_NOTED(int, bind, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n),
	   recorder_note(CHANGE_BIND, a->sa_data))
WRAP(int, listen, (int fd, int n), (fd, n))
WRAP(ssize_t, send, (int fd, const void *b, size_t n, int flags), (fd, b, n, flags))
WRAP(ssize_t, recv, (int fd, void *b, size_t n, int flags), (fd, b, n, flags))
WRAP(int, execvp, (const char *file, char *const argv[]), (file, argv))
WRAP(int, connect, (int fd, const struct sockaddr *a, socklen_t n), (fd, a, n))
WRAP(int, socketpair, (int a, int b, int c, int fds[2]), (a, b, c, fds))
WRAP_NOTED(int, mkdirat, (int fd, const char *path, mode_t mode), (fd, path, mode),
	   recorder_note(CHANGE_MKDIR, path))
WRAP_NOTED(int, unlinkat, (int fd, const char *path, int flags), (fd, path, flags),
	   recorder_note(flags &AT_REMOVEDIR ? CHANGE_RMDIR : CHANGE_UNLINK, path))
WRAP(int, posix_spawn,
     (pid_t * pid, const char *path, const posix_spawn_file_actions_t *fds,
      const posix_spawnattr_t *attr, char *const argv[], char *const env[]),
     (pid, path, fds, attr, argv, env))
WRAP(void *, mmap64, (void *p, size_t n, int prot, int flags, int fd, off_t at),
     (p, n, prot, flags, fd, at))

static int created(int fd, int flags)
{
	int errnum = errno;

	if (fd >= 0 && flags & O_CREAT)
		recorder_note_fd(CHANGE_CREATE, fd, NULL, 0, 0);
	errno = errnum;
	return fd;
}

int __real_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...);
int __wrap_open64(const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, int) : 0;
	va_end(ap);
	if (step("open64"))
		return -1;
	if (is_hidden(path)) {
		errno = ENOENT;
		return -1;
	}
	return created(__real_open64(path, flags, mode), flags);
}

int __real_openat64(int fd, const char *path, int flags, ...);
int __wrap_openat64(int fd, const char *path, int flags, ...);
int __wrap_openat64(int fd, const char *path, int flags, ...)
{
	va_list ap;
	int mode;

	va_start(ap, flags);
	mode = flags & O_CREAT ? va_arg(ap, int) : 0;
	va_end(ap);
	if (step("openat64"))
		return -1;
	return created(__real_openat64(fd, path, flags, mode), flags);
}

int __real_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig);
int __wrap_kill(pid_t pid, int sig)
{
	if (step("kill"))
		return -1;
	if (is("no-kill")) {
		errno = EPERM;
		return -1;
	}
	return __real_kill(pid, sig);
}

/* Six words are what a call can take at most; those that were not passed are not looked at. */
long __wrap_syscall(long number, ...);
long __wrap_syscall(long number, ...)
{
	long a[6];
	va_list ap;

	va_start(ap, number);
	for (int i = 0; i < 6; i++)
		a[i] = va_arg(ap, long);
	va_end(ap);
	if (step("syscall"))
		return -1;
	if (is("no-kill") && number == SYS_pidfd_send_signal) {
		errno = EPERM;
		return -1;
	}
	return __real_syscall(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
/* NOLINTEND(bugprone-reserved-identifier) */
