/* SPDX-License-Identifier: MIT */
#include "core/names.h"

#include <string.h>

/* FNV-1a. Names come from programs; what a model writes is only looked up. */
static uint64_t hash_of(const char *text, size_t len)
{
	uint64_t h = 0xcbf29ce484222325u;

	for (size_t i = 0; i < len; i++)
		h = (h ^ (unsigned char)text[i]) * 0x100000001b3u;
	return h ? h : 1;
}

void names_init(struct names *s, const struct mem *mem)
{
	map_init(&s->map, mem);
}

void names_release(struct names *s)
{
	map_release(&s->map);
}

struct name *names_get(const struct names *s, const char *text, size_t len)
{
	struct name *n = map_get(&s->map, hash_of(text, len));

	while (n && (n->len != len || memcmp(n->text, text, len) != 0))
		n = n->next;
	return n;
}

void names_put(struct names *s, struct name *n)
{
	n->hash = hash_of(n->text, n->len);
	n->next = map_get(&s->map, n->hash);
	map_put(&s->map, n->hash, n);
}

void names_del(struct names *s, struct name *n)
{
	struct name *first = map_get(&s->map, n->hash);
	struct name **at = &first;

	while (*at && *at != n)
		at = &(*at)->next;
	if (!*at)
		return;
	*at = n->next;
	if (first)
		map_put(&s->map, n->hash, first);
	else
		map_del(&s->map, n->hash);
}
