/* SPDX-License-Identifier: MIT */
/* render.h - the controller's values as text for the model (spec 4.3-4.7), and its bounds
 * (spec 5). Pure. */
#pragma once

#include "core/call.h"

/* @value is valid under the tool's output schema. */
void render_output(struct buf *text, const struct js *value);
void render_list(struct buf *text, const struct js *value);
void render_kill(struct buf *text, const struct js *value);
/*
 * Bound what a call shows to @limit bytes. @is_output: a text that is still what
 * render_output() makes of the call's value keeps its status line (spec 5.4, 5.10).
 */
void render_bound(errand_host *h, struct call *c, uint64_t limit, bool is_output);
