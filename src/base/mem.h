/* SPDX-License-Identifier: MIT */
/*
 * mem.h - where memory comes from.
 *
 * A struct mem is three functions and what to do when they fail. NULL everywhere below
 * means the C library and abort(). mem_try() is for sizes that came from outside and may
 * fail; the others never return NULL.
 */
#pragma once

#include <stddef.h>

struct mem {
	void *(*alloc)(void *ud, size_t n);
	void *(*resize)(void *ud, void *p, size_t n);
	void (*dealloc)(void *ud, void *p);
	void *ud;
	void (*oom)(void *ud, size_t n); /* must not return; NULL: abort() */
};

void *mem_try(const struct mem *m, size_t n) __attribute__((malloc, warn_unused_result));
void *mem_try_resize(const struct mem *m, void *p, size_t n)
	__attribute__((warn_unused_result));
void *mem_new(const struct mem *m, size_t n); /* zeroed */
void *mem_resize(const struct mem *m, void *p, size_t n);
char *mem_dup(const struct mem *m, const void *p, size_t n); /* plus a NUL */
void mem_free(const struct mem *m, void *p);                 /* NULL is fine */
_Noreturn void mem_fail(const struct mem *m, size_t n);
