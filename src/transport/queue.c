/* SPDX-License-Identifier: MIT */
#include "transport/queue.h"

struct line {
	struct list node;
	struct buf text;
	uint64_t token;
};

void queue_init(struct queue *q)
{
	*q = (struct queue){0};
	list_init(&q->lines);
	map_init(&q->by_token, NULL);
}

static struct line *first(const struct queue *q)
{
	return list_entry(q->lines.next, struct line, node);
}

static void drop(struct queue *q, struct line *l)
{
	q->bytes -= l->text.len;
	if (l->token)
		map_del(&q->by_token, l->token);
	list_del(&l->node);
	buf_release(&l->text);
	mem_free(NULL, l);
}

void queue_release(struct queue *q)
{
	while (!list_is_empty(&q->lines))
		drop(q, first(q));
	map_release(&q->by_token);
}

void queue_push(struct queue *q, struct buf *line, uint64_t token)
{
	struct line *l = mem_new(NULL, sizeof(*l));

	l->text = *line;
	l->token = token;
	*line = (struct buf){.max = line->max};
	/* The newline is not part of what the line's maximum is about. */
	l->text.max = l->text.len + 1;
	(void)buf_addc(&l->text, '\n');
	list_add(&q->lines, &l->node);
	q->bytes += l->text.len;
	if (token)
		map_put(&q->by_token, token, l);
}

bool queue_remove(struct queue *q, uint64_t token)
{
	struct line *l = map_get(&q->by_token, token);

	if (!l || (l == first(q) && q->written > 0))
		return false;
	drop(q, l);
	return true;
}

bool queue_next(const struct queue *q, const char **ret, size_t *ret_len)
{
	if (list_is_empty(&q->lines))
		return false;
	*ret = first(q)->text.data + q->written;
	*ret_len = first(q)->text.len - q->written;
	return true;
}

bool queue_advance(struct queue *q, size_t n, uint64_t *ret_token)
{
	q->written += n;
	if (q->written < first(q)->text.len)
		return false;
	*ret_token = first(q)->token;
	q->written = 0;
	drop(q, first(q));
	return true;
}
