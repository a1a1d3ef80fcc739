/* SPDX-License-Identifier: MIT */
/*
 * door_mcp.c - clients that speak MCP.
 *
 * On stdin and stdout, what a reply shows is consumed when the pipe has taken its line. Through
 * a socket that would be too early: the process behind it passes the line on to a pipe of its
 * own. There lines are numbered, an answer has the number of its request, and is consumed when
 * the other side says `ack`.
 */
#include <inttypes.h>
#include <stdlib.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "host/internal.h"
#include "host/journal.h"
#include "mcp/mcp.h"
#include "run/bash.h"
#include "transport/transport.h"

/* ---- what both have ---- */

static bool ops_is_behind(void *ud)
{
	const struct client *c = ud;

	return c->transport->type->waiting(c->transport) > 0;
}

static int ops_agent(void *ud, const char *owner, size_t len, errand_agent *ret,
		     struct err *err)
{
	struct client *c = ud;

	if (owner && *owner == '~')
		return err_set(err, ERR_ARG, "an owner's name does not begin with '~'");
	if (!owner) {
		owner = c->owner;
		len = strlen(owner);
	}
	return owners_agent(&c->host->owners, owner, len, clock_mono_ms(), ret, err);
}

static void ops_killed_late(void *ud, const char *id, size_t len)
{
	const struct client *c = ud;

	bash_sweep(c->host->bash, id, len);
}

static void ops_facts(void *ud, const char *id, size_t len, struct buf *out)
{
	const struct client *c = ud;

	bash_facts(c->host->bash, id, len, out);
}

static void mcp_close(struct client *c)
{
	mcp_free(c->mcp);
	c->mcp = NULL;
}

static int64_t door_deadline(const struct client *c)
{
	return mcp_deadline(c->mcp);
}

static void door_tick(struct client *c, int64_t mono_ms)
{
	mcp_tick(c->mcp, mono_ms);
}

/* ---- stdin and stdout ---- */

static void stdio_line(struct client *c, const char *line, size_t len)
{
	mcp_line(c->mcp, line, len, 0, clock_mono_ms());
}

static void stdio_too_long(struct client *c)
{
	mcp_line_too_long(c->mcp, 0);
}

static void stdio_sent(struct client *c, uint64_t token)
{
	mcp_sent(c->mcp, token);
}

static void stdio_send(void *ud, struct buf *line, uint64_t tag, uint64_t token)
{
	(void)tag;
	client_send(ud, line, token);
}

static bool stdio_unsend(void *ud, uint64_t token)
{
	struct client *c = ud;

	return c->transport->type->unsend(c->transport, token);
}

static const struct door stdio_door = {
	.line = stdio_line,
	.too_long = stdio_too_long,
	.sent = stdio_sent,
	.close = mcp_close,
	.deadline = door_deadline,
	.tick = door_tick,
};

void door_stdio_enter(struct client *c)
{
	static const struct mcp_ops ops = {
		.send = stdio_send,
		.unsend = stdio_unsend,
		.is_behind = ops_is_behind,
		.agent = ops_agent,
		.killed_late = ops_killed_late,
		.facts = ops_facts,
	};

	c->door = &stdio_door;
	c->mcp = mcp_new(c->host->server, &ops, c);
}

/* ---- numbered lines ---- */

/* `word` or `word number` or `number line`. */
struct numbered {
	uint64_t number;
	const char *rest;
	size_t len;
};

/* The number at @p; *@ret is behind it. False: there is none. */
static bool read_number(const char *p, const char *end, uint64_t *ret_number,
			const char **ret)
{
	uint64_t n = 0;
	const char *at = p;

	for (; at < end && *at >= '0' && *at <= '9' && n < UINT64_MAX / 20; at++)
		n = n * 10 + (uint64_t)(*at - '0');
	*ret_number = n;
	*ret = at;
	return at > p && (at == end || *at == ' ');
}

static bool starts_with(const char *line, size_t len, const char *word)
{
	size_t n = strlen(word);

	return len >= n && memcmp(line, word, n) == 0;
}

static void say(struct client *c, const char *word, uint64_t number)
{
	struct buf line = BUF_INIT(64);

	buf_adds(&line, word);
	buf_addf(&line, "%" PRIu64, number);
	client_send(c, &line, 0);
}

static void acked(struct client *c, uint64_t number)
{
	uint64_t token = (uint64_t)(uintptr_t)map_get(&c->unacked, number);

	map_del(&c->unacked, number);
	if (token)
		mcp_sent(c->mcp, token);
	if (c->host->journal)
		journal_answered(c->host->journal, c->hello.nonce, number);
}

static void numbered_line(struct client *c, const char *line, size_t len)
{
	const char *end = line + len, *p = line;
	bool is_ack = starts_with(line, len, "ack "),
	     is_long = starts_with(line, len, "long ");
	uint64_t number;
	size_t has_line;

	if (len == 3 && starts_with(line, len, "bye")) {
		c->is_leaving = true;
		return;
	}
	p += is_ack ? 4 : is_long ? 5 : 0;
	if (!read_number(p, end, &number, &p) || number == 0) {
		client_gone(c); /* it does not speak the protocol */
		return;
	}
	has_line = p < end;
	if (is_ack)
		acked(c, number);
	else if (is_long)
		mcp_line_too_long(c->mcp, number);
	else
		mcp_line(c->mcp, p + has_line, (size_t)(end - p) - has_line, number,
			 clock_mono_ms());
}

static void numbered_too_long(struct client *c)
{
	client_gone(c);
}

/* That the socket has taken it says nothing. */
static void numbered_sent(struct client *c, uint64_t token)
{
	(void)c;
	(void)token;
}

static void numbered_send(void *ud, struct buf *line, uint64_t tag, uint64_t token)
{
	struct buf numbered = BUF_INIT(line->len + 32);
	struct client *c = ud;

	/* In front of its answer, after which the other side forgets a line. */
	if (!c->is_kept && mcp_is_initialized(c->mcp)) {
		c->is_kept = true;
		say(c, "keep ", tag);
	}
	buf_addf(&numbered, "%" PRIu64 " ", tag);
	buf_add(&numbered, line->data, line->len);
	buf_release(line);
	if (token)
		map_put(&c->unacked, tag, (void *)(uintptr_t)token);
	client_send(c, &numbered, token);
}

static void numbered_unanswered(void *ud, uint64_t tag)
{
	struct client *c = ud;

	map_del(&c->unacked, tag);
	say(c, "", tag);
}

static bool numbered_unsend(void *ud, uint64_t token)
{
	return stdio_unsend(ud, token);
}

static const struct door numbered_door = {
	.line = numbered_line,
	.too_long = numbered_too_long,
	.sent = numbered_sent,
	.close = mcp_close,
	.deadline = door_deadline,
	.tick = door_tick,
};

static void resume(struct client *c)
{
	errand_agent agent;

	if (c->is_resuming && ops_agent(c, NULL, 0, &agent, NULL) == 0)
		mcp_resume(c->mcp, agent);
}

void door_numbered_enter(struct client *c)
{
	static const struct mcp_ops ops = {
		.send = numbered_send,
		.unanswered = numbered_unanswered,
		.unsend = numbered_unsend,
		.is_behind = ops_is_behind,
		.agent = ops_agent,
		.killed_late = ops_killed_late,
		.facts = ops_facts,
	};

	c->door = &numbered_door;
	c->mcp = mcp_new(c->host->server, &ops, c);
	if (c->hello.is_legacy_only)
		mcp_be_legacy(c->mcp);
	resume(c);
}
