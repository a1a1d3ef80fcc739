/* SPDX-License-Identifier: MIT */
/* trace_call.c - ops about tool calls: at once, or begun and asked for later. */
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* Rows count every result as delivered at once; the library takes back by itself what an
 * aborted call had read. */
static int on_result(void *ud, errand_host *h, errand_call c, errand_lease l,
		     const char *result_json, size_t len)
{
	struct thing *x = ud;
	json_t *error;

	(void)h;
	(void)c;
	(void)l;
	x->result = json_loadb(result_json, len, JSON_ALLOW_NUL, NULL);
	error = json_object_get(x->result, "error");
	if (error)
		json_object_set_new(x->result, "error", error_in_row(error));
	x->ended = x->trace->now;
	return ERRAND_DELIVERED;
}

static struct thing *begin(struct trace *t)
{
	char *args = json_dumps(step_get(t, "args"), JSON_ENCODE_ANY);
	struct thing *x = thing_new(t, A_CALL, "ref");
	struct errand_call_options o = {
		.size = sizeof(o),
		.agent = step_agent(t, "agent"),
		.tool = str_json(step_get(t, "tool")),
		.args = str_text(args),
		.on_result = on_result,
		.ud = x,
	};

	if (errand_call_new(t->host, &o, &x->id, NULL) != 0)
		trace_fail(t, "errand_call_new failed");
	trace_drain(t);
	free(args);
	return x;
}

static json_t *op_call(struct trace *t)
{
	const struct thing *x = begin(t);

	if (!x->result)
		trace_fail(t, "a call gave no result");
	return json_incref(x->result);
}

static json_t *op_call_async(struct trace *t)
{
	return json_pack("{s:b}", "pending", begin(t)->result == NULL);
}

static json_t *op_join(struct trace *t)
{
	const struct thing *x = thing_get(t, A_CALL, "ref");
	json_t *out;

	if (!x || !x->result)
		return json_pack("{s:b}", "pending", 1);
	out = json_copy(x->result);
	json_object_set_new(out, "elapsed_ms", json_integer(x->ended - x->started));
	return out;
}

static json_t *op_abort(struct trace *t)
{
	const struct thing *x = thing_get(t, A_CALL, "ref");
	int rc = x ? errand_call_abort(t->host, x->id) : 0;

	if (rc != 0 && rc != ERRAND_EGONE)
		trace_fail(t, "errand_call_abort failed");
	return json_object();
}

const struct op call_ops[] = {
	{"call", op_call, {"tool", "args", "agent"}},
	{"call_async", op_call_async, {"ref", "tool", "args", "agent"}},
	{"join", op_join, {"ref"}},
	{"abort", op_abort, {"ref"}},
	{NULL, NULL, {NULL}},
};
