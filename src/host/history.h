/* SPDX-License-Identifier: MIT */
/* history.h - what a state folder's store remembers, for people: tasks, and who did what. */
#pragma once

#include <stdbool.h>

#include "store/store.h"

struct buf;
struct config;
struct err;

/* The newest so many. */
#define HISTORY_TASKS 10000

/* What of it is kept, by the settings and beside them. */
struct store_limits history_limits(const struct config *c);

/*
 * Append the rows of store_history() as a JSON array, the oldest first: those that no agent's
 * list has any more or, @has_listed, all. No store: []. Needs no host, and disturbs none.
 */
int history_put(const char *state, bool has_listed, struct buf *out, struct err *err)
	__attribute__((warn_unused_result));
/* The same of store_audit_trail(); @id: of this task only, NULL: of all. */
int history_put_trail(const char *state, const char *id, struct buf *out, struct err *err)
	__attribute__((warn_unused_result));
/* The newest row of @id in store_history() and, if its output was dropped, the entry that says
 * so; each is empty if there is none. */
int history_find(const char *state, const char *id, struct buf *ret_task,
		 struct buf *ret_drop, struct err *err) __attribute__((warn_unused_result));
