/* SPDX-License-Identifier: MIT */
/*
 * group.c - the limits of each task, held by the kernel's control groups (version 2).
 *
 *	<delegated to us>	cgroup.subtree_control: memory pids cpu
 *	|-- errand-host		this process, and the shims: a group with controllers for
 *	|			those below it may have no process itself
 *	`-- <uid>		a task: memory.max, pids.max, cpu.max
 *
 * The process moves only where it is alone: the group of a terminal has the user's shell in it.
 * The shim puts the task into its group, and removes that at the end; what a dead shim leaves
 * goes with the run folder, or with the unit.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "run/internal.h"

#define HOST_GROUP "errand-host"
#define MAX_TEXT 4096
/* Of time, in microseconds, in which a task has its share. */
#define CPU_PERIOD 100000

static const char *const controllers[RUN_LIMITS] = {
	[RUN_MEMORY] = "memory",
	[RUN_PROCESSES] = "pids",
	[RUN_CPU] = "cpu",
};

static bool read_at(int folder, const char *file, char text[MAX_TEXT])
{
	autoclose int fd = openat(folder, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, MAX_TEXT - 1);

	text[n > 0 ? n : 0] = 0;
	return n >= 0;
}

static bool write_at(int folder, const char *file, const char *text)
{
	autoclose int fd = openat(folder, file, O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
}

static bool has_word(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = text; (at = strstr(at, word)); at += len)
		if ((at == text || at[-1] == ' ') && strchr(" \n", at[len]))
			return true;
	return false;
}

/* ---- where a process is ---- */

/* The line of version 2 is "0::<path>". */
static int read_path(pid_t pid, char path[MAX_TEXT], struct err *err)
{
	char file[64], text[MAX_TEXT];
	const char *at;

	(void)snprintf(file, sizeof(file), "/proc/%d/cgroup", (int)pid);
	if (!read_at(AT_FDCWD, file, text))
		return err_sys(err, errno, "cannot read '%s'", file);
	at = strncmp(text, "0::/", 4) == 0 ? text + 3 : strstr(text, "\n0::/");
	if (!at)
		return err_set(err, ERR_STATE, "the kernel has no control groups here");
	at = strchr(at, '/');
	(void)snprintf(path, MAX_TEXT, "%.*s", (int)strcspn(at, "\n"), at);
	return 0;
}

/* Alone, or beside those of version 1. */
static int open_mount(struct err *err)
{
	static const char *const places[] = {"/sys/fs/cgroup", "/sys/fs/cgroup/unified"};
	struct statfs fs;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (statfs(places[i], &fs) == 0 && fs.f_type == CGROUP2_SUPER_MAGIC)
			return open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return err_set(err, ERR_STATE, "no control groups of version 2 are mounted");
}

static bool is_host_group(const char *path)
{
	const char *name = strrchr(path, '/');

	return strcmp(name + 1, HOST_GROUP) == 0;
}

/* Where the groups of its tasks are, or are to be: beside it once it has moved, else below. */
static int open_groups(const char *path, struct err *err)
{
	autoclose int mount = open_mount(err);
	char folder[MAX_TEXT + 8];
	int fd;

	if (mount < 0)
		return -ERR_STATE;
	(void)snprintf(folder, sizeof(folder), ".%s%s", path,
		       is_host_group(path) ? "/.." : "");
	fd = openat(mount, folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	return fd < 0 ? err_sys(err, errno, "cannot open the control group '%.120s'", path)
		      : fd;
}

/* ---- this process ---- */

static bool is_alone(int group)
{
	char text[MAX_TEXT], own[32];

	(void)snprintf(own, sizeof(own), "%d\n", (int)getpid());
	return read_at(group, "cgroup.procs", text) && strcmp(text, own) == 0;
}

/* systemd marks what it has delegated; it may undo what is done in another unit of its. */
static bool is_systemds(int group, const char *path)
{
	const char *kind = strrchr(path, '.');
	char mark;

	return kind &&
	       (strcmp(kind, ".service") == 0 || strcmp(kind, ".scope") == 0 ||
		strcmp(kind, ".slice") == 0) &&
	       (fgetxattr(group, "user.delegate", &mark, 1) != 1 || mark != '1');
}

static int move(int group, const char *path, struct err *err)
{
	if (is_systemds(group, path))
		return err_set(err, ERR_STATE,
			       "systemd has not delegated the control group '%.120s'",
			       path);
	if (!is_alone(group))
		return err_set(err, ERR_STATE,
			       "others are in the control group '%.120s', too", path);
	if ((mkdirat(group, HOST_GROUP, 0755) < 0 && errno != EEXIST) ||
	    !write_at(group, HOST_GROUP "/cgroup.procs", "0"))
		return err_sys(err, errno, "the control group '%.120s' is not ours", path);
	return 0;
}

unsigned run_limit_in(struct run *r, int groups, const int64_t limits[RUN_LIMITS],
		      struct err *err)
{
	unsigned held = 0;
	char word[16];

	for (int i = 0; i < RUN_LIMITS; i++) {
		if (limits[i] == 0)
			continue;
		(void)snprintf(word, sizeof(word), "+%s", controllers[i]);
		if (write_at(groups, "cgroup.subtree_control", word)) {
			held |= 1u << i;
			r->limits[i] = limits[i];
		} else {
			(void)err_sys(err, errno,
				      "the control group cannot have controller '%s'",
				      controllers[i]);
		}
	}
	if (held)
		r->groups_fd = run_lift(groups);
	else
		(void)close(groups);
	return held;
}

unsigned run_limit(struct run *r, const int64_t limits[RUN_LIMITS], struct err *err)
{
	char path[MAX_TEXT];
	autoclose int groups = -1;

	if (read_path(getpid(), path, err) < 0)
		return 0;
	groups = open_groups(path, err);
	if (groups < 0 || (!is_host_group(path) && move(groups, path, err) < 0))
		return 0;
	return run_limit_in(r, take_fd(&groups), limits, err);
}

unsigned run_can_limit(pid_t pid, struct err *err)
{
	char path[MAX_TEXT], text[MAX_TEXT];
	autoclose int groups = -1;
	unsigned can = 0;

	if (read_path(pid, path, err) < 0)
		return 0;
	groups = open_groups(path, err);
	if (groups < 0)
		return 0;
	if (!is_host_group(path)) {
		(void)err_set(err, ERR_STATE, "it has not made '%.120s' its own", path);
		return 0;
	}
	(void)err_set(err, ERR_STATE, "its control group lacks a controller");
	if (!read_at(groups, "cgroup.subtree_control", text))
		return 0;
	for (int i = 0; i < RUN_LIMITS; i++)
		can |= has_word(text, controllers[i]) ? 1u << i : 0;
	return can;
}

/* ---- a task ---- */

static bool set_memory(int group, int64_t bytes)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRId64, bytes);
	/* All of it ends, not the half; and swap is no way around it: a kernel without that has
	 * no such file. */
	return write_at(group, "memory.max", text) &&
	       write_at(group, "memory.oom.group", "1") &&
	       (write_at(group, "memory.swap.max", "0") || errno == ENOENT);
}

static bool set_processes(int group, int64_t n)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%" PRId64, n);
	return write_at(group, "pids.max", text);
}

static bool set_cpu(int group, int64_t percent)
{
	char text[64];

	(void)snprintf(text, sizeof(text), "%" PRId64 " %d", percent * CPU_PERIOD / 100,
		       CPU_PERIOD);
	return write_at(group, "cpu.max", text);
}

int run_make_group(const struct run *r, const char *uid, struct err *err)
{
	static bool (*const set[RUN_LIMITS])(int, int64_t) = {
		[RUN_MEMORY] = set_memory,
		[RUN_PROCESSES] = set_processes,
		[RUN_CPU] = set_cpu,
	};
	autoclose int group = -1;

	if (r->groups_fd < 0)
		return 0;
	/* One that is there is ours: the name is random. */
	if (mkdirat(r->groups_fd, uid, 0755) < 0 && errno != EEXIST)
		return err_sys(err, errno, "cannot make a control group for its limits");
	group = openat(r->groups_fd, uid, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	for (int i = 0; i < RUN_LIMITS; i++)
		if (r->limits[i] && !set[i](group, r->limits[i]))
			return err_sys(err, errno, "cannot limit its %s", controllers[i]);
	return 0;
}

void run_remove_group(const struct run *r, const char *uid)
{
	if (r->groups_fd >= 0)
		(void)unlinkat(r->groups_fd, uid, AT_REMOVEDIR);
}
