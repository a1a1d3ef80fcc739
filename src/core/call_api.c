/* SPDX-License-Identifier: MIT */
/* call_api.c - calls as others see them: begun, aborted, their frames answered, freed. */
#include <string.h>

#include "base/json.h"
#include "core/abi.h"
#include "core/agent.h"
#include "core/call.h"
#include "core/host.h"
#include "core/lease.h"
#include "core/outcome.h"
#include "core/signal.h"
#include "core/tool.h"

/* ---- life ---- */

static void call_fire(errand_host *h, struct event *ev)
{
	struct call *c = list_entry(ev, struct call, ev);

	c->step(h, c);
}

static void call_drop(errand_host *h, struct event *ev)
{
	(void)h;
	(void)ev; /* the call is freed with the others */
}

void call_queue(errand_host *h, struct call *c,
		void (*step)(errand_host *h, struct call *c))
{
	c->step = step;
	event_queue(h, &c->ev);
}

void call_free(errand_host *h, struct call *c)
{
	list_del(&c->ev.node);
	if (c->lease)
		lease_drop(h, c->lease);
	object_del(h, &c->frame.obj);
	chain_free(h, c);
	timer_clear(h, &c->timer);
	signal_release(h, &c->signal);
	tool_call_ended(h, c);
	agent_call_ended(h, c);
	object_del(h, &c->obj);
	js_free(c->tree);
	str_free(&h->mem, &c->tool_name);
	str_free(&h->mem, &c->args);
	str_free(&h->mem, &c->answer);
	outcome_forget(h, c);
	errand_error_free(c->thrown);
	destroy_ud(h, c->destroy, c->ud);
	mem_free(&h->mem, c);
}

struct lease *call_lease(errand_host *h, struct call *c)
{
	if (!c->lease)
		c->lease = lease_new(h);
	return c->lease;
}

struct call *call_of_frame(const errand_host *h, errand_frame f)
{
	struct frame *frame = object_get(h, f, OBJ_FRAME);

	return frame ? frame->call : NULL;
}

/* ---- begin, abort ---- */

static struct call *call_alloc(errand_host *h, const struct errand_call_options *o)
{
	static const struct event ev = {.fire = call_fire, .drop = call_drop};
	struct call *c = mem_new(&h->mem, sizeof(*c));

	c->ev = ev;
	c->timer = (struct timer){.slot = TIMER_IDLE, .fire = call_timeout};
	c->since_ms = h->mono_ms;
	list_init(&c->ev.node);
	list_init(&c->in_agent);
	list_init(&c->in_tool);
	c->flags = o->flags;
	c->on_result = o->on_result;
	return c;
}

static int take_strings(errand_host *h, struct call *c, const struct errand_call_options *o,
			errand_error **ret_err)
{
	int rc = str_in(&h->mem, o->tool.ptr, o->tool.len, h->max.definition,
			&c->tool_name);

	if (rc != 0)
		return error_of_text(ret_err, &h->mem, rc, "tool name", h->max.definition);
	if (!o->args.ptr || str_length(o->args.ptr, o->args.len) == 0) {
		c->args = str_dup(&h->mem, "{}", 2);
		return 0;
	}
	/* What is ill-formed UTF-8 there is no JSON. */
	rc = str_json(&h->mem, o->args.ptr, o->args.len, h->max.args, &c->args);
	if (rc == ERRAND_ELIMIT)
		return error_make(ret_err, &h->mem, rc, "args are over %zu bytes",
				  h->max.args);
	return rc == 0 ? 0 : error_no_memory(ret_err, &h->mem);
}

static int begin(errand_host *h, const struct errand_call_options *o, errand_call *ret,
		 errand_error **ret_err)
{
	struct agent *a = NULL;
	struct signal *s = NULL;
	struct call *c;
	int rc;

	if (o->agent != 0 && !(a = agent_get(h, o->agent, ret_err)))
		return ERRAND_EGONE;
	if (o->signal != 0 && !(s = object_get(h, o->signal, OBJ_SIGNAL)))
		return error_make(ret_err, &h->mem, ERRAND_EGONE, "no such signal");
	c = call_alloc(h, o);
	rc = take_strings(h, c, o, ret_err);
	if (rc != 0) {
		str_free(&h->mem, &c->tool_name);
		mem_free(&h->mem, c);
		return rc;
	}
	c->ud = o->ud;
	c->destroy = o->destroy;
	c->agent = a;
	if (a)
		list_add(&a->calls, &c->in_agent);
	signal_init(h, &c->signal);
	c->signal.is_of_call = true;
	if (s) {
		list_add(&s->children, &c->signal.in_parent);
		c->signal.raised = s->raised;
	}
	object_add(h, &c->obj, OBJ_CALL);
	call_queue(h, c, call_enter);
	if (ret)
		*ret = c->obj.id;
	return 0;
}

int errand_call_new(errand_host *h, const struct errand_call_options *o, errand_call *ret,
		    errand_error **ret_err)
{
	struct errand_call_options own;
	int rc;

	if (!h || !o)
		return error_make(ret_err, NULL, ERRAND_EARG, "no host or no options");
	rc = abi_take(&h->mem, ABI_CALL_OPTIONS, &own, o, ret_err);
	if (rc == 0)
		rc = may_change(h, ret_err);
	if (rc == 0 && (!own.tool.ptr || !own.on_result))
		rc = error_make(ret_err, &h->mem, ERRAND_EARG, "bad call options");
	if (rc == 0)
		rc = begin(h, &own, ret, ret_err);
	if (rc != 0)
		destroy_ud(h, own.destroy, own.ud);
	return rc;
}

int errand_call_abort(errand_host *h, errand_call call)
{
	struct call *c;
	int rc = may_queue(h);

	if (rc != 0)
		return rc;
	c = object_get(h, call, OBJ_CALL);
	if (!c)
		return ERRAND_EGONE;
	signal_raise(h, &c->signal);
	return 0;
}
