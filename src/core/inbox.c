/* SPDX-License-Identifier: MIT */
/*
 * inbox.c - the two lists of an agent's pending messages (spec 7): insert, discard, show.
 *
 * A message lies in exactly one place: a list, or a hold. Its id stays taken in both, so
 * that what is given back never meets a twin. Every change is logged, then applied, then
 * announced (spec 7.2).
 */
#include "base/json.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/inbox.h"
#include "core/journal.h"
#include "core/log.h"
#include "core/reg.h"

/* ---- announcements ---- */

void inbox_announce(errand_host *h, const struct agent *a, const char *word,
		    const struct message *m, const struct buf *more, bool at_once)
{
	struct dispatch *d = dispatch_new(h, ERRAND_ON_INBOX, a);
	struct buf b;

	if (!d)
		return;
	buf_init_mem(&b, SIZE_MAX / 4, &h->mem);
	(void)buf_addf(&b, "{\"event\":\"%s\",\"message\":", word);
	(void)buf_add(&b, m->json.ptr, m->json.len);
	(void)buf_addf(&b, ",\"target\":\"%s\"", target_word(m->target));
	if (more)
		(void)buf_add(&b, more->data, more->len);
	(void)buf_addc(&b, '}');
	d->json = str_of_buf(&b);
	d->subject = str_dup(&h->mem, m->id.ptr, m->id.len);
	if (at_once)
		dispatch_now(h, d);
	else
		dispatch_queue(h, d);
}

/* ---- in ---- */

int inbox_add(errand_host *h, struct agent *a, struct message *m, errand_error **ret_err)
{
	struct inbox *box = inbox_of(a, m->target);
	struct splice s = {
		.target = m->target, .start = box->count, .may_fail = !m->is_notice};
	struct list one;
	int rc;

	if (names_get(&a->pending, m->id.ptr, m->id.len))
		return error_about(ret_err, &h->mem, ERRAND_EREFUSED, "message \"",
				   m->id.ptr, m->id.len, "\" is already pending");
	list_init(&one);
	list_add(&one, &m->node);
	s.inserted = &one;
	rc = log_splice(h, a, &s, ret_err);
	list_del(&m->node);
	if (rc != 0)
		return rc;
	inbox_put(a, m);
	journal_message(h, a, m);
	return 0;
}

void inbox_put(struct agent *a, struct message *m)
{
	struct inbox *box = inbox_of(a, m->target);

	m->seq = ++a->last_seq;
	names_put(&a->pending, &m->name);
	list_add(&box->list, &m->node);
	box->count++;
}

void inbox_move(struct agent *a, struct message *m, struct message *before)
{
	list_del(&m->node);
	list_add(before ? &before->node : &inbox_of(a, m->target)->list, &m->node);
	m->was_returned = true;
}

static int show_id(errand_host *h, const struct message *m, errand_text **ret,
		   errand_error **ret_err)
{
	struct buf id;

	buf_init_try(&id, m->id.len, &h->mem);
	(void)buf_add(&id, m->id.ptr, m->id.len);
	return text_take(&id, ret, ret_err);
}

int errand_insert(errand_host *h, errand_agent agent, int target, const char *message_json,
		  size_t len, errand_text **ret_id, errand_error **ret_err)
{
	struct agent *a;
	struct message *m = NULL;
	errand_text *id = NULL;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if ((target != ERRAND_NEXT_STEP && target != ERRAND_NEXT_TURN) || !message_json)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "bad target or message");
	a = agent_get(h, agent, ret_err);
	if (!a)
		return ERRAND_EGONE;
	if (a->disposing)
		return error_make(ret_err, &h->mem, ERRAND_ESTATE,
				  "already being disposed");
	rc = message_parse(h, a,
			   (struct js_span){message_json, str_length(message_json, len)},
			   &m, ret_err);
	if (rc != 0)
		return rc;
	m->target = target;
	if (ret_id)
		rc = show_id(h, m, &id, ret_err);
	if (rc == 0)
		rc = inbox_add(h, a, m, ret_err);
	if (rc != 0) {
		errand_text_free(id);
		message_free(h, m);
		return rc;
	}
	inbox_announce(h, a, "inserted", m, NULL, false);
	if (ret_id)
		*ret_id = id;
	return 0;
}

/* ---- out ---- */

void inbox_forget(errand_host *h, struct agent *a, struct message *m)
{
	journal_message_gone(h, a, m);
	names_del(&a->pending, &m->name);
	list_del(&m->node);
	inbox_of(a, m->target)->count--;
	message_free(h, m);
}

static void discard(errand_host *h, struct agent *a, struct message *m)
{
	inbox_announce(h, a, "discarded", m, NULL, false);
	inbox_forget(h, a, m);
}

static void empty(errand_host *h, struct agent *a, int target,
		  void (*drop)(errand_host *h, struct agent *a, struct message *m))
{
	struct inbox *box = inbox_of(a, target);

	while (box->count > 0)
		drop(h, a, list_entry(box->list.next, struct message, node));
}

/* Next-step before next-turn (spec 7.3). */
int inbox_cancel(errand_host *h, struct agent *a, errand_error **ret_err)
{
	for (int target = ERRAND_NEXT_STEP; target <= ERRAND_NEXT_TURN; target++) {
		struct splice s = {.target = target,
				   .removed = inbox_of(a, target)->count,
				   .is_canceled = true};
		int rc = s.removed > 0 ? log_splice(h, a, &s, ret_err) : 0;

		if (rc != 0)
			return rc;
		empty(h, a, target, discard);
	}
	return 0;
}

void inbox_cancel_anyway(errand_host *h, struct agent *a)
{
	errand_error *e = NULL;

	if (inbox_cancel(h, a, &e) == 0)
		return;
	log_warn(h, a, "cleared", e);
	empty(h, a, ERRAND_NEXT_STEP, discard);
	empty(h, a, ERRAND_NEXT_TURN, discard);
}

void inbox_release(errand_host *h, struct agent *a)
{
	empty(h, a, ERRAND_NEXT_STEP, inbox_forget);
	empty(h, a, ERRAND_NEXT_TURN, inbox_forget);
}

int errand_agent_cancel(errand_host *h, errand_agent agent, int keep_inbox,
			errand_error **ret_err)
{
	struct agent *a;
	int rc = agent_to_change(h, agent, &a, ret_err);

	if (rc != 0)
		return rc;
	return keep_inbox ? 0 : inbox_cancel(h, a, ret_err);
}

/* Pending, not merely taken: a claimed message is still among the names. */
static struct message *find_pending(const struct agent *a, const char *id, size_t len)
{
	struct name *n = names_get(&a->pending, id, len);
	struct message *m = n ? list_entry(n, struct message, name) : NULL;

	return m && !m->is_claimed ? m : NULL;
}

size_t inbox_index(const struct inbox *box, const struct list *node)
{
	size_t i = 0;

	for (const struct list *n = box->list.next; n != node; n = n->next)
		i++;
	return i;
}

int errand_discard(errand_host *h, errand_agent agent, const char *message_id, size_t len,
		   errand_error **ret_err)
{
	struct splice s = {.removed = 1, .is_canceled = true};
	struct agent *a;
	struct message *m;
	int rc = agent_to_change(h, agent, &a, ret_err);

	if (rc != 0)
		return rc;
	len = str_length(message_id, len);
	m = message_id ? find_pending(a, message_id, len) : NULL;
	if (!m)
		return error_about(ret_err, &h->mem, ERRAND_EGONE, "message \"",
				   message_id ? message_id : "", message_id ? len : 0,
				   "\" is not pending");
	s.target = m->target;
	s.start = a->log ? inbox_index(inbox_of(a, m->target), &m->node) : 0;
	rc = log_splice(h, a, &s, ret_err);
	if (rc == 0)
		discard(h, a, m);
	return rc;
}

/* ---- shown ---- */

void messages_put(struct buf *out, const struct list *messages)
{
	list_each(node, messages)
	{
		const struct message *m = list_entry(node, struct message, node);

		if (node != messages->next)
			(void)buf_addc(out, ',');
		(void)buf_add(out, m->json.ptr, m->json.len);
	}
}

static void put_with_target(struct buf *out, const struct inbox *box, const char *target)
{
	list_each(node, &box->list)
	{
		const struct message *m = list_entry(node, struct message, node);

		if (out->len > 1)
			(void)buf_addc(out, ',');
		(void)buf_addf(out, "{\"target\":\"%s\",", target);
		(void)buf_add(out, m->json.ptr + 1, m->json.len - 1);
	}
}

int errand_inbox(const errand_host *h, errand_agent agent, errand_text **ret_json,
		 errand_error **ret_err)
{
	const struct agent *a;
	struct buf b;

	if (!h || !ret_json)
		return error_make(ret_err, NULL, ERRAND_EARG,
				  "no host, or nowhere to answer");
	a = agent_get(h, agent, ret_err);
	if (!a)
		return ERRAND_EGONE;
	buf_init_try(&b, SIZE_MAX / 4, &h->mem);
	(void)buf_addc(&b, '[');
	for (int target = ERRAND_NEXT_STEP; target <= ERRAND_NEXT_TURN; target++)
		put_with_target(&b, &a->inbox[target - ERRAND_NEXT_STEP],
				target_word(target));
	(void)buf_addc(&b, ']');
	return text_take(&b, ret_json, ret_err);
}
