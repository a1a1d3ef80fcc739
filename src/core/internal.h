/* SPDX-License-Identifier: MIT */
/*
 * internal.h - the structs of the core, and what its files offer one another.
 *
 * Everything hangs off one errand_host. An object that callers can name has a struct object
 * first: its id is the key in one map, and it is in the host's list of its type. Nothing is
 * counted: who refers to an object is in a list of that object, and it goes when it is over
 * and the list is empty.
 *
 *   host --- session --- agent --- task --- waiter
 *    |          `---------------------'`--- hold --- lease
 *    |--- scope --- layer --- tool, section, listener, restriction, surface
 *    `--- call --- frame
 *
 * A change and its announcement are apart: state changes at once, callbacks are events in
 * one queue, and only errand_run() takes from it. So no callback finds half a change, and
 * none runs inside another.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/maxima.h"
#include "core/names.h"
#include "core/oneline.h"
#include "core/text.h"
#include "errand.h"

struct call;
struct settings;

/* Who is running just now; decides what may be called (EREENTER). */
enum phase {
	PHASE_TOP,
	PHASE_RUN,  /* errand_run(), and the callbacks it makes */
	PHASE_SYNC, /* a producer's start or cancel */
	PHASE_PURE,
};

enum object_type {
	OBJ_SCOPE,
	OBJ_AGENT,
	OBJ_TASK,
	OBJ_CALL,
	OBJ_FRAME,
	OBJ_SIGNAL,
	OBJ_REG,
	OBJ_PART, /* registered, but undone only with its mount */
	OBJ_LEASE,
	N_OBJECT_TYPES,
};

struct object {
	uint64_t id; /* 0: not in the table */
	enum object_type type;
	struct list node;
};

/* One thing to do in errand_run(). fire() owns it; drop() frees it when the host goes. */
struct event {
	struct list node;
	void (*fire)(errand_host *h, struct event *ev);
	void (*drop)(errand_host *h, struct event *ev);
};

#define TIMER_IDLE SIZE_MAX
struct timer {
	int64_t due;
	uint64_t seq; /* equal deadlines fire in the order they were set */
	size_t slot;  /* place in the heap, or TIMER_IDLE */
	void (*fire)(errand_host *h, struct timer *t);
};

struct timers {
	struct timer **heap;
	size_t count, cap;
	uint64_t last_seq;
};

#define N_EVENTS 4 /* ERRAND_ON_* */
#define N_STAGES 6 /* ERRAND_STAGE_* */

/*
 * What is registered under one scope key (spec 3.2). A scope has one only while something
 * is; each thing in it holds it, and the last to go takes it along.
 */
struct layer {
	struct scope *scope; /* NULL: the global one, which stays */
	size_t holders;
	struct list regs; /* what goes with the scope, in order of registration */
	struct names tools;
	struct list tool_order;
	struct list sections;            /* by age */
	struct list listeners[N_EVENTS]; /* by ERRAND_ON_* - 1, in order of registration */
	struct list policies[N_STAGES];  /* by ERRAND_STAGE_* - 1, and by rank */
	struct list restrictions;
	size_t surfaces;
};

/* A key, and its parent (spec 3.1). A chain may be of any length: it is walked, near to far,
 * never recursed into. */
struct scope {
	struct object obj; /* an agent's own goes by the agent's id instead */
	struct scope *parent;
	struct list children, in_parent;
	struct layer *layer; /* NULL: nothing is registered here */
	bool is_bound;
	struct reg *binding; /* the caller's; NULL: the host's affair */
};

/* Who is to be told that a teardown is over. */
struct ending {
	errand_done_fn done;
	void *ud;
	errand_destroy_fn destroy;
};

/* Who reaches tasks without an owner (D13). */
enum unowned_access {
	UNOWNED_OPEN,
	UNOWNED_OPERATOR,
	UNOWNED_NONE,
};

struct errand_host {
	struct mem mem;
	struct maxima max;
	int64_t mono_ms, wall_ms;
	bool has_run;        /* before that there is no time */
	int64_t owner_limit; /* live tasks of one owner; 0: none (D9) */
	int64_t keep;        /* ended and told tasks of one owner; 0: all (D15) */
	enum phase phase;
	uint64_t last_id, last_message;
	int64_t first_rank, last_rank; /* of policies: appended ones count up */
	struct map objects;
	struct list by_type[N_OBJECT_TYPES];
	struct list mailboxes;
	struct list queue;
	struct timers timers;
	struct layer global;
	struct names sessions, kinds;
	struct list kind_list;
	struct list unowned; /* tasks without an owner, in order of registration */
	size_t unowned_live, tasks;
	size_t live;         /* tasks that are running or stopping, of all owners */
	int unowned_access;  /* enum unowned_access */
	int64_t teardown_ms; /* 0: for ever (D12) */
	struct {
		bool is_disposed; /* or being */
		struct ending ending;
		struct event finish;
		struct timer deadline;
	} service;
	void (*warn)(void *ud, const char *text, size_t len);
	void (*message_id)(void *ud, errand_sink *out);
	void (*journal)(void *ud, const char *json, size_t len);
	void *ud;
	errand_destroy_fn destroy;
};

/* Where other threads put what is to be done here. They see @newest and @is_awake only. */
struct errand_mailbox {
	struct list in_host;
	struct post *newest;
	bool is_awake; /* wake() was called since the last look */
	void (*wake)(void *ud);
	void *ud;
	errand_destroy_fn destroy;
	struct mem mem; /* the mailbox outlives the host */
	struct maxima max;
};

/* ---- agents ---- */

/* Everything of one session id: access goes by it (spec 2.2). Gone with its last user. */
struct session {
	struct name name;
	struct str text;
	struct list agents; /* live instances, and those that calls still refer to */
	struct list tasks;  /* in order of registration */
	struct agent *registered;
};

enum turn_phase {
	TURN_NONE,
	TURN_OPEN,
	TURN_STEP,    /* a step is under way */
	TURN_CLOSING, /* the last one left nothing to do */
};

/* One of an agent's two lists of pending messages (spec 7.1). */
struct inbox {
	struct list list; /* oldest first */
	size_t count;
};

struct agent {
	struct object obj;
	errand_agent number; /* its id, also when it is gone */
	struct scope scope;
	struct session *session;
	struct list in_session;
	struct list tasks; /* of this very instance */
	struct list calls;
	struct inbox inbox[2]; /* by ERRAND_NEXT_* - 1 */
	struct names pending;  /* ids of messages, also of claimed ones */
	struct list holds;     /* claimed messages */
	size_t live;           /* tasks that are running or stopping */
	struct list told;      /* ended tasks that it knows of, first the one told first */
	int64_t n_told;
	struct event trim; /* drops what is too much of these */
	uint64_t last_seq;
	bool is_operator; /* sees all, owns nothing (D13) */
	bool is_restored; /* from a journal, and nobody has claimed it yet */
	bool disposing, gone;
	struct ending ending;
	struct event finish;
	struct timer deadline; /* of its teardown (D12) */
	uint64_t log_seq;      /* of the next event of the session's log */
	enum turn_phase phase;
	uint64_t turn, step; /* the newest */
	bool is_begun; /* the log has the next one's start, and refused what follows */
	struct event waking; /* queued while a turn is asked for */
	int64_t wakes;       /* since a user's message was delivered */
	bool is_paid;        /* the next one is among them */
	bool is_refused;     /* one that was wanted, for want of budget */
	bool is_stopped;     /* its last turn was aborted, and nothing ended since */
	int (*log)(void *ud, errand_agent a, uint64_t seq, const char *event_json,
		   size_t len, errand_error *e);
	void (*wake)(void *ud, errand_host *h, errand_agent a);
	void *ud;
	errand_destroy_fn destroy;
};

struct message {
	struct name name; /* its id */
	struct str id;
	struct list node;
	int target;        /* ERRAND_NEXT_* */
	uint64_t seq;      /* order of arrival */
	bool is_claimed;   /* on a lease, not in the inbox */
	bool was_returned; /* by a lease, to the front */
	bool is_logged;    /* as taken by the step that is about to begin */
	bool is_user;      /* written by a user: refills the budget of wakes */
	bool is_notice;
	errand_task task; /* of a notice */
	struct str json;  /* as errand_inbox() shows it */
};

/* ---- tasks ---- */

struct kind {
	struct name name;
	struct str text;
	struct list in_host;
	uint64_t counter; /* never reset (spec 1.1.4) */
	struct map tasks; /* ordinal -> task */
};

struct task {
	struct object obj;
	struct kind *kind;
	uint64_t ordinal;
	struct agent *owner; /* NULL: unowned */
	struct list in_session, in_owner, in_told;
	struct str label, detail, output; /* .ptr NULL: absent */
	int status;
	bool reported;        /* for good; see task_is_reported() */
	bool notice_withheld; /* only because the end was on a lease */
	bool noticed;         /* a notice of it was sent */
	bool notice_read;     /* and delivered */
	bool is_stream;       /* of one that was restored */
	int64_t max_wakes;    /* of the mount that delivers its notice; 0: quiet */
	size_t end_holds;     /* leases that hold the end */
	int64_t started_ms, finished_ms;
	int64_t limit; /* outputLimitBytes; 0: none */
	uint64_t cursor;
	uint64_t delivered; /* the cursor that no lease can move back any more */
	struct errand_producer producer;
	struct list waiters, holds;
};

struct waiter {
	struct event ev; /* its delivery */
	struct timer timer;
	struct list in_task, in_signal;
	struct task *task; /* while it waits */
	bool is_onlooker;
	struct str snapshot;
	errand_error *error;
	errand_lease lease;
	errand_wait_fn fn;
	void *ud;
	errand_destroy_fn destroy;
};

/* ---- leases ---- */

enum hold_kind {
	HOLD_BYTES,
	HOLD_END,
	HOLD_MESSAGES,
};

/* One thing on a lease: it hangs on the lease and on what it is of. */
struct hold {
	struct list in_lease, in_thing;
	enum hold_kind kind;
	struct task *task;
	struct agent *agent;
	uint64_t from;        /* HOLD_BYTES: unread again from here */
	struct list messages; /* HOLD_MESSAGES */
};

struct lease {
	struct object obj;
	struct list holds;
};

/* ---- registrations ---- */

/* What errand_unregister() undoes. First member of each registered thing. */
struct reg {
	struct object obj;
	struct list in_layer;
	void (*undo)(errand_host *h, struct reg *r); /* frees it */
};

struct section {
	struct reg reg;
	struct layer *layer;
	struct list node;
	struct str name, text;
	double order;
};

struct tool {
	struct reg reg;
	struct layer *layer;
	struct name name;
	struct list node;
	struct str text, description, params_text, output_text;
	struct js *params, *output;
	uint32_t flags;
	bool gone; /* unregistered; waits for its calls */
	errand_enter_fn exec;
	errand_make_fn render, finalize, card;
	/* The controller's: what it must know of a call before its policy (spec 5.7), and its
	 * last mile, which sees more than finalize. */
	void (*capture)(errand_host *h, struct call *c);
	errand_reg captured_by; /* the policy of its mount that asks for it */
	void (*last_mile)(errand_host *h, struct call *c);
	/* The same as render, on the value as it was parsed. */
	void (*put_text)(struct buf *text, const struct js *value);
	int64_t timeout_ms; /* 0: none */
	void *ud;
	errand_destroy_fn destroy;
	struct list calls;
};

/* One event on its way to the listeners that were on the owner's chain when it happened
 * (spec 3.4). By id: one that is removed meanwhile is skipped. */
struct dispatch {
	struct event ev;
	int event;
	bool is_for_mount; /* nobody else hears it: a notice that is sent late */
	errand_agent owner;
	errand_task task;   /* ON_DONE */
	bool reported;      /* ON_DONE: as of the settlement (spec 1.2.3) */
	bool is_heard;      /* by a listener of the caller's, who reads json */
	struct str subject; /* for a warning */
	struct str json;
	size_t count;
	errand_reg listeners[]; /* global ones first, then far to near */
};

struct listener {
	struct reg reg;
	struct layer *layer;
	struct list node;
	errand_reg number; /* its id, also when it is gone */
	unsigned busy;     /* it is being told something, so often */
	bool gone;         /* removed meanwhile */
	errand_event_fn fn;
	void (*builtin)(errand_host *h, const struct listener *l,
			const struct dispatch *d); /* instead of fn */
	int64_t max_wakes;                         /* of a mount; 0: quiet (D8) */
	void *ud;
	errand_destroy_fn destroy;
};

/* ---- signals and calls ---- */

struct signal {
	struct object obj;
	bool raised, is_of_call;
	struct list waiters;
	struct list watches;             /* who is to be told */
	struct list children, in_parent; /* the signals of calls */
	struct signal *next;             /* to be raised, while one above is */
};

/* A listener of a stage of calls. */
struct policy {
	struct reg reg;
	struct layer *layer;
	struct list node;
	errand_reg number; /* its id, also when it is gone */
	int64_t rank;      /* its place among all of its stage (spec 9.2) */
	unsigned busy;     /* frames of it that are out */
	bool gone;         /* removed meanwhile */
	errand_enter_fn enter, back;
	void (*builtin)(errand_host *h, struct call *c, errand_reg self); /* instead */
	void *ud;
	errand_destroy_fn destroy;
};

enum frame_state {
	FRAME_OPEN, /* owes an answer, or next() */
	FRAME_NEXT, /* the rest of the chain runs */
	FRAME_BACK, /* has the rest's answer, owes its own */
};

struct frame {
	struct object obj;
	struct call *call;
	enum frame_state state;
	errand_reg reg;
	int64_t rank;
	struct policy *policy; /* from its entry to its answer; NULL of the body */
};

/* The listeners of one stage, as they stood when the call entered it. */
struct chain {
	void (*end)(errand_host *h, struct call *c);  /* all have said next() */
	void (*done)(errand_host *h, struct call *c); /* the answer is there */
	size_t count, entered;
	struct frame frames[];
};

struct call {
	struct object obj;
	struct event ev;
	void (*step)(errand_host *h, struct call *c); /* what ev does next */
	struct agent *agent;                          /* NULL: nobody's */
	struct tool *tool;                            /* as found at entry; NULL: unknown */
	struct list in_agent, in_tool;
	struct signal signal;
	struct timer timer; /* of the tool's own timeout */
	bool timed_out;
	int stage;        /* ERRAND_STAGE_*; 0: before the first */
	int64_t since_ms; /* when it came to where it stands */
	struct chain *chain;
	struct frame frame;  /* of the body */
	struct lease *lease; /* what it has consumed; NULL: nothing */
	struct str tool_name, args;
	struct js *tree; /* of args; NULL: not lossless */
	uint32_t flags;
	int64_t limit; /* captured before its policy; 0: none */
	/* What the stage has been given, later its answer; or what was thrown. */
	struct str answer;
	errand_error *thrown;
	bool is_raw;     /* the body's own answer or error, as yet seen by no back() */
	bool is_wrapped; /* the same in {"value":..}, as yet changed by none */
	/* The outcome. */
	errand_error *error; /* NULL: success */
	struct str content, value;
	struct js *value_tree;       /* value lies in it */
	const struct js *value_node; /* NULL: not parsed yet */
	int (*on_result)(void *ud, errand_host *h, errand_call c, errand_lease l,
			 const char *result_json, size_t len);
	void *ud;
	errand_destroy_fn destroy;
};

/* ---- host.c ---- */

void object_add(errand_host *h, struct object *o, enum object_type type);
/* Under an id that is known from a journal. */
void object_add_as(errand_host *h, struct object *o, enum object_type type, uint64_t id);
void object_del(errand_host *h, struct object *o);
void *object_get(const errand_host *h, uint64_t id,
		 enum object_type type); /* NULL: stale */
void *object_first(const errand_host *h, enum object_type type);
void event_queue(errand_host *h, struct event *ev);
void timer_set(errand_host *h, struct timer *t, int64_t due);
void timer_clear(errand_host *h, struct timer *t);
struct timer *timer_first(const errand_host *h);
/* May a function of class [main] run now? May one of class [any]? 0 or the code. */
int may_change(const errand_host *h, errand_error **ret_err);
int may_queue(const errand_host *h);
enum phase phase_enter(errand_host *h, enum phase p); /* returns the one to go back to */
void destroy_ud(errand_host *h, errand_destroy_fn destroy, void *ud);
void host_warn(errand_host *h, struct buf *text); /* releases @text */

/* ---- scope.c ---- */

void layer_init(errand_host *h, struct layer *l);
/* The layer of @s, made if there is none, and held. NULL: a stale id. */
struct layer *layer_open(errand_host *h, errand_scope s, errand_error **ret_err);
void layer_hold(struct layer *l);
void layer_drop(errand_host *h, struct layer *l); /* frees it with its last holder */
void scope_init(struct scope *s);
struct scope *scope_get(const errand_host *h, errand_scope s, errand_error **ret_err);
/* May @parent (NULL: none) be its parent? EREFUSED: a cycle. */
int scope_check(const errand_host *h, const struct scope *child, const struct scope *parent,
		errand_error **ret_err);
void scope_link(struct scope *s, struct scope *parent); /* NULL: none */
void scope_clear(errand_host *h, struct scope *s);      /* undo what is registered in it */
void scope_release(errand_host *h, struct scope *s);    /* and take it out of its chain */
void scope_free(errand_host *h, struct scope *s);
const struct scope *scope_of(const struct agent *a); /* NULL is nobody: NULL */
/* What a reader with key @s (NULL: none) sees, from near to far, the global layer last. */
const struct layer *chain_first(const errand_host *h, const struct scope *s);
const struct layer *chain_next(const errand_host *h, const struct layer *l);
#define chain_each(pos, h, s)                                                              \
	for (const struct layer *pos = chain_first(h, s); pos; pos = chain_next(h, pos))
/* The same from far to near, the global layer first, as an array to free. */
const struct layer **chain_from_far(const errand_host *h, const struct scope *s,
				    size_t *ret_count);
bool is_served(const errand_host *h, const struct agent *a); /* by a surface (spec 3.3) */

/* ---- agent.c, inbox.c ---- */

struct agent *agent_get(const errand_host *h, errand_agent a, errand_error **ret_err);
/* The same for a function of class [main]: it may run now, and the agent is there. */
int agent_to_change(const errand_host *h, errand_agent a, struct agent **ret,
		    errand_error **ret_err);
/* Who asks: 0 is nobody, which is fine: NULL. EGONE: a stale id. */
int caller_get(const errand_host *h, errand_agent a, const struct agent **ret,
	       errand_error **ret_err);
void agent_trim(errand_host *h, struct agent *a); /* D15, in task.c */
void agent_call_ended(errand_host *h, struct call *c);
void agent_free(errand_host *h, struct agent *a);
struct agent *agent_restore(errand_host *h, uint64_t id, struct str session); /* takes it */
/* To the end of list m->target; @m is taken only if the answer is 0. EREFUSED, or the log's ECALLBACK. */
int inbox_add(errand_host *h, struct agent *a, struct message *m, errand_error **ret_err);
/* Discard both lists. ECALLBACK: the log refused; what it had taken is discarded. */
int inbox_cancel(errand_host *h, struct agent *a, errand_error **ret_err);
void inbox_cancel_anyway(errand_host *h,
			 struct agent *a);           /* a log that refuses: a warning */
void inbox_release(errand_host *h, struct agent *a); /* unlogged and silent: it goes */
void inbox_give_back(errand_host *h, struct agent *a, struct list *messages);
void message_free(errand_host *h, struct message *m);
struct str message_new_id(errand_host *h, const struct agent *a);
int message_parse(errand_host *h, const struct agent *a, struct js_span text,
		  struct message **ret, errand_error **ret_err);
/* One that we have written, so that it may be the notice of a task: @text, parsed as @j. What
 * was taken once is not measured again. EREFUSED: it is none, or is pending already. */
int message_read(errand_host *h, struct agent *a, const struct js *j, struct js_span text,
		 struct message **ret);
void message_id_seen(errand_host *h, const struct message *m); /* not to be made again */
void message_named(struct message *m); /* its id is set: fill its name */
/* To the end of its list, and no more than that. */
void inbox_put(struct agent *a, struct message *m);
void inbox_forget(errand_host *h, struct agent *a, struct message *m); /* frees it */
/* Before @before, or to the end. */
void inbox_move(struct agent *a, struct message *m, struct message *before);
size_t inbox_index(const struct inbox *box, const struct list *node);
void messages_put(struct buf *out, const struct list *messages); /* with commas between */
/* @more: further members, each with a comma before it; NULL: none. */
void inbox_announce(errand_host *h, const struct agent *a, const char *word,
		    const struct message *m, const struct buf *more, bool at_once);
static inline struct inbox *inbox_of(struct agent *a, int target)
{
	return &a->inbox[target - ERRAND_NEXT_STEP];
}

/* ---- turn.c ---- */

void agent_wake_init(struct agent *a);
bool has_notice(const struct list *messages);
/* Call wake() in errand_run(), if a notice is pending then, no turn is open, and the user has not
 * stopped the last one since. It is counted now: for a new notice. */
void agent_ask(errand_host *h, struct agent *a);
/* The same for notices that no turn has taken, or not for good: counted when wake() is called,
 * if its budget lasts. */
void agent_ask_again(errand_host *h, struct agent *a);
/* Does a new notice ask? If only the budget is short, it does when that is refilled. */
bool agent_may_wake(struct agent *a, int64_t max_wakes);

/* ---- log.c ---- */

/* One change of one of an agent's lists, as its log has it (spec 7.2). */
struct splice {
	int target;
	size_t start, removed;
	const struct list *inserted; /* NULL: none */
	bool is_canceled;
	bool may_fail; /* there is a caller to be told that memory is short */
};

/* `{"seq":N,"type":"<type>","data":{`; the caller adds members. Only if a->log is there. */
void log_begin(const struct agent *a, struct buf *event, const char *type);
/* Append it and release @event. ECALLBACK: the log refused. */
int log_end(errand_host *h, struct agent *a, struct buf *event, errand_error **ret_err);
int log_append(errand_host *h, struct agent *a, struct buf *event, errand_error **ret_err);
int log_splice(errand_host *h, struct agent *a, const struct splice *s,
	       errand_error **ret_err);
/* It refused what had to happen all the same: that the inbox was @what. Frees @e. */
void log_warn(errand_host *h, const struct agent *a, const char *what, errand_error *e);
const char *target_word(int target);

/* ---- teardown.c ---- */

void service_init(errand_host *h);
void service_settled(errand_host *h); /* one task less */
void agent_deadline_init(struct agent *a);
void agent_settled(errand_host *h, struct agent *a); /* one task less */
void agent_finish(errand_host *h, struct event *ev);

/* ---- mailbox.c ---- */

void mailboxes_collect(errand_host *h); /* into the queue */
bool mailboxes_have(const errand_host *h);
void mailboxes_close(errand_host *h);

/* ---- journal.c ---- */

/* Each tells one fact, if somebody keeps a journal. */
void journal_agent(errand_host *h, const struct agent *a);
void journal_agent_gone(errand_host *h, const struct agent *a);
void journal_counter(errand_host *h, const struct kind *k);
void journal_task(errand_host *h, const struct task *t);    /* all there is to know of it */
void journal_put_task(struct buf *b, const struct task *t); /* its members */
/* "drop", "reported", "noticed" or "told". */
void journal_of_task(errand_host *h, const struct task *t, const char *fact);
void journal_cursor(errand_host *h, const struct task *t);
void journal_message(errand_host *h, const struct agent *a, const struct message *m);
/* @before NULL: to the end of its list. */
void journal_message_moved(errand_host *h, const struct agent *a, const struct message *m,
			   const struct message *before);
void journal_message_gone(errand_host *h, const struct agent *a, const struct message *m);

/* ---- task.c, start.c, snapshot.c, wait.c ---- */

struct kind *kind_get(errand_host *h, const struct str *text); /* made if there is none */
bool status_is_terminal(int status);
const char *status_word(int status);
bool task_is_reported(const struct task *t);
struct task *task_by_id(const errand_host *h, const char *id, size_t len); /* or NULL */
struct task *task_find(const errand_host *h, const struct agent *caller, const char *id,
		       size_t len, errand_error **ret_err);
void task_settle(errand_host *h, struct task *t, int status, struct str *detail,
		 struct str *output); /* takes both */
/* Does @caller (NULL: nobody) see it (spec 2.2, D13)? */
bool task_is_seen(const errand_host *h, const struct agent *caller, const struct task *t);
/* Does what @caller sees of it count as told to its owner? */
static inline bool is_onlooker(const struct agent *caller)
{
	return caller && caller->is_operator;
}
int task_read(errand_host *h, const struct agent *caller, struct task *t, struct lease *l,
	      struct buf *ret_text, errand_error **ret_err);
int task_kill(errand_host *h, const struct agent *caller, struct task *t,
	      const char *reason, size_t len, bool *ret_requested, errand_error **ret_err);
int task_cancel(errand_host *h, struct task *t, const char *reason, size_t len,
		errand_error *e);
void task_free(errand_host *h, struct task *t);
void task_changed(errand_host *h, const struct agent *owner);
/* Its end, its report or its notice has come: is it one of those that may go (D15)? */
void task_told(errand_host *h, struct task *t);
void task_report(errand_host *h, struct task *t);
void task_ended(errand_host *h, struct task *t); /* it counts as live no more */
/* A lease on its bytes has ended: what is read for good now? */
void task_delivered(errand_host *h, struct task *t);
struct task *task_restore(errand_host *h, uint64_t id, struct kind *k, uint64_t ordinal,
			  struct agent *owner);
void task_put_id(struct buf *out, const struct task *t);
/* @id was made by task_put_id(); both must outlive the line. */
void task_line_of(const struct task *t, const struct buf *id, struct task_line *ret);
void task_put_snapshot(struct buf *out, const struct task *t); /* spec 1.9 */
void task_put_public(struct buf *out, const struct task *t);   /* spec 4.2 */
/* Call @fn for each task that @caller sees, in order of registration (spec 1.3). */
void task_each(const errand_host *h, const struct agent *caller,
	       void (*fn)(void *ud, const struct task *t), void *ud);
struct wait_request {
	double ms;         /* NaN: no number */
	const char *shown; /* as JSON, for the error text */
	struct signal *signal;
	bool is_onlooker; /* reports nothing */
	errand_wait_fn fn;
	void *ud;
	errand_destroy_fn destroy;
};
int task_wait(errand_host *h, struct task *t, const struct wait_request *r,
	      errand_error **ret_err);
void waiter_settled(errand_host *h, struct waiter *w, struct task *t);
void waiter_abort(errand_host *h, struct waiter *w);
void waiter_free(errand_host *h, struct waiter *w);

/* ---- lease.c ---- */

struct lease *lease_new(errand_host *h); /* nobody can name it before it is handed out */
errand_lease lease_hand_out(errand_host *h, struct lease *l);
void lease_hold_bytes(errand_host *h, struct lease *l, struct task *t, uint64_t from);
void lease_hold_end(errand_host *h, struct lease *l, struct task *t);
struct hold *lease_hold_messages(errand_host *h, struct lease *l, struct agent *a);
bool lease_is_empty(const struct lease *l);
void lease_commit(errand_host *h, struct lease *l); /* both free it */
void lease_return(errand_host *h, struct lease *l);
void lease_drop(errand_host *h, struct lease *l); /* neither: the host goes */
void lease_merge(errand_host *h, struct lease *into, struct lease *from); /* frees @from */
void hold_free(errand_host *h, struct hold *hd); /* what it held is gone */

/* ---- signal.c, event.c, tool.c, section.c ---- */

void signal_init(errand_host *h, struct signal *s);
void signal_raise(errand_host *h, struct signal *s);
void signal_release(errand_host *h, struct signal *s);
void signal_free(errand_host *h, struct signal *s);
/* NULL, and nothing is queued, if nobody listens. */
struct dispatch *dispatch_new(errand_host *h, int event, const struct agent *owner);
void dispatch_now(errand_host *h, struct dispatch *d); /* frees it */
void dispatch_queue(errand_host *h, struct dispatch *d);
struct listener *listener_add(errand_host *h, struct layer *l, int event);
struct reg *surface_add(errand_host *h, struct layer *l);
/* Give it an id: it can be undone by name. A mount's own parts cannot. */
errand_reg reg_publish(errand_host *h, struct reg *r);
/* The same, and it goes with the scope of @l. */
errand_reg reg_publish_in(errand_host *h, struct layer *l, struct reg *r);
void reg_undo(errand_host *h, struct reg *r);
struct tool *tool_find(const errand_host *h, const struct agent *a, const char *name,
		       size_t len);
int tool_add(errand_host *h, struct layer *l, const struct errand_tool *t,
	     struct tool **ret, errand_error **ret_err);
void tool_call_ended(errand_host *h, struct call *c);
/* A global one, by all restrictions on the chain of @s? */
bool tool_is_allowed(const errand_host *h, const struct scope *s, const struct tool *t);
const struct tool **tools_by_name(const errand_host *h, size_t *ret_count); /* global */
int section_add(errand_host *h, struct layer *l, const char *name, double order,
		errand_str text, struct reg **ret, errand_error **ret_err);

/* ---- call.c, call_api.c ---- */

/* ---- policy.c, frame.c ---- */

struct policy *policy_add(errand_host *h, struct layer *l, int stage, uint32_t flags);
struct policy *policy_get(const errand_host *h, errand_reg id); /* NULL: removed */
void policy_release(errand_host *h, struct policy *p);          /* one frame less */
/* Run the listeners of @stage that are on the call's chain of scopes now, then @end, which
 * leaves an answer and calls chain_unwind(); when all have had their say, @done. */
void chain_run(errand_host *h, struct call *c, int stage,
	       void (*end)(errand_host *h, struct call *c),
	       void (*done)(errand_host *h, struct call *c));
void chain_unwind(errand_host *h, struct call *c);
void chain_unwrap(errand_host *h, struct call *c); /* makes what is wrapped raw again */
void chain_free(errand_host *h, struct call *c);
bool has_policies(const errand_host *h, const struct call *c, int stage);
void frame_open(errand_host *h, struct frame *f, struct call *c); /* gives it its id */

/* ---- outcome.c ---- */

void outcome_fail(errand_host *h, struct call *c, errand_error *e); /* takes @e */
void outcome_fail_text(errand_host *h, struct call *c, const char *message,
		       const char *name, const char *code);
void outcome_forget(errand_host *h, struct call *c);
/* c->answer; NULL: no lossless JSON. @is_wrapped: the value lies in a member of it. */
struct js *outcome_parse(const errand_host *h, const struct call *c, bool is_wrapped);
const char *why_no_result(int buf_error); /* of one that would hold it */
/* Take the value that stands in c->answer, or in its member "value". @tree is what was parsed
 * of it, and taken. False: it is not valid under the tool's schema, and the call has failed. */
bool outcome_take_value(errand_host *h, struct call *c, struct js *tree, bool is_member);
bool outcome_render(errand_host *h, struct call *c);
void outcome_take_error(errand_host *h, struct call *c, const struct js *result);
void outcome_put(struct buf *out, const struct call *c);
void outcome_finish(errand_host *h, struct call *c); /* frees the call */
bool call_is_aborted(const struct call *c);

/* Let @make write what it makes of @in: 0, or its code and its error. */
int run_maker(errand_host *h, errand_make_fn make, void *ud, errand_str in, struct buf *ret,
	      errand_error **ret_err);

void call_queue(errand_host *h, struct call *c,
		void (*step)(errand_host *h, struct call *c));
void call_enter(errand_host *h, struct call *c); /* the first step */
void call_timeout(errand_host *h, struct timer *timer);

struct call *call_of_frame(const errand_host *h, errand_frame f);
void call_free(errand_host *h, struct call *c);
struct lease *call_lease(errand_host *h, struct call *c); /* made when first asked for */
void call_answer(errand_host *h, struct call *c, struct buf *json); /* takes @json */
void call_fail(errand_host *h, struct call *c, errand_error *e);    /* takes @e */
void put_text_block(struct buf *out, const char *text, size_t len);

/* ---- notice.c ---- */

void notice_on_done(errand_host *h, const struct listener *l, const struct dispatch *d);
/* completionDelivery and maxConsecutiveWakes (spec 10.6); 0: quiet. */
int notice_config(errand_host *h, const struct settings *config, int64_t *ret_max_wakes,
		  errand_error **ret_err);
/* It was owed when the journal ended. */
void notice_again(errand_host *h, const struct task *t);
/* A lease on an end was returned: a notice that it held back is due now. */
void notice_due(errand_host *h, struct task *t);
