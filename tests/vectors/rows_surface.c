/* SPDX-License-Identifier: MIT */
/* rows_surface.c - rows about schemas, configuration, and what start() refuses. */
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

static json_t *all_tools(struct world *w, int by_registration)
{
	errand_text *t = NULL;

	if (errand_tools(w->host, w->agent, by_registration, &t, NULL) != 0)
		return NULL;
	return take_json(t);
}

static json_t *one_tool(struct world *w, const char *name)
{
	json_t *all = all_tools(w, 1), *tool, *found = NULL;
	size_t i;

	json_array_foreach (all, i, tool) {
		if (strcmp(json_string_value(json_object_get(tool, "name")), name) == 0)
			found = json_incref(tool);
	}
	json_decref(all);
	return found;
}

/* Descriptions are our own words. */
static void strip_descriptions(json_t *schema)
{
	const char *key;
	json_t *value;

	json_object_del(schema, "description");
	json_object_foreach (schema, key, value)
		strip_descriptions(value);
}

static void tool_schema(struct row *r, struct world *w)
{
	json_t *tool = one_tool(w, row_text(r->in, "name", NULL));
	json_t *got = json_incref(json_object_get(tool, "parameters"));

	strip_descriptions(got);
	want_json(r, "parameters", json_object_get(r->in, "parameters"), got);
	json_decref(tool);
}

static void output_schema(struct row *r, struct world *w)
{
	json_t *tool = one_tool(w, row_text(r->in, "name", NULL));
	bool is_exclusive = json_is_true(json_object_get(tool, "exclusive"));

	want_json(r, "schema", json_object_get(r->in, "schema"),
		  json_incref(json_object_get(tool, "outputSchema")));
	want_json(r, "concurrency_mode", json_object_get(r->in, "concurrency_mode"),
		  json_string(is_exclusive ? "exclusive" : "shared"));
	want_json(r, "timeoutMs", json_object_get(r->in, "timeoutMs"),
		  json_incref(json_object_get(tool, "timeoutMs")));
	json_decref(tool);
}

static json_t *tool_names(struct world *w)
{
	json_t *all = all_tools(w, 1), *names = json_array(), *tool;
	size_t i;

	json_array_foreach (all, i, tool)
		json_array_append(names, json_object_get(tool, "name"));
	json_decref(all);
	return names;
}

static void config(struct row *r, struct world *w)
{
	char *text = json_dumps(json_object_get(r->in, "config"), 0);
	errand_error *e = NULL;
	errand_reg mount;
	int rc = errand_mount(w->host, 0, text, ERRAND_NUL, &mount, &e);

	want_json(r, "ok", json_object_get(r->in, "ok"), json_boolean(rc == 0));
	want_json(r, "error", json_object_get(r->in, "error"),
		  rc == 0 ? NULL : json_string(errand_error_message(e, NULL)));
	want_json(r, "tools_registered", json_object_get(r->in, "tools_registered"),
		  tool_names(w));
	errand_error_free(e);
	free(text);
}

static void start(struct row *r, struct world *w)
{
	const json_t *spec = json_object_get(r->in, "spec");
	struct task_in in = {
		.kind = json_object_get(spec, "kind"),
		.label = json_object_get(spec, "label"),
		.limit = json_object_get(spec, "outputLimitBytes"),
		.is_unowned = true,
	};
	const char *want_id = row_text(r->in, "id", NULL);
	char *id = NULL, *error = NULL;
	struct work *work;

	if (want_id)
		world_advance_counter(w, in.kind ? json_string_value(in.kind) : "bash",
				      want_id);
	work = world_start(w, &in, &id, &error);
	want_json(r, "error", json_object_get(r->in, "error"),
		  error ? json_string(error) : NULL);
	want_json(r, "id", json_object_get(r->in, "id"), id ? json_string(id) : NULL);
	want_json(r, "ran", json_object_get(r->in, "ran"), json_boolean(work != NULL));
	free(error);
	free(id);
}

void row_surface(struct row *r)
{
	static const struct {
		const char *what;
		void (*play)(struct row *r, struct world *w);
		const char *mount;
	} table[] = {
		{"tool-schema", tool_schema, "{}"},
		{"output-schema", output_schema, "{}"},
		{"config", config, NULL},
		{"start", start, "{}"},
	};
	const char *what = row_text(r->in, "what", NULL);
	struct world w;

	for (size_t i = 0; what && i < sizeof(table) / sizeof(table[0]); i++) {
		if (strcmp(table[i].what, what) != 0)
			continue;
		world_open(&w, table[i].mount);
		table[i].play(r, &w);
		world_close(&w);
		return;
	}
	row_fail(r, "unknown kind of row");
}
