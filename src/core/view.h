/* SPDX-License-Identifier: MIT */
/* view.h - things by name as one reader sees them: a nearer one takes the place of a farther
 * one of the same name (spec 3.9, 8.2). */
#pragma once

#include <stddef.h>

#include "core/names.h"
#include "core/scope.h"

struct seen {
	struct name name;
	const void *thing;
};

struct view {
	const errand_host *host;
	const struct scope *scope; /* the reader's */
	struct seen *all;          /* in the order in which the names came */
	size_t count;
	struct names index;
};

/* What @scope sees of one of a layer's lists, which lies at offset @list: @put is called for each
 * node, from far to near, and gives it to view_put(), or not. */
void view_of(struct view *v, const errand_host *h, const struct scope *scope, size_t list,
	     void (*put)(struct view *v, const struct layer *l, struct list *node));
void view_release(struct view *v);
/* @name must outlive the view. Once for a node at the most. */
void view_put(struct view *v, const char *name, size_t len, const void *thing);
