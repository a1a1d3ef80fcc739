/* SPDX-License-Identifier: MIT */
/* trace.c - plays a recorded trace: its steps, its events, and what became of them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* ---- the step ---- */

void trace_fail(struct trace *t, const char *what)
{
	row_fail(t->row, what);
}

void trace_late(struct thing *x, errand_task about)
{
	struct thing **at = &x->trace->late;

	while (*at && *at != x)
		at = &(*at)->next_late;
	*at = x;
	x->late_about = about;
}

static void fail_late(struct trace *t)
{
	while (t->late) {
		struct thing *x = t->late;
		const json_t *message = json_object_get(x->in, "rejects");
		errand_error *why = errand_error_new(NULL, NULL, json_string_value(message),
						     json_string_length(message));

		t->late = x->next_late;
		x->next_late = NULL;
		if (errand_event_failed(t->host, x->id, x->late_about, why) != 0)
			trace_fail(t, "errand_event_failed failed");
		errand_error_free(why);
	}
}

/* One event at a time: what a listener says later comes right behind it. */
void trace_drain(struct trace *t)
{
	int rc;

	do {
		rc = errand_run(t->host, t->now, WALL_START + t->now, 1);
		fail_late(t);
	} while (rc > 0);
	if (rc < 0)
		trace_fail(t, "errand_run failed");
}

void trace_event(struct trace *t, json_t *event)
{
	json_array_append_new(t->events, event);
}

const json_t *step_get(const struct trace *t, const char *key)
{
	return json_object_get(t->step, key);
}

const char *step_text(const struct trace *t, const char *key)
{
	return json_string_value(step_get(t, key));
}

errand_str str_text(const char *s)
{
	return (errand_str){s, s ? ERRAND_NUL : 0};
}

errand_str str_json(const json_t *j)
{
	return (errand_str){json_string_value(j), json_string_length(j)};
}

json_t *outcome(int rc, errand_error *e, json_t *ok)
{
	json_t *out = ok;
	size_t len;
	const char *message;

	if (rc < 0) {
		message = errand_error_message(e, &len);
		out = json_pack("{s:s%}", "threw", message ? message : "",
				message ? len : 0);
		json_decref(ok);
	}
	errand_error_free(e);
	return out;
}

json_t *outcome_json(int rc, errand_error *e, const char *key, errand_text *t)
{
	return outcome(rc, e, rc < 0 ? NULL : json_pack("{s:o}", key, take_json(t)));
}

/* ---- things ---- */

struct thing *thing_new(struct trace *t, enum thing_kind kind, const char *key)
{
	struct thing *x = calloc(1, sizeof(*x));

	*x = (struct thing){
		.next = t->things,
		.trace = t,
		.kind = kind,
		.name = step_text(t, key),
		.in = t->step,
		.log = json_array(),
		.started = t->now,
	};
	t->things = x;
	return x;
}

static void things_free(struct thing *x)
{
	while (x) {
		struct thing *next = x->next;

		json_decref(x->log);
		json_decref(x->result);
		free(x->public_id);
		free(x->text);
		free(x);
		x = next;
	}
}

struct thing *thing_if_any(struct trace *t, enum thing_kind kind, const char *key)
{
	const char *name = step_text(t, key);

	for (struct thing *x = t->things; name && x; x = x->next)
		if (x->kind == kind && x->name && strcmp(x->name, name) == 0)
			return x;
	if (name) {
		char line[128];

		(void)snprintf(line, sizeof(line), "nothing is called %.60s", name);
		trace_fail(t, line);
	}
	return NULL;
}

struct thing *thing_get(struct trace *t, enum thing_kind kind, const char *key)
{
	if (!step_text(t, key))
		trace_fail(t, "a step does not say which");
	return thing_if_any(t, kind, key);
}

const char *agent_name(const struct trace *t, errand_agent a)
{
	for (const struct thing *x = t->things; a && x; x = x->next)
		if (x->kind == AN_AGENT && (x->id == a || x->gone_id == a))
			return x->name;
	return NULL;
}

errand_agent step_agent(struct trace *t, const char *key)
{
	const struct thing *x = thing_if_any(t, AN_AGENT, key);

	return x ? x->id : 0;
}

/* ---- the host ---- */

static void on_warn(void *ud, const char *text, size_t len)
{
	trace_event(ud, json_pack("{s:s,s:s%}", "ev", "warn", "text", text, len));
}

static int on_inbox(void *ud, errand_host *h, errand_reg self, errand_agent owner,
		    const char *json, size_t len, errand_error *e)
{
	json_t *event = json_loadb(json, len, JSON_ALLOW_NUL, NULL);

	(void)h;
	(void)self;
	(void)e;
	note_inbox(ud, owner, event);
	json_decref(event);
	return 0;
}

/* Rows of the newer state have the library's own defaults; the others a quiet host without
 * an admission limit. */
static json_t *read_config(struct trace *t)
{
	json_t *config = json_deep_copy(json_object_get(t->row->in, "config")), *registry;

	if (!json_is_object(config) || !row_text(t->row->in, "name", NULL)) {
		trace_fail(t, "a trace without a name, or without config");
		json_decref(config);
		config = json_object();
	}
	registry = json_incref(json_object_get(config, "registry"));
	json_object_del(config, "registry");
	if (!t->is_later) {
		json_decref(registry);
		registry = json_pack("{s:n}", "maxConcurrentTasksPerOwner");
		json_object_set_new(config, "completionDelivery", json_string("quiet"));
	}
	t->mount_config = config;
	return registry ? registry : json_object();
}

static int open_host(struct trace *t)
{
	struct errand_host_options o = {
		.size = sizeof(o),
		.abi = ERRAND_ABI,
		.warn = on_warn,
		.ud = t,
	};
	errand_reg heard;
	json_t *registry = read_config(t);
	char *config = json_dumps(registry, 0);
	int rc;

	json_decref(registry);
	o.config_json = str_text(config);
	rc = errand_host_new(&o, &t->host, NULL);
	free(config);
	if (rc == 0) {
		trace_drain(t);
		rc = errand_on(t->host, 0, ERRAND_ON_INBOX, on_inbox, t, NULL, &heard,
			       NULL);
	}
	if (rc != 0)
		trace_fail(t, "no host");
	return rc;
}

/* ---- one step ---- */

static const struct op *find_op(const char *name)
{
	static const struct op *const tables[] = {scope_ops, agent_ops, work_ops, call_ops};

	for (size_t i = 0; name && i < sizeof(tables) / sizeof(tables[0]); i++)
		for (const struct op *op = tables[i]; op->name; op++)
			if (strcmp(op->name, name) == 0)
				return op;
	return NULL;
}

static bool is_member(const struct op *op, const char *key)
{
	static const char *const always[] = {"op", "out", "events"};

	for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
		if (strcmp(always[i], key) == 0)
			return true;
	for (size_t i = 0; op->members[i]; i++)
		if (strcmp(op->members[i], key) == 0)
			return true;
	return false;
}

static bool is_known(struct trace *t, const struct op *op)
{
	const char *key;
	json_t *value;
	char line[160];

	if (!op) {
		(void)snprintf(line, sizeof(line), "unknown op: %.60s", step_text(t, "op"));
		trace_fail(t, line);
		return false;
	}
	json_object_foreach ((json_t *)(uintptr_t)t->step, key, value) {
		if (is_member(op, key))
			continue;
		(void)snprintf(line, sizeof(line), "a member that no %s has: %.60s",
			       op->name, key);
		trace_fail(t, line);
	}
	return t->row->trouble == NULL;
}

/* A claim may restore the budget: then a wake is for a notice that came before. */
static bool is_odd_wake(const struct trace *t)
{
	if (t->wakes == 0 || strcmp(step_text(t, "op"), "claim") != 0)
		return (t->wakes > 0) != (t->followups > 0);
	return false;
}

static void check_step(struct trace *t, size_t i, json_t *out)
{
	const json_t *events = step_get(t, "events"), *want = step_get(t, "out");
	json_t *none = json_array();
	char what[64];

	(void)snprintf(what, sizeof(what), "step %zu (%.30s)", i, step_text(t, "op"));
	want_json(t->row, what, want, without_times(want, out));
	(void)snprintf(what, sizeof(what), "events of step %zu", i);
	want_json(t->row, what, events ? events : none, json_incref(t->events));
	if (is_odd_wake(t))
		trace_fail(t,
			   "a wake without a notice on next-turn, or the other way round");
	json_decref(none);
	json_decref(out);
}

static void play_step(struct trace *t, size_t i)
{
	const struct op *op = find_op(step_text(t, "op"));
	json_t *out;

	if (!is_known(t, op))
		return;
	json_array_clear(t->events);
	t->wakes = t->followups = 0;
	out = op->run(t);
	trace_drain(t);
	check_step(t, i, out);
}

static void play(struct row *r, bool is_later)
{
	static const char *const known[] = {"n", "name", "seed", "config", "steps", NULL};
	struct trace t = {.row = r, .is_later = is_later, .events = json_array()};
	json_t *steps = json_object_get(r->in, "steps");

	if (!json_is_array(steps))
		row_fail(r, "a trace without steps");
	if (row_is_known(r, known) && open_host(&t) == 0) {
		for (size_t i = 0; i < json_array_size(steps) && !r->trouble; i++) {
			t.step = json_array_get(steps, i);
			play_step(&t, i);
		}
	}
	errand_host_free(t.host);
	things_free(t.things);
	json_decref(t.events);
	json_decref(t.mount_config);
}

void row_scenario(struct row *r)
{
	play(r, false);
}

void row_later_scenario(struct row *r)
{
	play(r, true);
}
