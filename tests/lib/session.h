/* SPDX-License-Identifier: MIT */
/*
 * session.h - on top of core.h: an agent with a session log and a wake, and the log in few
 * words, one event each:
 *
 *   next-step@0+m1,m2   inserted            turn/start 1     step/start 1.2    user/message m1
 *   next-turn@0-1       claimed             turn/end 1 completed
 *   next-step@0-2x      canceled
 */
#pragma once

#include "core.h"

static struct {
	struct buf events; /* a JSON array without its brackets */
	uint64_t next_seq;
	const char *refusal; /* the log refuses with this */
	int refuse_after;    /* so many events that it still takes */
	int wakes;
	void (*on_wake)(void); /* what the loop does then */
} session;

static UNUSED int on_log(void *ud, errand_agent a, uint64_t seq, const char *event_json,
			 size_t len, errand_error *e)
{
	(void)ud;
	(void)a;
	if (session.refusal && session.refuse_after-- <= 0) {
		errand_error_set(e, NULL, NULL, session.refusal, ERRAND_NUL);
		return ERRAND_ECALLBACK;
	}
	CHECK_INT(seq, session.next_seq++);
	if (session.events.len > 0)
		(void)buf_addc(&session.events, ',');
	(void)buf_add(&session.events, event_json, len);
	return 0;
}

static UNUSED void session_reset(void)
{
	buf_release(&session.events);
	memset(&session, 0, sizeof(session));
	buf_init(&session.events, MIB(1));
}

/* The whole log as errand_replay() takes it. */
static UNUSED const char *log_json(void)
{
	static char copy[65536];

	(void)snprintf(copy, sizeof(copy), "[%s]", buf_text(&session.events));
	return copy;
}

static void put_ids(struct buf *out, const struct js *messages)
{
	for (size_t i = 0; i < js_count(messages); i++)
		(void)buf_addf(out, "%s%s", i ? "," : "",
			       js_string(js_get(js_at(messages, i), "id"), NULL));
}

static void put_splice(struct buf *out, const struct js *data)
{
	double removed = js_number(js_get(data, "removedCount"));

	(void)buf_addf(out, "%s@%d", js_string(js_get(data, "target"), NULL),
		       (int)js_number(js_get(data, "start")));
	if (removed > 0)
		(void)buf_addf(out, "-%d", (int)removed);
	if (js_get(data, "outcome"))
		(void)buf_addc(out, 'x');
	if (js_count(js_get(data, "inserted")) > 0)
		(void)buf_addc(out, '+');
	put_ids(out, js_get(data, "inserted"));
}

static void put_event(struct buf *out, const struct js *event)
{
	const struct js *data = js_get(event, "data"), *turn = js_get(data, "turn");
	const char *type = js_string(js_get(event, "type"), NULL);
	const char *id = js_string(js_get(js_get(data, "message"), "id"), NULL);
	const char *reason = js_string(js_get(js_get(data, "reason"), "kind"), NULL);

	if (strcmp(type, "agent/inbox/spliced") == 0) {
		put_splice(out, data);
		return;
	}
	(void)buf_adds(out, type);
	if (id)
		(void)buf_addf(out, " %s", id);
	else if (js_get(data, "step"))
		(void)buf_addf(out, " %d.%d", (int)js_number(turn),
			       (int)js_number(js_get(data, "step")));
	else if (turn)
		(void)buf_addf(out, " %d", (int)js_number(turn));
	if (reason)
		(void)buf_addf(out, " %s", reason);
}

/* What was logged since the last look, ";" behind each. */
static UNUSED const char *events(void)
{
	static char words[8192];
	static size_t seen;
	struct buf b = BUF_INIT(sizeof(words) - 1);
	struct js *all = NULL;

	CHECK_INT(js_parse(log_json(), strlen(log_json()), &all, NULL), 0);
	if (js_count(all) < seen)
		seen = 0;
	for (; seen < js_count(all); seen++) {
		put_event(&b, js_at(all, seen));
		(void)buf_addc(&b, ';');
	}
	js_free(all);
	(void)snprintf(words, sizeof(words), "%s", buf_text(&b));
	buf_release(&b);
	return words;
}

static UNUSED void on_wake(void *ud, errand_host *h, errand_agent a)
{
	(void)ud;
	(void)h;
	(void)a;
	session.wakes++;
	logf_("wake;");
	if (session.on_wake)
		session.on_wake();
}

static UNUSED errand_agent session_agent(const char *name, bool can_wake)
{
	struct errand_agent_options o = {.size = sizeof(o),
					 .session = str(name),
					 .log = on_log,
					 .wake = can_wake ? on_wake : NULL};
	errand_agent a = 0;

	CHECK_INT(errand_agent_new(core.host, &o, &a, NULL), 0);
	return a;
}

static UNUSED void fresh_with(const char *mount, bool can_wake)
{
	bare(NULL);
	session_reset();
	CHECK_INT(errand_mount(core.host, 0, mount, ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = session_agent("alice", can_wake);
	core.bob = agent("bob");
	(void)events();
}

/* As fresh(), with a log for alice. */
static UNUSED void fresh_session(void)
{
	fresh_with("{}", false);
}

/* And she can be woken. */
static UNUSED void fresh_waking(void)
{
	fresh_with("{}", true);
}

/* A message of @author's ("user", or a plugin) to alice; 0 or the code. */
static UNUSED int try_say(int target, const char *id, const char *author)
{
	return try_insert(core.alice, target, id, author);
}

static UNUSED void say(int target, const char *id)
{
	CHECK_INT(try_say(target, id, "user"), 0);
}

/* The ids in a JSON array of messages, with commas between. */
static UNUSED const char *ids_of(const char *json)
{
	static char ids[512];
	struct buf b = BUF_INIT(sizeof(ids) - 1);
	struct js *j = NULL;

	CHECK_INT(js_parse(json, strlen(json), &j, NULL), 0);
	put_ids(&b, j);
	js_free(j);
	(void)snprintf(ids, sizeof(ids), "%s", buf_text(&b));
	buf_release(&b);
	return ids;
}

static UNUSED const char *pending(void)
{
	return ids_of(inbox(core.alice));
}

/* Claim for alice; the lease is in core.lease. */
static UNUSED const char *claim(int what)
{
	errand_text *t = NULL;

	CHECK_INT(errand_claim(core.host, core.alice, what, 1, &core.lease, &t, NULL), 0);
	return ids_of(text_of(t));
}

/* ---- her loop ---- */

static UNUSED void turn_open(void)
{
	CHECK_INT(errand_turn_open(core.host, core.alice, NULL, NULL), 0);
}

static UNUSED void step_begin(int what)
{
	(void)claim(what);
	CHECK_INT(errand_step_begin(core.host, core.alice, core.lease, NULL), 0);
}

/* 1: another step is due. */
static UNUSED int step_end(void)
{
	int again = -1;

	CHECK_INT(errand_step_end(core.host, core.alice, &again, NULL), 0);
	return again;
}

static UNUSED int try_close(const char *kind)
{
	char reason[64];
	errand_error *e = NULL;
	int rc;

	(void)snprintf(reason, sizeof(reason), "{\"kind\":\"%s\"}", kind);
	rc = errand_turn_close(core.host, core.alice, reason, ERRAND_NUL, &e);
	(void)message(e);
	return rc;
}

/* A whole turn of steps as long as they find something. */
static UNUSED void turn(void)
{
	turn_open();
	step_begin(ERRAND_CLAIM_TURN);
	while (step_end())
		step_begin(ERRAND_CLAIM_STEP);
	CHECK_INT(try_close("completed"), 0);
}

static UNUSED int turn_state(void)
{
	return errand_agent_state(core.host, core.alice);
}
