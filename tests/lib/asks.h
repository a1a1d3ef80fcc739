/* SPDX-License-Identifier: MIT */
/* asks.h - requests to a task's shim, and their answers. */
#pragma once

#include "tasks.h"

#define ASK_LISTED 32

/* One request's answer. */
struct ask {
	unsigned answers; /* how often it was answered */
	struct run_answer answer;
	struct run_process processes[ASK_LISTED];
	struct err err; /* of a request that was not taken */
};

static inline void on_answer(void *ud, struct run_task *t, const struct run_answer *a)
{
	struct ask *q = ud;

	(void)t;
	q->answer = *a;
	q->answers++;
	for (size_t i = 0; i < a->n_processes && i < ASK_LISTED; i++)
		q->processes[i] = a->processes[i];
}

static inline void ask_wait(struct world *w, struct ask *q)
{
	wait_until(w, q->answers > 0);
	assert_int_equal(q->answers, 1);
}

static inline void expect_done(struct world *w, struct ask *q)
{
	ask_wait(w, q);
	if (q->answer.rc != 0)
		fail_msg("%s", q->answer.why);
}

static inline void expect_refused(struct world *w, struct ask *q, const char *why)
{
	ask_wait(w, q);
	assert_int_equal(q->answer.rc, -ERR_STATE);
	assert_string_equal(q->answer.why, why);
}

/* Requests that must be taken; @q is theirs. */
static inline struct ask *taken(struct ask *q, int rc)
{
	if (rc != 0)
		fail_msg("%s", q->err.msg);
	return q;
}

static inline struct ask *ask_signal(struct job *j, struct ask *q, int sig,
				     bool is_for_tree)
{
	*q = (struct ask){0};
	return taken(q, run_signal(j->task, sig, is_for_tree, on_answer, q, &q->err));
}

static inline struct ask *ask_input(struct job *j, struct ask *q, const void *bytes,
				    size_t len)
{
	*q = (struct ask){0};
	return taken(q, run_input(j->task, bytes, len, on_answer, q, &q->err));
}

static inline struct ask *ask_close(struct job *j, struct ask *q)
{
	*q = (struct ask){0};
	return taken(q, run_close_input(j->task, on_answer, q, &q->err));
}

static inline struct ask *ask_extend(struct job *j, struct ask *q, int64_t in_ms)
{
	*q = (struct ask){0};
	return taken(q, run_extend(j->task, in_ms, on_answer, q, &q->err));
}

static inline struct ask *ask_sweep(struct job *j, struct ask *q, bool detached)
{
	*q = (struct ask){0};
	return taken(q, run_sweep(j->task, detached, on_answer, q, &q->err));
}

static inline struct ask *ask_left(struct job *j, struct ask *q)
{
	*q = (struct ask){0};
	return taken(q, run_leftovers(j->task, on_answer, q, &q->err));
}

/* True if that is who is left, by the shim's own count. */
static inline bool are_left(struct world *w, struct job *j, unsigned attached,
			    unsigned detached)
{
	struct ask q;

	expect_done(w, ask_left(j, &q));
	return q.answer.attached == attached && q.answer.detached == detached;
}

/* "setsid <sleep>" with no descriptor of the task's; once it is there, it is detached. */
static inline const char *detached(const char *sleep)
{
	static char text[256];

	(void)snprintf(text, sizeof(text), "setsid %s </dev/null >/dev/null 2>&1 &", sleep);
	return text;
}
