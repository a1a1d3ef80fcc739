/* SPDX-License-Identifier: MIT */
/*
 * internal.h - what the files of src/mcp share.
 *
 *      conversation.c   lines in: eras, batches
 *      flight.c         what is in flight: progress, cancellation
 *      outgoing.c       lines out
 *      methods.c        the table of methods and the short ones
 *      call.c           tools/call: from the request to a reply
 *      notices.c        notices that ride on replies
 *      digest.c         what a session holds that is resumed
 *      server.c         tool list, instructions
 *      rpc.c            one message
 */
#pragma once

#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "mcp/mcp.h"
#include "mcp/rpc.h"

#define MCP_MODERN "2026-07-28"
#define MCP_NEWEST_LEGACY "2025-11-25"
#define MCP_BATCHES "2025-03-26" /* the only version that has them */

#define META_VERSION "io.modelcontextprotocol/protocolVersion"
#define META_CAPABILITIES "io.modelcontextprotocol/clientCapabilities"
#define META_SERVER_INFO "io.modelcontextprotocol/serverInfo"
#define META_SUBSCRIPTION "io.modelcontextprotocol/subscriptionId"

/* Requests without an answer yet. Above it a client is told to wait for some. */
#define MAX_IN_FLIGHT 10000u
/* Bytes of their lines: the core keeps their arguments. */
#define MAX_IN_FLIGHT_BYTES MIB(64)
#define MAX_BATCH 1000u
/* Text of the notices on one reply. Beyond it each is cut to an equal share. */
#define MAX_NOTICE_TEXT KIB(512)
#define MAX_OWNER_NAME 256u
/* Clients give up after 60 s without a sign; some count from the last progress. */
#define PROGRESS_MS 5000

enum era {
	ERA_LEGACY = 1,
	ERA_MODERN = 2,
};

struct mcp_server {
	errand_host *host;
	struct buf tools;        /* the JSON array of tools/list */
	struct buf instructions; /* a JSON string */
	struct buf info;         /* the serverInfo object */
	char *start_meta;
	char *unsaved;      /* NULL: what happens is kept */
	struct map calls;   /* errand_call -> struct call, while it runs */
	struct list claims; /* struct claim: on a reply that was not delivered yet */
};

struct mcp {
	struct mcp_server *server;
	struct mcp_ops ops;
	void *ud;
	bool is_legacy_only, is_initialized, has_batches;
	struct list calls; /* struct call, running or replied */
	struct map by_id;  /* hash of the id's key -> struct call, chained */
	struct list timed; /* struct call.timed, the next due first */
	struct list sent;  /* struct sent */
	struct map by_token;
	uint64_t last_token;
	uint64_t tag;      /* of the line that is being read */
	struct buf digest; /* for digest_agent, until it was delivered */
	errand_agent digest_agent;
	size_t in_flight, in_flight_bytes;
};

/* A batch under way: the replies of its requests leave together, as one array. */
struct batch {
	struct buf line;
	struct list
		calls; /* struct call.reply: replied, their leases to end with the line */
	size_t open;   /* requests without an answer, plus one while it is being read */
	uint64_t tag;
};

/* A line that somebody waits for: the calls whose replies it carries. */
struct sent {
	struct list node, calls;
	uint64_t token;
};

/*
 * A request that is not answered at once: a tool call, or a subscription. It lives until
 * its reply has been written, so that a cancellation still finds it.
 */
struct call {
	struct list node, timed, reply;
	struct call *chain; /* of one hash */
	struct mcp *mcp;
	struct batch *batch; /* NULL: alone */
	struct sent *sent;   /* NULL: no reply yet */
	uint64_t hash, tag;
	struct buf key, id, progress_token;
	enum era era;
	size_t cost; /* bytes of the line */
	int64_t progress_at;
	int progress;     /* seconds so far */
	errand_call call; /* 0: a subscription */
	errand_agent agent;
	bool is_list; /* task_list: its value is not for the _meta, and tells no end */
	bool is_kill;
	/* Of the reply: */
	errand_lease lease;
	struct claim *claim;
	bool has_digest;
	struct buf shown; /* the task whose end it shows */
};

/* One request while it is being handled. */
struct request {
	struct mcp *mcp;
	const struct rpc_message *message;
	const struct js *params; /* an object or NULL */
	const struct js *meta;   /* params._meta: an object or NULL */
	enum era era;
	struct batch *batch;
	int64_t now;
};

/* ---- outgoing.c ---- */

/* Answer the line that is being read, without leases, or put it into its batch. The memory of
 * @line is taken. */
void send_plain(struct mcp *m, struct batch *b, struct buf *line);
/* False: there is no room for it. */
bool batch_add(struct batch *b, const struct buf *line);
/* One request of the batch has its answer, or will never have one. */
void batch_close_one(struct mcp *m, struct batch *b);
void send_nothing(struct mcp *m, uint64_t tag);
struct sent *sent_new(struct mcp *m);
void sent_free(struct mcp *m, struct sent *s);
/* Answer at once. @body: the members of the result, without the braces. */
void request_result(const struct request *r, const struct buf *body);
void request_fail(const struct request *r, enum rpc_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void request_fail_data(const struct request *r, enum rpc_code code, const char *message,
		       const char *data);
/* Members that each result of the era has, each with a comma behind it. */
void put_result_type(struct buf *out, enum era era);

/* ---- flight.c ---- */

/* Keep a request open. NULL: too many are; it has been refused then. */
struct call *call_open(const struct request *r);
/* Its reply is ready; it ends when the line was written. The memory of @line is taken. */
void call_reply(struct call *c, struct buf *line);
/* Give back what the reply would have consumed, and forget the call. */
void call_drop(struct call *c);
/* notifications/cancelled */
void call_cancel(struct mcp *m, const struct rpc_message *msg);

/* ---- methods.c, call.c ---- */

void method_dispatch(const struct request *r);
void tools_call(const struct request *r);

/* ---- notices.c ---- */

struct claim;

/* Take the pending notices of @agent, those of the task @shown without showing them. NULL:
 * there is none. @text gets what is to be shown. */
struct claim *claim_take(struct mcp_server *s, errand_agent agent, const struct buf *shown,
			 struct buf *text);
void claim_commit(struct claim *c);
void claim_return(struct claim *c);
/* A delivered reply has shown the end of @task to @agent: its notice is withdrawn. */
void notices_withdraw(struct mcp_server *s, errand_agent agent, const struct buf *task);

/* ---- server.c ---- */

/* The members of a _meta for @era; without one, nothing is put. */
void put_server_meta(struct buf *out, const struct mcp_server *s, enum era era);
