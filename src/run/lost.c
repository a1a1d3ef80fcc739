/* SPDX-License-Identifier: MIT */
/*
 * lost.c - a shim has fallen silent: did it end its task, does it live, or is it dead?
 *
 * Its socket has ended, or was never there. If it listens, it lives. Else a record of the
 * end in `status` is the truth. Without one, the lock decides: held, the shim is on its way
 * into this world or out of it (its descriptors close one by one), so look again; free,
 * nobody will ever write that record. Then the folder is declared void, so that a shim that
 * comes late starts nothing, and what a dead one left is swept. If there is no way to that
 * lock, time decides.
 */
#include <errno.h>
#include <fcntl.h>
#include <dirent.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "run/internal.h"

#define LOOK_MS 1
#define LOOK_MAX_MS 500
/* The killed need a moment to go; what forks faster than this is not stopped by it. */
#define SWEEP_PAUSE_MS 10
#define SWEEP_ROUNDS 100
/* How long a folder may be closed to us before its task is given up. */
#define GIVE_UP_MS 2000

/* ---- what is left of the tree ---- */

static ssize_t read_proc(pid_t pid, const char *file, char *text, size_t size)
{
	char path[64];
	autoclose int fd = -1;
	size_t len = 0;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, file);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -1;
	while (len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	text[len] = 0;
	return (ssize_t)len;
}

/*
 * Field 22; 0 for a process that is gone, or dead and unburied. The state is the first
 * thread's: field 20 tells of others that go on.
 */
static uint64_t living_since(pid_t pid)
{
	char line[1024], *at;
	bool is_dead;

	if (read_proc(pid, "stat", line, sizeof(line)) <= 0)
		return 0;
	at = strrchr(line, ')');
	if (!at || at[1] != ' ')
		return 0;
	is_dead = at[2] == 'Z' || at[2] == 'X';
	for (int field = 2; at && field < 20; field++)
		at = strchr(at + 1, ' ');
	if (!at || (strtoull(at, &at, 10) <= 1 && is_dead))
		return 0;
	at = strchr(at + 1, ' ');
	return at ? strtoull(at, NULL, 10) : 0;
}

/* That of the first thread that has not ended; all share it. */
static ssize_t read_environ(pid_t pid, char *text, size_t size)
{
	ssize_t len = read_proc(pid, "environ", text, size);
	const struct dirent *e;
	char path[64];
	DIR *dir;

	if (len > 0)
		return len;
	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && len <= 0 && (e = readdir(dir))) {
		(void)snprintf(path, sizeof(path), "task/%.20s/environ", e->d_name);
		if (e->d_name[0] != '.')
			len = read_proc(pid, path, text, size);
	}
	if (dir)
		(void)closedir(dir);
	return len;
}

static bool has_variable(pid_t pid, const char *variable, char *scratch, size_t size)
{
	ssize_t len = read_environ(pid, scratch, size);
	size_t want = strlen(variable) + 1;
	const char *hit;

	if (len <= 0)
		return false;
	hit = memmem(scratch, (size_t)len + 1, variable, want);
	return hit && (hit == scratch || hit[-1] == 0);
}

/* The pidfd comes first: it pins the process that is looked at afterwards. */
static bool kill_if_ours(pid_t pid, uint64_t ticks, const char *variable, char *scratch,
			 size_t size)
{
	autoclose int fd = -1;
	uint64_t since = living_since(pid);

	if (since == 0 || since < ticks)
		return false;
	fd = (int)syscall(SYS_pidfd_open, pid, 0);
	return fd >= 0 && has_variable(pid, variable, scratch, size) &&
	       syscall(SYS_pidfd_send_signal, fd, SIGKILL, NULL, 0) == 0;
}

/* Who had the number at that time, and was there before, is the same one. */
static void signal_if_born_by(pid_t pid, uint64_t ticks, int sig)
{
	autoclose int fd = (int)syscall(SYS_pidfd_open, pid, 0);
	uint64_t since = living_since(pid);

	if (fd >= 0 && since != 0 && since <= ticks)
		(void)syscall(SYS_pidfd_send_signal, fd, sig, NULL, 0);
}

bool run_read_status(const struct run_task *t, struct proto_record *ret)
{
	char path[PROTO_UID_LEN + 16];
	autoclose int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", t->uid, PROTO_STATUS);
	fd = openat(t->run->tasks_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	return fd >= 0 && proto_read_status(fd, ret) == 0;
}

/* One that was stopped before its hello may still have left a record. */
void run_signal_shim(const struct run_task *t, int sig)
{
	struct proto_record record;

	if (t->shim_pid > 0)
		signal_if_born_by(t->shim_pid, t->shim_ticks, sig);
	else if (run_read_status(t, &record) && record.shim_pid > 0)
		signal_if_born_by(record.shim_pid, record.shim_ticks, sig);
}

unsigned run_lost_sweep(const char *uid, uint64_t ticks, int32_t *ret_pid)
{
	char variable[16 + PROTO_UID_LEN];
	autobuf struct buf scratch = BUF_INIT(MAX_SPEC);
	const struct dirent *e;
	unsigned count = 0;
	DIR *dir = opendir("/proc");

	if (!dir || buf_reserve(&scratch, MAX_SPEC) != 0) {
		if (dir)
			(void)closedir(dir);
		return 0;
	}
	(void)snprintf(variable, sizeof(variable), "ERRAND_TASK=%s", uid);
	while ((e = readdir(dir))) {
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);

		if (pid > 0 && pid != getpid() &&
		    kill_if_ours(pid, ticks, variable, scratch.data, MAX_SPEC)) {
			count++;
			*ret_pid = (int32_t)pid;
		}
	}
	(void)closedir(dir);
	return count;
}

/* ---- what happened ---- */

/* For a look, what is there already can also be had where nothing may be written. */
static bool open_file(struct run_task *t, const char *name, int *ret_fd)
{
	char path[PROTO_UID_LEN + 16];
	int errnum;

	(void)snprintf(path, sizeof(path), "%s/%s", t->uid, name);
	*ret_fd = openat(t->run->tasks_fd, path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
			 0600);
	if (*ret_fd >= 0)
		return true;
	errnum = errno;
	*ret_fd = openat(t->run->tasks_fd, path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	t->shut_name = name;
	t->shut_errno = errnum;
	return *ret_fd >= 0;
}

static bool settle_from_status(struct run_task *t, int fd)
{
	if (proto_read_status(fd, &t->last) != 0 || t->last.state != PROTO_ENDED)
		return false;
	run_settle_record(t, &t->last);
	return true;
}

static void settle_lost(struct run_task *t, const char *why)
{
	struct run_end end = {
		.cause = RUN_LOST,
		.started_ms = t->last.started_ms,
		.never_ran = t->last.shim_pid == 0,
	};

	(void)snprintf(end.why, sizeof(end.why), "%s", why);
	end.ended_ms = clock_wall_ms();
	end.bytes_seen = run_log_end(t);
	run_remove_group(t->run, t->uid);
	run_settle(t, &end);
}

static void look_later(struct run_task *t, int64_t mono_ms)
{
	if (t->pause_ms < LOOK_MS)
		t->pause_ms = LOOK_MS;
	t->retry_ms = mono_ms + t->pause_ms;
	t->pause_ms = t->pause_ms * 2 < LOOK_MAX_MS ? t->pause_ms * 2 : LOOK_MAX_MS;
}

/* Another boot than the host's: there is nobody left, whoever has these numbers now. */
static bool is_of_another_boot(const struct run_task *t)
{
	static const uint8_t unknown[16];

	return memcmp(t->last.boot_id, t->run->boot_id, sizeof(unknown)) != 0 &&
	       memcmp(t->last.boot_id, unknown, sizeof(unknown)) != 0 &&
	       memcmp(t->run->boot_id, unknown, sizeof(unknown)) != 0;
}

static void settle_swept(struct run_task *t)
{
	char why[128] = "the supervisor was killed";

	if (t->is_given_up)
		(void)snprintf(why, sizeof(why),
			       "no supervisor, and '%s' cannot be had: %s", t->shut_name,
			       strerror(t->shut_errno));
	settle_lost(t, why);
}

/* Once more until a round finds nobody. */
static void sweep(struct run_task *t, int64_t mono_ms)
{
	int32_t pid = 0;

	if (run_lost_sweep(t->uid, t->last.shim_ticks, &pid) == 0 ||
	    ++t->rounds > SWEEP_ROUNDS) {
		settle_swept(t);
		return;
	}
	t->retry_ms = mono_ms + SWEEP_PAUSE_MS;
}

/* A shim that comes late starts nothing. */
static void remove_spec(const struct run_task *t)
{
	char spec[PROTO_UID_LEN + 16];

	(void)snprintf(spec, sizeof(spec), "%s/%s", t->uid, PROTO_SPEC);
	(void)unlinkat(t->run->tasks_fd, spec, 0);
}

/* A shim writes a record before it forks: none, and nothing was ever run. */
static void declare_void(struct run_task *t, int status, int64_t mono_ms)
{
	bool was_begun = t->last.shim_pid != 0, is_old = is_of_another_boot(t);

	t->last.state = PROTO_VOID;
	if (proto_write_status(status, &t->last) == 0)
		(void)fdatasync(status);
	remove_spec(t);
	if (!was_begun) {
		settle_lost(t, "it never ran");
	} else if (is_old) {
		settle_lost(t, "the machine restarted");
	} else {
		t->rounds = 1;
		sweep(t, mono_ms);
	}
}

/* This process' own need says nothing about a shim, and it passes. */
static bool is_own_need(int errnum)
{
	return errnum == EMFILE || errnum == ENFILE || errnum == ENOMEM;
}

/*
 * A shim that has the lock could have opened it, and nobody listens: after some time, or
 * when the end is wanted anyway, that is proof enough.
 */
static void look_was_refused(struct run_task *t, int64_t mono_ms)
{
	if (t->shut_errno == ENOENT) {
		settle_lost(t, "the run folder is gone");
		return;
	}
	if (t->give_up_ms == 0)
		t->give_up_ms = mono_ms + GIVE_UP_MS;
	if (is_own_need(t->shut_errno) || (!t->is_kill_asked && mono_ms < t->give_up_ms)) {
		look_later(t, mono_ms);
		return;
	}
	t->is_given_up = true;
	remove_spec(t);
	t->rounds = 1;
	sweep(t, mono_ms);
}

/* 1: the lock is ours, 0: it is held, -1: nobody can tell. */
static int take_lock(struct run_task *t, int lock)
{
	if (flock(lock, LOCK_EX | LOCK_NB) == 0)
		return 1;
	t->shut_name = PROTO_LOCK;
	t->shut_errno = errno;
	return errno == EWOULDBLOCK ? 0 : -1;
}

static void find_out(struct run_task *t, int64_t mono_ms)
{
	autoclose int lock = -1, status = -1;
	int is_ours = -1;

	if (run_connect(t))
		return;
	if (open_file(t, PROTO_LOCK, &lock) && open_file(t, PROTO_STATUS, &status))
		is_ours = take_lock(t, lock);
	if (is_ours < 0) {
		look_was_refused(t, mono_ms);
		return;
	}
	t->give_up_ms = 0;
	if (!is_ours) {
		look_later(t, mono_ms);
		return;
	}
	/* It may have written just before it let go of the lock. */
	if (settle_from_status(t, status))
		return;
	declare_void(t, status, mono_ms);
}

void run_lost_begin(struct run_task *t)
{
	/* Taken in and shown out again: it has as many hosts as it can bear. */
	if (t->is_tried)
		look_later(t, clock_mono_ms());
	else
		find_out(t, clock_mono_ms());
}

void run_lost_look(struct run_task *t, int64_t mono_ms)
{
	if (t->rounds)
		sweep(t, mono_ms);
	else
		find_out(t, mono_ms);
}
