/* SPDX-License-Identifier: MIT */
#include "host/relay.h"

#include <inttypes.h>
#include <malloc.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "host/launch.h"
#include "transport/stdinout.h"
#include "transport/unixsocket.h"

/* Lines that have no answer yet. Above it no more are read. */
#define MAX_PENDING MIB(64)
/* The answers of a daemon that is said bye to are there at once, or never. */
#define FAREWELL_MS 2000
/* Each try waits some seconds by itself. */
#define MAX_TRIES 5
#define RETRY_MS 200
/* The token of a line that answers none. */
#define NO_NUMBER UINT64_MAX

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
#define N_SIGNALS (sizeof(signals) / sizeof(signals[0]))

/* A line of the client. */
struct pending {
	struct list node;
	uint64_t number;
	struct buf line; /* as it is sent */
};

struct relay {
	uv_loop_t loop;
	uv_timer_t timer; /* the next try, or the end of our patience */
	uv_signal_t signals[N_SIGNALS];
	struct link_options options; /* for every connection but the first */
	struct transport *client;    /* stdin and stdout */
	struct transport *host;      /* NULL: there is none */
	struct list pending;
	struct map by_number;
	size_t pending_bytes;
	uint64_t last;
	struct pending *kept; /* the handshake, for each new connection */
	bool is_leaving;      /* stdin has ended */
	bool has_heard_bye;
	int tries;
	int exit_code;
};

static void leave(struct relay *r, int exit_code)
{
	r->exit_code = exit_code;
	uv_stop(&r->loop);
}

/* ---- lines on their way ---- */

static void send_to_host(struct relay *r, const char *bytes, size_t len)
{
	struct buf line = BUF_INIT(len);

	if (!r->host)
		return;
	buf_add(&line, bytes, len);
	r->host->type->send(r->host, &line, 0);
}

static void flush_host(struct relay *r)
{
	if (r->host)
		r->host->type->flush(r->host);
}

static void pending_free(struct pending *p)
{
	buf_release(&p->line);
	mem_free(NULL, p);
}

/* A slow daemon or client is waited for; both queues are bounded. */
static void balance(struct relay *r)
{
	if (r->pending_bytes > MAX_PENDING)
		r->client->type->hold(r->client, true);
	else if (r->pending_bytes < MAX_PENDING / 2)
		r->client->type->hold(r->client, false);
	if (!r->host)
		return;
	if (r->client->type->waiting(r->client) > MAX_REPLY_QUEUE)
		r->host->type->hold(r->host, true);
	else if (r->client->type->waiting(r->client) < MAX_REPLY_QUEUE / 2)
		r->host->type->hold(r->host, false);
}

/* NULL: it has an answer already. */
static struct pending *take_pending(struct relay *r, uint64_t number)
{
	struct pending *p = map_get(&r->by_number, number);

	if (!p)
		return NULL;
	map_del(&r->by_number, number);
	list_del(&p->node);
	r->pending_bytes -= p->line.len;
	return p;
}

static void forget(struct relay *r, uint64_t number)
{
	struct pending *p = take_pending(r, number);

	if (p)
		pending_free(p);
}

/* ---- from the client ---- */

static void say_bye(struct relay *r)
{
	send_to_host(r, "bye", 3);
	flush_host(r);
}

static void add_line(struct relay *r, const char *prefix, const char *line, size_t len)
{
	struct pending *p = mem_new(NULL, sizeof(*p));

	p->number = ++r->last;
	buf_init(&p->line, len + 32);
	buf_addf(&p->line, "%s%" PRIu64, prefix, p->number);
	if (line) {
		buf_addc(&p->line, ' ');
		buf_add(&p->line, line, len);
	}
	list_add(&r->pending, &p->node);
	map_put(&r->by_number, p->number, p);
	r->pending_bytes += p->line.len;
	send_to_host(r, p->line.data, p->line.len);
}

static void client_line(void *ud, const char *line, size_t len)
{
	add_line(ud, "", line, len);
}

static void client_too_long(void *ud)
{
	add_line(ud, "long ", NULL, 0);
}

static void client_turn(void *ud)
{
	balance(ud);
	flush_host(ud);
}

/* An answer has reached the client: what it shows is consumed. */
static void client_sent(void *ud, uint64_t token)
{
	struct relay *r = ud;
	char text[32];
	int n = snprintf(text, sizeof(text), "ack %" PRIu64, token);

	if (token != NO_NUMBER)
		send_to_host(r, text, (size_t)n);
	balance(r);
	if (r->has_heard_bye && r->client->type->waiting(r->client) == 0)
		leave(r, 0);
}

static void on_impatient(uv_timer_t *t)
{
	leave(t->data, 0);
}

static void client_ended(void *ud)
{
	struct relay *r = ud;

	r->is_leaving = true;
	if (!r->host && list_is_empty(&r->pending)) {
		leave(r, 0);
		return;
	}
	say_bye(r);
	if (r->host)
		(void)uv_timer_start(&r->timer, on_impatient, FAREWELL_MS, 0);
}

static void client_closed(void *ud)
{
	leave(ud, 0);
}

static const struct transport_events client_events = {
	.line = client_line,
	.too_long = client_too_long,
	.turn = client_turn,
	.sent = client_sent,
	.ended = client_ended,
	.closed = client_closed,
};

/* ---- from the host ---- */

static void answer(struct relay *r, uint64_t number, const char *line, size_t len)
{
	struct buf copy = BUF_INIT(len);

	/* What is answered again after a new handshake has been passed on before. */
	if (number && !map_get(&r->by_number, number))
		return;
	if (number)
		forget(r, number);
	buf_add(&copy, line, len);
	r->client->type->send(r->client, &copy, number ? number : NO_NUMBER);
}

static void keep(struct relay *r, uint64_t number)
{
	struct pending *p = map_get(&r->by_number, number);

	if (!p || r->kept)
		return;
	r->kept = mem_new(NULL, sizeof(*r->kept));
	r->kept->number = number;
	buf_init(&r->kept->line, p->line.len);
	buf_add(&r->kept->line, p->line.data, p->line.len);
}

static void heard_bye(struct relay *r)
{
	r->has_heard_bye = true;
	r->client->type->flush(r->client);
	if (r->client->type->waiting(r->client) == 0)
		leave(r, 0);
}

/* The daemon is of our own making: what is odd here is a later version's, and not for us. */
static void host_line(void *ud, const char *line, size_t len)
{
	struct relay *r = ud;
	const char *space = len ? memchr(line, ' ', len) : NULL;
	uint64_t number = len ? strtoull(line, NULL, 10) : 0;

	if (len == 3 && memcmp(line, "bye", 3) == 0)
		heard_bye(r);
	else if (len > 5 && memcmp(line, "keep ", 5) == 0)
		keep(r, strtoull(line + 5, NULL, 10));
	else if (space)
		answer(r, number, space + 1, len - (size_t)(space + 1 - line));
	else
		forget(r, number);
}

static void host_too_long(void *ud)
{
	(void)ud;
}

static void host_turned(void *ud)
{
	struct relay *r = ud;

	r->tries = 0;
	r->client->type->flush(r->client);
	balance(r);
	flush_host(r); /* the acknowledgements */
}

static void host_sent(void *ud, uint64_t token)
{
	(void)ud;
	(void)token;
}

static void on_retry(uv_timer_t *t);

static void host_closed(void *ud)
{
	struct relay *r = ud;

	r->host->type->close(r->host);
	r->host = NULL;
	/* Who has left needs no other; its requests were answered, or will never be. */
	if (r->is_leaving)
		leave(r, 0);
	else
		(void)uv_timer_start(&r->timer, on_retry, 0, 0);
}

static const struct transport_events host_events = {
	.line = host_line,
	.too_long = host_too_long,
	.turn = host_turned,
	.sent = host_sent,
	.closed = host_closed,
};

/* ---- another daemon ---- */

static int use_link(struct relay *r, struct link *l, struct err *err)
{
	int fd = link_take_fd(l);

	link_free(l);
	return unix_transport(&r->loop, fd, MAX_REPLY_LINE * 2 + MAX_REQUEST_LINE,
			      &host_events, r, &r->host, err);
}

static void send_again(struct relay *r)
{
	if (r->kept && !map_get(&r->by_number, r->kept->number))
		send_to_host(r, r->kept->line.data, r->kept->line.len);
	list_each(node, &r->pending)
	{
		const struct pending *p = list_entry(node, struct pending, node);

		send_to_host(r, p->line.data, p->line.len);
	}
	if (r->is_leaving)
		say_bye(r);
	flush_host(r);
}

static void on_retry(uv_timer_t *t)
{
	struct relay *r = t->data;
	struct link *l = NULL;
	struct err err = {0};

	if (launch_link(&r->options, &l, &err) == LINK_OPEN && use_link(r, l, &err) == 0) {
		send_again(r);
		return;
	}
	if (++r->tries < MAX_TRIES) {
		(void)uv_timer_start(&r->timer, on_retry, RETRY_MS, 0);
		return;
	}
	fprintf(stderr, "errand: the daemon is gone, and there is no other: %s\n", err.msg);
	leave(r, 1);
}

/* ---- start and end ---- */

static void on_signal(uv_signal_t *s, int number)
{
	(void)number;
	leave(s->data, 0);
}

static void take_signals(struct relay *r)
{
	sigset_t ours;

	(void)signal(SIGPIPE, SIG_IGN);
	sigemptyset(&ours);
	for (size_t i = 0; i < N_SIGNALS; i++) {
		sigaddset(&ours, signals[i]);
		(void)uv_signal_init(&r->loop, &r->signals[i]);
		r->signals[i].data = r;
		(void)uv_signal_start(&r->signals[i], on_signal, signals[i]);
	}
	(void)sigprocmask(SIG_UNBLOCK, &ours, NULL);
}

static void finish(struct relay *r)
{
	if (r->host)
		r->host->type->close(r->host);
	if (r->client)
		r->client->type->close(r->client);
	uv_close((uv_handle_t *)&r->timer, NULL);
	for (size_t i = 0; i < N_SIGNALS; i++)
		uv_close((uv_handle_t *)&r->signals[i], NULL);
	(void)uv_run(&r->loop, UV_RUN_DEFAULT);
	(void)uv_loop_close(&r->loop);
	list_each(node, &r->pending) pending_free(list_entry(node, struct pending, node));
	map_release(&r->by_number);
	if (r->kept)
		pending_free(r->kept);
}

int relay_serve(struct link *l, const struct link_options *o)
{
	struct relay r = {.options = *o};
	struct err err = {0};
	int rc = uv_loop_init(&r.loop);

	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK);
	r.options.is_again = true;
	if (rc < 0) {
		fprintf(stderr, "errand: no event loop: %s\n", uv_strerror(rc));
		link_free(l);
		return 1;
	}
	list_init(&r.pending);
	map_init(&r.by_number, NULL);
	(void)uv_timer_init(&r.loop, &r.timer);
	r.timer.data = &r;
	take_signals(&r);
	rc = use_link(&r, l, &err);
	if (rc == 0)
		rc = stdinout_new(&r.loop, &client_events, &r, &r.client, &err);
	if (rc == 0)
		(void)uv_run(&r.loop, UV_RUN_DEFAULT);
	else
		fprintf(stderr, "errand: %s\n", err.msg);
	finish(&r);
	return rc < 0 ? 1 : r.exit_code;
}
