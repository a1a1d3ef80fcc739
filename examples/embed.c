/* SPDX-License-Identifier: MIT */
/*
 * embed.c - background tasks in an agent harness that has a poll() loop of its own.
 *
 * Two presets, coder and scout; three agents; two kinds of tasks, which are in work.h. The
 * policy: a scout stops nothing, a command is run after a person has agreed, calls of a coder
 * are logged around their bodies, and what looks like a password is not shown.
 *
 * The model is a script. What is printed is what a model, a person and an operator see.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pipe2() in work.h */
#endif
#include <stdio.h>
#include <time.h>

#include "errand.h"
#include "work.h"

#define STR(s) ((errand_str){(s), ERRAND_NUL})
#define NO_ARGS "{\"type\":\"object\",\"properties\":{}}"

static errand_host *host;
static errand_frame question; /* to a person, not answered yet */
static errand_agent woken;    /* is told to have a turn */
static char *result;          /* of the call under way */
static errand_error *why;
static errand_reg reg; /* nothing here is undone but with the host */

static void must(int rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "embed: %s\n", why ? errand_error_message(why, NULL) : "failed");
	exit(1);
}

static int is(errand_str s, const char *word)
{
	return s.len == strlen(word) && memcmp(s.ptr, word, s.len) == 0;
}

/* ---- the loop ---- */

static int64_t clock_ms(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void run(void)
{
	must(errand_run(host, clock_ms(CLOCK_MONOTONIC), clock_ms(CLOCK_REALTIME), 0));
}

static void loop_once(void)
{
	int64_t due, now = clock_ms(CLOCK_MONOTONIC);
	struct pollfd p[MAX_WORK];

	if (question) { /* the person clicks */
		printf("person: yes\n");
		errand_answer(host, question, "{\"kind\":\"allowed-once\"}", ERRAND_NUL);
		question = 0;
	}
	due = errand_next_deadline(host);
	work_watch(p);
	poll(p, MAX_WORK, due == ERRAND_NEVER ? -1 : due <= now ? 0 : (int)(due - now));
	work_ready(p);
	run();
}

/* ---- tools and policy ---- */

/* The body of a tool: start a task of @ud, its producer, and answer with the task's id. */
static void start_body(void *ud, errand_host *h, errand_frame f,
		       const struct errand_frame_view *v)
{
	struct errand_task_spec s = {.size = sizeof(s), .kind = v->tool, .owner = v->agent};
	struct work *w = calloc(1, sizeof(*w));
	errand_text *id = NULL;
	char answer[64];

	/* Enough for this script; a harness has a parser. */
	(void)sscanf(v->args_json.ptr, "{\"run\":\"%255[^\"]\"", w->command);
	s.label = STR(w->command[0] ? w->command : "a moment");
	s.producer = *(const struct errand_producer *)ud;
	s.producer.ud = w;
	if (errand_task_start(h, &s, NULL, &id, &why) < 0) {
		errand_fail(h, f, why); /* the contract's own words reach the model */
		errand_error_free(why);
		why = NULL;
		return;
	}
	(void)snprintf(answer, sizeof(answer), "\"started %s\"",
		       errand_text_data(id, NULL));
	errand_answer(h, f, answer, ERRAND_NUL);
	errand_text_free(id);
}

/* Before a call: what is said about one tool. */
struct rule {
	const char *tool, *decision;
};
static struct rule ask_first = {"command", "{\"kind\":\"ask\"}"};
static struct rule no_kill = {"task_kill",
			      "{\"kind\":\"deny\",\"reason\":\"a scout stops nothing\"}"};

static void decide(void *ud, errand_host *h, errand_frame f,
		   const struct errand_frame_view *v)
{
	const struct rule *rule = ud;

	if (is(v->tool, rule->tool))
		errand_answer(h, f, rule->decision, ERRAND_NUL);
	else
		errand_next(h, f);
}

/* The call stands still and the loop goes on, until the person has answered. */
static void approve(void *ud, errand_host *h, errand_frame f,
		    const struct errand_frame_view *v)
{
	question = f;
}

static void log_enter(void *ud, errand_host *h, errand_frame f,
		      const struct errand_frame_view *v)
{
	printf("log: %.*s begins\n", (int)v->tool.len, v->tool.ptr);
	errand_next(h, f);
}

static void log_back(void *ud, errand_host *h, errand_frame f,
		     const struct errand_frame_view *v)
{
	printf("log: %.*s %s\n", (int)v->tool.len, v->tool.ptr,
	       v->error ? "failed" : "ended");
	if (v->error)
		errand_fail(h, f, v->error);
	else
		errand_answer(h, f, v->answer_json.ptr, v->answer_json.len);
}

static void redact(void *ud, errand_host *h, errand_frame f,
		   const struct errand_frame_view *v)
{
	static const char gone[] = "{\"kind\":\"accept\",\"content\":[{\"type\":\"text\","
				   "\"text\":\"[a password was here]\"}]}";

	if (memmem(v->answer_json.ptr, v->answer_json.len, "password=", 9))
		errand_answer(h, f, gone, ERRAND_NUL);
	else
		errand_next(h, f);
}

/* ---- what a model does ---- */

struct model {
	const char *name;
	errand_agent agent;
};

/* The first text of a result or a message, its escapes as they are. */
static void show(const char *who, const char *json)
{
	const char *text = strstr(json, "\"text\":\"") + 8, *end = text;

	while (*end != '"')
		end += *end == '\\' ? 2 : 1;
	printf("%s: %.*s\n", who, (int)(end - text), text);
}

static int on_result(void *ud, errand_host *h, errand_call c, errand_lease l,
		     const char *json, size_t len)
{
	result = strndup(json, len);
	return ERRAND_DELIVERED; /* what it read is consumed, what it showed is reported */
}

static void call(struct model m, const char *tool, const char *args)
{
	struct errand_call_options o = {.size = sizeof(o), .agent = m.agent};

	o.tool = STR(tool);
	o.args = STR(args);
	o.on_result = on_result;
	printf("%s: %s %s\n", m.name, tool, args);
	must(errand_call_new(host, &o, NULL, &why));
	while (!result)
		loop_once();
	show("result", result);
	free(result);
	result = NULL;
}

static void on_wake(void *ud, errand_host *h, errand_agent agent)
{
	woken = agent;
}

/* Sleep until the agent is woken; in the turn that it gets it sees what is new, and makes one
 * call. */
static void woken_turn(struct model m, const char *tool, const char *args)
{
	errand_text *messages;
	errand_lease lease;
	uint64_t turn;
	int again = 0;

	while (woken != m.agent)
		loop_once();
	must(errand_turn_open(host, m.agent, &turn, &why));
	do {
		must(errand_claim(host, m.agent,
				  again ? ERRAND_CLAIM_STEP : ERRAND_CLAIM_TURN, turn,
				  &lease, &messages, &why));
		must(errand_step_begin(host, m.agent, lease, &why));
		if (lease)
			show("notice", errand_text_data(messages, NULL));
		errand_text_free(messages);
		if (!again)
			call(m, tool, args);
		must(errand_step_end(host, m.agent, &again, &why));
	} while (again);
	must(errand_turn_close(host, m.agent, "{\"kind\":\"completed\"}", ERRAND_NUL,
			       &why));
}

/* ---- what there is ---- */

static void add_tool(errand_scope s, const char *name, const char *params,
		     const struct errand_producer *producer)
{
	struct errand_tool t = {.size = sizeof(t), .name = STR(name), .exec = start_body};

	t.description = STR("Start something in the background.");
	t.params_schema = STR(params);
	t.output_schema = STR("{\"type\":\"string\"}");
	t.ud = (void *)(uintptr_t)producer;
	must(errand_tool_add(host, s, &t, &reg, &why));
}

static void listen_to(errand_scope s, int stage, errand_enter_fn enter,
		      errand_enter_fn back, void *ud)
{
	struct errand_listener l = {.size = sizeof(l), .stage = stage, .ud = ud};

	l.enter = enter;
	l.back = back;
	must(errand_listen(host, s, &l, &reg, &why));
}

static errand_scope add_preset(const char *config)
{
	errand_scope s;

	must(errand_scope_new(host, &s, &why));
	must(errand_mount(host, s, config, ERRAND_NUL, &reg, &why));
	add_tool(s, "timer", NO_ARGS, &timer_producer);
	return s;
}

static struct model add_agent(const char *name, errand_scope preset)
{
	struct errand_agent_options o = {.size = sizeof(o), .session = STR(name)};
	struct model m = {.name = name};

	o.scope = preset;
	o.wake = on_wake;
	must(errand_agent_new(host, &o, &m.agent, &why));
	return m;
}

int main(void)
{
	struct errand_host_options o = {.size = sizeof(o), .abi = ERRAND_ABI};
	struct model ann, bob, cid;
	errand_scope coder, scout;

	must(errand_host_new(&o, &host, &why));
	run();
	coder = add_preset("{}");
	scout = add_preset("{\"waitTimeoutMs\":1000}");
	add_tool(coder, "command",
		 "{\"type\":\"object\",\"properties\":{\"run\":{\"type\":\"string\"}}}",
		 &command_producer);
	listen_to(scout, ERRAND_STAGE_PRE, decide, NULL, &no_kill);
	listen_to(coder, ERRAND_STAGE_PRE, decide, NULL, &ask_first);
	listen_to(0, ERRAND_STAGE_APPROVAL, approve, NULL, NULL);
	listen_to(coder, ERRAND_STAGE_AROUND, log_enter, log_back, NULL);
	listen_to(0, ERRAND_STAGE_POST, redact, NULL, NULL);
	ann = add_agent("ann", coder);
	bob = add_agent("bob", coder);
	cid = add_agent("cid", scout);

	call(ann, "command", "{\"run\":\"echo password=1234\"}");
	woken_turn(ann, "task_output", "{\"task_id\":\"command-1\"}");
	call(bob, "task_output", "{\"task_id\":\"command-1\"}");
	call(cid, "command", "{\"run\":\"true\"}");
	call(cid, "timer", "{}");
	call(cid, "task_kill", "{\"task_id\":\"timer-1\"}");
	call(cid, "task_output", "{\"task_id\":\"timer-1\",\"wait\":true}");
	errand_host_free(host);
	return 0;
}
