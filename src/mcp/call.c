/* SPDX-License-Identifier: MIT */
/*
 * call.c - tools/call: a request becomes a call of the core, its result becomes a reply.
 *
 * Content and canonical value are taken from the core's result as text, not encoded again.
 * A reply that would be longer than a line may be is made shorter in steps that lose
 * nothing: without the facts (they can be asked for again), without the notices (they stay
 * pending), without the second copy of the text (it is in the content). If that is not
 * enough, the call's lease returns and the model is told.
 */
#include "base/err.h"
#include "mcp/internal.h"

/* The core's result, taken apart. */
struct outcome {
	struct js_span content, value, error;
	bool is_error;
	/* Made for it: */
	struct buf facts, notices;
};

/* How much of a reply is left out. */
enum cut {
	CUT_NOTHING,
	CUT_FACTS,
	CUT_NOTICES,
	CUT_VALUE_TEXT,
	CUT_TOO_LONG, /* even so */
};

static bool span_is(struct js_span s, const char *text)
{
	return s.len == strlen(text) && memcmp(s.ptr, text, s.len) == 0;
}

static void add_text(struct buf *out, struct js_span json)
{
	struct js *value = NULL;
	const char *p;
	size_t len;

	if (!json.ptr || js_parse(json.ptr, json.len, &value, NULL) < 0)
		return;
	p = js_string(value, &len);
	if (p)
		buf_add(out, p, len);
	js_free(value);
}

/* ---- facts ---- */

struct facts {
	const struct mcp *mcp;
	struct buf *out;
};

/* @id: JSON, or absent. */
static void add_facts(const struct facts *f, struct js_span id)
{
	struct buf name = BUF_INIT(MAX_LABEL), one = BUF_INIT(KIB(16));

	add_text(&name, id);
	f->mcp->ops.facts(f->mcp->ud, buf_text(&name), name.len, &one);
	if (one.len) {
		buf_addc(f->out, f->out->len ? ',' : '{');
		js_put_string(f->out, buf_text(&name), name.len);
		buf_addc(f->out, ':');
		buf_add(f->out, one.data, one.len);
	}
	buf_release(&name);
	buf_release(&one);
}

static void add_row(void *ud, struct js_span task)
{
	add_facts(ud, js_member(task, "id"));
}

/* Of each task that the reply shows. */
static void find_facts(const struct call *c, struct outcome *o)
{
	struct facts f = {c->mcp, &o->facts};
	struct js_span id = js_member(o->value, "taskId");

	if (!o->value.ptr || !c->mcp->ops.facts)
		return;
	if (c->is_list)
		js_each(o->value, add_row, &f);
	else
		add_facts(&f, id.ptr ? id : js_member(js_member(o->value, "task"), "id"));
	if (o->facts.len)
		buf_addc(&o->facts, '}');
	if (buf_error(&o->facts))
		buf_clear(&o->facts);
}

/* ---- the reply ---- */

static void put_content(struct buf *out, struct js_span content, const struct buf *notices)
{
	buf_adds(out, "\"content\":");
	if (!notices || notices->len == 0) {
		buf_add(out, content.ptr, content.len);
		return;
	}
	buf_add(out, content.ptr, content.len - 1);
	buf_adds(out, content.len > 2 ? ",{\"type\":\"text\",\"text\":"
				      : "{\"type\":\"text\",\"text\":");
	js_put_string(out, notices->data, notices->len);
	buf_adds(out, "}]");
}

static void put_value(struct buf *out, struct js_span value, enum cut cut)
{
	struct js_span task = js_member(value, "task");

	if (cut < CUT_VALUE_TEXT || !task.ptr) {
		buf_add(out, value.ptr, value.len);
		return;
	}
	buf_adds(out, "{\"task\":");
	buf_add(out, task.ptr, task.len);
	buf_addc(out, '}');
}

static void put_meta(struct buf *out, const struct call *c, const struct outcome *o,
		     enum cut cut)
{
	bool has_value = o->value.ptr && !c->is_list;
	bool has_facts = o->facts.len && cut < CUT_FACTS;
	const char *unsaved = c->mcp->server->unsaved;

	if (!has_value && !has_facts && !unsaved && c->era != ERA_MODERN)
		return;
	buf_adds(out, ",\"_meta\":{");
	put_server_meta(out, c->mcp->server, c->era);
	if (has_value) {
		js_put_key(out, "errand/task");
		put_value(out, o->value, cut);
	}
	if (unsaved)
		js_put_member(out, "errand/unsaved", unsaved, strlen(unsaved));
	if (has_facts) {
		js_put_key(out, "errand/facts");
		buf_add(out, o->facts.data, o->facts.len);
	}
	buf_addc(out, '}');
}

static int put_reply(struct buf *out, const struct call *c, const struct outcome *o,
		     enum cut cut)
{
	struct js_span id = {buf_text(&c->id), c->id.len};

	buf_clear(out);
	rpc_put_result(out, id);
	put_result_type(out, c->era);
	put_content(out, o->content, cut < CUT_NOTICES ? &o->notices : NULL);
	buf_addf(out, ",\"isError\":%s", o->is_error ? "true" : "false");
	put_meta(out, c, o, cut);
	buf_adds(out, "}}");
	return buf_error(out);
}

static void put_too_long(struct buf *out, const struct call *c)
{
	static const char content[] =
		"[{\"type\":\"text\",\"text\":\"Error: the result is longer than a reply may be "
		"(8 MiB as a line); nothing of it was consumed\"}]";
	struct outcome o = {.content = {content, sizeof(content) - 1}, .is_error = true};

	/* An id that fills the whole line is the client's own doing. */
	buf_release(out);
	buf_init(out, MAX_REQUEST_LINE + KIB(64));
	(void)put_reply(out, c, &o, CUT_NOTICES);
}

static void reply(struct call *c, struct outcome *o)
{
	struct mcp_server *s = c->mcp->server;
	struct buf line = BUF_INIT(MAX_REPLY_LINE);
	enum cut cut = CUT_NOTHING;

	buf_init(&o->facts, MAX_REPLY_LINE);
	buf_init(&o->notices, MAX_REPLY_LINE);
	find_facts(c, o);
	c->has_digest = c->mcp->digest_agent == c->agent;
	if (c->has_digest)
		buf_add(&o->notices, buf_text(&c->mcp->digest), c->mcp->digest.len);
	c->claim = claim_take(s, c->agent, &c->shown, &o->notices);
	while (cut < CUT_TOO_LONG && put_reply(&line, c, o, cut) < 0)
		cut++;
	if (cut >= CUT_NOTICES) {
		claim_return(c->claim);
		c->claim = NULL;
		c->has_digest = false;
	}
	if (cut == CUT_TOO_LONG) {
		if (c->lease)
			(void)errand_lease_return(s->host, c->lease);
		c->lease = 0;
		buf_release(&c->shown);
		put_too_long(&line, c);
	}
	buf_release(&o->facts);
	buf_release(&o->notices);
	call_reply(c, &line);
}

/* ---- the result ---- */

static bool is_terminal(struct js_span status)
{
	return span_is(status, "\"completed\"") || span_is(status, "\"killed\"") ||
	       span_is(status, "\"failed\"");
}

/* Which task's end does the reply tell? */
static void find_shown(struct call *c, const struct outcome *o)
{
	struct js_span task = js_member(o->value, "task");

	if (c->is_list || o->is_error || !is_terminal(js_member(task, "status")))
		return;
	add_text(&c->shown, js_member(task, "id"));
}

static void refuse_unknown(struct call *c, struct js_span error)
{
	struct js_span id = {buf_text(&c->id), c->id.len};
	struct buf line = BUF_INIT(MAX_REQUEST_LINE + KIB(64));
	struct js *e = NULL;
	const char *text = NULL;

	if (js_parse(error.ptr, error.len, &e, NULL) == 0)
		text = js_string(js_get(e, "message"), NULL);
	rpc_put_error(&line, id, RPC_BAD_PARAMS, text ? text : "unknown tool", NULL);
	js_free(e);
	call_reply(c, &line);
}

static int on_result(void *ud, errand_host *h, errand_call id, errand_lease l,
		     const char *json, size_t len)
{
	static const char *const keys[] = {"content", "value", "error", "isError"};
	struct js_span all = {json, len}, parts[4];
	struct mcp_server *s = ud;
	struct call *c = map_get(&s->calls, id);
	struct outcome o = {0};

	(void)h;
	if (!c)
		return ERRAND_LOST;
	js_members(all, keys, parts, 4);
	o.content = parts[0];
	o.value = parts[1];
	o.error = parts[2];
	o.is_error = span_is(parts[3], "true");
	c->lease = l;
	if (span_is(js_member(o.error, "code"), "\"UNKNOWN_TOOL\"")) {
		refuse_unknown(c, o.error);
		return ERRAND_HELD;
	}
	find_shown(c, &o);
	if (c->is_kill && c->shown.len && c->mcp->ops.killed_late)
		c->mcp->ops.killed_late(c->mcp->ud, buf_text(&c->shown), c->shown.len);
	reply(c, &o);
	return ERRAND_HELD;
}

/* ---- the request ---- */

/* Whose call is it? An absent name is the client's own agent. False: it was refused. */
static bool find_owner(const struct request *r, const char **ret, size_t *ret_len)
{
	/* The name that a client gives by itself comes first. */
	static const char *const keys[] = {"threadId", "errand/owner"};
	const struct js *given = NULL;
	const char *key = NULL;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && !given; i++) {
		key = keys[i];
		given = js_get(r->meta, key);
		if (js_type(given) == JS_NULL)
			given = NULL;
	}
	*ret = js_string(given, ret_len);
	/* Falling back to somebody else's tasks would be worse than an error. */
	if (given && (!*ret || *ret_len == 0)) {
		request_fail(r, RPC_BAD_PARAMS,
			     "invalid params: _meta[\"%s\"] must be a non-empty string",
			     key);
		return false;
	}
	if (*ret && *ret_len > MAX_OWNER_NAME) {
		request_fail(r, RPC_BAD_PARAMS,
			     "invalid params: the owner's name is longer than %u bytes",
			     MAX_OWNER_NAME);
		return false;
	}
	return true;
}

static void start_call(const struct request *r, const struct js *name, errand_agent agent)
{
	struct js_span args = r->message->arguments_text;
	struct errand_call_options o = {
		.size = sizeof(o),
		.agent = agent,
		.args = {args.ptr, args.len},
		.on_result = on_result,
		.ud = r->mcp->server,
	};
	struct call *c = call_open(r);
	errand_error *e = NULL;

	if (!c)
		return;
	o.tool.ptr = js_string(name, &o.tool.len);
	c->agent = agent;
	c->is_list = js_string_is(name, "task_list");
	c->is_kill = js_string_is(name, "task_kill");
	if (errand_call_new(r->mcp->server->host, &o, &c->call, &e) < 0) {
		c->call = 0;
		call_drop(c);
		request_fail(r, RPC_INTERNAL, "the call was refused: %s",
			     errand_error_message(e, NULL));
		errand_error_free(e);
		return;
	}
	map_put(&r->mcp->server->calls, c->call, c);
}

void tools_call(const struct request *r)
{
	const struct js *name = js_get(r->params, "name");
	const char *owner;
	struct err err = {0};
	errand_agent agent;
	size_t len = 0;

	if (js_type(name) != JS_STRING) {
		request_fail(r, RPC_BAD_PARAMS, "invalid params: name must be a string");
		return;
	}
	if (!find_owner(r, &owner, &len))
		return;
	if (r->mcp->ops.agent(r->mcp->ud, owner, len, &agent, &err) < 0) {
		request_fail(r, RPC_INTERNAL, "no agent for this call: %s", err.msg);
		return;
	}
	start_call(r, name, agent);
}
