/* SPDX-License-Identifier: MIT */
#include "base/arena.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>

#define MAX_BLOCK ((size_t)1 << 20) /* unless one piece needs more */

struct block {
	struct block *before;
};

struct arena {
	struct block *newest;
	char *at, *end; /* what is free of it */
	size_t next_size;
};

/* In front of each piece. */
struct head {
	alignas(max_align_t) struct arena *owner;
};

static size_t rounded(size_t n)
{
	return (n + sizeof(struct head) - 1) / sizeof(struct head) * sizeof(struct head);
}

static struct block *block_new(size_t size, struct block *before)
{
	struct block *b = malloc(size);

	if (b)
		b->before = before;
	return b;
}

struct arena *arena_new(size_t first_size)
{
	size_t used = rounded(sizeof(struct block)) + rounded(sizeof(struct arena));
	struct block *b = block_new(used + first_size, NULL);
	struct arena *a;

	if (!b)
		return NULL;
	a = (struct arena *)(void *)((char *)b + rounded(sizeof(struct block)));
	a->newest = b;
	a->at = (char *)b + used;
	a->end = a->at + first_size;
	a->next_size = first_size;
	return a;
}

void arena_free(struct arena *a)
{
	struct block *b = a ? a->newest : NULL;

	while (b) { /* the oldest holds *a */
		struct block *before = b->before;

		free(b);
		b = before;
	}
}

static int grow(struct arena *a, size_t need)
{
	size_t used = rounded(sizeof(struct block));
	size_t size = a->next_size < MAX_BLOCK / 2 ? a->next_size * 2 : MAX_BLOCK;
	struct block *b;

	if (size < need)
		size = need;
	b = block_new(used + size, a->newest);
	if (!b)
		return -1;
	a->newest = b;
	a->at = (char *)b + used;
	a->end = a->at + size;
	a->next_size = size < MAX_BLOCK ? size : MAX_BLOCK;
	return 0;
}

void *arena_take(struct arena *a, size_t n)
{
	struct head *h;
	size_t need;

	if (n > SIZE_MAX / 4)
		return NULL;
	need = sizeof(struct head) + rounded(n);
	if ((size_t)(a->end - a->at) < need && grow(a, need) != 0)
		return NULL;
	h = (struct head *)(void *)a->at;
	a->at += need;
	h->owner = a;
	return h + 1;
}

struct arena *arena_of(const void *p)
{
	return ((const struct head *)p - 1)->owner;
}
