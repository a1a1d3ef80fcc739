/* SPDX-License-Identifier: MIT */
/*
 * lease.c - what was handed out and is not yet delivered (D6).
 *
 * A lease is a list of holds. Each hold also hangs on the task or agent that it is of, so
 * that it can be taken away when that goes; a lease whose holds are all gone has nothing
 * left to commit or to return.
 */
#include "core/agent.h"
#include "core/host.h"
#include "core/inbox.h"
#include "core/journal.h"
#include "core/lease.h"
#include "core/notice.h"
#include "core/task.h"

struct lease *lease_new(errand_host *h)
{
	struct lease *l = mem_new(&h->mem, sizeof(*l));

	list_init(&l->holds);
	return l;
}

errand_lease lease_hand_out(errand_host *h, struct lease *l)
{
	object_add(h, &l->obj, OBJ_LEASE);
	return l->obj.id;
}

bool lease_is_empty(const struct lease *l)
{
	return list_is_empty(&l->holds);
}

static struct hold *hold_new(errand_host *h, struct lease *l, enum hold_kind kind,
			     struct list *things)
{
	struct hold *hd = mem_new(&h->mem, sizeof(*hd));

	hd->kind = kind;
	list_init(&hd->messages);
	list_add(&l->holds, &hd->in_lease);
	list_add(things, &hd->in_thing);
	return hd;
}

void lease_hold_bytes(errand_host *h, struct lease *l, struct task *t, uint64_t from)
{
	struct hold *hd = hold_new(h, l, HOLD_BYTES, &t->holds);

	hd->task = t;
	hd->from = from;
}

void lease_hold_end(errand_host *h, struct lease *l, struct task *t)
{
	hold_new(h, l, HOLD_END, &t->holds)->task = t;
	t->end_holds++;
}

struct hold *lease_hold_messages(errand_host *h, struct lease *l, struct agent *a)
{
	struct hold *hd = hold_new(h, l, HOLD_MESSAGES, &a->holds);

	hd->agent = a;
	return hd;
}

void hold_free(errand_host *h, struct hold *hd)
{
	list_each(node, &hd->messages)
	{
		struct message *m = list_entry(node, struct message, node);

		journal_message_gone(h, hd->agent, m);
		names_del(&hd->agent->pending, &m->name);
		message_free(h, m);
	}
	if (hd->kind == HOLD_END)
		hd->task->end_holds--;
	list_del(&hd->in_lease);
	list_del(&hd->in_thing);
	mem_free(&h->mem, hd);
}

/* A user's word refills the budget of wakes (spec 13.2, D8); what had to wait for it is asked. */
static void refill(errand_host *h, struct agent *a)
{
	if (a->wakes == 0)
		return;
	a->wakes = 0;
	journal_agent(h, a);
	if (a->is_refused)
		agent_ask_again(h, a);
}

static void messages_read(errand_host *h, const struct hold *hd)
{
	list_each(node, &hd->messages)
	{
		const struct message *m = list_entry(node, struct message, node);
		struct task *t = m->is_notice ? object_get(h, m->task, OBJ_TASK) : NULL;

		if (m->is_user)
			refill(h, hd->agent);
		if (!t)
			continue;
		t->notice_read = true;
		journal_of_task(h, t, "told");
		task_told(h, t);
	}
}

static void commit_hold(errand_host *h, struct hold *hd)
{
	struct task *t = hd->task;
	enum hold_kind kind = hd->kind;

	messages_read(h, hd);
	hold_free(h, hd);
	if (kind == HOLD_END)
		task_report(h, t);
	else if (kind == HOLD_BYTES)
		task_delivered(h, t);
}

/* A later reader may have had what follows @from already: bytes come twice then, but none
 * is lost. */
static void return_hold(errand_host *h, struct hold *hd)
{
	struct task *ended = hd->kind == HOLD_END ? hd->task : NULL;

	if (hd->kind == HOLD_BYTES && hd->from < hd->task->cursor)
		hd->task->cursor = hd->from;
	if (hd->kind == HOLD_MESSAGES)
		inbox_give_back(h, hd->agent, &hd->messages);
	hold_free(h, hd);
	if (ended && !task_is_reported(ended))
		notice_due(h, ended);
}

static void end(errand_host *h, struct lease *l,
		void (*end_hold)(errand_host *, struct hold *))
{
	while (!lease_is_empty(l))
		end_hold(h, list_entry(l->holds.next, struct hold, in_lease));
	object_del(h, &l->obj);
	mem_free(&h->mem, l);
}

void lease_commit(errand_host *h, struct lease *l)
{
	end(h, l, commit_hold);
}

void lease_return(errand_host *h, struct lease *l)
{
	end(h, l, return_hold);
}

void lease_drop(errand_host *h, struct lease *l)
{
	end(h, l, hold_free);
}

void lease_merge(errand_host *h, struct lease *into, struct lease *from)
{
	list_move(&into->holds, &from->holds);
	lease_drop(h, from);
}

static int end_by_id(errand_host *h, errand_lease id,
		     void (*end_lease)(errand_host *h, struct lease *l))
{
	struct lease *l;
	bool had_nothing;
	int rc = may_queue(h);

	if (rc != 0)
		return rc;
	l = object_get(h, id, OBJ_LEASE);
	if (!l)
		return ERRAND_EGONE;
	had_nothing = lease_is_empty(l);
	end_lease(h, l);
	return had_nothing ? ERRAND_EGONE : 0;
}

int errand_lease_commit(errand_host *h, errand_lease l)
{
	return end_by_id(h, l, lease_commit);
}

int errand_lease_return(errand_host *h, errand_lease l)
{
	return end_by_id(h, l, lease_return);
}
