/* SPDX-License-Identifier: MIT */
/* agent.c - agents and their sessions (spec 2). */
#include "core/abi.h"
#include "core/agent.h"
#include "core/call.h"
#include "core/host.h"
#include "core/inbox.h"
#include "core/journal.h"
#include "core/lease.h"
#include "core/scope.h"

/* ---- sessions ---- */

static struct session *session_get(errand_host *h, struct str *id)
{
	struct name *n = names_get(&h->sessions, id->ptr, id->len);
	struct session *s;

	if (n) {
		str_free(&h->mem, id);
		return list_entry(n, struct session, name);
	}
	s = mem_new(&h->mem, sizeof(*s));
	s->text = str_take(id);
	s->name.text = s->text.ptr;
	s->name.len = s->text.len;
	list_init(&s->agents);
	list_init(&s->tasks);
	names_put(&h->sessions, &s->name);
	return s;
}

/* Every task has an owner that is still in @agents: its list need not be asked. */
static void session_unused(errand_host *h, struct session *s)
{
	if (!list_is_empty(&s->agents))
		return;
	names_del(&h->sessions, &s->name);
	str_free(&h->mem, &s->text);
	mem_free(&h->mem, s);
}

/* ---- finding them ---- */

struct agent *agent_get(const errand_host *h, errand_agent a, errand_error **ret_err)
{
	struct agent *agent = object_get(h, a, OBJ_AGENT);

	if (!agent)
		(void)error_make(ret_err, &h->mem, ERRAND_EGONE, "no such agent");
	return agent;
}

int agent_to_change(const errand_host *h, errand_agent a, struct agent **ret,
		    errand_error **ret_err)
{
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	*ret = agent_get(h, a, ret_err);
	return *ret ? 0 : ERRAND_EGONE;
}

int caller_get(const errand_host *h, errand_agent a, const struct agent **ret,
	       errand_error **ret_err)
{
	*ret = NULL;
	if (a == 0)
		return 0;
	*ret = agent_get(h, a, ret_err);
	return *ret ? 0 : ERRAND_EGONE;
}

/* ---- life ---- */

static int refuse_twin(const errand_host *h, const struct session *s,
		       errand_error **ret_err)
{
	return error_about(ret_err, &h->mem, ERRAND_EREFUSED, "agent \"", s->text.ptr,
			   s->text.len, "\" is already registered");
}

static void on_trim(errand_host *h, struct event *ev)
{
	agent_trim(h, list_entry(ev, struct agent, trim));
}

/* Of an agent's own events. */
static void finish_drop(errand_host *h, struct event *ev)
{
	(void)h;
	(void)ev; /* the agent is freed with the others */
}

static int take_session(errand_host *h, const struct errand_agent_options *o,
			struct session **ret, errand_error **ret_err)
{
	struct str id;
	int rc;

	if (!o->session.ptr || str_length(o->session.ptr, o->session.len) == 0)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "bad agent options");
	rc = str_in(&h->mem, o->session.ptr, o->session.len, h->max.definition, &id);
	if (rc != 0)
		return error_of_text(ret_err, &h->mem, rc, "session id", h->max.definition);
	*ret = session_get(h, &id);
	if (!(*ret)->registered || (o->flags & ERRAND_AGENT_UNREGISTERED))
		return 0;
	return refuse_twin(h, *ret, ret_err);
}

/* @id 0: a fresh one. */
static struct agent *agent_alloc(errand_host *h, struct session *s, uint64_t id)
{
	struct agent *a = mem_new(&h->mem, sizeof(*a));

	a->session = s;
	a->finish = (struct event){.fire = agent_finish, .drop = finish_drop};
	a->trim = (struct event){.fire = on_trim, .drop = finish_drop};
	list_init(&a->trim.node);
	agent_wake_init(a);
	agent_deadline_init(a);
	list_init(&a->told);
	list_add(&s->agents, &a->in_session);
	list_init(&a->tasks);
	list_init(&a->calls);
	list_init(&a->inbox[0].list);
	list_init(&a->inbox[1].list);
	list_init(&a->holds);
	names_init(&a->pending, &h->mem);
	scope_init(&a->scope);
	object_add_as(h, &a->obj, OBJ_AGENT, id ? id : h->last_id + 1);
	a->number = a->obj.id;
	return a;
}

struct agent *agent_restore(errand_host *h, uint64_t id, struct str session)
{
	struct agent *a = agent_alloc(h, session_get(h, &session), id);

	a->is_restored = true;
	return a;
}

/* The newest that came back for this session and has nobody yet; NULL: none has. */
static struct agent *agent_unclaimed(const struct session *s)
{
	for (struct list *n = s->agents.prev; n != &s->agents; n = n->prev) {
		struct agent *a = list_entry(n, struct agent, in_session);

		if (a->is_restored && !a->disposing)
			return a;
	}
	return NULL;
}

static int agent_new(errand_host *h, const struct errand_agent_options *o,
		     errand_agent *ret, errand_error **ret_err)
{
	struct scope *parent = NULL;
	struct session *s;
	struct agent *a;
	int rc = may_change(h, ret_err);

	if (rc == 0 && !ret)
		rc = error_make(ret_err, &h->mem, ERRAND_EARG, "bad agent options");
	if (rc == 0 && o->scope != 0 && !(parent = scope_get(h, o->scope, ret_err)))
		rc = ERRAND_EGONE;
	if (rc == 0)
		rc = take_session(h, o, &s, ret_err);
	if (rc != 0)
		return rc;
	a = agent_unclaimed(s);
	if (a && scope_check(h, &a->scope, parent, ret_err) != 0)
		return ERRAND_EREFUSED;
	if (!a)
		a = agent_alloc(h, s, 0);
	scope_link(&a->scope, parent);
	a->scope.is_bound = parent != NULL;
	a->is_operator = (o->flags & ERRAND_AGENT_OPERATOR) != 0;
	a->log = o->log;
	a->wake = o->wake;
	a->ud = o->ud;
	a->destroy = o->destroy;
	if (!(o->flags & ERRAND_AGENT_UNREGISTERED))
		s->registered = a;
	/* Its wake may have got lost. */
	a->is_paid = a->is_restored && has_notice(&inbox_of(a, ERRAND_NEXT_TURN)->list);
	if (a->is_restored)
		agent_ask_again(h, a);
	a->is_restored = false;
	journal_agent(h, a);
	*ret = a->number;
	return 0;
}

int errand_agent_new(errand_host *h, const struct errand_agent_options *o,
		     errand_agent *ret, errand_error **ret_err)
{
	struct errand_agent_options own;
	int rc;

	if (!h || !o)
		return error_make(ret_err, NULL, ERRAND_EARG, "no host or no options");
	rc = abi_take(&h->mem, ABI_AGENT_OPTIONS, &own, o, ret_err);
	if (rc == 0)
		rc = agent_new(h, &own, ret, ret_err);
	if (rc != 0)
		destroy_ud(h, own.destroy, own.ud);
	return rc;
}

int errand_agent_register(errand_host *h, errand_agent agent, int yes,
			  errand_error **ret_err)
{
	struct agent *a;
	int rc = agent_to_change(h, agent, &a, ret_err);

	if (rc != 0)
		return rc;
	if (yes && a->session->registered && a->session->registered != a)
		return refuse_twin(h, a->session, ret_err);
	if (yes)
		a->session->registered = a;
	else if (a->session->registered == a)
		a->session->registered = NULL;
	return 0;
}

void agent_free(errand_host *h, struct agent *a)
{
	struct session *s = a->session;

	inbox_release(h, a);
	while (!list_is_empty(&a->holds))
		hold_free(h, list_entry(a->holds.next, struct hold, in_thing));
	names_release(&a->pending);
	scope_release(h, &a->scope);
	destroy_ud(h, a->ending.destroy, a->ending.ud);
	destroy_ud(h, a->destroy, a->ud);
	list_del(&a->waking.node);
	list_del(&a->trim.node);
	timer_clear(h, &a->deadline);
	if (s->registered == a)
		s->registered = NULL;
	list_del(&a->in_session);
	session_unused(h, s);
	object_del(h, &a->obj);
	mem_free(&h->mem, a);
}

void agent_call_ended(errand_host *h, struct call *c)
{
	struct agent *a = c->agent;

	if (!a)
		return;
	list_del(&c->in_agent);
	if (a->gone && list_is_empty(&a->calls))
		agent_free(h, a);
}
