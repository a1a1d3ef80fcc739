/* SPDX-License-Identifier: MIT */
/* trace_work.c - ops about tasks: their producers, their ends, and the clock. */
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* ---- the producer ---- */

static const char *option(const struct thing *x, const char *key)
{
	return json_string_value(json_object_get(x->in, key));
}

static int job_start(void *ud, errand_host *h, errand_task task, errand_error *e)
{
	struct thing *x = ud;
	const char *refusal = option(x, "run_throws");

	(void)h;
	trace_event(x->trace, json_pack("{s:s,s:s}", "ev", "run", "handle", x->name));
	x->id = task;
	if (!refusal)
		return 0;
	errand_error_set(e, NULL, NULL, refusal, ERRAND_NUL);
	return ERRAND_ECALLBACK;
}

static int job_cancel(void *ud, errand_host *h, errand_task task, const char *reason,
		      size_t len, errand_error *e)
{
	const struct thing *x = ud;
	const char *what = option(x, "on_cancel"), *message = option(x, "cancel_error");
	errand_str detail = str_json(json_object_get(x->in, "cancel_detail"));

	trace_event(x->trace,
		    json_pack("{s:s,s:s,s:o}", "ev", "cancel", "handle", x->name, "reason",
			      reason ? json_stringn(reason, len) : json_null()));
	if (what && strcmp(what, "throw") == 0) {
		errand_error_set(e, NULL, NULL, message ? message : "cancel boom",
				 ERRAND_NUL);
		return ERRAND_ECALLBACK;
	}
	if (what && strcmp(what, "settle") == 0)
		(void)errand_settle(h, task, ERRAND_KILLED, detail.ptr, detail.len, NULL,
				    0);
	return 0;
}

static int job_read(void *ud, errand_task task, uint64_t from, errand_sink *out,
		    uint64_t *ret_next, errand_error *e)
{
	const struct thing *x = ud;

	(void)task;
	(void)e;
	(void)errand_sink_write(out, x->text + from, x->len - from);
	*ret_next = x->len;
	return 0;
}

static void check_mode(struct trace *t)
{
	const char *mode = step_text(t, "mode"), *on_cancel = step_text(t, "on_cancel");

	if (mode && strcmp(mode, "stream") != 0 && strcmp(mode, "final") != 0)
		trace_fail(t, "unknown mode");
	if (on_cancel && strcmp(on_cancel, "settle") != 0 &&
	    strcmp(on_cancel, "throw") != 0 && strcmp(on_cancel, "ignore") != 0)
		trace_fail(t, "unknown on_cancel");
}

static errand_str step_str(const struct trace *t, const char *key, const char *if_none)
{
	const json_t *j = step_get(t, key);

	return json_is_string(j) ? str_json(j) : str_text(if_none);
}

static json_t *op_start(struct trace *t)
{
	const char *mode = step_text(t, "mode");
	const json_t *limit = step_get(t, "limit");
	char *limit_text = limit ? json_dumps(limit, JSON_ENCODE_ANY) : NULL;
	struct thing *x = thing_new(t, A_JOB, "handle");
	struct errand_task_spec s = {
		.size = sizeof(s),
		.kind = step_str(t, "kind", "bash"),
		.label = step_str(t, "label", "sleep 60"),
		.limit_json = str_text(json_is_null(limit) ? NULL : limit_text),
		.owner = step_agent(t, "owner"),
		.producer = {.size = sizeof(s.producer),
			     .start = job_start,
			     .cancel = job_cancel,
			     .ud = x},
	};
	errand_error *e = NULL;
	errand_text *id = NULL;
	errand_task task;
	json_t *out;
	int rc;

	check_mode(t);
	if (mode && strcmp(mode, "stream") == 0)
		s.producer.read = job_read;
	rc = errand_task_start(t->host, &s, &task, &id, &e);
	out = outcome(rc, e,
		      rc < 0 ? NULL : json_pack("{s:s}", "id", errand_text_data(id, NULL)));
	x->id = rc < 0 ? 0 : task;
	if (id)
		x->public_id = strdup(errand_text_data(id, NULL));
	errand_text_free(id);
	free(limit_text);
	return out;
}

errand_task trace_task(const struct trace *t, const char *id)
{
	for (const struct thing *x = t->things; id && x; x = x->next)
		if (x->public_id && strcmp(x->public_id, id) == 0)
			return x->id;
	return 0;
}

static json_t *op_emit(struct trace *t)
{
	struct thing *x = thing_get(t, A_JOB, "handle");
	errand_str text = str_json(step_get(t, "text"));

	if (x) {
		x->text = realloc(x->text, x->len + text.len + 1);
		memcpy(x->text + x->len, text.ptr, text.len);
		x->len += text.len;
	}
	return json_object();
}

/* ---- ends ---- */

static int status_of(struct trace *t, const char *word)
{
	static const char *const words[] = {"completed", "killed", "failed"};

	for (int i = 0; word && i < 3; i++)
		if (strcmp(words[i], word) == 0)
			return i + ERRAND_COMPLETED;
	trace_fail(t, "unknown status");
	return ERRAND_FAILED;
}

/* The producer says it again where it is told to: only the first counts. */
static void settle(struct trace *t)
{
	const json_t *o = step_get(t, "outcome");
	const struct thing *x = thing_get(t, A_JOB, "handle");
	errand_str detail = str_json(json_object_get(o, "detail"));
	errand_str output = str_json(json_object_get(o, "output"));
	int rc, status = status_of(t, json_string_value(json_object_get(o, "status")));

	if (!x)
		return;
	rc = errand_settle(t->host, x->id, status, detail.ptr, detail.len, output.ptr,
			   output.len);
	if (rc != 0 && rc != ERRAND_EGONE)
		trace_fail(t, "errand_settle failed");
}

static json_t *op_settle(struct trace *t)
{
	settle(t);
	return json_object();
}

static json_t *op_reject(struct trace *t)
{
	const char *kind = step_text(t, "error_kind"), *text = step_text(t, "error");
	const struct thing *x = thing_get(t, A_JOB, "handle");
	errand_error *why;
	int rc;

	if (kind && strcmp(kind, "string") != 0 && strcmp(kind, "error") != 0)
		trace_fail(t, "unknown kind of error");
	why = errand_error_new(kind && strcmp(kind, "string") == 0 ? "" : NULL, NULL, text,
			       ERRAND_NUL);
	rc = x ? errand_settle_broken(t->host, x->id, why) : 0;
	if (rc != 0 && rc != ERRAND_EGONE)
		trace_fail(t, "errand_settle_broken failed");
	errand_error_free(why);
	return json_object();
}

/* The end is queued, then the call is aborted, before anything runs (spec 14.2). */
static json_t *op_settle_then_abort(struct trace *t)
{
	const struct thing *call = thing_get(t, A_CALL, "ref");

	settle(t);
	if (call)
		(void)errand_call_abort(t->host, call->id);
	return json_object();
}

/* ---- the clock ---- */

/* From deadline to deadline: what is due happens at its own time. */
static json_t *op_advance(struct trace *t)
{
	int64_t until = t->now + json_integer_value(step_get(t, "ms"));

	while (t->now < until) {
		int64_t due = errand_next_deadline(t->host);

		t->now = due > until ? until : due > t->now ? due : t->now + 1;
		trace_drain(t);
	}
	return json_object();
}

/* ---- the registry, as programs see it ---- */

static json_t *reg_read(struct trace *t, errand_str id, errand_agent caller)
{
	errand_error *e = NULL;
	errand_text *text = NULL;
	errand_lease lease = 0;
	int rc = errand_read(t->host, id.ptr, id.len, caller, &lease, &text, &e);

	if (lease)
		(void)errand_lease_commit(t->host, lease);
	return outcome_json(rc, e, "read", text);
}

static json_t *reg_kill(struct trace *t, errand_str id, errand_agent caller)
{
	errand_str reason = str_json(step_get(t, "reason"));
	errand_error *e = NULL;
	int requested = 0;
	int rc = errand_kill(t->host, id.ptr, id.len, caller, reason.ptr, reason.len,
			     &requested, &e);

	return outcome(
		rc, e,
		json_pack("{s:s}", "kill", requested ? "requested" : "already-finished"));
}

static void on_waited(void *ud, errand_host *h, errand_lease l, const char *snapshot_json,
		      size_t len, const errand_error *e)
{
	struct thing *x = ud;

	if (e)
		x->result = json_pack("{s:s}", "threw", errand_error_message(e, NULL));
	else
		x->result = json_pack("{s:o}", "wait",
				      json_loadb(snapshot_json, len, JSON_ALLOW_NUL, NULL));
	if (l)
		(void)errand_lease_commit(h, l);
}

static char *wait_timeout(const struct trace *t)
{
	const json_t *ms = step_get(t, "timeout_ms");

	/* A number that JSON cannot carry is given as null, as JSON would write it. */
	if (!ms || json_is_object(ms))
		return strdup("null");
	return json_dumps(ms, JSON_ENCODE_ANY);
}

static json_t *reg_wait(struct trace *t, errand_str id, errand_agent caller)
{
	char *timeout = wait_timeout(t);
	struct thing *x = thing_new(t, A_CALL, "ref");
	errand_error *e = NULL;
	int rc = errand_wait(t->host, id.ptr, id.len, caller, timeout, ERRAND_NUL, 0,
			     on_waited, x, NULL, &e);

	free(timeout);
	if (rc < 0)
		return outcome(rc, e, NULL);
	trace_drain(t);
	return x->result ? json_incref(x->result) : json_pack("{s:b}", "pending", 1);
}

static json_t *op_reg(struct trace *t)
{
	const char *fn = step_text(t, "fn");
	errand_agent caller = step_agent(t, "agent");
	errand_str id = str_json(step_get(t, "id"));
	errand_error *e = NULL;
	errand_text *text = NULL;
	int rc;

	if (fn && strcmp(fn, "read") == 0)
		return reg_read(t, id, caller);
	if (fn && strcmp(fn, "kill") == 0)
		return reg_kill(t, id, caller);
	if (fn && strcmp(fn, "wait") == 0)
		return reg_wait(t, id, caller);
	if (fn && strcmp(fn, "list") == 0) {
		rc = errand_list(t->host, caller, &text, &e);
	} else if (fn && strcmp(fn, "get") == 0) {
		rc = errand_get(t->host, id.ptr, id.len, caller, &text, &e);
	} else {
		trace_fail(t, "unknown function of the registry");
		return NULL;
	}
	return outcome_json(rc, e, fn, text);
}

const struct op work_ops[] = {
	{"start",
	 op_start,
	 {"handle", "kind", "label", "owner", "limit", "mode", "on_cancel", "cancel_detail",
	  "cancel_error", "run_throws"}},
	{"emit", op_emit, {"handle", "text"}},
	{"settle", op_settle, {"handle", "outcome"}},
	{"settle_nowait", op_settle, {"handle", "outcome"}},
	{"settle_then_abort", op_settle_then_abort, {"handle", "outcome", "ref"}},
	{"reject", op_reject, {"handle", "error", "error_kind"}},
	{"advance", op_advance, {"ms"}},
	{"reg", op_reg, {"fn", "id", "agent", "reason", "timeout_ms", "ref"}},
	{NULL, NULL, {NULL}},
};
