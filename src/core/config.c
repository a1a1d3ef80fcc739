/* SPDX-License-Identifier: MIT */
#include "core/config.h"

#include <string.h>

#include "base/err.h"
#include "base/limits.h"

/* The largest whole number that a double holds together with its neighbours: 2^53 - 1. */
#define MAX_SAFE_INTEGER 9007199254740991.0

bool config_is_count(double v)
{
	return v >= 1 && v <= MAX_SAFE_INTEGER && v == (double)(int64_t)v;
}

void config_put_given(struct buf *out, const struct js *value, struct js_span text)
{
	static const struct js_span nowhere = {NULL, 0};

	if (text.ptr && !js_overflows_only_in(text, nowhere))
		(void)buf_add(out, text.ptr, text.len);
	else
		(void)js_put_value(out, value);
}

int config_parse(const struct mem *m, const char *text, size_t len, struct settings *ret,
		 errand_error **ret_err)
{
	struct err err = {0};
	struct js *tree = NULL;
	struct js_span given = {text ? text : "{}", text ? len : 2};
	struct buf b;
	int rc = js_parse(given.ptr, given.len, &tree, &err);

	if (rc != 0 && rc != -ERR_LOSSY)
		return error_make(ret_err, m, rc_of_parse(rc), "invalid config: %s",
				  err.msg);
	if (js_type(tree) == JS_OBJECT) {
		*ret = (struct settings){tree, given};
		return 0;
	}
	buf_init_mem(&b, MAX_ERROR_TEXT, m);
	(void)buf_adds(&b, "invalid config:\n  - $ expected object but got ");
	config_put_given(&b, tree, given);
	js_free(tree);
	return error_take(ret_err, ERRAND_EREFUSED, &b);
}

static void put_member(struct buf *out, const struct settings *config, const char *key)
{
	config_put_given(out, js_get(config->tree, key), js_member(config->text, key));
}

static int refuse(const struct mem *m, const struct settings *config, const char *key,
		  const char *what, errand_error **ret_err)
{
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT, m);
	(void)buf_addf(&b, "invalid config:\n  - $.%s expected %s >= 1 but got ", key,
		       what);
	put_member(&b, config, key);
	(void)buf_addf(&b, " (at %s)", key);
	return error_take(ret_err, ERRAND_EREFUSED, &b);
}

static int refuse_type(const struct mem *m, const struct settings *config, const char *key,
		       errand_error **ret_err)
{
	size_t len = 0;
	const char *s = js_string(js_get(config->tree, key), &len);
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT, m);
	(void)buf_addf(&b, "invalid config:\n  - $.%s expected number but got ", key);
	if (s)
		(void)buf_add(&b, s, len);
	else
		put_member(&b, config, key);
	(void)buf_addf(&b, " (at %s)", key);
	return error_take(ret_err, ERRAND_EREFUSED, &b);
}

int config_number(const struct mem *m, const struct settings *config, const char *key,
		  double *ret, errand_error **ret_err)
{
	const struct js *j = js_get(config->tree, key);

	if (js_type(j) == JS_NONE || js_type(j) == JS_NULL)
		return 0;
	if (js_type(j) != JS_NUMBER)
		return refuse_type(m, config, key, ret_err);
	if (!(js_number(j) >= 1))
		return refuse(m, config, key, "number", ret_err);
	*ret = js_number(j);
	return 0;
}

int config_count(const struct mem *m, const struct settings *config, const char *key,
		 int64_t *ret, errand_error **ret_err)
{
	const struct js *j = js_get(config->tree, key);
	double v = js_number(j);

	if (js_type(j) == JS_NONE)
		return 0;
	if (js_type(j) == JS_NULL) {
		*ret = 0;
		return 0;
	}
	if (!config_is_count(v))
		return refuse(m, config, key, "integer", ret_err);
	*ret = (int64_t)v;
	return 0;
}

static int refuse_word(const struct mem *m, const struct settings *config, const char *key,
		       const char *const *words, errand_error **ret_err)
{
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT, m);
	(void)buf_addf(&b, "invalid config:\n  - $.%s expected ", key);
	for (int i = 0; words[i]; i++)
		(void)buf_addf(&b, "%s\"%s\"", i ? " | " : "", words[i]);
	(void)buf_adds(&b, " but got ");
	put_member(&b, config, key);
	(void)buf_addf(&b, " (at %s)", key);
	return error_take(ret_err, ERRAND_EREFUSED, &b);
}

int config_word(const struct mem *m, const struct settings *config, const char *key,
		const char *const *words, int *ret, errand_error **ret_err)
{
	const struct js *j = js_get(config->tree, key);

	if (js_type(j) == JS_NONE || js_type(j) == JS_NULL)
		return 0;
	for (int i = 0; words[i]; i++) {
		if (js_string_is(j, words[i])) {
			*ret = i;
			return 0;
		}
	}
	return refuse_word(m, config, key, words, ret_err);
}
