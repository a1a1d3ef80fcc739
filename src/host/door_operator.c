/* SPDX-License-Identifier: MIT */
/* door_operator.c - a person's client: requests in, answers out, in any order. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/json.h"
#include "base/limits.h"
#include "host/journal.h"
#include "host/operator.h"
#include "mcp/rpc.h"

/* Open requests of one client. */
#define MAX_ASKS 1000

/* ---- asks ---- */

static const struct operator_method *find_method(const struct js *name)
{
	for (const struct operator_method *m = operator_methods; m->name; m++)
		if (js_string_is(name, m->name))
			return m;
	return NULL;
}

/* A client that wants to ask again numbers its requests. */
static uint64_t number_of(struct js_span id)
{
	uint64_t n = 0;

	for (size_t i = 0; id.ptr && i < id.len; i++) {
		if (id.ptr[i] < '0' || id.ptr[i] > '9' || n > INT32_MAX / 10)
			return 0;
		n = n * 10 + (uint64_t)(id.ptr[i] - '0');
	}
	return n;
}

static struct ask *ask_new(struct client *c, const struct rpc_message *m)
{
	struct ask *a = mem_new(NULL, sizeof(*a));

	a->host = c->host;
	a->client = c;
	a->agent = c->agent;
	a->params = js_type(m->params) == JS_OBJECT ? m->params : NULL;
	buf_init(&a->id, MAX_TOKEN);
	buf_init(&a->result, MAX_JSON_TEXT);
	if (m->id.ptr)
		buf_add(&a->id, m->id.ptr, m->id.len);
	a->method = find_method(m->method);
	a->number = number_of(m->id);
	list_add(&c->asks, &a->node);
	return a;
}

static void ask_end(struct ask *a, struct buf *line)
{
	if (a->client)
		client_send(a->client, line, 0);
	else
		buf_release(line);
	if (a->signal)
		(void)errand_signal_free(a->host->core, a->signal);
	list_del(&a->node);
	buf_release(&a->id);
	buf_release(&a->result);
	mem_free(NULL, a);
}

static struct js_span id_of(const struct ask *a)
{
	return (struct js_span){a->id.len ? a->id.data : NULL, a->id.len};
}

static void fail(struct ask *a, enum rpc_code code, const char *text)
{
	struct buf line = BUF_INIT(MAX_ERROR_TEXT * 8);

	rpc_put_error(&line, id_of(a), code, text, NULL);
	ask_end(a, &line);
}

/* In the same commit as what it has done. */
static void keep(const struct ask *a)
{
	autobuf struct buf object = BUF_INIT(MAX_JSON_TEXT);

	if (!a->client || !a->number || !a->method->again)
		return;
	buf_addf(&object, "{%s}", buf_text(&a->result));
	journal_done(a->host->journal, a->client->hello.nonce, a->number, buf_text(&object),
		     object.len);
}

void ask_done(struct ask *a)
{
	struct buf line = BUF_INIT(MAX_JSON_TEXT + MAX_TOKEN + KIB(1));

	rpc_put_result(&line, id_of(a));
	buf_add(&line, a->result.data, a->result.len);
	buf_adds(&line, "}}");
	if (buf_error(&a->result) || buf_error(&line)) {
		buf_release(&line);
		fail(a, RPC_INTERNAL, "the answer is longer than a line may be");
		return;
	}
	keep(a);
	ask_end(a, &line);
}

void ask_repeat(struct ask *a, const char *result)
{
	buf_add(&a->result, result + 1, strlen(result) - 2); /* without its braces */
	ask_done(a);
}

void ask_fail(struct ask *a, const char *fmt, ...)
{
	char text[512];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	fail(a, RPC_BAD_PARAMS, text);
}

/* The contract's text (spec 1.4.1). */
static bool is_unknown_task(const char *text)
{
	return strncmp(text, "unknown task ", strlen("unknown task ")) == 0;
}

void ask_refused(struct ask *a, errand_error *e)
{
	const char *text = errand_error_message(e, NULL);

	fail(a, is_unknown_task(text) ? RPC_NO_TASK : RPC_BAD_PARAMS, text);
	errand_error_free(e);
}

const char *ask_string(struct ask *a, const char *key, size_t *ret_len)
{
	const char *s = js_string(js_get(a->params, key), ret_len);

	if (!s)
		ask_fail(a, "invalid params: %s must be a string", key);
	return s;
}

/* ---- the door ---- */

static void carry_out(struct ask *a)
{
	const struct operator_method *m = a->method;
	const char *result = NULL;

	if (m->again && a->number)
		result = journal_was_done(a->host->journal, a->client->hello.nonce,
					  a->number);
	if (result)
		m->again(a, result);
	else
		m->handle(a);
}

static void request(struct client *c, const struct rpc_message *msg)
{
	struct ask *a = ask_new(c, msg);
	size_t open = 0;

	for (const struct list *n = c->asks.next; n != &c->asks; n = n->next)
		open++;
	if (open > MAX_ASKS)
		fail(a, RPC_INTERNAL, "too many open requests: wait for some");
	else if (!a->method)
		fail(a, RPC_NO_METHOD, "this host has no such method");
	else
		carry_out(a);
}

static void operator_line(struct client *c, const char *line, size_t len)
{
	struct rpc_message msg;

	rpc_read(line, len, &msg);
	if (msg.kind == RPC_REQUEST)
		request(c, &msg);
	else if (msg.kind == RPC_NOTIFICATION && js_string_is(msg.method, "errand/bye"))
		journal_forget(c->host->journal, c->hello.nonce);
	else if (msg.kind != RPC_NOTIFICATION)
		client_gone(c); /* it does not speak the protocol */
	rpc_release(&msg);
}

static void operator_too_long(struct client *c)
{
	client_gone(c);
}

static void operator_sent(struct client *c, uint64_t token)
{
	(void)c;
	(void)token;
}

static void operator_close(struct client *c)
{
	list_each(node, &c->asks)
	{
		struct ask *a = list_entry(node, struct ask, node);

		a->client = NULL;
		list_del(node);
		if (a->signal)
			(void)errand_abort(a->host->core, a->signal);
	}
}

void door_operator_enter(struct client *c)
{
	static const struct door door = {
		.line = operator_line,
		.too_long = operator_too_long,
		.sent = operator_sent,
		.close = operator_close,
	};

	c->door = &door;
}
