/* SPDX-License-Identifier: MIT */
/* policy.h - the listeners of a stage of calls (spec 9.2). */
#pragma once

#include "core/reg.h"

struct call;

/* A listener of a stage of calls. */
struct policy {
	struct reg reg;
	struct layer *layer;
	struct list node;
	errand_reg number; /* its id, also when it is gone */
	int64_t rank;      /* its place among all of its stage (spec 9.2) */
	unsigned busy;     /* frames of it that are out */
	bool gone;         /* removed meanwhile */
	errand_enter_fn enter, back;
	void (*builtin)(errand_host *h, struct call *c, errand_reg self); /* instead */
	void *ud;
	errand_destroy_fn destroy;
};

struct policy *policy_add(errand_host *h, struct layer *l, int stage, uint32_t flags);
struct policy *policy_get(const errand_host *h, errand_reg id); /* NULL: removed */
void policy_release(errand_host *h, struct policy *p);          /* one frame less */
