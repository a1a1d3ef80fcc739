/* SPDX-License-Identifier: MIT */
#include "core/view.h"

#include "core/host.h"

static const struct list *list_at(const struct layer *l, size_t offset)
{
	return (const struct list *)(const void *)((const char *)l + offset);
}

void view_of(struct view *v, const errand_host *h, const struct scope *scope, size_t list,
	     void (*put)(struct view *v, const struct layer *l, struct list *node))
{
	size_t layers, most = 0;
	const struct layer **chain = chain_from_far(h, scope, &layers);

	for (size_t i = 0; i < layers; i++)
		list_each(node, list_at(chain[i], list)) most++;
	*v = (struct view){.host = h, .scope = scope};
	v->all = mem_new(&h->mem, (most + 1) * sizeof(*v->all));
	names_init(&v->index, &h->mem);
	for (size_t i = 0; i < layers; i++)
		list_each(node, list_at(chain[i], list)) put(v, chain[i], node);
	mem_free(&h->mem, chain);
}

void view_release(struct view *v)
{
	names_release(&v->index);
	mem_free(&v->host->mem, v->all);
}

void view_put(struct view *v, const char *name, size_t len, const void *thing)
{
	struct name *n = names_get(&v->index, name, len);
	struct seen *s;

	if (n) {
		list_entry(n, struct seen, name)->thing = thing;
		return;
	}
	s = &v->all[v->count++];
	s->name.text = name;
	s->name.len = len;
	s->thing = thing;
	names_put(&v->index, &s->name);
}
