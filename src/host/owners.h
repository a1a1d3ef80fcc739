/* SPDX-License-Identifier: MIT */
/*
 * owners.h - whose calls these are: a name, the agent it stands for, and the records of its
 * tasks that have ended.
 *
 * Of an owner's tasks the host keeps those that live, those whose end was not told yet, and
 * the newest @keep others (spec D15). An ended record goes from `untold` to `told` when a
 * reply has shown its end; the oldest in `told` is dropped when there are too many.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/map.h"
#include "errand.h"

struct err;

struct owners {
	errand_host *host;
	int64_t keep;
	struct list all; /* struct owner */
	struct map by_name, by_agent, records;
	size_t count;
	struct list
		ended; /* tasks whose end the core has not processed yet, oldest first */
	struct list dirty; /* owners that may have too many records */
};

/* @keep: of each owner's ended and told tasks. */
void owners_init(struct owners *o, int64_t keep);
void owners_release(struct owners *o);
/* The events of @h feed the records from now on. */
int owners_watch(struct owners *o, errand_host *h) __attribute__((warn_unused_result));

/* The agent of @name, made when it is new. ERR_LIMIT: too many. */
int owners_agent(struct owners *o, const char *name, size_t len, errand_agent *ret,
		 struct err *err) __attribute__((warn_unused_result));

/* A task of @agent has ended; called before the core has processed it, in the same order. */
void owners_task_ended(struct owners *o, errand_agent agent, errand_task t);
/* A delivered reply has shown the end of the task that the model calls @id. */
void owners_told(struct owners *o, errand_agent agent, const char *id, size_t len);
/* Drop what is too much. Not from inside a callback of the core. */
void owners_trim(struct owners *o);
