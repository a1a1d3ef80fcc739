/* SPDX-License-Identifier: MIT */
/* decide.c - what pre-execute, approval and guards answered (spec 9.3, 9.4). Pure. What is no
 * answer at all refuses the call: a policy that is broken must not let through. */
#include <string.h>

#include "core/decide.h"

#include "base/json.h"
#include "base/limits.h"
#include "core/call.h"
#include "core/host.h"

bool is_default_answer(const struct call *c, const char *text)
{
	return c->answer.ptr && strcmp(c->answer.ptr, text) == 0;
}

struct decision {
	const char *name;
	enum verdict verdict;
	bool has_reason;            /* of its own; else, or without one: */
	const char *before, *after; /* around the tool's name */
};

static struct str own_reason(errand_host *h, const struct js *answer)
{
	size_t len;
	const char *reason = js_string(js_get(answer, "reason"), &len);

	return reason ? str_dup(&h->mem, reason, len) : (struct str){NULL, 0};
}

static struct str reason_about(errand_host *h, const struct call *c, const char *before,
			       const char *after)
{
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT * 2, &h->mem);
	(void)buf_adds(&b, before);
	(void)buf_add(&b, c->tool_name.ptr, c->tool_name.len);
	(void)buf_adds(&b, after);
	return str_of_buf(&b);
}

static enum verdict decide(errand_host *h, const struct call *c,
			   const struct decision *kinds, struct str *ret_reason)
{
	enum verdict verdict = VERDICT_BROKEN;
	struct js *j = NULL;

	if (parse_here(&h->mem, h->max.nesting, c->answer.ptr, c->answer.len, &j) == 0) {
		while (kinds->name && !js_string_is(js_get(j, "kind"), kinds->name))
			kinds++;
		verdict = kinds->verdict;
		if (kinds->has_reason)
			*ret_reason = own_reason(h, j);
	}
	js_free(j);
	if (verdict != VERDICT_BROKEN && kinds->before && !ret_reason->ptr)
		*ret_reason = reason_about(h, c, kinds->before, kinds->after);
	return verdict;
}

enum verdict decide_pre(errand_host *h, const struct call *c, struct str *ret_reason)
{
	static const struct decision kinds[] = {
		{"allow", VERDICT_ALLOW, false, NULL, NULL},
		{"deny", VERDICT_DENY, true, "tool \"", "\" was denied"},
		{"ask", VERDICT_ASK, true, NULL, NULL},
		{NULL, VERDICT_BROKEN, false, NULL, NULL},
	};

	if (is_default_answer(c, DEFAULT_PRE))
		return VERDICT_ALLOW;
	return decide(h, c, kinds, ret_reason);
}

enum verdict decide_approval(errand_host *h, const struct call *c, struct str *ret_reason)
{
	static const struct decision kinds[] = {
		{"allowed-once", VERDICT_ALLOW, false, NULL, NULL},
		{"rejected", VERDICT_DENY, false, "the user rejected tool \"", "\""},
		{"cancelled", VERDICT_DENY, false, "approval for tool \"",
		 "\" was cancelled"},
		{"unavailable", VERDICT_DENY, false, "tool \"",
		 "\" requires approval, but no approval channel is available"},
		{NULL, VERDICT_BROKEN, false, NULL, NULL},
	};

	return decide(h, c, kinds, ret_reason);
}

enum verdict decide_guard(errand_host *h, const struct call *c, struct str *ret_reason)
{
	enum verdict verdict = VERDICT_BROKEN;
	const struct js *reason;
	struct js *j = NULL;

	if (is_default_answer(c, DEFAULT_GUARD))
		return VERDICT_ALLOW;
	if (parse_here(&h->mem, h->max.nesting, c->answer.ptr, c->answer.len, &j) == 0 &&
	    js_type(j) == JS_OBJECT) {
		reason = js_get(j, "reason");
		if (js_type(reason) == JS_NONE || js_type(reason) == JS_NULL)
			verdict = VERDICT_ALLOW;
		else if (js_type(reason) == JS_STRING)
			verdict = VERDICT_DENY;
		*ret_reason = own_reason(h, j);
	}
	js_free(j);
	return verdict;
}

struct str ask_refusal(errand_host *h, const struct call *c, const char *after)
{
	return reason_about(h, c, "tool \"", after);
}
