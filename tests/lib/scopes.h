/* SPDX-License-Identifier: MIT */
/* scopes.h - core.h's fixture with scopes: presets, agents under them, what they see. */
#pragma once

#include "core.h"

/* What a mount brings. */
static UNUSED const char three[] = "task_output task_list task_kill";

static UNUSED errand_scope preset(void)
{
	errand_scope s = 0;

	CHECK_INT(errand_scope_new(core.host, &s, NULL), 0);
	return s;
}

static UNUSED errand_reg bind(errand_scope child, errand_scope parent)
{
	errand_reg r = 0;

	CHECK_INT(errand_scope_bind(core.host, child, parent, &r, NULL), 0);
	return r;
}

static UNUSED errand_scope preset_in(errand_scope parent)
{
	errand_scope s = preset();

	(void)bind(s, parent);
	return s;
}

static UNUSED errand_agent agent_in(const char *session, errand_scope scope)
{
	struct errand_agent_options o = {
		.size = sizeof(o), .session = str(session), .scope = scope};
	errand_agent a = 0;

	CHECK_INT(errand_agent_new(core.host, &o, &a, NULL), 0);
	return a;
}

static UNUSED errand_reg mount_in(errand_scope s)
{
	errand_reg r = 0;

	CHECK_INT(errand_mount(core.host, s, "{}", ERRAND_NUL, &r, NULL), 0);
	return r;
}

static UNUSED errand_reg listen_in(errand_scope s, int event, const char *what)
{
	union {
		const char *in;
		void *out;
	} ud = {.in = what};
	errand_reg r = 0;

	CHECK_INT(errand_on(core.host, s, event, on_event, ud.out, NULL, &r, NULL), 0);
	return r;
}

/* The code; the error's text in core.message. */
static UNUSED int refused(int rc, errand_error **e)
{
	(void)message(*e);
	return rc;
}

/* The member @key of each object of @json, joined by spaces. Frees @t. */
static UNUSED const char *joined(errand_text *t, const char *key)
{
	struct js *j = NULL;
	struct buf b = BUF_INIT(sizeof(core.shown) - 1);
	size_t len;
	const char *json = errand_text_data(t, &len);

	CHECK_INT(js_parse(json, len, &j, NULL), 0);
	for (size_t i = 0; i < js_count(j); i++) {
		(void)buf_adds(&b, i ? " " : "");
		(void)buf_adds(&b, js_string(js_get(js_at(j, i), key), NULL));
	}
	js_free(j);
	errand_text_free(t);
	(void)snprintf(core.shown, sizeof(core.shown), "%s", buf_text(&b));
	buf_release(&b);
	return core.shown;
}

static UNUSED const char *tools_of(errand_agent a)
{
	errand_text *t = NULL;

	CHECK_INT(errand_tools(core.host, a, 1, &t, NULL), 0);
	return joined(t, "name");
}

static UNUSED const char *sections_of(errand_agent a)
{
	errand_text *t = NULL;

	CHECK_INT(errand_sections(core.host, a, &t, NULL), 0);
	return joined(t, "name");
}

static UNUSED int try_start_for(errand_agent owner)
{
	struct errand_task_spec s = spec(owner, FINAL);

	return try_start(&s);
}

static UNUSED int unregister(errand_reg r)
{
	return errand_unregister(core.host, r);
}

static struct {
	errand_agent agent;
	errand_scope to;
	errand_reg reg;
} later;

static UNUSED int rebind_it(void *ud, errand_host *h, errand_reg self, errand_agent owner,
			    const char *json, size_t len, errand_error *e)
{
	(void)ud, (void)self, (void)owner, (void)json, (void)len, (void)e;
	if (later.agent)
		CHECK_INT(errand_agent_rebind(h, later.agent, later.to, NULL), 0);
	if (later.reg)
		CHECK_INT(errand_unregister(h, later.reg), 0);
	memset(&later, 0, sizeof(later));
	return 0;
}

/* At the next change: move @a to @to, undo @reg; what is 0 stays as it is. */
static UNUSED void do_on_change(errand_agent a, errand_scope to, errand_reg reg)
{
	memset(&later, 0, sizeof(later));
	CHECK_INT(errand_on(core.host, 0, ERRAND_ON_CHANGED, rebind_it, NULL, NULL, NULL,
			    NULL),
		  0);
	run();
	later.agent = a;
	later.to = to;
	later.reg = reg;
}
