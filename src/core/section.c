/* SPDX-License-Identifier: MIT */
/* section.c - the sections of the prompt: added, and seen from a scope (spec 8.2, 8.3). */
#include "core/section.h"

#include <math.h>
#include <stdlib.h>

#include "base/json.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/reg.h"
#include "core/scope.h"
#include "core/view.h"

static void section_free(errand_host *h, struct section *s)
{
	str_free(&h->mem, &s->name);
	str_free(&h->mem, &s->text);
	mem_free(&h->mem, s);
}

static void section_undo(errand_host *h, struct reg *r)
{
	struct section *s = list_entry(r, struct section, reg);

	list_del(&s->node);
	layer_drop(h, s->layer);
	section_free(h, s);
}

/* ---- adding ---- */

static bool is_taken(const struct layer *layer, const struct str *name)
{
	list_each(node, &layer->sections)
	{
		const struct section *s = list_entry(node, struct section, node);

		if (s->name.len == name->len &&
		    memcmp(s->name.ptr, name->ptr, name->len) == 0)
			return true;
	}
	return false;
}

static int refuse_twin(errand_host *h, const struct layer *layer, const struct str *name,
		       errand_error **ret_err)
{
	return error_about(
		ret_err, &h->mem, ERRAND_EREFUSED, "prompt section \"", name->ptr,
		name->len,
		layer->scope
			? "\" is already registered in this scope"
			: "\" is already registered (for a per-agent override, register "
			  "through that agent's `agent.ctx` instead)");
}

static int take_strings(errand_host *h, const char *name, errand_str text,
			struct section *s, errand_error **ret_err)
{
	int rc = str_in(&h->mem, name, ERRAND_NUL, h->max.definition, &s->name);

	if (rc != 0)
		return error_of_text(ret_err, &h->mem, rc, "section name",
				     h->max.definition);
	rc = str_in(&h->mem, text.ptr, text.len, h->max.result, &s->text);
	if (rc != 0)
		return error_of_text(ret_err, &h->mem, rc, "section text", h->max.result);
	return 0;
}

int section_add(errand_host *h, struct layer *layer, const char *name, double order,
		errand_str text, struct reg **ret, errand_error **ret_err)
{
	struct section *s = mem_new(&h->mem, sizeof(*s));
	int rc = take_strings(h, name, text, s, ret_err);

	if (rc == 0 && is_taken(layer, &s->name))
		rc = refuse_twin(h, layer, &s->name, ret_err);
	if (rc != 0) {
		section_free(h, s);
		return rc;
	}
	s->order = order;
	s->layer = layer;
	layer_hold(layer);
	list_add(&layer->sections, &s->node);
	s->reg.undo = section_undo;
	*ret = &s->reg;
	return 0;
}

int errand_section_add(errand_host *h, errand_scope scope, const char *name, double order,
		       const char *text, size_t len, errand_reg *ret,
		       errand_error **ret_err)
{
	struct layer *layer;
	struct reg *r;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (!name || !*name || !text || !ret)
		return error_make(ret_err, &h->mem, ERRAND_EARG,
				  "a section needs a name and a text");
	if (!isfinite(order))
		return error_about(ret_err, &h->mem, ERRAND_EARG, "prompt section \"", name,
				   strlen(name), "\" needs a finite order");
	layer = layer_open(h, scope, ret_err);
	if (!layer)
		return ERRAND_EGONE;
	rc = section_add(h, layer, name, order, (errand_str){text, len}, &r, ret_err);
	if (rc == 0)
		*ret = reg_publish_in(h, layer, r);
	layer_drop(h, layer);
	return rc;
}

/* ---- seeing ---- */

struct ranked {
	const struct section *section;
	size_t place; /* ties keep it */
};

static int by_order(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->section->order != y->section->order)
		return x->section->order < y->section->order ? -1 : 1;
	return x->place < y->place ? -1 : 1;
}

static void see(struct view *v, const struct layer *layer, struct list *node)
{
	const struct section *s = list_entry(node, struct section, node);

	(void)layer;
	view_put(v, s->name.ptr, s->name.len, s);
}

const struct section **sections_of(const errand_host *h, const struct agent *a,
				   size_t *ret_count)
{
	const struct section **all;
	struct ranked *ranked;
	struct view v;

	view_of(&v, h, scope_of(a), offsetof(struct layer, sections), see);
	ranked = mem_new(&h->mem, (v.count + 1) * sizeof(*ranked));
	all = mem_new(&h->mem, (v.count + 1) * sizeof(const struct section *));
	for (size_t i = 0; i < v.count; i++)
		ranked[i] = (struct ranked){v.all[i].thing, i};
	qsort(ranked, v.count, sizeof(*ranked), by_order);
	for (size_t i = 0; i < v.count; i++)
		all[i] = ranked[i].section;
	*ret_count = v.count;
	mem_free(&h->mem, ranked);
	view_release(&v);
	return all;
}

int errand_sections(const errand_host *h, errand_agent agent, errand_text **ret_json,
		    errand_error **ret_err)
{
	const struct section **all;
	struct agent *a = NULL;
	struct buf b;
	size_t n;

	if (!h || !ret_json)
		return error_make(ret_err, NULL, ERRAND_EARG,
				  "no host, or nowhere to answer");
	if (agent != 0 && !(a = agent_get(h, agent, ret_err)))
		return ERRAND_EGONE;
	all = sections_of(h, a, &n);
	buf_init_try(&b, SIZE_MAX / 4, &h->mem);
	(void)buf_addc(&b, '[');
	for (size_t i = 0; i < n; i++) {
		(void)buf_adds(&b, i ? ",{" : "{");
		(void)js_put_member(&b, "name", all[i]->name.ptr, all[i]->name.len);
		(void)js_put_key(&b, "order");
		(void)js_put_number(&b, all[i]->order);
		(void)js_put_member(&b, "text", all[i]->text.ptr, all[i]->text.len);
		(void)buf_addc(&b, '}');
	}
	(void)buf_addc(&b, ']');
	mem_free(&h->mem, all);
	return text_take(&b, ret_json, ret_err);
}
