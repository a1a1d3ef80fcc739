/* SPDX-License-Identifier: MIT */
/*
 * call.c - one tool call on its way: enter, body, result (spec 9.1, 9.8, 9.10).
 *
 *   errand_call_new -> [enter] -> frame of the body ... answer -> [body_done] -> on_result
 *                         |                                            ^
 *                         `-- refused, unknown, aborted, bad arguments-'
 *
 * What stands in brackets is a step that the queue runs. A stage that may suspend is a
 * frame: it owes one answer, and the answer queues the next step. Nothing recurses. The
 * tool is captured at entry and stays until the call has ended, whatever becomes of it.
 */
#include <string.h>

#include "base/err.h"
#include "core/internal.h"
#include "core/schema.h"

/* ---- the result ---- */

static void put_error(struct buf *out, const errand_error *e)
{
	size_t len;
	const char *message = errand_error_message(e, &len);
	const char *code = errand_error_code(e);
	const char *name = errand_error_name(e);

	(void)js_put_key(out, "error");
	(void)buf_addc(out, '{');
	(void)js_put_member(out, "message", message, len);
	if (code) {
		(void)js_put_member(out, "name", name, strlen(name));
		(void)js_put_member(out, "code", code, strlen(code));
	}
	(void)buf_addc(out, '}');
}

static void put_result(struct buf *out, const struct call *c)
{
	(void)buf_addf(out, "{\"isError\":%s,\"content\":", c->error ? "true" : "false");
	(void)buf_add(out, c->content.ptr, c->content.len);
	if (c->value.ptr) {
		(void)js_put_key(out, "value");
		(void)buf_add(out, c->value.ptr, c->value.len);
	}
	if (c->error)
		put_error(out, c->error);
	(void)buf_addc(out, '}');
}

/* A failed result shows nothing of what was consumed: it goes back before anybody sees the
 * result, so that a notice that it held back is due now (D6). */
static void settle_lease(errand_host *h, struct call *c)
{
	if (c->lease && (c->error || lease_is_empty(c->lease))) {
		lease_return(h, c->lease);
		c->lease = NULL;
	}
}

static void hand_over(errand_host *h, struct call *c, const struct buf *result)
{
	struct lease *l = c->lease;
	errand_lease id = l ? l->obj.id : 0;
	int fate;

	c->lease = NULL;
	fate = c->on_result(c->ud, h, c->obj.id, id, buf_text(result), result->len);
	/* The callback may have ended the lease itself, or disposed of what it held. */
	l = object_get(h, id, OBJ_LEASE);
	if (!l || fate == ERRAND_HELD)
		return;
	if (fate == ERRAND_DELIVERED)
		lease_commit(h, l);
	else
		lease_return(h, l);
}

void put_text_block(struct buf *out, const char *text, size_t len)
{
	(void)buf_adds(out, "[{\"type\":\"text\"");
	(void)js_put_key(out, "text");
	(void)js_put_string(out, text, len);
	(void)buf_adds(out, "}]");
}

static void error_content(errand_host *h, struct call *c)
{
	struct buf text, content;
	size_t len;
	const char *message = errand_error_message(c->error, &len);

	buf_init_mem(&text, MAX_ERROR_TEXT + 16, &h->mem);
	(void)buf_adds(&text, "Error: ");
	(void)buf_add(&text, message, len);
	buf_init_mem(&content, MAX_JSON_TEXT, &h->mem);
	put_text_block(&content, buf_text(&text), text.len);
	buf_release(&text);
	str_free(&h->mem, &c->content);
	str_free(&h->mem, &c->value);
	c->content = str_of_buf(&content);
}

/* ---- the last mile: the tool's own finaliser, on every outcome (spec 9.9) ---- */

int run_maker(errand_host *h, errand_make_fn make, void *ud, errand_str in, struct buf *ret,
	      errand_error **ret_err)
{
	struct errand_sink sink;
	errand_error *e = error_lend(&h->mem);
	enum phase before = phase_enter(h, PHASE_PURE);
	int rc;

	buf_init_mem(&sink.buf, MAX_JSON_TEXT, &h->mem);
	rc = make(ud, in.ptr, in.len, &sink, e);
	h->phase = before;
	if (rc >= 0 && buf_error(&sink.buf))
		rc = error_make(&e, &h->mem, ERRAND_ENOMEM, "out of memory");
	if (rc >= 0) {
		errand_error_free(e);
		*ret = sink.buf;
		return 0;
	}
	buf_release(&sink.buf);
	*ret_err = e;
	return rc;
}

/* Content blocks: an array, or nothing that we would pass on. */
static bool is_content(const char *text, size_t len)
{
	struct js *j = NULL;
	bool is_array = js_parse(text, len, &j, NULL) == 0 && js_type(j) == JS_ARRAY;

	js_free(j);
	return is_array;
}

static void fail_with(errand_host *h, struct call *c, errand_error *e)
{
	errand_error_free(c->error);
	c->error = e;
	error_content(h, c);
}

static void fail_text(errand_host *h, struct call *c, const char *message)
{
	errand_error *e;

	(void)error_make(&e, &h->mem, ERRAND_EREFUSED, "%s", message);
	fail_with(h, c, e);
}

static void run_finalize(errand_host *h, struct call *c)
{
	struct buf in, out;
	struct str in_text;
	struct js_span content;
	errand_error *e;
	int rc;

	buf_init_mem(&in, MAX_JSON_TEXT * 2, &h->mem);
	(void)buf_adds(&in, "{\"args\":");
	(void)(c->tree ? buf_add(&in, c->args.ptr, c->args.len) : buf_adds(&in, "null"));
	(void)buf_adds(&in, ",\"result\":");
	put_result(&in, c);
	(void)buf_addc(&in, '}');
	in_text = str_of_buf(&in);
	rc = run_maker(h, c->tool->finalize, c->tool->ud, str_view(&in_text), &out, &e);
	str_free(&h->mem, &in_text);
	if (rc != 0) {
		fail_with(h, c, e);
		return;
	}
	content = js_member((struct js_span){buf_text(&out), out.len}, "content");
	if (content.ptr && is_content(content.ptr, content.len)) {
		str_free(&h->mem, &c->content);
		c->content = str_dup(&h->mem, content.ptr, content.len);
	}
	buf_release(&out);
}

static void finish(errand_host *h, struct call *c)
{
	struct buf result;

	if (c->error)
		error_content(h, c);
	if (c->tool && c->tool->last_mile)
		c->tool->last_mile(h, c);
	if (c->tool && c->tool->finalize)
		run_finalize(h, c);
	buf_init_mem(&result, MAX_JSON_TEXT * 2, &h->mem);
	put_result(&result, c);
	if (buf_error(&result)) {
		buf_clear(&result);
		fail_text(h, c, "the result is too large");
		put_result(&result, c);
	}
	settle_lease(h, c);
	hand_over(h, c, &result);
	buf_release(&result);
	call_free(h, c);
}

static void refuse(errand_host *h, struct call *c, const char *message, const char *name,
		   const char *code)
{
	(void)error_make(&c->error, &h->mem, ERRAND_EREFUSED, "%s", message);
	if (code)
		error_coded(c->error, name, code);
	finish(h, c);
}

/* ---- the body ---- */

static bool take_value(errand_host *h, struct call *c)
{
	struct js *j = NULL;
	struct buf why;
	bool is_valid;
	int rc = js_parse(c->answer.ptr, c->answer.len, &j, NULL);

	buf_init_mem(&why, MAX_ERROR_TEXT, &h->mem);
	(void)buf_addf(&why, "tool \"%s\" returned invalid output: ", c->tool_name.ptr);
	if (rc != 0)
		(void)buf_adds(&why, "not lossless JSON");
	is_valid = rc == 0 && schema_check(c->tool->output, j, "value", "value", &why);
	js_free(j);
	if (is_valid) {
		c->value = str_take(&c->answer);
		buf_release(&why);
		return true;
	}
	(void)error_take(&c->error, ERRAND_EREFUSED, &why);
	error_coded(c->error, "ToolOutputError", "INVALID_TOOL_OUTPUT");
	return false;
}

static void render(errand_host *h, struct call *c)
{
	struct buf out;
	errand_error *e;

	if (!c->tool->render) {
		buf_init_mem(&out, MAX_JSON_TEXT, &h->mem);
		put_text_block(&out, c->value.ptr, c->value.len);
		c->content = str_of_buf(&out);
		return;
	}
	if (run_maker(h, c->tool->render, c->tool->ud, str_view(&c->value), &out, &e) !=
	    0) {
		fail_with(h, c, e);
		return;
	}
	if (is_content(buf_text(&out), out.len))
		c->content = str_of_buf(&out);
	else
		fail_text(h, c, "the tool rendered no content blocks");
	buf_release(&out);
}

static void body_done(errand_host *h, struct call *c)
{
	if (!c->error && take_value(h, c)) {
		if (c->signal.raised) {
			refuse(h, c, "tool call aborted", "AbortError", "ABORTED");
			return;
		}
		render(h, c);
	}
	finish(h, c);
}

void call_answer(errand_host *h, struct call *c, struct buf *json)
{
	if (buf_error(json)) {
		buf_release(json);
		(void)error_make(&c->error, &h->mem, ERRAND_ENOMEM,
				 "the result is too large");
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

static void enter_body(errand_host *h, struct call *c)
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

	c->frame.call = c;
	object_add(h, &c->frame.obj, OBJ_FRAME);
	c->tool->exec(c->tool->ud, h, c->frame.obj.id, &view);
}

/* ---- entry ---- */

/* What is no JSON is passed on as a string (spec 4.9.5), and so fails as no object. */
static void args_as_string(errand_host *h, struct call *c)
{
	struct buf b;

	buf_init_mem(&b, MAX_ARGS * 6 + 2, &h->mem);
	(void)js_put_string(&b, c->args.ptr, c->args.len);
	str_free(&h->mem, &c->args);
	c->args = str_of_buf(&b);
	(void)!js_parse(c->args.ptr, c->args.len, &c->tree, NULL);
}

/* D16: the tree is there only if the arguments are lossless JSON. */
static bool parse_args(errand_host *h, struct call *c)
{
	int rc;

	if (c->flags & ERRAND_ARGS_NOT_JSON)
		return false;
	rc = js_parse(c->args.ptr, c->args.len, &c->tree, NULL);
	if (rc == -ERR_FORMAT)
		args_as_string(h, c);
	if (rc == -ERR_LOSSY || js_has_negative_zero(c->tree)) {
		js_free(c->tree);
		c->tree = NULL;
	}
	return c->tree != NULL;
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

static void refuse_unknown(errand_host *h, struct call *c)
{
	(void)error_about(&c->error, &h->mem, ERRAND_EREFUSED, "unknown tool \"",
			  c->tool_name.ptr, c->tool_name.len, "\"");
	error_coded(c->error, "ToolNotFoundError", "UNKNOWN_TOOL");
	finish(h, c);
}

void call_enter(errand_host *h, struct call *c)
{
	c->tool = tool_find(h, c->agent, c->tool_name.ptr, c->tool_name.len);
	if (c->tool)
		list_add(&c->tool->calls, &c->in_tool);
	if (!parse_args(h, c)) {
		refuse(h, c,
		       "tool execution arguments must be losslessly JSON-serializable",
		       NULL, NULL);
	} else if (c->signal.raised) {
		refuse(h, c, "tool call aborted before dispatch", "AbortError",
		       "ABORTED_BEFORE_DISPATCH");
	} else if (!c->tool) {
		refuse_unknown(h, c);
	} else {
		if (c->tool->capture)
			c->tool->capture(h, c);
		if (check_args(h, c))
			enter_body(h, c);
		else
			finish(h, c);
	}
}
