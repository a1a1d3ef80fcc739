/* SPDX-License-Identifier: MIT */
/*
 * world.h - the hosts, agents, producers, tools and policies of a scenario in which memory
 * fails: whatever of a callback's says ENOMEM is said again.
 */
#pragma once

#include "failing.h"

/* ---- the world ---- */

struct work {
	errand_task task;
	const char *text;
	int offered, destroyed; /* so often; each refusal destroys it, too */
};

static struct {
	errand_host *host, *second;
	errand_mailbox *box;
	errand_agent alice, bob, op;
	errand_scope preset;
	errand_lease lease;
	errand_frame parked;
	errand_reg reg;
	struct work work[16];
	size_t works;
	int64_t now;
	char journal[65536], log[65536];
	bool ran_out, is_restoring;
	uint64_t turn;
} world;

static errand_str str(const char *s)
{
	return (errand_str){s, ERRAND_NUL};
}

static void run(void)
{
	world.now += 10;
	while (errand_run(world.host, world.now, world.now, 0) > 0)
		;
}

static void on_warn(void *ud, const char *line, size_t len)
{
	(void)ud;
	note("warn ");
	note_text(line, len);
}

static void append(char *all, size_t max, const char *json, size_t len)
{
	size_t used = strlen(all);

	if (used + len + 2 > max)
		_exit(4);
	all[used] = used ? ',' : '[';
	memcpy(all + used + 1, json, len);
	all[used + 1 + len] = 0;
}

static void on_journal(void *ud, const char *json, size_t len)
{
	(void)ud;
	if (!world.is_restoring)
		append(world.journal, sizeof(world.journal) - 1, json, len);
}

static int on_log(void *ud, errand_agent a, uint64_t seq, const char *json, size_t len,
		  errand_error *e)
{
	(void)ud;
	(void)a;
	(void)seq;
	(void)e;
	append(world.log, sizeof(world.log) - 1, json, len);
	return 0;
}

static void on_wake(void *ud, errand_host *h, errand_agent a)
{
	(void)ud;
	(void)h;
	(void)a;
	note("wake\n");
}

static int open_with(void (*journal)(void *ud, const char *json, size_t len),
		     errand_host **ret)
{
	struct errand_host_options o = {
		.size = sizeof(o),
		.abi = ERRAND_ABI,
		.config_json = str("{\"maxFinishedTasksPerOwner\":3}"),
		.warn = on_warn,
		.journal = journal,
		.alloc = host_alloc,
		.resize = host_resize,
		.dealloc = host_dealloc,
		.oom = on_oom,
	};

	return errand_host_new(&o, ret, &err);
}

static int open_host(errand_host **ret)
{
	return open_with(on_journal, ret);
}

static int open_plain_host(errand_host **ret)
{
	return open_with(NULL, ret);
}

static int new_agent(const char *session, uint32_t flags, errand_scope s, errand_agent *ret)
{
	struct errand_agent_options o = {.size = sizeof(o),
					 .flags = flags,
					 .session = str(session),
					 .scope = s,
					 .log = flags ? NULL : on_log,
					 .wake = on_wake};

	return errand_agent_new(world.host, &o, ret, &err);
}

/* ---- producers ---- */

static int work_start(void *ud, errand_host *h, errand_task t, errand_error *e)
{
	struct work *w = ud;

	(void)h;
	w->task = t;
	if (w->text && strcmp(w->text, "refuses") == 0) {
		errand_error_set(e, "TypeError", "EX", "refuses", ERRAND_NUL);
		return ERRAND_ECALLBACK;
	}
	return 0;
}

static int work_cancel(void *ud, errand_host *h, errand_task t, const char *reason,
		       size_t len, errand_error *e)
{
	int rc = errand_settle(h, t, ERRAND_KILLED, reason, len, "partial", ERRAND_NUL);

	(void)ud;
	(void)e;
	if (rc != ERRAND_ENOMEM)
		return rc;
	report->refused_calls++;
	return errand_settle(h, t, ERRAND_KILLED, reason, len, "partial", ERRAND_NUL);
}

static int work_read(void *ud, errand_task t, uint64_t from, errand_sink *out,
		     uint64_t *ret_next, errand_error *e)
{
	struct work *w = ud;

	(void)t;
	(void)e;
	(void)errand_sink_write(out, w->text + from, strlen(w->text) - from);
	*ret_next = strlen(w->text);
	return 0;
}

static void work_destroy(void *ud)
{
	((struct work *)ud)->destroyed++;
}

static int start(errand_agent owner, const char *stream, const char *limit)
{
	struct work *w = &world.work[world.works];
	struct errand_task_spec s = {
		.size = sizeof(s),
		.kind = str("bash"),
		.label = str("make \xff all"),
		.limit_json = limit ? str(limit) : (errand_str){NULL, 0},
		.owner = owner,
		.producer = {.size = sizeof(s.producer),
			     .start = work_start,
			     .cancel = work_cancel,
			     .read = stream ? work_read : NULL,
			     .ud = w,
			     .destroy = work_destroy},
	};
	int rc;

	w->text = stream;
	w->offered++;
	rc = errand_task_start(world.host, &s, NULL, &text, &err);
	world.works += rc == 0;
	return rc;
}

static int settle(size_t i, const char *detail, const char *output)
{
	return errand_settle(world.host, world.work[i].task, ERRAND_COMPLETED, detail,
			     ERRAND_NUL, output, ERRAND_NUL);
}

static void on_waited(void *ud, errand_host *h, errand_lease l, const char *json,
		      size_t len, const errand_error *e)
{
	(void)ud;
	note("waited %s ", errand_error_message(e, NULL));
	note_text(json ? json : "", json ? len : 0);
	(void)errand_lease_return(h, l);
}

static int on_event(void *ud, errand_host *h, errand_reg self, errand_agent owner,
		    const char *json, size_t len, errand_error *e)
{
	(void)h;
	(void)self;
	(void)owner;
	(void)e;
	if (strcmp(ud, "done") == 0) {
		note("done ");
		note_text(json, len);
		errand_error_set(e, NULL, NULL, "a listener throws", ERRAND_NUL);
		return -1;
	}
	return 0;
}

/* ---- a tool, and a policy of each kind ---- */

static void echo_exec(void *ud, errand_host *h, errand_frame f,
		      const struct errand_frame_view *v)
{
	(void)ud;
	(void)v;
	if (strstr(v->args_json.ptr, "later")) {
		world.parked = f;
		return;
	}
	if (errand_answer(h, f, "{\"said\":\"a\"}", ERRAND_NUL) == ERRAND_ENOMEM) {
		report->refused_calls++;
		(void)errand_answer(h, f, "{\"said\":\"a\"}", ERRAND_NUL);
	}
}

static int echo_text(void *ud, const char *in_json, size_t len, errand_sink *out,
		     errand_error *e)
{
	(void)in_json;
	(void)len;
	(void)e;
	(void)errand_sink_write(out, ud, strlen(ud));
	return 0;
}

static int echo_blocks(void *ud, const char *in_json, size_t len, errand_sink *out,
		       errand_error *e)
{
	static char blocks[] = "[{\"type\":\"text\",\"text\":\"rendered\"}]";

	(void)ud;
	return echo_text(blocks, in_json, len, out, e);
}

static int echo_last(void *ud, const char *in_json, size_t len, errand_sink *out,
		     errand_error *e)
{
	static char last[] = "{\"content\":[{\"type\":\"text\",\"text\":\"finalized\"}]}";

	(void)ud;
	return echo_text(last, in_json, len, out, e);
}

static int add_tool(errand_scope s)
{
	static char card[] = "{\"card\":\"generic\"}";
	struct errand_tool t = {
		.size = sizeof(t),
		.name = str("echo"),
		.description = str("says it again"),
		.params_schema = str("{\"type\":\"object\",\"properties\":{\"word\":"
				     "{\"type\":\"string\"}},\"required\":[\"word\"]}"),
		.output_schema = str("{\"type\":\"object\",\"properties\":{\"said\":"
				     "{\"type\":\"string\"}}}"),
		.exec = echo_exec,
		.render = echo_blocks,
		.finalize = echo_last,
		.card = echo_text,
		.ud = card,
	};

	return errand_tool_add(world.host, s, &t, &world.reg, &err);
}

static void enter(void *ud, errand_host *h, errand_frame f,
		  const struct errand_frame_view *v)
{
	const char *answer = ud;

	(void)v;
	if (!answer) {
		(void)errand_next(h, f);
		return;
	}
	if (errand_answer(h, f, answer, ERRAND_NUL) == ERRAND_ENOMEM) {
		report->refused_calls++;
		(void)errand_answer(h, f, answer, ERRAND_NUL);
	}
}

/* Says again what it was shown, a little longer, so that it is no copy. */
static void back(void *ud, errand_host *h, errand_frame f,
		 const struct errand_frame_view *v)
{
	char again[4096];

	(void)ud;
	if (v->error) {
		(void)errand_fail(h, f, v->error);
		return;
	}
	(void)snprintf(again, sizeof(again), " %.*s", (int)v->answer_json.len,
		       v->answer_json.ptr);
	enter(again, h, f, v);
}

static int add_policy(int stage, const char *answer, errand_enter_fn back_or_null)
{
	union {
		const char *in;
		void *out;
	} ud = {.in = answer};
	struct errand_listener l = {.size = sizeof(l),
				    .stage = stage,
				    .enter = enter,
				    .back = back_or_null,
				    .ud = ud.out};

	return errand_listen(world.host, 0, &l, &world.reg, &err);
}

static int add_listener(int event, const char *what)
{
	union {
		const char *in;
		void *out;
	} ud = {.in = what};

	return errand_on(world.host, 0, event, on_event, ud.out, NULL, &world.reg, &err);
}

/* ---- calls ---- */

static int on_result(void *ud, errand_host *h, errand_call c, errand_lease l,
		     const char *json, size_t len)
{
	(void)ud;
	(void)h;
	(void)c;
	(void)l;
	world.ran_out = strstr(json, "\"message\":\"out of memory\"") != NULL;
	if (world.ran_out) {
		report->refused_calls++;
		return ERRAND_DELIVERED;
	}
	note_text(json, len);
	return strstr(json, "hold back") ? ERRAND_LOST : ERRAND_DELIVERED;
}

static int begin_call(errand_agent a, const char *tool, const char *args)
{
	struct errand_call_options o = {.size = sizeof(o),
					.agent = a,
					.tool = str(tool),
					.args = str(args),
					.on_result = on_result};

	return errand_call_new(world.host, &o, NULL, &err);
}

/* A result that says "out of memory" is a refusal too. */
static void call(errand_agent a, const char *tool, const char *args)
{
	int64_t now = world.now; /* of each try */
	bool is_refused;

	do {
		world.ran_out = false;
		world.now = now;
		is_refused = is_refusal(begin_call(a, tool, args));
		run();
	} while (is_refused || world.ran_out);
}
