/* SPDX-License-Identifier: MIT */
#include "core/schema.h"

#include <stdint.h>
#include <string.h>

#include "base/limits.h"

struct type_word {
	const char *name;
	enum js_type type;
	const char *claim; /* "must be ..." */
};

static const struct type_word types[] = {
	{"string", JS_STRING, "a string"},
	{"number", JS_NUMBER, "a number"},
	{"integer", JS_NUMBER, "an integer"},
	{"boolean", JS_BOOL, "a boolean"},
	{"object", JS_OBJECT, "an object"},
	{"array", JS_ARRAY, "an array"},
	{"null", JS_NULL, "null"},
};

static const struct type_word *type_of(const struct js *schema)
{
	const struct js *word = js_get(schema, "type");

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (js_string_is(word, types[i].name))
			return &types[i];
	return NULL;
}

/* ---- is it in the subset? ---- */

static bool is_type(const struct js *schema, const struct js *j)
{
	(void)j;
	return type_of(schema) != NULL;
}

static bool is_properties(const struct js *schema, const struct js *j)
{
	const struct js *property;
	void *it = NULL;

	(void)schema;
	while (js_next(j, &it, NULL, NULL, &property))
		if (schema_trouble(property))
			return false;
	return js_type(j) == JS_OBJECT;
}

static bool is_strings(const struct js *schema, const struct js *j)
{
	(void)schema;
	for (size_t i = 0; i < js_count(j); i++)
		if (js_type(js_at(j, i)) != JS_STRING)
			return false;
	return js_type(j) == JS_ARRAY;
}

/* No object that we read has a key with a NUL. */
static bool is_keys(const struct js *schema, const struct js *j)
{
	size_t len;
	const char *key;

	for (size_t i = 0; i < js_count(j); i++) {
		key = js_string(js_at(j, i), &len);
		if (key && memchr(key, 0, len))
			return false;
	}
	return is_strings(schema, j);
}

static bool is_schema(const struct js *schema, const struct js *j)
{
	(void)schema;
	return schema_trouble(j) == NULL;
}

static bool is_bool(const struct js *schema, const struct js *j)
{
	(void)schema;
	return js_type(j) == JS_BOOL;
}

static bool is_anything(const struct js *schema, const struct js *j)
{
	(void)schema;
	(void)j;
	return true;
}

static const struct keyword {
	const char *name;
	bool (*is_sound)(const struct js *schema, const struct js *j);
} keywords[] = {
	{"type", is_type},
	{"properties", is_properties},
	{"required", is_keys},
	{"items", is_schema},
	{"enum", is_strings},
	{"additionalProperties", is_bool},
	{"description", is_anything},
	{"title", is_anything},
	{"default", is_anything},
	{"examples", is_anything},
	{"$schema", is_anything},
};

static const struct keyword *keyword_of(const char *name)
{
	for (size_t i = 0; i < sizeof(keywords) / sizeof(keywords[0]); i++)
		if (strcmp(keywords[i].name, name) == 0)
			return &keywords[i];
	return NULL;
}

const char *schema_trouble(const struct js *schema)
{
	const struct js *value;
	const char *key;
	void *it = NULL;

	if (js_type(schema) != JS_OBJECT)
		return "(not an object)";
	while (js_next(schema, &it, &key, NULL, &value)) {
		const struct keyword *k = keyword_of(key);

		if (!k || !k->is_sound(schema, value))
			return key;
	}
	return NULL;
}

/* ---- does it hold? ---- */

/* A place in the value: "value.task.id"; the root has a name of its own. */
struct check {
	struct buf *out;
	struct buf path;
	size_t depth; /* 0: at the root; an empty key has a place, too */
	const char *root;
	bool found;
};

static void check_value(struct check *c, const struct js *schema, const struct js *value);

static void violation(struct check *c)
{
	if (c->found)
		(void)buf_adds(c->out, "; ");
	c->found = true;
}

static void put_place(struct check *c)
{
	(void)buf_addf(c->out, "\"%s\"", c->depth ? buf_text(&c->path) : c->root);
}

/* Add a key to the path; returns the length to leave it with. */
static size_t go_into(struct check *c, const char *key, size_t len)
{
	size_t before = c->path.len;

	if (c->depth++ > 0)
		(void)buf_addc(&c->path, '.');
	(void)buf_add(&c->path, key, len);
	return before;
}

static void leave(struct check *c, size_t before)
{
	buf_cut(&c->path, before);
	c->depth--;
}

static void check_required(struct check *c, const struct js *schema, const struct js *value)
{
	const struct js *required = js_get(schema, "required");

	for (size_t i = 0; i < js_count(required); i++) {
		size_t len, before;
		const char *key = js_string(js_at(required, i), &len);

		if (js_get(value, key))
			continue;
		before = go_into(c, key, len);
		violation(c);
		(void)buf_adds(c->out, "missing required property ");
		put_place(c);
		leave(c, before);
	}
}

static void check_declared(struct check *c, const struct js *schema, const struct js *value)
{
	const struct js *property;
	const char *key;
	size_t len, before;
	void *it = NULL;

	while (js_next(js_get(schema, "properties"), &it, &key, &len, &property)) {
		if (!js_get(value, key))
			continue;
		before = go_into(c, key, len);
		check_value(c, property, js_get(value, key));
		leave(c, before);
	}
}

static void check_closed(struct check *c, const struct js *schema, const struct js *value)
{
	const struct js *member, *extra = js_get(schema, "additionalProperties");
	const char *key;
	size_t len, before;
	void *it = NULL;

	if (js_type(extra) != JS_BOOL || js_is_true(extra))
		return;
	while (js_next(value, &it, &key, &len, &member)) {
		if (js_get(js_get(schema, "properties"), key))
			continue;
		before = go_into(c, key, len);
		violation(c);
		put_place(c);
		(void)buf_adds(c->out,
			       " is not a declared property (additionalProperties: false)");
		leave(c, before);
	}
}

static void check_items(struct check *c, const struct js *items, const struct js *value)
{
	for (size_t i = 0; items && i < js_count(value); i++) {
		size_t before = c->path.len;

		if (c->depth++ == 0)
			(void)buf_adds(&c->path, c->root);
		(void)buf_addf(&c->path, "[%zu]", i);
		check_value(c, items, js_at(value, i));
		leave(c, before);
	}
}

static void check_enum(struct check *c, const struct js *words, const struct js *value)
{
	size_t len, got_len = 0;
	const char *s, *got = js_string(value, &got_len);

	if (!words)
		return;
	for (size_t i = 0; got && i < js_count(words); i++) {
		s = js_string(js_at(words, i), &len);
		if (len == got_len && memcmp(s, got, len) == 0)
			return;
	}
	violation(c);
	put_place(c);
	(void)buf_adds(c->out, " must be one of ");
	for (size_t i = 0; i < js_count(words); i++) {
		s = js_string(js_at(words, i), &len);
		(void)buf_adds(c->out, i ? ", " : "");
		(void)js_put_string(c->out, s, len);
	}
}

#define TWO_TO_53 9007199254740992.0

/* From there on every double is. */
static bool is_whole(double v)
{
	return v >= TWO_TO_53 || v <= -TWO_TO_53 || v == (double)(int64_t)v;
}

static bool has_type(const struct type_word *t, const struct js *value)
{
	if (js_type(value) != t->type)
		return false;
	return strcmp(t->name, "integer") != 0 || is_whole(js_number(value));
}

static void check_value(struct check *c, const struct js *schema, const struct js *value)
{
	const struct type_word *t = type_of(schema);

	if (buf_error(c->out))
		return;
	if (t && !has_type(t, value)) {
		violation(c);
		put_place(c);
		(void)buf_addf(c->out, " must be %s", t->claim);
		return;
	}
	check_enum(c, js_get(schema, "enum"), value);
	if (js_type(value) == JS_OBJECT) {
		check_required(c, schema, value);
		check_declared(c, schema, value);
		check_closed(c, schema, value);
	} else if (js_type(value) == JS_ARRAY) {
		check_items(c, js_get(schema, "items"), value);
	}
}

bool schema_check(const struct js *schema, const struct js *value, const char *root,
		  const char *prefix, struct buf *out)
{
	struct check c = {.out = out, .root = root, .depth = *prefix != 0};

	buf_init_mem(&c.path, MAX_ERROR_TEXT, out->mem);
	(void)buf_adds(&c.path, prefix);
	check_value(&c, schema, value);
	buf_release(&c.path);
	return !c.found;
}
