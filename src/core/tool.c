/* SPDX-License-Identifier: MIT */
/* tool.c - the tools of a layer: added, found, shown to the model, removed (spec 3.9, 8.4). */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "core/abi.h"
#include "core/agent.h"
#include "core/call.h"
#include "core/host.h"
#include "core/reg.h"
#include "core/schema.h"
#include "core/scope.h"
#include "core/tool.h"
#include "core/view.h"

static void tool_free(errand_host *h, struct tool *t)
{
	destroy_ud(h, t->destroy, t->ud);
	js_free(t->params);
	js_free(t->output);
	str_free(&h->mem, &t->text);
	str_free(&h->mem, &t->description);
	str_free(&h->mem, &t->params_text);
	str_free(&h->mem, &t->output_text);
	mem_free(&h->mem, t);
}

static void tool_undo(errand_host *h, struct reg *r)
{
	struct tool *t = list_entry(r, struct tool, reg);

	names_del(&t->layer->tools, &t->name);
	list_del(&t->node);
	layer_drop(h, t->layer);
	t->gone = true;
	if (list_is_empty(&t->calls))
		tool_free(h, t);
}

void tool_call_ended(errand_host *h, struct call *c)
{
	struct tool *t = c->tool;

	if (!t)
		return;
	list_del(&c->in_tool);
	if (t->gone && list_is_empty(&t->calls))
		tool_free(h, t);
}

/* The nearest of the chain; a global one, if no restriction hides it (spec 3.9). */
struct tool *tool_find(const errand_host *h, const struct agent *a, const char *name,
		       size_t len)
{
	chain_each(layer, h, scope_of(a))
	{
		struct name *n = names_get(&layer->tools, name, len);
		struct tool *t = n ? list_entry(n, struct tool, name) : NULL;

		if (t)
			return layer->scope || tool_is_allowed(h, scope_of(a), t) ? t
										  : NULL;
	}
	return NULL;
}

/* ---- adding ---- */

static int take_schema(errand_host *h, const char *what, errand_str text, struct str *copy,
		       struct js **ret, errand_error **ret_err)
{
	struct err err = {0};
	const char *trouble;
	int rc = str_json(&h->mem, text.ptr, text.len, h->max.definition, copy);

	if (rc != 0)
		return error_of_text(ret_err, &h->mem, rc, what, h->max.definition);
	if (!copy->ptr)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "%s is missing", what);
	rc = js_parse_within(copy->ptr, copy->len, h->max.nesting, ret, &err);
	if (rc != 0)
		return error_make(ret_err, &h->mem, rc_of_parse(rc), "%s: %s", what,
				  err.msg);
	trouble = schema_trouble(*ret);
	if (trouble)
		return error_make(ret_err, &h->mem, ERRAND_EREFUSED,
				  "%s is outside the supported subset at \"%s\"", what,
				  trouble);
	return 0;
}

static int fill(errand_host *h, const struct layer *layer, struct tool *t,
		const struct errand_tool *o, errand_error **ret_err)
{
	int rc = str_in(&h->mem, o->name.ptr, o->name.len, h->max.definition, &t->text);

	if (rc == 0)
		rc = str_in(&h->mem, o->description.ptr, o->description.len,
			    h->max.definition, &t->description);
	if (rc != 0)
		return error_of_text(ret_err, &h->mem, rc, "name or description",
				     h->max.definition);
	if (names_get(&layer->tools, t->text.ptr, t->text.len))
		return error_about(ret_err, &h->mem, ERRAND_EREFUSED, "tool \"",
				   t->text.ptr, t->text.len, "\" is already registered");
	rc = take_schema(h, "params_schema", o->params_schema, &t->params_text, &t->params,
			 ret_err);
	if (rc != 0)
		return rc;
	return take_schema(h, "output_schema", o->output_schema, &t->output_text,
			   &t->output, ret_err);
}

/* On failure the caller still owns ud. */
int tool_add(errand_host *h, struct layer *layer, const struct errand_tool *o,
	     struct tool **ret, errand_error **ret_err)
{
	struct tool *t = mem_new(&h->mem, sizeof(*t));
	int rc = fill(h, layer, t, o, ret_err);

	if (rc != 0) {
		tool_free(h, t);
		return rc;
	}
	t->layer = layer;
	t->flags = o->flags;
	t->exec = o->exec;
	t->render = o->render;
	t->finalize = o->finalize;
	t->card = o->card;
	t->timeout_ms = o->timeout_ms;
	t->ud = o->ud;
	t->destroy = o->destroy;
	t->name.text = t->text.ptr;
	t->name.len = t->text.len;
	list_init(&t->calls);
	names_put(&layer->tools, &t->name);
	list_add(&layer->tool_order, &t->node);
	layer_hold(layer);
	t->reg.undo = tool_undo;
	*ret = t;
	return 0;
}

static int add_public(errand_host *h, errand_scope s, const struct errand_tool *o,
		      errand_reg *ret, errand_error **ret_err)
{
	struct layer *layer;
	struct tool *t;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (!o->name.ptr || !o->exec || o->timeout_ms < 0 || !ret)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "bad tool");
	layer = layer_open(h, s, ret_err);
	if (!layer)
		return ERRAND_EGONE;
	rc = tool_add(h, layer, o, &t, ret_err);
	if (rc == 0)
		*ret = reg_publish_in(h, layer, &t->reg);
	layer_drop(h, layer);
	return rc;
}

int errand_tool_add(errand_host *h, errand_scope s, const struct errand_tool *o,
		    errand_reg *ret, errand_error **ret_err)
{
	struct errand_tool own;
	int rc;

	if (!h || !o)
		return error_make(ret_err, NULL, ERRAND_EARG, "no host or no tool");
	rc = abi_take(&h->mem, ABI_TOOL, &own, o, ret_err);
	if (rc == 0)
		rc = add_public(h, s, &own, ret, ret_err);
	if (rc != 0)
		destroy_ud(h, own.destroy, own.ud);
	return rc;
}

/* ---- showing ---- */

/* By UTF-16 unit, as the order is defined: what needs a pair of them begins with 0xd8.. there,
 * so it stands before U+E000 and what follows, whose UTF-8 begins with 0xee or 0xef. */
static int compare_names(const struct str *a, const struct str *b)
{
	size_t min = a->len < b->len ? a->len : b->len;

	for (size_t i = 0; i < min; i++) {
		unsigned char x = (unsigned char)a->ptr[i], y = (unsigned char)b->ptr[i];

		if (x == y)
			continue;
		if (x >= 0xee && y >= 0xee && (x >= 0xf0) != (y >= 0xf0))
			return x >= 0xf0 ? -1 : 1;
		return x < y ? -1 : 1;
	}
	return a->len == b->len ? 0 : a->len < b->len ? -1 : 1;
}

static int by_name(const void *a, const void *b)
{
	const struct tool *const *x = a, *const *y = b;

	return compare_names(&(*x)->text, &(*y)->text);
}

static void put_tool(struct buf *out, const struct tool *t)
{
	(void)buf_addc(out, '{');
	(void)js_put_member(out, "name", t->text.ptr, t->text.len);
	(void)js_put_member(out, "description",
			    t->description.ptr ? t->description.ptr : "",
			    t->description.len);
	(void)js_put_key(out, "parameters");
	(void)buf_add(out, t->params_text.ptr, t->params_text.len);
	(void)js_put_key(out, "outputSchema");
	(void)buf_add(out, t->output_text.ptr, t->output_text.len);
	if (t->timeout_ms > 0) {
		(void)js_put_key(out, "timeoutMs");
		(void)js_put_int(out, t->timeout_ms);
	}
	(void)buf_addf(out, ",\"exclusive\":%s}",
		       t->flags & ERRAND_TOOL_EXCLUSIVE ? "true" : "false");
}

static void see(struct view *v, const struct layer *layer, struct list *node)
{
	const struct tool *t = list_entry(node, struct tool, node);

	if (layer->scope || tool_is_allowed(v->host, v->scope, t))
		view_put(v, t->text.ptr, t->text.len, t);
}

static const struct tool **tools_of(const errand_host *h, const struct scope *scope,
				    size_t *ret_count)
{
	const struct tool **all;
	struct view v;

	view_of(&v, h, scope, offsetof(struct layer, tool_order), see);
	all = mem_new(&h->mem, (v.count + 1) * sizeof(const struct tool *));
	for (size_t i = 0; i < v.count; i++)
		all[i] = v.all[i].thing;
	*ret_count = v.count;
	view_release(&v);
	return all;
}

const struct tool **tools_by_name(const errand_host *h, size_t *ret_count)
{
	const struct tool **all;
	size_t n = 0;

	list_each(counted, &h->global.tool_order) n++;
	all = mem_new(&h->mem, (n + 1) * sizeof(const struct tool *));
	n = 0;
	list_each(node, &h->global.tool_order)
		all[n++] = list_entry(node, struct tool, node);
	qsort(all, n, sizeof(const struct tool *), by_name);
	*ret_count = n;
	return all;
}

int errand_tools(const errand_host *h, errand_agent agent, int by_registration,
		 errand_text **ret_json, errand_error **ret_err)
{
	const struct tool **all;
	struct agent *a = NULL;
	struct buf b;
	size_t n;

	if (!h || !ret_json)
		return error_make(ret_err, NULL, ERRAND_EARG,
				  "no host, or nowhere to answer");
	if (agent != 0 && !(a = agent_get(h, agent, ret_err)))
		return ERRAND_EGONE;
	all = tools_of(h, scope_of(a), &n);
	if (!by_registration)
		qsort(all, n, sizeof(const struct tool *), by_name);
	buf_init_try(&b, SIZE_MAX / 4, &h->mem);
	(void)buf_addc(&b, '[');
	for (size_t i = 0; i < n; i++) {
		(void)buf_adds(&b, i ? "," : "");
		put_tool(&b, all[i]);
	}
	(void)buf_addc(&b, ']');
	mem_free(&h->mem, all);
	return text_take(&b, ret_json, ret_err);
}
