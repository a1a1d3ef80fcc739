/* SPDX-License-Identifier: MIT */
/*
 * schema.h - the subset of JSON Schema that tools use: type, properties, required, items,
 * enum, additionalProperties (true or false), and words that only describe.
 */
#pragma once

#include <stdbool.h>

#include "base/buf.h"
#include "base/json.h"

/* What of @schema is outside the subset, for an error text; NULL: nothing. */
const char *schema_trouble(const struct js *schema);

/*
 * Append what of @value violates @schema, joined by "; " (spec 4.9.2). Paths begin
 * with @prefix; the root itself is called @root where that is empty. True: nothing is wrong.
 */
bool schema_check(const struct js *schema, const struct js *value, const char *root,
		  const char *prefix, struct buf *out);
