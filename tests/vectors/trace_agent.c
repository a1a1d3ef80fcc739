/* SPDX-License-Identifier: MIT */
/* trace_agent.c - ops about agents, their inboxes and their logs. */
#include <stdlib.h>
#include <string.h>

#include "trace.h"

/* ---- the log ---- */

static json_t *ids_of(const json_t *messages)
{
	json_t *ids = json_array(), *m;
	size_t i;

	json_array_foreach (messages, i, m)
		json_array_append(ids, json_object_get(m, "id"));
	return ids;
}

static int on_log(void *ud, errand_agent a, uint64_t seq, const char *event_json,
		  size_t len, errand_error *e)
{
	struct thing *x = ud;
	const json_t *refusal = json_object_get(x->in, "inject_throws");
	const char *message = json_string_value(refusal);
	json_t *event;

	(void)a;
	if (json_is_true(refusal) || message) {
		errand_error_set(e, NULL, NULL, message ? message : "inject boom",
				 ERRAND_NUL);
		return ERRAND_ECALLBACK;
	}
	if ((json_int_t)seq != x->seq++)
		trace_fail(x->trace, "a gap in the log");
	event = json_loadb(event_json, len, JSON_ALLOW_NUL, NULL);
	if (!event)
		trace_fail(x->trace, "an event that is not JSON");
	json_array_append_new(x->log, event);
	return 0;
}

/* Rows name messages by their ids, and know no turns: only what was spliced. */
static json_t *log_in_row(const struct thing *x)
{
	json_t *rows = json_array(), *event;
	size_t i;

	json_array_foreach (x->log, i, event) {
		json_t *row;

		if (strcmp(json_string_value(json_object_get(event, "type")),
			   "agent/inbox/spliced") != 0)
			continue;
		row = json_deep_copy(event);
		json_object_set_new(json_object_get(row, "data"), "inserted",
				    ids_of(json_object_get(json_object_get(event, "data"),
							   "inserted")));
		json_object_set_new(row, "seq",
				    json_integer((json_int_t)json_array_size(rows)));
		json_array_append_new(rows, row);
	}
	return rows;
}

static json_t *op_log(struct trace *t)
{
	const struct thing *x = thing_get(t, AN_AGENT, "id");

	return x ? json_pack("{s:o}", "log", log_in_row(x)) : NULL;
}

/* ---- agents ---- */

static void on_wake(void *ud, errand_host *h, errand_agent a)
{
	struct thing *x = ud;

	(void)h;
	(void)a;
	x->trace->wakes++;
}

static int agent_open(struct thing *x, errand_error **ret_err)
{
	const char *session = json_string_value(json_object_get(x->in, "session"));
	struct errand_agent_options o = {
		.size = sizeof(o),
		.flags = ERRAND_AGENT_UNREGISTERED,
		.session = str_text(session ? session : x->name),
		.scope = x->parent,
		.log = on_log,
		.wake = on_wake,
		.ud = x,
	};

	return errand_agent_new(x->trace->host, &o, &x->id, ret_err);
}

static int set_status(struct thing *x, const char *status, errand_error **ret_err)
{
	bool is_running = status && strcmp(status, "running") == 0;
	errand_host *h = x->trace->host;

	if (status && !is_running && strcmp(status, "idle") != 0)
		trace_fail(x->trace, "an agent is idle or running");
	if (is_running && !x->turn)
		return errand_turn_open(h, x->id, &x->turn, ret_err);
	if (is_running || !x->turn)
		return 0;
	x->turn = 0;
	return errand_turn_close(h, x->id, "{\"kind\":\"aborted\"}", ERRAND_NUL, ret_err);
}

/* The object is made first: one that cannot be registered is still a caller. */
static json_t *op_agent(struct trace *t)
{
	const struct thing *preset = thing_if_any(t, A_PRESET, "preset");
	struct thing *x = thing_new(t, AN_AGENT, "id");
	errand_error *e = NULL;
	int rc;

	x->parent = preset ? preset->id : 0;
	rc = agent_open(x, &e);
	if (rc == 0)
		rc = set_status(x, step_text(t, "status"), &e);
	if (rc == 0 && !json_is_false(step_get(t, "register")))
		rc = errand_agent_register(t->host, x->id, 1, &e);
	return outcome(rc, e, json_object());
}

static json_t *op_status(struct trace *t)
{
	struct thing *x = thing_get(t, AN_AGENT, "id");
	errand_error *e = NULL;
	int rc = x ? set_status(x, step_text(t, "status"), &e) : 0;

	return outcome(rc, e, json_object());
}

static json_t *registered(struct trace *t, int yes)
{
	errand_error *e = NULL;
	int rc = errand_agent_register(t->host, step_agent(t, "id"), yes, &e);

	return outcome(rc, e, json_object());
}

static json_t *op_register(struct trace *t)
{
	return registered(t, 1);
}

static json_t *op_unregister(struct trace *t)
{
	return registered(t, 0);
}

static json_t *op_rebind(struct trace *t)
{
	const struct thing *preset = thing_if_any(t, A_PRESET, "preset");
	struct thing *x = thing_get(t, AN_AGENT, "id");
	errand_error *e = NULL;
	int rc = 0;

	if (x) {
		x->parent = preset ? preset->id : 0;
		rc = errand_agent_rebind(t->host, x->id, x->parent, &e);
	}
	return outcome(rc, e, json_object());
}

/* A stale instance may still look (spec 2.2). Here its id is gone: an agent of the same
 * session, which is not registered, stands for it. */
static void stand_in(struct thing *x)
{
	if (errand_agent_scope(x->trace->host, x->id) != 0)
		return;
	x->gone_id = x->id;
	x->seq = 0;
	if (agent_open(x, NULL) != 0)
		trace_fail(x->trace, "no stand-in for an agent that is gone");
}

errand_agent agent_now(struct trace *t, errand_agent a)
{
	for (struct thing *x = t->things; a && x; x = x->next) {
		if (x->kind != AN_AGENT || (x->id != a && x->gone_id != a))
			continue;
		stand_in(x);
		return x->id;
	}
	return 0;
}

static void on_disposed(void *ud, errand_host *h)
{
	struct thing *x = ud;

	(void)h;
	x->is_over = true;
	stand_in(x);
}

static json_t *finished(const struct thing *x)
{
	return x ? json_pack("{s:b}", "finished", x->is_over) : NULL;
}

/* The inbox first, and everybody hears of that; then the rest. */
static json_t *op_dispose_agent(struct trace *t)
{
	struct thing *x = thing_get(t, AN_AGENT, "id");
	errand_error *e = NULL;
	int rc = x ? errand_agent_cancel(t->host, x->id, 0, &e) : 0;

	trace_drain(t);
	if (x && rc == 0)
		rc = errand_agent_dispose(t->host, x->id, on_disposed, x, NULL, &e);
	trace_drain(t);
	return outcome(rc, e, finished(x));
}

static json_t *op_dispose_status(struct trace *t)
{
	return finished(thing_get(t, AN_AGENT, "id"));
}

/* ---- the inbox ---- */

void note_inbox(struct trace *t, errand_agent a, const json_t *event)
{
	const json_t *m = json_object_get(event, "message");
	const json_t *source = json_object_get(m, "source"), *turn;
	const char *word = json_string_value(json_object_get(event, "event"));
	const char *target = json_string_value(json_object_get(event, "target"));
	bool is_followup = target && strcmp(target, "next-turn") == 0;
	json_t *noted = json_pack("{s:o,s:s,s:O}", "ev", json_sprintf("inbox-%s", word),
				  "agent", agent_name(t, a), "message",
				  json_object_get(m, "id"));

	turn = json_object_get(event, "turn");
	if (turn)
		json_object_set(noted, "turn", (json_t *)(uintptr_t)turn);
	trace_event(t, noted);
	if (strcmp(word, "inserted") != 0 || !json_object_get(source, "plugin"))
		return;
	t->followups += is_followup;
	trace_event(t, json_pack("{s:s,s:s,s:O,s:O,s:O}", "ev",
				 is_followup ? "followup" : "notice", "agent",
				 agent_name(t, a), "id", json_object_get(m, "id"), "text",
				 json_object_get(
					 json_array_get(json_object_get(m, "content"), 0),
					 "text"),
				 "source", source));
}

static json_t *inbox_in_row(struct trace *t, errand_agent a)
{
	json_t *out = json_pack("{s:[],s:[]}", "next_step", "next_turn"), *all, *m;
	errand_text *text = NULL;
	size_t i;

	if (errand_inbox(t->host, a, &text, NULL) != 0)
		trace_fail(t, "errand_inbox failed");
	all = text ? take_json(text) : NULL;
	json_array_foreach (all, i, m) {
		const char *target = json_string_value(json_object_get(m, "target"));
		bool is_turn = target && strcmp(target, "next-turn") == 0;

		json_array_append(json_object_get(out, is_turn ? "next_turn" : "next_step"),
				  json_object_get(m, "id"));
	}
	json_decref(all);
	return out;
}

static json_t *op_inbox(struct trace *t)
{
	return inbox_in_row(t, step_agent(t, "id"));
}

static int step_target(struct trace *t, int if_none)
{
	const char *target = step_text(t, "target");

	if (!target)
		return if_none;
	if (strcmp(target, "next-step") == 0)
		return ERRAND_NEXT_STEP;
	if (strcmp(target, "next-turn") != 0)
		trace_fail(t, "unknown target");
	return ERRAND_NEXT_TURN;
}

static json_t *op_claim(struct trace *t)
{
	bool is_turn = step_target(t, ERRAND_NEXT_STEP) == ERRAND_NEXT_TURN;
	errand_error *e = NULL;
	errand_text *text = NULL;
	errand_lease lease = 0;
	json_t *messages, *ids;
	int rc = errand_claim(t->host, step_agent(t, "id"),
			      is_turn ? ERRAND_CLAIM_TURN : ERRAND_CLAIM_STEP,
			      (uint64_t)json_integer_value(step_get(t, "turn")), &lease,
			      &text, &e);

	if (rc < 0)
		return outcome(rc, e, NULL);
	messages = take_json(text);
	ids = ids_of(messages);
	json_decref(messages);
	if (lease && errand_lease_commit(t->host, lease) != 0)
		trace_fail(t, "a claim that cannot be committed");
	return json_pack("{s:o}", "claimed", ids);
}

static json_t *op_user_send(struct trace *t)
{
	json_t *m = json_pack("{s:s,s:[{s:s,s:O}],s:{s:s}}", "role", "user", "content",
			      "type", "text", "text", step_get(t, "text"), "source", "kind",
			      "user");
	char *text = json_dumps(m, 0);
	errand_error *e = NULL;
	errand_text *id = NULL;
	json_t *out;
	int rc = errand_insert(t->host, step_agent(t, "id"),
			       step_target(t, ERRAND_NEXT_TURN), text, ERRAND_NUL, &id, &e);

	out = outcome(rc, e,
		      rc < 0 ? NULL : json_pack("{s:s}", "id", errand_text_data(id, NULL)));
	errand_text_free(id);
	free(text);
	json_decref(m);
	return out;
}

static json_t *op_cancel_agent(struct trace *t)
{
	errand_error *e = NULL;
	int rc = errand_agent_cancel(t->host, step_agent(t, "id"),
				     json_is_true(step_get(t, "keep_inbox")), &e);

	return outcome(rc, e, json_object());
}

static json_t *op_remove_pending(struct trace *t)
{
	int rc = errand_discard(t->host, step_agent(t, "id"), step_text(t, "message"),
				ERRAND_NUL, NULL);

	if (rc != 0 && rc != ERRAND_EGONE)
		trace_fail(t, "errand_discard failed");
	return json_pack("{s:b}", "removed", rc == 0);
}

/* The log of one agent rebuilds the inbox of another, silently. */
static json_t *op_replay_inbox(struct trace *t)
{
	const struct thing *x = thing_get(t, AN_AGENT, "id");
	struct errand_agent_options o = {
		.size = sizeof(o),
		.flags = ERRAND_AGENT_UNREGISTERED,
		.session = str_text("replayed"),
	};
	size_t before = json_array_size(t->events);
	errand_error *e = NULL;
	errand_agent copy;
	json_t *out;
	char *log;
	int rc;

	if (!x)
		return NULL;
	log = json_dumps(x->log, 0);
	rc = errand_agent_new(t->host, &o, &copy, &e);
	if (rc == 0)
		rc = errand_replay(t->host, copy, log, ERRAND_NUL, &e);
	free(log);
	if (rc < 0)
		return outcome(rc, e, NULL);
	trace_drain(t);
	out = inbox_in_row(t, copy);
	json_object_set_new(
		out, "notifications",
		json_integer((json_int_t)(json_array_size(t->events) - before)));
	return out;
}

const struct op agent_ops[] = {
	{"agent",
	 op_agent,
	 {"id", "session", "preset", "register", "inject_throws", "status"}},
	{"status", op_status, {"id", "status"}},
	{"register", op_register, {"id"}},
	{"unregister", op_unregister, {"id"}},
	{"rebind", op_rebind, {"id", "preset"}},
	{"dispose_agent", op_dispose_agent, {"id"}},
	{"dispose_status", op_dispose_status, {"id"}},
	{"inbox", op_inbox, {"id"}},
	{"log", op_log, {"id"}},
	{"replay_inbox", op_replay_inbox, {"id"}},
	{"claim", op_claim, {"id", "target", "turn"}},
	{"user_send", op_user_send, {"id", "text", "target"}},
	{"cancel_agent", op_cancel_agent, {"id", "keep_inbox"}},
	{"remove_pending", op_remove_pending, {"id", "message"}},
	{NULL, NULL, {NULL}},
};
