/* SPDX-License-Identifier: MIT */
/* strict.h - what leaves the library is JSON for a reader that forgives nothing: UTF-8 without
 * half surrogate pairs, numbers that a double holds. */
#pragma once

#include <assert.h>
#include <jansson.h>

#include "base/utf8.h"

static inline void assert_strict(const char *json, size_t len)
{
	size_t flags = JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL;
	json_t *j = json_loadb(json, len, flags, NULL);

	assert(utf8_valid(json, len));
	assert(j);
	json_decref(j);
}
