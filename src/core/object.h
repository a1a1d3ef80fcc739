/* SPDX-License-Identifier: MIT */
/*
 * object.h - what can be named, what is queued, what is due; and who may do what just now.
 *
 * An object that callers can name has a struct object first: its id is the key in the host's one
 * map, and it is in the host's list of its type.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/list.h"
#include "base/mem.h"
#include "core/text.h"
#include "errand.h"

/* Who is running just now; decides what may be called (EREENTER). */
enum phase {
	PHASE_TOP,
	PHASE_RUN,  /* errand_run(), and the callbacks it makes */
	PHASE_SYNC, /* a producer's start or cancel */
	PHASE_PURE,
};

enum object_type {
	OBJ_SCOPE,
	OBJ_AGENT,
	OBJ_TASK,
	OBJ_CALL,
	OBJ_FRAME,
	OBJ_SIGNAL,
	OBJ_REG,
	OBJ_PART, /* registered, but undone only with its mount */
	OBJ_LEASE,
	N_OBJECT_TYPES,
};

struct object {
	uint64_t id; /* 0: not in the table */
	enum object_type type;
	struct list node;
};

/* One thing to do in errand_run(). fire() owns it; drop() frees it when the host goes. */
struct event {
	struct list node;
	void (*fire)(errand_host *h, struct event *ev);
	void (*drop)(errand_host *h, struct event *ev);
};

#define TIMER_IDLE SIZE_MAX
struct timer {
	int64_t due;
	uint64_t seq; /* equal deadlines fire in the order they were set */
	size_t slot;  /* place in the heap, or TIMER_IDLE */
	void (*fire)(errand_host *h, struct timer *t);
};

struct timers {
	struct timer **heap;
	size_t count, cap;
	uint64_t last_seq;
};

void object_add(errand_host *h, struct object *o, enum object_type type);
/* Under an id that is known from a journal. */
void object_add_as(errand_host *h, struct object *o, enum object_type type, uint64_t id);
void object_del(errand_host *h, struct object *o);
void *object_get(const errand_host *h, uint64_t id,
		 enum object_type type); /* NULL: stale */
void *object_first(const errand_host *h, enum object_type type);
void event_queue(errand_host *h, struct event *ev);
void timer_set(errand_host *h, struct timer *t, int64_t due);
void timer_clear(errand_host *h, struct timer *t);
struct timer *timer_first(const errand_host *h);
/* May a function of class [main] run now? May one of class [any]? 0 or the code. */
int may_change(const errand_host *h, errand_error **ret_err);
int may_queue(const errand_host *h);
enum phase phase_enter(errand_host *h, enum phase p); /* returns the one to go back to */
void destroy_ud(errand_host *h, errand_destroy_fn destroy, void *ud);
void host_warn(errand_host *h, struct buf *text); /* releases @text */
