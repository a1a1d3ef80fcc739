/* SPDX-License-Identifier: MIT */
#include "host/owners.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"

/* Each name that a client makes up costs an agent that lives as long as the host. */
#define MAX_OWNERS 10000u

struct owner {
	struct list node;
	struct owner *chain; /* of one hash */
	struct buf name;
	errand_agent agent;
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

int owners_agent(struct owners *o, const char *name, size_t len, errand_agent *ret,
		 struct err *err)
{
	struct errand_agent_options a = {.size = sizeof(a), .session = {name, len}};
	uint64_t hash = hash_of(name, len);
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
	list_add(&o->all, &w->node);
	map_put(&o->by_name, hash, w);
	o->count++;
	*ret = agent;
	return 0;
}

void owners_release(struct owners *o)
{
	list_each(node, &o->all)
	{
		struct owner *w = list_entry(node, struct owner, node);

		buf_release(&w->name);
		mem_free(NULL, w);
	}
	map_release(&o->by_name);
	owners_init(o);
}
