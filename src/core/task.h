/* SPDX-License-Identifier: MIT */
/* task.h - the records of background work (spec 1), and who waits for an end. */
#pragma once

#include "core/agent.h"
#include "core/oneline.h"

struct lease;
struct signal;

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
/* Call @fn in errand_run(), if it is still there then. */
void task_later(errand_host *h, const struct task *t,
		void (*fn)(errand_host *h, struct task *t));
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
