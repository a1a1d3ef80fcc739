/* SPDX-License-Identifier: MIT */
/*
 * mcp.h - the Model Context Protocol on top of an errand_host.
 *
 * A struct mcp_server is what all clients of a host share: the tool list, the instructions,
 * the notices that are on their way. A struct mcp is one conversation with one client. Both
 * know no descriptor, no clock and no loop: lines come in through mcp_line(), leave through
 * ops->send(), and the time is an argument.
 *
 *      transport          conversation                    errand_host
 *      ---------          ------------                    -----------
 *      a line        -->  mcp_line()  -- errand_call_new() -->  queued
 *                         reply, claim  <-- on_result() --      errand_run()
 *      queue         <--  ops->send(line, token)
 *      written       -->  mcp_sent(token)  -- errand_lease_commit() -->
 *      or dropped    -->  mcp_unsent(token)  -- errand_lease_return() -->
 *
 * What a reply shows is consumed only when mcp_sent() says that the client's pipe took it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "errand.h"

struct err;
struct mcp;
struct mcp_server;

struct mcp_server_options {
	errand_host *host; /* outlives the server, or is freed right before it */
	const char *version;
	/* Members for the _meta of the first answer, `"key":value`; NULL: none. */
	const char *start_meta;
};

int mcp_server_new(const struct mcp_server_options *o, struct mcp_server **ret,
		   struct err *err) __attribute__((warn_unused_result));
/* After the conversations. NULL is fine. */
void mcp_server_free(struct mcp_server *s);

/* What happens cannot be kept, and why: replies say so in their _meta. NULL: it can. */
void mcp_server_unsaved(struct mcp_server *s, const char *why);

struct mcp_ops {
	/* Queue one line; a newline is added. The memory of @line is taken. It answers the line
	 * that came in with @tag, 0: none. With a @token other than 0, mcp_sent() or
	 * mcp_unsent() follows, once, not from inside. */
	void (*send)(void *ud, struct buf *line, uint64_t tag, uint64_t token);
	/* The line with @tag has no answer, or will not have one any more. NULL: nobody asks. */
	void (*unanswered)(void *ud, uint64_t tag);
	/* Take a line back. False: some of it has been written already. */
	bool (*unsend)(void *ud, uint64_t token);
	/* Is a line waiting for a slow reader? Then what is only nice to know is left out. */
	bool (*is_behind)(void *ud);
	/* The agent that @owner names; a NULL name is the client's own. ERR_LIMIT: too many. */
	int (*agent)(void *ud, const char *owner, size_t len, errand_agent *ret,
		     struct err *err);
	/* task_kill was asked of a task that has ended. The contract leaves it at the answer;
	 * what the task has left running is the producer's. NULL: nothing is. */
	void (*killed_late)(void *ud, const char *id, size_t len);
	/* Append what the producer of the task @id knows beside the contract, one JSON object, or
	 * nothing. It goes into the _meta of replies that show the task. NULL: nobody knows. */
	void (*facts)(void *ud, const char *id, size_t len, struct buf *out);
};

struct mcp *mcp_new(struct mcp_server *s, const struct mcp_ops *ops, void *ud);
/* Answer server/discover as an old server would. */
void mcp_be_legacy(struct mcp *m);
/* Somebody comes back to @agent, whose tasks it may have forgotten: the first reply that is
 * delivered to that agent begins its notices with a line about them. */
void mcp_resume(struct mcp *m, errand_agent agent);
/* The client is gone: its calls are aborted, what was not sent is returned. NULL is fine. */
void mcp_free(struct mcp *m);

/* One line without its end; borrowed. @tag comes back with what answers it. */
void mcp_line(struct mcp *m, const char *line, size_t len, uint64_t tag, int64_t mono_ms);
/* A line longer than MAX_REQUEST_LINE was skipped. */
void mcp_line_too_long(struct mcp *m, uint64_t tag);
/* Has a handshake taken place, so that a new conversation would need it again? */
bool mcp_is_initialized(const struct mcp *m);
/* The ud of the conversation that @call came from, and the tag of its line (@ret_tag may be
 * NULL); NULL: it is gone, or was none. */
void *mcp_caller(const struct mcp_server *s, errand_call call, uint64_t *ret_tag);

void mcp_sent(struct mcp *m, uint64_t token);
void mcp_unsent(struct mcp *m, uint64_t token);

/* When mcp_tick() has something to do; INT64_MAX: never. */
int64_t mcp_deadline(const struct mcp *m);
/* Sends the progress notifications that are due. */
void mcp_tick(struct mcp *m, int64_t mono_ms);
