/* SPDX-License-Identifier: MIT */
#include "host/owners.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"

/* Each name that a client makes up costs an agent that lives as long as the host. */
#define MAX_OWNERS 10000u

struct owner {
	struct list node, dirty;
	struct owner *chain; /* of one hash */
	struct buf name;
	errand_agent agent;
	struct list told; /* struct record, the one told first in front */
	int64_t told_count;
};

/* A task that has ended. */
struct record {
	struct list node; /* in told */
	struct record *chain;
	struct owner *owner;
	struct buf id;
	errand_task task;
	uint64_t hash;
	bool is_told;
};

/* A task that has ended, but the core has not said so yet. */
struct end {
	struct list node;
	errand_agent agent;
	errand_task task;
};

static uint64_t hash_of(uint64_t seed, const char *s, size_t len)
{
	uint64_t h = 14695981039346656037u ^ seed; /* FNV-1a */

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)s[i]) * 1099511628211u;
	return h ? h : 1; /* a map's key is never 0 */
}

static bool is_text(const struct buf *b, const char *s, size_t len)
{
	return b->len == len && (len == 0 || memcmp(b->data, s, len) == 0);
}

void owners_init(struct owners *o, int64_t keep)
{
	*o = (struct owners){.keep = keep};
	list_init(&o->all);
	list_init(&o->ended);
	list_init(&o->dirty);
	map_init(&o->by_name, NULL);
	map_init(&o->by_agent, NULL);
	map_init(&o->records, NULL);
}

/* ---- names ---- */

static struct owner *find_name(const struct owners *o, uint64_t hash, const char *name,
			       size_t len)
{
	struct owner *w = map_get(&o->by_name, hash);

	while (w && !is_text(&w->name, name, len))
		w = w->chain;
	return w;
}

int owners_agent(struct owners *o, const char *name, size_t len, errand_agent *ret,
		 struct err *err)
{
	struct errand_agent_options a = {.size = sizeof(a), .session = {name, len}};
	uint64_t hash = hash_of(0, name, len);
	struct owner *w = find_name(o, hash, name, len);
	errand_error *e = NULL;
	errand_agent agent;

	if (w) {
		*ret = w->agent;
		return 0;
	}
	if (o->count >= MAX_OWNERS)
		return err_set(err, ERR_LIMIT, "there are %u owners already", MAX_OWNERS);
	if (errand_agent_new(o->host, &a, &agent, &e) < 0) {
		(void)err_set(err, ERR_ARG, "%.200s", errand_error_message(e, NULL));
		errand_error_free(e);
		return -ERR_ARG;
	}
	w = mem_new(NULL, sizeof(*w));
	buf_init(&w->name, MAX_LABEL);
	buf_add(&w->name, name, len);
	w->agent = agent;
	w->chain = map_get(&o->by_name, hash);
	list_init(&w->told);
	list_init(&w->dirty);
	list_add(&o->all, &w->node);
	map_put(&o->by_name, hash, w);
	map_put(&o->by_agent, agent, w);
	o->count++;
	*ret = agent;
	return 0;
}

/* ---- records ---- */

static struct record *find_record(const struct owners *o, uint64_t hash,
				  const struct owner *w, const char *id, size_t len)
{
	struct record *r = map_get(&o->records, hash);

	while (r && (r->owner != w || !is_text(&r->id, id, len)))
		r = r->chain;
	return r;
}

static void record_free(struct owners *o, struct record *r)
{
	struct record *first = map_get(&o->records, r->hash), **at = &first;

	while (*at && *at != r)
		at = &(*at)->chain;
	if (*at)
		*at = r->chain;
	if (first)
		map_put(&o->records, r->hash, first);
	else
		map_del(&o->records, r->hash);
	if (r->is_told)
		r->owner->told_count--;
	list_del(&r->node);
	buf_release(&r->id);
	mem_free(NULL, r);
}

static void tell(struct owners *o, struct record *r)
{
	struct owner *w = r->owner;

	if (!r->is_told) {
		r->is_told = true;
		list_add(&w->told, &r->node);
		w->told_count++;
	}
	if (w->told_count > o->keep && list_is_empty(&w->dirty))
		list_add(&o->dirty, &w->dirty);
}

static struct record *record_new(struct owners *o, struct owner *w, errand_task t,
				 const char *id, size_t len)
{
	struct record *r = mem_new(NULL, sizeof(*r));

	r->owner = w;
	r->task = t;
	r->hash = hash_of(w->agent, id, len);
	r->chain = map_get(&o->records, r->hash);
	list_init(&r->node);
	buf_init(&r->id, MAX_LABEL);
	buf_add(&r->id, id, len);
	map_put(&o->records, r->hash, r);
	return r;
}

void owners_task_ended(struct owners *o, errand_agent agent, errand_task t)
{
	struct end *e = mem_new(NULL, sizeof(*e));

	e->agent = agent;
	e->task = t;
	list_add(&o->ended, &e->node);
}

static struct end *first_end(const struct owners *o, errand_agent agent)
{
	for (struct list *n = o->ended.next; n != &o->ended; n = n->next) {
		struct end *e = list_entry(n, struct end, node);

		if (e->agent == agent)
			return e;
	}
	return NULL;
}

/* The core has processed an end: now the task's id is known, and whether it was told. */
static int on_done(void *ud, errand_host *h, errand_reg self, errand_agent agent,
		   const char *json, size_t len, errand_error *error)
{
	struct owners *o = ud;
	struct end *e = first_end(o, agent);
	struct owner *w = map_get(&o->by_agent, agent);
	struct js *snapshot = NULL;
	struct record *r;
	const char *id;
	size_t id_len;

	(void)h;
	(void)self;
	(void)error;
	if (!e)
		return 0;
	if (w && js_parse(json, len, &snapshot, NULL) == 0) {
		id = js_string(js_get(snapshot, "id"), &id_len);
		r = id ? record_new(o, w, e->task, id, id_len) : NULL;
		if (r && js_is_true(js_get(snapshot, "reported")))
			tell(o, r);
		js_free(snapshot);
	}
	list_del(&e->node);
	mem_free(NULL, e);
	return 0;
}

int owners_watch(struct owners *o, errand_host *h)
{
	errand_reg reg;

	o->host = h;
	return errand_on(h, 0, ERRAND_ON_DONE, on_done, o, NULL, &reg, NULL);
}

void owners_told(struct owners *o, errand_agent agent, const char *id, size_t len)
{
	struct owner *w = map_get(&o->by_agent, agent);
	struct record *r = w ? find_record(o, hash_of(agent, id, len), w, id, len) : NULL;

	if (r)
		tell(o, r);
}

/*
 * Each of the surplus is tried once. One that the core keeps yet (a lease holds it, or its
 * report came back) goes to the end of the row.
 */
static void trim(struct owners *o, struct owner *w)
{
	for (int64_t n = w->told_count - o->keep; n > 0; n--) {
		struct record *r = list_entry(w->told.next, struct record, node);

		if (errand_task_drop(o->host, r->task, NULL) != ERRAND_ESTATE) {
			record_free(o, r);
			continue;
		}
		list_del(&r->node);
		list_add(&w->told, &r->node);
	}
}

void owners_trim(struct owners *o)
{
	while (!list_is_empty(&o->dirty)) {
		struct owner *w = list_entry(o->dirty.next, struct owner, dirty);

		list_del(&w->dirty);
		trim(o, w);
	}
}

/* ---- life ---- */

static void release_records(struct owners *o)
{
	for (size_t i = 0; i < o->records.cap; i++) {
		struct record *r = o->records.slots[i].value;

		while (o->records.slots[i].key && r) {
			struct record *next = r->chain;

			buf_release(&r->id);
			mem_free(NULL, r);
			r = next;
		}
	}
	map_release(&o->records);
}

void owners_release(struct owners *o)
{
	release_records(o);
	list_each(node, &o->ended) mem_free(NULL, list_entry(node, struct end, node));
	list_each(node, &o->all)
	{
		struct owner *w = list_entry(node, struct owner, node);

		buf_release(&w->name);
		mem_free(NULL, w);
	}
	map_release(&o->by_name);
	map_release(&o->by_agent);
	owners_init(o, o->keep);
}
