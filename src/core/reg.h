/* SPDX-License-Identifier: MIT */
/* reg.h - registrations, and who listens to what happens. */
#pragma once

#include "core/scope.h"

struct agent;

/* What errand_unregister() undoes. First member of each registered thing. */
struct reg {
	struct object obj;
	struct list in_layer;
	void (*undo)(errand_host *h, struct reg *r); /* frees it */
};

/* One event on its way to the listeners that were on the owner's chain when it happened
 * (spec 3.4). By id: one that is removed meanwhile is skipped. */
struct dispatch {
	struct event ev;
	int event;
	bool is_for_mount; /* nobody else hears it: a notice that is sent late */
	errand_agent owner;
	errand_task task;   /* ON_DONE */
	bool reported;      /* ON_DONE: as of the settlement (spec 1.2.3) */
	bool is_heard;      /* by a listener of the caller's, who reads json */
	struct str subject; /* for a warning */
	struct str json;
	size_t count;
	errand_reg listeners[]; /* global ones first, then far to near */
};

struct listener {
	struct reg reg;
	struct layer *layer;
	struct list node;
	errand_reg number; /* its id, also when it is gone */
	unsigned busy;     /* it is being told something, so often */
	bool gone;         /* removed meanwhile */
	errand_event_fn fn;
	void (*builtin)(errand_host *h, const struct listener *l,
			const struct dispatch *d); /* instead of fn */
	int64_t max_wakes;                         /* of a mount; 0: quiet (D8) */
	void *ud;
	errand_destroy_fn destroy;
};

/* NULL, and nothing is queued, if nobody listens. */
struct dispatch *dispatch_new(errand_host *h, int event, const struct agent *owner);
void dispatch_now(errand_host *h, struct dispatch *d); /* frees it */
void dispatch_queue(errand_host *h, struct dispatch *d);
void dispatch_withdraw(errand_host *h, struct dispatch *d); /* queued, not yet fired */
struct listener *listener_add(errand_host *h, struct layer *l, int event);
struct reg *surface_add(errand_host *h, struct layer *l);
/* Give it an id: it can be undone by name. A mount's own parts cannot. */
errand_reg reg_publish(errand_host *h, struct reg *r);
/* The same, and it goes with the scope of @l. */
errand_reg reg_publish_in(errand_host *h, struct layer *l, struct reg *r);
void reg_undo(errand_host *h, struct reg *r);
