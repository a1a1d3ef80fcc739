/* SPDX-License-Identifier: MIT */
#include "shim/tree.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/procfs.h"

/* More than this in one walk are met in the rounds that follow it. */
#define TREE_MAX 8192
/* Only where /proc has no lists of children. */
#define ALL_MAX 65536

struct process {
	pid_t pid, parent;
};

/* In the order of a walk in breadth: a parent stands before its children. */
static struct process found[TREE_MAX];
static size_t n_found;
static struct process all[ALL_MAX];
static size_t n_all;
static int own_children = -1;

static void add_found(pid_t pid, pid_t parent)
{
	if (n_found < TREE_MAX)
		found[n_found++] = (struct process){pid, parent};
}

static void add_to_all(pid_t pid, pid_t parent)
{
	if (n_all < ALL_MAX)
		all[n_all++] = (struct process){pid, parent};
}

/* ---- finding ---- */

/* The lists of children, or a picture of all processes instead. */
enum source {
	BY_LISTS,
	BY_PARENTS,
	BY_NOTHING,
};

static void find_in_picture(pid_t parent)
{
	for (size_t i = 0; i < n_all; i++)
		if (all[i].parent == parent)
			add_found(all[i].pid, parent);
}

void tree_open(void)
{
	own_children = procfs_open_own_children();
}

static enum source find_children(void)
{
	n_found = n_all = 0;
	if (procfs_own_children(own_children, add_found))
		return BY_LISTS;
	if (!procfs_all(add_to_all))
		return BY_NOTHING;
	find_in_picture(getpid());
	return BY_PARENTS;
}

static enum source find_tree(void)
{
	enum source source = find_children();

	for (size_t i = 0; i < n_found; i++) {
		if (source == BY_LISTS)
			(void)procfs_children(found[i].pid, add_found);
		else
			find_in_picture(found[i].pid);
	}
	return source;
}

static bool is_in(const struct tree_scope *scope, pid_t pid, const struct procfs_stat *st)
{
	struct stat pipe;

	if (!scope->only_attached || st->session == scope->session)
		return true;
	return scope->pipe_fd >= 0 && fstat(scope->pipe_fd, &pipe) == 0 &&
	       procfs_has_file(pid, pipe.st_dev, pipe.st_ino);
}

/* ---- signals ---- */

/*
 * The pidfd pins whoever has the number now. If that one is still a child of where it was
 * found, or has come up to the shim meanwhile, it is ours; a stranger with a recycled
 * number is neither.
 */
static void signal_pinned(const struct tree_scope *scope, const struct process *p,
			  const int *signals)
{
	int fd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	struct procfs_stat st;

	if (fd < 0)
		return;
	if (procfs_stat(p->pid, &st) && (st.parent == p->parent || st.parent == getpid()) &&
	    is_in(scope, p->pid, &st)) {
		for (; *signals; signals++)
			(void)syscall(SYS_pidfd_send_signal, fd, *signals, NULL, 0);
	}
	(void)close(fd);
}

static void signal_child(const struct tree_scope *scope, pid_t pid, const int *signals)
{
	struct procfs_stat st;

	if (scope->only_attached && (!procfs_stat(pid, &st) || !is_in(scope, pid, &st)))
		return;
	for (; *signals; signals++)
		(void)kill(pid, *signals);
}

static void signal_found(const struct tree_scope *scope, const int *signals)
{
	pid_t self = getpid();

	for (size_t i = 0; i < n_found; i++) {
		if (found[i].parent == self)
			signal_child(scope, found[i].pid, signals);
		else
			signal_pinned(scope, &found[i], signals);
	}
}

/* Its number is the main process': only as long as that is unreaped, nobody else has it. */
static void signal_group(const struct tree_scope *scope, const int *signals)
{
	for (; scope->group && *signals; signals++)
		(void)kill(-scope->group, *signals);
}

static void signal_all(const struct tree_scope *scope, enum source source,
		       const int *signals)
{
	if (source == BY_NOTHING)
		signal_group(scope, signals);
	else
		signal_found(scope, signals);
}

void tree_terminate(const struct tree_scope *scope)
{
	signal_all(scope, find_tree(), (const int[]){SIGTERM, SIGCONT, 0});
}

void tree_kill(const struct tree_scope *scope)
{
	signal_all(scope, find_tree(), (const int[]){SIGKILL, 0});
}

void tree_kill_children(const struct tree_scope *scope)
{
	signal_all(scope, find_children(), (const int[]){SIGKILL, 0});
}

void tree_signal(const struct tree_scope *scope, int sig)
{
	signal_all(scope, find_tree(), (const int[]){sig, 0});
}

static void note_living(struct tree_left *left, const struct tree_process *p)
{
	if (p->is_in) {
		left->count++;
		left->pid = p->pid;
	} else {
		left->others++;
		left->other_pid = p->pid;
	}
}

struct tree_left tree_list(const struct tree_scope *scope, struct tree_process *list,
			   size_t max)
{
	struct tree_left left = {.is_uncounted = find_tree() == BY_NOTHING};
	struct procfs_stat st;

	for (size_t i = 0; i < n_found; i++) {
		struct tree_process p = {.pid = found[i].pid};

		if (!procfs_stat(p.pid, &st)) {
			left.is_uncounted |= errno == EMFILE || errno == ENFILE;
			continue;
		}
		if (procfs_is_dead(&st))
			continue;
		p.ticks = st.ticks;
		p.is_in = is_in(scope, p.pid, &st);
		if (left.count + left.others < max)
			list[left.count + left.others] = p;
		note_living(&left, &p);
	}
	if (left.pid)
		left.uid = procfs_uid(left.pid);
	return left;
}
