/* SPDX-License-Identifier: MIT */
/*
 * claim.c - messages taken out of an inbox on a lease, and given back (spec 7.3, D6, D7).
 *
 * What is taken is logged as one splice for each run of neighbours; what comes back goes to
 * the front of its list and is logged as inserted there.
 */
#include "base/json.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/inbox.h"
#include "core/journal.h"
#include "core/lease.h"
#include "core/log.h"
#include "core/task.h"

struct claim {
	struct agent *agent;
	int what; /* ERRAND_CLAIM_* */
	uint64_t turn;
	struct lease *lease;
	struct hold *hold;
};

/* An end that is on a lease is about to be shown: its notice waits for what becomes of that. */
static bool is_due(const errand_host *h, const struct message *m)
{
	const struct task *t = object_get(h, m->task, OBJ_TASK);

	return !t || t->end_holds == 0;
}

static bool is_wanted(const errand_host *h, const struct claim *c, struct list *node)
{
	const struct message *m = list_entry(node, struct message, node);

	return c->what != ERRAND_CLAIM_NOTICES || (m->is_notice && is_due(h, m));
}

static size_t run_length(const errand_host *h, const struct claim *c, struct list *node,
			 const struct list *head, size_t max)
{
	size_t n = 0;

	for (; node != head && n < max && is_wanted(h, c, node); node = node->next)
		n++;
	return n;
}

static void announce(errand_host *h, const struct claim *c, const struct message *m)
{
	struct buf more;

	buf_init_mem(&more, 64, &h->mem);
	(void)buf_adds(&more, ",\"turn\":");
	(void)js_put_int(&more, (int64_t)c->turn);
	inbox_announce(h, c->agent, "claimed", m, &more, false);
	buf_release(&more);
}

/* Take @n messages from @node on; returns the one behind them. */
static struct list *take_run(errand_host *h, struct claim *c, struct inbox *box,
			     struct list *node, size_t n)
{
	if (!c->lease) {
		c->lease = lease_new(h);
		c->hold = lease_hold_messages(h, c->lease, c->agent);
	}
	box->count -= n;
	for (; n > 0; n--) {
		struct list *next = node->next;
		struct message *m = list_entry(node, struct message, node);

		announce(h, c, m);
		m->is_claimed = true;
		list_del(node);
		list_add(&c->hold->messages, node);
		node = next;
	}
	return node;
}

static int take_from(errand_host *h, struct claim *c, int target, size_t max,
		     errand_error **ret_err)
{
	struct inbox *box = inbox_of(c->agent, target);
	struct splice s = {.target = target};
	struct list *node = box->list.next;

	while (node != &box->list && max > 0) {
		s.removed = run_length(h, c, node, &box->list, max);
		if (s.removed == 0) {
			s.start++;
			node = node->next;
			continue;
		}
		if (log_splice(h, c->agent, &s, ret_err) != 0)
			return ERRAND_ECALLBACK;
		node = take_run(h, c, box, node, s.removed);
		max -= s.removed;
	}
	return 0;
}

static int take(errand_host *h, struct claim *c, errand_error **ret_err)
{
	int rc = take_from(h, c, ERRAND_NEXT_STEP, SIZE_MAX, ret_err);

	if (rc == 0 && c->what == ERRAND_CLAIM_TURN)
		rc = take_from(h, c, ERRAND_NEXT_TURN, 1, ret_err);
	if (rc == 0 && c->what == ERRAND_CLAIM_NOTICES)
		rc = take_from(h, c, ERRAND_NEXT_TURN, SIZE_MAX, ret_err);
	return rc;
}

/* Bytes of what would be taken from a list, at most. */
static size_t size_in(const errand_host *h, const struct claim *c, int target)
{
	const struct inbox *box = inbox_of(c->agent, target);
	size_t size = 0;

	list_each(node, &box->list)
	{
		if (is_wanted(h, c, node))
			size += list_entry(node, struct message, node)->json.len + 1;
		if (target == ERRAND_NEXT_TURN && c->what == ERRAND_CLAIM_TURN)
			break;
	}
	return size;
}

/* Before anything is taken: what is logged cannot be undone. */
static int make_room(errand_host *h, const struct claim *c, struct buf *ret,
		     errand_error **ret_err)
{
	size_t size = size_in(h, c, ERRAND_NEXT_STEP);

	if (c->what != ERRAND_CLAIM_STEP)
		size += size_in(h, c, ERRAND_NEXT_TURN);
	buf_init_try(ret, SIZE_MAX / 4, &h->mem);
	if (buf_reserve(ret, size + 2) == 0)
		return 0;
	return error_no_memory(ret_err, &h->mem);
}

static errand_text *show(const struct claim *c, struct buf *b)
{
	(void)buf_addc(b, '[');
	if (c->hold)
		messages_put(b, &c->hold->messages);
	(void)buf_addc(b, ']');
	return text_of_buf(b);
}

int errand_claim(errand_host *h, errand_agent agent, int what, uint64_t turn,
		 errand_lease *ret_lease, errand_text **ret_messages_json,
		 errand_error **ret_err)
{
	struct claim c = {.what = what, .turn = turn};
	struct buf text;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (!ret_lease || !ret_messages_json || what < ERRAND_CLAIM_STEP ||
	    what > ERRAND_CLAIM_NOTICES)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "bad claim");
	c.agent = agent_get(h, agent, ret_err);
	if (!c.agent)
		return ERRAND_EGONE;
	rc = make_room(h, &c, &text, ret_err);
	if (rc != 0)
		return rc;
	rc = take(h, &c, ret_err);
	if (rc == 0) {
		*ret_messages_json = show(&c, &text);
		*ret_lease = c.lease ? lease_hand_out(h, c.lease) : 0;
		return 0;
	}
	buf_release(&text);
	if (c.lease)
		lease_return(h, c.lease);
	return rc;
}

/* ---- back ---- */

/* Would the one that arrived as @seq go before @at? */
static bool is_place(const struct inbox *box, struct list *at, uint64_t seq)
{
	const struct message *other = list_entry(at, struct message, node);

	return at == &box->list || !other->was_returned || other->seq > seq;
}

/* Move what goes to one place, beginning with the first of @messages, to @run. */
static void split_run(struct list *run, struct list *messages, const struct inbox *box,
		      struct list *at)
{
	const struct message *first = list_entry(messages->next, struct message, node);

	list_init(run);
	list_each(node, messages)
	{
		struct message *m = list_entry(node, struct message, node);

		if (m->target != first->target || !is_place(box, at, m->seq))
			break;
		m->is_claimed = false;
		m->is_logged = false;
		m->was_returned = true;
		list_del(node);
		list_add(run, node);
	}
}

static size_t count(const struct list *l)
{
	size_t n = 0;

	list_each(node, l) n++;
	return n;
}

static void tell_moved(errand_host *h, const struct agent *a, const struct list *run,
		       struct list *at)
{
	list_each(node, run)
	{
		const struct message *m = list_entry(node, struct message, node);

		inbox_announce(h, a, "inserted", m, NULL, false);
		journal_message_moved(h, a, m,
				      at ? list_entry(at, struct message, node) : NULL);
	}
}

/*
 * To the front (D7), and among those that came back before in order of arrival: of two
 * leases the later one may be returned first. A log that refuses cannot keep them out.
 */
void inbox_give_back(errand_host *h, struct agent *a, struct list *messages)
{
	bool is_owed = has_notice(messages);

	while (!list_is_empty(messages)) {
		const struct message *m = list_entry(messages->next, struct message, node);
		struct inbox *box = inbox_of(a, m->target);
		struct splice s = {.target = m->target};
		struct list *at = box->list.next, run;
		errand_error *e = NULL;

		for (; !is_place(box, at, m->seq); at = at->next)
			s.start++;
		split_run(&run, messages, box, at);
		s.inserted = &run;
		if (log_splice(h, a, &s, &e) != 0)
			log_warn(h, a, "given back to", e);
		box->count += count(&run);
		tell_moved(h, a, &run, at == &box->list ? NULL : at);
		list_move(at, &run);
	}
	if (is_owed)
		agent_ask_again(h, a);
}
