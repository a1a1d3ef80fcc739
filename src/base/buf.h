/* SPDX-License-Identifier: MIT */
/*
 * buf.h - a byte buffer that is born with its maximum.
 *
 * Appending beyond the maximum, or a failed allocation, makes the buffer bad: it keeps
 * what it had, takes nothing more, and buf_error() says why. So a writer may append a
 * whole reply and look once. A buffer that holds something is NUL-terminated.
 *
 * One of buf_init_mem() cannot lack memory: a failed allocation is mem_fail(). It is for what
 * must not get lost and is nobody's answer. Where the size is a caller's, or somebody can be
 * told, it is buf_init_try().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/mem.h"

struct buf {
	char *data; /* NULL while empty and never written */
	size_t len, cap, max;
	int error;    /* 0, -ERR_LIMIT or -ERR_NOMEM */
	bool is_sure; /* never -ERR_NOMEM */
	const struct mem *mem;
};

#define BUF_INIT(maximum)                                                                  \
	{                                                                                  \
		.max = (maximum)                                                           \
	}

void buf_init(struct buf *b, size_t max);
void buf_init_mem(struct buf *b, size_t max, const struct mem *mem);
void buf_init_try(struct buf *b, size_t max, const struct mem *mem);
void buf_release(struct buf *b); /* back to empty, with the same maximum */
void buf_clear(struct buf *b);   /* keeps the memory; forgets an error */

/* All return 0, or the buffer's error. */
int buf_add(struct buf *b, const void *bytes, size_t len);
int buf_adds(struct buf *b, const char *s);
int buf_addc(struct buf *b, char c);
int buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_reserve(struct buf *b, size_t more); /* room for @more, so that it can be filled */
void buf_cut(struct buf *b, size_t len);     /* shorten to @len */
void buf_drop(struct buf *b, size_t n);      /* take @n bytes off the front */

static inline int buf_error(const struct buf *b)
{
	return b->error;
}
static inline size_t buf_room(const struct buf *b)
{
	return b->error ? 0 : b->max - b->len;
}
/* The text, "" for an empty buffer; borrowed until the next append. */
static inline const char *buf_text(const struct buf *b)
{
	return b->data ? b->data : "";
}
/* Hand the memory over (never NULL); the buffer is empty again. Free with mem_free(). */
char *buf_take(struct buf *b, size_t *ret_len);
