/* SPDX-License-Identifier: MIT */
/* restrict.c - masks over the global tools, by name (spec 3.9). */
#include <stdlib.h>

#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/host.h"
#include "core/reg.h"
#include "core/scope.h"
#include "core/tool.h"

struct name_list {
	bool is_given;
	struct name *all;
	size_t count;
	struct names index;
};

struct restriction {
	struct reg reg;
	struct layer *layer;
	struct list node;
	struct js *filter; /* owns the text of the names */
	struct name_list allow, deny;
};

static void restriction_free(errand_host *h, struct restriction *r)
{
	names_release(&r->allow.index);
	names_release(&r->deny.index);
	mem_free(&h->mem, r->allow.all);
	mem_free(&h->mem, r->deny.all);
	js_free(r->filter);
	mem_free(&h->mem, r);
}

static void restriction_undo(errand_host *h, struct reg *reg)
{
	struct restriction *r = list_entry(reg, struct restriction, reg);

	list_del(&r->node);
	layer_drop(h, r->layer);
	restriction_free(h, r);
}

/* ---- does it let a tool through? ---- */

static bool has_name(const struct name_list *l, const struct str *name)
{
	return names_get(&l->index, name->ptr, name->len) != NULL;
}

static bool allows(const struct restriction *r, const struct str *name)
{
	if (r->allow.is_given && !has_name(&r->allow, name))
		return false;
	return !has_name(&r->deny, name);
}

bool tool_is_allowed(const errand_host *h, const struct scope *s, const struct tool *t)
{
	chain_each(layer, h, s)
	{
		list_each(node, &layer->restrictions)
		{
			if (!allows(list_entry(node, struct restriction, node), &t->text))
				return false;
		}
	}
	return true;
}

/* ---- making one ---- */

static bool is_names(const struct js *j)
{
	for (size_t i = 0; i < js_count(j); i++)
		if (js_type(js_at(j, i)) != JS_STRING)
			return false;
	return js_type(j) == JS_ARRAY;
}

static int take_list(errand_host *h, const struct js *filter, const char *key,
		     struct name_list *l, errand_error **ret_err)
{
	const struct js *j = js_get(filter, key);

	names_init(&l->index, &h->mem);
	if (js_type(j) == JS_NONE || js_type(j) == JS_NULL)
		return 0;
	if (!is_names(j))
		return error_make(ret_err, &h->mem, ERRAND_EARG,
				  "%s must be an array of tool names", key);
	l->is_given = true;
	l->count = js_count(j);
	l->all = mem_new(&h->mem, (l->count + 1) * sizeof(*l->all));
	for (size_t i = 0; i < l->count; i++) {
		struct name *n = &l->all[i];

		n->text = js_string(js_at(j, i), &n->len);
		if (!names_get(&l->index, n->text, n->len))
			names_put(&l->index, n);
	}
	return 0;
}

static size_t put_unknown(const errand_host *h, const struct name_list *l, size_t found,
			  struct buf *out)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct name *n = &l->all[i];

		if (names_get(&h->global.tools, n->text, n->len))
			continue;
		(void)buf_adds(out, found++ ? ", \"" : "\"");
		(void)buf_add(out, n->text, n->len);
		(void)buf_addc(out, '"');
	}
	return found;
}

static void put_known(const errand_host *h, struct buf *out)
{
	size_t n;
	const struct tool **all = tools_by_name(h, &n);

	for (size_t i = 0; i < n; i++) {
		(void)buf_adds(out, i ? ", " : "");
		(void)buf_add(out, all[i]->text.ptr, all[i]->text.len);
	}
	if (n == 0)
		(void)buf_adds(out, "(none)");
	mem_free(&h->mem, all);
}

static int check_known(errand_host *h, const struct restriction *r, errand_error **ret_err)
{
	struct buf names, b;
	size_t found;

	buf_init_mem(&names, MAX_ERROR_TEXT, &h->mem);
	found = put_unknown(h, &r->allow, 0, &names);
	found = put_unknown(h, &r->deny, found, &names);
	if (found == 0)
		return 0;
	buf_init_mem(&b, MAX_ERROR_TEXT * 2, &h->mem);
	(void)buf_addf(&b, "tools.restrict() names unknown global tool%s ",
		       found > 1 ? "s" : "");
	(void)buf_add(&b, names.data, names.len);
	(void)buf_adds(&b, "; known global tools: ");
	put_known(h, &b);
	buf_release(&names);
	return error_take(ret_err, ERRAND_EREFUSED, &b);
}

static int fill(errand_host *h, struct restriction *r, const char *json, size_t len,
		errand_error **ret_err)
{
	struct err err = {0};
	int rc = js_parse_within(json, str_length(json, len), h->max.nesting, &r->filter,
				 &err);

	if (rc != 0)
		return error_make(ret_err, &h->mem, rc_of_parse(rc), "filter: %s", err.msg);
	if (js_type(r->filter) != JS_OBJECT)
		return error_make(ret_err, &h->mem, ERRAND_EARG,
				  "a filter is an object with allow, deny or both");
	rc = take_list(h, r->filter, "allow", &r->allow, ret_err);
	if (rc == 0)
		rc = take_list(h, r->filter, "deny", &r->deny, ret_err);
	if (rc != 0)
		return rc;
	if (!r->allow.is_given && !r->deny.is_given)
		return error_make(ret_err, &h->mem, ERRAND_EREFUSED,
				  "tools.restrict({}) is a no-op: pass `allow` and/or "
				  "`deny` (an empty filter is almost always a "
				  "materialized-empty-config bug)");
	return check_known(h, r, ret_err);
}

static int add(errand_host *h, struct layer *layer, const char *json, size_t len,
	       errand_reg *ret, errand_error **ret_err)
{
	struct restriction *r = mem_new(&h->mem, sizeof(*r));
	int rc = fill(h, r, json, len, ret_err);

	if (rc != 0) {
		restriction_free(h, r);
		return rc;
	}
	r->layer = layer;
	r->reg.undo = restriction_undo;
	layer_hold(layer);
	list_add(&layer->restrictions, &r->node);
	*ret = reg_publish_in(h, layer, &r->reg);
	return 0;
}

int errand_restrict(errand_host *h, errand_scope s, const char *filter_json, size_t len,
		    errand_reg *ret, errand_error **ret_err)
{
	struct layer *layer;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (!filter_json || !ret)
		return error_make(ret_err, &h->mem, ERRAND_EARG,
				  "no filter, or nowhere to answer");
	if (str_length(filter_json, len) > h->max.definition)
		return error_make(ret_err, &h->mem, ERRAND_ELIMIT,
				  "filter is over %zu bytes", h->max.definition);
	layer = layer_open(h, s, ret_err);
	if (!layer)
		return ERRAND_EGONE;
	rc = add(h, layer, filter_json, len, ret, ret_err);
	layer_drop(h, layer);
	return rc;
}
