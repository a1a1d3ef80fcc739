/* SPDX-License-Identifier: MIT */
#include "host/owners.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"

/* Each name that a client makes up costs an agent that lives as long as the host. */
#define MAX_OWNERS 10000u

/* How often it is looked whether a task that keeps a name has ended. */
#define LOOK_MS INT64_C(600000)
/* How exactly it is remembered when somebody was there last. */
#define SEEN_MS INT64_C(3600000)

struct owner {
	struct list node;
	struct owner *chain; /* of one hash */
	uint64_t hash;
	struct owners *owners; /* NULL: they are gone */
	struct buf name;
	errand_agent agent;
	size_t clients;    /* connected now */
	int64_t due_ms;    /* to be disposed of then, if nobody comes; INT64_MAX: never */
	int64_t told_ms;   /* when owners.seen was told; INT64_MIN: never */
	bool told_clients; /* and what */
	bool is_ending;
};

static uint64_t hash_of(const char *s, size_t len)
{
	uint64_t h = 14695981039346656037u; /* FNV-1a */

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)s[i]) * 1099511628211u;
	return h ? h : 1; /* a map's key is never 0 */
}

static bool is_text(const struct buf *b, const char *s, size_t len)
{
	return b->len == len && (len == 0 || memcmp(b->data, s, len) == 0);
}

void owners_init(struct owners *o)
{
	*o = (struct owners){0};
	list_init(&o->all);
	map_init(&o->by_name, NULL);
}

static struct owner *find_name(const struct owners *o, uint64_t hash, const char *name,
			       size_t len)
{
	struct owner *w = map_get(&o->by_name, hash);

	while (w && !is_text(&w->name, name, len))
		w = w->chain;
	return w;
}

static void chain_remove(struct owners *o, struct owner *w)
{
	struct owner *first = map_get(&o->by_name, w->hash), **at = &first;

	while (*at && *at != w)
		at = &(*at)->chain;
	if (*at)
		*at = w->chain;
	if (first)
		map_put(&o->by_name, w->hash, first);
	else
		map_del(&o->by_name, w->hash);
}

static void owner_free(struct owner *w)
{
	buf_release(&w->name);
	mem_free(NULL, w);
}

/* ---- coming and going ---- */

static bool is_made_up(const struct owner *w)
{
	return w->name.len > 0 && *w->name.data == '~';
}

static void tell_seen(struct owners *o, struct owner *w, int64_t mono_ms)
{
	bool has_clients = w->clients > 0;

	if (!o->seen || is_made_up(w))
		return;
	if (w->told_ms != INT64_MIN && w->told_clients == has_clients &&
	    mono_ms - w->told_ms < SEEN_MS)
		return;
	w->told_ms = mono_ms;
	w->told_clients = has_clients;
	o->seen(o->ud, w->name.data, w->name.len, has_clients);
}

/* Somebody was there just now. */
static void touch(struct owners *o, struct owner *w, int64_t mono_ms)
{
	int64_t stay = is_made_up(w) ? o->grace_ms : o->keep_ms;

	w->due_ms = w->clients > 0 || stay == 0 ? INT64_MAX : mono_ms + stay;
	tell_seen(o, w, mono_ms);
}

/* NULL: there can be no more. */
static struct owner *add(struct owners *o, uint64_t hash, const char *name, size_t len,
			 struct err *err)
{
	struct errand_agent_options a = {.size = sizeof(a), .session = {name, len}};
	errand_error *e = NULL;
	errand_agent agent;
	struct owner *w = NULL;

	if (o->count >= MAX_OWNERS) {
		(void)err_set(err, ERR_LIMIT, "there are %u owners already", MAX_OWNERS);
		return NULL;
	}
	if (errand_agent_new(o->host, &a, &agent, &e) < 0) {
		(void)err_set(err, ERR_LIMIT, "%.200s", errand_error_message(e, NULL));
		errand_error_free(e);
		return NULL;
	}
	w = mem_new(NULL, sizeof(*w));
	buf_init(&w->name, MAX_LABEL);
	buf_add(&w->name, name, len);
	w->agent = agent;
	w->clients = o->connected ? o->connected(o->ud, name, len) : 0;
	w->told_ms = INT64_MIN;
	w->hash = hash;
	w->owners = o;
	w->chain = map_get(&o->by_name, hash);
	list_add(&o->all, &w->node);
	map_put(&o->by_name, hash, w);
	o->count++;
	return w;
}

static int get(struct owners *o, const char *name, size_t len, struct owner **ret,
	       struct err *err)
{
	uint64_t hash = hash_of(name, len);
	struct owner *w = find_name(o, hash, name, len);

	if (!w)
		w = add(o, hash, name, len, err);
	if (!w)
		return -ERR_LIMIT;
	if (w->is_ending)
		return err_set(err, ERR_STATE,
			       "the session '%.100s' is just ending: try again", name);
	*ret = w;
	return 0;
}

int owners_agent(struct owners *o, const char *name, size_t len, int64_t mono_ms,
		 errand_agent *ret, struct err *err)
{
	struct owner *w = NULL;
	int rc = get(o, name, len, &w, err);

	if (!w)
		return rc;
	touch(o, w, mono_ms);
	*ret = w->agent;
	return 0;
}

static const struct owner *find_agent(const struct owners *o, errand_agent agent)
{
	for (struct list *n = o->all.next; n != &o->all; n = n->next) {
		const struct owner *w = list_entry(n, struct owner, node);

		if (w->agent == agent)
			return w;
	}
	return NULL;
}

const char *owners_name(const struct owners *o, errand_agent agent, size_t *ret_len)
{
	const struct owner *w = find_agent(o, agent);

	if (!w)
		return NULL;
	*ret_len = w->name.len;
	return buf_text(&w->name);
}

bool owners_is_ending(const struct owners *o, errand_agent agent)
{
	const struct owner *w = find_agent(o, agent);

	return w && w->is_ending;
}

int owners_enter(struct owners *o, const char *name, size_t len, int64_t mono_ms,
		 struct err *err)
{
	struct owner *w = NULL;
	int rc = get(o, name, len, &w, err);

	if (!w)
		return rc;
	w->clients++;
	touch(o, w, mono_ms);
	return 0;
}

void owners_leave(struct owners *o, const char *name, size_t len, int64_t mono_ms)
{
	struct owner *w = find_name(o, hash_of(name, len), name, len);

	if (!w || w->clients == 0)
		return;
	w->clients--;
	touch(o, w, mono_ms);
}

bool owners_away(struct owners *o, const char *name, size_t len, int64_t mono_ms,
		 int64_t away_ms)
{
	struct owner *w = find_name(o, hash_of(name, len), name, len);
	int64_t stay = o->keep_ms - away_ms;
	/* A clock may have been wrong: whoever wants to come back has the time to. */
	int64_t least = o->grace_ms < o->keep_ms ? o->grace_ms : o->keep_ms;

	if (!w)
		return false;
	if (o->keep_ms > 0)
		w->due_ms = mono_ms + (stay > least ? stay : least);
	w->told_ms = mono_ms;
	return true;
}

/* ---- the end of one ---- */

struct counted {
	size_t tasks, live;
};

static void count_task(void *ud, struct js_span task)
{
	struct js_span status = js_member(task, "status");
	struct counted *n = ud;

	n->tasks++;
	if (status.len > 2 &&
	    (memcmp(status.ptr, "\"ru", 3) == 0 || memcmp(status.ptr, "\"st", 3) == 0))
		n->live++;
}

static struct counted count_tasks(const struct owner *w)
{
	struct counted n = {0};
	errand_text *json = NULL;
	struct js_span all;

	if (errand_list(w->owners->host, w->agent, &json, NULL) < 0)
		return n;
	all.ptr = errand_text_data(json, &all.len);
	js_each(all, count_task, &n);
	errand_text_free(json);
	return n;
}

static void on_disposed(void *ud, errand_host *h)
{
	struct owner *w = ud;

	(void)h;
	if (!w->owners)
		return;
	if (w->owners->gone && !is_made_up(w))
		w->owners->gone(w->owners->ud, w->name.data, w->name.len);
	chain_remove(w->owners, w);
	w->owners->count--;
	list_del(&w->node);
	w->owners = NULL;
}

static void on_forgotten(void *ud)
{
	struct owner *w = ud;

	w->is_ending = false;
	if (!w->owners)
		owner_free(w);
}

bool owners_is_left(const struct owners *o, const char *name, size_t len)
{
	const struct owner *w = find_name(o, hash_of(name, len), name, len);

	return w && w->clients == 0 && count_tasks(w).tasks > 0;
}

static void dispose(struct owner *w)
{
	w->due_ms = INT64_MAX;
	w->is_ending = true;
	if (errand_agent_dispose(w->owners->host, w->agent, on_disposed, w, on_forgotten,
				 NULL) < 0)
		w->is_ending = false;
}

int64_t owners_deadline(const struct owners *o)
{
	int64_t due = INT64_MAX;

	for (struct list *n = o->all.next; n != &o->all; n = n->next) {
		const struct owner *w = list_entry(n, struct owner, node);

		due = w->due_ms < due ? w->due_ms : due;
	}
	return due;
}

void owners_tick(struct owners *o, int64_t mono_ms)
{
	list_each(node, &o->all)
	{
		struct owner *w = list_entry(node, struct owner, node);

		if (w->due_ms > mono_ms)
			continue;
		if (!is_made_up(w) && count_tasks(w).live)
			w->due_ms = mono_ms + LOOK_MS;
		else
			dispose(w);
	}
}

/* ---- for people ---- */

void owners_each(const struct owners *o, void (*fn)(void *ud, const struct owner_view *v),
		 void *ud)
{
	for (struct list *n = o->all.next; n != &o->all; n = n->next) {
		const struct owner *w = list_entry(n, struct owner, node);
		struct counted tasks = count_tasks(w);
		struct owner_view v = {
			.name = w->name.data,
			.name_len = w->name.len,
			.clients = w->clients,
			.tasks = tasks.tasks,
			.live = tasks.live,
			.due_ms = w->due_ms,
		};

		fn(ud, &v);
	}
}

int owners_end(struct owners *o, const char *name, size_t len, size_t *ret_live,
	       struct err *err)
{
	struct owner *w = find_name(o, hash_of(name, len), name, len);

	if (!w || w->is_ending)
		return err_set(err, ERR_NOT_FOUND, "there is no session '%.100s'", name);
	*ret_live = count_tasks(w).live;
	dispose(w);
	return 0;
}

void owners_release(struct owners *o)
{
	list_each(node, &o->all)
	{
		struct owner *w = list_entry(node, struct owner, node);

		w->owners = NULL;
		list_del(node);
		if (!w->is_ending)
			owner_free(w);
	}
	map_release(&o->by_name);
	owners_init(o);
}
