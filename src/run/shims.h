/* SPDX-License-Identifier: MIT */
/*
 * shims.h - the supervisors of this user, as /proc tells: also those that no host knows.
 *
 * A shim whose run folder has been deleted goes on with its task, and the host that it is
 * connected to hears its end. No later host finds it: whoever asks here does.
 */
#pragma once

#include <stdbool.h>
#include <sys/types.h>

struct run_shim {
	pid_t pid;
	pid_t task;         /* one of its children; 0: it has none, or nobody can tell */
	const char *folder; /* where its run folder is, or was; borrowed */
	bool is_deleted;
};

typedef void (*run_shim_fn)(void *ud, const struct run_shim *shim);

void run_each_shim(run_shim_fn fn, void *ud);
