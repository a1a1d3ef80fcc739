/* SPDX-License-Identifier: MIT */
/* signal.c - abort signals: raised once, and whoever waits under one stops waiting. */
#include "core/internal.h"

void signal_init(errand_host *h, struct signal *s)
{
	list_init(&s->waiters);
	list_init(&s->children);
	list_init(&s->in_parent);
	object_add(h, &s->obj, OBJ_SIGNAL);
}

/* Waiters go at once: a settlement of the same moment must not count them (spec 1.7.4). */
static void raise_one(errand_host *h, struct signal *s)
{
	s->raised = true;
	list_each(node, &s->waiters)
		waiter_abort(h, list_entry(node, struct waiter, in_signal));
}

void signal_raise(errand_host *h, struct signal *s)
{
	raise_one(h, s);
	list_each(node, &s->children)
		raise_one(h, list_entry(node, struct signal, in_parent));
}

/* Nobody can raise it any more; who hangs on it goes on without. */
void signal_release(errand_host *h, struct signal *s)
{
	list_each(waiter, &s->waiters) list_del(waiter);
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
