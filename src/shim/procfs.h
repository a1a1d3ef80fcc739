/* SPDX-License-Identifier: MIT */
/* procfs.h - what /proc tells about processes, read without allocating. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct procfs_stat {
	char state;
	pid_t parent, session;
	uint64_t threads;
	uint64_t ticks; /* start time */
};

bool procfs_stat(pid_t pid, struct procfs_stat *ret);
/* The state is the first thread's: others may go on when that has ended. */
static inline bool procfs_is_dead(const struct procfs_stat *st)
{
	return (st->state == 'Z' || st->state == 'X') && st->threads <= 1;
}

typedef void (*procfs_fn)(pid_t pid, pid_t parent);

/* False: this kernel keeps no lists of children, or there is no /proc. */
bool procfs_children(pid_t pid, procfs_fn fn);
/* The same of the calling process, which has one thread, however few descriptors it may have
 * by then: -1 if it cannot be had. */
int procfs_open_own_children(void);
bool procfs_own_children(int fd, procfs_fn fn);
/* Every process there is, with its parent. False: there is no /proc. */
bool procfs_all(procfs_fn fn);

/* Does @pid have a descriptor of the file (@dev, @ino)? */
bool procfs_has_file(pid_t pid, dev_t dev, ino_t ino);
/* 0, or the owner of @pid. */
uid_t procfs_uid(pid_t pid);
