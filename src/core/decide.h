/* SPDX-License-Identifier: MIT */
/* decide.h - what the answers of pre-execute, approval, guards and post-execute mean. */
#pragma once

#include "core/call.h"

/* What the end of a chain answers. */
#define DEFAULT_PRE "{\"kind\":\"allow\"}"
#define DEFAULT_APPROVAL "{\"kind\":\"unavailable\"}"
#define DEFAULT_GUARD "{}"
#define DEFAULT_POST "{\"kind\":\"accept\"}"

enum verdict {
	VERDICT_ALLOW,
	VERDICT_DENY,
	VERDICT_ASK,
	VERDICT_BROKEN,
};

bool is_default_answer(const struct call *c, const char *text);
/* Of c->answer; the reason of a denial, or of an ask that has one, is yours to free. */
enum verdict decide_pre(errand_host *h, const struct call *c, struct str *ret_reason);
enum verdict decide_approval(errand_host *h, const struct call *c, struct str *ret_reason);
enum verdict decide_guard(errand_host *h, const struct call *c, struct str *ret_reason);
/* `tool "<name>` + @after. */
struct str ask_refusal(errand_host *h, const struct call *c, const char *after);
/* Let the post-execute decision in c->answer change the outcome (spec 9.7). */
void post_apply(errand_host *h, struct call *c);
