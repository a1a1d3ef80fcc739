/* SPDX-License-Identifier: MIT */
/* rows_tools.c - rows about what the three tools show. */
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

static void want_is_error(struct row *r, const json_t *result)
{
	want_json(r, "isError", json_object_get(r->in, "isError"),
		  json_incref(json_object_get(result, "isError")));
}

/* ---- task_output ---- */

void row_output_render(struct row *r)
{
	static const char *const known[] = {"n",     "mode", "text",  "status", "detail",
					    "limit", "out",  "bytes", NULL};
	const char *mode = row_text(r->in, "mode", NULL);
	const json_t *text = json_object_get(r->in, "text");
	struct task_in in = {.limit = json_object_get(r->in, "limit"), .text = text};
	struct work *work;
	struct world w;
	json_t *args, *got;
	char *id;

	if (!row_is_known(r, known))
		return;
	if (!mode || (strcmp(mode, "stream") != 0 && strcmp(mode, "final") != 0)) {
		row_fail(r, "unknown mode");
		return;
	}
	in.is_stream = strcmp(mode, "stream") == 0;
	world_open(&w, "{}");
	work = world_start(&w, &in, &id, NULL);
	world_bring(&w, work, id, row_text(r->in, "status", NULL),
		    json_object_get(r->in, "detail"), text);
	args = json_pack("{s:s}", "task_id", id);
	got = result_text(world_call(&w, "task_output", args));
	want_json(r, "bytes", json_object_get(r->in, "bytes"),
		  json_integer((json_int_t)json_string_length(got)));
	want_json(r, "out", json_object_get(r->in, "out"), got);
	json_decref(args);
	free(id);
	world_close(&w);
}

/* ---- task_list ---- */

static void start_listed(struct world *w, const json_t *task)
{
	struct task_in in = {
		.kind = json_object_get(task, "kind"),
		.label = json_object_get(task, "label"),
		.limit = json_object_get(task, "limit"),
	};
	struct work *work;
	char *id;

	work = world_start(w, &in, &id, NULL);
	world_bring(w, work, id, row_text(task, "status", NULL),
		    json_object_get(task, "detail"), NULL);
	free(id);
}

void row_list_render(struct row *r)
{
	static const char *const known[] = {"n", "tasks", "out", "value", NULL};
	const json_t *result, *want = json_object_get(r->in, "value");
	json_t *task, *args = json_object();
	struct world w;
	size_t i;

	if (row_is_known(r, known)) {
		world_open(&w, "{}");
		json_array_foreach (json_object_get(r->in, "tasks"), i, task)
			start_listed(&w, task);
		result = world_call(&w, "task_list", args);
		want_json(r, "out", json_object_get(r->in, "out"), result_text(result));
		want_json(r, "value", want,
			  without_times(want, json_object_get(result, "value")));
		world_close(&w);
	}
	json_decref(args);
}

/* ---- task_kill ---- */

static void check_kill(struct row *r, struct world *w, const char *id, const json_t *result)
{
	const json_t *value = json_object_get(result, "value");
	json_t *now = world_get(w, id), *after;

	want_is_error(r, result);
	want_json(r, "out", json_object_get(r->in, "out"), result_text(result));
	want_json(r, "error", json_object_get(r->in, "error"),
		  error_in_row(json_object_get(result, "error")));
	want_json(r, "outcome", json_object_get(r->in, "outcome"),
		  json_incref(json_object_get(value, "outcome")));
	want_json(r, "task_status", json_object_get(r->in, "task_status"),
		  json_incref(json_object_get(json_object_get(value, "task"), "status")));
	want_json(r, "cancels", json_object_get(r->in, "cancels"), json_incref(w->cancels));
	after = json_pack("{s:O,s:O}", "status", json_object_get(now, "status"), "reported",
			  json_object_get(now, "reported"));
	want_json(r, "after", json_object_get(r->in, "after"), after);
	json_decref(now);
}

void row_kill_render(struct row *r)
{
	static const char *const known[] = {
		"n",      "id",          "kind",          "state", "detail",  "limit",
		"reason", "isError",     "out",           "error", "outcome", "cancels",
		"after",  "task_status", "cancel_throws", NULL};
	struct task_in in = {
		.kind = json_object_get(r->in, "kind"),
		.limit = json_object_get(r->in, "limit"),
	};
	const char *want_id = row_text(r->in, "id", NULL);
	struct work *work;
	struct world w;
	json_t *args;
	char *id;

	if (!row_is_known(r, known))
		return;
	world_open(&w, "{}");
	world_advance_counter(&w, json_string_value(in.kind), want_id);
	work = world_start(&w, &in, &id, NULL);
	want_json(r, "id", json_object_get(r->in, "id"), json_string(id));
	world_bring(&w, work, id, row_text(r->in, "state", NULL),
		    json_object_get(r->in, "detail"), NULL);
	w.cancel_throws = row_text(r->in, "cancel_throws", NULL);
	args = json_pack("{s:s}", "task_id", id);
	if (row_text(r->in, "reason", NULL))
		json_object_set(args, "reason", json_object_get(r->in, "reason"));
	check_kill(r, &w, id, world_call(&w, "task_kill", args));
	json_decref(args);
	free(id);
	world_close(&w);
}
