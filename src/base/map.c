/* SPDX-License-Identifier: MIT */
#include "base/map.h"

static size_t home(const struct map *m, uint64_t key)
{
	key *= 0x9e3779b97f4a7c15u;
	return (size_t)(key >> 32) & (m->cap - 1);
}

void map_init(struct map *m, const struct mem *mem)
{
	*m = (struct map){.mem = mem};
}

void map_release(struct map *m)
{
	mem_free(m->mem, m->slots);
	map_init(m, m->mem);
}

/* The slot of @key, or the free one where it would go. */
static struct map_slot *find(const struct map *m, uint64_t key)
{
	size_t i = home(m, key);

	while (m->slots[i].key != 0 && m->slots[i].key != key)
		i = (i + 1) & (m->cap - 1);
	return &m->slots[i];
}

void *map_get(const struct map *m, uint64_t key)
{
	struct map_slot *s;

	if (m->cap == 0)
		return NULL;
	s = find(m, key);
	return s->key == key && key != 0 ? s->value : NULL;
}

static void grow(struct map *m)
{
	struct map old = *m;

	m->cap = old.cap ? old.cap * 2 : 16;
	m->slots = mem_new(m->mem, m->cap * sizeof(*m->slots));
	for (size_t i = 0; i < old.cap; i++)
		if (old.slots[i].key != 0)
			*find(m, old.slots[i].key) = old.slots[i];
	mem_free(m->mem, old.slots);
}

void map_put(struct map *m, uint64_t key, void *value)
{
	struct map_slot *s;

	if ((m->count + 1) * 2 > m->cap)
		grow(m);
	s = find(m, key);
	m->count += s->key != key;
	*s = (struct map_slot){key, value};
}

void map_del(struct map *m, uint64_t key)
{
	size_t hole, i, want;

	if (m->cap == 0 || find(m, key)->key != key)
		return;
	hole = (size_t)(find(m, key) - m->slots);
	m->count--;
	for (i = (hole + 1) & (m->cap - 1); m->slots[i].key != 0;
	     i = (i + 1) & (m->cap - 1)) {
		want = home(m, m->slots[i].key);
		/* Move it back unless its home lies between the hole and where it is. */
		if (((i - want) & (m->cap - 1)) >= ((i - hole) & (m->cap - 1))) {
			m->slots[hole] = m->slots[i];
			hole = i;
		}
	}
	m->slots[hole] = (struct map_slot){0, NULL};
}
