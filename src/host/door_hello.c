/* SPDX-License-Identifier: MIT */
/*
 * door_hello.c - a connection, until it is known what it is: who is there, its hello, the bytes
 * of its context. What is wrong is said in one line, and the connection ends.
 */
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "host/handover.h"
#include "host/import.h"
#include "host/internal.h"
#include "host/peer.h"
#include "run/bash.h"
#include "transport/transport.h"

/* The token of a line that is the last. */
#define LAST 1
/* Processes between a task's main one and a client that it started: more is no tree of a task. */
#define MAX_DEPTH 4096

static void say_last(struct client *c, struct buf *line)
{
	c->is_answered = true;
	client_send(c, line, LAST);
	c->transport->type->flush(c->transport);
}

static void refuse(struct client *c, const struct err *why)
{
	struct buf line = BUF_INIT(KIB(1));

	welcome_put_refusal(&line, why->msg);
	say_last(c, &line);
}

/* ---- who asks ---- */

/* The owner of the task that the client was started by; 0: by none. */
static errand_agent owner_above(const struct client *c)
{
	char task[PEER_TASK];
	errand_agent owner = 0;
	pid_t pid = c->pid;

	for (int i = 0; i < MAX_DEPTH && pid > 1 && !owner; i++) {
		pid = peer_parent(pid);
		owner = bash_owner(c->host->bash, pid, NULL);
	}
	if (!owner && peer_task(c->pid, task))
		owner = bash_owner(c->host->bash, 0, task);
	return owner;
}

static char *made_up_name(const char *nonce)
{
	char *name = mem_new(NULL, HELLO_NONCE + 2);

	(void)snprintf(name, HELLO_NONCE + 2, "~%s", nonce);
	return name;
}

static int find_owner(struct client *c, struct err *err)
{
	const struct hello *h = &c->hello;
	char *name;
	int rc;

	if (h->role == HELLO_OPERATOR) {
		c->agent = owner_above(c);
		return c->agent ? 0 : host_operator(c->host, &c->agent, err);
	}
	if (h->session)
		name = mem_dup(NULL, h->session, strlen(h->session));
	else
		name = made_up_name(h->nonce);
	c->is_resuming = !h->is_again &&
			 owners_is_left(&c->host->owners, name, strlen(name));
	rc = owners_enter(&c->host->owners, name, strlen(name), clock_mono_ms(), err);
	/* Only who has entered is to leave. */
	if (rc == 0)
		c->owner = name;
	else
		mem_free(NULL, name);
	return rc;
}

/* ---- the two pieces ---- */

static void welcome(struct client *c)
{
	struct buf line = BUF_INIT(KIB(1));

	import_more(c->host); /* no task of a crashed host is to wait for a person */
	welcome_put(&line);
	client_send(c, &line, 0);
	if (c->hello.role == HELLO_MCP)
		door_numbered_enter(c);
	else
		door_operator_enter(c);
}

static void hand_over(struct client *c)
{
	struct buf line = BUF_INIT(KIB(1));
	struct err err = {0};
	int rc = owner_above(c) ? err_set(&err, ERR_STATE, "a task may not end the host")
				: handover_grant(c, &err);

	if (rc < 0) {
		refuse(c, &err);
		return;
	}
	welcome_put(&line);
	say_last(c, &line);
}

static void take_context(struct client *c, const char *bytes, size_t len)
{
	struct err err = {0};
	int rc = context_read(&c->hello.context, bytes, len, &err);

	if (rc == 0 && c->hello.role == HELLO_HANDOVER) {
		hand_over(c);
		return;
	}
	if (rc == 0)
		rc = find_owner(c, &err);
	if (rc < 0)
		refuse(c, &err);
	else
		welcome(c);
}

static void take_hello(struct client *c, const char *line, size_t len)
{
	struct err err = {0};

	if (hello_read(line, len, &c->hello, &err) < 0)
		refuse(c, &err);
	else
		c->transport->type->block(c->transport, c->hello.context_bytes);
}

static void hello_line(struct client *c, const char *line, size_t len)
{
	if (c->is_answered)
		return;
	if (c->hello.context_bytes > 0)
		take_context(c, line, len);
	else
		take_hello(c, line, len);
}

static void hello_too_long(struct client *c)
{
	hello_line(c, "", 0);
}

static void hello_sent(struct client *c, uint64_t token)
{
	if (token == LAST)
		client_gone(c);
}

static void hello_close(struct client *c)
{
	(void)c;
}

void door_hello_enter(struct client *c, int fd)
{
	static const struct door door = {
		.line = hello_line,
		.too_long = hello_too_long,
		.sent = hello_sent,
		.close = hello_close,
	};
	struct err err = {0};
	struct peer peer;

	c->door = &door;
	if (peer_check(fd, c->host->config.contained_clients, &peer, &err) < 0)
		refuse(c, &err);
	else
		c->pid = peer.pid;
}
