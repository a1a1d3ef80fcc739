/* SPDX-License-Identifier: MIT */
#include "host/requests.h"

#include <string.h>

#include "base/limits.h"

/* Clients that never came back leave theirs; the store forgets by age. */
#define MAX_REQUESTS 10000

static struct request *entry(struct list *node)
{
	return list_entry(node, struct request, node);
}

void requests_init(struct requests *r)
{
	list_init(&r->all);
	r->count = 0;
}

static void forget(struct requests *r, struct request *q)
{
	list_del(&q->node);
	buf_release(&q->ids);
	mem_free(NULL, q);
	r->count--;
}

void requests_release(struct requests *r)
{
	list_each(node, &r->all) forget(r, entry(node));
}

static struct request *find(const struct requests *r, const char *nonce, uint64_t number)
{
	for (struct list *node = r->all.next; node != &r->all; node = node->next) {
		struct request *q = entry(node);

		if (q->number == number && strcmp(q->nonce, nonce) == 0)
			return q;
	}
	return NULL;
}

static struct request *add(struct requests *r, const char *nonce, uint64_t number)
{
	struct request *q = mem_new(NULL, sizeof(*q));

	if (r->count >= MAX_REQUESTS)
		forget(r, entry(r->all.next));
	(void)snprintf(q->nonce, sizeof(q->nonce), "%s", nonce);
	q->number = number;
	buf_init(&q->ids, KIB(64));
	list_add(&r->all, &q->node);
	r->count++;
	return q;
}

const struct request *requests_note(struct requests *r, const char *nonce, uint64_t number,
				    const char *id)
{
	struct request *q = find(r, nonce, number);

	if (!q)
		q = add(r, nonce, number);
	buf_addf(&q->ids, "%s%s", q->ids.len ? " " : "", id);
	q->used = q->ids.len;
	return q;
}

const struct request *requests_answer(struct requests *r, const char *nonce,
				      uint64_t number, const char *text, size_t len)
{
	struct request *q = find(r, nonce, number);

	if (!q)
		q = add(r, nonce, number);
	buf_clear(&q->ids);
	buf_add(&q->ids, text, len);
	q->used = q->ids.len;
	return q;
}

const char *requests_answered(const struct requests *r, const char *nonce, uint64_t number)
{
	const struct request *q = find(r, nonce, number);

	return q && q->used == 0 ? buf_text(&q->ids) : NULL;
}

bool requests_forget(struct requests *r, const char *nonce)
{
	size_t before = r->count;

	list_each(node, &r->all)
	{
		if (strcmp(entry(node)->nonce, nonce) == 0)
			forget(r, entry(node));
	}
	return r->count < before;
}

void requests_put(struct requests *r, const char *nonce, uint64_t number, const char *ids,
		  size_t len)
{
	buf_add(&add(r, nonce, number)->ids, ids, len);
}

const char *requests_take(struct requests *r, const char *nonce, uint64_t number)
{
	struct request *q = find(r, nonce, number);
	const char *from;
	size_t len;

	if (!q || q->used >= q->ids.len)
		return NULL;
	from = q->ids.data + q->used;
	from += strspn(from, " ");
	len = strcspn(from, " ");
	q->used = (size_t)(from - q->ids.data) + len;
	(void)snprintf(q->id, sizeof(q->id), "%.*s", (int)len, from);
	return q->id;
}

void requests_rewind(struct requests *r, const char *nonce)
{
	list_each(node, &r->all)
	{
		if (strcmp(entry(node)->nonce, nonce) == 0)
			entry(node)->used = 0;
	}
}

bool requests_seen(struct requests *r, const char *nonce, uint64_t number,
		   uint64_t *ret_seen)
{
	struct request *q = find(r, nonce, number);
	uint64_t seen = UINT64_MAX;

	if (!q)
		return false;
	forget(r, q);
	list_each(node, &r->all)
	{
		q = entry(node);
		if (strcmp(q->nonce, nonce) == 0 && q->number <= seen)
			seen = q->number - 1;
	}
	*ret_seen = seen < number ? seen : number;
	return true;
}
