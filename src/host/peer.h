/* SPDX-License-Identifier: MIT */
/* peer.h - who is at the other end of a connection, as the kernel and /proc say. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct err;

struct peer {
	pid_t pid;
	uid_t uid;
};

/* The longest name of a task in an environment. */
#define PEER_TASK 64

/* ERR_STATE, with a reason for the peer: it is somebody else, or lives in namespaces of its
 * own, where our pids and its files mean something else. */
int peer_check(int fd, bool may_be_contained, struct peer *ret, struct err *err)
	__attribute__((warn_unused_result));
/* The process that started @pid; 0: it is gone, or nobody did. */
pid_t peer_parent(pid_t pid);
/* The value of ERRAND_TASK that @pid was started with; false: none, or not to be read. */
bool peer_task(pid_t pid, char ret[PEER_TASK]);
