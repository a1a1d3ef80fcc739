/* SPDX-License-Identifier: MIT */
/* view.h - things by name as one reader sees them: a nearer one takes the place of a farther
 * one of the same name (spec 3.9, 8.2). */
#pragma once

#include <stddef.h>

#include "core/names.h"

struct seen {
	struct name name;
	const void *thing;
};

struct view {
	const struct mem *mem;
	struct seen *all; /* in the order in which the names came */
	size_t count;
	struct names index;
};

void view_init(struct view *v, const struct mem *mem, size_t most);
void view_release(struct view *v);
/* @name must outlive the view. Put far ones first, and at most as many as were announced. */
void view_put(struct view *v, const char *name, size_t len, const void *thing);
