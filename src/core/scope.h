/* SPDX-License-Identifier: MIT */
/* scope.h - scope keys, and the layers that are registered under them. */
#pragma once

#include "base/list.h"
#include "core/names.h"
#include "core/object.h"

struct agent;
struct reg;

#define N_EVENTS 4 /* ERRAND_ON_* */
#define N_STAGES 6 /* ERRAND_STAGE_* */

/*
 * What is registered under one scope key (spec 3.2). A scope has one only while something
 * is; each thing in it holds it, and the last to go takes it along.
 */
struct layer {
	struct scope *scope; /* NULL: the global one, which stays */
	size_t holders;
	struct list regs; /* what goes with the scope, in order of registration */
	struct names tools;
	struct list tool_order;
	struct list sections;            /* by age */
	struct list listeners[N_EVENTS]; /* by ERRAND_ON_* - 1, in order of registration */
	struct list policies[N_STAGES];  /* by ERRAND_STAGE_* - 1, and by rank */
	struct list restrictions;
	size_t surfaces;
};

/* A key, and its parent (spec 3.1). A chain may be of any length: it is walked, near to far,
 * never recursed into. */
struct scope {
	struct object obj; /* an agent's own goes by the agent's id instead */
	struct scope *parent;
	struct list children, in_parent;
	struct layer *layer; /* NULL: nothing is registered here */
	bool is_bound;
	struct reg *binding; /* the caller's; NULL: the host's affair */
};

void layer_init(errand_host *h, struct layer *l);
/* The layer of @s, made if there is none, and held. NULL: a stale id. */
struct layer *layer_open(errand_host *h, errand_scope s, errand_error **ret_err);
void layer_hold(struct layer *l);
void layer_drop(errand_host *h, struct layer *l); /* frees it with its last holder */
void scope_init(struct scope *s);
struct scope *scope_get(const errand_host *h, errand_scope s, errand_error **ret_err);
/* May @parent (NULL: none) be its parent? EREFUSED: a cycle. */
int scope_check(const errand_host *h, const struct scope *child, const struct scope *parent,
		errand_error **ret_err);
void scope_link(struct scope *s, struct scope *parent); /* NULL: none */
void scope_clear(errand_host *h, struct scope *s);      /* undo what is registered in it */
void scope_release(errand_host *h, struct scope *s);    /* and take it out of its chain */
void scope_free(errand_host *h, struct scope *s);
const struct scope *scope_of(const struct agent *a); /* NULL is nobody: NULL */
/* What a reader with key @s (NULL: none) sees, from near to far, the global layer last. */
const struct layer *chain_first(const errand_host *h, const struct scope *s);
const struct layer *chain_next(const errand_host *h, const struct layer *l);
#define chain_each(pos, h, s)                                                              \
	for (const struct layer *pos = chain_first(h, s); pos; pos = chain_next(h, pos))
/* The same from far to near, the global layer first, as an array to free. */
const struct layer **chain_from_far(const errand_host *h, const struct scope *s,
				    size_t *ret_count);
bool is_served(const errand_host *h, const struct agent *a); /* by a surface (spec 3.3) */
