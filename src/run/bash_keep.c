/* SPDX-License-Identifier: MIT */
/*
 * bash_keep.c - the output of ended tasks, within the limits on the disk.
 *
 * The oldest ends go first. What lives stays, and what its owner was not told of: the core
 * refuses to drop it, and it is looked at again in a later turn.
 */
#include "run/bash_internal.h"

static uint64_t kept_of(const struct bash *b, errand_agent owner)
{
	uint64_t bytes = 0;

	for (struct list *n = b->ended.next; n != &b->ended; n = n->next) {
		const struct bash_task *t = list_entry(n, struct bash_task, node);

		bytes += t->owner == owner ? t->kept : 0;
	}
	return bytes;
}

static bool is_over(uint64_t bytes, uint64_t limit)
{
	return limit > 0 && bytes > limit;
}

static bool is_too_much(const struct bash *b, const struct bash_task *t)
{
	uint64_t own = b->config.kept_per_owner;

	if (!t->kept)
		return false;
	return is_over(b->kept, b->config.kept) ||
	       (is_over(b->kept, own) && is_over(kept_of(b, t->owner), own));
}

void bash_keep(struct bash_task *t)
{
	t->kept = t->end.bytes_seen - t->end.bytes_dropped;
	t->bash->kept += t->kept;
	list_add(&t->bash->ended, &t->node);
}

void bash_unkeep(struct bash_task *t)
{
	list_del(&t->node);
	t->bash->kept -= t->kept;
}

size_t bash_make_room(struct bash *b)
{
	size_t n = 0;

	if (!is_over(b->kept, b->config.kept) &&
	    !is_over(b->kept, b->config.kept_per_owner))
		return 0;
	b->is_making_room = true;
	list_each(node, &b->ended)
	{
		const struct bash_task *t = list_entry(node, struct bash_task, node);

		if (is_too_much(b, t) && errand_task_drop(b->host, t->task, NULL) == 0)
			n++;
	}
	b->is_making_room = false;
	return n;
}
