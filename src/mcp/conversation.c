/* SPDX-License-Identifier: MIT */
/*
 * conversation.c - lines in, lines out, and what is in flight between them.
 *
 * A call is in m->calls from its request until its reply has been written or given up; that
 * is the only place that owns it. The core knows it by number (server->calls), so a result
 * that comes for a call that was cancelled finds nothing and is lost, as it should be.
 */
#include <assert.h>
#include <stdarg.h>

#include "mcp/internal.h"

/* ---- one line out ---- */

static void batch_end(struct mcp *m, struct batch *b);

/* One request of the batch has its answer, or will never have one. */
static void batch_close_one(struct mcp *m, struct batch *b)
{
	if (--b->open == 0)
		batch_end(m, b);
}

static bool batch_add(struct batch *b, const struct buf *line)
{
	if (b->line.len + line->len + KIB(64) > MAX_REPLY_LINE)
		return false;
	buf_addc(&b->line, b->line.len > 0 ? ',' : '[');
	buf_add(&b->line, line->data, line->len);
	return true;
}

/* A reply without leases. In a full batch it is too small to be left out. */
static void send_plain(struct mcp *m, struct batch *b, struct buf *line)
{
	if (!b) {
		m->ops.send(m->ud, line, 0);
		return;
	}
	if (!batch_add(b, line)) {
		buf_addc(&b->line, b->line.len > 0 ? ',' : '[');
		buf_add(&b->line, line->data, line->len);
	}
	buf_release(line);
	batch_close_one(m, b);
}

static struct sent *sent_new(struct mcp *m)
{
	struct sent *s = mem_new(NULL, sizeof(*s));

	s->token = ++m->last_token;
	list_init(&s->calls);
	list_add(&m->sent, &s->node);
	map_put(&m->by_token, s->token, s);
	return s;
}

static void sent_free(struct mcp *m, struct sent *s)
{
	map_del(&m->by_token, s->token);
	list_del(&s->node);
	mem_free(NULL, s);
}

static void batch_end(struct mcp *m, struct batch *b)
{
	struct sent *s;

	if (b->line.len > 0) {
		s = sent_new(m);
		list_each(node, &b->calls)
		{
			struct call *c = list_entry(node, struct call, reply);

			list_del(node);
			list_add(&s->calls, node);
			c->sent = s;
			c->batch = NULL;
		}
		buf_addc(&b->line, ']');
		m->ops.send(m->ud, &b->line, s->token);
	}
	buf_release(&b->line);
	mem_free(NULL, b);
}

/* ---- answers ---- */

void request_fail_data(const struct request *r, enum rpc_code code, const char *message,
		       const char *data)
{
	struct buf line =
		BUF_INIT(MAX_REQUEST_LINE + KIB(64)); /* the id may fill its line */

	rpc_put_error(&line, r->message->id, code, message, data);
	send_plain(r->mcp, r->batch, &line);
}

void request_fail(const struct request *r, enum rpc_code code, const char *fmt, ...)
{
	struct buf text = BUF_INIT(MAX_REQUEST_LINE);
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n > 0 && buf_reserve(&text, (size_t)n + 1) == 0) {
		va_start(ap, fmt);
		(void)vsnprintf(text.data, (size_t)n + 1, fmt, ap);
		va_end(ap);
		text.len = (size_t)n;
	}
	request_fail_data(r, code, buf_text(&text), NULL);
	buf_release(&text);
}

void put_result_type(struct buf *out, enum era era)
{
	if (era == ERA_MODERN)
		buf_adds(out, "\"resultType\":\"complete\",");
}

void request_result(const struct request *r, const struct buf *body)
{
	struct buf line = BUF_INIT(MAX_REQUEST_LINE + MAX_REPLY_LINE);

	rpc_put_result(&line, r->message->id);
	buf_add(&line, body->data, body->len);
	buf_adds(&line, "}}");
	send_plain(r->mcp, r->batch, &line);
}

/* ---- what is in flight ---- */

static uint64_t hash_of(const struct buf *key)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a */

	for (size_t i = 0; i < key->len; i++)
		h = (h ^ (unsigned char)key->data[i]) * 1099511628211u;
	return h ? h : 1; /* a map's key is never 0 */
}

static void chain_remove(struct call *c)
{
	struct call *first = map_get(&c->mcp->by_id, c->hash), **at = &first;

	while (*at && *at != c)
		at = &(*at)->chain;
	if (*at)
		*at = c->chain;
	if (first)
		map_put(&c->mcp->by_id, c->hash, first);
	else
		map_del(&c->mcp->by_id, c->hash);
}

static void copy_span(struct buf *to, struct js_span s)
{
	buf_init(to, MAX_REQUEST_LINE);
	if (s.ptr)
		buf_add(to, s.ptr, s.len);
}

static void take_progress_token(struct call *c, const struct request *r)
{
	enum js_type type = js_type(js_get(r->meta, "progressToken"));
	struct js_span meta = js_member(r->message->params_text, "_meta");

	buf_init(&c->progress_token, MAX_REQUEST_LINE);
	if (type != JS_STRING && type != JS_NUMBER)
		return;
	copy_span(&c->progress_token, js_member(meta, "progressToken"));
	c->progress_at = r->now + PROGRESS_MS;
	list_add(&c->mcp->timed, &c->timed);
}

struct call *call_open(const struct request *r)
{
	struct mcp *m = r->mcp;
	size_t cost = r->message->text.len;
	struct call *c;

	if (m->in_flight >= MAX_IN_FLIGHT ||
	    m->in_flight_bytes + cost > MAX_IN_FLIGHT_BYTES) {
		request_fail(r, RPC_INTERNAL,
			     "too many requests in flight (%zu, %zu bytes): wait for some",
			     m->in_flight, m->in_flight_bytes);
		return NULL;
	}
	c = mem_new(NULL, sizeof(*c));
	c->mcp = m;
	c->batch = r->batch;
	c->era = r->era;
	c->cost = cost;
	list_init(&c->timed);
	list_init(&c->reply);
	list_add(&m->calls, &c->node);
	buf_init(&c->key, MAX_REQUEST_LINE);
	buf_init(&c->shown, MAX_LABEL);
	copy_span(&c->id, r->message->id);
	take_progress_token(c, r);
	rpc_id_key(&c->key, r->message->id_value, r->message->id);
	c->hash = hash_of(&c->key);
	c->chain = map_get(&m->by_id, c->hash);
	map_put(&m->by_id, c->hash, c);
	m->in_flight++;
	m->in_flight_bytes += cost;
	return c;
}

/* It has an answer, or needs none any more: nothing is sent for it from now on. */
static void call_answered(struct call *c)
{
	if (c->cost == 0)
		return;
	c->mcp->in_flight--;
	c->mcp->in_flight_bytes -= c->cost;
	c->cost = 0;
	list_del(&c->timed);
	if (c->call)
		map_del(&c->mcp->server->calls, c->call);
}

static void call_free(struct call *c)
{
	call_answered(c);
	chain_remove(c);
	list_del(&c->node);
	list_del(&c->reply);
	buf_release(&c->key);
	buf_release(&c->id);
	buf_release(&c->progress_token);
	buf_release(&c->shown);
	mem_free(NULL, c);
}

static void call_commit(struct call *c)
{
	struct mcp *m = c->mcp;

	if (c->lease)
		(void)errand_lease_commit(m->server->host, c->lease);
	claim_commit(c->claim);
	if (c->shown.len > 0) {
		notices_withdraw(m->server, c->agent, &c->shown);
		m->ops.told(m->ud, c->agent, c->shown.data, c->shown.len);
	}
	call_free(c);
}

void call_drop(struct call *c)
{
	if (c->lease)
		(void)errand_lease_return(c->mcp->server->host, c->lease);
	claim_return(c->claim);
	call_free(c);
}

/* The answer of a call whose reply does not fit into what is left of its batch. */
static void batch_refuse(struct call *c, struct batch *b)
{
	struct mcp *m = c->mcp;
	struct buf line = BUF_INIT(MAX_REQUEST_LINE + KIB(64));
	struct js_span id = {buf_text(&c->id), c->id.len};

	rpc_put_error(&line, id, RPC_INTERNAL,
		      "the replies of this batch are longer than a line may be: ask again",
		      NULL);
	call_drop(c);
	send_plain(m, b, &line);
}

void call_reply(struct call *c, struct buf *line)
{
	struct batch *b = c->batch;
	struct mcp *m = c->mcp;

	call_answered(c);
	if (!b) {
		c->sent = sent_new(m);
		list_add(&c->sent->calls, &c->reply);
		m->ops.send(m->ud, line, c->sent->token);
		return;
	}
	if (batch_add(b, line)) {
		list_add(&b->calls, &c->reply);
		batch_close_one(m, b);
	} else {
		batch_refuse(c, b);
	}
	buf_release(line);
}

void mcp_sent(struct mcp *m, uint64_t token)
{
	struct sent *s = map_get(&m->by_token, token);

	if (!s)
		return;
	list_each(node, &s->calls) call_commit(list_entry(node, struct call, reply));
	sent_free(m, s);
}

void mcp_unsent(struct mcp *m, uint64_t token)
{
	struct sent *s = map_get(&m->by_token, token);

	if (!s)
		return;
	list_each(node, &s->calls) call_drop(list_entry(node, struct call, reply));
	sent_free(m, s);
}

/* ---- notifications ---- */

static struct call *find_call(struct mcp *m, const struct js *id, struct js_span token)
{
	struct buf key = BUF_INIT(MAX_REQUEST_LINE);
	struct call *c = NULL;

	rpc_id_key(&key, id, token);
	if (key.len > 0)
		c = map_get(&m->by_id, hash_of(&key));
	while (c && (c->key.len != key.len || memcmp(c->key.data, key.data, key.len) != 0))
		c = c->chain;
	buf_release(&key);
	return c;
}

/* An unfinished batch keeps what it has already; the rest of it is waited for. */
static void cancel_unanswered(struct call *c)
{
	struct batch *b = c->batch;
	struct mcp *m = c->mcp;

	if (c->call)
		(void)errand_call_abort(m->server->host, c->call);
	call_drop(c);
	if (b)
		batch_close_one(m, b);
}

static void on_cancelled(struct mcp *m, const struct rpc_message *msg)
{
	struct js_span token = js_member(msg->params_text, "requestId");
	struct call *c = find_call(m, js_get(msg->params, "requestId"), token);
	struct sent *s;

	if (!c)
		return;
	if (c->cost > 0) {
		cancel_unanswered(c);
		return;
	}
	s = c->sent;
	/* A line that carries other replies as well has to go. */
	if (!s || s->calls.next->next != &s->calls)
		return;
	if (m->ops.unsend(m->ud, s->token))
		mcp_unsent(m, s->token);
}

static void notification(struct mcp *m, const struct rpc_message *msg)
{
	/* notifications/initialized needs nothing; others are not ours to refuse. */
	if (js_string_is(msg->method, "notifications/cancelled"))
		on_cancelled(m, msg);
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
	if (!version || r->mcp->server->is_legacy_only)
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
	rpc_each(msg->text, batch_element, &feed);
	batch_close_one(m, feed.batch);
}

/* ---- lines in ---- */

static bool is_blank(const char *line, size_t len)
{
	while (len > 0 && memchr(" \t\r\n", line[len - 1], 4))
		len--;
	return len == 0;
}

void mcp_line(struct mcp *m, const char *line, size_t len, int64_t mono_ms)
{
	struct rpc_message msg;

	if (is_blank(line, len))
		return;
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
		break;
	case RPC_BATCH:
		batch(m, &msg, mono_ms);
		break;
	case RPC_RESPONSE:
		break;
	}
	rpc_release(&msg);
}

void mcp_line_too_long(struct mcp *m)
{
	struct rpc_message msg = {
		.code = RPC_NO_REQUEST,
		.why = "invalid request: the line is longer than 16 MiB",
	};

	invalid(m, &msg, NULL);
}

/* ---- time ---- */

int64_t mcp_deadline(const struct mcp *m)
{
	if (list_is_empty(&m->timed))
		return INT64_MAX;
	return list_entry(m->timed.next, struct call, timed)->progress_at;
}

static void send_progress(struct call *c)
{
	struct buf line = BUF_INIT(MAX_REQUEST_LINE + KIB(1));

	c->progress += PROGRESS_MS / 1000;
	buf_adds(&line,
		 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
		 "{\"progressToken\":");
	buf_add(&line, c->progress_token.data, c->progress_token.len);
	buf_addf(&line, ",\"progress\":%d,\"message\":\"%d s\"}}", c->progress,
		 c->progress);
	c->mcp->ops.send(c->mcp->ud, &line, 0);
}

void mcp_tick(struct mcp *m, int64_t mono_ms)
{
	while (mcp_deadline(m) <= mono_ms) {
		struct call *c = list_entry(m->timed.next, struct call, timed);

		/* The same for all: so the end of the list is where the last one is due. */
		c->progress_at = mono_ms + PROGRESS_MS;
		list_del(&c->timed);
		list_add(&m->timed, &c->timed);
		if (!m->ops.is_behind(m->ud))
			send_progress(c);
	}
}

/* ---- life ---- */

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
	mem_free(NULL, m);
}
