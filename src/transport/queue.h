/* SPDX-License-Identifier: MIT */
/*
 * queue.h - lines on their way out, in order, each written as a whole.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"
#include "base/map.h"

struct queue {
	struct list lines;
	struct map by_token;
	size_t bytes;   /* of all lines that wait */
	size_t written; /* of the first one */
};

void queue_init(struct queue *q);
void queue_release(struct queue *q);
/* The memory of @line is taken, a newline added. */
void queue_push(struct queue *q, struct buf *line, uint64_t token);
/* False: it is not in the queue, or has been begun. */
bool queue_remove(struct queue *q, uint64_t token);
/* What is to be written next; false: nothing. */
bool queue_next(const struct queue *q, const char **ret, size_t *ret_len);
/* @n bytes of it were. True: that was the end of a line, which had @ret_token. */
bool queue_advance(struct queue *q, size_t n, uint64_t *ret_token);
