/* SPDX-License-Identifier: MIT */
#include "core/maxima.h"

#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/config.h"

/* What is made of a text when it becomes JSON: six bytes for one, and what stands around. */
#define JSON_PER_RESULT (MAX_JSON_TEXT / MAX_RESULT)
#define JSON_PER_ARGS (MAX_JSON_TEXT / MAX_ARGS)

static const struct limit {
	const char *name;
	size_t member, least, usual, most;
} limits[] = {
	{"argsBytes", offsetof(struct maxima, args), KIB(1), MAX_ARGS, MIB(64)},
	{"labelBytes", offsetof(struct maxima, label), 64, MAX_LABEL, MAX_LABEL},
	{"definitionBytes", offsetof(struct maxima, definition), KIB(4), MAX_LABEL,
	 MAX_LABEL},
	{"detailBytes", offsetof(struct maxima, detail), 64, MAX_DETAIL, MIB(1)},
	{"resultBytes", offsetof(struct maxima, result), KIB(1), MAX_RESULT, MIB(64)},
	{"jsonBytes", offsetof(struct maxima, json), MAX_JSON_TEXT, MAX_JSON_TEXT,
	 MIB(1024)},
	{"nesting", offsetof(struct maxima, nesting), 16, MAX_JSON_NESTING,
	 MAX_JSON_NESTING},
	{"tasks", offsetof(struct maxima, tasks), 1, MAX_TASKS, 1000000000},
};
#define each_limit(l)                                                                      \
	for (const struct limit *l = limits; l < limits + sizeof(limits) / sizeof(*l); l++)

static size_t *place(struct maxima *all, const struct limit *l)
{
	return (size_t *)(void *)((char *)all + l->member);
}

static const struct limit *find(const char *name, size_t len)
{
	each_limit(l)
	{
		if (strlen(l->name) == len && memcmp(l->name, name, len) == 0)
			return l;
	}
	return NULL;
}

static int take(const struct mem *m, const struct limit *l, const struct js *given,
		struct js_span text, struct maxima *ret, errand_error **ret_err)
{
	double v = js_type(given) == JS_NUMBER ? js_number(given) : 0;
	struct buf b;

	if (config_is_count(v) && v >= (double)l->least && v <= (double)l->most) {
		*place(ret, l) = (size_t)v;
		return 0;
	}
	buf_init_mem(&b, MAX_ERROR_TEXT, m);
	(void)buf_addf(&b, "limits: %s: expected a whole number from %zu to %zu, got ",
		       l->name, l->least, l->most);
	config_put_given(&b, given, text);
	return error_take(ret_err, ERRAND_EREFUSED, &b);
}

static int take_all(const struct mem *m, const struct settings *given, struct maxima *ret,
		    errand_error **ret_err)
{
	const struct js *value;
	const char *name;
	void *it = NULL;
	size_t len;

	while (js_next(given->tree, &it, &name, &len, &value)) {
		const struct limit *l = find(name, len);
		int rc =
			l ? take(m, l, value, js_member(given->text, l->name), ret, ret_err)
			  : error_about(ret_err, m, ERRAND_EREFUSED,
					"limits: there is none called \"", name, len, "\"");

		if (rc != 0)
			return rc;
	}
	return 0;
}

static int check_json(const struct mem *m, const struct maxima *all, const char *name,
		      size_t wanted, size_t times, errand_error **ret_err)
{
	if (all->json / times >= wanted)
		return 0;
	return error_make(ret_err, m, ERRAND_EREFUSED,
			  "limits: %s of %zu needs jsonBytes of %zu at least, not %zu",
			  name, wanted, wanted * times, all->json);
}

static int parse(const struct mem *m, errand_str text, struct settings *ret,
		 errand_error **ret_err)
{
	struct err err = {0};
	int rc;

	ret->text = (struct js_span){text.ptr, str_length(text.ptr, text.len)};
	rc = js_parse(ret->text.ptr, ret->text.len, &ret->tree, &err);

	if (rc != 0 && rc != -ERR_LOSSY) /* what overflows is out of each range, too */
		return error_make(ret_err, m, rc_of_parse(rc), "limits: %s", err.msg);
	if (js_type(ret->tree) == JS_OBJECT)
		return 0;
	js_free(ret->tree);
	return error_make(ret_err, m, ERRAND_EREFUSED, "limits: expected an object");
}

int maxima_read(const struct mem *m, errand_str limits_json, struct maxima *ret,
		errand_error **ret_err)
{
	struct settings given;
	int rc;

	each_limit(l) * place(ret, l) = l->usual;
	if (!limits_json.ptr)
		return 0;
	rc = parse(m, limits_json, &given, ret_err);
	if (rc != 0)
		return rc;
	rc = take_all(m, &given, ret, ret_err);
	js_free(given.tree);
	if (rc == 0)
		rc = check_json(m, ret, "resultBytes", ret->result, JSON_PER_RESULT,
				ret_err);
	if (rc == 0)
		rc = check_json(m, ret, "argsBytes", ret->args, JSON_PER_ARGS, ret_err);
	return rc;
}
