/* SPDX-License-Identifier: MIT */
/*
 * usage.c - what the processes of a live task use now, as /proc tells: those below its shim.
 *
 * A look at something that moves: a process may come or go meanwhile. Nothing is decided by it.
 */
#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/limits.h"
#include "run/internal.h"

/* Of one task; the rest of a larger tree is not counted. */
#define MAX_PROCESSES 4096

struct tree {
	pid_t pids[MAX_PROCESSES];
	size_t n;
};

static ssize_t read_file(const char *path, char *text, size_t size)
{
	autoclose int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, text, size - 1);

	if (n >= 0)
		text[n] = 0;
	return n;
}

/* ---- who is there ---- */

static void add_children(struct tree *t, pid_t pid, const char *thread)
{
	char path[64 + NAME_MAX], text[KIB(16)];
	char *at = text, *end;
	long child;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid, thread);
	if (read_file(path, text, sizeof(text)) <= 0)
		return;
	while (t->n < MAX_PROCESSES && (child = strtol(at, &end, 10)) > 0) {
		t->pids[t->n++] = (pid_t)child;
		at = end;
	}
}

/* A child belongs to the thread that made it. */
static void add_all_children(struct tree *t, pid_t pid)
{
	char path[64];
	const struct dirent *e;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && (e = readdir(dir)))
		if (isdigit((unsigned char)e->d_name[0]))
			add_children(t, pid, e->d_name);
	if (dir)
		closedir(dir);
}

/* ---- what they use ---- */

/* With what it has waited for: its own time would go back as its children end. */
static uint64_t cpu_ms_of(pid_t pid)
{
	unsigned long long user, system, child_user, child_system;
	char path[64], text[1024];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_file(path, text, sizeof(text)) <= 0 || !(at = strrchr(text, ')')) ||
	    sscanf(at, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %llu %llu",
		   &user, &system, &child_user, &child_system) != 4)
		return 0;
	return (user + system + child_user + child_system) * 1000 /
	       (uint64_t)sysconf(_SC_CLK_TCK);
}

static uint64_t memory_kib_of(pid_t pid)
{
	unsigned long long pages;
	char path[64], text[256];

	(void)snprintf(path, sizeof(path), "/proc/%d/statm", (int)pid);
	if (read_file(path, text, sizeof(text)) <= 0 ||
	    sscanf(text, "%*u %llu", &pages) != 1)
		return 0;
	return pages * (uint64_t)sysconf(_SC_PAGESIZE) / 1024;
}

bool run_usage(const struct run_task *t, struct run_usage *ret)
{
	autofree struct tree *tree = NULL;

	if (t->phase != RUN_LIVE || !t->shim_pid)
		return false;
	tree = mem_new(NULL, sizeof(*tree));
	*ret = (struct run_usage){0};
	add_all_children(tree, t->shim_pid);
	for (size_t i = 0; i < tree->n; i++) {
		ret->cpu_ms += cpu_ms_of(tree->pids[i]);
		ret->memory_kib += memory_kib_of(tree->pids[i]);
		add_all_children(tree, tree->pids[i]);
	}
	ret->processes = tree->n;
	return tree->n > 0;
}

/* ---- how long nothing has come ---- */

/* The newest file of the log; its front is there from the first byte on. */
int64_t run_quiet_since(const struct run_task *t)
{
	autoclose int folder = openat(t->run->tasks_fd, t->uid,
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = folder < 0 ? NULL : fdopendir(folder);
	const struct dirent *e;
	struct stat st;
	int64_t newest = 0, at;

	if (!dir)
		return 0;
	(void)take_fd(&folder);
	while ((e = readdir(dir))) {
		if (strncmp(e->d_name, PROTO_OUT, strlen(PROTO_OUT)) != 0 ||
		    fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		at = (int64_t)st.st_mtim.tv_sec * 1000 + st.st_mtim.tv_nsec / 1000000;
		newest = at > newest ? at : newest;
	}
	closedir(dir);
	return newest;
}
