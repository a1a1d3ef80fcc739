/* SPDX-License-Identifier: MIT */
/*
 * map.h - a hash map from a 64-bit id (never 0) to a pointer. It owns neither.
 *
 * Open addressing with deletion by shifting back: no tombstones, so a table that lives for
 * ten million ids is as fast as a new one, and never larger than four times what it holds
 * at its fullest.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"

struct map_slot {
	uint64_t key; /* 0: free */
	void *value;
};

struct map {
	struct map_slot *slots;
	size_t count, cap;
	const struct mem *mem;
};

void map_init(struct map *m, const struct mem *mem);
void map_release(struct map *m);
void *map_get(const struct map *m, uint64_t key); /* NULL: not there */
void map_put(struct map *m, uint64_t key, void *value);
void map_del(struct map *m, uint64_t key);
