/* SPDX-License-Identifier: MIT */
/* tool.c - the tools of a layer: added, found, shown to the model, removed (spec 3.9, 8.4). */
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "core/internal.h"
#include "core/schema.h"

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

struct tool *tool_find(const errand_host *h, const struct agent *a, const char *name,
		       size_t len)
{
	struct name *n = names_get(&h->global.tools, name, len);

	(void)a; /* every agent sees the global layer */
	return n ? list_entry(n, struct tool, name) : NULL;
}

/* ---- adding ---- */

static int take_schema(errand_host *h, const char *what, errand_str text, struct str *copy,
		       struct js **ret, errand_error **ret_err)
{
	struct err err = {0};
	const char *trouble;
	int rc = str_in(&h->mem, text.ptr, text.len, MAX_LABEL, copy);

	if (rc != 0)
		return error_make(ret_err, &h->mem, rc, "%s is over %zu bytes", what,
				  MAX_LABEL);
	if (!copy->ptr)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "%s is missing", what);
	rc = js_parse(copy->ptr, copy->len, ret, &err);
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

static int fill(errand_host *h, struct tool *t, const struct errand_tool *o,
		errand_error **ret_err)
{
	int rc = str_in(&h->mem, o->name.ptr, o->name.len, MAX_LABEL, &t->text);

	if (rc == 0)
		rc = str_in(&h->mem, o->description.ptr, o->description.len, MAX_LABEL,
			    &t->description);
	if (rc != 0)
		return error_make(ret_err, &h->mem, rc, "name or description is too long");
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
	struct tool *t;
	int rc;

	if (names_get(&layer->tools, o->name.ptr, str_length(o->name.ptr, o->name.len)))
		return error_about(ret_err, &h->mem, ERRAND_EREFUSED, "tool \"",
				   o->name.ptr, str_length(o->name.ptr, o->name.len),
				   "\" is already registered");
	t = mem_new(&h->mem, sizeof(*t));
	rc = fill(h, t, o, ret_err);
	if (rc != 0) {
		tool_free(h, t);
		return rc;
	}
	t->layer = layer;
	t->flags = o->flags;
	t->exec = o->exec;
	t->render = o->render;
	t->finalize = o->finalize;
	t->ud = o->ud;
	t->destroy = o->destroy;
	t->name.text = t->text.ptr;
	t->name.len = t->text.len;
	list_init(&t->calls);
	names_put(&layer->tools, &t->name);
	list_add(&layer->tool_order, &t->node);
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
	if (o->size < sizeof(*o) || !o->name.ptr || !o->exec || !ret)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "bad tool");
	layer = layer_of(h, s);
	if (!layer)
		return error_make(ret_err, &h->mem, ERRAND_EGONE, "no such scope");
	rc = tool_add(h, layer, o, &t, ret_err);
	if (rc == 0)
		*ret = reg_publish(h, &t->reg);
	return rc;
}

int errand_tool_add(errand_host *h, errand_scope s, const struct errand_tool *o,
		    errand_reg *ret, errand_error **ret_err)
{
	int rc;

	if (!h || !o)
		return error_make(ret_err, NULL, ERRAND_EARG, "no host or no tool");
	rc = add_public(h, s, o, ret, ret_err);
	if (rc != 0)
		destroy_ud(h, o->destroy, o->ud);
	return rc;
}

/* ---- showing ---- */

static int by_name(const void *a, const void *b)
{
	const struct tool *const *x = a, *const *y = b;

	return strcmp((*x)->text.ptr, (*y)->text.ptr);
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
	(void)buf_addf(out, ",\"exclusive\":%s}",
		       t->flags & ERRAND_TOOL_EXCLUSIVE ? "true" : "false");
}

static struct tool **collect(const errand_host *h, size_t *ret_count)
{
	struct tool **all;
	size_t n = 0;

	list_each(counted, &h->global.tool_order) n++;
	all = mem_new(&h->mem, (n + 1) * sizeof(*all));
	n = 0;
	list_each(node, &h->global.tool_order)
		all[n++] = list_entry(node, struct tool, node);
	*ret_count = n;
	return all;
}

int errand_tools(const errand_host *h, errand_agent agent, int by_registration,
		 errand_text **ret_json, errand_error **ret_err)
{
	struct tool **all;
	struct buf b;
	size_t n;

	if (!h || !ret_json)
		return error_make(ret_err, NULL, ERRAND_EARG,
				  "no host, or nowhere to answer");
	if (agent != 0 && !agent_get(h, agent, ret_err))
		return ERRAND_EGONE;
	all = collect(h, &n);
	if (!by_registration)
		qsort(all, n, sizeof(*all), by_name);
	buf_init_mem(&b, SIZE_MAX / 4, &h->mem);
	(void)buf_addc(&b, '[');
	for (size_t i = 0; i < n; i++) {
		(void)buf_adds(&b, i ? "," : "");
		put_tool(&b, all[i]);
	}
	(void)buf_addc(&b, ']');
	mem_free(&h->mem, all);
	return text_take(&b, ret_json, ret_err);
}
