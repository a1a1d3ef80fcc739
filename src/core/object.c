/* SPDX-License-Identifier: MIT */
/* object.c - ids, the event queue, and the heap of deadlines. */
#include <string.h>

#include "core/host.h"
#include "core/object.h"

void object_add(errand_host *h, struct object *o, enum object_type type)
{
	object_add_as(h, o, type, h->last_id + 1);
}

void object_add_as(errand_host *h, struct object *o, enum object_type type, uint64_t id)
{
	o->id = id;
	if (h->last_id < id)
		h->last_id = id;
	o->type = type;
	list_add(&h->by_type[type], &o->node);
	map_put(&h->objects, o->id, o);
}

void object_del(errand_host *h, struct object *o)
{
	if (o->id == 0)
		return;
	map_del(&h->objects, o->id);
	list_del(&o->node);
	o->id = 0;
}

void *object_get(const errand_host *h, uint64_t id, enum object_type type)
{
	struct object *o = map_get(&h->objects, id);

	return o && o->type == type ? o : NULL;
}

void *object_first(const errand_host *h, enum object_type type)
{
	const struct list *head = &h->by_type[type];

	return list_is_empty(head) ? NULL : list_entry(head->next, struct object, node);
}

void event_queue(errand_host *h, struct event *ev)
{
	list_add(&h->queue, &ev->node);
}

/* ---- deadlines ---- */

static bool is_before(const struct timer *a, const struct timer *b)
{
	return a->due != b->due ? a->due < b->due : a->seq < b->seq;
}

static void put_at(struct timers *ts, size_t slot, struct timer *t)
{
	ts->heap[slot] = t;
	t->slot = slot;
}

static void sift_up(struct timers *ts, struct timer *t, size_t slot)
{
	while (slot > 0 && is_before(t, ts->heap[(slot - 1) / 2])) {
		put_at(ts, slot, ts->heap[(slot - 1) / 2]);
		slot = (slot - 1) / 2;
	}
	put_at(ts, slot, t);
}

static void sift_down(struct timers *ts, struct timer *t, size_t slot)
{
	size_t child;

	while ((child = slot * 2 + 1) < ts->count) {
		if (child + 1 < ts->count &&
		    is_before(ts->heap[child + 1], ts->heap[child]))
			child++;
		if (!is_before(ts->heap[child], t))
			break;
		put_at(ts, slot, ts->heap[child]);
		slot = child;
	}
	put_at(ts, slot, t);
}

void timer_set(errand_host *h, struct timer *t, int64_t due)
{
	struct timers *ts = &h->timers;

	if (ts->count == ts->cap) {
		ts->cap = ts->cap ? ts->cap * 2 : 16;
		ts->heap = mem_resize(&h->mem, ts->heap, ts->cap * sizeof(struct timer *));
	}
	t->due = due;
	t->seq = ++ts->last_seq;
	sift_up(ts, t, ts->count++);
}

void timer_clear(errand_host *h, struct timer *t)
{
	struct timers *ts = &h->timers;
	struct timer *last;
	size_t slot = t->slot;

	if (slot == TIMER_IDLE)
		return;
	t->slot = TIMER_IDLE;
	last = ts->heap[--ts->count];
	if (last == t)
		return;
	if (is_before(last, t))
		sift_up(ts, last, slot);
	else
		sift_down(ts, last, slot);
}

struct timer *timer_first(const errand_host *h)
{
	return h->timers.count ? h->timers.heap[0] : NULL;
}
