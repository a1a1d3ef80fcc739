/* SPDX-License-Identifier: MIT */
/* rows_calls.c - rows about one call: its arguments, and the policies on its way. */
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

/* ---- comparing ---- */

static void want_result(struct row *r, const json_t *result)
{
	const json_t *want = json_object_get(r->in, "value");
	const json_t *value = json_object_get(result, "value");

	if (!result) {
		row_fail(r, "the call has no result");
		return;
	}
	want_json(r, "isError", json_object_get(r->in, "isError"),
		  json_incref(json_object_get(result, "isError")));
	want_json(r, "content", json_object_get(r->in, "content"),
		  json_incref(json_object_get(result, "content")));
	want_json(r, "value", want, value ? without_times(want, value) : NULL);
	want_json(r, "error", json_object_get(r->in, "error"),
		  error_in_row(json_object_get(result, "error")));
}

static void want_task(struct row *r, struct world *w, const char *member, const char *id)
{
	json_t *now = world_get(w, id);

	want_json(r, member, json_object_get(r->in, member),
		  json_pack("{s:O,s:O}", "status", json_object_get(now, "status"),
			    "reported", json_object_get(now, "reported")));
	json_decref(now);
}

/* ---- arguments ---- */

/* Something that JSON cannot say stands somewhere in it. */
static bool is_special(const json_t *j)
{
	const char *key;
	json_t *value;
	size_t i;

	if (json_object_get(j, "$special"))
		return true;
	json_array_foreach (j, i, value) {
		if (is_special(value))
			return true;
	}
	json_object_foreach ((json_t *)(uintptr_t)j, key, value) {
		if (is_special(value))
			return true;
	}
	return false;
}

static void start_two(struct world *w, const json_t *limit)
{
	json_t *chunk = json_string("chunk\n"), *done = json_string("done");
	json_t *detail = json_string("exit code: 0");
	struct task_in in = {.limit = limit, .text = chunk, .is_stream = true};
	struct work *work;
	char *id;

	(void)world_start(w, &in, NULL, NULL);
	in.is_stream = false;
	work = world_start(w, &in, &id, NULL);
	world_bring(w, work, id, "completed", detail, done);
	free(id);
	json_decref(chunk);
	json_decref(done);
	json_decref(detail);
}

/* What time has to pass, deadline by deadline, until the call has its result. */
static void wait_for_result(struct world *w)
{
	while (!w->result && errand_next_deadline(w->host) != ERRAND_NEVER) {
		int64_t due = errand_next_deadline(w->host);

		if (due > w->now)
			w->now = due;
		world_run(w);
	}
}

static json_t *card_of(struct world *w, const struct call_in *in)
{
	errand_text *t = NULL;

	if ((in->flags & ERRAND_ARGS_NOT_JSON) ||
	    errand_card(w->host, in->agent, in->tool, in->args, ERRAND_NUL, &t, NULL) !=
		    0 ||
	    !t)
		return NULL;
	return take_json(t);
}

void row_args(struct row *r)
{
	static const char *const known[] = {
		"n",          "tool",        "args",  "limit",     "isError",
		"content",    "error",       "value", "waited_ms", "cancels",
		"live_after", "presentCall", NULL};
	const json_t *args = json_object_get(r->in, "args");
	struct call_in in = {.tool = row_text(r->in, "tool", NULL)};
	struct world w;
	char *text;

	if (!row_is_known(r, known))
		return;
	text = json_dumps(args, JSON_ENCODE_ANY);
	world_open(&w, "{}");
	start_two(&w, json_object_get(r->in, "limit"));
	in.agent = w.agent;
	in.args = text;
	in.flags = is_special(args) ? ERRAND_ARGS_NOT_JSON : 0;
	(void)world_call_with(&w, &in);
	wait_for_result(&w);
	want_result(r, w.result);
	want_json(r, "waited_ms", json_object_get(r->in, "waited_ms"), json_integer(w.now));
	want_json(r, "cancels", json_object_get(r->in, "cancels"), json_incref(w.cancels));
	want_task(r, &w, "live_after", "bash-1");
	want_json(r, "presentCall", json_object_get(r->in, "presentCall"),
		  card_of(&w, &in));
	free(text);
	world_close(&w);
}

/* ---- policies ---- */

struct policy {
	struct world world;
	const char *tool, *name;
	const json_t *spec;
	errand_frame frame; /* that waits */
};

static json_t *text_times(const char *s, size_t n)
{
	size_t len = strlen(s);
	char *all = malloc(len * n + 1);
	json_t *j;

	for (size_t i = 0; i < n; i++)
		memcpy(all + i * len, s, len);
	j = json_stringn(all, len * n);
	free(all);
	return j;
}

/* What "VALID" stands for: a value of the tool that no body made. */
static json_t *valid_value(const struct policy *p)
{
	bool is_kill = strcmp(p->tool, "task_kill") == 0;
	json_t *task, *text;

	if (strcmp(p->tool, "task_list") == 0)
		return json_array();
	task = json_pack("{s:s,s:s,s:s,s:s,s:i}", "id", "bash-1", "kind", "bash", "label",
			 "sleep 60", "status", is_kill ? "stopping" : "running",
			 "startedAt", 0);
	if (is_kill)
		return json_pack("{s:s,s:o}", "outcome", "cancellation-requested", "task",
				 task);
	if (strcmp(p->name, "short-circuit-content-ignored") == 0)
		text = text_times("\xe7\x95\x8c", 90);
	else
		text = text_times(strcmp(p->name, "replace-value") == 0 ? "v" : "a", 300);
	return json_pack("{s:o,s:o}", "text", text, "task", task);
}

static bool is_word(const json_t *j, const char *word)
{
	return json_is_string(j) && strcmp(json_string_value(j), word) == 0;
}

static void answer(errand_host *h, errand_frame f, json_t *j)
{
	char *text = json_dumps(j, JSON_ENCODE_ANY);

	(void)errand_answer(h, f, text, ERRAND_NUL);
	free(text);
	json_decref(j);
}

/* Each of the ways to throw. */
static bool throws(errand_host *h, errand_frame f, const json_t *spec)
{
	static const char *const ways[] = {"throw", "throw_string", "throw_object",
					   "throw_coded"};
	const json_t *thrown = NULL, *message;
	errand_error *e;
	size_t way = 0;

	for (; way < 4 && !(thrown = json_object_get(spec, ways[way])); way++)
		;
	if (!thrown)
		return false;
	message = json_is_object(thrown) ? json_object_get(thrown, "message") : thrown;
	e = errand_error_new(way == 1 ? "" : row_text(thrown, "name", NULL),
			     row_text(thrown, "code", NULL), json_string_value(message),
			     json_string_length(message));
	(void)errand_fail(h, f, e);
	errand_error_free(e);
	return true;
}

static void disposed(void *ud, errand_host *h)
{
	struct policy *p = ud;

	answer(h, p->frame, json_deep_copy(p->spec));
}

static void enter_pre(void *ud, errand_host *h, errand_frame f,
		      const struct errand_frame_view *v)
{
	struct policy *p = ud;

	if (throws(h, f, p->spec))
		return;
	p->frame = f;
	if (strcmp(p->name, "dispose-owner-then-deny") != 0)
		disposed(p, h);
	else if (errand_agent_dispose(h, v->agent, disposed, p, NULL, NULL) != 0)
		(void)errand_fail(h, f, NULL);
}

static void enter_guard(void *ud, errand_host *h, errand_frame f,
			const struct errand_frame_view *v)
{
	struct policy *p = ud;

	(void)v;
	if (!throws(h, f, p->spec))
		answer(h, f, json_deep_copy(p->spec));
}

static void enter_around(void *ud, errand_host *h, errand_frame f,
			 const struct errand_frame_view *v)
{
	const struct policy *p = ud;
	json_t *result = json_object_get(p->spec, "result");
	json_t *value = json_object_get(p->spec, "value");

	(void)v;
	if (throws(h, f, p->spec))
		return;
	if (json_object_get(p->spec, "pass"))
		(void)errand_next(h, f);
	else if (result)
		answer(h, f, json_deep_copy(result));
	else
		answer(h, f,
		       json_pack("{s:o,s:[{s:s,s:s}]}", "value",
				 is_word(value, "VALID") ? valid_value(p)
							 : json_deep_copy(value),
				 "content", "type", "text", "text", "ignored"));
}

static void pass_on(void *ud, errand_host *h, errand_frame f,
		    const struct errand_frame_view *v)
{
	(void)ud;
	if (v->error)
		(void)errand_fail(h, f, v->error);
	else
		(void)errand_answer(h, f, v->answer_json.ptr, v->answer_json.len);
}

static void enter_post(void *ud, errand_host *h, errand_frame f,
		       const struct errand_frame_view *v)
{
	const struct policy *p = ud;
	json_t *decision, *result;

	if (throws(h, f, p->spec))
		return;
	result = json_loadb(v->answer_json.ptr, v->answer_json.len, JSON_ALLOW_NUL, NULL);
	decision = json_deep_copy(p->spec);
	if (is_word(json_object_get(decision, "content"), "IDENTICAL"))
		json_object_set(decision, "content", json_object_get(result, "content"));
	if (is_word(json_object_get(decision, "value"), "VALID"))
		json_object_set_new(decision, "value", valid_value(p));
	answer(h, f, decision);
	json_decref(result);
}

static bool listen_at(struct policy *p, const char *stage)
{
	static const struct {
		const char *name;
		struct errand_listener l;
	} stages[] = {
		{"pre", {.stage = ERRAND_STAGE_PRE, .enter = enter_pre}},
		{"pre-prepended",
		 {.stage = ERRAND_STAGE_PRE, .flags = ERRAND_PREPEND, .enter = enter_pre}},
		{"guard", {.stage = ERRAND_STAGE_GUARD, .enter = enter_guard}},
		{"around",
		 {.stage = ERRAND_STAGE_AROUND, .enter = enter_around, .back = pass_on}},
		{"post", {.stage = ERRAND_STAGE_POST, .enter = enter_post}},
	};

	for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
		struct errand_listener l = stages[i].l;

		if (strcmp(stages[i].name, stage) != 0)
			continue;
		l.size = sizeof(l);
		l.ud = p;
		return errand_listen(p->world.host, 0, &l, NULL, NULL) == 0;
	}
	return false;
}

static bool restrict_tool(struct policy *p)
{
	json_t *filter = json_pack("{s:[s]}", "deny", p->tool);
	char *text = json_dumps(filter, 0);
	errand_reg r;
	int rc = errand_restrict(p->world.host, p->world.agent, text, ERRAND_NUL, &r, NULL);

	free(text);
	json_decref(filter);
	return rc == 0;
}

/* The ways in which the tool itself fails. */
static bool break_body(struct policy *p, struct call_in *in, json_t *args,
		       const json_t *failure)
{
	if (strcmp(p->name, "read-throws") == 0)
		p->world.read_throws = json_string_value(failure);
	else if (strcmp(p->name, "cancel-throws") == 0)
		p->world.cancel_throws = json_string_value(failure);
	else if (strcmp(p->name, "foreign") == 0)
		in->agent = world_agent(&p->world, "b");
	else if (strcmp(p->name, "unknown") == 0)
		json_object_set_new(args, "task_id", json_string("bash-99"));
	else if (strcmp(p->name, "empty-id") == 0)
		json_object_set_new(args, "task_id", json_string(""));
	else
		return false;
	return true;
}

static bool prepare(struct policy *p, const char *stage, struct call_in *in, json_t *args,
		    const json_t *failure)
{
	if (strcmp(stage, "none") == 0)
		return true;
	if (strcmp(stage, "restrict") == 0)
		return restrict_tool(p);
	if (strcmp(stage, "body") == 0)
		return break_body(p, in, args, failure);
	if (strcmp(stage, "abort") == 0)
		return errand_signal_new(p->world.host, &in->signal) == 0 &&
		       errand_abort(p->world.host, in->signal) == 0;
	return listen_at(p, stage);
}

/* A row without cancels or after does not compare them. */
static void play_policy(struct row *r, struct policy *p, const char *stage)
{
	json_t *text = json_string("stream text\n"), *args = json_object();
	json_t *failure = text_times(
		strcmp(p->name, "read-throws") == 0 ? "read failed: " : "cancel failed: ",
		30);
	struct task_in task = {
		.limit = json_object_get(r->in, "limit"), .text = text, .is_stream = true};
	struct call_in in = {.agent = p->world.agent, .tool = p->tool};
	char *args_text;

	(void)world_start(&p->world, &task, NULL, NULL);
	p->world.cancel_settles = strcmp(p->name, "dispose-owner-then-deny") == 0;
	if (strcmp(p->tool, "task_list") != 0)
		json_object_set_new(args, "task_id", json_string("bash-1"));
	if (!prepare(p, stage, &in, args, failure))
		row_fail(r, "unknown stage or policy");
	args_text = json_dumps(args, 0);
	in.args = args_text;
	want_result(r, world_call_with(&p->world, &in));
	if (json_object_get(r->in, "cancels"))
		want_json(r, "cancels", json_object_get(r->in, "cancels"),
			  json_incref(p->world.cancels));
	if (json_object_get(r->in, "after"))
		want_task(r, &p->world, "after", "bash-1");
	free(args_text);
	json_decref(args);
	json_decref(text);
	json_decref(failure);
}

void row_policy(struct row *r)
{
	static const char *const known[] = {
		"n",       "tool",  "limit", "stage",   "policy", "spec", "isError",
		"content", "error", "value", "cancels", "after",  NULL};
	struct policy p = {.tool = row_text(r->in, "tool", NULL),
			   .name = row_text(r->in, "policy", NULL),
			   .spec = json_object_get(r->in, "spec")};
	const char *stage = row_text(r->in, "stage", NULL);

	if (!row_is_known(r, known))
		return;
	if (!p.tool || !p.name || !stage) {
		row_fail(r, "a call without a tool, a stage or a policy");
		return;
	}
	world_open(&p.world, "{}");
	play_policy(r, &p, stage);
	world_close(&p.world);
}
