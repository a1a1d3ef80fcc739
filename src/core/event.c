/* SPDX-License-Identifier: MIT */
/*
 * event.c - registrations, and listeners of what happens (spec 1.2.4, 1.8, 1.10.2, 3.4).
 *
 * A dispatch goes to the listeners that were on the owner's chain when it was made, whatever
 * becomes of the chain. It knows them by id: one that is removed meanwhile is skipped. One
 * that is removed while it runs goes when it returns.
 */
#include "base/limits.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/reg.h"
#include "core/scope.h"
#include "core/task.h"

/* ---- registrations ---- */

errand_reg reg_publish(errand_host *h, struct reg *r)
{
	list_init(&r->in_layer);
	object_add(h, &r->obj, OBJ_REG);
	return r->obj.id;
}

errand_reg reg_publish_in(errand_host *h, struct layer *l, struct reg *r)
{
	errand_reg id = reg_publish(h, r);

	list_add(&l->regs, &r->in_layer);
	return id;
}

void reg_undo(errand_host *h, struct reg *r)
{
	if (r->obj.type == OBJ_REG && r->obj.id != 0)
		list_del(&r->in_layer);
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
	destroy_ud(h, l->destroy, l->ud);
	mem_free(&h->mem, l);
}

static void listener_undo(errand_host *h, struct reg *r)
{
	struct listener *l = list_entry(r, struct listener, reg);

	list_del(&l->node);
	layer_drop(h, l->layer);
	l->gone = true;
	if (l->busy == 0)
		listener_free(h, l);
}

struct listener *listener_add(errand_host *h, struct layer *layer, int event)
{
	struct listener *l = mem_new(&h->mem, sizeof(*l));

	list_add(&layer->listeners[event - 1], &l->node);
	layer_hold(layer);
	l->layer = layer;
	l->reg.undo = listener_undo;
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
	if (!fn || event < ERRAND_ON_DONE || event > N_EVENTS)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "no such event");
	layer = layer_open(h, s, ret_err);
	if (!layer)
		return ERRAND_EGONE;
	l = listener_add(h, layer, event);
	l->fn = fn;
	l->ud = ud;
	l->destroy = destroy;
	l->number = reg_publish_in(h, layer, &l->reg);
	layer_drop(h, layer);
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

/* ---- warnings ---- */

static const struct {
	const char *threw, *rejected;
} words[] = {
	[ERRAND_ON_DONE] = {"tasks: onTaskDone listener threw for ",
			    "tasks: onTaskDone listener rejected for "},
	[ERRAND_ON_CHANGED] = {"tasks: onTasksChanged listener threw",
			       "tasks: onTasksChanged listener rejected"},
	[ERRAND_ON_INBOX] = {"inbox: listener threw for ", NULL},
	[ERRAND_ON_RESULT] = {"tools: result observer threw for ", NULL},
};

static void warn(errand_host *h, const char *what, const struct str *subject,
		 const errand_error *e)
{
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT * 2, &h->mem);
	(void)buf_adds(&b, what);
	(void)buf_add(&b, subject->ptr, subject->len);
	(void)buf_adds(&b, ": ");
	error_put_string(&b, e);
	host_warn(h, &b);
}

int errand_event_failed(errand_host *h, errand_reg self, errand_task task,
			const errand_error *why)
{
	const struct task *t = NULL;
	struct str subject = {NULL, 0};
	struct buf id;
	int rc = may_queue(h);

	if (rc != 0)
		return rc;
	if (!why)
		return ERRAND_EARG;
	if (!object_get(h, self, OBJ_REG) ||
	    (task != 0 && !(t = object_get(h, task, OBJ_TASK))))
		return ERRAND_EGONE;
	if (t && !t->kind) /* it is about to start */
		return ERRAND_EGONE;
	if (t) {
		buf_init_mem(&id, h->max.json, &h->mem);
		task_put_id(&id, t);
		subject = str_of_buf(&id);
	}
	warn(h, words[t ? ERRAND_ON_DONE : ERRAND_ON_CHANGED].rejected, &subject, why);
	str_free(&h->mem, &subject);
	return 0;
}

/* ---- dispatch ---- */

static void dispatch_free(errand_host *h, struct dispatch *d)
{
	str_free(&h->mem, &d->json);
	str_free(&h->mem, &d->subject);
	mem_free(&h->mem, d);
}

static struct listener *listener_get(const errand_host *h, errand_reg id)
{
	struct object *o = map_get(&h->objects, id);

	return o ? list_entry(o, struct listener, reg.obj) : NULL;
}

static void tell(errand_host *h, struct listener *l, const struct dispatch *d)
{
	errand_error *e = error_lend(&h->mem);

	l->busy++;
	if (l->fn(l->ud, h, l->number, d->owner, d->json.ptr, d->json.len, e) < 0)
		warn(h, words[d->event].threw, &d->subject, e);
	errand_error_free(e);
	if (--l->busy == 0 && l->gone)
		listener_free(h, l);
}

/* Of our own listeners only the nearest acts (D1). 0: there is none. */
static errand_reg nearest_builtin(const errand_host *h, const struct dispatch *d)
{
	for (size_t i = d->count; i > 0; i--) {
		const struct listener *l = listener_get(h, d->listeners[i - 1]);

		if (l && l->builtin)
			return l->number;
	}
	return 0;
}

static void act(errand_host *h, const struct dispatch *d, errand_reg id)
{
	const struct listener *l = listener_get(h, id);

	if (l)
		l->builtin(h, l, d);
}

/* The service closes its listeners before it ends anything (spec 12.6). */
static bool is_closed(const errand_host *h, const struct dispatch *d)
{
	return d->event == ERRAND_ON_DONE && h->service.is_disposed;
}

static void tell_all(errand_host *h, const struct dispatch *d)
{
	errand_reg builtin = nearest_builtin(h, d);
	bool has_acted = builtin == 0;

	for (size_t i = 0; i < d->count; i++) {
		struct listener *l = listener_get(h, d->listeners[i]);

		if (l && l->fn && d->is_for_mount)
			continue;
		if (l && l->fn) {
			tell(h, l, d);
		} else if (l && l->number == builtin) {
			act(h, d, builtin);
			has_acted = true;
		}
	}
	/* It was unmounted by a listener before it came to its turn: the next one does it. */
	if (!has_acted)
		act(h, d, nearest_builtin(h, d));
}

void dispatch_now(errand_host *h, struct dispatch *d)
{
	if (!is_closed(h, d))
		tell_all(h, d);
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

static size_t count_listeners(const errand_host *h, const struct agent *owner, int event)
{
	size_t n = 0;

	chain_each(layer, h, scope_of(owner))
	{
		list_each(node, &layer->listeners[event - 1]) n++;
	}
	return n;
}

/* The chain is walked from its near end, so the array is filled from its far one. */
static void fill(const errand_host *h, const struct agent *owner, struct dispatch *d)
{
	size_t at = d->count;

	chain_each(layer, h, scope_of(owner))
	{
		const struct list *all = &layer->listeners[d->event - 1];

		for (struct list *node = all->prev; node != all; node = node->prev) {
			const struct listener *l = list_entry(node, struct listener, node);

			d->listeners[--at] = l->number;
			d->is_heard |= l->fn != NULL;
		}
	}
}

struct dispatch *dispatch_new(errand_host *h, int event, const struct agent *owner)
{
	size_t count = count_listeners(h, owner, event);
	struct dispatch *d;

	if (count == 0)
		return NULL;
	d = mem_new(&h->mem, sizeof(*d) + count * sizeof(d->listeners[0]));
	d->ev = (struct event){.fire = dispatch_fire, .drop = dispatch_drop};
	d->event = event;
	d->owner = owner ? owner->number : 0;
	d->count = count;
	fill(h, owner, d);
	return d;
}

void dispatch_queue(errand_host *h, struct dispatch *d)
{
	event_queue(h, &d->ev);
}

void dispatch_withdraw(errand_host *h, struct dispatch *d)
{
	list_del(&d->ev.node);
	dispatch_free(h, d);
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
	layer_drop(h, s->layer);
	mem_free(&h->mem, s);
}

struct reg *surface_add(errand_host *h, struct layer *layer)
{
	struct surface *s = mem_new(&h->mem, sizeof(*s));

	s->layer = layer;
	layer_hold(layer);
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
	layer = layer_open(h, s, ret_err);
	if (!layer)
		return ERRAND_EGONE;
	*ret = reg_publish_in(h, layer, surface_add(h, layer));
	layer_drop(h, layer);
	return 0;
}
