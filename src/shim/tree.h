/* SPDX-License-Identifier: MIT */
/*
 * tree.h - the processes under the shim, and how they are signalled.
 *
 * The shim is their subreaper: whatever they fork, setsid or orphan, they stay its
 * descendants. An unreaped child's number cannot be reused, so children are signalled by
 * pid; deeper ones through a pidfd, after their parent has been looked at again.
 *
 * They are found through /proc: by its lists of children, or, where the kernel keeps none,
 * by the parent of every process. Without a /proc only the main process' group can be
 * signalled, and only waitpid() can tell that nothing is left.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Whom a signal or a count is for. @only_attached: of the tree, those in @session or with
 * a descriptor of @pipe_fd's pipe (-1: nobody has one); else all of it.
 */
struct tree_scope {
	bool only_attached;
	pid_t session;
	pid_t group; /* for want of a /proc; 0 once its first process has been reaped */
	int pipe_fd;
};

struct tree_process {
	pid_t pid;
	uint64_t ticks; /* start time */
	bool is_in;     /* the scope */
};

struct tree_left {
	unsigned count;    /* living processes in the scope */
	pid_t pid;         /* one of them, 0: none */
	uid_t uid;         /* its owner */
	unsigned others;   /* living ones of the tree that are not in it */
	pid_t other_pid;   /* one of them */
	bool is_uncounted; /* nobody can look */
};

/* Before the task: then the shim's own children are found even if the task has left it no
 * descriptors. */
void tree_open(void);
/* SIGTERM, parents before their children; then SIGCONT: a stopped one must see it. */
void tree_terminate(const struct tree_scope *scope);
void tree_kill(const struct tree_scope *scope);
/* SIGKILL to the shim's own children: orphans come up to it as their parents die. */
void tree_kill_children(const struct tree_scope *scope);
/* One signal to everybody meant, parents first. */
void tree_signal(const struct tree_scope *scope, int sig);
/* Look without touching; the first @max of all that live come into @list. */
struct tree_left tree_list(const struct tree_scope *scope, struct tree_process *list,
			   size_t max);
static inline struct tree_left tree_count(const struct tree_scope *scope)
{
	return tree_list(scope, NULL, 0);
}
