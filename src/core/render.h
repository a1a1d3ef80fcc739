/* SPDX-License-Identifier: MIT */
/* render.h - the controller's values as text for the model (spec 4.3-4.7), and its bounds
 * (spec 5). Pure. */
#pragma once

#include "core/internal.h"

int render_output(void *ud, const char *in_json, size_t len, errand_sink *out,
		  errand_error *e);
int render_list(void *ud, const char *in_json, size_t len, errand_sink *out,
		errand_error *e);
int render_kill(void *ud, const char *in_json, size_t len, errand_sink *out,
		errand_error *e);
/*
 * Bound what a call shows to @limit bytes. @is_output: a text that is still what
 * render_output() makes of the call's value keeps its status line (spec 5.4, 5.10).
 */
void render_bound(errand_host *h, struct call *c, uint64_t limit, bool is_output);
