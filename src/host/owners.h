/* SPDX-License-Identifier: MIT */
/*
 * owners.h - whose calls these are: a name, the agent that it stands for, and how long it stays.
 *
 * A name is kept as long as a client is connected under it, and then for a time: short for one
 * that the host has made up for a client without a name (it begins with '~'), long for one that
 * was given. After that its agent is disposed of, which ends its tasks; one with a name goes
 * only when none of them lives.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "errand.h"

struct err;

struct owners {
	errand_host *host;
	int64_t grace_ms, keep_ms; /* 0: for ever */
	/* For who remembers given names: somebody is there, or was just now, told when that
	 * changes and else once an hour; and the name is gone. NULL: nobody does. */
	void (*seen)(void *ud, const char *name, size_t len, bool is_connected);
	void (*gone)(void *ud, const char *name, size_t len);
	/* How many clients have entered @name: asked of one that begins, since it may have been ended
	 * under them. NULL: none. */
	size_t (*connected)(void *ud, const char *name, size_t len);
	void *ud;
	struct list all; /* struct owner */
	struct map by_name;
	size_t count;
};

void owners_init(struct owners *o); /* then set .host */
void owners_release(struct owners *o);

/* The agent of @name, made when it is new. ERR_LIMIT: too many. ERR_STATE: it is just being
 * disposed of. */
int owners_agent(struct owners *o, const char *name, size_t len, int64_t mono_ms,
		 errand_agent *ret, struct err *err) __attribute__((warn_unused_result));
/* Nobody has been connected under @name, which has an agent, for @away_ms. False: it has none. */
bool owners_away(struct owners *o, const char *name, size_t len, int64_t mono_ms,
		 int64_t away_ms);
/* Has it tasks, and is nobody connected? Who comes now may have forgotten them. */
bool owners_is_left(const struct owners *o, const char *name, size_t len);
/* A client is connected under @name, or is not any more. */
int owners_enter(struct owners *o, const char *name, size_t len, int64_t mono_ms,
		 struct err *err) __attribute__((warn_unused_result));
void owners_leave(struct owners *o, const char *name, size_t len, int64_t mono_ms);

/* What people see of one. */
struct owner_view {
	const char *name; /* borrowed */
	size_t name_len;
	size_t clients, tasks, live;
	int64_t due_ms; /* as the clock of owners_tick(): ends then; INT64_MAX: not yet known */
};
void owners_each(const struct owners *o, void (*fn)(void *ud, const struct owner_view *v),
		 void *ud);
/* Dispose of it now; *@ret_live of its tasks live, and are ended. ERR_NOT_FOUND: there is none. */
int owners_end(struct owners *o, const char *name, size_t len, size_t *ret_live,
	       struct err *err) __attribute__((warn_unused_result));

/* The name that @agent stands for; borrowed. NULL: none. */
const char *owners_name(const struct owners *o, errand_agent agent, size_t *ret_len);

/* Is @agent just being disposed of? */
bool owners_is_ending(const struct owners *o, errand_agent agent);

/* When owners_tick() has something to do; INT64_MAX: never. */
int64_t owners_deadline(const struct owners *o);
void owners_tick(struct owners *o, int64_t mono_ms);
