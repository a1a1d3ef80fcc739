/* SPDX-License-Identifier: MIT */
/*
 * errand.h - background tasks for agents, as a library without I/O.
 *
 * The library is one state machine, an errand_host. It starts no thread, opens nothing,
 * reads no clock. You feed it (calls, ends, time); it answers through callbacks, which it
 * makes only from inside errand_run(). Exceptions: a producer's start and cancel, marked
 * [sync], and the PURE ones.
 *
 *      your loop                         the host
 *      ---------                         --------
 *      errand_call_new(args)       -->   queued
 *      errand_run(mono, wall)      -->   exec, render, finalize ... on_result()
 *      a process ends:
 *      errand_settle(task, ...)    -->   queued
 *      errand_run(mono, wall)      -->   waiters, ERRAND_ON_CHANGED, ERRAND_ON_DONE, a notice
 *      sleep until errand_next_deadline()
 *
 * RULES THAT HOLD EVERYWHERE
 *  Threads    A host belongs to the thread that calls it. Other threads may use only the
 *             errand_post*() functions (a mailbox). Two hosts share no state.
 *  Ids        Everything but the host is named by a 64-bit id, below 2^53, never reused in
 *             a host. A stale id is harmless: ERRAND_EGONE. 0 means none (agent), global
 *             (scope), never (signal).
 *  Strings in UTF-8, (pointer, length); length ERRAND_NUL means NUL-terminated; a NULL
 *             pointer means absent, which is not the same as empty. Always copied. Ill-formed
 *             UTF-8 is replaced by U+FFFD, except in JSON text, where it is an error; there
 *             an escape of half a surrogate pair is replaced.
 *  Text out   errand_text objects, yours to free. Pointers handed to a callback are borrowed
 *             until it returns.
 *  Structs    Zero them, set .size = sizeof, pass by pointer; copied before the call returns.
 *             New members are only added at the end; zero always means the default. A struct
 *             of an older errand.h is taken as it is; one of a newer, too, if what this
 *             library does not know is zero, else EARG. A .size that cannot be (below that of
 *             the first version, above 4096) is EARG, and then nothing else is read: no
 *             destroy() is called. A struct that is handed to you says in .size how much of it
 *             there is.
 *  Callbacks  Each comes with .ud; destroy(ud) is called exactly once, when the library will
 *             never use ud again, also if the registering call failed. Callbacks must return
 *             (no longjmp, no C++ exception, no unwinding Rust panic).
 *  Errors     Functions return 0 or a negative ERRAND_E*; outputs are then untouched. A NULL
 *             ret_err is fine; otherwise *ret_err is set on failure and is yours to free.
 *             Everywhere: EARG of a NULL that must not be, EGONE of a stale id, EREENTER,
 *             ELIMIT over a maximum (limits_json), EJSON of JSON text that is none, ECALLBACK
 *             where an event goes into a session's log that refuses it: then nothing has
 *             happened. What else can fail, and what these mean in a place, is said there.
 *  Memory     Sizes from outside are capped first (ERRAND_ELIMIT). If the allocator fails, a
 *             call whose size came from you returns ERRAND_ENOMEM with nothing changed; a
 *             small internal allocation calls options.oom, which must not return.
 *  Time       Milliseconds, int64_t. "Now" is what the last errand_run() gave: after a long
 *             sleep run first, then start or wait.
 *
 * WHAT MAY BE CALLED FROM WHERE (checked: ERRAND_EREENTER)
 *  [any]   queries and things that only queue: errand_settle*, errand_answer, errand_fail,
 *          errand_next, errand_abort, errand_call_abort, errand_lease_*, errand_text_*, errand_error_*.
 *  [main]  whatever changes or calls out: start, kill, wait, call, mount, dispose, insert,
 *          claim ... Allowed at top level and from every callback that errand_run() makes;
 *          not from PURE callbacks and not from [sync] ones.
 *  [top]   errand_run, errand_host_free: never from a callback.
 *  PURE callbacks (read, consumed, render, finalize, card, warn, message_id, log, journal,
 *  allocator, destroy) may call [any]-queries only.
 *
 * "spec N" names the item of the contract that a rule comes from, in docs/spec.md of the source.
 */
#ifndef ERRAND_H
#define ERRAND_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
/* ERRAND_FN: look at the result. Calls that only queue may be let go: the worst is EGONE. */
#define ERRAND_API __attribute__((visibility("default")))
#define ERRAND_FN ERRAND_API __attribute__((warn_unused_result)) int
#else
#define ERRAND_API
#define ERRAND_FN int
#endif

#define ERRAND_ABI 1u          /* soname liberrand.so.1; symbols ERRAND_1 */
#define ERRAND_NUL SIZE_MAX    /* length: up to the NUL */
#define ERRAND_NEVER INT64_MAX /* no deadline */

/* ---- version ------------------------------------------------------------------------ */

/* Any thread, without a host: of the library that was loaded, its ERRAND_ABI, and its version,
 * "1.2.3", which stays. */
ERRAND_API uint32_t errand_abi(void);
ERRAND_API const char *errand_version(void);
/*
 * Any thread: does the library that was loaded have @feature? 1 or 0; to be asked by programs that also
 * run with older ones. So far: "consumed", "cursor", "journal", "limits", "mailbox", "on-abort",
 * "policies", "process-outcome", "scopes", "turns", "wake".
 */
ERRAND_API int errand_has(const char *feature);

/* ---- handles ------------------------------------------------------------------------ */

typedef struct errand_host errand_host;
typedef struct errand_error errand_error;
typedef struct errand_text errand_text;
typedef struct errand_sink errand_sink; /* where a PURE callback writes its text */
typedef struct errand_mailbox errand_mailbox;

typedef uint64_t errand_scope;  /* a layer key; 0 is the global layer */
typedef uint64_t errand_agent;  /* an agent instance; also a scope of its own */
typedef uint64_t errand_task;   /* a record; not the "bash-1" of the model */
typedef uint64_t errand_call;   /* one tool call on its way through the pipeline */
typedef uint64_t errand_frame;  /* one stage of a call that owes one answer */
typedef uint64_t errand_signal; /* an abort signal, shared by any number of calls */
typedef uint64_t errand_reg;    /* a registration: undone by errand_unregister() */
typedef uint64_t errand_lease;  /* something handed out and not yet delivered */

typedef struct {
	const char *ptr; /* NULL: absent */
	size_t len;
} errand_str;

typedef void (*errand_destroy_fn)(void *ud);

/* Return codes. Plain int in every signature, so the enum may grow. */
enum {
	ERRAND_OK = 0,
	ERRAND_EARG = -1,     /* the program is wrong: NULL host, unknown flag, bad size */
	ERRAND_EJSON = -2,    /* not JSON, or not lossless JSON */
	ERRAND_EREFUSED = -3, /* the contract says no; the error text is the contract's */
	ERRAND_EGONE = -4,    /* a stale id: finished, disposed or answered already */
	ERRAND_ESTATE =
		-5, /* not now: a second next(), a record that may not be dropped yet */
	ERRAND_EREENTER = -6, /* not from this callback */
	ERRAND_ELIMIT = -8,   /* over a maximum; the error text names it */
	ERRAND_ENOMEM = -9,
	ERRAND_ECALLBACK = -10 /* a callback of yours failed; its error is passed on */
};

/* ---- errors and text ----------------------------------------------------------------- */

/*
 * An error has a message of any length, a name ("Error" by default; "" for a thrown plain
 * string) and, only for coded errors, a code. Its string form is "name: message".
 * In callbacks, @e is lent to you: fill it with errand_error_set() and return negative.
 * None of these needs a host; an error belongs to one thread at a time.
 */
/* [any] One of your own, yours to free: for errand_fail() and its like. NULL @name: "Error",
 * NULL @code: not coded, NULL @message: empty. Over 1 MiB it is cut. */
ERRAND_API errand_error *errand_error_new(const char *name, const char *code,
					  const char *message, size_t len);
/* [any] Say anew what @e is, as above; NULL is fine. */
ERRAND_API void errand_error_set(errand_error *e, const char *name, const char *code,
				 const char *message, size_t len);
/* [any] What the function returned that made it; ERRAND_ECALLBACK of one of yours; 0 of NULL. */
ERRAND_API int errand_error_rc(const errand_error *e);
/* [any] Its parts, NUL-terminated, as long as @e lives and is not set anew. @ret_len (may be
 * NULL): a message may hold NULs. Of NULL: "". */
ERRAND_API const char *errand_error_message(const errand_error *e, size_t *ret_len);
ERRAND_API const char *errand_error_name(const errand_error *e);
ERRAND_API const char *errand_error_code(const errand_error *e); /* NULL: not coded */
/* [any] NULL is fine. Not for one that is lent. */
ERRAND_API void errand_error_free(errand_error *e);

/* Any thread: the bytes, UTF-8 and a NUL behind them, as long as @t lives. Of NULL: "". */
ERRAND_API const char *errand_text_data(const errand_text *t, size_t *ret_len);
/* Any thread, also when the host is gone. NULL is fine. */
ERRAND_API void errand_text_free(errand_text *t);

/* Inside the callback that was given @s: append. 0; 1: it is full, stop (no error: the bytes that
 * fitted are kept). EARG: no sink, no bytes. */
ERRAND_API int errand_sink_write(errand_sink *s, const void *bytes, size_t len);
/* The same: how many bytes still fit. */
ERRAND_API size_t errand_sink_room(const errand_sink *s);

/* ---- host ---------------------------------------------------------------------------- */

struct errand_host_options {
	uint32_t size;
	uint32_t abi; /* ERRAND_ABI of the header you compiled with */
	/*
	 * {"maxConcurrentTasksPerOwner":10,"maxFinishedTasksPerOwner":null,"teardownTimeoutMs":
	 * 10000,"unownedAccess":"open"} are the defaults.
	 * null is no limit, 0 is refused, unknown keys are ignored. The first is spec D9. The
	 * second is D15: of an owner's ended tasks that it was told of (by a read, a wait, a
	 * kill or a delivered notice), the newest so many stay; older ones are dropped as by
	 * errand_task_drop(). The third is D12: how long a cancelled task may take to settle
	 * when its owner or the service is disposed of. The fourth is D13: who sees, reads and
	 * kills tasks without an owner: "open" everybody, "operator" operators only, "none"
	 * nobody; to others such a task "belongs to another session".
	 */
	errand_str config_json;
	/* PURE. One line for the operator ("tasks: onTaskDone listener threw for ..."). */
	void (*warn)(void *ud, const char *text, size_t len);
	/* PURE. A fresh message id; the library has no entropy of its own. NULL: m1, m2, ... */
	void (*message_id)(void *ud, errand_sink *out);
	/*
	 * PURE; may be NULL. Every durable fact, in order, as one JSON object, for
	 * errand_restore(). Make them durable in one transaction after errand_run() (or a call of
	 * yours that changed something) and before anything that it produced leaves your process.
	 *   "agent" {"agent","session","wakes"}, "agent-gone" {"agent"}, "counter" {"kind","counter"}
	 *   "task" {"task","kind","ordinal","label","agent"?,"outputLimitBytes"?,"status","detail"?,
	 *      "output"?,"startedAt","finishedAt"?,"stream","reported","noticed","told","cursor"}
	 *   "drop", "reported", "noticed", "told" (the notice was delivered) {"task"}
	 *   "cursor" {"task","cursor"}, "message" {"agent","target","message"}: to the list's end
	 *   "message-moved" {"agent","id","before"?}, "message-gone" {"agent","id"}
	 * The name is in "fact". Of the facts about one thing the last is enough. Give a
	 * message_id too: m1, m2, ... begin anew with each host.
	 */
	void (*journal)(void *ud, const char *json, size_t len);
	void *ud;
	errand_destroy_fn destroy;
	/* Allocator, all three or none. Host-wide; must be callable from any thread if a mailbox
	 * is used. */
	void *(*alloc)(void *mem_ud, size_t n);
	void *(*resize)(void *mem_ud, void *p, size_t n);
	void (*dealloc)(void *mem_ud, void *p);
	void *mem_ud;
	void (*oom)(void *mem_ud, size_t n); /* must not return; NULL: abort() */
	/*
	 * Maxima other than the usual, for what comes from outside: {"argsBytes":65536}. More than
	 * that is ELIMIT, and the error names it, unless the line says "cut". EREFUSED: a name
	 * that is not here, a number out of its range, or a jsonBytes that is too small.
	 *
	 *   name             usual     least   most        of what
	 *   argsBytes        16777216   1024   67108864    arguments of a call; a message; the
	 *                                                  reason of a kill or a turn's end
	 *   labelBytes        1048576     64    1048576    a task's kind, its label
	 *   definitionBytes   1048576   4096    1048576    a tool's name, description, schema; a
	 *                                                  session id, a section's name, a filter
	 *   detailBytes         65536     64    1048576    the detail of an end: cut
	 *   resultBytes       8388608   1024   67108864    the text of one read; the output of an
	 *                                                  end: cut; a section's text
	 *   jsonBytes        67108864   as     1073741824  any other JSON: an answer, what a text
	 *                               usual              maker writes, an event, a log; 8 times
	 *                                                  resultBytes, 4 times argsBytes at least
	 *   nesting              1024     16       1024    levels of arrays and objects, in
	 *                                                  arguments, answers, messages, schemas
	 *   tasks             1000000      1    1000000000 records at once
	 *
	 * Fixed: the text of an error, 1 MiB, cut.
	 */
	errand_str limits_json;
};

/* Any thread; the host is then the caller's. *ret is yours to free. EARG: a size or abi that does
 * not fit, half an allocator. EJSON, EREFUSED: config_json or limits_json, and why. */
ERRAND_FN errand_host_new(const struct errand_host_options *o, errand_host **ret,
			  errand_error **ret_err);
/* [top] At once and silently: no callback but destroy(), tasks are not cancelled (first
 * errand_service_dispose() does that). NULL is fine; from a callback it does nothing. */
ERRAND_API void errand_host_free(errand_host *h);

/*
 * [main] Put back what the journal said, an array of its facts (design.md 4.5), before anything
 * else on this host: ids are those of the one that wrote it. What was on a lease is undelivered
 * again; a notice that was owed is sent in the first errand_run() by the mount that serves its
 * owner then. Agents come back without callbacks and unregistered: errand_agent_new() for that
 * session gives them these, under the old id (the newest first), and a pending notice
 * wakes. @adopt is called for each task that lives or whose producer has a read(); @record is
 * its "task" fact. Fill in the producer (.size too, without start) and return 0; else a live one is settled
 * as failed, `lost: <message of @e>`. From inside it only [any] functions may be called. NULL
 * refuses all. ESTATE: the host is not new. EJSON, EREFUSED (it names the entry): the host is
 * then good for errand_host_free() only.
 */
struct errand_producer;
ERRAND_FN errand_restore(errand_host *h, const char *json, size_t len,
			 int (*adopt)(void *ud, errand_host *h, errand_task t,
				      const char *record, size_t len,
				      struct errand_producer *ret, errand_error *e),
			 void *ud, errand_error **ret_err);

/* ---- the loop ------------------------------------------------------------------------ */

/*
 * [top] Set the time, then process what is queued and due: at most @budget events (0: 1000).
 * @mono_ms never goes back and drives deadlines; @wall_ms (epoch) is only shown. Fake both
 * in tests. Returns 1 if work is left (call again after your own I/O), 0 if not. EARG: no host.
 * EREENTER: from a callback.
 */
ERRAND_FN errand_run(errand_host *h, int64_t mono_ms, int64_t wall_ms, uint32_t budget);
/* [any] When to call errand_run() next, on @mono_ms' scale; INT64_MIN: work is queued, also in a
 * mailbox; ERRAND_NEVER: not before something happens. */
ERRAND_API int64_t errand_next_deadline(const errand_host *h);

/* ---- other threads ------------------------------------------------------------------- */

/* [main] A mailbox may be posted to from any thread, and outlives the host: posts are EGONE then.
 * @wake is called on the posting thread, at most once between two errand_run()s. EARG: no wake. */
ERRAND_FN errand_mailbox_new(errand_host *h, void (*wake)(void *ud), void *ud,
			     errand_destroy_fn destroy, errand_mailbox **ret,
			     errand_error **ret_err);
/* On the host's thread, or after the host is gone; when nobody will post any more. What was
 * posted and not yet taken is dropped. NULL is fine. */
ERRAND_API void errand_mailbox_free(errand_mailbox *m);
/* [any thread] Run fn(ud, h) in the next errand_run(), in the order in which one thread posts;
 * drop(ud) instead, if the host or the mailbox goes first, also if this call fails: EARG (no
 * mailbox, no fn), EGONE (the host is gone). */
ERRAND_FN errand_post(errand_mailbox *m, void (*fn)(void *ud, errand_host *h), void *ud,
		      errand_destroy_fn drop);
/* [any thread] As errand_settle() and errand_answer(), whose own EGONE nobody hears. Here it is
 * the host's. EARG, ENOMEM as there. */
ERRAND_API int errand_post_settle(errand_mailbox *m, errand_task t, int status,
				  const char *detail, size_t detail_len, const char *output,
				  size_t output_len);
ERRAND_API int errand_post_answer(errand_mailbox *m, errand_frame f, const char *json,
				  size_t len);

/* ---- scopes -------------------------------------------------------------------------- */

/*
 * A scope is a key under which things are registered: tools, sections, listeners, mounts,
 * surfaces, restrictions. Keys form chains of any length: an agent, its preset, the preset's
 * parent, ... (spec 3.1). A reader sees the global layer (scope 0) and the layers along its
 * chain, of two equal names the nearer one; not what is registered below or beside it (3.2).
 * An errand_agent may be given for an errand_scope: the agent's own. EGONE: a stale one.
 */
/* [main] A fresh key, until it is disposed of. EARG: nowhere to put it. */
ERRAND_FN errand_scope_new(errand_host *h, errand_scope *ret, errand_error **ret_err);
/*
 * [main] Give @child its parent (0: none), once; only the holder of the binding may move it, or
 * undo it with errand_unregister(). EREFUSED (spec 3.1): `dsh-scope: scope key is already bound
 * to a parent; re-linking requires the binding returned by the original bind` (so is an agent
 * that was made with a scope), `dsh-scope: scope parent link would form a cycle`.
 */
ERRAND_FN errand_scope_bind(errand_host *h, errand_scope child, errand_scope parent,
			    errand_reg *ret_binding, errand_error **ret_err);
/* [main] Move what @binding bound to another parent (0: none). What was under way keeps what it
 * had found. EARG: a registration of another kind. EREFUSED: a cycle, and nothing changed. */
ERRAND_FN errand_scope_relink(errand_host *h, errand_reg binding, errand_scope parent,
			      errand_error **ret_err);
/* [main] Undo what is registered in @s, in reverse order; tasks go on (spec 3.7, 12.8). What had
 * @s for a parent has the parent of @s from then on. EARG: an agent's own; that goes with it. */
ERRAND_FN errand_scope_dispose(errand_host *h, errand_scope s, errand_error **ret_err);

/* ---- agents -------------------------------------------------------------------------- */

struct errand_agent_options {
	uint32_t size;
	uint32_t flags;     /* ERRAND_AGENT_* */
	errand_str session; /* id = session id; not empty */
	errand_scope scope; /* parent of the agent's own scope; 0: none */
	/*
	 * PURE; may be NULL. Append {"seq","type","data"} to the session's log, @seq from 0 on,
	 * before what it describes; negative with @e filled: that does not happen, and the call
	 * fails with ECALLBACK (a notice is lost with a warning, spec 6.9). Claimed messages come
	 * back, and disposal clears the inbox, all the same, with a warning.
	 */
	int (*log)(void *ud, errand_agent a, uint64_t seq, const char *event_json,
		   size_t len, errand_error *e);
	/*
	 * A turn is wanted: a notice is pending and no turn is open (D8). So when a task has ended,
	 * when a turn has closed over a notice, a lease or a replay gave one back, when a user's
	 * message has refilled a budget that was spent; not for what was there when the user aborted
	 * the last turn. Called from errand_run(); open one now or later. NULL: this agent cannot be woken,
	 * its notices wait on next-step (completionDelivery is "quiet" for it).
	 */
	void (*wake)(void *ud, errand_host *h, errand_agent a);
	void *ud;
	errand_destroy_fn destroy; /* when the agent is gone */
};
#define ERRAND_AGENT_UNREGISTERED 1u /* live, but not in the registry (cannot own tasks) */
/* Sees, reads and kills every task, owns none (D13). It looks on: its reads move no cursor, its
 * reads, waits and kills report nothing, so that the owner is told of the end all the same. */
#define ERRAND_AGENT_OPERATOR 2u

/* [main] A live instance; *ret is its id until it is disposed of. EREFUSED: `agent "<id>" is
 * already registered` (spec 2.7), a scope below the agent that came back. EGONE: no such scope. EARG: no session. */
ERRAND_FN errand_agent_new(errand_host *h, const struct errand_agent_options *o,
			   errand_agent *ret, errand_error **ret_err);
/* [main] Put it into the registry of live agents, or (@yes 0) take it out (spec 1.1.1e, 2.4).
 * Idempotent. EREFUSED: another instance is registered for that session. EGONE. */
ERRAND_FN errand_agent_register(errand_host *h, errand_agent a, int yes,
				errand_error **ret_err);

/* [main] Put the agent under another scope (0: none), whoever bound it; its events go along the
 * new chain from then on (spec 3.4). EREFUSED: a cycle. */
ERRAND_FN errand_agent_rebind(errand_host *h, errand_agent a, errand_scope parent,
			      errand_error **ret_err);
/* [any] The agent's own scope, for what only this agent is to have; 0: the agent is gone. */
ERRAND_API errand_scope errand_agent_scope(const errand_host *h, errand_agent a);

/* done(ud): everything has ended and the records are dropped. */
typedef void (*errand_done_fn)(void *ud, errand_host *h);
/*
 * [main] End an agent (spec 12.1, 12.2, 12.7, D2): its inbox is cleared, each live task of
 * this very instance is reported and cancelled with "owner disposed"; when all have settled,
 * their records are dropped, what is registered in its own scope is undone, and done() is
 * called. What has not settled after teardownTimeoutMs is settled as failed, `teardown timed
 * out; work may be orphaned` (D12). New starts fail meanwhile. Calls of the agent that are
 * under way go on to their end. Leases return. ESTATE: it is being disposed of already.
 */
ERRAND_FN errand_agent_dispose(errand_host *h, errand_agent a, errand_done_fn done,
			       void *ud, errand_destroy_fn destroy, errand_error **ret_err);
/*
 * [main] End all tasks (spec 12.6): completion listeners are closed; each live task is reported
 * and cancelled with "tasks service disposed"; when all have settled (D12), all records are
 * dropped and done() is called. Starts fail from now on: `background tasks unavailable: no task
 * registry`. Agents and inboxes stay. ESTATE: it is being disposed of already.
 */
ERRAND_FN errand_service_dispose(errand_host *h, errand_done_fn done, void *ud,
				 errand_destroy_fn destroy, errand_error **ret_err);

/* ---- inbox --------------------------------------------------------------------------- */

/*
 * Two lists of pending messages (spec 7.1): next-turn holds prompts, each a turn of its own;
 * next-step what the next step of a turn takes along. Each change of them is an event
 * "agent/inbox/spliced" in the session's log, data {"target":"next-step"|"next-turn","start",
 * "removedCount"?,"inserted":[..],"outcome"?:"canceled"} (spec 7.2, 7.3), and then an
 * ERRAND_ON_INBOX for each message; one that a lease gives back is "inserted" again.
 */
enum {
	ERRAND_NEXT_STEP = 1,
	ERRAND_NEXT_TURN = 2
};

/*
 * [main] Append to a list (spec 7.3). @message_json is
 * {"role":"user","content":[...],"source":{...},"id":..?}; an id is made if there is none.
 * *ret_id (may be NULL) is yours. EREFUSED: `message "<id>" is already pending` in one of the
 * two lists, or claimed (spec 7.4). ESTATE: the agent is being disposed. ELIMIT: over
 * argsBytes. EARG: no content, an id that is no string, no such list.
 */
ERRAND_FN errand_insert(errand_host *h, errand_agent a, int target,
			const char *message_json, size_t len, errand_text **ret_id,
			errand_error **ret_err);
/* [main] Take one pending message out for good: "canceled". EGONE: it is not pending. */
ERRAND_FN errand_discard(errand_host *h, errand_agent a, const char *message_id, size_t len,
			 errand_error **ret_err);
/*
 * [main] The user has stopped the agent (spec 7.9): discard both lists, unless @keep_inbox.
 * Calls that are under way are yours to abort, a turn yours to close. Messages on a lease
 * stay there. ECALLBACK: next-step may be empty already; what the log refused is still there.
 */
ERRAND_FN errand_agent_cancel(errand_host *h, errand_agent a, int keep_inbox,
			      errand_error **ret_err);
/* [any] The pending messages, next-step before next-turn, oldest first: an array of
 * {"target","id","role","content","source"}; the notice of a task also has "task": the
 * model's id. */
ERRAND_FN errand_inbox(const errand_host *h, errand_agent a, errand_text **ret_json,
		       errand_error **ret_err);
/*
 * [main] Put the inbox back from the events that log() was given, an array, and go on with
 * their numbers (spec 7.5). What was pending before is replaced; nobody is told, but a notice
 * that is pending wakes, unless it was there when the user aborted the last turn. EREFUSED,
 * with nothing changed: `invalid persisted inbox splice at session seq <n>`. ESTATE: messages
 * are on a lease, a turn is open, or the agent is being disposed. ELIMIT: over jsonBytes.
 */
ERRAND_FN errand_replay(errand_host *h, errand_agent a, const char *events_json, size_t len,
			errand_error **ret_err);

enum {
	ERRAND_CLAIM_STEP = 1, /* all of next-step */
	ERRAND_CLAIM_TURN = 2, /* all of next-step, then one of next-turn */
	/* notices only, from both: for a tool reply or a hook. Not that of an end which a read
	 * or wait has out on a lease: it waits for what becomes of that. */
	ERRAND_CLAIM_NOTICES = 3
};
/*
 * [main] Take messages out, on a lease (spec 7.3, D6). *ret_messages_json is an array of what
 * errand_inbox() shows, without "target", in the order in which the model is to see it. Returned, they go back
 * to the front of their lists, in order, and are logged as inserted there (D7). @turn is only
 * told to observers. Nothing pending: *ret_lease is 0 and the text "[]". EARG: no such @what.
 * ECALLBACK: what the log had taken by then has come back, as from a lease.
 */
ERRAND_FN errand_claim(errand_host *h, errand_agent a, int what, uint64_t turn,
		       errand_lease *ret_lease, errand_text **ret_messages_json,
		       errand_error **ret_err);

/* ---- turns --------------------------------------------------------------------------- */

/*
 * The turn of your loop, which is yours; the library keeps its state and writes its events:
 *      turn_open -> { claim -> (your pre-step policy, may take its time) -> step_begin |
 *                     step_reject -> model, tool calls -> step_end } ... -> turn_close
 * Between claim and begin the messages are on a lease: rejected, they go back (D7). Each fails
 * with ESTATE out of this order, with ECALLBACK if the log refuses: nothing has happened then.
 * What the log had taken of a step before it refused stays there, and is not said twice: the
 * next errand_step_begin() goes on behind it; if the step is rejected, or the turn closed, its
 * step/end comes first.
 */
enum {
	ERRAND_IDLE = 0,    /* no turn is open: a notice may wake the agent */
	ERRAND_BUSY = 1,    /* a notice goes to next-step */
	ERRAND_CLOSING = 2, /* so it does here, and is worth one more step (spec 7.7) */
	ERRAND_DISPOSED = 3 /* being disposed, or gone */
};
/* [any] One of these; EARG: no host. */
ERRAND_API int errand_agent_state(const errand_host *h, errand_agent a);

/* [main] Logs turn/start {"turn"}; turns count from 1, or on from what was replayed. @ret_turn
 * may be NULL. */
ERRAND_FN errand_turn_open(errand_host *h, errand_agent a, uint64_t *ret_turn,
			   errand_error **ret_err);
/*
 * [main] Logs step/start {"turn","step"} and user/message {"turn","step","message"} for each
 * message of lease @l, and commits it. @l 0: a step without new messages. EARG: not a claim of
 * this agent; EGONE: ended already.
 */
ERRAND_FN errand_step_begin(errand_host *h, errand_agent a, errand_lease l,
			    errand_error **ret_err);
/* [main] Your policy refused the step: as errand_lease_return(); @l 0: nothing. ESTATE where no
 * step may begin. */
ERRAND_FN errand_step_reject(errand_host *h, errand_agent a, errand_lease l,
			     errand_error **ret_err);
/* [main] Append an event of yours, {"type","data"?}, to the session's log (spec 7.12). EARG: a
 * type that the library writes itself, or a "seq". ELIMIT: over jsonBytes. */
ERRAND_FN errand_log(errand_host *h, errand_agent a, const char *event_json, size_t len,
		     errand_error **ret_err);
/* [main] Logs step/end. *ret_again (may be NULL) is 1 if next-step holds something: run another
 * step (spec 7.6, 7.7). */
ERRAND_FN errand_step_end(errand_host *h, errand_agent a, int *ret_again,
			  errand_error **ret_err);
/*
 * [main] Logs turn/end {"turn","reason"}. @reason_json is {"kind":"completed"|"aborted"|
 * "blocked"|...}. ESTATE while a step is under way, and for "completed" while next-step holds
 * something: that is worth one more step (spec 7.7). Unless the turn was aborted, a notice
 * that is pending by now wakes, as long as the budget lasts (D8).
 */
ERRAND_FN errand_turn_close(errand_host *h, errand_agent a, const char *reason_json,
			    size_t len, errand_error **ret_err);

/*
 * [any] A lease ends once: its content reached the model, or it did not and is owed again:
 * bytes are unread, an end is unreported (and its notice sent, if none was), messages are
 * pending. EGONE: it has ended already, or what it held is gone.
 */
ERRAND_API int errand_lease_commit(errand_host *h, errand_lease l);
ERRAND_API int errand_lease_return(errand_host *h, errand_lease l);

/* ---- prompt, tools ------------------------------------------------------------------- */

/* [main] Add a section to the prompt of everybody who sees @s, in the place of a farther one of
 * the same name (spec 8.2). @order: -100 identity, 0 persona, 100 to 199 guidance for tools.
 * EREFUSED: `prompt section "<name>" is already registered in this scope`, or the contract's
 * text for the global layer. EARG: no name, no text, an order that is not finite. ELIMIT: a
 * name over definitionBytes, a text over resultBytes. */
ERRAND_FN errand_section_add(errand_host *h, errand_scope s, const char *name, double order,
			     const char *text, size_t len, errand_reg *ret,
			     errand_error **ret_err);
/* [any] [{"name","order","text"}] as the agent (0: nobody) sees them, by order. */
ERRAND_FN errand_sections(const errand_host *h, errand_agent a, errand_text **ret_json,
			  errand_error **ret_err);
/*
 * [any] The sections that the agent (0: nobody) sees, a blank line between them: by order, of
 * equal ones the global first, then from far to near, then the older; empty ones left out (spec
 * 8.3). `{{name}}` (letters, digits, '_', '.', '-') stands for that member of @variables_json,
 * an object of strings, NULL: {}. EREFUSED: one that is not given, `{{` before anything else.
 */
ERRAND_FN errand_prompt(const errand_host *h, errand_agent a, const char *variables_json,
			size_t len, errand_text **ret, errand_error **ret_err);

/* Where a frame stands, and what its answer is, as JSON. */
enum {
	/* {"kind":"allow"}, {"kind":"deny","reason":".."}, {"kind":"ask","reason"?:".."}; the end
	 * of the chain allows (spec 9.3) */
	ERRAND_STAGE_PRE = 1,
	/* {"kind":"allowed-once"|"rejected"|"cancelled"|"unavailable"}; answer_json is the
	 * decision that asks. One listener per host, in scope 0 (spec 9.3) */
	ERRAND_STAGE_APPROVAL = 2,
	ERRAND_STAGE_GUARD = 3, /* {} or {"reason":".."}: can only deny (spec 9.4) */
	/* {"value":..} or {"isError":true,"content":[..],"error":{"message","name"?,"code"?}};
	 * the end of the chain is the body (spec 9.6) */
	ERRAND_STAGE_AROUND = 4,
	ERRAND_STAGE_BODY = 5, /* the canonical value */
	/* {"kind":"accept","content"?:[..]} or {..,"value":..}, {"kind":"block","feedback":[..]};
	 * answer_json is the result; the end of the chain accepts (spec 9.7) */
	ERRAND_STAGE_POST = 6
};

struct errand_frame_view {
	uint32_t size;
	int32_t stage; /* ERRAND_STAGE_* */
	errand_call call;
	errand_agent agent; /* 0: a call without an agent */
	errand_signal signal;
	errand_str tool;
	errand_str args_json; /* lossless; in the body also valid under params_schema */
	errand_str
		answer_json; /* in back(): the rest's answer; else what the stage is given */
	const errand_error *error; /* in back(): the rest failed with this */
};

/* A stage that may suspend: answer @f now, or keep the number and answer later. */
typedef void (*errand_enter_fn)(void *ud, errand_host *h, errand_frame f,
				const struct errand_frame_view *v);
/* PURE text makers: 0, or negative with @e filled. */
typedef int (*errand_make_fn)(void *ud, const char *in_json, size_t len, errand_sink *out,
			      errand_error *e);

struct errand_tool {
	uint32_t size;
	uint32_t flags; /* ERRAND_TOOL_* */
	errand_str name, description;
	errand_str params_schema; /* JSON Schema, spec 4.1 */
	errand_str output_schema; /* of the canonical value */
	/* 0: none. Then the call's signal is raised; the body is waited for all the same, and
	 * its result is `tool call timed out after <N>ms` (spec 9.12) */
	int64_t timeout_ms;
	errand_enter_fn exec;  /* answer: the canonical value as JSON */
	errand_make_fn render; /* value -> content blocks; NULL: the JSON as text */
	errand_make_fn
		finalize;    /* {"args","result"} -> {"content":[...]}, or nothing (9.9) */
	errand_make_fn card; /* valid args -> UI card, or nothing (spec 4.8) */
	void *ud;
	errand_destroy_fn destroy; /* after the last call that captured the tool */
};
#define ERRAND_TOOL_EXCLUSIVE 1u /* your loop must not overlap it with sibling calls */

/* [main] Offer a tool to everybody who sees @s; a nearer one of the same name takes its place
 * (spec 3.9). *ret undoes it. EREFUSED: the name is taken in this scope, or a schema is outside
 * the subset. EARG: no name, schema or exec(). ELIMIT: a text over definitionBytes. */
ERRAND_FN errand_tool_add(errand_host *h, errand_scope s, const struct errand_tool *t,
			  errand_reg *ret, errand_error **ret_err);
/* [main] Hide global tools from everybody who sees @s: all but {"allow":[names]}, or these:
 * {"deny":[names]}; restrictions add up, tools of scopes cannot be hidden (spec 3.9). EREFUSED,
 * with the contract's text (D19): neither is given, or names that no global tool has. ELIMIT: a
 * filter over definitionBytes. */
ERRAND_FN errand_restrict(errand_host *h, errand_scope s, const char *filter_json,
			  size_t len, errand_reg *ret, errand_error **ret_err);
/* [any] What the agent (0: nobody) may call: an array of {"name","description","parameters",
 * "outputSchema","timeoutMs"?,"exclusive"}, by name (UTF-16 units), or by registration: global
 * ones, then far to near. Byte-stable (spec 8.4). */
ERRAND_FN errand_tools(const errand_host *h, errand_agent a, int by_registration,
		       errand_text **ret_json, errand_error **ret_err);
/* [any] The UI card of a call that @a would make, as JSON; NULL if its tool has none, if the
 * arguments do not fit, or if making it fails (spec 4.8). @args_json as the model wrote it, at
 * most argsBytes. */
ERRAND_FN errand_card(errand_host *h, errand_agent a, const char *tool,
		      const char *args_json, size_t len, errand_text **ret_json_or_null,
		      errand_error **ret_err);
/* [main] Undo any registration; idempotent (EGONE the second time). Frames that are out stay
 * valid, and ud lives until they are answered. */
ERRAND_API int errand_unregister(errand_host *h, errand_reg r);

/* ---- calls --------------------------------------------------------------------------- */

/*
 * A listener of a stage. Its enter() must, now or later, do exactly one of: errand_answer()
 * (ends the chain here), errand_fail() (a throw: the call fails, unseen by post-execute),
 * errand_next(): then the rest of the chain runs, never inside errand_next() itself, and back()
 * gets its answer, to pass on or to replace. With back == NULL the rest's answer is the answer
 * (spec 9.2). An answer that means nothing refuses the call.
 *
 * A chain holds the listeners that see the call's agent when the call enters the stage, in
 * order of registration over all scopes; guards the global ones first, then far to near. One
 * that is removed before its turn is skipped, one that is added waits for the next call; one
 * that was entered stays, with its ud, until its frame is answered.
 */
struct errand_listener {
	uint32_t size;
	int32_t stage;  /* ERRAND_STAGE_*, not the body */
	uint32_t flags; /* ERRAND_PREPEND */
	errand_enter_fn enter;
	errand_enter_fn back; /* may be NULL; of a guard it must be */
	void *ud;
	errand_destroy_fn destroy;
};
#define ERRAND_PREPEND 1u /* in front of those that are there now */

/* [main] EREFUSED: a second approval channel. EARG: no enter(), no such stage or flag, a guard
 * with back(), an approval channel in a scope. */
ERRAND_FN errand_listen(errand_host *h, errand_scope s, const struct errand_listener *l,
			errand_reg *ret, errand_error **ret_err);

/* [any] Let the rest of the chain run; end frame @f with JSON or with an error, both copied.
 * EGONE: answered already, or its call has ended. ESTATE: a second errand_next(), one in a body
 * or in back(), or an answer while the rest still runs. EARG: no JSON. ELIMIT: more of it than
 * limits_json's jsonBytes. Whether it is JSON, and means something, shows in the call's result. */
ERRAND_API int errand_next(errand_host *h, errand_frame f);
ERRAND_API int errand_answer(errand_host *h, errand_frame f, const char *json, size_t len);
ERRAND_API int errand_fail(errand_host *h, errand_frame f, const errand_error *e);
/* [any] Bind lease @l to the call of frame @f: it ends as the call's own lease does. So a
 * body that reads or waits consumes nothing before its result is delivered (D6). */
ERRAND_API int errand_frame_lease(errand_host *h, errand_frame f, errand_lease l);

/* What became of a result: return from on_result. */
enum {
	ERRAND_DELIVERED = 0, /* the model has it: commit what it consumed */
	ERRAND_HELD = 1,      /* I will say so with errand_lease_commit/_return(lease) */
	ERRAND_LOST = 2       /* nobody got it: nothing was consumed */
};

struct errand_call_options {
	uint32_t size;
	uint32_t flags; /* ERRAND_ARGS_* */
	errand_agent agent;
	errand_signal signal; /* 0: only errand_call_abort() */
	errand_str tool;
	/* As the model wrote it: empty is {}, non-JSON becomes a string (spec 4.9.5). JSON whose
	 * numbers overflow a double, or are -0, is "not lossless" (D16), not "non-JSON", and
	 * what is nested too deep, or has a NUL in a key, is said to be that. */
	errand_str args;
	/*
	 * @result_json: {"isError","content","value"?,"error"?:{"message","name"?,"code"?}}.
	 * Never inside errand_call_new. @l is 0 if the call consumed nothing.
	 */
	int (*on_result)(void *ud, errand_host *h, errand_call c, errand_lease l,
			 const char *result_json, size_t len);
	void *ud;
	errand_destroy_fn destroy;
};
#define ERRAND_ARGS_NOT_JSON 1u /* the caller's value has no lossless JSON (NaN, -0, ...) */

/* [main] Queue one call. Everything that can go wrong with it, an unknown tool included, comes
 * as its result, exactly once; if the host goes first, there is only destroy(). @ret may be
 * NULL. EGONE: no such agent or signal. ELIMIT: args over argsBytes. EARG: no tool, no
 * on_result(). */
ERRAND_FN errand_call_new(errand_host *h, const struct errand_call_options *o,
			  errand_call *ret, errand_error **ret_err);
/* [any] Idempotent. Drops this call's waiters at once (spec 1.7.4); everything else follows
 * in errand_run(). The call still gives a result, and what it had read is unread again. What
 * is suspended is not forced: listeners and body are waited for (spec 9.10). */
ERRAND_API int errand_call_abort(errand_host *h, errand_call c);
/* [any] Where a call is, for a watchdog of yours: {"stage":"queued"|"pre"|"approval"|"guard"|
 * "around"|"body"|"post","listener"?,"since","aborted"}: the errand_reg whose answer is awaited,
 * the mono_ms at which it was asked. EGONE: the call has ended. */
ERRAND_FN errand_call_state(const errand_host *h, errand_call c, errand_text **ret_json);

/*
 * A signal is raised once and stays raised. It aborts the calls that were made with it, as
 * errand_call_abort() does, and so the calls that were made with theirs, and the waits under it. A call has a signal of its own, which its
 * frames show (.signal): raised by an abort of the call and by its tool's timeout, gone with
 * the call.
 */
/* [main] A fresh one; it is yours to free. EARG: nowhere to put it. */
ERRAND_FN errand_signal_new(errand_host *h, errand_signal *ret);
/* [any] Raise it; a second time changes nothing. EGONE: it was freed, or its call has ended. */
ERRAND_API int errand_abort(errand_host *h, errand_signal s);
/* [any] 1: it is raised, 0: it is not. EGONE, as above. */
ERRAND_API int errand_aborted(const errand_host *h, errand_signal s);
/*
 * [main] Be told, once: fn(ud, h) is called from the errand_run() that follows the raise, or from
 * the next one if it is raised already; then the registration is over. So a body hears that its
 * call was aborted and may stop early (spec 9.10). Undone by errand_unregister(*ret), and
 * silently when the signal goes. @ret may be NULL. EGONE, as above. EARG: no fn().
 */
ERRAND_FN errand_on_abort(errand_host *h, errand_signal s, errand_done_fn fn, void *ud,
			  errand_destroy_fn destroy, errand_reg *ret);
/* [main] Waits and calls under it go on without it. EGONE: freed already. EARG: a call's own. */
ERRAND_API int errand_signal_free(errand_host *h, errand_signal s);

/* ---- tasks and producers ------------------------------------------------------------- */

enum { /* wire words: running stopping completed killed failed */
	ERRAND_RUNNING = 1,
	ERRAND_STOPPING,
	ERRAND_COMPLETED,
	ERRAND_KILLED,
	ERRAND_FAILED
};

struct errand_producer {
	uint32_t size;
	uint32_t flags; /* 0 */
	/*
	 * [sync] Begin, or negative and undo all: then no id is consumed (spec 1.1.2). @t is
	 * good for errand_settle() at once. If your rows must be durable before a fork, only
	 * note the work here, fork after your transaction, and settle as failed if that does
	 * not work.
	 */
	int (*start)(void *ud, errand_host *h, errand_task t, errand_error *e);
	/* [sync] Ask for an end; must lead to errand_settle(). May come more than once
	 * (spec 1.6.3). */
	int (*cancel)(void *ud, errand_host *h, errand_task t, const char *reason_or_null,
		      size_t len, errand_error *e);
	/*
	 * PURE; NULL: a final-output task. Write the text of what stands from offset @from on,
	 * say in *ret_next where it ends. The cursor is the library's: a read may be repeated
	 * (D6). Return what you have; fetch the rest in your own time.
	 */
	int (*read)(void *ud, errand_task t, uint64_t from, errand_sink *out,
		    uint64_t *ret_next, errand_error *e);
	void *ud;
	errand_destroy_fn destroy; /* the record was dropped, or start() was refused */
	/*
	 * PURE; may be NULL. What was read up to offset @upto has been delivered: read() is never
	 * asked for anything below it again, so that may be freed. Called when a lease is
	 * committed; @upto only grows. What an operator reads is not consumed.
	 */
	void (*consumed)(void *ud, errand_task t, uint64_t upto);
};

struct errand_task_spec {
	uint32_t size;  /* with the producer as it was when you compiled */
	uint32_t flags; /* 0 */
	errand_str kind, label;
	/* outputLimitBytes as JSON text; absent: none; NaN, Infinity: null */
	errand_str limit_json;
	errand_agent owner;              /* 0: unowned */
	struct errand_producer producer; /* grows, so it stays the last member */
};

/* [main] Register work and begin it. *ret and *ret_id_text ("bash-1", yours) may be NULL. Never
 * settles before this returns. EREFUSED: texts and order in spec 1.1.1, 1.10.1; nothing was
 * begun. ECALLBACK: start() failed, and its error. ELIMIT: kind or label over labelBytes, too many
 * tasks. EGONE: no such owner. EARG: no start() or cancel(). */
ERRAND_FN errand_task_start(errand_host *h, const struct errand_task_spec *spec,
			    errand_task *ret, errand_text **ret_id_text,
			    errand_error **ret_err);
/*
 * [any] The end of a task; queued. @status is ERRAND_COMPLETED, _KILLED or _FAILED, else EARG; a
 * NULL @detail or @output is absent; an end is never refused for its size: @detail is cut at
 * detailBytes, @output at resultBytes. ENOMEM: try again. The first wins (spec 1.2.1); a later one is EGONE once the
 * first is processed, silently ignored before.
 */
ERRAND_API int errand_settle(errand_host *h, errand_task t, int status, const char *detail,
			     size_t detail_len, const char *output, size_t output_len);
/* [any] A broken promise: warns, settles as failed with the error's string (spec 1.2.5). */
ERRAND_API int errand_settle_broken(errand_host *h, errand_task t, const errand_error *why);

/* [main] Forget a settled record (D15). EGONE. ESTATE while it is live, its owner was not told of its end
 * yet (by a report or a delivered notice), or a lease holds it. */
ERRAND_FN errand_task_drop(errand_host *h, errand_task t, errand_error **ret_err);
/* [any] From which offset the next read() goes on: behind all that was handed out. EGONE. */
ERRAND_FN errand_cursor(const errand_host *h, errand_task t, uint64_t *ret);
/*
 * The registry as programs see it. @id is the model's id; @caller 0: nobody's agent. A
 * snapshot is {"id","kind","label","outputLimitBytes"?,"ownerSession"?,"status","detail"?,
 * "startedAt","finishedAt"?,"reported"} (spec 1.9); texts are yours. All of them: EGONE: no such
 * caller. EREFUSED: `unknown task <id>`, `task <id> belongs to another session` (spec 1.4).
 */
/* [any] An array of those that @caller sees, in order of registration (spec 1.3). */
ERRAND_FN errand_list(const errand_host *h, errand_agent caller, errand_text **ret_json,
		      errand_error **ret_err);
/* [any] One snapshot; consumes nothing (spec 1.4). */
ERRAND_FN errand_get(const errand_host *h, const char *id, size_t len, errand_agent caller,
		     errand_text **ret_json, errand_error **ret_err);
/* [main] {"text","task":<snapshot>} (spec 1.5), at most resultBytes of text; the cursor, and
 * "reported" of an ended task, are on *ret_lease, 0: nothing is. ECALLBACK: read() failed, and
 * nothing has changed. */
ERRAND_FN errand_read(errand_host *h, const char *id, size_t len, errand_agent caller,
		      errand_lease *ret_lease, errand_text **ret_json,
		      errand_error **ret_err);
/* [main] Ask for its end; it comes with errand_settle(). *ret_requested (may be NULL): 1
 * requested, 0 already finished; either way its end needs no notice any more (spec 1.6).
 * ECALLBACK: cancel() failed, and nothing has changed. ELIMIT: a reason over argsBytes. */
ERRAND_FN errand_kill(errand_host *h, const char *id, size_t len, errand_agent caller,
		      const char *reason, size_t reason_len, int *ret_requested,
		      errand_error **ret_err);
/*
 * fn(): @snapshot_json, or @e ("wait aborted"). @timeout_json as the caller gave it (spec
 * 1.7). @l is 0 for a live snapshot (the deadline passed); else reported is set when it is
 * committed. Never inside errand_wait. Refused at once: no fn().
 */
typedef void (*errand_wait_fn)(void *ud, errand_host *h, errand_lease l,
			       const char *snapshot_json, size_t len,
			       const errand_error *e);
/* [main] Be told when it has ended or the time is over (spec 1.7); @s (0: never) gives it up. */
ERRAND_FN errand_wait(errand_host *h, const char *id, size_t len, errand_agent caller,
		      const char *timeout_json, size_t timeout_len, errand_signal s,
		      errand_wait_fn fn, void *ud, errand_destroy_fn destroy,
		      errand_error **ret_err);

/* ---- events -------------------------------------------------------------------------- */

enum {
	ERRAND_ON_DONE = 1, /* snapshot; after waiters and change observers (D3) */
	ERRAND_ON_CHANGED,  /* {}: what this owner sees has changed (spec 1.10.2) */
	/* {"event":"inserted"|"claimed"|"discarded","message":{..},"target","turn"?} */
	ERRAND_ON_INBOX,
	ERRAND_ON_RESULT /* {"call","tool","result"}, before on_result() (spec 9.11) */
};
/* Negative with @e filled is a throw: warned about, contained (spec 1.2.4). @owner 0:
 * unowned. */
typedef int (*errand_event_fn)(void *ud, errand_host *h, errand_reg self,
			       errand_agent owner, const char *json, size_t len,
			       errand_error *e);
/* [main] Hear of events of agents whose chain holds @s; 0: of all, and of what has no owner.
 * Told are the global listeners, then those of the chain from far to near, in each by age, as
 * the chain stood when it happened (spec 3.4, 3.8); one that was removed since is skipped. */
ERRAND_FN errand_on(errand_host *h, errand_scope s, int event, errand_event_fn fn, void *ud,
		    errand_destroy_fn destroy, errand_reg *ret, errand_error **ret_err);
/* [any] What @self began for the end of @t (0: a change) has failed since: one warning, `tasks:
 * onTaskDone listener rejected for <id>: <error>` (spec 1.2.4). EGONE: one of them is. */
ERRAND_API int errand_event_failed(errand_host *h, errand_reg self, errand_task t,
				   const errand_error *why);

/* ---- helpers for producers ----------------------------------------------------------- */

/* These need no host, and any thread may call them. EARG: something is missing. Texts are yours. */

/* At most @max bytes of the head (or tail), never half a code point (spec 5.2, D5). *ret_start
 * points into @text. */
ERRAND_FN errand_retain(int tail, size_t max, const char *text, size_t len,
			const char **ret_start, size_t *ret_len);
/* <= 120 UTF-16 units of one line, as in a notice's source.summary (spec 6.6, D5). */
ERRAND_FN errand_summary(const char *text, size_t len, errand_text **ret);
/* text + @suffix in at most @limit bytes, the tail of @text kept behind "\n" + @word (spec
 * 5.3). @limit 0: unbounded. */
ERRAND_FN errand_fit(const char *text, size_t len, const char *suffix, const char *word,
		     size_t limit, errand_text **ret);
/*
 * How a process ended, in the words of the contract (design.md 7): @wait_status as of waitpid(),
 * @kill_requested after a cancel(), @timed_out_ms the deadline that you ended it for, 0: none.
 * *ret_status is ERRAND_COMPLETED for an exit by itself, else ERRAND_KILLED; *ret_detail is yours:
 * `exit code: N`, `signal: SIGSEGV` or `timed out after <N>ms`. EARG: not the status of an end.
 */
ERRAND_FN errand_process_outcome(int wait_status, int kill_requested, int64_t timed_out_ms,
				 int *ret_status, errand_text **ret_detail);

/* ---- the controller ------------------------------------------------------------------ */

/*
 * [main] task_output, task_list, task_kill, the prompt section and the notices, in scope @s.
 * @config_json: {"waitTimeoutMs":30000,"maxWaitTimeoutMs":600000,"completionDelivery":
 * "wakeup"|"quiet","maxConsecutiveWakes":3} (spec 10). "wakeup": the notice of an end wakes an
 * idle owner, at most so often without a message of a user's between; one budget per agent,
 * whatever the number of mounts (D8). "quiet": it waits for the next step. Also opens the
 * start gate for everybody who sees @s. Of several mounts on a chain the nearest delivers the
 * one notice (D1). EREFUSED: a second one in @s, which leaves nothing behind (spec 3.6), or
 * a setting that cannot be. EJSON. EGONE: no such scope. Undone by errand_unregister(): work that
 * runs goes on (spec 3.7). NULL @config_json: the defaults.
 */
ERRAND_FN errand_mount(errand_host *h, errand_scope s, const char *config_json, size_t len,
		       errand_reg *ret, errand_error **ret_err);
/* [main] Open the start gate for everybody who sees @s, without the controller (spec 1.8, 3.3).
 * EGONE: no such scope. EARG: no name. */
ERRAND_FN errand_surface(errand_host *h, errand_scope s, const char *name, errand_reg *ret,
			 errand_error **ret_err);

#ifdef __cplusplus
}
#endif
#endif /* ERRAND_H */
