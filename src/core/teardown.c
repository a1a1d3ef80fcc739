/* SPDX-License-Identifier: MIT */
/*
 * teardown.c - how an owner ends, and how all of it ends (spec 12, D2, D12).
 *
 * Each live task is reported and cancelled; when the last has settled, the records go and
 * done() is called. What has not settled at the deadline is settled by us.
 */
#include <string.h>

#include "base/limits.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/inbox.h"
#include "core/journal.h"
#include "core/lease.h"
#include "core/scope.h"
#include "core/task.h"

/* ---- one task ---- */

static void force(errand_host *h, struct task *t, struct buf *detail)
{
	struct str text = str_of_buf(detail), none = {NULL, 0};

	task_settle(h, t, ERRAND_FAILED, &text, &none);
}

static void orphan(errand_host *h, struct task *t, const errand_error *why)
{
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT * 2, &h->mem);
	(void)buf_adds(&b, "tasks: cancel of ");
	task_put_id(&b, t);
	(void)buf_adds(&b, " threw during teardown; task record forced failed and work may "
			   "be orphaned: ");
	error_put_string(&b, why);
	host_warn(h, &b);
	(void)buf_adds(&b, "cancel threw during teardown; work may be orphaned: ");
	error_put_string(&b, why);
	force(h, t, &b);
}

static void give_up(errand_host *h, struct task *t)
{
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT, &h->mem);
	(void)buf_adds(&b, "tasks: teardown of ");
	task_put_id(&b, t);
	(void)buf_adds(&b,
		       " timed out; task record forced failed and work may be orphaned");
	host_warn(h, &b);
	(void)buf_adds(&b, "teardown timed out; work may be orphaned");
	force(h, t, &b);
}

/* D2: reported first, so that no notice comes whatever cancel does. */
static void tear_down(errand_host *h, struct task *t, const char *reason)
{
	errand_error *e = error_lend(&h->mem);

	t->reported = true;
	if (task_cancel(h, t, reason, strlen(reason), e) != 0) {
		orphan(h, t, e);
	} else {
		t->status = ERRAND_STOPPING;
		journal_task(h, t);
	}
	errand_error_free(e);
}

/* ---- done ---- */

struct done_event {
	struct event ev;
	struct ending ending;
};

static void done_drop(errand_host *h, struct event *ev)
{
	struct done_event *d = list_entry(ev, struct done_event, ev);

	destroy_ud(h, d->ending.destroy, d->ending.ud);
	mem_free(&h->mem, d);
}

static void done_fire(errand_host *h, struct event *ev)
{
	const struct ending *e = &list_entry(ev, struct done_event, ev)->ending;

	if (e->done)
		e->done(e->ud, h);
	done_drop(h, ev);
}

static void queue_done(errand_host *h, struct ending *e)
{
	struct done_event *d = mem_new(&h->mem, sizeof(*d));

	d->ev = (struct event){.fire = done_fire, .drop = done_drop};
	d->ending = *e;
	e->destroy = NULL;
	event_queue(h, &d->ev);
}

static int64_t deadline(const errand_host *h)
{
	return h->mono_ms > INT64_MAX - h->teardown_ms ? INT64_MAX
						       : h->mono_ms + h->teardown_ms;
}

/* ---- an owner ---- */

static void agent_deadline(errand_host *h, struct timer *timer)
{
	struct agent *a = list_entry(timer, struct agent, deadline);

	list_each(node, &a->tasks)
	{
		struct task *t = list_entry(node, struct task, in_owner);

		if (!status_is_terminal(t->status))
			give_up(h, t);
	}
}

void agent_deadline_init(struct agent *a)
{
	a->deadline = (struct timer){.slot = TIMER_IDLE, .fire = agent_deadline};
}

static void dispose(errand_host *h, struct agent *a)
{
	inbox_cancel_anyway(h, a);
	if (a->live == 0)
		event_queue(h, &a->finish);
	else if (h->teardown_ms > 0)
		timer_set(h, &a->deadline, deadline(h));
	list_each(node, &a->tasks)
	{
		struct task *t = list_entry(node, struct task, in_owner);

		if (!status_is_terminal(t->status))
			tear_down(h, t, "owner disposed");
	}
}

int errand_agent_dispose(errand_host *h, errand_agent agent, errand_done_fn done, void *ud,
			 errand_destroy_fn destroy, errand_error **ret_err)
{
	struct agent *a = NULL;
	int rc = may_change(h, ret_err);

	if (rc == 0 && !(a = agent_get(h, agent, ret_err)))
		rc = ERRAND_EGONE;
	if (rc == 0 && a->disposing)
		rc = error_make(ret_err, &h->mem, ERRAND_ESTATE, "already being disposed");
	if (rc != 0) {
		destroy_ud(h, destroy, ud);
		return rc;
	}
	a->disposing = true;
	a->ending = (struct ending){done, ud, destroy};
	dispose(h, a);
	return 0;
}

void agent_settled(errand_host *h, struct agent *a)
{
	if (--a->live == 0 && a->disposing)
		event_queue(h, &a->finish);
}

/* All have settled, and everybody has heard of it: drop the records. Calls that are under
 * way keep the agent itself until they end. */
void agent_finish(errand_host *h, struct event *ev)
{
	struct agent *a = list_entry(ev, struct agent, finish);
	bool had_records = !list_is_empty(&a->tasks);

	timer_clear(h, &a->deadline);
	while (!list_is_empty(&a->tasks))
		task_free(h, list_entry(a->tasks.next, struct task, in_owner));
	if (had_records)
		task_changed(h, a);
	queue_done(h, &a->ending);
	inbox_cancel_anyway(h, a);
	while (!list_is_empty(&a->holds))
		hold_free(h, list_entry(a->holds.next, struct hold, in_thing));
	journal_agent_gone(h, a);
	scope_clear(h, &a->scope);
	a->gone = true;
	if (a->session->registered == a)
		a->session->registered = NULL;
	object_del(h, &a->obj);
	if (list_is_empty(&a->calls))
		agent_free(h, a);
}

/* ---- the service ---- */

static void each_live(errand_host *h, void (*fn)(errand_host *h, struct task *t))
{
	list_each(node, &h->by_type[OBJ_TASK])
	{
		struct task *t = list_entry(node, struct task, obj.node);

		if (!status_is_terminal(t->status))
			fn(h, t);
	}
}

static void tear_down_for_service(errand_host *h, struct task *t)
{
	tear_down(h, t, "tasks service disposed");
}

static void service_deadline(errand_host *h, struct timer *timer)
{
	(void)timer;
	each_live(h, give_up);
}

static bool is_first_of_its_owner(const errand_host *h, const struct task *t)
{
	return t->owner ? t->owner->tasks.next == &t->in_owner
			: h->unowned.next == &t->in_session;
}

/* Once for each that had something, in the order of their first tasks (spec 1.10.2). */
static void drop_all(errand_host *h)
{
	list_each(node, &h->by_type[OBJ_TASK])
	{
		struct task *t = list_entry(node, struct task, obj.node);

		if (is_first_of_its_owner(h, t))
			task_changed(h, t->owner);
	}
	while (!list_is_empty(&h->by_type[OBJ_TASK]))
		task_free(h, object_first(h, OBJ_TASK));
}

static void service_finish(errand_host *h, struct event *ev)
{
	(void)ev;
	timer_clear(h, &h->service.deadline);
	drop_all(h);
	queue_done(h, &h->service.ending);
}

static void service_drop(errand_host *h, struct event *ev)
{
	(void)h;
	(void)ev; /* it is a part of the host */
}

void service_init(errand_host *h)
{
	h->service.finish = (struct event){.fire = service_finish, .drop = service_drop};
	h->service.deadline = (struct timer){.slot = TIMER_IDLE, .fire = service_deadline};
}

void service_settled(errand_host *h)
{
	if (--h->live == 0 && h->service.is_disposed)
		event_queue(h, &h->service.finish);
}

int errand_service_dispose(errand_host *h, errand_done_fn done, void *ud,
			   errand_destroy_fn destroy, errand_error **ret_err)
{
	int rc = may_change(h, ret_err);

	if (rc == 0 && h->service.is_disposed)
		rc = error_make(ret_err, &h->mem, ERRAND_ESTATE, "already being disposed");
	if (rc != 0) {
		destroy_ud(h, destroy, ud);
		return rc;
	}
	h->service.is_disposed = true;
	h->service.ending = (struct ending){done, ud, destroy};
	if (h->live == 0)
		event_queue(h, &h->service.finish);
	else if (h->teardown_ms > 0)
		timer_set(h, &h->service.deadline, deadline(h));
	each_live(h, tear_down_for_service);
	return 0;
}
