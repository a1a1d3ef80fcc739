/* SPDX-License-Identifier: MIT */
/*
 * inbox.c - the next-step list of an agent (spec 7): insert, claim on a lease, discard.
 *
 * A message lies in exactly one place: the inbox, or a hold. Its id stays taken in both, so
 * that what is given back never meets a twin.
 */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "core/internal.h"

#define MAX_MESSAGE_ID 256

void message_free(errand_host *h, struct message *m)
{
	str_free(&h->mem, &m->id);
	str_free(&h->mem, &m->json);
	mem_free(&h->mem, m);
}

/* ---- announcements ---- */

void inbox_announce(errand_host *h, const struct agent *a, const char *word,
		    const struct message *m, bool at_once)
{
	struct dispatch *d = dispatch_new(h, ERRAND_ON_INBOX, a);
	struct buf b;

	if (!d)
		return;
	buf_init_mem(&b, MAX_JSON_TEXT, &h->mem);
	(void)buf_addf(&b, "{\"event\":\"%s\",\"message\":", word);
	(void)buf_add(&b, m->json.ptr, m->json.len);
	(void)buf_addc(&b, '}');
	d->json = str_of_buf(&b);
	d->subject = str_dup(&h->mem, m->id.ptr, m->id.len);
	if (at_once)
		dispatch_now(h, d);
	else
		dispatch_queue(h, d);
}

/* ---- in ---- */

static struct str ask_for_id(errand_host *h)
{
	struct errand_sink sink;
	enum phase before = phase_enter(h, PHASE_PURE);

	buf_init_mem(&sink.buf, MAX_MESSAGE_ID, &h->mem);
	h->message_id(h->ud, &sink);
	h->phase = before;
	return str_of_buf(&sink.buf);
}

struct str message_new_id(errand_host *h, const struct agent *a)
{
	char text[32];
	size_t len;

	if (h->message_id)
		return ask_for_id(h);
	do {
		(void)snprintf(text, sizeof(text), "m%llu",
			       (unsigned long long)++h->last_message);
		len = strlen(text);
	} while (names_get(&a->pending, text, len));
	return str_dup(&h->mem, text, len);
}

int inbox_add(errand_host *h, struct agent *a, struct message *m, errand_error **ret_err)
{
	if (names_get(&a->pending, m->id.ptr, m->id.len))
		return error_about(ret_err, &h->mem, ERRAND_EREFUSED, "message \"",
				   m->id.ptr, m->id.len, "\" is already pending");
	m->name.text = m->id.ptr;
	m->name.len = m->id.len;
	m->seq = ++a->last_seq;
	names_put(&a->pending, &m->name);
	list_add(&a->inbox, &m->node);
	return 0;
}

/* The four members, in one order whatever the caller's. @text was parsed as @j. */
static int build_message(errand_host *h, const struct agent *a, const struct js *j,
			 struct js_span text, struct message **ret, errand_error **ret_err)
{
	const char *id;
	size_t len;
	struct message *m;
	struct buf b;

	if (js_type(js_get(j, "content")) != JS_ARRAY)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "a message needs content");
	id = js_string(js_get(j, "id"), &len);
	m = mem_new(&h->mem, sizeof(*m));
	m->id = id ? str_dup(&h->mem, id, len) : message_new_id(h, a);
	buf_init_mem(&b, MAX_JSON_TEXT, &h->mem);
	(void)buf_addc(&b, '{');
	(void)js_put_member(&b, "id", m->id.ptr, m->id.len);
	for (size_t i = 0; i < 3; i++) {
		static const char *const keys[] = {"role", "content", "source"};
		struct js_span member = js_member(text, keys[i]);

		if (!member.ptr)
			continue;
		(void)js_put_key(&b, keys[i]);
		(void)buf_add(&b, member.ptr, member.len);
	}
	(void)buf_addc(&b, '}');
	m->json = str_of_buf(&b);
	*ret = m;
	return 0;
}

static int parse_message(errand_host *h, const struct agent *a, const char *text,
			 size_t len, struct message **ret, errand_error **ret_err)
{
	struct err err = {0};
	struct js *j = NULL;
	int rc;

	len = str_length(text, len);
	if (len > MAX_ARGS)
		return error_make(ret_err, &h->mem, ERRAND_ELIMIT,
				  "message is over %zu bytes", MAX_ARGS);
	rc = js_parse(text, len, &j, &err);
	if (rc != 0) {
		js_free(j);
		return error_make(ret_err, &h->mem, rc_of_parse(rc), "message: %s",
				  err.msg);
	}
	rc = build_message(h, a, j, (struct js_span){text, len}, ret, ret_err);
	js_free(j);
	return rc;
}

int errand_insert(errand_host *h, errand_agent agent, int target, const char *message_json,
		  size_t len, errand_text **ret_id, errand_error **ret_err)
{
	struct agent *a;
	struct message *m = NULL;
	struct buf id;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (target != ERRAND_NEXT_STEP || !message_json)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "bad target or message");
	a = agent_get(h, agent, ret_err);
	if (!a)
		return ERRAND_EGONE;
	rc = parse_message(h, a, message_json, len, &m, ret_err);
	if (rc != 0)
		return rc;
	rc = inbox_add(h, a, m, ret_err);
	if (rc != 0) {
		message_free(h, m);
		return rc;
	}
	inbox_announce(h, a, "inserted", m, false);
	if (!ret_id)
		return 0;
	buf_init_mem(&id, m->id.len, &h->mem);
	(void)buf_add(&id, m->id.ptr, m->id.len);
	*ret_id = text_of_buf(&id);
	return 0;
}

/* ---- out ---- */

static void discard(errand_host *h, struct agent *a, struct message *m, bool announce)
{
	if (announce)
		inbox_announce(h, a, "discarded", m, false);
	names_del(&a->pending, &m->name);
	list_del(&m->node);
	message_free(h, m);
}

void inbox_clear(errand_host *h, struct agent *a, bool announce)
{
	while (!list_is_empty(&a->inbox))
		discard(h, a, list_entry(a->inbox.next, struct message, node), announce);
}

/* Pending, not merely taken: a claimed message is still among the names. */
static struct message *find_pending(const struct agent *a, const char *id, size_t len)
{
	struct name *n = names_get(&a->pending, id, len);
	struct message *m = n ? list_entry(n, struct message, name) : NULL;

	return m && !m->is_claimed ? m : NULL;
}

int errand_discard(errand_host *h, errand_agent agent, const char *message_id, size_t len,
		   errand_error **ret_err)
{
	struct agent *a;
	struct message *m;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	a = agent_get(h, agent, ret_err);
	if (!a)
		return ERRAND_EGONE;
	len = str_length(message_id, len);
	m = message_id ? find_pending(a, message_id, len) : NULL;
	if (!m)
		return error_about(ret_err, &h->mem, ERRAND_EGONE, "message \"",
				   message_id ? message_id : "", message_id ? len : 0,
				   "\" is not pending");
	discard(h, a, m, true);
	return 0;
}

static bool is_wanted(const struct message *m, int what)
{
	return what == ERRAND_CLAIM_STEP || m->is_notice;
}

static void put_messages(struct buf *out, const struct agent *a, int what)
{
	(void)buf_addc(out, '[');
	list_each(node, &a->inbox)
	{
		const struct message *m = list_entry(node, struct message, node);

		if (!is_wanted(m, what))
			continue;
		if (out->len > 1)
			(void)buf_addc(out, ',');
		(void)buf_add(out, m->json.ptr, m->json.len);
	}
	(void)buf_addc(out, ']');
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
	buf_init_mem(&b, SIZE_MAX / 4, &h->mem);
	put_messages(&b, a, ERRAND_CLAIM_STEP);
	return text_take(&b, ret_json, ret_err);
}

/* Move what is wanted to a lease. 0: there is nothing. */
static errand_lease lease_out(errand_host *h, struct agent *a, int what)
{
	struct hold *hd = NULL;
	struct lease *l = NULL;

	list_each(node, &a->inbox)
	{
		struct message *m = list_entry(node, struct message, node);

		if (!is_wanted(m, what))
			continue;
		if (!hd) {
			l = lease_new(h);
			hd = lease_hold_messages(h, l, a);
		}
		inbox_announce(h, a, "claimed", m, false);
		m->is_claimed = true;
		list_del(node);
		list_add(&hd->messages, node);
	}
	return l ? l->obj.id : 0;
}

int errand_claim(errand_host *h, errand_agent agent, int what, errand_lease *ret_lease,
		 errand_text **ret_messages_json, errand_error **ret_err)
{
	struct agent *a;
	struct buf b;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (!ret_lease || !ret_messages_json ||
	    (what != ERRAND_CLAIM_STEP && what != ERRAND_CLAIM_NOTICES))
		return error_make(ret_err, &h->mem, ERRAND_EARG, "bad claim");
	a = agent_get(h, agent, ret_err);
	if (!a)
		return ERRAND_EGONE;
	buf_init_mem(&b, SIZE_MAX / 4, &h->mem);
	put_messages(&b, a, what);
	rc = text_take(&b, ret_messages_json, ret_err);
	if (rc == 0)
		*ret_lease = lease_out(h, a, what);
	return rc;
}

/* Behind what came back before and is older. */
static struct list *place_of(const struct agent *a, struct list *at, uint64_t seq)
{
	while (at != &a->inbox) {
		const struct message *other = list_entry(at, struct message, node);

		if (!other->was_returned || other->seq > seq)
			break;
		at = at->next;
	}
	return at;
}

/*
 * To the front (D7), and among those that came back before in order of arrival: of two
 * leases the later one may be returned first.
 */
void inbox_give_back(struct agent *a, struct list *messages)
{
	struct list *at = a->inbox.next;

	while (!list_is_empty(messages)) {
		struct message *m = list_entry(messages->next, struct message, node);

		at = place_of(a, at, m->seq);
		m->is_claimed = false;
		m->was_returned = true;
		list_del(&m->node);
		list_add(at, &m->node);
	}
}
