/* SPDX-License-Identifier: MIT */
/* config.h - configuration as JSON: unknown keys ignored, null is "not given" (spec 10). */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/json.h"
#include "core/text.h"

/* What was parsed, and the text that it was parsed from: errors show what stands there. */
struct settings {
	struct js *tree;
	struct js_span text;
};

/* @value, which was parsed from @text, as JSON: as it is written there, if a number in it is
 * more than a double holds. */
void config_put_given(struct buf *out, const struct js *value, struct js_span text);

/* A whole number from 1 to 2^53 - 1. */
bool config_is_count(double v);
/* Absent text is {}. EJSON, or EREFUSED if it is no object. Free ->tree with js_free(); the
 * text stays the caller's. */
int config_parse(const struct mem *m, const char *text, size_t len, struct settings *ret,
		 errand_error **ret_err);
/* A key that holds a number of at least 1; *@ret keeps its default if it is not given. */
int config_number(const struct mem *m, const struct settings *config, const char *key,
		  double *ret, errand_error **ret_err);
/* The same for a whole number, and null is "no limit": 0. */
int config_count(const struct mem *m, const struct settings *config, const char *key,
		 int64_t *ret, errand_error **ret_err);
/* One of @words, the last of which is NULL; *@ret is its index, or keeps its default. */
int config_word(const struct mem *m, const struct settings *config, const char *key,
		const char *const *words, int *ret, errand_error **ret_err);
