/* SPDX-License-Identifier: MIT */
/* tool.h - the tools of a layer (spec 3.9). */
#pragma once

#include "core/reg.h"

struct call;
struct js;

struct tool {
	struct reg reg;
	struct layer *layer;
	struct name name;
	struct list node;
	struct str text, description, params_text, output_text;
	struct js *params, *output;
	uint32_t flags;
	bool gone; /* unregistered; waits for its calls */
	errand_enter_fn exec;
	errand_make_fn render, finalize, card;
	/* The controller's: what it must know of a call before its policy (spec 5.7), and its
	 * last mile, which sees more than finalize. */
	void (*capture)(errand_host *h, struct call *c);
	errand_reg captured_by; /* the policy of its mount that asks for it */
	void (*last_mile)(errand_host *h, struct call *c);
	/* The same as render, on the value as it was parsed. */
	void (*put_text)(struct buf *text, const struct js *value);
	int64_t timeout_ms; /* 0: none */
	void *ud;
	errand_destroy_fn destroy;
	struct list calls;
};

struct tool *tool_find(const errand_host *h, const struct agent *a, const char *name,
		       size_t len);
int tool_add(errand_host *h, struct layer *l, const struct errand_tool *t,
	     struct tool **ret, errand_error **ret_err);
void tool_call_ended(errand_host *h, struct call *c);
/* A global one, by all restrictions on the chain of @s? */
bool tool_is_allowed(const errand_host *h, const struct scope *s, const struct tool *t);
const struct tool **tools_by_name(const errand_host *h, size_t *ret_count); /* global */
