/* SPDX-License-Identifier: MIT */
/*
 * flight.c - requests that are not answered at once: from their line to their written reply.
 *
 * A call is in m->calls from its request until its reply has been written or given up; that
 * is the only place that owns it. The core knows it by number (server->calls), so a result
 * that comes for a call that was cancelled finds nothing and is lost, as it should be.
 */
#include "mcp/internal.h"

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
	struct js_span token = js_member(meta, "progressToken");

	buf_init(&c->progress_token, MAX_TOKEN);
	if ((type != JS_STRING && type != JS_NUMBER) || token.len > MAX_TOKEN)
		return;
	copy_span(&c->progress_token, token);
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
	c->tag = m->tag;
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
	if (c->has_digest) {
		m->digest_agent = 0;
		buf_release(&m->digest);
	}
	if (c->shown.len > 0)
		notices_withdraw(m->server, c->agent, &c->shown);
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
		m->ops.send(m->ud, line, c->tag, c->sent->token);
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

/* ---- cancellation ---- */

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
	uint64_t tag = c->tag;

	if (c->call)
		(void)errand_call_abort(m->server->host, c->call);
	call_drop(c);
	if (b)
		batch_close_one(m, b);
	else
		send_nothing(m, tag);
}

void call_cancel(struct mcp *m, const struct rpc_message *msg)
{
	struct js_span token = js_member(msg->params_text, "requestId");
	struct call *c = find_call(m, js_get(msg->params, "requestId"), token);
	struct sent *s;
	uint64_t tag;

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
	tag = c->tag;
	if (m->ops.unsend(m->ud, s->token)) {
		mcp_unsent(m, s->token);
		send_nothing(m, tag);
	}
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
	c->mcp->ops.send(c->mcp->ud, &line, 0, 0);
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
