/* SPDX-License-Identifier: MIT */
/*
 * outcome.c - what a call comes to: a value and its rendering, or an error (spec 9.6, 9.8, 9.9,
 * 9.11), and how it is handed over.
 *
 * The value is parsed once: what validates it, renders it and bounds its text works on the
 * same tree.
 */
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/call.h"
#include "core/host.h"
#include "core/lease.h"
#include "core/outcome.h"
#include "core/reg.h"
#include "core/schema.h"
#include "core/tool.h"

/* ---- as JSON ---- */

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

void outcome_put(struct buf *out, const struct call *c)
{
	(void)buf_adds(out, c->error ? "{\"isError\":true,\"content\":"
				     : "{\"isError\":false,\"content\":");
	(void)buf_add(out, c->content.ptr, c->content.len);
	if (c->value.ptr) {
		(void)js_put_key(out, "value");
		(void)buf_add(out, c->value.ptr, c->value.len);
	}
	if (c->error)
		put_error(out, c->error);
	(void)buf_addc(out, '}');
}

void put_text_block(struct buf *out, const char *text, size_t len)
{
	(void)buf_adds(out, "[{\"type\":\"text\"");
	(void)js_put_key(out, "text");
	(void)js_put_string(out, text, len);
	(void)buf_adds(out, "}]");
}

/* ---- failure ---- */

static void forget_value(errand_host *h, struct call *c)
{
	str_free(&h->mem, &c->value);
	js_free(c->value_tree);
	c->value_tree = NULL;
	c->value_node = NULL;
}

void outcome_forget(errand_host *h, struct call *c)
{
	forget_value(h, c);
	str_free(&h->mem, &c->content);
	errand_error_free(c->error);
	c->error = NULL;
}

void outcome_fail(errand_host *h, struct call *c, errand_error *e)
{
	struct buf text, content;
	size_t len;
	const char *message = errand_error_message(e, &len);

	outcome_forget(h, c);
	c->error = e;
	buf_init_mem(&text, MAX_ERROR_TEXT + 16, &h->mem);
	(void)buf_adds(&text, "Error: ");
	(void)buf_add(&text, message, len);
	buf_init_mem(&content, h->max.json, &h->mem);
	put_text_block(&content, buf_text(&text), text.len);
	buf_release(&text);
	c->content = str_of_buf(&content);
}

void outcome_fail_text(errand_host *h, struct call *c, const char *message,
		       const char *name, const char *code)
{
	errand_error *e = NULL;

	(void)error_make(&e, &h->mem, ERRAND_EREFUSED, "%s", message);
	if (code)
		error_coded(e, name, code);
	outcome_fail(h, c, e);
}

static const char *member(const struct js *error, const char *key, size_t *ret_len)
{
	const struct js *at = js_get(error, key);

	return js_string(at ? at : js_get(js_get(error, "info"), key), ret_len);
}

/* An error result of a policy is kept as it is (spec 9.6); what it lacks is made up. */
void outcome_take_error(errand_host *h, struct call *c, const struct js *result)
{
	const struct js *error = js_get(result, "error");
	struct js_span content = js_member((struct js_span){c->answer.ptr, c->answer.len},
					   "content");
	size_t len;
	const char *message = js_string(js_get(error, "message"), &len);
	const char *code = member(error, "code", NULL), *name = member(error, "name", NULL);
	errand_error *e;

	if (!message) {
		message = "tool call failed";
		len = strlen(message);
	}
	(void)error_about(&e, &h->mem, ERRAND_EREFUSED, "", message, len, "");
	if (code)
		error_coded(e, name ? name : "Error", code);
	outcome_fail(h, c, e);
	if (js_type(js_get(result, "content")) != JS_ARRAY)
		return;
	str_free(&h->mem, &c->content);
	c->content = str_dup(&h->mem, content.ptr, content.len);
}

/* ---- success ---- */

static void fail_output(errand_host *h, struct call *c, const char *violations)
{
	errand_error *e = NULL;
	struct buf why;

	buf_init_mem(&why, MAX_ERROR_TEXT * 3, &h->mem);
	(void)buf_adds(&why, "tool \"");
	(void)buf_add(&why, c->tool_name.ptr, c->tool_name.len);
	(void)buf_adds(&why, "\" returned invalid output: ");
	(void)buf_adds(&why, violations);
	(void)error_take(&e, ERRAND_EREFUSED, &why);
	error_coded(e, "ToolOutputError", "INVALID_TOOL_OUTPUT");
	outcome_fail(h, c, e);
}

static struct str value_text(errand_host *h, struct call *c, bool is_member)
{
	struct js_span span;

	if (!is_member)
		return str_take(&c->answer);
	span = js_member((struct js_span){c->answer.ptr, c->answer.len}, "value");
	return str_dup(&h->mem, span.ptr, span.len);
}

/* What our own bodies made is valid as it is. */
static bool is_valid(const struct call *c, const struct js *node, bool is_member,
		     struct buf *why)
{
	return (c->tool->put_text && !is_member) ||
	       schema_check(c->tool->output, node, "value", "value", why);
}

bool outcome_take_value(errand_host *h, struct call *c, struct js *tree, bool is_member)
{
	const struct js *node = is_member ? js_get(tree, "value") : tree;
	struct buf why;

	buf_init_mem(&why, MAX_ERROR_TEXT * 2, &h->mem);
	if (tree && is_valid(c, node, is_member, &why) && node) {
		buf_release(&why);
		forget_value(h, c);
		c->value_tree = tree;
		c->value_node = node;
		c->value = value_text(h, c, is_member);
		return true;
	}
	fail_output(h, c, why.len ? buf_text(&why) : "not lossless JSON");
	buf_release(&why);
	js_free(tree);
	return false;
}

struct js *outcome_parse(const errand_host *h, const struct call *c, bool is_wrapped)
{
	struct js *tree = NULL;

	if (parse_here(&h->mem, h->max.nesting + is_wrapped, c->answer.ptr, c->answer.len,
		       &tree) == 0)
		return tree;
	js_free(tree);
	return NULL;
}

/* Content blocks: an array, or nothing that we would pass on. */
static bool is_content(const errand_host *h, const char *text, size_t len)
{
	struct js *j = NULL;
	bool is_array = parse_here(&h->mem, h->max.nesting, text, len, &j) == 0 &&
			js_type(j) == JS_ARRAY;

	js_free(j);
	return is_array;
}

int run_maker(errand_host *h, errand_make_fn make, void *ud, errand_str in, struct buf *ret,
	      errand_error **ret_err)
{
	struct errand_sink sink;
	errand_error *e = error_lend(&h->mem);
	enum phase before = phase_enter(h, PHASE_PURE);
	int rc;

	buf_init_try(&sink.buf, h->max.json, &h->mem);
	rc = make(ud, in.ptr, in.len, &sink, e) < 0 ? ERRAND_ECALLBACK : 0;
	h->phase = before;
	if (buf_error(&sink.buf)) {
		errand_error_free(e);
		rc = error_no_memory(&e, &h->mem);
	}
	if (rc == 0) {
		errand_error_free(e);
		clean_json(&sink.buf);
		*ret = sink.buf;
		return 0;
	}
	buf_release(&sink.buf);
	*ret_err = e;
	return rc;
}

const char *why_no_result(int buf_error)
{
	return buf_error == -ERR_NOMEM ? "out of memory" : "the result is too large";
}

static bool render_text(errand_host *h, struct call *c)
{
	struct buf text, content;
	int error;

	buf_init_try(&text, h->max.json, &h->mem);
	if (c->tool->put_text)
		c->tool->put_text(&text, c->value_node);
	else
		(void)buf_add(&text, c->value.ptr, c->value.len);
	buf_init_try(&content, h->max.json, &h->mem);
	put_text_block(&content, buf_text(&text), text.len);
	error = buf_error(&text) ? buf_error(&text) : buf_error(&content);
	buf_release(&text);
	if (error == 0) {
		str_free(&h->mem, &c->content);
		c->content = str_of_buf(&content);
		return true;
	}
	buf_release(&content);
	outcome_fail_text(h, c, why_no_result(error), NULL, NULL);
	return false;
}

bool outcome_render(errand_host *h, struct call *c)
{
	struct buf out;
	errand_error *e = NULL;

	if (!c->tool->render)
		return render_text(h, c);
	if (run_maker(h, c->tool->render, c->tool->ud, str_view(&c->value), &out, &e) !=
	    0) {
		outcome_fail(h, c, e);
		return false;
	}
	if (!is_content(h, buf_text(&out), out.len)) {
		buf_release(&out);
		outcome_fail_text(h, c, "the tool rendered no content blocks", NULL, NULL);
		return false;
	}
	str_free(&h->mem, &c->content);
	c->content = str_of_buf(&out);
	return true;
}

/* ---- the last mile: the tool's own finaliser, on every outcome (spec 9.9) ---- */

static void run_finalize(errand_host *h, struct call *c)
{
	struct buf in, out;
	struct str in_text;
	struct js_span content;
	errand_error *e;
	int rc;

	buf_init_mem(&in, SIZE_MAX / 4, &h->mem);
	(void)buf_adds(&in, "{\"args\":");
	(void)(c->tree ? buf_add(&in, c->args.ptr, c->args.len) : buf_adds(&in, "null"));
	(void)buf_adds(&in, ",\"result\":");
	outcome_put(&in, c);
	(void)buf_addc(&in, '}');
	in_text = str_of_buf(&in);
	rc = run_maker(h, c->tool->finalize, c->tool->ud, str_view(&in_text), &out, &e);
	str_free(&h->mem, &in_text);
	if (rc != 0) {
		outcome_fail(h, c, e);
		return;
	}
	content = js_member((struct js_span){buf_text(&out), out.len}, "content");
	if (content.ptr && is_content(h, content.ptr, content.len)) {
		str_free(&h->mem, &c->content);
		c->content = str_dup(&h->mem, content.ptr, content.len);
	}
	buf_release(&out);
}

/* ---- handing it over ---- */

/* A failed result shows nothing of what was consumed: it goes back before anybody sees the
 * result, so that a notice that it held back is due now (D6). */
static void settle_lease(errand_host *h, struct call *c)
{
	if (c->lease && (c->error || lease_is_empty(c->lease))) {
		lease_return(h, c->lease);
		c->lease = NULL;
	}
}

static void tell_observers(errand_host *h, const struct call *c, const struct buf *result)
{
	struct dispatch *d = dispatch_new(h, ERRAND_ON_RESULT, c->agent);
	struct buf b;

	if (!d)
		return;
	buf_init_mem(&b, h->max.json * 3, &h->mem);
	(void)buf_adds(&b, "{\"call\":");
	(void)js_put_int(&b, (int64_t)c->obj.id);
	(void)js_put_member(&b, "tool", c->tool_name.ptr, c->tool_name.len);
	(void)js_put_key(&b, "result");
	(void)buf_add(&b, result->data, result->len);
	(void)buf_addc(&b, '}');
	d->json = str_of_buf(&b);
	d->subject = str_dup(&h->mem, c->tool_name.ptr, c->tool_name.len);
	dispatch_now(h, d);
}

static void hand_over(errand_host *h, struct call *c, const struct buf *result)
{
	struct lease *l = c->lease;
	errand_lease id = l ? lease_hand_out(h, l) : 0;
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

bool call_is_aborted(const struct call *c)
{
	return c->signal.raised && !c->timed_out;
}

void outcome_finish(errand_host *h, struct call *c)
{
	struct buf result;

	if (!c->error && call_is_aborted(c))
		outcome_fail_text(h, c, "tool call aborted", "AbortError", "ABORTED");
	if (c->tool && c->tool->last_mile)
		c->tool->last_mile(h, c);
	if (c->tool && c->tool->finalize)
		run_finalize(h, c);
	buf_init_try(&result, h->max.json * 2, &h->mem);
	outcome_put(&result, c);
	if (buf_error(&result)) {
		outcome_fail_text(h, c, why_no_result(buf_error(&result)), NULL, NULL);
		buf_release(&result);
		buf_init_mem(&result, h->max.json * 2, &h->mem);
		outcome_put(&result, c);
	}
	settle_lease(h, c);
	outcome_forget(h, c); /* a large one is not to be there twice */
	tell_observers(h, c, &result);
	hand_over(h, c, &result);
	buf_release(&result);
	call_free(h, c);
}
