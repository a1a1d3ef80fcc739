/* SPDX-License-Identifier: MIT */
/*
 * conversation.c - lines in: what each is, which era it belongs to, who answers it.
 */
#include "mcp/internal.h"

/* ---- notifications ---- */

static void notification(struct mcp *m, const struct rpc_message *msg)
{
	/* notifications/initialized needs nothing; others are not ours to refuse. */
	if (js_string_is(msg->method, "notifications/cancelled"))
		call_cancel(m, msg);
}

/* ---- requests ---- */

/* Modern, if it says a version in its _meta. False: it was refused. */
static bool find_era(struct request *r)
{
	const struct js *version = js_get(r->meta, META_VERSION);
	struct buf data = BUF_INIT(MAX_REQUEST_LINE);
	const char *s;
	size_t len;

	r->era = ERA_LEGACY;
	if (!version || r->mcp->is_legacy_only)
		return true;
	r->era = ERA_MODERN;
	s = js_string(version, &len);
	if (!s) {
		request_fail(r, RPC_BAD_PARAMS,
			     "invalid params: _meta[\"%s\"] must be a string",
			     META_VERSION);
		return false;
	}
	if (!js_string_is(version, MCP_MODERN)) {
		if (len > MAX_TOKEN)
			len = 0; /* no version, whatever it is */
		buf_adds(&data, "{\"supported\":[\"" MCP_MODERN "\"],\"requested\":");
		js_put_string(&data, s, len);
		buf_addc(&data, '}');
		request_fail_data(r, RPC_BAD_VERSION, "unsupported protocol version",
				  buf_text(&data));
		buf_release(&data);
		return false;
	}
	if (js_type(js_get(r->meta, META_CAPABILITIES)) != JS_OBJECT) {
		request_fail(r, RPC_BAD_PARAMS,
			     "invalid params: _meta[\"%s\"] must be an object",
			     META_CAPABILITIES);
		return false;
	}
	return true;
}

static void request(struct mcp *m, const struct rpc_message *msg, struct batch *b,
		    int64_t now)
{
	struct request r = {
		.mcp = m, .message = msg, .era = ERA_LEGACY, .batch = b, .now = now};
	const struct js *meta = js_get(msg->params, "_meta");

	if (msg->overflows) {
		request_fail(&r, RPC_BAD_PARAMS, "invalid params: a number is too large");
		return;
	}
	if (msg->params && js_type(msg->params) != JS_OBJECT) {
		request_fail(&r, RPC_BAD_PARAMS, "invalid params: expected an object");
		return;
	}
	if (meta && js_type(meta) != JS_OBJECT) {
		request_fail(&r, RPC_BAD_PARAMS, "invalid params: _meta must be an object");
		return;
	}
	r.params = msg->params;
	r.meta = meta;
	if (find_era(&r))
		method_dispatch(&r);
}

static void invalid(struct mcp *m, const struct rpc_message *msg, struct batch *b)
{
	struct request r = {.mcp = m, .message = msg, .batch = b};

	request_fail_data(&r, msg->code, msg->why, NULL);
}

/* ---- batches ---- */

struct batch_feed {
	struct mcp *mcp;
	struct batch *batch;
	int64_t now;
};

static void batch_element(void *ud, struct js_span text)
{
	static const char why[] = "invalid request: an array in an array";
	struct batch_feed *f = ud;
	struct rpc_message msg;

	rpc_read(text.ptr, text.len, &msg);
	f->batch->open++;
	switch (msg.kind) {
	case RPC_REQUEST:
		if (js_string_is(msg.method, "initialize")) {
			msg.code = RPC_NO_REQUEST;
			msg.why = "invalid request: initialize must stand alone";
			invalid(f->mcp, &msg, f->batch);
			break;
		}
		request(f->mcp, &msg, f->batch, f->now);
		break;
	case RPC_BATCH:
		msg.code = RPC_NO_REQUEST;
		msg.why = why;
		invalid(f->mcp, &msg, f->batch);
		break;
	case RPC_INVALID:
		invalid(f->mcp, &msg, f->batch);
		break;
	case RPC_NOTIFICATION:
		notification(f->mcp, &msg);
		f->batch->open--;
		break;
	case RPC_RESPONSE:
		f->batch->open--;
		break;
	}
	rpc_release(&msg);
}

static void batch(struct mcp *m, struct rpc_message *msg, int64_t now)
{
	struct batch_feed feed = {.mcp = m, .now = now};
	size_t n = js_count(msg->root);

	msg->code = RPC_NO_REQUEST;
	if (!m->has_batches)
		msg->why = "invalid request: this protocol version has no batches";
	else if (n == 0 || n > MAX_BATCH)
		msg->why = "invalid request: a batch holds 1 to 1000 messages";
	if (msg->why) {
		invalid(m, msg, NULL);
		return;
	}
	feed.batch = mem_new(NULL, sizeof(*feed.batch));
	buf_init(&feed.batch->line, MAX_REPLY_LINE + MAX_REQUEST_LINE);
	list_init(&feed.batch->calls);
	feed.batch->open = 1;
	feed.batch->tag = m->tag;
	js_each(msg->text, batch_element, &feed);
	batch_close_one(m, feed.batch);
}

/* ---- lines in ---- */

static bool is_blank(const char *line, size_t len)
{
	while (len > 0 && memchr(" \t\r\n", line[len - 1], 4))
		len--;
	return len == 0;
}

void mcp_line(struct mcp *m, const char *line, size_t len, uint64_t tag, int64_t mono_ms)
{
	struct rpc_message msg;

	m->tag = tag;
	if (is_blank(line, len)) {
		send_nothing(m, tag);
		return;
	}
	rpc_read(line, len, &msg);
	switch (msg.kind) {
	case RPC_INVALID:
		invalid(m, &msg, NULL);
		break;
	case RPC_REQUEST:
		request(m, &msg, NULL, mono_ms);
		break;
	case RPC_NOTIFICATION:
		notification(m, &msg);
		send_nothing(m, tag);
		break;
	case RPC_BATCH:
		batch(m, &msg, mono_ms);
		break;
	case RPC_RESPONSE:
		send_nothing(m, tag);
		break;
	}
	rpc_release(&msg);
}

void mcp_line_too_long(struct mcp *m, uint64_t tag)
{
	struct rpc_message msg = {
		.code = RPC_NO_REQUEST,
		.why = "invalid request: the line is longer than 16 MiB",
	};

	m->tag = tag;
	invalid(m, &msg, NULL);
}

/* ---- life ---- */

void mcp_be_legacy(struct mcp *m)
{
	m->is_legacy_only = true;
}

bool mcp_is_initialized(const struct mcp *m)
{
	return m->is_initialized;
}

void *mcp_caller(const struct mcp_server *s, errand_call call, uint64_t *ret_tag)
{
	const struct call *c = map_get(&s->calls, call);

	if (c && ret_tag)
		*ret_tag = c->tag;
	return c ? c->mcp->ud : NULL;
}

struct mcp *mcp_new(struct mcp_server *s, const struct mcp_ops *ops, void *ud)
{
	struct mcp *m = mem_new(NULL, sizeof(*m));

	m->server = s;
	m->ops = *ops;
	m->ud = ud;
	list_init(&m->calls);
	list_init(&m->timed);
	list_init(&m->sent);
	map_init(&m->by_id, NULL);
	map_init(&m->by_token, NULL);
	buf_init(&m->digest, KIB(64));
	return m;
}

static void batch_forget(struct call *c)
{
	struct batch *b = c->batch;

	list_each(node, &c->mcp->calls)
	{
		struct call *other = list_entry(node, struct call, node);

		if (other->batch == b)
			other->batch = NULL;
	}
	buf_release(&b->line);
	mem_free(NULL, b);
}

void mcp_free(struct mcp *m)
{
	if (!m)
		return;
	list_each(node, &m->calls)
	{
		struct call *c = list_entry(node, struct call, node);

		if (c->batch)
			batch_forget(c);
		if (c->cost > 0 && c->call)
			(void)errand_call_abort(m->server->host, c->call);
		call_drop(c);
	}
	list_each(node, &m->sent) sent_free(m, list_entry(node, struct sent, node));
	map_release(&m->by_id);
	map_release(&m->by_token);
	buf_release(&m->digest);
	mem_free(NULL, m);
}
