/* SPDX-License-Identifier: MIT */
/*
 * arena.h - memory that is taken piece by piece and given back as a whole.
 */
#pragma once

#include <stddef.h>

struct arena;

struct arena *arena_new(size_t first_size); /* of its first block; NULL: out of memory */
void arena_free(struct arena *a);           /* and all that was taken; NULL is fine */
/* Aligned for anything; NULL: out of memory. */
void *arena_take(struct arena *a, size_t n) __attribute__((malloc, warn_unused_result));
/* Whose @p is, which arena_take() gave. */
struct arena *arena_of(const void *p);
