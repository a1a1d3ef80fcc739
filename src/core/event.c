/* SPDX-License-Identifier: MIT */
/*
 * event.c - registrations, and listeners of what happens (spec 1.2.4, 1.8, 1.10.2).
 *
 * A dispatch goes to the listeners that were there when it was made. One that is removed
 * meanwhile is skipped; its memory stays until no chain is under way.
 */
#include "core/internal.h"

/* ---- registrations ---- */

errand_reg reg_publish(errand_host *h, struct reg *r)
{
	object_add(h, &r->obj, OBJ_REG);
	return r->obj.id;
}

void reg_undo(errand_host *h, struct reg *r)
{
	object_del(h, &r->obj);
	r->undo(h, r);
}

int errand_unregister(errand_host *h, errand_reg reg)
{
	struct reg *r;
	int rc = may_change(h, NULL);

	if (rc != 0)
		return rc;
	r = object_get(h, reg, OBJ_REG);
	if (!r)
		return ERRAND_EGONE;
	reg_undo(h, r);
	return 0;
}

/* ---- listeners ---- */

static void listener_free(errand_host *h, struct listener *l)
{
	list_del(&l->node);
	destroy_ud(h, l->destroy, l->ud);
	mem_free(&h->mem, l);
}

static void listener_undo(errand_host *h, struct reg *r)
{
	struct listener *l = list_entry(r, struct listener, reg);

	l->gone = true;
	if (l->heard)
		--*l->heard;
	if (h->dispatching == 0)
		listener_free(h, l);
}

static void sweep(errand_host *h, struct layer *layer)
{
	for (size_t i = 0; i < sizeof(layer->listeners) / sizeof(layer->listeners[0]);
	     i++) {
		list_each(node, &layer->listeners[i])
		{
			struct listener *l = list_entry(node, struct listener, node);

			if (l->gone)
				listener_free(h, l);
		}
	}
}

struct listener *listener_add(errand_host *h, struct layer *layer, int event)
{
	struct listener *l = mem_new(&h->mem, sizeof(*l));

	list_add(&layer->listeners[event - 1], &l->node);
	l->reg.undo = listener_undo;
	l->number = ++h->last_id;
	return l;
}

static int listen_to(errand_host *h, errand_scope s, int event, errand_event_fn fn,
		     void *ud, errand_destroy_fn destroy, errand_reg *ret,
		     errand_error **ret_err)
{
	struct listener *l;
	struct layer *layer;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (!fn || event < ERRAND_ON_DONE || event > ERRAND_ON_INBOX)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "no such event");
	layer = layer_of(h, s);
	if (!layer)
		return error_make(ret_err, &h->mem, ERRAND_EGONE, "no such scope");
	l = listener_add(h, layer, event);
	l->fn = fn;
	l->ud = ud;
	l->destroy = destroy;
	l->heard = &layer->heard[event - 1];
	++*l->heard;
	l->number = reg_publish(h, &l->reg);
	if (ret)
		*ret = l->number;
	return 0;
}

int errand_on(errand_host *h, errand_scope s, int event, errand_event_fn fn, void *ud,
	      errand_destroy_fn destroy, errand_reg *ret, errand_error **ret_err)
{
	int rc = listen_to(h, s, event, fn, ud, destroy, ret, ret_err);

	if (rc != 0)
		destroy_ud(h, destroy, ud);
	return rc;
}

/* ---- dispatch ---- */

static void dispatch_free(errand_host *h, struct dispatch *d)
{
	str_free(&h->mem, &d->json);
	str_free(&h->mem, &d->subject);
	mem_free(&h->mem, d);
}

static void warn_throw(errand_host *h, const struct dispatch *d, const errand_error *e)
{
	static const char *const words[] = {
		[ERRAND_ON_DONE] = "tasks: onTaskDone listener threw for ",
		[ERRAND_ON_CHANGED] = "tasks: onTasksChanged listener threw",
		[ERRAND_ON_INBOX] = "inbox: listener threw for ",
	};
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT * 2, &h->mem);
	(void)buf_adds(&b, words[d->event]);
	(void)buf_add(&b, d->subject.ptr, d->subject.len);
	(void)buf_adds(&b, ": ");
	error_put_string(&b, e);
	host_warn(h, &b);
}

static void call_listener(errand_host *h, struct listener *l, const struct dispatch *d)
{
	errand_error *e;

	if (l->builtin) {
		l->builtin(h, d);
		return;
	}
	e = error_lend(&h->mem);
	if (l->fn(l->ud, h, l->number, d->owner, d->json.ptr, d->json.len, e) < 0)
		warn_throw(h, d, e);
	errand_error_free(e);
}

void dispatch_now(errand_host *h, struct dispatch *d)
{
	struct list *listeners = &h->global.listeners[d->event - 1];

	h->dispatching++;
	for (struct list *node = listeners->next; node != listeners; node = node->next) {
		struct listener *l = list_entry(node, struct listener, node);

		if (!l->gone && l->number <= d->newest)
			call_listener(h, l, d);
	}
	if (--h->dispatching == 0)
		sweep(h, &h->global);
	dispatch_free(h, d);
}

static void dispatch_fire(errand_host *h, struct event *ev)
{
	dispatch_now(h, list_entry(ev, struct dispatch, ev));
}

static void dispatch_drop(errand_host *h, struct event *ev)
{
	dispatch_free(h, list_entry(ev, struct dispatch, ev));
}

struct dispatch *dispatch_new(errand_host *h, int event, const struct agent *owner)
{
	struct dispatch *d;

	if (list_is_empty(&h->global.listeners[event - 1]))
		return NULL;
	d = mem_new(&h->mem, sizeof(*d));
	d->ev = (struct event){.fire = dispatch_fire, .drop = dispatch_drop};
	d->event = event;
	d->owner = owner ? owner->obj.id : 0;
	d->newest = h->last_id;
	d->is_heard = h->global.heard[event - 1] > 0;
	return d;
}

void dispatch_queue(errand_host *h, struct dispatch *d)
{
	event_queue(h, &d->ev);
}

/* ---- surfaces ---- */

struct surface {
	struct reg reg;
	struct layer *layer;
};

static void surface_undo(errand_host *h, struct reg *r)
{
	struct surface *s = list_entry(r, struct surface, reg);

	s->layer->surfaces--;
	mem_free(&h->mem, s);
}

struct reg *surface_add(errand_host *h, struct layer *layer)
{
	struct surface *s = mem_new(&h->mem, sizeof(*s));

	s->layer = layer;
	layer->surfaces++;
	s->reg.undo = surface_undo;
	return &s->reg;
}

int errand_surface(errand_host *h, errand_scope s, const char *name, errand_reg *ret,
		   errand_error **ret_err)
{
	struct layer *layer;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (!name || !*name || !ret)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "a surface needs a name");
	layer = layer_of(h, s);
	if (!layer)
		return error_make(ret_err, &h->mem, ERRAND_EGONE, "no such scope");
	*ret = reg_publish(h, surface_add(h, layer));
	return 0;
}
