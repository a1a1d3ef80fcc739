/* SPDX-License-Identifier: MIT */
/*
 * prompt.c - the prompt: its sections one after another, with {{variables}} (spec 8.3).
 *
 * A variable is `{{name}}`, the name of letters, digits, '_', '.' and '-'. What begins with
 * "{{" and is no variable that was given is an error: a prompt with a hole in it is worse
 * than none. A value is not looked into again.
 */
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/section.h"

static bool is_name_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '.' || c == '-';
}

/* The length of the name at @p, if "}}" follows it; 0: it is no variable. */
static size_t name_length(const char *p, const char *end)
{
	const char *q = p;

	while (q < end && is_name_char(*q))
		q++;
	return end - q >= 2 && q[0] == '}' && q[1] == '}' ? (size_t)(q - p) : 0;
}

static int refuse(const errand_host *h, const struct section *s, const char *why,
		  const char *group, size_t len, errand_error **ret_err)
{
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT, &h->mem);
	(void)buf_adds(&b, "prompt section \"");
	(void)buf_add(&b, s->name.ptr, s->name.len);
	(void)buf_adds(&b, why);
	(void)buf_add(&b, group, len);
	return error_take(ret_err, ERRAND_EREFUSED, &b);
}

/* As much of a malformed group as shows where it is. */
static size_t excerpt(const char *p, const char *end)
{
	const char *q = p;

	while (q < end && q - p < 40 && *q != '\n' && (q == p || q[-1] != '}' || *q == '}'))
		q++;
	return utf8_head(p, (size_t)(end - p), (size_t)(q - p));
}

static int put_variable(const errand_host *h, const struct section *s,
			const struct js *variables, const char *group, size_t *ret_len,
			struct buf *out, errand_error **ret_err)
{
	const char *end = s->text.ptr + s->text.len;
	size_t len = name_length(group + 2, end), value_len;
	const char *value;
	struct str name;

	if (len == 0)
		return refuse(h, s, "\" has a malformed variable: ", group,
			      excerpt(group, end), ret_err);
	name = str_dup(&h->mem, group + 2, len);
	value = js_string(js_get(variables, name.ptr), &value_len);
	str_free(&h->mem, &name);
	if (!value)
		return refuse(h, s, "\" uses an unknown variable: ", group, len + 4,
			      ret_err);
	(void)buf_add(out, value, value_len);
	*ret_len = len + 4;
	return 0;
}

static int put_section(const errand_host *h, const struct section *s,
		       const struct js *variables, struct buf *out, errand_error **ret_err)
{
	const char *p = s->text.ptr, *end = p + s->text.len, *group;
	size_t len = 0;

	while ((group = memmem(p, (size_t)(end - p), "{{", 2))) {
		int rc;

		(void)buf_add(out, p, (size_t)(group - p));
		rc = put_variable(h, s, variables, group, &len, out, ret_err);
		if (rc != 0)
			return rc;
		p = group + len;
	}
	(void)buf_add(out, p, (size_t)(end - p));
	return 0;
}

static int put_all(const errand_host *h, const struct agent *a, const struct js *variables,
		   struct buf *out, errand_error **ret_err)
{
	size_t n;
	const struct section **all = sections_of(h, a, &n);
	struct buf one;
	int rc = 0;

	buf_init_try(&one, h->max.json, &h->mem);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		buf_clear(&one);
		rc = put_section(h, all[i], variables, &one, ret_err);
		if (rc != 0 || (one.len == 0 && !buf_error(&one)))
			continue;
		if (buf_error(&one))
			out->error = buf_error(&one);
		(void)buf_adds(out, out->len ? "\n\n" : "");
		(void)buf_add(out, buf_text(&one), one.len);
	}
	buf_release(&one);
	mem_free(&h->mem, all);
	return rc;
}

static int parse_variables(const errand_host *h, const char *json, size_t len,
			   struct js **ret, errand_error **ret_err)
{
	struct err err = {0};
	struct js *j = NULL;
	int rc;

	if (!json)
		return 0;
	rc = js_parse_within(json, str_length(json, len), h->max.nesting, &j, &err);
	if (rc == 0 && js_type(j) == JS_OBJECT) {
		*ret = j;
		return 0;
	}
	js_free(j);
	if (rc == 0)
		return error_make(ret_err, &h->mem, ERRAND_EARG,
				  "variables must be an object of strings");
	return error_make(ret_err, &h->mem, rc_of_parse(rc), "variables: %s", err.msg);
}

int errand_prompt(const errand_host *h, errand_agent agent, const char *variables_json,
		  size_t len, errand_text **ret, errand_error **ret_err)
{
	struct js *variables = NULL;
	struct agent *a = NULL;
	struct buf b;
	int rc;

	if (!h || !ret)
		return error_make(ret_err, NULL, ERRAND_EARG,
				  "no host, or nowhere to answer");
	if (agent != 0 && !(a = agent_get(h, agent, ret_err)))
		return ERRAND_EGONE;
	rc = parse_variables(h, variables_json, len, &variables, ret_err);
	if (rc != 0)
		return rc;
	buf_init_try(&b, h->max.json, &h->mem);
	rc = put_all(h, a, variables, &b, ret_err);
	js_free(variables);
	if (rc == 0)
		return text_take(&b, ret, ret_err);
	buf_release(&b);
	return rc;
}
