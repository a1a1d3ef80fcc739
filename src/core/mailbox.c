/* SPDX-License-Identifier: MIT */
/*
 * mailbox.c - posts from other threads, to be run on the host's own.
 *
 * A post is pushed on a stack that only the host empties, as a whole: no lock, and no thread
 * ever waits for another. Emptied, it is turned round, so that the posts of one thread come
 * in their order. The one other word that threads share says that wake() was called.
 */
#include "base/utf8.h"
#include "core/host.h"
#include "core/mailbox.h"

struct post {
	struct event ev;
	struct post *next;
	void (*fn)(void *ud, errand_host *h);
	void *ud;
	errand_destroy_fn drop;
	struct mem mem;
};

/* In the place of a stack: the host is gone, and nothing is taken any more. */
static struct post closed;

static void post_free(struct post *p, bool is_dropped)
{
	struct mem mem = p->mem;

	if (is_dropped && p->drop)
		p->drop(p->ud);
	mem_free(&mem, p);
}

static void post_fire(errand_host *h, struct event *ev)
{
	struct post *p = list_entry(ev, struct post, ev);

	p->fn(p->ud, h);
	post_free(p, false);
}

static void post_drop(errand_host *h, struct event *ev)
{
	(void)h;
	post_free(list_entry(ev, struct post, ev), true);
}

/* Oldest first. */
static struct post *take_all(struct errand_mailbox *m, struct post *instead)
{
	struct post *p = __atomic_exchange_n(&m->newest, instead, __ATOMIC_ACQUIRE);
	struct post *first = NULL;

	while (p && p != &closed) {
		struct post *next = p->next;

		p->next = first;
		first = p;
		p = next;
	}
	return first;
}

static void drop_all(struct errand_mailbox *m)
{
	struct post *p = take_all(m, &closed);

	while (p) {
		struct post *next = p->next;

		post_free(p, true);
		p = next;
	}
}

/* ---- the host's side ---- */

/* The flag first: a post that comes between the two wakes once too often, not never. */
static void collect(errand_host *h, struct errand_mailbox *m)
{
	struct post *p;

	__atomic_store_n(&m->is_awake, false, __ATOMIC_SEQ_CST);
	for (p = take_all(m, NULL); p; p = p->next)
		event_queue(h, &p->ev);
}

void mailboxes_collect(errand_host *h)
{
	list_each(node, &h->mailboxes)
		collect(h, list_entry(node, struct errand_mailbox, in_host));
}

bool mailboxes_have(const errand_host *h)
{
	list_each(node, &h->mailboxes)
	{
		const struct errand_mailbox *m = list_entry(node, struct errand_mailbox,
							    in_host);

		if (__atomic_load_n(&m->newest, __ATOMIC_RELAXED))
			return true;
	}
	return false;
}

void mailboxes_close(errand_host *h)
{
	list_each(node, &h->mailboxes)
	{
		struct errand_mailbox *m = list_entry(node, struct errand_mailbox, in_host);

		list_del(node);
		drop_all(m);
	}
}

int errand_mailbox_new(errand_host *h, void (*wake)(void *ud), void *ud,
		       errand_destroy_fn destroy, errand_mailbox **ret,
		       errand_error **ret_err)
{
	struct errand_mailbox *m;
	int rc = may_change(h, ret_err);

	if (rc == 0 && (!wake || !ret))
		rc = error_make(ret_err, &h->mem, ERRAND_EARG, "a mailbox needs a wake");
	if (rc != 0) {
		destroy_ud(h, destroy, ud);
		return rc;
	}
	m = mem_new(&h->mem, sizeof(*m));
	m->mem = h->mem;
	m->max = h->max;
	m->wake = wake;
	m->ud = ud;
	m->destroy = destroy;
	list_add(&h->mailboxes, &m->in_host);
	*ret = m;
	return 0;
}

void errand_mailbox_free(errand_mailbox *m)
{
	struct mem mem;

	if (!m)
		return;
	list_del(&m->in_host);
	drop_all(m);
	if (m->destroy)
		m->destroy(m->ud);
	mem = m->mem;
	mem_free(&mem, m);
}

/* ---- any thread ---- */

static bool push(struct errand_mailbox *m, struct post *p)
{
	struct post *newest = __atomic_load_n(&m->newest, __ATOMIC_RELAXED);

	do {
		if (newest == &closed)
			return false;
		p->next = newest;
	} while (!__atomic_compare_exchange_n(&m->newest, &newest, p, true,
					      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED));
	return true;
}

int errand_post(errand_mailbox *m, void (*fn)(void *ud, errand_host *h), void *ud,
		errand_destroy_fn drop)
{
	struct post *p;

	if (!m || !fn) {
		if (drop)
			drop(ud);
		return ERRAND_EARG;
	}
	p = mem_new(&m->mem, sizeof(*p));
	*p = (struct post){.ev = {.fire = post_fire, .drop = post_drop},
			   .fn = fn,
			   .ud = ud,
			   .drop = drop,
			   .mem = m->mem};
	list_init(&p->ev.node);
	if (!push(m, p)) {
		post_free(p, true);
		return ERRAND_EGONE;
	}
	if (!__atomic_exchange_n(&m->is_awake, true, __ATOMIC_SEQ_CST))
		m->wake(m->ud);
	return 0;
}

/* ---- settlements and answers ---- */

struct letter {
	struct mem mem;
	uint64_t to; /* a task or a frame */
	int status;
	struct str first, second;
};

static void letter_free(void *ud)
{
	struct letter *l = ud;
	struct mem mem = l->mem;

	str_free(&mem, &l->first);
	str_free(&mem, &l->second);
	mem_free(&mem, l);
}

static struct letter *letter_new(const struct errand_mailbox *m, uint64_t to)
{
	struct letter *l = mem_new(&m->mem, sizeof(*l));

	l->mem = m->mem;
	l->to = to;
	return l;
}

/* As much as the host would keep anyway. */
static int take_cut(const struct mem *mem, const char *text, size_t len, size_t max,
		    struct str *ret)
{
	len = str_length(text, len);
	return str_in(mem, text, text ? utf8_head(text, len, max) : 0, max, ret);
}

/* Who posted it was told that it will be done. */
static void letter_read(struct letter *l, errand_host *h, int rc)
{
	if (rc == ERRAND_ENOMEM)
		mem_fail(&h->mem, l->first.len + l->second.len);
	letter_free(l);
}

static void settle(void *ud, errand_host *h)
{
	struct letter *l = ud;

	letter_read(l, h,
		    errand_settle(h, l->to, l->status, l->first.ptr, l->first.len,
				  l->second.ptr, l->second.len));
}

int errand_post_settle(errand_mailbox *m, errand_task t, int status, const char *detail,
		       size_t detail_len, const char *output, size_t output_len)
{
	struct letter *l;
	int rc;

	if (!m || status < ERRAND_COMPLETED || status > ERRAND_FAILED)
		return ERRAND_EARG;
	l = letter_new(m, t);
	l->status = status;
	rc = take_cut(&m->mem, detail, detail_len, m->max.detail, &l->first);
	if (rc == 0)
		rc = take_cut(&m->mem, output, output_len, m->max.result, &l->second);
	if (rc == 0)
		return errand_post(m, settle, l, letter_free);
	letter_free(l);
	return rc;
}

static void answer(void *ud, errand_host *h)
{
	struct letter *l = ud;

	letter_read(l, h, errand_answer(h, l->to, l->first.ptr, l->first.len));
}

int errand_post_answer(errand_mailbox *m, errand_frame f, const char *json, size_t len)
{
	struct letter *l;
	int rc;

	if (!m || !json)
		return ERRAND_EARG;
	l = letter_new(m, f);
	rc = str_json(&m->mem, json, len, m->max.json, &l->first);
	if (rc == 0)
		return errand_post(m, answer, l, letter_free);
	letter_free(l);
	return rc;
}
