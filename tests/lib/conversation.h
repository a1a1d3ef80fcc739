/* SPDX-License-Identifier: MIT */
/*
 * conversation.h - an MCP conversation over a real core, with a pipe and a clock that the
 * test moves: say() is a line from the client, deliver() the pipe taking what was sent.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "errand.h"
#include "mcp/mcp.h"

#define TALK_LINES 4096

struct talk {
	errand_host *host;
	struct mcp_server *server;
	struct mcp *mcp;
	int64_t now;
	bool is_behind;
	char *lines[TALK_LINES];     /* sent, oldest first */
	uint64_t tokens[TALK_LINES]; /* 0: taken, or needs no word about it */
	uint64_t tags[TALK_LINES];   /* of the line that it answers */
	uint64_t said;               /* lines from the client: each one's tag */
	uint64_t unanswered;         /* the last that will have no answer */
	size_t count;
	struct {
		char name[64];
		errand_agent agent;
	} owners[8];
	char killed_late[64]; /* the ended task that task_kill was last asked of */
	/* What the test's tasks have printed; one text for all. */
	char output[256];
	size_t bulk; /* instead: so many line feeds */
	/* What the producer knows of each of them: the id, and so many bytes; 0: nothing. */
	size_t facts;
	int unread; /* instead: so many bytes; 0: nothing */
};

static void talk_send(void *ud, struct buf *line, uint64_t tag, uint64_t token)
{
	struct talk *t = ud;

	t->tags[t->count] = tag;
	if (t->count == TALK_LINES)
		abort();
	t->tokens[t->count] = token;
	t->lines[t->count++] = buf_take(line, NULL);
}

static bool talk_unsend(void *ud, uint64_t token)
{
	struct talk *t = ud;

	for (size_t i = 0; i < t->count; i++) {
		if (t->tokens[i] == token) {
			t->tokens[i] = 0;
			free(t->lines[i]);
			t->lines[i] = strdup("(taken back)");
			return true;
		}
	}
	return false;
}

static bool talk_is_behind(void *ud)
{
	return ((struct talk *)ud)->is_behind;
}

static void talk_unanswered(void *ud, uint64_t tag)
{
	((struct talk *)ud)->unanswered = tag;
}

static void talk_killed_late(void *ud, const char *id, size_t len)
{
	struct talk *t = ud;

	(void)snprintf(t->killed_late, sizeof(t->killed_late), "%.*s", (int)len, id);
}

static void talk_facts(void *ud, const char *id, size_t len, struct buf *out)
{
	const struct talk *t = ud;

	if (t->unread)
		buf_addf(out, "{\"unreadBytes\":%d}", t->unread);
	if (t->unread || !t->facts)
		return;
	buf_addf(out, "{\"of\":\"%.*s\",\"much\":\"", (int)len, id);
	for (size_t i = 0; i < t->facts; i++)
		buf_addc(out, 'x');
	buf_adds(out, "\"}");
}

static int talk_agent(void *ud, const char *owner, size_t len, errand_agent *ret,
		      struct err *err)
{
	struct talk *t = ud;
	struct errand_agent_options o = {.size = sizeof(o)};
	size_t i;

	owner = owner ? owner : "self";
	len = strcmp(owner, "self") == 0 ? 4 : len;
	for (i = 0; i < 8 && t->owners[i].agent; i++) {
		if (strlen(t->owners[i].name) == len &&
		    memcmp(t->owners[i].name, owner, len) == 0) {
			*ret = t->owners[i].agent;
			return 0;
		}
	}
	if (i == 8)
		return err_set(err, ERR_LIMIT, "too many owners");
	o.session = (errand_str){owner, len};
	if (errand_agent_new(t->host, &o, &t->owners[i].agent, NULL) < 0)
		return err_set(err, ERR_ARG, "no agent");
	(void)snprintf(t->owners[i].name, sizeof(t->owners[i].name), "%.*s", (int)len,
		       owner);
	*ret = t->owners[i].agent;
	return 0;
}

static void talk_work(struct talk *t)
{
	while (errand_run(t->host, t->now, 1000000 + t->now, 0) > 0)
		;
}

static void say_bytes(struct talk *t, const char *line, size_t len)
{
	mcp_line(t->mcp, line, len, ++t->said, t->now);
	talk_work(t);
}

static inline void say(struct talk *t, const char *line)
{
	say_bytes(t, line, strlen(line));
}

/* The pipe has taken (or never will take) all that was sent. */
static inline void deliver(struct talk *t)
{
	for (size_t i = 0; i < t->count; i++) {
		uint64_t token = t->tokens[i];

		t->tokens[i] = 0;
		if (token)
			mcp_sent(t->mcp, token);
	}
	talk_work(t);
}

static inline void lose(struct talk *t)
{
	for (size_t i = 0; i < t->count; i++) {
		uint64_t token = t->tokens[i];

		t->tokens[i] = 0;
		if (token)
			mcp_unsent(t->mcp, token);
	}
	talk_work(t);
}

static inline const char *last(const struct talk *t)
{
	return t->count ? t->lines[t->count - 1] : "(nothing)";
}

static inline bool has(const char *line, const char *part)
{
	return strstr(line, part) != NULL;
}

/* ---- tasks of the test's own ---- */

static int talk_start(void *ud, errand_host *h, errand_task task, errand_error *e)
{
	(void)ud, (void)h, (void)task, (void)e;
	return 0;
}

static int talk_cancel(void *ud, errand_host *h, errand_task task, const char *reason,
		       size_t len, errand_error *e)
{
	(void)ud, (void)reason, (void)len, (void)e;
	return errand_settle(h, task, ERRAND_KILLED, "signal: SIGTERM", ERRAND_NUL, NULL,
			     0);
}

static int talk_read(void *ud, errand_task task, uint64_t from, errand_sink *out,
		     uint64_t *ret_next, errand_error *e)
{
	const struct talk *t = ud;
	size_t all = t->bulk ? t->bulk : strlen(t->output),
	       left = all > from ? all - from : 0;
	size_t n = left < errand_sink_room(out) ? left : errand_sink_room(out);
	char *text = mem_new(NULL, n + 1);

	(void)task, (void)e;
	memset(text, '\n', n);
	if (!t->bulk)
		memcpy(text, t->output + from, n);
	(void)errand_sink_write(out, text, n);
	mem_free(NULL, text);
	*ret_next = from + n;
	return 0;
}

/* A task of @owner (NULL: the client's own), of the kind "job". */
static inline errand_task job(struct talk *t, const char *owner)
{
	struct errand_task_spec s = {
		.size = sizeof(s),
		.kind = {"job", 3},
		.label = {"work", 4},
		.producer = {.size = sizeof(s.producer),
			     .start = talk_start,
			     .cancel = talk_cancel,
			     .read = talk_read,
			     .ud = t},
	};
	errand_text *id = NULL;
	errand_task task = 0;

	if (talk_agent(t, owner, owner ? strlen(owner) : 0, &s.owner, NULL) < 0 ||
	    errand_task_start(t->host, &s, &task, &id, NULL) < 0)
		abort();
	errand_text_free(id);
	return task;
}

static inline void job_ends(struct talk *t, errand_task task)
{
	(void)errand_settle(t->host, task, ERRAND_COMPLETED, "exit code: 0", ERRAND_NUL,
			    NULL, 0);
	talk_work(t);
}

/* ---- life ---- */

static inline void talk_open(struct talk *t, bool is_legacy_only)
{
	static const struct mcp_ops ops = {
		.send = talk_send,
		.unanswered = talk_unanswered,
		.unsend = talk_unsend,
		.is_behind = talk_is_behind,
		.agent = talk_agent,
		.killed_late = talk_killed_late,
		.facts = talk_facts,
	};
	struct errand_host_options o = {.size = sizeof(o), .abi = ERRAND_ABI};
	struct mcp_server_options so = {.version = "1.2.3"};
	errand_reg reg;

	memset(t, 0, sizeof(*t));
	if (errand_host_new(&o, &t->host, NULL) < 0 ||
	    errand_mount(t->host, 0, "{}", 2, &reg, NULL) < 0)
		abort();
	so.host = t->host;
	if (mcp_server_new(&so, &t->server, NULL) < 0)
		abort();
	t->mcp = mcp_new(t->server, &ops, t);
	if (is_legacy_only)
		mcp_be_legacy(t->mcp);
	talk_work(t);
}

static inline void talk_close(struct talk *t)
{
	mcp_free(t->mcp);
	errand_host_free(t->host);
	mcp_server_free(t->server);
	for (size_t i = 0; i < t->count; i++)
		free(t->lines[i]);
	t->count = 0;
}
