/* SPDX-License-Identifier: MIT */
/* nearest.h - which word was meant. */
#pragma once

#include <stddef.h>

struct nearest {
	const char *typed;
	size_t len;        /* of it */
	const char *found; /* NULL: none is near */
	size_t distance;
};

/* A word that could have been meant. */
void nearest_try(struct nearest *n, const char *word);
