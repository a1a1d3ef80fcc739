/* SPDX-License-Identifier: MIT */
/*
 * tree.h - the processes under the shim, and how they are signalled.
 *
 * The shim is their subreaper: whatever they fork, setsid or orphan, they stay its
 * descendants. An unreaped child's number cannot be reused, so children are signalled by
 * pid; deeper ones through a pidfd, after their parent has been looked at again.
 */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct tree_left {
	unsigned count;      /* living processes */
	unsigned in_session; /* of these, in the given session */
	pid_t pid;           /* one of them, 0: none */
	uid_t uid;
};

/* SIGTERM to all, parents before their children; then SIGCONT: a stopped one must see it. */
void tree_terminate(void);
/* SIGKILL to all. */
void tree_kill(void);
/* SIGKILL to the shim's own children: orphans come up to it as their parents die. */
void tree_kill_children(void);
/* Look without touching. */
struct tree_left tree_count(pid_t session);
