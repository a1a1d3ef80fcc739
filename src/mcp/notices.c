/* SPDX-License-Identifier: MIT */
/*
 * notices.c - completion notices that ride on replies.
 *
 * A claim holds notices that were taken out of an agent's inbox for one reply, on a lease.
 * Delivered, they are gone; not delivered, they are pending again, in their old order.
 * The notice of a task whose end a reply shows itself without a lease on it (a kill's) is
 * taken along without being shown, so that the delivery withdraws it (D14). A task's end may also be shown while its notice
 * is out on another reply: then the claim remembers it, for the case that it comes back.
 */
#include "base/utf8.h"
#include "mcp/internal.h"

struct notice {
	struct buf task, message; /* the model's id of the task; the id of the message */
	bool is_hidden;           /* the reply itself shows the end */
	bool is_withdrawn;        /* another reply has shown it: not to come back */
};

struct claim {
	struct list node;
	struct mcp_server *server;
	errand_agent agent;
	errand_lease lease;
	struct notice *notices;
	size_t count;
};

static void copy(struct buf *to, const struct js *s)
{
	size_t len = 0;
	const char *p = js_string(s, &len);

	buf_init(to, MAX_LABEL);
	if (p)
		buf_add(to, p, len);
}

static bool is_same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(a->data, b->data, a->len) == 0);
}

static const char *text_of(const struct js *message, size_t *ret_len)
{
	const struct js *block = js_at(js_get(message, "content"), 0);

	return js_string(js_get(block, "text"), ret_len);
}

static void add_line(struct buf *text, const char *line, size_t len)
{
	if (text->len > 0)
		buf_addc(text, '\n');
	buf_add(text, line, len);
}

/* What the model is to see. Never more than MAX_NOTICE_TEXT: then each gets a share. */
static void put_texts(const struct claim *c, const struct js *messages, struct buf *out)
{
	size_t total = 0, share = MAX_NOTICE_TEXT, len = 0;
	const char *line;

	for (size_t i = 0; i < c->count; i++)
		if (text_of(js_at(messages, i), &len))
			total += len + 1;
	if (total > MAX_NOTICE_TEXT)
		share = MAX_NOTICE_TEXT / c->count;
	for (size_t i = 0; i < c->count; i++) {
		line = text_of(js_at(messages, i), &len);
		if (line && !c->notices[i].is_hidden)
			add_line(out, line, utf8_head(line, len, share));
	}
}

static void fill(struct claim *c, const struct js *messages, const struct buf *shown)
{
	c->count = js_count(messages);
	c->notices = mem_new(NULL, c->count * sizeof(*c->notices));
	for (size_t i = 0; i < c->count; i++) {
		struct notice *n = &c->notices[i];

		copy(&n->task, js_get(js_at(messages, i), "task"));
		copy(&n->message, js_get(js_at(messages, i), "id"));
		n->is_hidden = shown->len > 0 && is_same(&n->task, shown);
	}
}

struct claim *claim_take(struct mcp_server *s, errand_agent agent, const struct buf *shown,
			 struct buf *text)
{
	struct js *messages = NULL;
	errand_text *json = NULL;
	errand_lease lease = 0;
	struct claim *c;
	const char *p;
	size_t len;

	if (errand_claim(s->host, agent, ERRAND_CLAIM_NOTICES, 0, &lease, &json, NULL) < 0)
		return NULL;
	if (!lease) {
		errand_text_free(json);
		return NULL;
	}
	p = errand_text_data(json, &len);
	if (js_parse(p, len, &messages, NULL) < 0) {
		(void)errand_lease_return(s->host, lease);
		errand_text_free(json);
		return NULL;
	}
	c = mem_new(NULL, sizeof(*c));
	c->server = s;
	c->agent = agent;
	c->lease = lease;
	list_add(&s->claims, &c->node);
	fill(c, messages, shown);
	put_texts(c, messages, text);
	js_free(messages);
	errand_text_free(json);
	return c;
}

static void claim_free(struct claim *c)
{
	for (size_t i = 0; i < c->count; i++) {
		buf_release(&c->notices[i].task);
		buf_release(&c->notices[i].message);
	}
	list_del(&c->node);
	mem_free(NULL, c->notices);
	mem_free(NULL, c);
}

void claim_commit(struct claim *c)
{
	if (!c)
		return;
	(void)errand_lease_commit(c->server->host, c->lease);
	claim_free(c);
}

static void discard(struct mcp_server *s, errand_agent agent, const char *id, size_t len)
{
	/* Not pending any more is as good. */
	if (errand_discard(s->host, agent, id, len, NULL) < 0)
		return;
}

void claim_return(struct claim *c)
{
	if (!c)
		return;
	(void)errand_lease_return(c->server->host, c->lease);
	for (size_t i = 0; i < c->count; i++) {
		struct buf *id = &c->notices[i].message;

		if (c->notices[i].is_withdrawn)
			discard(c->server, c->agent, buf_text(id), id->len);
	}
	claim_free(c);
}

static void withdraw_pending(struct mcp_server *s, errand_agent agent,
			     const struct buf *task)
{
	struct js *messages = NULL;
	errand_text *json = NULL;
	const char *p, *id, *owner;
	size_t len, id_len, owner_len;

	if (errand_inbox(s->host, agent, &json, NULL) < 0)
		return;
	p = errand_text_data(json, &len);
	if (len > 2 && js_parse(p, len, &messages, NULL) == 0) {
		for (size_t i = 0; i < js_count(messages); i++) {
			id = js_string(js_get(js_at(messages, i), "id"), &id_len);
			owner = js_string(js_get(js_at(messages, i), "task"), &owner_len);
			if (id && owner && owner_len == task->len &&
			    memcmp(owner, task->data, owner_len) == 0)
				discard(s, agent, id, id_len);
		}
		js_free(messages);
	}
	errand_text_free(json);
}

void notices_withdraw(struct mcp_server *s, errand_agent agent, const struct buf *task)
{
	withdraw_pending(s, agent, task);
	list_each(node, &s->claims)
	{
		struct claim *c = list_entry(node, struct claim, node);

		for (size_t i = 0; c->agent == agent && i < c->count; i++)
			if (is_same(&c->notices[i].task, task))
				c->notices[i].is_withdrawn = true;
	}
}
