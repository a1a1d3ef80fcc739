/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <jansson.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/surrogate.h"
#include "base/utf8.h"

#define LOAD_FLAGS (JSON_DECODE_ANY | JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL)

static const json_t *lib(const struct js *j)
{
	return (const json_t *)(const void *)j;
}

static const struct js *ours(const json_t *j)
{
	return (const struct js *)(const void *)j;
}

/* ---- memory ---- */

/*
 * The library cannot be told that there is no memory: some of its allocations are not looked
 * at, and what follows is a wrong value, or a write out of bounds. So while it parses for us,
 * its memory comes from the arena of the tree, and if there is none, parsing is left. Whoever
 * else uses the library in this process keeps the allocator that was there.
 */
struct load {
	struct arena *arena;
	jmp_buf no_memory;
};

static _Thread_local struct load *loading;
static json_malloc_t lib_malloc;
static json_free_t lib_free;

static void *load_malloc(size_t n)
{
	void *p;

	if (!loading)
		return lib_malloc(n);
	p = arena_take(loading->arena, n);
	if (!p)
		longjmp(loading->no_memory, 1);
	return p;
}

static void load_free(void *p)
{
	if (!loading)
		lib_free(p);
}

/* That of the user may have another decimal point. */
static locale_t c_locale;

static void install(void)
{
	c_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
	json_get_alloc_funcs(&lib_malloc, &lib_free);
	json_set_alloc_funcs(load_malloc, load_free);
	/* The library would open /dev/urandom for a seed. */
	json_object_seed((size_t)(uintptr_t)&loading | 1);
}

/* The library's own, of which there is only one. */
static bool is_constant(const json_t *j)
{
	return json_is_boolean(j) || json_is_null(j);
}

static void prepare(void)
{
	static pthread_once_t is_installed = PTHREAD_ONCE_INIT;

	(void)pthread_once(&is_installed, install);
}

/* Parse one value: 0, -ERR_NOMEM, -ERR_FORMAT. */
static int load(const char *text, size_t len, json_t **ret, json_error_t *e)
{
	struct load l = {.arena = NULL};
	json_t *volatile root = NULL;
	int has_memory;

	prepare();
	l.arena = arena_new(KIB(1) + (len < KIB(64) ? len * 4 : len));
	if (!l.arena)
		return -ERR_NOMEM;
	loading = &l;
	has_memory = setjmp(l.no_memory) == 0;
	if (has_memory)
		root = json_loadb(text, len, LOAD_FLAGS, e);
	loading = NULL;
	if (!root || is_constant(root))
		arena_free(l.arena);
	*ret = root;
	if (root)
		return 0;
	return has_memory ? -ERR_FORMAT : -ERR_NOMEM;
}

/* ---- spans: a scanner for text that is known to be well-formed ---- */

struct scan {
	const char *p, *end;
	bool failed; /* there was no memory to look further */
};

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_space(struct scan *s)
{
	while (s->p < s->end && is_space(*s->p))
		s->p++;
}

static void skip_string(struct scan *s)
{
	for (s->p++; s->p < s->end && *s->p != '"'; s->p++)
		if (*s->p == '\\')
			s->p++;
	if (s->p < s->end)
		s->p++;
}

static bool ends_scalar(char c)
{
	return c == ',' || c == ']' || c == '}' || c == ':' || is_space(c);
}

static void skip_scalar(struct scan *s)
{
	while (s->p < s->end && !ends_scalar(*s->p))
		s->p++;
}

static void skip_value(struct scan *s)
{
	size_t depth = 0;

	do {
		skip_space(s);
		if (s->p >= s->end)
			return;
		if (*s->p == '"') {
			skip_string(s);
		} else if (*s->p == '{' || *s->p == '[') {
			depth++;
			s->p++;
		} else if (*s->p == '}' || *s->p == ']') {
			depth--;
			s->p++;
		} else if (*s->p == ',' || *s->p == ':') {
			s->p++;
		} else {
			skip_scalar(s);
		}
	} while (depth > 0);
}

/* What the escape at *@p stands for, if that is a character of ASCII; else -1. */
static int unescape(const char **p, const char *end)
{
	static const char names[] = "\"\"\\\\//b\bf\fn\nr\rt\t";
	char digits[5] = {0};
	const char *at = names;
	long code;

	if (end - *p >= 6 && (*p)[1] == 'u') {
		memcpy(digits, *p + 2, 4);
		code = strtol(digits, NULL, 16);
		*p += 6;
		return code < 0x80 ? (int)code : -1;
	}
	while (*at && *at != (*p)[1])
		at += 2;
	*p += 2;
	return *at ? at[1] : -1;
}

/* Does the quoted string @s spell @key, which is ASCII, escapes and all? */
static bool spells(struct js_span s, const char *key)
{
	const char *p = s.ptr + 1, *end = s.ptr + s.len - 1;

	for (; p < end && *key; key++) {
		int c = *p == '\\' ? unescape(&p, end) : *p++;

		if (c != *key)
			return false;
	}
	return p == end && !*key;
}

void js_members(struct js_span object, const char *const *keys, struct js_span *ret,
		size_t n)
{
	struct scan s = {.p = object.ptr,
			 .end = object.ptr ? object.ptr + object.len : NULL};
	struct js_span name;
	const char *start;

	memset(ret, 0, n * sizeof(*ret));
	skip_space(&s);
	if (s.p >= s.end || *s.p != '{')
		return;
	s.p++;
	for (;;) {
		skip_space(&s);
		if (s.p >= s.end || *s.p != '"')
			return;
		name.ptr = s.p;
		skip_string(&s);
		name.len = (size_t)(s.p - name.ptr);
		skip_space(&s);
		s.p++; /* the colon */
		skip_space(&s);
		start = s.p;
		skip_value(&s);
		if (s.p > s.end)
			return;
		for (size_t i = 0; i < n; i++)
			if (spells(name, keys[i]))
				ret[i] = (struct js_span){start, (size_t)(s.p - start)};
		skip_space(&s);
		if (s.p >= s.end || *s.p != ',')
			return;
		s.p++;
	}
}

struct js_span js_member(struct js_span object, const char *key)
{
	struct js_span found;

	js_members(object, &key, &found, 1);
	return found;
}

void js_each(struct js_span array, void (*fn)(void *ud, struct js_span element), void *ud)
{
	struct scan s = {.p = array.ptr, .end = array.ptr + array.len};
	const char *start;

	skip_space(&s);
	for (s.p++;; s.p++) { /* the bracket, then each comma */
		skip_space(&s);
		start = s.p;
		if (start >= s.end || *start == ']')
			return;
		skip_value(&s);
		fn(ud, (struct js_span){start, (size_t)(s.p - start)});
		skip_space(&s);
		if (s.p >= s.end || *s.p != ',')
			return;
	}
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static const char *skip_digits(const char *p, const char *end)
{
	while (p < end && is_digit(*p))
		p++;
	return p;
}

/*
 * Bytes of the longest number that JSON's grammar has at @p, at least 1. What follows may be
 * anything: the text is not checked yet, and must not become valid by being looked at.
 */
static size_t number_len(const char *p, const char *end)
{
	const char *at = skip_digits(p + 1, end), *next;

	if (at + 1 < end && *at == '.' && is_digit(at[1]))
		at = skip_digits(at + 1, end);
	if (at < end && (*at | 0x20) == 'e') {
		next = at + 1;
		if (next < end && (*next == '+' || *next == '-'))
			next++;
		if (next < end && is_digit(*next))
			at = skip_digits(next, end);
	}
	return (size_t)(at - p);
}

static bool overflows(struct scan *s, const char *p, size_t len)
{
	char text[512], *rest;
	char *copy = text;
	bool over;

	if (len >= sizeof(text) && !(copy = malloc(len + 1))) {
		s->failed = true;
		return true;
	}
	memcpy(copy, p, len);
	copy[len] = 0;
	prepare();
	over = isinf(strtod_l(copy, &rest, c_locale));
	if (copy != text)
		free(copy);
	return over;
}

/* Find the next overflowing number at or after *@s; false at the end. */
static bool next_overflow(struct scan *s, struct js_span *ret)
{
	while (s->p < s->end) {
		const char *start = s->p;

		if (*start == '"') {
			skip_string(s);
		} else if (*start == '-' || is_digit(*start)) {
			size_t len = number_len(start, s->end);

			s->p += len;
			if (overflows(s, start, len)) {
				*ret = (struct js_span){start, len};
				return true;
			}
		} else {
			s->p++;
		}
	}
	return false;
}

bool js_overflows_only_in(struct js_span text, struct js_span inner)
{
	struct scan s = {.p = text.ptr, .end = text.ptr + text.len};
	struct js_span n;

	while (next_overflow(&s, &n))
		if (!inner.ptr || n.ptr < inner.ptr || n.ptr >= inner.ptr + inner.len)
			return false;
	return !s.failed;
}

/* ---- reading ---- */

/* Parse again with -0, and spaces, where a number overflowed. */
static int parse_patched(const char *text, size_t len, json_t **ret, json_error_t *e)
{
	char *copy = mem_try(NULL, len + 1);
	struct scan s = {0};
	struct js_span n;
	char *at;
	int rc;

	if (!copy)
		return -ERR_NOMEM;
	memcpy(copy, text, len);
	copy[len] = 0;
	s.p = copy;
	s.end = copy + len;
	while (next_overflow(&s, &n) && !s.failed) {
		at = copy + (n.ptr - copy);
		memset(at, ' ', n.len);
		memcpy(at, "-0", 2);
	}
	rc = s.failed ? -ERR_NOMEM : load(copy, len, ret, e);
	mem_free(NULL, copy);
	return rc == 0 ? -ERR_LOSSY : rc;
}

static bool too_deep(const char *text, size_t len, size_t levels)
{
	struct scan s = {.p = text, .end = text + len};
	size_t depth = 0;

	while (s.p < s.end) {
		char c = *s.p;

		if (c == '"') {
			skip_string(&s);
			continue;
		}
		if ((c == '[' || c == '{') && ++depth > levels)
			return true;
		if ((c == ']' || c == '}') && depth > 0)
			depth--;
		s.p++;
	}
	return false;
}

static int parse_without_half_pairs(const char *text, size_t len, size_t levels,
				    const json_error_t *e, struct js **ret, struct err *err)
{
	char *copy = mem_try(NULL, len + 1);
	int rc;

	if (!copy)
		return err_set(err, ERR_NOMEM, "out of memory");
	memcpy(copy, text, len);
	if (surrogate_replace_halves(copy, len))
		rc = js_parse_within(copy, len, levels, ret, err);
	else
		rc = err_set(err, ERR_FORMAT, "%s at byte %d", e->text, e->position);
	mem_free(NULL, copy);
	return rc;
}

int js_parse(const char *text, size_t len, struct js **ret, struct err *err)
{
	return js_parse_within(text, len, MAX_JSON_NESTING, ret, err);
}

int js_parse_within(const char *text, size_t len, size_t levels, struct js **ret,
		    struct err *err)
{
	json_error_t e;
	json_t *root;
	int rc;

	/* Nowhere in JSON; the library passes over one behind a number. */
	if (memchr(text, 0, len))
		return err_set(err, ERR_FORMAT, "a NUL byte");
	if (too_deep(text, len, levels))
		return err_set(err, ERR_LIMIT, "nested deeper than %zu levels", levels);
	rc = load(text, len, &root, &e);
	if (rc == -ERR_FORMAT && json_error_code(&e) == json_error_numeric_overflow)
		rc = parse_patched(text, len, &root, &e);
	if (rc == -ERR_NOMEM)
		return err_set(err, ERR_NOMEM, "out of memory");
	if (rc == -ERR_FORMAT && json_error_code(&e) == json_error_null_byte_in_key)
		return err_set(err, ERR_ARG, "a key holds a NUL, which is not supported");
	if (rc == -ERR_FORMAT)
		return parse_without_half_pairs(text, len, levels, &e, ret, err);
	*ret = (struct js *)(void *)root;
	return rc == 0 ? 0 : err_set(err, ERR_LOSSY, "a number that no double can hold");
}

void js_free(struct js *root)
{
	if (root && !is_constant(lib(root)))
		arena_free(arena_of(root));
}

bool js_has_negative_zero(const struct js *j)
{
	const struct js *child;
	void *it = NULL;

	switch (js_type(j)) {
	case JS_NUMBER:
		return js_number(j) == 0 && signbit(js_number(j));
	case JS_ARRAY:
		for (size_t i = 0; i < js_count(j); i++)
			if (js_has_negative_zero(js_at(j, i)))
				return true;
		return false;
	case JS_OBJECT:
		while (js_next(j, &it, NULL, NULL, &child))
			if (js_has_negative_zero(child))
				return true;
		return false;
	case JS_NONE:
	case JS_NULL:
	case JS_BOOL:
	case JS_STRING:
		break;
	}
	return false;
}

enum js_type js_type(const struct js *j)
{
	if (!j)
		return JS_NONE;
	switch (json_typeof(lib(j))) {
	case JSON_OBJECT:
		return JS_OBJECT;
	case JSON_ARRAY:
		return JS_ARRAY;
	case JSON_STRING:
		return JS_STRING;
	case JSON_INTEGER:
	case JSON_REAL:
		return JS_NUMBER;
	case JSON_TRUE:
	case JSON_FALSE:
		return JS_BOOL;
	case JSON_NULL:
		break;
	}
	return JS_NULL;
}

const struct js *js_get(const struct js *object, const char *key)
{
	return ours(json_object_get(lib(object), key));
}

const struct js *js_at(const struct js *array, size_t i)
{
	return ours(json_array_get(lib(array), i));
}

size_t js_count(const struct js *j)
{
	enum js_type type = js_type(j);

	if (type == JS_ARRAY)
		return json_array_size(lib(j));
	return type == JS_OBJECT ? json_object_size(lib(j)) : 0;
}

const char *js_string(const struct js *j, size_t *ret_len)
{
	if (js_type(j) != JS_STRING)
		return NULL;
	if (ret_len)
		*ret_len = json_string_length(lib(j));
	return json_string_value(lib(j));
}

double js_number(const struct js *j)
{
	return js_type(j) == JS_NUMBER ? json_number_value(lib(j)) : NAN;
}

bool js_is_true(const struct js *j)
{
	return j && json_is_true(lib(j));
}

bool js_string_is(const struct js *j, const char *s)
{
	size_t len;
	const char *p = js_string(j, &len);

	return p && len == strlen(s) && memcmp(p, s, len) == 0;
}

bool js_next(const struct js *object, void **it, const char **ret_key, size_t *ret_key_len,
	     const struct js **ret_value)
{
	/* The library's iterators want a mutable object; nothing is changed through them. */
	union {
		const json_t *in;
		json_t *out;
	} o = {.in = lib(object)};

	if (js_type(object) != JS_OBJECT)
		return false;
	*it = *it ? json_object_iter_next(o.out, *it) : json_object_iter(o.out);
	if (!*it)
		return false;
	if (ret_key)
		*ret_key = json_object_iter_key(*it);
	if (ret_key_len)
		*ret_key_len = strlen(json_object_iter_key(*it));
	*ret_value = ours(json_object_iter_value(*it));
	return true;
}

/* ---- writing ---- */

/* 1: as it is. Anything else is escaped, or the start of a longer sequence. */
static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f && c != '"' && c != '\\';
}

static int put_escape(struct buf *out, unsigned char c)
{
	static const char names[][2] = {{'\n', 'n'}, {'\t', 't'}, {'\r', 'r'}, {'\b', 'b'},
					{'\f', 'f'}, {'"', '"'},  {'\\', '\\'}};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if ((unsigned char)names[i][0] == c) {
			char pair[2] = {'\\', names[i][1]};

			return buf_add(out, pair, 2);
		}
	}
	return buf_addf(out, "\\u%04x", c);
}

int js_put_string(struct buf *out, const char *s, size_t len)
{
	size_t i = 0, start, bad;
	uint32_t cp;
	int n;

	/* Most text needs no more than its own length. */
	(void)buf_reserve(out, len + 2 <= buf_room(out) ? len + 2 : 0);
	(void)buf_addc(out, '"');
	while (i < len && !buf_error(out)) {
		for (start = i; i < len && is_plain((unsigned char)s[i]); i++)
			;
		(void)buf_add(out, s + start, i - start);
		if (i == len)
			break;
		if ((unsigned char)s[i] < 0x80) {
			(void)put_escape(out, (unsigned char)s[i++]);
			continue;
		}
		n = utf8_decode(s + i, len - i, &cp, &bad);
		if (n > 0) {
			(void)buf_add(out, s + i, (size_t)n);
			i += (size_t)n;
		} else {
			(void)buf_adds(out, "\xef\xbf\xbd");
			i += n < 0 ? len - i : bad;
		}
	}
	return buf_addc(out, '"');
}

/* Digits and exponent of the shortest text that reads back as @v. */
static void shortest(double v, char digits[32], int *ret_exp10)
{
	char text[48];
	char *e;
	size_t n = 0;

	for (int precision = 0; precision < 17; precision++) {
		(void)snprintf(text, sizeof(text), "%.*e", precision, v);
		if (strtod(text, NULL) == v)
			break;
	}
	e = strchr(text, 'e');
	*ret_exp10 = (int)strtol(e + 1, NULL, 10);
	for (char *p = text; p < e; p++)
		if (is_digit(*p))
			digits[n++] = *p;
	digits[n] = 0;
}

int js_put_number(struct buf *out, double v)
{
	char d[32] = "";
	int exp10, n;

	if (!isfinite(v))
		return buf_adds(out, "null");
	if (v == 0)
		return buf_addc(out, '0');
	if (v < 0)
		(void)buf_addc(out, '-');
	shortest(fabs(v), d, &exp10);
	n = (int)strlen(d);
	if (exp10 >= 21 || exp10 < -6) {
		(void)buf_addc(out, d[0]);
		if (n > 1)
			(void)buf_addf(out, ".%s", d + 1);
		return buf_addf(out, "e%+d", exp10);
	}
	if (exp10 < 0) {
		(void)buf_adds(out, "0.");
		for (int i = -1; i > exp10; i--)
			(void)buf_addc(out, '0');
		return buf_adds(out, d);
	}
	for (int i = 0; i < n || i <= exp10; i++) {
		if (i == exp10 + 1)
			(void)buf_addc(out, '.');
		(void)buf_addc(out, i < n ? d[i] : '0');
	}
	return buf_error(out);
}

int js_put_int(struct buf *out, int64_t v)
{
	char digits[20];
	size_t at = sizeof(digits);
	uint64_t rest = v < 0 ? 0 - (uint64_t)v : (uint64_t)v;

	do
		digits[--at] = (char)('0' + rest % 10);
	while ((rest /= 10) != 0);
	if (v < 0)
		digits[--at] = '-';
	return buf_add(out, digits + at, sizeof(digits) - at);
}

int js_put_key(struct buf *out, const char *key)
{
	if (out->len && out->data[out->len - 1] != '{')
		(void)buf_addc(out, ',');
	(void)js_put_string(out, key, strlen(key));
	return buf_addc(out, ':');
}

int js_put_member(struct buf *out, const char *key, const char *s, size_t len)
{
	(void)js_put_key(out, key);
	return js_put_string(out, s, len);
}

static int put_array(struct buf *out, const struct js *j)
{
	(void)buf_addc(out, '[');
	for (size_t i = 0; i < js_count(j); i++) {
		if (i)
			(void)buf_addc(out, ',');
		(void)js_put_value(out, js_at(j, i));
	}
	return buf_addc(out, ']');
}

static int put_object(struct buf *out, const struct js *j)
{
	const struct js *value;
	const char *key;
	size_t len;
	void *it = NULL;
	bool first = true;

	(void)buf_addc(out, '{');
	while (js_next(j, &it, &key, &len, &value)) {
		if (!first)
			(void)buf_addc(out, ',');
		first = false;
		(void)js_put_string(out, key, len);
		(void)buf_addc(out, ':');
		(void)js_put_value(out, value);
	}
	return buf_addc(out, '}');
}

int js_put_value(struct buf *out, const struct js *j)
{
	size_t len = 0;
	const char *s;

	switch (js_type(j)) {
	case JS_OBJECT:
		return put_object(out, j);
	case JS_ARRAY:
		return put_array(out, j);
	case JS_STRING:
		s = js_string(j, &len);
		return js_put_string(out, s, len);
	case JS_NUMBER:
		return js_put_number(out, js_number(j));
	case JS_BOOL:
		return buf_adds(out, js_is_true(j) ? "true" : "false");
	case JS_NULL:
	case JS_NONE:
		break;
	}
	return buf_adds(out, "null");
}
