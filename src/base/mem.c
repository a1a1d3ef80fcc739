/* SPDX-License-Identifier: MIT */
#include "base/mem.h"

#include <stdlib.h>
#include <string.h>

void *mem_try(const struct mem *m, size_t n)
{
	if (n == 0)
		n = 1;
	return m && m->alloc ? m->alloc(m->ud, n) : malloc(n);
}

void *mem_try_resize(const struct mem *m, void *p, size_t n)
{
	if (n == 0)
		n = 1;
	return m && m->resize ? m->resize(m->ud, p, n) : realloc(p, n);
}

_Noreturn void mem_fail(const struct mem *m, size_t n)
{
	if (m && m->oom)
		m->oom(m->ud, n);
	abort();
}

void *mem_new(const struct mem *m, size_t n)
{
	void *p = mem_try(m, n);

	if (!p)
		mem_fail(m, n);
	return memset(p, 0, n);
}

void *mem_resize(const struct mem *m, void *p, size_t n)
{
	void *q = mem_try_resize(m, p, n);

	if (!q)
		mem_fail(m, n);
	return q;
}

char *mem_dup(const struct mem *m, const void *p, size_t n)
{
	char *q = mem_try(m, n + 1);

	if (!q)
		mem_fail(m, n + 1);
	if (n)
		memcpy(q, p, n);
	q[n] = 0;
	return q;
}

void mem_free(const struct mem *m, void *p)
{
	if (!p)
		return;
	if (m && m->dealloc)
		m->dealloc(m->ud, p);
	else
		free(p);
}
