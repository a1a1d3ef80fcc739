/* SPDX-License-Identifier: MIT */
/* start.c - the way from a fresh process to a running task. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "shim/child.h"
#include "shim/procfs.h"
#include "shim/shim.h"
#include "shim/tree.h"

/* ---- the process ---- */

/* As the kernel takes it, since libc keeps its hands on two signals: all zero is SIG_DFL
 * without flags, whatever the order of the members is. */
struct kernel_sigaction {
	unsigned long zero[4];
};

/*
 * An ignored SIGCHLD would hide every end, and a blocked SIGTERM be handed on to the task:
 * so all dispositions first. Then everything but our own faults is blocked; what matters
 * comes through the signalfd. That keeps SIGPIPE away as well.
 */
static bool own_signals(struct shim *s)
{
	static const struct kernel_sigaction dfl;
	sigset_t blocked, wanted;

	for (int sig = 1; sig < NSIG; sig++)
		(void)syscall(SYS_rt_sigaction, sig, &dfl, NULL, NSIG / 8);
	sigfillset(&blocked);
	for (const int *sig = (const int[]){SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT,
					    SIGSYS, SIGTRAP, 0};
	     *sig; sig++)
		sigdelset(&blocked, *sig);
	(void)sigprocmask(SIG_SETMASK, &blocked, NULL);
	sigemptyset(&wanted);
	sigaddset(&wanted, SIGCHLD);
	sigaddset(&wanted, SIGTERM);
	s->signal_fd = signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK);
	return s->signal_fd >= 0;
}

static bool own_descriptors(struct shim *s)
{
	(void)syscall(SYS_close_range, PROTO_FIRST_FREE_FD, ~0U, 0);
	if (fchdir(PROTO_FOLDER_FD) != 0)
		return false;
	(void)close(PROTO_FOLDER_FD); /* the current folder is enough */
	if (fcntl(PROTO_GROUPS_FD, F_SETFD, FD_CLOEXEC) == 0)
		s->groups_fd = PROTO_GROUPS_FD;
	return fcntl(PROTO_HOST_FD, F_SETFD, FD_CLOEXEC) == 0;
}

static bool own_process(struct shim *s)
{
	s->output_fd = s->report_fd = s->status_fd = s->stdin_fd = -1;
	s->groups_fd = s->group_fd = -1;
	s->timer_ms = s->deadline_ms = INT64_MAX;
	/* First of all: whatever fails from here on, the host is told. */
	for (unsigned i = 1; i < SHIM_HOSTS; i++)
		s->hosts[i].fd = -1;
	s->hosts[0].fd = PROTO_HOST_FD;
	(void)setsid(); /* fails if it is done already */
	(void)umask(077);
	return own_descriptors(s) && own_signals(s) &&
	       prctl(PR_SET_CHILD_SUBREAPER, 1) == 0;
}

/* EWOULDBLOCK: another shim is at work here, or a host that declares this folder void. */
static bool take_lock(struct shim *s)
{
	s->lock_fd = open(PROTO_LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	return s->lock_fd >= 0 && flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0;
}

/* ---- the spec ---- */

/* One mapping, so that the client's environment is gone from here when it is unmapped. */
struct text {
	char *bytes;
	size_t len;
};

static bool read_whole(int fd, struct text *t)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) != 0 || st.st_size <= 0 || (uint64_t)st.st_size > MAX_SPEC)
		return false;
	t->len = (size_t)st.st_size;
	t->bytes = mmap(NULL, t->len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			-1, 0);
	if (t->bytes == MAP_FAILED)
		return false;
	for (size_t got = 0; got < t->len; got += (size_t)n) {
		n = read(fd, t->bytes + got, t->len - got);
		if (n <= 0)
			return false;
	}
	return true;
}

static bool read_spec(struct shim *s, struct text *t)
{
	int fd = open(PROTO_SPEC, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	bool is_read;

	if (fd < 0)
		return false;
	is_read = read_whole(fd, t) && proto_get_spec(t->bytes, t->len, &s->spec) == 0;
	(void)close(fd);
	(void)unlink(PROTO_SPEC);
	if (!is_read)
		errno = EINVAL;
	return is_read;
}

/* The names are for the text of a failure. */
static void forget_spec(struct shim *s, struct text *t)
{
	(void)snprintf(s->names.cwd, sizeof(s->names.cwd), "%s", s->spec.cwd);
	(void)snprintf(s->names.program, sizeof(s->names.program), "%s", s->spec.argv[0]);
	mem_free(NULL, s->spec.argv);
	s->spec.argv = s->spec.env = NULL;
	s->spec.cwd = NULL;
	(void)munmap(t->bytes, t->len);
}

/* ---- the folder ---- */

/* /proc shows when a process was born in these. */
static uint64_t boot_ticks(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_BOOTTIME, &t);
	return (uint64_t)t.tv_sec * 100 + (uint64_t)t.tv_nsec / 10000000;
}

/* Hosts that come later connect here. Without it (a sandbox may forbid it) the inherited
 * socket and the files are left. The relative name has no trouble with a long path. */
static void open_door(struct shim *s)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX, .sun_path = PROTO_SOCK};

	s->listen_fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (s->listen_fd < 0)
		return;
	/* Before it has a name, so that no umask can add to it. */
	if (fchmod(s->listen_fd, 0600) != 0 ||
	    bind(s->listen_fd, (const struct sockaddr *)&name, sizeof(name)) != 0 ||
	    listen(s->listen_fd, SHIM_HOSTS) != 0 ||
	    shim_watch_door(s, EPOLL_CTL_ADD) != 0) {
		(void)close(s->listen_fd);
		s->listen_fd = -1;
	}
}

static bool open_loop(struct shim *s)
{
	s->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	return s->epoll_fd >= 0 &&
	       shim_watch(s, s->signal_fd, EPOLLIN, SOURCE_SIGNAL, 0) == 0;
}

/* ---- the task ---- */

/*
 * The kernel stamps a process with the time of its fork. If the clock showed the same tick
 * before and after, that is the one; else the file tells.
 */
static uint64_t ticks_of(pid_t pid, uint64_t before, uint64_t after)
{
	struct procfs_stat st;

	if (before == after || !procfs_stat(pid, &st))
		return after;
	return st.ticks;
}

static void close_if(int fd)
{
	if (fd >= 0)
		(void)close(fd);
}

static bool fork_task(struct shim *s)
{
	uint64_t before = boot_ticks();
	int fds[2], input_fd, group_fd;
	pid_t pid;

	if (!shim_group_open(s, &group_fd) || !shim_input_open(s, &input_fd) ||
	    pipe2(fds, O_CLOEXEC) != 0)
		return false;
	(void)fcntl(fds[0], F_SETFL, O_NONBLOCK);
	s->output_fd = fds[0];
	if (shim_watch(s, fds[0], EPOLLIN, SOURCE_OUTPUT, 0) != 0)
		return false;
	s->started_mono_ms = clock_mono_ms();
	s->record.started_ms = clock_wall_ms();
	pid = child_start(&s->spec, &(struct child_fds){input_fd, fds[1], group_fd},
			  &s->report_fd);
	(void)close(fds[1]);
	close_if(input_fd);
	close_if(group_fd);
	if (pid < 0)
		return false;
	s->record.pid = pid;
	s->record.state = PROTO_RUNNING;
	s->record.ticks = ticks_of(pid, before, boot_ticks());
	if (s->spec.deadline_ms)
		s->deadline_ms = s->started_mono_ms + s->spec.deadline_ms;
	return true;
}

/* The task ends before it began; that is an end like others, but for the record: without
 * lock or status there is none, and only the host that listens knows. */
static bool fail(struct shim *s, const char *what)
{
	(void)snprintf(s->record.why, sizeof(s->record.why), "%s: %s", what,
		       strerror(errno));
	s->record.cause = PROTO_CAUSE_NOT_STARTED;
	s->record.started_ms = clock_wall_ms();
	s->started_mono_ms = clock_mono_ms();
	shim_announce(s);
	return false;
}

/* Nobody will read the spec any more, and it holds the client's environment. */
static bool fail_unlocked(struct shim *s)
{
	int errnum = errno;

	if (errnum == EWOULDBLOCK)
		return false;
	(void)unlink(PROTO_SPEC);
	errno = errnum;
	return fail(s, "cannot take the lock of the run folder");
}

bool shim_start(struct shim *s)
{
	struct text spec;

	if (!own_process(s))
		return fail(s, "cannot set up the supervisor");
	if (!take_lock(s))
		return fail_unlocked(s);
	s->record.shim_pid = getpid();
	s->record.shim_ticks = boot_ticks();
	s->record.state = PROTO_STARTING;
	if (!read_spec(s, &spec))
		return fail(s, "cannot read the spec");
	memcpy(s->record.boot_id, s->spec.boot_id, sizeof(s->record.boot_id));
	s->record.deadline_ms = s->spec.deadline_ms;
	switch (shim_record_open(s)) {
	case 0:
		break;
	case -ERR_STATE:
		return false;
	default:
		return fail(s, "cannot write the status");
	}
	tree_open();
	if (!open_loop(s) || !fork_task(s))
		return fail(s, "cannot start a process");
	/* What follows cannot fail the task any more, so the task need not wait for it. */
	forget_spec(s, &spec);
	log_open(&s->log, s->spec.log_head, s->spec.log_tail);
	open_door(s);
	(void)shim_record_write(s);
	shim_hosts_init(s);
	return true;
}

void shim_leave(struct shim *s)
{
	char folder[3 + PROTO_UID_LEN + 1];

	(void)unlink(PROTO_SOCK);
	shim_group_remove(s);
	if (!s->is_discarded)
		return;
	log_remove(&s->log);
	(void)unlink(PROTO_STATUS);
	(void)unlink(PROTO_LOCK);
	(void)snprintf(folder, sizeof(folder), "../%s", s->spec.uid);
	(void)rmdir(folder);
}
