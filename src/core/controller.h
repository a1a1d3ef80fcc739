/* SPDX-License-Identifier: MIT */
/* controller.h - the three tools as a table; mount.c registers them. */
#pragma once

#include "core/call.h"

/* How long task_output may wait (spec 10). The ud of that tool. */
struct wait_config {
	struct mem mem;
	double timeout_ms, max_ms;
};

struct controller_tool {
	const char *name, *description, *params, *output;
	errand_enter_fn exec;
	errand_make_fn card;
	void (*put_text)(struct buf *text, const struct js *value);
	void (*capture)(errand_host *h, struct call *c);
	void (*last_mile)(errand_host *h, struct call *c);
};

#define N_CONTROLLER_TOOLS 3
extern const struct controller_tool controller_tools[N_CONTROLLER_TOOLS];
