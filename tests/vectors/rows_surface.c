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

/* ---- prompt sections ---- */

/* Of each section only what the row shows of it: its name alone, or some members. */
static json_t *shaped_like(const json_t *want, const json_t *sections)
{
	json_t *shaped = json_array(), *section;
	size_t i;

	json_array_foreach (sections, i, section) {
		const json_t *example = json_array_get(want, i);
		json_t *part = json_object();
		const char *key;
		json_t *value;

		if (json_is_string(example))
			json_array_append(shaped, json_object_get(section, "name"));
		json_object_foreach ((json_t *)(uintptr_t)example, key, value) {
			if (json_object_get(section, key))
				json_object_set(part, key, json_object_get(section, key));
		}
		if (!json_is_string(example))
			json_array_append(shaped, part);
		json_decref(part);
	}
	return shaped;
}

static void prompt(struct row *r, struct world *w)
{
	static const char *const known[] = {"n",    "what",     "name",   "order",
					    "text", "sections", "prompt", NULL};
	const json_t *want = json_object_get(r->in, "sections");
	errand_text *list = NULL, *whole = NULL;
	json_t *sections, *first;

	if (!row_is_known(r, known))
		return;
	if (errand_sections(w->host, w->agent, &list, NULL) != 0 ||
	    errand_prompt(w->host, w->agent, NULL, 0, &whole, NULL) != 0) {
		row_fail(r, "no prompt");
		errand_text_free(list);
		return;
	}
	sections = take_json(list);
	first = json_array_get(sections, 0);
	if (want)
		want_json(r, "sections", want, shaped_like(want, sections));
	for (size_t i = 2; i < 5; i++)
		if (json_object_get(r->in, known[i]))
			want_json(r, known[i], json_object_get(r->in, known[i]),
				  json_incref(json_object_get(first, known[i])));
	if (json_object_get(r->in, "prompt"))
		want_text(r, "prompt", errand_text_data(whole, NULL),
			  strlen(errand_text_data(whole, NULL)));
	json_decref(sections);
	errand_text_free(whole);
}

void row_surface(struct row *r)
{
	static const struct {
		const char *what;
		void (*play)(struct row *r, struct world *w);
		const char *mount;
	} table[] = {
		{"tool-schema", tool_schema, "{}"}, {"output-schema", output_schema, "{}"},
		{"config", config, NULL},           {"start", start, "{}"},
		{"prompt", prompt, "{}"},           {"prompt-section", prompt, "{}"},
		{"prompt-sections", prompt, "{}"},
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
