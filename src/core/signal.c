/* SPDX-License-Identifier: MIT */
/* signal.c - abort signals: raised once; who waits under one stops waiting, who watches one is
 * told in errand_run(). */
#include "core/host.h"
#include "core/reg.h"
#include "core/signal.h"
#include "core/task.h"

struct watch {
	struct reg reg;
	struct event ev;
	struct list in_signal;
	errand_done_fn fn;
	void *ud;
	errand_destroy_fn destroy;
};

void signal_init(errand_host *h, struct signal *s)
{
	list_init(&s->waiters);
	list_init(&s->watches);
	list_init(&s->children);
	list_init(&s->in_parent);
	object_add(h, &s->obj, OBJ_SIGNAL);
}

/* Waiters go at once: a settlement of the same moment must not count them (spec 1.7.4). */
static void raise_one(errand_host *h, struct signal *s)
{
	if (s->raised)
		return;
	s->raised = true;
	list_each(node, &s->waiters)
		waiter_abort(h, list_entry(node, struct waiter, in_signal));
	list_each(watch, &s->watches)
		event_queue(h, &list_entry(watch, struct watch, in_signal)->ev);
}

/* It, the calls that were made with it, and those that were made with theirs. */
void signal_raise(errand_host *h, struct signal *s)
{
	struct signal *last = s;

	for (s->next = NULL; s; s = s->next) {
		raise_one(h, s);
		list_each(node, &s->children)
		{
			last->next = list_entry(node, struct signal, in_parent);
			last = last->next;
			last->next = NULL;
		}
	}
}

/* Nobody can raise it any more; who hangs on it goes on without. */
void signal_release(errand_host *h, struct signal *s)
{
	list_each(waiter, &s->waiters) list_del(waiter);
	list_each(watch, &s->watches)
		reg_undo(h, &list_entry(watch, struct watch, in_signal)->reg);
	list_each(child, &s->children) list_del(child);
	list_del(&s->in_parent);
	object_del(h, &s->obj);
}

void signal_free(errand_host *h, struct signal *s)
{
	signal_release(h, s);
	mem_free(&h->mem, s);
}

int errand_signal_new(errand_host *h, errand_signal *ret)
{
	struct signal *s;
	int rc = may_change(h, NULL);

	if (rc != 0)
		return rc;
	if (!ret)
		return ERRAND_EARG;
	s = mem_new(&h->mem, sizeof(*s));
	signal_init(h, s);
	*ret = s->obj.id;
	return 0;
}

int errand_abort(errand_host *h, errand_signal signal)
{
	struct signal *s;
	int rc = may_queue(h);

	if (rc != 0)
		return rc;
	s = object_get(h, signal, OBJ_SIGNAL);
	if (!s)
		return ERRAND_EGONE;
	signal_raise(h, s);
	return 0;
}

int errand_aborted(const errand_host *h, errand_signal signal)
{
	const struct signal *s = h ? object_get(h, signal, OBJ_SIGNAL) : NULL;

	if (!h)
		return ERRAND_EARG;
	return s ? s->raised : ERRAND_EGONE;
}

/* ---- who watches ---- */

static void watch_free(errand_host *h, struct watch *w)
{
	list_del(&w->in_signal);
	list_del(&w->ev.node);
	destroy_ud(h, w->destroy, w->ud);
	mem_free(&h->mem, w);
}

static void watch_undo(errand_host *h, struct reg *r)
{
	watch_free(h, list_entry(r, struct watch, reg));
}

/* Once: it is over before it is told, so that fn() may do what it likes with the signal. */
static void watch_fire(errand_host *h, struct event *ev)
{
	struct watch *w = list_entry(ev, struct watch, ev);

	list_del(&w->in_signal);
	object_del(h, &w->reg.obj);
	w->fn(w->ud, h);
	watch_free(h, w);
}

static void watch_drop(errand_host *h, struct event *ev)
{
	(void)h;
	(void)ev; /* it goes with the registrations */
}

static int watch(errand_host *h, errand_signal signal, errand_done_fn fn,
		 struct watch **ret)
{
	struct signal *s;
	struct watch *w;
	int rc = may_change(h, NULL);

	if (rc != 0)
		return rc;
	if (!fn)
		return ERRAND_EARG;
	s = object_get(h, signal, OBJ_SIGNAL);
	if (!s)
		return ERRAND_EGONE;
	w = mem_new(&h->mem, sizeof(*w));
	w->reg.undo = watch_undo;
	w->ev = (struct event){.fire = watch_fire, .drop = watch_drop};
	list_init(&w->ev.node);
	list_add(&s->watches, &w->in_signal);
	if (s->raised)
		event_queue(h, &w->ev);
	*ret = w;
	return 0;
}

int errand_on_abort(errand_host *h, errand_signal s, errand_done_fn fn, void *ud,
		    errand_destroy_fn destroy, errand_reg *ret)
{
	struct watch *w;
	errand_reg reg;
	int rc = watch(h, s, fn, &w);

	if (rc != 0) {
		destroy_ud(h, destroy, ud);
		return rc;
	}
	w->fn = fn;
	w->ud = ud;
	w->destroy = destroy;
	reg = reg_publish(h, &w->reg);
	if (ret)
		*ret = reg;
	return 0;
}

int errand_signal_free(errand_host *h, errand_signal signal)
{
	struct signal *s;
	int rc = may_change(h, NULL);

	if (rc != 0)
		return rc;
	s = object_get(h, signal, OBJ_SIGNAL);
	if (!s)
		return ERRAND_EGONE;
	if (s->is_of_call)
		return ERRAND_EARG;
	signal_free(h, s);
	return 0;
}
