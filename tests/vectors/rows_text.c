/* SPDX-License-Identifier: MIT */
/* rows_text.c - rows about text alone: retention, summaries, notices. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

/* ---- retention ---- */

static json_t *whole_text(const json_t *in)
{
	json_t *chunks = json_object_get(in, "chunks"), *text = json_string(""), *chunk;
	size_t i;

	if (!chunks) {
		json_decref(text);
		return json_incref(json_object_get(in, "text"));
	}
	json_array_foreach (chunks, i, chunk) {
		size_t a = json_string_length(text), b = json_string_length(chunk);
		char *both = malloc(a + b + 1);

		memcpy(both, json_string_value(text), a);
		memcpy(both + a, json_string_value(chunk), b);
		json_string_setn(text, both, a + b);
		free(both);
	}
	return text;
}

void row_retention(struct row *r)
{
	static const char *const known[] = {"n",   "kind",      "max",     "text", "chunks",
					    "out", "truncated", "omitted", NULL};
	const char *kind = row_text(r->in, "kind", NULL), *start;
	json_t *text = whole_text(r->in);
	size_t len = json_string_length(text), kept;
	size_t max = (size_t)json_integer_value(json_object_get(r->in, "max"));

	if (!row_is_known(r, known) || !kind ||
	    (strcmp(kind, "head") && strcmp(kind, "tail"))) {
		row_fail(r, "unknown kind of retention");
	} else if (errand_retain(strcmp(kind, "tail") == 0, max, json_string_value(text),
				 len, &start, &kept) != 0) {
		row_fail(r, "errand_retain failed");
	} else {
		want_text(r, "out", start, kept);
		want_json(r, "truncated", json_object_get(r->in, "truncated"),
			  json_boolean(kept < len));
		want_json(r, "omitted", json_object_get(r->in, "omitted"),
			  json_integer((json_int_t)(len - kept)));
	}
	json_decref(text);
}

/* ---- notices ---- */

static json_t *first_message(struct world *w)
{
	errand_text *t = NULL;
	json_t *all, *first;

	if (errand_inbox(w->host, w->agent, &t, NULL) != 0)
		return NULL;
	all = take_json(t);
	first = json_array_size(all) == 1 ? json_incref(json_array_get(all, 0)) : NULL;
	json_decref(all);
	return first;
}

/* Start what the row describes under its id, let it end, and return the notice. */
static json_t *notice_of(struct row *r, struct world *w)
{
	struct task_in in = {
		.kind = json_object_get(r->in, "kind"),
		.label = json_object_get(r->in, "label"),
		.limit = json_object_get(r->in, "limit"),
	};
	const char *want_id = row_text(r->in, "id", NULL);
	struct work *work;
	char *id;

	if (want_id)
		world_advance_counter(w, json_string_value(in.kind), want_id);
	work = world_start(w, &in, &id, NULL);
	if (want_id)
		want_json(r, "id", json_object_get(r->in, "id"), json_string(id));
	world_bring(w, work, id, row_text(r->in, "status", NULL),
		    json_object_get(r->in, "detail"), NULL);
	free(id);
	return first_message(w);
}

static void check_source(struct row *r, const json_t *message)
{
	json_t *source = json_copy(json_object_get(message, "source"));
	json_t *want = json_pack("{s:s,s:s,s:s}", "kind", "plugin", "plugin", "tool-tasks",
				 "form", "notice");

	json_object_del(source, "summary");
	want_json(r, "source", want, source);
	json_decref(want);
}

void row_notice(struct row *r)
{
	static const char *const known[] = {"n",      "id",      "kind",  "label",
					    "status", "detail",  "limit", "out",
					    "bytes",  "summary", NULL};
	json_t *message, *text;
	struct world w;

	if (!row_is_known(r, known))
		return;
	world_open(&w, "{}");
	message = notice_of(r, &w);
	text = result_text(message);
	check_source(r, message);
	want_json(r, "bytes", json_object_get(r->in, "bytes"),
		  json_integer((json_int_t)json_string_length(text)));
	want_json(r, "out", json_object_get(r->in, "out"), text);
	want_json(r, "summary", json_object_get(r->in, "summary"),
		  json_incref(
			  json_object_get(json_object_get(message, "source"), "summary")));
	json_decref(message);
	world_close(&w);
}

/* ---- summaries ---- */

static json_int_t utf16_units(const json_t *text)
{
	const unsigned char *p = (const unsigned char *)json_string_value(text);
	json_int_t n = 0;

	for (size_t i = 0; i < json_string_length(text); i++)
		n += (p[i] & 0xc0) == 0x80 ? 0 : p[i] >= 0xf0 ? 2 : 1;
	return n;
}

static json_t *raw_summary(const json_t *raw)
{
	errand_text *t = NULL;
	json_t *j;

	if (errand_summary(json_string_value(raw), json_string_length(raw), &t) != 0)
		return NULL;
	j = json_string(errand_text_data(t, NULL));
	errand_text_free(t);
	return j;
}

/* A row that shows half a pair was recorded where that is legal: we have one unit less. */
static void check_units(struct row *r, const json_t *got)
{
	bool is_half = json_is_true(json_object_get(r->in, "lone_surrogate"));
	json_int_t want = json_integer_value(json_object_get(r->in, "utf16"));
	json_int_t units = utf16_units(got);

	if (units != want && !(is_half && units == want - 1))
		row_trouble(r, "utf16", json_object_get(r->in, "utf16"), got);
}

void row_summary(struct row *r)
{
	static const char *const known[] = {
		"n",      "raw",     "kind",  "label",          "status",
		"detail", "summary", "utf16", "lone_surrogate", NULL};
	const json_t *raw = json_object_get(r->in, "raw");
	json_t *message = NULL, *got;
	struct world w;

	if (!row_is_known(r, known))
		return;
	world_open(&w, "{}");
	if (raw) {
		got = raw_summary(raw);
	} else {
		message = notice_of(r, &w);
		got = json_incref(
			json_object_get(json_object_get(message, "source"), "summary"));
	}
	check_units(r, got);
	want_json(r, "summary", json_object_get(r->in, "summary"), got);
	json_decref(message);
	world_close(&w);
}
