/* SPDX-License-Identifier: MIT */
/*
 * scope.c - scope keys, the chains they form, and the layers under them (spec 3.1-3.3).
 *
 *   global <- - - preset <--- preset <--- agent
 *     |             |                       |
 *   layer         layer                   layer
 *
 * A reader sees the layers along its chain and the global one. Every walk is a loop: how long
 * a chain grows is the caller's affair.
 */
#include "core/agent.h"
#include "core/host.h"
#include "core/reg.h"
#include "core/scope.h"

/* ---- layers ---- */

void layer_init(errand_host *h, struct layer *l)
{
	list_init(&l->regs);
	names_init(&l->tools, &h->mem);
	list_init(&l->tool_order);
	list_init(&l->sections);
	list_init(&l->restrictions);
	for (size_t i = 0; i < N_STAGES; i++)
		list_init(&l->policies[i]);
	for (size_t i = 0; i < N_EVENTS; i++)
		list_init(&l->listeners[i]);
}

void layer_hold(struct layer *l)
{
	l->holders++;
}

void layer_drop(errand_host *h, struct layer *l)
{
	if (--l->holders > 0 || !l->scope)
		return;
	l->scope->layer = NULL;
	names_release(&l->tools);
	mem_free(&h->mem, l);
}

static struct layer *layer_of(errand_host *h, struct scope *s)
{
	struct layer *l;

	if (s->layer)
		return s->layer;
	l = mem_new(&h->mem, sizeof(*l));
	layer_init(h, l);
	l->scope = s;
	s->layer = l;
	return l;
}

struct layer *layer_open(errand_host *h, errand_scope id, errand_error **ret_err)
{
	struct layer *l = &h->global;
	struct scope *s;

	if (id != 0) {
		s = scope_get(h, id, ret_err);
		if (!s)
			return NULL;
		l = layer_of(h, s);
	}
	layer_hold(l);
	return l;
}

/* ---- chains ---- */

const struct scope *scope_of(const struct agent *a)
{
	return a ? &a->scope : NULL;
}

const struct layer *chain_first(const errand_host *h, const struct scope *s)
{
	while (s && !s->layer)
		s = s->parent;
	return s ? s->layer : &h->global;
}

const struct layer *chain_next(const errand_host *h, const struct layer *l)
{
	return l->scope ? chain_first(h, l->scope->parent) : NULL;
}

const struct layer **chain_from_far(const errand_host *h, const struct scope *s,
				    size_t *ret_count)
{
	const struct layer **all;
	size_t n = 0;

	chain_each(counted, h, s) n++;
	all = mem_new(&h->mem, n * sizeof(const struct layer *));
	*ret_count = n;
	chain_each(layer, h, s) all[--n] = layer;
	return all;
}

bool is_served(const errand_host *h, const struct agent *a)
{
	chain_each(layer, h, scope_of(a))
	{
		if (layer->surfaces > 0)
			return true;
	}
	return false;
}

/* ---- keys ---- */

void scope_init(struct scope *s)
{
	list_init(&s->children);
	list_init(&s->in_parent);
}

struct scope *scope_get(const errand_host *h, errand_scope id, errand_error **ret_err)
{
	struct object *o = map_get(&h->objects, id);

	if (o && o->type == OBJ_SCOPE)
		return list_entry(o, struct scope, obj);
	if (o && o->type == OBJ_AGENT)
		return &list_entry(o, struct agent, obj)->scope;
	(void)error_make(ret_err, &h->mem, ERRAND_EGONE, "no such scope");
	return NULL;
}

void scope_link(struct scope *s, struct scope *parent)
{
	list_del(&s->in_parent);
	s->parent = parent;
	if (parent)
		list_add(&parent->children, &s->in_parent);
}

void scope_clear(errand_host *h, struct scope *s)
{
	while (s->layer && !list_is_empty(&s->layer->regs))
		reg_undo(h, list_entry(s->layer->regs.prev, struct reg, in_layer));
}

/* Who had it on his chain goes on seeing what was behind it. */
void scope_release(errand_host *h, struct scope *s)
{
	scope_clear(h, s);
	list_each(node, &s->children)
		scope_link(list_entry(node, struct scope, in_parent), s->parent);
	if (s->binding)
		reg_undo(h, s->binding);
	scope_link(s, NULL);
}

void scope_free(errand_host *h, struct scope *s)
{
	scope_release(h, s);
	object_del(h, &s->obj);
	mem_free(&h->mem, s);
}

int errand_scope_new(errand_host *h, errand_scope *ret, errand_error **ret_err)
{
	struct scope *s;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (!ret)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "nowhere to answer");
	s = mem_new(&h->mem, sizeof(*s));
	scope_init(s);
	object_add(h, &s->obj, OBJ_SCOPE);
	*ret = s->obj.id;
	return 0;
}

int errand_scope_dispose(errand_host *h, errand_scope id, errand_error **ret_err)
{
	struct scope *s;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	s = scope_get(h, id, ret_err);
	if (!s)
		return ERRAND_EGONE;
	if (s->obj.id == 0)
		return error_make(ret_err, &h->mem, ERRAND_EARG,
				  "an agent's own scope goes with the agent");
	scope_free(h, s);
	return 0;
}

/* ---- links ---- */

struct binding {
	struct reg reg;
	struct scope *child;
};

static void binding_undo(errand_host *h, struct reg *r)
{
	struct binding *b = list_entry(r, struct binding, reg);

	b->child->binding = NULL;
	b->child->is_bound = false;
	scope_link(b->child, NULL);
	mem_free(&h->mem, b);
}

/* Who has no children stands on nobody else's chain: so a chain is built in linear time. */
static bool is_on_chain(const struct scope *child, const struct scope *parent)
{
	const struct scope *s = parent;

	while (s && s != child && !list_is_empty(&child->children))
		s = s->parent;
	return s && s == child;
}

int scope_check(const errand_host *h, const struct scope *child, const struct scope *parent,
		errand_error **ret_err)
{
	if (!is_on_chain(child, parent))
		return 0;
	return error_make(ret_err, &h->mem, ERRAND_EREFUSED,
			  "dsh-scope: scope parent link would form a cycle");
}

/* @id 0: no parent. */
static int find_parent(errand_host *h, const struct scope *child, errand_scope id,
		       struct scope **ret, errand_error **ret_err)
{
	struct scope *parent = NULL;

	if (id != 0 && !(parent = scope_get(h, id, ret_err)))
		return ERRAND_EGONE;
	*ret = parent;
	return scope_check(h, child, parent, ret_err);
}

static int move(errand_host *h, struct scope *child, errand_scope parent_id,
		errand_error **ret_err)
{
	struct scope *parent;
	int rc = find_parent(h, child, parent_id, &parent, ret_err);

	if (rc == 0)
		scope_link(child, parent);
	return rc;
}

int errand_scope_bind(errand_host *h, errand_scope child, errand_scope parent,
		      errand_reg *ret_binding, errand_error **ret_err)
{
	struct scope *s;
	struct binding *b;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (!ret_binding)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "nowhere to answer");
	s = scope_get(h, child, ret_err);
	if (!s)
		return ERRAND_EGONE;
	if (s->is_bound)
		return error_make(ret_err, &h->mem, ERRAND_EREFUSED,
				  "dsh-scope: scope key is already bound to a parent; "
				  "re-linking requires the binding returned by the "
				  "original bind");
	rc = move(h, s, parent, ret_err);
	if (rc != 0)
		return rc;
	b = mem_new(&h->mem, sizeof(*b));
	b->child = s;
	b->reg.undo = binding_undo;
	s->is_bound = true;
	s->binding = &b->reg;
	*ret_binding = reg_publish(h, &b->reg);
	return 0;
}

int errand_scope_relink(errand_host *h, errand_reg binding, errand_scope parent,
			errand_error **ret_err)
{
	struct reg *r;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	r = object_get(h, binding, OBJ_REG);
	if (!r)
		return error_make(ret_err, &h->mem, ERRAND_EGONE, "no such binding");
	if (r->undo != binding_undo)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "not a binding");
	return move(h, list_entry(r, struct binding, reg)->child, parent, ret_err);
}

/* ---- agents ---- */

int errand_agent_rebind(errand_host *h, errand_agent agent, errand_scope parent,
			errand_error **ret_err)
{
	struct agent *a;
	int rc = agent_to_change(h, agent, &a, ret_err);

	if (rc != 0)
		return rc;
	rc = move(h, &a->scope, parent, ret_err);
	if (rc == 0)
		a->scope.is_bound = true;
	return rc;
}

errand_scope errand_agent_scope(const errand_host *h, errand_agent agent)
{
	return h && agent_get(h, agent, NULL) ? agent : 0;
}
