/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

void buf_init(struct buf *b, size_t max)
{
	buf_init_try(b, max, NULL);
}

void buf_init_mem(struct buf *b, size_t max, const struct mem *mem)
{
	*b = (struct buf){.max = max, .mem = mem, .is_sure = true};
}

void buf_init_try(struct buf *b, size_t max, const struct mem *mem)
{
	*b = (struct buf){.max = max, .mem = mem};
}

void buf_release(struct buf *b)
{
	mem_free(b->mem, b->data);
	*b = (struct buf){.max = b->max, .mem = b->mem, .is_sure = b->is_sure};
}

void buf_clear(struct buf *b)
{
	buf_cut(b, 0);
	b->error = 0;
}

int buf_reserve(struct buf *b, size_t more)
{
	size_t cap;
	char *p;

	if (b->error)
		return b->error;
	if (more > b->max - b->len)
		return b->error = -ERR_LIMIT;
	if (b->data && b->len + more < b->cap)
		return 0;
	cap = b->cap ? b->cap * 2 : 64;
	if (cap < b->len + more + 1)
		cap = b->len + more + 1;
	if (cap > b->max + 1)
		cap = b->max + 1;
	p = mem_try_resize(b->mem, b->data, cap);
	if (!p && b->is_sure)
		mem_fail(b->mem, cap);
	if (!p)
		return b->error = -ERR_NOMEM;
	b->data = p;
	b->cap = cap;
	b->data[b->len] = 0;
	return 0;
}

int buf_add(struct buf *b, const void *bytes, size_t len)
{
	if (buf_reserve(b, len) != 0)
		return b->error;
	if (len)
		memcpy(b->data + b->len, bytes, len);
	b->len += len;
	b->data[b->len] = 0;
	return 0;
}

int buf_adds(struct buf *b, const char *s)
{
	return buf_add(b, s, strlen(s));
}

int buf_addc(struct buf *b, char c)
{
	return buf_add(b, &c, 1);
}

int buf_addf(struct buf *b, const char *fmt, ...)
{
	va_list ap, again;
	int n;

	va_start(ap, fmt);
	va_copy(again, ap);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n >= 0 && buf_reserve(b, (size_t)n) == 0) {
		(void)vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
	return b->error;
}

void buf_cut(struct buf *b, size_t len)
{
	if (len < b->len) {
		b->len = len;
		b->data[len] = 0;
	}
}

void buf_drop(struct buf *b, size_t n)
{
	if (n >= b->len) {
		buf_cut(b, 0);
		return;
	}
	memmove(b->data, b->data + n, b->len - n + 1);
	b->len -= n;
}

char *buf_take(struct buf *b, size_t *ret_len)
{
	char *p = b->data ? b->data : mem_dup(b->mem, "", 0);

	if (ret_len)
		*ret_len = b->len;
	b->data = NULL;
	buf_release(b);
	return p;
}
