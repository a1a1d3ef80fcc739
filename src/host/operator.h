/* SPDX-License-Identifier: MIT */
/*
 * operator.h - what a person's client may ask of a host: one row of a table for each method.
 *
 * A request is `{"jsonrpc":"2.0","id":..,"method":"errand/..","params":{..}}`, in a line. A
 * method writes its result into ask->result and calls ask_done(), at once or later, or
 * ask_fail(). It need not care whether the client is still there. One that has not answered
 * when the client goes is told by ->cancel, and still has to call one of the two.
 *
 * To add a method: a function in operator.c or a file of its own, and a row in the table.
 */
#pragma once

#include "host/internal.h"

struct js;

struct operator_method;

struct ask {
	struct list node;
	const struct operator_method *method; /* NULL: none is known by its name */
	struct host *host;
	struct client *client; /* NULL: it is gone */
	/* The operator; or, for a client that a task has started, that task's owner. */
	errand_agent agent;
	const struct js *params; /* an object, or NULL; [in the method] */
	struct buf id;
	uint64_t number;      /* the id, if it is one; or 0 */
	struct buf result;    /* the members of the result object, `"key":value,...` */
	errand_signal signal; /* raised when the client goes; 0: not wanted */
};

struct operator_method {
	const char *name;
	void (*handle)(struct ask *a);
	/* Of one whose effect must not come twice: called instead when the same request had been
	 * answered with the object @result and comes again, since the host died. NULL: it may be repeated. */
	void (*again)(struct ask *a, const char *result);
};

extern const struct operator_method operator_methods[]; /* up to a NULL name */

/* The longest deadline that a person may give: a year. */
#define MAX_DEADLINE_MS (INT64_C(366) * 86400 * 1000)

/* operator_run.c, operator_sessions.c */
void ask_run(struct ask *a);
void ask_run_again(struct ask *a, const char *result);
void ask_sessions(struct ask *a);
void ask_end_session(struct ask *a);

/* Each ends the ask, and frees it. */
void ask_done(struct ask *a);
/* With the result object that it had before. */
void ask_repeat(struct ask *a, const char *result);
void ask_fail(struct ask *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* With the text of @e, which is freed. */
void ask_refused(struct ask *a, errand_error *e);
/* The string @key of the params; NULL: the ask has been failed, and is gone. */
const char *ask_string(struct ask *a, const char *key, size_t *ret_len);
