/* SPDX-License-Identifier: MIT */
/*
 * call.c - one tool call on its way through its stages (spec 9.1).
 *
 *   entry -> PRE -+- allow ---------------> GUARD -> AROUND( body ) -> render -> POST -> finish
 *     |           `- ask -> APPROVAL --------^  |          |                      ^        ^
 *     |                        |                |          |                      |        |
 *     |                        `--- denied -----+----------+- the body failed ----'        |
 *     `-- no lossless arguments, aborted -------+----------+- thrown, no valid value ------'
 *
 * Each stage is a chain of frames (frame.c) that leaves an answer in c->answer or what was
 * thrown in c->thrown. The tool is captured at entry and stays until the call has ended,
 * whatever becomes of it.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/call.h"
#include "core/decide.h"
#include "core/host.h"
#include "core/outcome.h"
#include "core/schema.h"
#include "core/signal.h"
#include "core/tool.h"

#define NOT_DISPATCHED "tool call aborted before dispatch"

static void default_answer(errand_host *h, struct call *c, const char *text)
{
	str_free(&h->mem, &c->answer);
	c->answer = str_dup(&h->mem, text, strlen(text));
	chain_unwind(h, c);
}

/* What was thrown by a policy is not for post-execute to see (spec 9.5). */
static bool was_thrown(errand_host *h, struct call *c)
{
	errand_error *e = c->thrown;

	if (!e)
		return false;
	c->thrown = NULL;
	outcome_fail(h, c, e);
	outcome_finish(h, c);
	return true;
}

/* ---- post-execute ---- */

static void end_post(errand_host *h, struct call *c)
{
	default_answer(h, c, DEFAULT_POST);
}

static void post_done(errand_host *h, struct call *c)
{
	if (was_thrown(h, c))
		return;
	post_apply(h, c);
	outcome_finish(h, c);
}

static void post(errand_host *h, struct call *c)
{
	struct buf result;

	if (!has_policies(h, c, ERRAND_STAGE_POST)) {
		outcome_finish(h, c);
		return;
	}
	buf_init_mem(&result, SIZE_MAX / 4, &h->mem);
	outcome_put(&result, c);
	str_free(&h->mem, &c->answer);
	c->answer = str_of_buf(&result);
	chain_run(h, c, ERRAND_STAGE_POST, end_post, post_done);
}

static void fail_to_post(errand_host *h, struct call *c, const char *message,
			 const char *name, const char *code)
{
	outcome_fail_text(h, c, message, name, code);
	post(h, c);
}

/* ---- the body, around it ---- */

static void body_done(errand_host *h, struct call *c)
{
	c->is_raw = true;
	c->stage = ERRAND_STAGE_AROUND;
	timer_clear(h, &c->timer);
	if (c->timed_out) {
		errand_error_free(c->error);
		str_free(&h->mem, &c->answer);
		(void)error_make(&c->error, &h->mem, ERRAND_EREFUSED,
				 "tool call timed out after %lldms",
				 (long long)c->tool->timeout_ms);
		error_coded(c->error, "ToolTimeoutError", "TOOL_TIMEOUT");
	}
	chain_unwind(h, c);
}

void call_answer(errand_host *h, struct call *c, struct buf *json)
{
	str_free(&h->mem, &c->answer);
	if (buf_error(json)) {
		(void)error_make(&c->error, &h->mem, ERRAND_ENOMEM, "%s",
				 why_no_result(buf_error(json)));
		buf_release(json);
	} else {
		c->answer = str_of_buf(json);
	}
	object_del(h, &c->frame.obj);
	call_queue(h, c, body_done);
}

void call_fail(errand_host *h, struct call *c, errand_error *e)
{
	object_del(h, &c->frame.obj);
	c->error = e;
	call_queue(h, c, body_done);
}

/* The body is told, and waited for all the same (spec 9.10, 9.12). */
void call_timeout(errand_host *h, struct timer *timer)
{
	struct call *c = list_entry(timer, struct call, timer);

	if (c->signal.raised)
		return;
	c->timed_out = true;
	signal_raise(h, &c->signal);
}

static void run_body(errand_host *h, struct call *c)
{
	struct errand_frame_view view = {
		.size = sizeof(view),
		.stage = ERRAND_STAGE_BODY,
		.call = c->obj.id,
		.agent = c->agent ? c->agent->number : 0,
		.signal = c->signal.obj.id,
		.tool = str_view(&c->tool_name),
		.args_json = str_view(&c->args),
	};
	int64_t timeout_ms = c->tool->timeout_ms;

	c->stage = ERRAND_STAGE_BODY;
	frame_open(h, &c->frame, c);
	if (timeout_ms > 0)
		timer_set(h, &c->timer,
			  h->mono_ms > INT64_MAX - timeout_ms ? INT64_MAX
							      : h->mono_ms + timeout_ms);
	c->tool->exec(c->tool->ud, h, c->frame.obj.id, &view);
}

static bool check_args(errand_host *h, struct call *c)
{
	struct buf why;

	buf_init_mem(&why, MAX_ERROR_TEXT, &h->mem);
	(void)buf_adds(&why, "invalid arguments: ");
	if (schema_check(c->tool->params, c->tree, "arguments", "", &why)) {
		buf_release(&why);
		return true;
	}
	(void)error_take(&c->error, ERRAND_EREFUSED, &why);
	error_coded(c->error, "ToolArgsError", "INVALID_ARGS");
	return false;
}

static void enter_body(errand_host *h, struct call *c)
{
	str_free(&h->mem, &c->answer);
	if (c->signal.raised) {
		(void)error_make(&c->error, &h->mem, ERRAND_EREFUSED, NOT_DISPATCHED);
		error_coded(c->error, "AbortError", "ABORTED_BEFORE_DISPATCH");
		body_done(h, c);
	} else if (check_args(h, c)) {
		run_body(h, c);
	} else {
		body_done(h, c);
	}
}

/* A value that is valid, and its rendering; else what is wrong skips post (spec 9.6). */
static void succeed(errand_host *h, struct call *c, struct js *tree, bool is_member)
{
	if (!outcome_take_value(h, c, tree, is_member)) {
		outcome_finish(h, c);
	} else if (call_is_aborted(c)) {
		fail_to_post(h, c, "tool call aborted", "AbortError", "ABORTED");
	} else if (outcome_render(h, c)) {
		post(h, c);
	} else {
		outcome_finish(h, c);
	}
}

/* A listener's own answer, or what it passed on. */
static void take_result(errand_host *h, struct call *c)
{
	struct js *j = outcome_parse(h, c, true);

	if (!js_is_true(js_get(j, "isError"))) {
		succeed(h, c, j, true);
		return;
	}
	outcome_take_error(h, c, j);
	js_free(j);
	post(h, c);
}

static void around_done(errand_host *h, struct call *c)
{
	errand_error *e = c->error;
	bool is_raw;

	chain_unwrap(h, c);
	is_raw = c->is_raw;
	c->is_raw = false;
	if (was_thrown(h, c))
		return;
	if (!is_raw) {
		take_result(h, c);
	} else if (e) {
		c->error = NULL;
		outcome_fail(h, c, e);
		post(h, c);
	} else {
		succeed(h, c, outcome_parse(h, c, false), false);
	}
}

static void dispatch(errand_host *h, struct call *c)
{
	errand_error *e = NULL;

	str_free(&h->mem, &c->answer);
	if (c->signal.raised) {
		fail_to_post(h, c, NOT_DISPATCHED, "AbortError", "ABORTED_BEFORE_DISPATCH");
		return;
	}
	if (c->tool) {
		chain_run(h, c, ERRAND_STAGE_AROUND, enter_body, around_done);
		return;
	}
	(void)error_about(&e, &h->mem, ERRAND_EREFUSED, "unknown tool \"", c->tool_name.ptr,
			  c->tool_name.len, "\"");
	error_coded(e, "ToolNotFoundError", "UNKNOWN_TOOL");
	outcome_fail(h, c, e);
	post(h, c);
}

/* ---- what may refuse it ---- */

static void deny(errand_host *h, struct call *c, const struct str *reason)
{
	errand_error *e = NULL;

	(void)error_about(&e, &h->mem, ERRAND_EREFUSED, "", reason->ptr ? reason->ptr : "",
			  reason->len, "");
	outcome_fail(h, c, e);
	post(h, c);
}

static void refuse_broken(errand_host *h, struct call *c)
{
	static const char *const words[] = {
		[ERRAND_STAGE_PRE] = "tools/pre-execute answered with no decision",
		[ERRAND_STAGE_APPROVAL] = "the approval channel answered with no decision",
		[ERRAND_STAGE_GUARD] = "a guard answered with no reason",
	};

	outcome_fail_text(h, c, words[c->stage], NULL, NULL);
	outcome_finish(h, c);
}

static void end_guard(errand_host *h, struct call *c)
{
	default_answer(h, c, DEFAULT_GUARD);
}

static void guard_done(errand_host *h, struct call *c)
{
	struct str reason = {NULL, 0};
	enum verdict verdict;

	if (was_thrown(h, c))
		return;
	verdict = decide_guard(h, c, &reason);
	if (verdict == VERDICT_ALLOW)
		dispatch(h, c);
	else if (verdict == VERDICT_DENY)
		deny(h, c, &reason);
	else
		refuse_broken(h, c);
	str_free(&h->mem, &reason);
}

static void guard(errand_host *h, struct call *c)
{
	str_free(&h->mem, &c->answer);
	if (has_policies(h, c, ERRAND_STAGE_GUARD))
		chain_run(h, c, ERRAND_STAGE_GUARD, end_guard, guard_done);
	else
		dispatch(h, c);
}

static void end_approval(errand_host *h, struct call *c)
{
	default_answer(h, c, DEFAULT_APPROVAL);
}

static void approval_done(errand_host *h, struct call *c)
{
	struct str reason = {NULL, 0};
	enum verdict verdict;

	if (was_thrown(h, c))
		return;
	verdict = decide_approval(h, c, &reason);
	if (verdict == VERDICT_ALLOW)
		guard(h, c);
	else if (verdict == VERDICT_DENY)
		deny(h, c, &reason);
	else
		refuse_broken(h, c);
	str_free(&h->mem, &reason);
}

/* The channel is shown the decision that asked for it. */
static void ask(errand_host *h, struct call *c, struct str *reason)
{
	bool has_channel = has_policies(h, c, ERRAND_STAGE_APPROVAL);

	if (has_channel && c->agent) {
		chain_run(h, c, ERRAND_STAGE_APPROVAL, end_approval, approval_done);
		return;
	}
	if (has_channel) {
		str_free(&h->mem, reason);
		*reason = ask_refusal(h, c,
				      "\" requires approval, but the call has no agent to "
				      "route it through");
	} else if (!reason->ptr) {
		*reason = ask_refusal(h, c, "\" requires approval (not yet supported)");
	}
	deny(h, c, reason);
}

static void end_pre(errand_host *h, struct call *c)
{
	default_answer(h, c, DEFAULT_PRE);
}

static void pre_done(errand_host *h, struct call *c)
{
	struct str reason = {NULL, 0};
	enum verdict verdict;

	if (was_thrown(h, c))
		return;
	verdict = decide_pre(h, c, &reason);
	if (verdict == VERDICT_ALLOW)
		guard(h, c);
	else if (verdict == VERDICT_DENY)
		deny(h, c, &reason);
	else if (verdict == VERDICT_ASK)
		ask(h, c, &reason);
	else
		refuse_broken(h, c);
	str_free(&h->mem, &reason);
}

/* ---- entry ---- */

/* What is no JSON is passed on as a string (spec 4.9.5), and so fails as no object. */
static void args_as_string(errand_host *h, struct call *c)
{
	struct buf b;

	buf_init_mem(&b, h->max.args * 6 + 2, &h->mem);
	(void)js_put_string(&b, c->args.ptr, c->args.len);
	str_free(&h->mem, &c->args);
	c->args = str_of_buf(&b);
	(void)!parse_here(&h->mem, h->max.nesting, c->args.ptr, c->args.len, &c->tree);
}

/* D16: the tree is there only if the arguments are lossless JSON. NULL, or why it is not, which
 * may be in @err. */
static const char *parse_args(errand_host *h, struct call *c, struct err *err)
{
	int rc = -ERR_LOSSY;

	if (!(c->flags & ERRAND_ARGS_NOT_JSON))
		rc = js_parse_within(c->args.ptr, c->args.len, h->max.nesting, &c->tree,
				     err);
	if (rc == -ERR_NOMEM)
		return "out of memory";
	if (rc == -ERR_LIMIT || rc == -ERR_ARG) {
		(void)err_wrap(err, "arguments");
		return err->msg;
	}
	if (rc == -ERR_FORMAT)
		args_as_string(h, c);
	if (rc == -ERR_LOSSY || js_has_negative_zero(c->tree)) {
		js_free(c->tree);
		c->tree = NULL;
		return "tool execution arguments must be losslessly JSON-serializable";
	}
	return NULL;
}

static void refuse(errand_host *h, struct call *c, const char *message, const char *name,
		   const char *code)
{
	outcome_fail_text(h, c, message, name, code);
	outcome_finish(h, c);
}

void call_enter(errand_host *h, struct call *c)
{
	struct err err = {0};
	const char *why;

	c->tool = tool_find(h, c->agent, c->tool_name.ptr, c->tool_name.len);
	if (c->tool)
		list_add(&c->tool->calls, &c->in_tool);
	why = parse_args(h, c, &err);
	if (why)
		refuse(h, c, why, NULL, NULL);
	else if (c->signal.raised)
		refuse(h, c, NOT_DISPATCHED, "AbortError", "ABORTED_BEFORE_DISPATCH");
	else
		chain_run(h, c, ERRAND_STAGE_PRE, end_pre, pre_done);
}
