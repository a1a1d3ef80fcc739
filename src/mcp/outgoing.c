/* SPDX-License-Identifier: MIT */
/*
 * outgoing.c - lines out: one reply, or the replies of a batch as one array.
 *
 * A line that carries replies with leases has a token, under which the transport says what
 * became of it.
 */
#include <stdarg.h>

#include "mcp/internal.h"

static void batch_end(struct mcp *m, struct batch *b);

void batch_close_one(struct mcp *m, struct batch *b)
{
	if (--b->open == 0)
		batch_end(m, b);
}

bool batch_add(struct batch *b, const struct buf *line)
{
	if (b->line.len + line->len + KIB(64) > MAX_REPLY_LINE)
		return false;
	buf_addc(&b->line, b->line.len > 0 ? ',' : '[');
	buf_add(&b->line, line->data, line->len);
	return true;
}

void send_plain(struct mcp *m, struct batch *b, struct buf *line)
{
	if (!b) {
		m->ops.send(m->ud, line, m->tag, 0);
		return;
	}
	if (!batch_add(b, line)) {
		buf_addc(&b->line, b->line.len > 0 ? ',' : '[');
		buf_add(&b->line, line->data, line->len);
	}
	buf_release(line);
	batch_close_one(m, b);
}

void send_nothing(struct mcp *m, uint64_t tag)
{
	if (m->ops.unanswered)
		m->ops.unanswered(m->ud, tag);
}

struct sent *sent_new(struct mcp *m)
{
	struct sent *s = mem_new(NULL, sizeof(*s));

	s->token = ++m->last_token;
	list_init(&s->calls);
	list_add(&m->sent, &s->node);
	map_put(&m->by_token, s->token, s);
	return s;
}

void sent_free(struct mcp *m, struct sent *s)
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
		m->ops.send(m->ud, &b->line, b->tag, s->token);
	} else {
		send_nothing(m, b->tag);
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
