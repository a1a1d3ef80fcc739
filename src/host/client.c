/* SPDX-License-Identifier: MIT */
/* client.c - one client, from its connection to its end. */
#include "base/clock.h"
#include "base/limits.h"
#include "host/internal.h"
#include "host/journal.h"
#include "mcp/mcp.h"
#include "transport/transport.h"

struct client *client_new(struct host *h)
{
	struct client *c = mem_new(NULL, sizeof(*c));

	c->host = h;
	map_init(&c->unacked, NULL);
	list_init(&c->asks);
	list_add(&h->clients, &c->node);
	return c;
}

void client_free(struct client *c)
{
	struct host *h = c->host;

	if (c->door)
		c->door->close(c);
	if (h->journal)
		journal_client_gone(h->journal, c->hello.nonce);
	if (c->transport)
		c->transport->type->close(c->transport);
	list_del(&c->node);
	map_release(&c->unacked);
	hello_release(&c->hello);
	if (c->owner)
		owners_leave(&h->owners, c->owner, strlen(c->owner), clock_mono_ms());
	mem_free(NULL, c->owner);
	mem_free(NULL, c);
}

void client_gone(struct client *c)
{
	c->is_gone = true;
}

void client_send(struct client *c, struct buf *line, uint64_t token)
{
	c->transport->type->send(c->transport, line, token);
}

/* ---- what the transport tells ---- */

static void on_line(void *ud, const char *line, size_t len)
{
	struct client *c = ud;

	if (!c->is_gone)
		c->door->line(c, line, len);
}

static void on_too_long(void *ud)
{
	struct client *c = ud;

	if (!c->is_gone)
		c->door->too_long(c);
}

static void on_turn(void *ud)
{
	host_turn(((struct client *)ud)->host);
}

static void on_sent(void *ud, uint64_t token)
{
	struct client *c = ud;

	c->door->sent(c, token);
}

/* Comes also from inside a turn, which then frees it. */
static void on_closed(void *ud)
{
	struct client *c = ud;
	struct host *h = c->host;

	client_gone(c);
	h->type->client_gone(h);
}

const struct transport_events client_events = {
	.line = on_line,
	.too_long = on_too_long,
	.turn = on_turn,
	.sent = on_sent,
	.closed = on_closed,
};

/* ---- all of them ---- */

void clients_farewell(struct host *h)
{
	list_each(node, &h->clients)
	{
		struct client *c = list_entry(node, struct client, node);
		struct buf line = BUF_INIT(8);

		if (!c->is_leaving)
			continue;
		c->is_leaving = false;
		buf_adds(&line, "bye");
		client_send(c, &line, 0);
	}
}

void clients_flush(struct host *h)
{
	list_each(node, &h->clients)
	{
		struct client *c = list_entry(node, struct client, node);

		c->transport->type->flush(c->transport);
	}
}

void clients_reap(struct host *h)
{
	list_each(node, &h->clients)
	{
		struct client *c = list_entry(node, struct client, node);

		if (c->is_gone)
			client_free(c);
	}
}

void clients_free(struct host *h)
{
	list_each(node, &h->clients) client_free(list_entry(node, struct client, node));
}

int64_t clients_deadline(const struct host *h)
{
	int64_t due = INT64_MAX;

	for (struct list *node = h->clients.next; node != &h->clients; node = node->next) {
		const struct client *c = list_entry(node, struct client, node);
		int64_t at = c->door->deadline ? c->door->deadline(c) : INT64_MAX;

		due = at < due ? at : due;
	}
	return due;
}

void clients_tick(struct host *h, int64_t mono_ms)
{
	list_each(node, &h->clients)
	{
		struct client *c = list_entry(node, struct client, node);

		if (c->door->tick)
			c->door->tick(c, mono_ms);
	}
}

const struct run_context *client_context(void *host, errand_call call)
{
	struct host *h = host;
	const struct client *c = mcp_caller(h->server, call, NULL);

	if (!c)
		c = map_get(&h->callers, call);
	return c ? &c->hello.context.run : NULL;
}

size_t clients_named(void *ud, const char *name, size_t len)
{
	struct host *h = ud;
	size_t n = 0;

	list_each(node, &h->clients)
	{
		const struct client *c = list_entry(node, struct client, node);

		n += c->owner && strlen(c->owner) == len &&
		     memcmp(c->owner, name, len) == 0;
	}
	return n;
}
