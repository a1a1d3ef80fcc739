/* SPDX-License-Identifier: MIT */
/* outcome.h - what a call comes to (spec 9.6, 9.8, 9.9). */
#pragma once

#include "core/call.h"

struct js;

void outcome_fail(errand_host *h, struct call *c, errand_error *e); /* takes @e */
void outcome_fail_text(errand_host *h, struct call *c, const char *message,
		       const char *name, const char *code);
void outcome_forget(errand_host *h, struct call *c);
/* c->answer; NULL: no lossless JSON. @is_wrapped: the value lies in a member of it. */
struct js *outcome_parse(const errand_host *h, const struct call *c, bool is_wrapped);
const char *why_no_result(int buf_error); /* of one that would hold it */
/* Take the value that stands in c->answer, or in its member "value". @tree is what was parsed
 * of it, and taken. False: it is not valid under the tool's schema, and the call has failed. */
bool outcome_take_value(errand_host *h, struct call *c, struct js *tree, bool is_member);
bool outcome_render(errand_host *h, struct call *c);
void outcome_take_error(errand_host *h, struct call *c, const struct js *result);
void outcome_put(struct buf *out, const struct call *c);
void outcome_finish(errand_host *h, struct call *c); /* frees the call */
bool call_is_aborted(const struct call *c);

/* Let @make write what it makes of @in: 0, or its code and its error. */
int run_maker(errand_host *h, errand_make_fn make, void *ud, errand_str in, struct buf *ret,
	      errand_error **ret_err);
