/* SPDX-License-Identifier: MIT */
/*
 * host.h - the host, off which everything hangs.
 *
 * Nothing is counted: who refers to an object is in a list of that object, and it goes when it is
 * over and the list is empty.
 *
 *   host --- session --- agent --- task --- waiter
 *    |          `---------------------'`--- hold --- lease
 *    |--- scope --- layer --- tool, section, listener, restriction, surface
 *    `--- call --- frame
 *
 * A change and its announcement are apart: state changes at once, callbacks are events in
 * one queue, and only errand_run() takes from it. So no callback finds half a change, and
 * none runs inside another.
 */
#pragma once

#include "base/map.h"
#include "core/maxima.h"
#include "core/names.h"
#include "core/object.h"
#include "core/scope.h"

/* Who is to be told that a teardown is over. */
struct ending {
	errand_done_fn done;
	void *ud;
	errand_destroy_fn destroy;
};

/* Who reaches tasks without an owner (D13). */
enum unowned_access {
	UNOWNED_OPEN,
	UNOWNED_OPERATOR,
	UNOWNED_NONE,
};

struct errand_host {
	struct mem mem;
	struct maxima max;
	int64_t mono_ms, wall_ms;
	bool has_run;        /* before that there is no time */
	int64_t owner_limit; /* live tasks of one owner; 0: none (D9) */
	int64_t keep;        /* ended and told tasks of one owner; 0: all (D15) */
	enum phase phase;
	uint64_t last_id, last_message;
	int64_t first_rank, last_rank; /* of policies: appended ones count up */
	struct map objects;
	struct list by_type[N_OBJECT_TYPES];
	struct list mailboxes;
	struct list queue;
	struct timers timers;
	struct layer global;
	struct names sessions, kinds;
	struct list kind_list;
	struct list unowned; /* tasks without an owner, in order of registration */
	size_t unowned_live, tasks;
	size_t live;         /* tasks that are running or stopping, of all owners */
	int unowned_access;  /* enum unowned_access */
	int64_t teardown_ms; /* 0: for ever (D12) */
	struct {
		bool is_disposed; /* or being */
		struct ending ending;
		struct event finish;
		struct timer deadline;
	} service;
	void (*warn)(void *ud, const char *text, size_t len);
	void (*message_id)(void *ud, errand_sink *out);
	void (*journal)(void *ud, const char *json, size_t len);
	void *ud;
	errand_destroy_fn destroy;
};

void service_init(errand_host *h);
void service_settled(errand_host *h); /* one task less */
