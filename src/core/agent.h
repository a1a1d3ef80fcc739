/* SPDX-License-Identifier: MIT */
/* agent.h - agents and their sessions (spec 2), and the state of their turns. */
#pragma once

#include "core/host.h"

struct call;

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

void agent_deadline_init(struct agent *a);
void agent_settled(errand_host *h, struct agent *a); /* one task less */
void agent_finish(errand_host *h, struct event *ev);
