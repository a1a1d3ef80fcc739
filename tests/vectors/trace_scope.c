/* SPDX-License-Identifier: MIT */
/* trace_scope.c - ops about scopes, mounts, listeners, and the service as a whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* ---- scopes and mounts ---- */

static json_t *op_preset(struct trace *t)
{
	const struct thing *parent = thing_if_any(t, A_PRESET, "parent");
	struct thing *x = thing_new(t, A_PRESET, "id");
	errand_error *e = NULL;
	errand_reg binding;
	int rc = errand_scope_new(t->host, &x->id, &e);

	if (rc == 0 && parent)
		rc = errand_scope_bind(t->host, x->id, parent->id, &binding, &e);
	return outcome(rc, e, json_object());
}

static errand_scope step_scope(struct trace *t)
{
	const struct thing *preset = thing_if_any(t, A_PRESET, "preset");

	return preset ? preset->id : 0;
}

static json_t *ok_true(void)
{
	return json_pack("{s:b}", "ok", 1);
}

static json_t *op_mount(struct trace *t)
{
	char *config = json_dumps(t->mount_config, 0);
	errand_error *e = NULL;
	errand_reg reg = 0;
	int rc = errand_mount(t->host, step_scope(t), config, ERRAND_NUL, &reg, &e);

	if (rc == 0)
		thing_new(t, A_MOUNT, "id")->id = reg;
	free(config);
	return outcome(rc, e, ok_true());
}

static json_t *op_unmount(struct trace *t)
{
	const struct thing *x = thing_get(t, A_MOUNT, "id");

	if (x && errand_unregister(t->host, x->id) != 0)
		trace_fail(t, "unmount failed");
	return json_object();
}

static json_t *op_dispose_preset(struct trace *t)
{
	const struct thing *x = thing_get(t, A_PRESET, "id");
	errand_error *e = NULL;
	int rc = x ? errand_scope_dispose(t->host, x->id, &e) : 0;

	return outcome(rc, e, json_object());
}

static json_t *op_restrict(struct trace *t)
{
	errand_scope scope = errand_agent_scope(t->host, step_agent(t, "id"));
	char *filter = json_dumps(step_get(t, "filter"), 0);
	errand_error *e = NULL;
	errand_reg reg;
	int rc = errand_restrict(t->host, scope, filter, ERRAND_NUL, &reg, &e);

	free(filter);
	return outcome(rc, e, ok_true());
}

/* ---- listeners ---- */

static json_t *text_or_null(const char *text)
{
	return text ? json_string(text) : json_null();
}

static int throw_if_told(const struct thing *x, errand_error *e)
{
	const char *message = json_string_value(json_object_get(x->in, "throws"));

	if (!message)
		return 0;
	errand_error_set(e, NULL, NULL, message, ERRAND_NUL);
	return ERRAND_ECALLBACK;
}

static int on_done(void *ud, errand_host *h, errand_reg self, errand_agent owner,
		   const char *json, size_t len, errand_error *e)
{
	struct thing *x = ud;
	json_t *s = json_loadb(json, len, JSON_ALLOW_NUL, NULL);
	json_t *detail = json_object_get(s, "detail");

	(void)h;
	(void)self;
	trace_event(x->trace,
		    json_pack("{s:s,s:s,s:O,s:O,s:O,s:O,s:o}", "ev", "done", "listener",
			      x->name, "task", json_object_get(s, "id"), "status",
			      json_object_get(s, "status"), "detail",
			      detail ? detail : json_null(), "reported",
			      json_object_get(s, "reported"), "owner",
			      text_or_null(agent_name(x->trace, owner))));
	if (json_object_get(x->in, "rejects"))
		trace_late(x, trace_task(x->trace,
					 json_string_value(json_object_get(s, "id"))));
	json_decref(s);
	return throw_if_told(x, e);
}

/* "bash-1 running reported=false" of all that the owner sees now. */
static json_t *visible_to(struct trace *t, errand_agent owner)
{
	json_t *rows = json_array(), *all, *s;
	errand_text *text = NULL;
	size_t i;

	if (errand_list(t->host, agent_now(t, owner), &text, NULL) != 0)
		trace_fail(t, "errand_list failed");
	all = text ? take_json(text) : NULL;
	json_array_foreach (all, i, s)
		json_array_append_new(
			rows, json_sprintf("%s %s reported=%s",
					   json_string_value(json_object_get(s, "id")),
					   json_string_value(json_object_get(s, "status")),
					   json_is_true(json_object_get(s, "reported"))
						   ? "true"
						   : "false"));
	json_decref(all);
	return rows;
}

static int on_changed(void *ud, errand_host *h, errand_reg self, errand_agent owner,
		      const char *json, size_t len, errand_error *e)
{
	struct thing *x = ud;

	(void)h;
	(void)self;
	(void)json;
	(void)len;
	trace_event(x->trace,
		    json_pack("{s:s,s:s,s:o,s:o}", "ev", "changed", "watcher", x->name,
			      "owner", text_or_null(agent_name(x->trace, owner)), "visible",
			      visible_to(x->trace, owner)));
	if (json_object_get(x->in, "rejects"))
		trace_late(x, 0);
	return throw_if_told(x, e);
}

static json_t *listen_to(struct trace *t, int event, errand_event_fn fn)
{
	errand_scope scope = step_scope(t);
	struct thing *x = thing_new(t, A_LISTENER, "id");
	errand_error *e = NULL;
	int rc = errand_on(t->host, scope, event, fn, x, NULL, &x->id, &e);

	return outcome(rc, e, json_object());
}

static json_t *op_listen(struct trace *t)
{
	return listen_to(t, ERRAND_ON_DONE, on_done);
}

static json_t *op_watch(struct trace *t)
{
	return listen_to(t, ERRAND_ON_CHANGED, on_changed);
}

static json_t *op_surface(struct trace *t)
{
	errand_scope scope = step_scope(t);
	struct thing *x = thing_new(t, A_LISTENER, "id");
	errand_error *e = NULL;
	int rc = errand_surface(t->host, scope, step_text(t, "name"), &x->id, &e);

	return outcome(rc, e, json_object());
}

/* By its disposer or with the plugin that made it: here both undo the registration. The
 * second time there is nothing left to undo. */
static json_t *op_unlisten(struct trace *t)
{
	const struct thing *x = thing_get(t, A_LISTENER, "id");
	int rc = x ? errand_unregister(t->host, x->id) : 0;

	if (rc != 0 && rc != ERRAND_EGONE)
		trace_fail(t, "unlisten failed");
	return json_object();
}

/* ---- what an agent sees ---- */

static json_t *tool_names(struct trace *t, int by_registration)
{
	json_t *all, *names = json_array(), *tool;
	errand_text *text = NULL;
	size_t i;

	if (errand_tools(t->host, step_agent(t, "agent"), by_registration, &text, NULL) !=
	    0)
		trace_fail(t, "errand_tools failed");
	all = text ? take_json(text) : NULL;
	json_array_foreach (all, i, tool)
		json_array_append(names, json_object_get(tool, "name"));
	json_decref(all);
	return names;
}

static json_t *op_tools(struct trace *t)
{
	return json_pack("{s:o}", "tools", tool_names(t, 1));
}

static json_t *op_prompt(struct trace *t)
{
	json_t *all, *names = json_array(), *section;
	errand_text *text = NULL;
	size_t i;

	if (errand_sections(t->host, step_agent(t, "agent"), &text, NULL) != 0)
		trace_fail(t, "errand_sections failed");
	all = text ? take_json(text) : NULL;
	json_array_foreach (all, i, section)
		json_array_append(names, json_object_get(section, "name"));
	json_decref(all);
	return json_pack("{s:o,s:o}", "sections", names, "tools", tool_names(t, 0));
}

/* ---- the service ---- */

static void on_service_over(void *ud, errand_host *h)
{
	(void)h;
	((struct trace *)ud)->is_service_over = true;
}

static json_t *op_dispose_service(struct trace *t)
{
	errand_error *e = NULL;
	int rc = errand_service_dispose(t->host, on_service_over, t, NULL, &e);

	trace_drain(t);
	return outcome(rc, e, json_pack("{s:b}", "finished", t->is_service_over));
}

static json_t *op_service_status(struct trace *t)
{
	return json_pack("{s:b,s:b}", "finished", t->is_service_over, "tasks_present",
			 !t->is_service_over);
}

const struct op scope_ops[] = {
	{"preset", op_preset, {"id", "parent"}},
	{"mount", op_mount, {"id", "preset"}},
	{"unmount", op_unmount, {"id"}},
	{"dispose_preset", op_dispose_preset, {"id"}},
	{"restrict", op_restrict, {"id", "filter"}},
	{"listen", op_listen, {"id", "preset", "throws", "rejects"}},
	{"watch", op_watch, {"id", "preset", "throws", "rejects"}},
	{"surface", op_surface, {"id", "name", "preset"}},
	{"unlisten", op_unlisten, {"id", "how"}},
	{"tools", op_tools, {"agent"}},
	{"prompt", op_prompt, {"agent"}},
	{"dispose_service", op_dispose_service, {NULL}},
	{"service_status", op_service_status, {NULL}},
	{NULL, NULL, {NULL}},
};
