/* SPDX-License-Identifier: MIT */
/*
 * wait.c - waiting for an end (spec 1.7).
 *
 * A waiter hangs on its task, its signal and its deadline; the first of them to come takes
 * it off all three at once and queues its answer. So a settlement that is processed after
 * an abort no longer sees it, and an abort after a settlement does not either.
 */
#include <math.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/lease.h"
#include "core/signal.h"
#include "core/task.h"

#define MAX_TIMER_MS 2147483647.0

void waiter_free(errand_host *h, struct waiter *w)
{
	list_del(&w->in_task);
	list_del(&w->in_signal);
	list_del(&w->ev.node);
	timer_clear(h, &w->timer);
	str_free(&h->mem, &w->snapshot);
	errand_error_free(w->error);
	destroy_ud(h, w->destroy, w->ud);
	mem_free(&h->mem, w);
}

static void deliver(errand_host *h, struct event *ev)
{
	struct waiter *w = list_entry(ev, struct waiter, ev);

	w->fn(w->ud, h, w->lease, w->snapshot.ptr, w->snapshot.len, w->error);
	waiter_free(h, w);
}

static void drop(errand_host *h, struct event *ev)
{
	waiter_free(h, list_entry(ev, struct waiter, ev));
}

static void resolve(errand_host *h, struct waiter *w)
{
	list_del(&w->in_task);
	list_del(&w->in_signal);
	timer_clear(h, &w->timer);
	event_queue(h, &w->ev);
}

static void take_snapshot(errand_host *h, struct waiter *w, const struct task *t)
{
	struct buf b;

	buf_init_mem(&b, h->max.json, &h->mem);
	task_put_snapshot(&b, t);
	w->snapshot = str_of_buf(&b);
}

/* The end is reported from here on, unless the waiter's lease comes back. */
void waiter_settled(errand_host *h, struct waiter *w, struct task *t)
{
	if (!w->is_onlooker) {
		struct lease *l = lease_new(h);

		lease_hold_end(h, l, t);
		w->lease = lease_hand_out(h, l);
	}
	take_snapshot(h, w, t);
	resolve(h, w);
}

void waiter_abort(errand_host *h, struct waiter *w)
{
	(void)error_make(&w->error, &h->mem, ERRAND_EREFUSED, "wait aborted");
	resolve(h, w);
}

static void on_deadline(errand_host *h, struct timer *timer)
{
	struct waiter *w = list_entry(timer, struct waiter, timer);

	take_snapshot(h, w, w->task);
	resolve(h, w);
}

static int check_timeout(errand_host *h, const struct wait_request *r,
			 errand_error **ret_err)
{
	if (isfinite(r->ms) && r->ms > 0)
		return 0;
	return error_about(ret_err, &h->mem, ERRAND_EREFUSED,
			   "invalid wait timeout: expected a positive number of "
			   "milliseconds, got ",
			   r->shown, strlen(r->shown), "");
}

static int check_live(errand_host *h, const struct wait_request *r, errand_error **ret_err)
{
	if (r->signal && r->signal->raised)
		return error_make(ret_err, &h->mem, ERRAND_EREFUSED, "wait aborted");
	if (r->ms > MAX_TIMER_MS)
		return error_make(ret_err, &h->mem, ERRAND_EREFUSED,
				  "deadline timeoutMs must be a positive finite number no "
				  "greater than 2147483647");
	return 0;
}

/* Whole milliseconds: a fraction is let go (spec 1.7.8). */
static int64_t deadline(const errand_host *h, double ms)
{
	int64_t wait = (int64_t)ms;

	return h->mono_ms > INT64_MAX - wait ? INT64_MAX : h->mono_ms + wait;
}

int task_wait(errand_host *h, struct task *t, const struct wait_request *r,
	      errand_error **ret_err)
{
	bool is_live = !status_is_terminal(t->status);
	struct waiter *w;
	int rc = check_timeout(h, r, ret_err);

	if (rc == 0 && is_live)
		rc = check_live(h, r, ret_err);
	if (rc != 0)
		return rc;
	w = mem_new(&h->mem, sizeof(*w));
	w->ev = (struct event){.fire = deliver, .drop = drop};
	list_init(&w->ev.node);
	list_init(&w->in_task);
	list_init(&w->in_signal);
	w->timer = (struct timer){.slot = TIMER_IDLE, .fire = on_deadline};
	w->task = t;
	w->is_onlooker = r->is_onlooker;
	w->fn = r->fn;
	w->ud = r->ud;
	w->destroy = r->destroy;
	if (!is_live) {
		waiter_settled(h, w, t);
		return 0;
	}
	list_add(&t->waiters, &w->in_task);
	if (r->signal)
		list_add(&r->signal->waiters, &w->in_signal);
	timer_set(h, &w->timer, deadline(h, r->ms));
	return 0;
}

/* ---- the public face ---- */

static int parse_timeout(errand_host *h, const char *text, size_t len, struct buf *shown,
			 double *ret_ms, errand_error **ret_err)
{
	struct err err = {0};
	struct js *j = NULL;
	int rc;

	if (!text)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "no timeout");
	rc = js_parse(text, str_length(text, len), &j, &err);
	if (rc != 0 && rc != -ERR_LOSSY)
		return error_make(ret_err, &h->mem, rc_of_parse(rc), "timeout: %s",
				  err.msg);
	*ret_ms = rc == 0 ? js_number(j) : INFINITY;
	(void)js_put_value(shown, rc == 0 ? j : NULL);
	js_free(j);
	return 0;
}

static int wait_public(errand_host *h, struct task *t, const char *timeout_json,
		       size_t timeout_len, struct wait_request *r, errand_error **ret_err)
{
	struct buf shown;
	int rc;

	buf_init_mem(&shown, MAX_ERROR_TEXT, &h->mem);
	rc = parse_timeout(h, timeout_json, timeout_len, &shown, &r->ms, ret_err);
	r->shown = buf_text(&shown);
	if (rc == 0)
		rc = task_wait(h, t, r, ret_err);
	buf_release(&shown);
	return rc;
}

static int wait_checked(errand_host *h, const char *id, size_t len, errand_agent caller,
			errand_signal s, struct wait_request *r, struct task **ret,
			errand_error **ret_err)
{
	const struct agent *who;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (!id || !r->fn)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "no id or no function");
	rc = caller_get(h, caller, &who, ret_err);
	if (rc != 0)
		return rc;
	if (s != 0 && !(r->signal = object_get(h, s, OBJ_SIGNAL)))
		return error_make(ret_err, &h->mem, ERRAND_EGONE, "no such signal");
	r->is_onlooker = is_onlooker(who);
	*ret = task_find(h, who, id, str_length(id, len), ret_err);
	return *ret ? 0 : ERRAND_EREFUSED;
}

int errand_wait(errand_host *h, const char *id, size_t len, errand_agent caller,
		const char *timeout_json, size_t timeout_len, errand_signal s,
		errand_wait_fn fn, void *ud, errand_destroy_fn destroy,
		errand_error **ret_err)
{
	struct wait_request r = {.fn = fn, .ud = ud, .destroy = destroy};
	struct task *t = NULL;
	int rc = wait_checked(h, id, len, caller, s, &r, &t, ret_err);

	if (rc == 0)
		rc = wait_public(h, t, timeout_json, timeout_len, &r, ret_err);
	if (rc != 0)
		destroy_ud(h, destroy, ud);
	return rc;
}
