/* SPDX-License-Identifier: MIT */
/* history.h - the tasks that a state folder's store remembers, for people. */
#pragma once

#include <stdbool.h>

struct buf;
struct err;

/* The newest so many. */
#define HISTORY_TASKS 10000

/*
 * Append the rows of store_history() as a JSON array, the oldest first: those that no agent's
 * list has any more or, @has_listed, all. No store: []. Needs no host, and disturbs none.
 */
int history_put(const char *state, bool has_listed, struct buf *out, struct err *err)
	__attribute__((warn_unused_result));
