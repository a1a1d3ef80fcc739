/* SPDX-License-Identifier: MIT */
/*
 * trace.h - what the ops of a recorded trace share.
 *
 * A trace is a list of steps {op, inputs, out, events?} on one host. An op is a function: it
 * does what the step says, lets all queued work drain, and returns what the step gave. What
 * the library called back meanwhile was noted in order. Names of a trace stand for things: a
 * scope, an agent, a producer's work, a call, a registration.
 */
#pragma once

#include "vectors.h"

enum thing_kind {
	A_PRESET,
	A_MOUNT,
	AN_AGENT,
	A_JOB,
	A_CALL,
	A_LISTENER, /* or a watcher, or a surface */
};

struct thing {
	struct thing *next;
	struct trace *trace;
	enum thing_kind kind;
	const char *name;
	const json_t *in; /* the step that made it: its options */
	uint64_t id;      /* scope, agent, task, call or registration */
	/* an agent */
	errand_scope parent;
	json_t *log;
	json_int_t seq; /* of its next event */
	uint64_t turn;
	bool is_over; /* disposed */
	errand_agent gone_id;
	/* a job */
	char *public_id; /* "bash-1" */
	char *text;
	size_t len;
	/* a call */
	json_t *result;
	int64_t started, ended;
	/* a listener that has more to say */
	struct thing *next_late;
	errand_task late_about;
};

struct trace {
	struct row *row;
	bool is_later; /* a row of the newer state */
	const json_t *step;
	errand_host *host;
	int64_t now;
	json_t *mount_config;
	json_t *events; /* of this step */
	struct thing *things;
	struct thing *late; /* listeners that fail after they have returned, in order */
	unsigned wakes, followups; /* in this step */
	bool is_service_over;
};

typedef json_t *(*op_fn)(struct trace *t);

/* ---- the step ---- */

void trace_fail(struct trace *t, const char *what);
void trace_drain(struct trace *t);
/* Listener @x will fail, later, in what it began for the end of @about. */
void trace_late(struct thing *x, errand_task about);
void trace_event(struct trace *t, json_t *event); /* takes it */
/* A member of the step; its text, or NULL. */
const json_t *step_get(const struct trace *t, const char *key);
const char *step_text(const struct trace *t, const char *key);
/* {"threw": message} or @ok. Takes both. */
json_t *outcome(int rc, errand_error *e, json_t *ok);
/* The text as JSON, or {"threw": message}. */
json_t *outcome_json(int rc, errand_error *e, const char *key, errand_text *t);

/* ---- things ---- */

struct thing *thing_new(struct trace *t, enum thing_kind kind, const char *key);
/* The one that the step's member @key names; a failure if there is none. */
struct thing *thing_get(struct trace *t, enum thing_kind kind, const char *key);
/* The same, NULL where the step has no such member. */
struct thing *thing_if_any(struct trace *t, enum thing_kind kind, const char *key);
errand_task trace_task(const struct trace *t, const char *id); /* "bash-1" -> its record */
const char *agent_name(const struct trace *t, errand_agent a);
errand_agent step_agent(struct trace *t, const char *key); /* 0: none */

errand_str str_text(const char *s);
errand_str str_json(const json_t *j);

/* ---- ops, by what they are about ---- */

struct op {
	const char *name;
	op_fn run;
	const char *members[12]; /* besides op, out and events */
};
extern const struct op scope_ops[], agent_ops[], work_ops[], call_ops[];

/* Agent @a, or who looks in its place when it is gone. */
errand_agent agent_now(struct trace *t, errand_agent a);
/* What a listener of the inbox, put there before all others, makes of an event. */
void note_inbox(struct trace *t, errand_agent a, const json_t *event);
