/* SPDX-License-Identifier: MIT */
/*
 * store.h - what a host must not forget, in one SQLite database: <state>/errand.db.
 *
 *      host's thread                                worker
 *      -------------                                ------
 *      errand_run(): journal -> store_put_fact()
 *      its own: store_put_run(), _request() ...
 *      hand the batch over                   -->    store_commit(): one transaction
 *      fill the next batch                          ...
 *      replies and notices may leave         <--    0: durable
 *
 * A batch is plain memory. A commit takes all of it or nothing; after a failure it is as it was,
 * to be committed again, alone or in front of a later one (store_batch_move()).
 *
 * A struct store belongs to one thread at a time, whichever that is. Who wants to look
 * something up while a worker commits opens a second one with STORE_READ.
 *
 * Failures (struct err): code ERR_FORMAT: the database is damaged. ERR_SYS with errnum ENOSPC,
 * EIO ...: the disk; ERR_STATE with EBUSY: another process has it locked for longer than
 * STORE_BUSY_MS. These may pass. ERR_ARG: a fact that cannot be; it will never pass.
 *
 * Times are epoch milliseconds, shown and used for expiry; they order nothing.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "errand.h"

struct err;
struct store;

#define STORE_FILE "errand.db"
#define STORE_BUSY_MS 5000

/* ---- opening ------------------------------------------------------------------------- */

enum store_mode {
	STORE_WRITE, /* make it if it is not there; repair by moving aside */
	STORE_READ,  /* look only; -ERR_NOT_FOUND if it is not there */
};

/*
 * @folder must be there, private, and on a local disk. -ERR_STATE: the database is not ours to
 * use (of another program, of a newer errand, a link, open to others, on a network file
 * system); the text says what to do, nothing was touched. A damaged one is moved aside to
 * errand.db.corrupt-<n> and a new one begun; *@ret_note (may be NULL) is then a sentence for the
 * user, to be freed, otherwise NULL. In STORE_READ that is -ERR_FORMAT.
 */
int store_open(const char *folder, enum store_mode mode, struct store **ret,
	       char **ret_note, struct err *err) __attribute__((warn_unused_result));
void store_close(struct store *s); /* NULL is fine */
/*
 * Is the file that *@s works on still the one in its folder? If somebody has removed or moved it,
 * what it held is written there anew, from the descriptors that are open. 1: so it was; *@s is
 * another one then. After a failure *@s may be NULL: store_open() again.
 */
int store_keep_place(struct store **s, struct err *err) __attribute__((warn_unused_result));

/*
 * What was loaded could not be restored (@why): move the database of @folder aside, which no
 * store has open any more. *@ret_note as above.
 */
int store_set_aside(const char *folder, const char *why, char **ret_note, struct err *err)
	__attribute__((warn_unused_result));

/* ---- a batch ------------------------------------------------------------------------- */

#define MAX_BATCH MIB(256)
/* A reply above this is not kept; that the request was carried out is. */
#define MAX_KEPT_REPLY MIB(1)

struct store_batch {
	struct buf facts; /* JSON objects, each ended by a NUL */
	size_t count;
};

void store_batch_init(struct store_batch *b);
void store_batch_release(struct store_batch *b);
void store_batch_clear(struct store_batch *b);
/* Append all of @from to @to; @from is empty then. -ERR_LIMIT: nothing was moved. */
int store_batch_move(struct store_batch *to, struct store_batch *from)
	__attribute__((warn_unused_result));
static inline bool store_batch_is_empty(const struct store_batch *b)
{
	return b->count == 0;
}

/*
 * Each of these may be let go: a batch that is over MAX_BATCH refuses to be committed. Let
 * nobody ask for more while facts.len is large. Texts are (pointer, length or ERRAND_NUL).
 */

/* One fact of the core's journal, as it comes. */
void store_put_fact(struct store_batch *b, const char *json, size_t len);

/* Where a task runs: its run folder's name, the boot it was started in, the bytes that its
 * folder holds (for the limit on history; 0 until it has ended). */
struct store_run {
	errand_task task;
	errand_str uid, boot;
	int64_t bytes;
	/* out: why its end was asked for; the model still sees the task */
	errand_str kill_reason;
	bool is_listed;
};
void store_put_run(struct store_batch *b, const struct store_run *r);
/* Of a task whose run was put before. */
void store_put_kill_reason(struct store_batch *b, errand_task task, errand_str reason);

/* A session by its name: how it was named, and when somebody was connected last. */
struct store_session {
	errand_str name, how, cwd;
	int64_t seen;
	int64_t pid,
		ticks; /* pid: of the host that somebody is connected to; 0: nobody is */
};
void store_put_session(struct store_batch *b, const struct store_session *s);
void store_drop_session(struct store_batch *b, errand_str name);

/* A request that had an effect, and its reply; .reply.ptr NULL: too long, or not known yet. */
struct store_request {
	errand_str nonce, reply;
	int64_t sequence, at;
};
void store_put_request(struct store_batch *b, const struct store_request *r);
/* The client has seen the replies to all requests up to @sequence. */
void store_drop_requests(struct store_batch *b, errand_str nonce, int64_t sequence);

/* Who did what, through which door; .task is the model's id ("bash-1") or absent. */
struct store_audit {
	errand_str who, door, act, task, detail;
	int64_t at;
};
void store_put_audit(struct store_batch *b, const struct store_audit *a);

/* ---- committing ---------------------------------------------------------------------- */

/* One durable transaction; an empty batch costs nothing. @b is not changed. */
int store_commit(struct store *s, const struct store_batch *b, struct err *err)
	__attribute__((warn_unused_result));

/* ---- recovery ------------------------------------------------------------------------ */

/* Called in this order; what is passed is borrowed. Each may be NULL. */
struct store_loader {
	void (*run)(void *ud, const struct store_run *r); /* also of history */
	void (*session)(void *ud, const struct store_session *s);
	void (*request)(void *ud, const struct store_request *r);
	/* For errand_restore(), in its order; put commas between them and brackets around. */
	void (*fact)(void *ud, const char *json, size_t len);
	void *ud;
};
/* All of one moment. Tidy first, so that what has expired does not come. */
int store_load(struct store *s, const struct store_loader *l, struct err *err)
	__attribute__((warn_unused_result));

/* ---- for people ---------------------------------------------------------------------- */

/* One row as a JSON object. */
typedef void (*store_row_fn)(void *ud, const char *json, size_t len);

struct store_filter {
	errand_str session, kind, status; /* absent: any */
	errand_str id;                    /* "bash-1"; absent: any */
	int64_t before; /* the "task" or "number" of the last row seen; 0 */
	int64_t limit;  /* rows; 0: 100 */
};
/* Tasks, the newest first, listed or not: {"task","id","kind","label","session","status",
 * "detail","startedAt","finishedAt","uid","bytes","listed"}; a long label is cut. */
int store_history(struct store *s, const struct store_filter *f, store_row_fn row, void *ud,
		  struct err *err) __attribute__((warn_unused_result));
/* What was done, the newest first: {"number","at","who","door","act","task","detail"}. Of the
 * filter count .id, .before, .limit. */
int store_audit_trail(struct store *s, const struct store_filter *f, store_row_fn row,
		      void *ud, struct err *err) __attribute__((warn_unused_result));

/* ---- upkeep -------------------------------------------------------------------------- */

/*
 * What may go. Only history goes: never a task that the model still sees, so no live one and
 * no end that is yet to be told; never a message. 0: no limit of that kind.
 */
struct store_limits {
	int64_t history_age_ms, history_tasks, history_bytes;
	int64_t requests_age_ms, requests; /* the newest of all clients together */
	int64_t audit;                     /* entries */
};
/*
 * Drop what is over the limits and give pages back to the disk, a bounded step: *@ret_more says
 * that another is worth it. @gone (may be NULL) is told of each run folder that nobody will ask for
 * any more, once that is durable.
 */
int store_tidy(struct store *s, const struct store_limits *l, int64_t now,
	       void (*gone)(void *ud, const char *uid), void *ud, bool *ret_more,
	       struct err *err) __attribute__((warn_unused_result));

/* Give the space of the log back, and all free pages. */
int store_shrink(struct store *s, struct err *err) __attribute__((warn_unused_result));

struct store_health {
	char problem[128]; /* what a full check found first; "": nothing */
	char journal[16];  /* "wal" */
	int64_t version;   /* of the tables */
	int64_t bytes, log_bytes, unused_bytes, disk_free;
	int64_t live, listed, history, agents, messages, sessions, requests, audit;
};
int store_check(struct store *s, struct store_health *ret, struct err *err)
	__attribute__((warn_unused_result));
