/* SPDX-License-Identifier: MIT */
/*
 * policy.c - the listeners of the stages of a call (spec 9.2-9.7): registered, removed.
 *
 * Their order is that of registration over all scopes; one that is prepended goes in front of
 * those present now. A rank says so, for a chain takes from several layers.
 */
#include "core/abi.h"
#include "core/host.h"
#include "core/policy.h"
#include "core/reg.h"
#include "core/scope.h"

static void policy_free(errand_host *h, struct policy *p)
{
	destroy_ud(h, p->destroy, p->ud);
	mem_free(&h->mem, p);
}

void policy_release(errand_host *h, struct policy *p)
{
	if (--p->busy == 0 && p->gone)
		policy_free(h, p);
}

struct policy *policy_get(const errand_host *h, errand_reg id)
{
	struct object *o = map_get(&h->objects, id);

	return o ? list_entry(o, struct policy, reg.obj) : NULL;
}

/* Frames that are out keep it: their back() is still to come. */
static void policy_undo(errand_host *h, struct reg *r)
{
	struct policy *p = list_entry(r, struct policy, reg);

	list_del(&p->node);
	layer_drop(h, p->layer);
	p->gone = true;
	if (p->busy == 0)
		policy_free(h, p);
}

struct policy *policy_add(errand_host *h, struct layer *layer, int stage, uint32_t flags)
{
	struct list *all = &layer->policies[stage - 1];
	struct policy *p = mem_new(&h->mem, sizeof(*p));

	if (flags & ERRAND_PREPEND) {
		p->rank = --h->first_rank;
		list_add(all->next, &p->node);
	} else {
		p->rank = ++h->last_rank;
		list_add(all, &p->node);
	}
	layer_hold(layer);
	p->layer = layer;
	p->reg.undo = policy_undo;
	return p;
}

static int check(errand_host *h, errand_scope s, const struct errand_listener *l,
		 errand_error **ret_err)
{
	if (!l->enter || l->stage < ERRAND_STAGE_PRE || l->stage > N_STAGES ||
	    l->stage == ERRAND_STAGE_BODY)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "bad listener");
	if (l->stage == ERRAND_STAGE_GUARD && l->back)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "a guard has no back()");
	if (l->stage != ERRAND_STAGE_APPROVAL)
		return 0;
	if (s != 0)
		return error_make(ret_err, &h->mem, ERRAND_EARG,
				  "approval is the whole host's affair");
	if (!list_is_empty(&h->global.policies[ERRAND_STAGE_APPROVAL - 1]))
		return error_make(ret_err, &h->mem, ERRAND_EREFUSED,
				  "an approval channel is already registered");
	return 0;
}

static int listen_to(errand_host *h, errand_scope s, const struct errand_listener *l,
		     errand_reg *ret, errand_error **ret_err)
{
	struct layer *layer;
	struct policy *p;
	int rc = may_change(h, ret_err);

	if (rc == 0)
		rc = check(h, s, l, ret_err);
	if (rc != 0)
		return rc;
	layer = layer_open(h, s, ret_err);
	if (!layer)
		return ERRAND_EGONE;
	p = policy_add(h, layer, l->stage, l->flags);
	p->enter = l->enter;
	p->back = l->back;
	p->ud = l->ud;
	p->destroy = l->destroy;
	p->number = reg_publish_in(h, layer, &p->reg);
	layer_drop(h, layer);
	if (ret)
		*ret = p->number;
	return 0;
}

int errand_listen(errand_host *h, errand_scope s, const struct errand_listener *l,
		  errand_reg *ret, errand_error **ret_err)
{
	struct errand_listener own;
	int rc;

	if (!h || !l)
		return error_make(ret_err, NULL, ERRAND_EARG, "no host or no listener");
	rc = abi_take(&h->mem, ABI_LISTENER, &own, l, ret_err);
	if (rc == 0)
		rc = listen_to(h, s, &own, ret, ret_err);
	if (rc != 0)
		destroy_ud(h, own.destroy, own.ud);
	return rc;
}
