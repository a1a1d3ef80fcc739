/* SPDX-License-Identifier: MIT */
/* gc.h - what nobody needs any more in a state folder: removed, or told. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;

struct gc {
	size_t removed; /* folders of hosts that had left in good order */
	size_t live;    /* of hosts that live */
	size_t tasks_of_live;
	size_t crashed; /* of hosts that did not: kept, they may hold what somebody wants */
	size_t busy;    /* left in good order, with tasks that are still being ended */
	bool has_store;
	int64_t tasks, requests, entries; /* rows of it that are gone */
	int64_t bytes;                    /* that its files have become shorter */
};

/* @state: --state; NULL: ERRAND_STATE, else the default. */
int gc_run(const char *state, struct gc *ret, struct err *err)
	__attribute__((warn_unused_result));
/* The same, but nothing is removed. */
int gc_look(const char *state, struct gc *ret, struct err *err)
	__attribute__((warn_unused_result));
