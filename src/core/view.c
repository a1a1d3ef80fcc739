/* SPDX-License-Identifier: MIT */
#include "core/view.h"

#include "base/list.h"

void view_init(struct view *v, const struct mem *mem, size_t most)
{
	*v = (struct view){.mem = mem};
	v->all = mem_new(mem, (most + 1) * sizeof(*v->all));
	names_init(&v->index, mem);
}

void view_release(struct view *v)
{
	names_release(&v->index);
	mem_free(v->mem, v->all);
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
