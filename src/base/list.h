/* SPDX-License-Identifier: MIT */
/*
 * list.h - an intrusive doubly linked list. A node that is in no list points to itself, so
 * list_del() is always safe.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

struct list {
	struct list *prev, *next;
};

static inline void list_init(struct list *l)
{
	l->prev = l->next = l;
}
static inline bool list_is_empty(const struct list *l)
{
	return l->next == l;
}
/* Put @node before @at: at the end, if @at is the head of a list. */
static inline void list_add(struct list *at, struct list *node)
{
	node->prev = at->prev;
	node->next = at;
	at->prev->next = node;
	at->prev = node;
}
static inline void list_del(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}
/* Put all nodes of @from, in their order, before @at; @from is empty then. */
static inline void list_move(struct list *at, struct list *from)
{
	if (list_is_empty(from))
		return;
	from->next->prev = at->prev;
	from->prev->next = at;
	at->prev->next = from->next;
	at->prev = from->prev;
	list_init(from);
}

#define list_entry(node, type, member)                                                     \
	((type *)(void *)((char *)(node)-offsetof(type, member)))
/* The current entry may be removed in the body. */
#define list_each(pos, head)                                                               \
	for (struct list *pos = (head)->next, *pos##_next = pos->next; pos != (head);      \
	     pos = pos##_next, pos##_next = pos->next)
