/* SPDX-License-Identifier: MIT */
#include "shim/tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* More than this in one walk are met in the rounds that follow it. */
#define TREE_MAX 8192

struct process {
	pid_t pid, parent;
};

/* In the order of a walk in breadth: a parent stands before its children. */
static struct process found[TREE_MAX];
static size_t n_found;

/* What /proc/<pid>/stat tells. */
struct stat_line {
	char state;
	pid_t parent, session;
};

/* ---- reading /proc ---- */

static ssize_t read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, buf, size - 1);
	(void)close(fd);
	if (n >= 0)
		buf[n] = 0;
	return n;
}

/* The name in the second field may hold anything: the last ')' ends it. */
static bool read_stat(pid_t pid, struct stat_line *ret)
{
	char path[64], buf[512], *at, *end;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_file(path, buf, sizeof(buf)) <= 0)
		return false;
	at = strrchr(buf, ')');
	if (!at || at[1] != ' ' || !at[2])
		return false;
	ret->state = at[2];
	ret->parent = (pid_t)strtol(at + 3, &end, 10);
	(void)strtol(end, &end, 10); /* group */
	ret->session = (pid_t)strtol(end, NULL, 10);
	return true;
}

static void add(pid_t pid, pid_t parent)
{
	if (n_found < TREE_MAX)
		found[n_found++] = (struct process){pid, parent};
}

/* Add the numbers of a `children` file, which is read in pieces. */
static void add_children_of_thread(pid_t pid, const char *thread)
{
	char path[96], buf[4096];
	pid_t number = 0;
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid, thread);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return;
	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] >= '0' && buf[i] <= '9') {
				number = number * 10 + (buf[i] - '0');
			} else if (number) {
				add(number, pid);
				number = 0;
			}
		}
	}
	(void)close(fd);
}

/* As getdents64 fills it in; opendir() would allocate. */
struct entry {
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};

static void add_children(pid_t pid)
{
	_Alignas(struct entry) char buf[2048];
	char path[64];
	long n;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return;
	while ((n = syscall(SYS_getdents64, fd, buf, sizeof(buf))) > 0) {
		for (long at = 0; at < n;) {
			const struct entry *e =
				(const struct entry *)(const void *)(buf + at);

			if (e->name[0] != '.')
				add_children_of_thread(pid, e->name);
			at += e->len;
		}
	}
	(void)close(fd);
}

static void find_children(void)
{
	n_found = 0;
	add_children(getpid());
}

static void find_all(void)
{
	find_children();
	for (size_t i = 0; i < n_found; i++)
		add_children(found[i].pid);
}

/* ---- signals ---- */

/*
 * The pidfd pins whoever has the number now. If that one is still a child of where it was
 * found, or has come up to the shim meanwhile, it is ours; a stranger with a recycled
 * number is neither.
 */
static void signal_pinned(const struct process *p, const int *signals)
{
	int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	struct stat_line st;

	if (fd < 0)
		return;
	if (read_stat(p->pid, &st) && (st.parent == p->parent || st.parent == getpid())) {
		for (; *signals; signals++)
			(void)syscall(SYS_pidfd_send_signal, fd, *signals, NULL, 0);
	}
	(void)close(fd);
}

static void signal_found(const int *signals)
{
	pid_t self = getpid();

	for (size_t i = 0; i < n_found; i++) {
		if (found[i].parent != self) {
			signal_pinned(&found[i], signals);
			continue;
		}
		for (const int *s = signals; *s; s++)
			(void)kill(found[i].pid, *s);
	}
}

void tree_terminate(void)
{
	find_all();
	signal_found((const int[]){SIGTERM, SIGCONT, 0});
}

void tree_kill(void)
{
	find_all();
	signal_found((const int[]){SIGKILL, 0});
}

void tree_kill_children(void)
{
	find_children();
	signal_found((const int[]){SIGKILL, 0});
}

struct tree_left tree_count(pid_t session)
{
	struct tree_left left = {0};
	struct stat_line line;
	struct stat st;
	char path[64];

	find_all();
	for (size_t i = 0; i < n_found; i++) {
		if (!read_stat(found[i].pid, &line) || line.state == 'Z' ||
		    line.state == 'X')
			continue;
		left.count++;
		if (line.session == session)
			left.in_session++;
		left.pid = found[i].pid;
	}
	(void)snprintf(path, sizeof(path), "/proc/%d", (int)left.pid);
	if (left.pid && stat(path, &st) == 0)
		left.uid = st.st_uid;
	return left;
}
