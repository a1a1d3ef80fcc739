/* SPDX-License-Identifier: MIT */
/*
 * journal.c - every durable fact on its way out, one JSON object each (design.md 4.5).
 *
 * A fact says how things are, not what was done: the last one about a thing is all that there
 * is to know about it. Leases are no facts: what is on one is undelivered until it is committed.
 */
#include "base/json.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/inbox.h"
#include "core/journal.h"
#include "core/log.h"
#include "core/task.h"

static void begin(errand_host *h, struct buf *b, const char *fact)
{
	buf_init_mem(b, SIZE_MAX / 4, &h->mem);
	(void)buf_addf(b, "{\"fact\":\"%s\"", fact);
}

static void put_number(struct buf *b, const char *key, uint64_t n)
{
	(void)js_put_key(b, key);
	(void)js_put_int(b, (int64_t)n);
}

static void end(errand_host *h, struct buf *b)
{
	enum phase before = phase_enter(h, PHASE_PURE);

	(void)buf_addc(b, '}');
	h->journal(h->ud, buf_text(b), b->len);
	h->phase = before;
	buf_release(b);
}

/* ---- agents ---- */

void journal_agent(errand_host *h, const struct agent *a)
{
	struct buf b;

	if (!h->journal)
		return;
	begin(h, &b, "agent");
	put_number(&b, "agent", a->number);
	(void)js_put_member(&b, "session", a->session->text.ptr, a->session->text.len);
	put_number(&b, "wakes", (uint64_t)a->wakes);
	end(h, &b);
}

void journal_agent_gone(errand_host *h, const struct agent *a)
{
	struct buf b;

	if (!h->journal)
		return;
	begin(h, &b, "agent-gone");
	put_number(&b, "agent", a->number);
	end(h, &b);
}

/* ---- tasks ---- */

void journal_counter(errand_host *h, const struct kind *k)
{
	struct buf b;

	if (!h->journal)
		return;
	begin(h, &b, "counter");
	(void)js_put_member(&b, "kind", k->text.ptr, k->text.len);
	put_number(&b, "counter", k->counter);
	end(h, &b);
}

static void put_text(struct buf *b, const char *key, const struct str *s)
{
	if (s->ptr)
		(void)js_put_member(b, key, s->ptr, s->len);
}

static void put_flag(struct buf *b, const char *key, bool yes)
{
	(void)buf_addf(b, ",\"%s\":%s", key, yes ? "true" : "false");
}

void journal_put_task(struct buf *b, const struct task *t)
{
	put_number(b, "task", t->obj.id);
	put_text(b, "kind", &t->kind->text);
	put_number(b, "ordinal", t->ordinal);
	put_text(b, "label", &t->label);
	if (t->owner)
		put_number(b, "agent", t->owner->number);
	if (t->limit)
		put_number(b, "outputLimitBytes", (uint64_t)t->limit);
	(void)buf_addf(b, ",\"status\":\"%s\"", status_word(t->status));
	put_text(b, "detail", &t->detail);
	put_text(b, "output", &t->output);
	put_number(b, "startedAt", (uint64_t)t->started_ms);
	if (status_is_terminal(t->status))
		put_number(b, "finishedAt", (uint64_t)t->finished_ms);
	put_flag(b, "stream", t->producer.read || t->is_stream);
	put_flag(b, "reported", t->reported);
	put_flag(b, "noticed", t->noticed);
	put_flag(b, "told", t->notice_read);
	put_number(b, "cursor", t->delivered);
}

void journal_task(errand_host *h, const struct task *t)
{
	struct buf b;

	if (!h->journal)
		return;
	begin(h, &b, "task");
	journal_put_task(&b, t);
	end(h, &b);
}

void journal_of_task(errand_host *h, const struct task *t, const char *fact)
{
	struct buf b;

	if (!h->journal)
		return;
	begin(h, &b, fact);
	put_number(&b, "task", t->obj.id);
	end(h, &b);
}

void journal_cursor(errand_host *h, const struct task *t)
{
	struct buf b;

	if (!h->journal)
		return;
	begin(h, &b, "cursor");
	put_number(&b, "task", t->obj.id);
	put_number(&b, "cursor", t->delivered);
	end(h, &b);
}

/* ---- messages ---- */

void journal_message(errand_host *h, const struct agent *a, const struct message *m)
{
	struct buf b;

	if (!h->journal)
		return;
	begin(h, &b, "message");
	put_number(&b, "agent", a->number);
	(void)buf_addf(&b, ",\"target\":\"%s\"", target_word(m->target));
	(void)js_put_key(&b, "message");
	(void)buf_add(&b, m->json.ptr, m->json.len);
	end(h, &b);
}

void journal_message_moved(errand_host *h, const struct agent *a, const struct message *m,
			   const struct message *before)
{
	struct buf b;

	if (!h->journal)
		return;
	begin(h, &b, "message-moved");
	put_number(&b, "agent", a->number);
	put_text(&b, "id", &m->id);
	if (before)
		put_text(&b, "before", &before->id);
	end(h, &b);
}

void journal_message_gone(errand_host *h, const struct agent *a, const struct message *m)
{
	struct buf b;

	if (!h->journal)
		return;
	begin(h, &b, "message-gone");
	put_number(&b, "agent", a->number);
	put_text(&b, "id", &m->id);
	end(h, &b);
}
