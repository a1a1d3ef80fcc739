/* SPDX-License-Identifier: MIT */
/*
 * json.h - JSON in and out. json.c is the only file that sees the JSON library.
 *
 * Reading gives a tree of values; every number is a double. Writing appends to a struct buf:
 * compact, keys in the order they are written, numbers as JavaScript prints them, strings
 * always well-formed UTF-8. What must keep its exact spelling (a request's id, a tool's
 * arguments) is taken from the text itself with js_member().
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct err;
struct js; /* a value; owned by the tree it is in */

enum js_type {
	JS_NONE, /* of NULL: there is no such value */
	JS_NULL,
	JS_BOOL,
	JS_NUMBER,
	JS_STRING,
	JS_ARRAY,
	JS_OBJECT,
};

/*
 * Parse one value of any type. 0, or:
 *   -ERR_FORMAT  not JSON (ill-formed UTF-8, trailing bytes)
 *   -ERR_LIMIT   nested too deep
 *   -ERR_ARG     a key holds a NUL, which the library does not take
 *   -ERR_LOSSY   JSON, but a number overflows a double. *@ret is then still set, to the
 *                tree with -0 in place of each such number.
 * Half a surrogate pair, which can only be escaped, is read as U+FFFD. Of equal keys the last
 * wins. Free *@ret with js_free().
 */
int js_parse(const char *text, size_t len, struct js **ret, struct err *err)
	__attribute__((warn_unused_result));
/* The same with at most so many @levels of arrays and objects: at most
 * MAX_JSON_NESTING and MAX_JSON_ENVELOPE. */
int js_parse_within(const char *text, size_t len, size_t levels, struct js **ret,
		    struct err *err) __attribute__((warn_unused_result));
void js_free(struct js *root); /* NULL is fine */
/* True if -0 stands somewhere in the tree: no JSON number comes back as it went (D16). */
bool js_has_negative_zero(const struct js *j);

enum js_type js_type(const struct js *j); /* NULL is fine */
/* All getters take NULL and wrong types, and answer with nothing. */
const struct js *js_get(const struct js *object, const char *key);
const struct js *js_at(const struct js *array, size_t i);
size_t js_count(const struct js *j);                        /* of an array or object */
const char *js_string(const struct js *j, size_t *ret_len); /* NULL: no string */
double js_number(const struct js *j);                       /* NaN: no number */
bool js_is_true(const struct js *j);
bool js_string_is(const struct js *j, const char *s);
/* Walk an object: *@it starts as NULL; false at the end. */
bool js_next(const struct js *object, void **it, const char **ret_key, size_t *ret_key_len,
	     const struct js **ret_value);

/* A piece of the text that was parsed. */
struct js_span {
	const char *ptr; /* NULL: there is none */
	size_t len;
};
/* The text of member @key of the object @object, whitespace trimmed; the last of equal keys.
 * @object must have been parsed without -ERR_FORMAT. */
struct js_span js_member(struct js_span object, const char *key);
/* Those of @n keys, found in one pass. */
void js_members(struct js_span object, const char *const *keys, struct js_span *ret,
		size_t n);
/* Call @fn for the text of each element of the array @array, which js_parse() has passed. */
void js_each(struct js_span array, void (*fn)(void *ud, struct js_span element), void *ud);
/* True if @inner lies in @text and every overflowing number of @text lies in @inner. */
bool js_overflows_only_in(struct js_span text, struct js_span inner);

/* ---- writing ---- */

int js_put_string(struct buf *out, const char *s, size_t len); /* quoted; cleans UTF-8 */
int js_put_number(struct buf *out, double v); /* not finite: null, as JavaScript does */
int js_put_int(struct buf *out, int64_t v);
int js_put_value(struct buf *out, const struct js *j);
/* `,"key":` or, right after `{` or at the start of the buffer, `"key":`. */
int js_put_key(struct buf *out, const char *key);
int js_put_member(struct buf *out, const char *key, const char *s, size_t len);
