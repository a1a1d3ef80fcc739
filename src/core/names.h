/* SPDX-License-Identifier: MIT */
/*
 * names.h - a set of objects by name. The object has a struct name in it, whose text it
 * owns; the set owns nothing but its table.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/map.h"

struct name {
	struct name *next; /* of the same hash */
	uint64_t hash;
	const char *text;
	size_t len;
};

struct names {
	struct map map; /* hash -> first of the chain */
};

void names_init(struct names *s, const struct mem *mem);
void names_release(struct names *s);
struct name *names_get(const struct names *s, const char *text, size_t len);
void names_put(struct names *s, struct name *n); /* not one that is in it already */
void names_del(struct names *s, struct name *n); /* nothing, if it is not in it */
