/* SPDX-License-Identifier: MIT */
/*
 * core.h - the fixture of the core's unit tests: a host with the controller mounted, two
 * agents, a clock that stands still, producers that do as they are told, and a log of what
 * was called back, in order.
 *
 * Each test begins with fresh(). One test file includes this, once.
 */
#pragma once

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "check.h"
#include "errand.h"

#define UNUSED __attribute__((unused))
#define WALL 1000
#define MAX_WORK 64

enum {
	FINAL = 0,
	STREAM = 1
};

struct work {
	errand_task task;
	char id[64];
	char text[512]; /* of a stream */
	size_t len;
	const char *start_error, *cancel_error, *read_error; /* each makes its hook fail */
	bool start_settles, cancel_settles;
	int destroyed;
};

static struct {
	errand_host *host;
	errand_reg mount;
	errand_agent alice, bob;
	int64_t now;
	struct work work[MAX_WORK];
	size_t works;
	char log[8192];
	int fate; /* what on_result answers */
	int results;
	char *result; /* of the last call */
	size_t result_len;
	errand_lease lease;
	char shown[65536];
	char message[4096]; /* of the last error */
} core;

static UNUSED errand_str str(const char *s)
{
	return (errand_str){s, ERRAND_NUL};
}

static UNUSED void logf_(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static UNUSED void logf_(const char *fmt, ...)
{
	size_t len = strlen(core.log);
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(core.log + len, sizeof(core.log) - len, fmt, ap);
	va_end(ap);
}

/* What was logged since the last look. */
static UNUSED const char *logged(void)
{
	static char copy[sizeof(core.log)];

	memcpy(copy, core.log, sizeof(copy));
	core.log[0] = 0;
	return copy;
}

/* The message of @e, which is freed. */
static UNUSED const char *message(errand_error *e)
{
	(void)snprintf(core.message, sizeof(core.message), "%s",
		       errand_error_message(e, NULL));
	errand_error_free(e);
	return core.message;
}

static UNUSED void run(void)
{
	while (errand_run(core.host, core.now, WALL + core.now, 0) > 0)
		;
}

static UNUSED void pass(int64_t ms)
{
	core.now += ms;
	run();
}

static void on_warn(void *ud, const char *text, size_t len)
{
	(void)ud;
	logf_("warn(%.*s);", (int)len, text);
}

static UNUSED errand_agent agent(const char *session)
{
	struct errand_agent_options o = {.size = sizeof(o), .session = str(session)};
	errand_agent a = 0;

	CHECK_INT(errand_agent_new(core.host, &o, &a, NULL), 0);
	return a;
}

static UNUSED errand_agent operator_agent(void)
{
	struct errand_agent_options o = {.size = sizeof(o),
					 .flags = ERRAND_AGENT_OPERATOR,
					 .session = str("operator")};
	errand_agent a = 0;

	CHECK_INT(errand_agent_new(core.host, &o, &a, NULL), 0);
	return a;
}

/* What the next hosts tell their journal to; NULL: they keep none. */
static void (*fixture_journal)(void *ud, const char *json, size_t len);

/* A host with @config and nothing in it. */
static UNUSED void bare(const char *config)
{
	struct errand_host_options o = {
		.size = sizeof(o), .abi = ERRAND_ABI, .warn = on_warn};

	errand_host_free(core.host);
	free(core.result);
	memset(&core, 0, sizeof(core));
	o.journal = fixture_journal;
	o.config_json = config ? str(config) : (errand_str){NULL, 0};
	CHECK_INT(errand_host_new(&o, &core.host, NULL), 0);
	run();
}

static UNUSED void fresh_as(const char *config)
{
	bare(config);
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
	core.bob = agent("bob");
}

static UNUSED void fresh(void)
{
	fresh_as(NULL);
}

/* ---- producers ---- */

static int work_start(void *ud, errand_host *h, errand_task t, errand_error *e)
{
	struct work *w = ud;

	w->task = t;
	logf_("start;");
	if (w->start_error) {
		errand_error_set(e, NULL, NULL, w->start_error, ERRAND_NUL);
		return ERRAND_ECALLBACK;
	}
	if (w->start_settles)
		(void)errand_settle(h, t, ERRAND_COMPLETED, NULL, 0, NULL, 0);
	return 0;
}

static int work_cancel(void *ud, errand_host *h, errand_task t, const char *reason,
		       size_t len, errand_error *e)
{
	struct work *w = ud;

	if (reason)
		logf_("cancel(%.*s);", (int)len, reason);
	else
		logf_("cancel;");
	if (w->cancel_error) {
		errand_error_set(e, NULL, NULL, w->cancel_error, ERRAND_NUL);
		return ERRAND_ECALLBACK;
	}
	if (w->cancel_settles)
		(void)errand_settle(h, t, ERRAND_KILLED, NULL, 0, NULL, 0);
	return 0;
}

static int work_read(void *ud, errand_task t, uint64_t from, errand_sink *out,
		     uint64_t *ret_next, errand_error *e)
{
	struct work *w = ud;

	(void)t;
	if (w->read_error) {
		errand_error_set(e, NULL, NULL, w->read_error, ERRAND_NUL);
		return ERRAND_ECALLBACK;
	}
	(void)errand_sink_write(out, w->text + from, w->len - from);
	*ret_next = w->len;
	return 0;
}

static void work_destroy(void *ud)
{
	((struct work *)ud)->destroyed++;
}

static UNUSED struct errand_task_spec spec(errand_agent owner, int mode)
{
	return (struct errand_task_spec){
		.size = sizeof(struct errand_task_spec),
		.kind = str("bash"),
		.label = str("sleep 60"),
		.owner = owner,
		.producer = {.size = sizeof(struct errand_producer),
			     .start = work_start,
			     .cancel = work_cancel,
			     .read = mode == STREAM ? work_read : NULL,
			     .ud = &core.work[core.works],
			     .destroy = work_destroy},
	};
}

/* Start what @s says; 0 or the code, the message in core.message. */
static UNUSED int try_start(const struct errand_task_spec *s)
{
	struct work *w = &core.work[core.works++];
	errand_error *e = NULL;
	errand_text *id = NULL;
	int rc = errand_task_start(core.host, s, &w->task, &id, &e);

	(void)snprintf(w->id, sizeof(w->id), "%s", errand_text_data(id, NULL));
	errand_text_free(id);
	(void)message(e);
	return rc;
}

static UNUSED struct work *start(errand_agent owner, int mode)
{
	struct errand_task_spec s = spec(owner, mode);
	struct work *w = &core.work[core.works];

	CHECK_INT(try_start(&s), 0);
	(void)logged();
	return w;
}

static UNUSED struct work *start_limited(errand_agent owner, int mode, const char *limit)
{
	struct errand_task_spec s = spec(owner, mode);
	struct work *w = &core.work[core.works];

	s.limit_json = str(limit);
	CHECK_INT(try_start(&s), 0);
	(void)logged();
	return w;
}

static UNUSED struct work *start_labelled(errand_agent owner, const char *kind,
					  const char *label)
{
	struct errand_task_spec s = spec(owner, FINAL);
	struct work *w = &core.work[core.works];

	s.kind = str(kind);
	s.label = str(label);
	CHECK_INT(try_start(&s), 0);
	(void)logged();
	return w;
}

static UNUSED void emit(struct work *w, const char *text)
{
	size_t len = strlen(text);

	CHECK(w->len + len <= sizeof(w->text));
	memcpy(w->text + w->len, text, len);
	w->len += len;
}

static UNUSED void settle(const struct work *w, int status, const char *detail,
			  const char *output)
{
	CHECK_INT(errand_settle(core.host, w->task, status, detail, ERRAND_NUL, output,
				ERRAND_NUL),
		  0);
}

static UNUSED void end(const struct work *w)
{
	settle(w, ERRAND_COMPLETED, NULL, NULL);
	run();
}

/* ---- asking ---- */

static UNUSED const char *text_of(errand_text *t)
{
	(void)snprintf(core.shown, sizeof(core.shown), "%s", errand_text_data(t, NULL));
	errand_text_free(t);
	return core.shown;
}

/* A string member of a JSON object, "(none)" without; the value's JSON if it is no string. */
static UNUSED const char *member(const char *json, const char *key)
{
	struct js *j = NULL;
	struct buf b = BUF_INIT(sizeof(core.shown) - 1);

	CHECK_INT(js_parse(json, strlen(json), &j, NULL), 0);
	if (!js_get(j, key))
		(void)buf_adds(&b, "(none)");
	else if (js_string(js_get(j, key), NULL))
		(void)buf_adds(&b, js_string(js_get(j, key), NULL));
	else
		(void)js_put_value(&b, js_get(j, key));
	js_free(j);
	(void)snprintf(core.shown, sizeof(core.shown), "%s", buf_text(&b));
	buf_release(&b);
	return core.shown;
}

static UNUSED const char *snapshot(const struct work *w, errand_agent caller)
{
	static char copy[8192];
	errand_text *t = NULL;

	CHECK_INT(errand_get(core.host, w->id, ERRAND_NUL, caller, &t, NULL), 0);
	(void)snprintf(copy, sizeof(copy), "%s", errand_text_data(t, NULL));
	errand_text_free(t);
	return copy;
}

static UNUSED const char *status_of(const struct work *w)
{
	return member(snapshot(w, core.alice), "status");
}

static UNUSED bool is_reported(const struct work *w)
{
	return strcmp(member(snapshot(w, core.alice), "reported"), "true") == 0;
}

static UNUSED const char *inbox(errand_agent a)
{
	errand_text *t = NULL;

	CHECK_INT(errand_inbox(core.host, a, &t, NULL), 0);
	return text_of(t);
}

/* A message of @author's ("user", or a plugin) under @id, into the inbox of @a; 0 or the code. */
static UNUSED int try_insert(errand_agent a, int target, const char *id, const char *author)
{
	char json[256];
	errand_error *e = NULL;
	int rc;

	(void)snprintf(
		json, sizeof(json),
		"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],"
		"\"source\":{\"kind\":\"%s\"},\"id\":\"%s\"}",
		author, id);
	rc = errand_insert(core.host, a, target, json, ERRAND_NUL, NULL, &e);
	(void)message(e);
	return rc;
}

/* How often @needle is in @hay. */
static UNUSED int times(const char *hay, const char *needle)
{
	int n = 0;

	for (; (hay = strstr(hay, needle)); hay += strlen(needle))
		n++;
	return n;
}

static UNUSED int notices(errand_agent a)
{
	return times(inbox(a), "\"form\":\"notice\"");
}

/* So many arrays in one another. */
static UNUSED const char *nested(size_t levels)
{
	static char text[2 * MAX_JSON_NESTING + 1];

	CHECK(levels <= MAX_JSON_NESTING);
	memset(text, '[', levels);
	memset(text + levels, ']', levels);
	text[2 * levels] = 0;
	return text;
}

/* ---- calls ---- */

static UNUSED int on_result(void *ud, errand_host *h, errand_call c, errand_lease l,
			    const char *result_json, size_t len)
{
	(void)ud;
	(void)h;
	(void)c;
	free(core.result);
	core.result = strndup(result_json, len);
	core.result_len = len;
	core.results++;
	core.lease = l;
	return core.fate;
}

static UNUSED errand_call call_begin(errand_agent caller, const char *tool,
				     const char *args)
{
	struct errand_call_options o = {
		.size = sizeof(o),
		.agent = caller,
		.tool = str(tool),
		.args = str(args),
		.on_result = on_result,
	};
	errand_call c = 0;

	CHECK_INT(errand_call_new(core.host, &o, &c, NULL), 0);
	return c;
}

/* The text of the last result, which is one text block. */
static UNUSED const char *result_text(void)
{
	struct js *j = NULL;
	const struct js *content;

	CHECK_INT(js_parse(core.result, core.result_len, &j, NULL), 0);
	content = js_get(j, "content");
	CHECK_INT(js_count(content), 1);
	(void)snprintf(core.shown, sizeof(core.shown), "%s",
		       js_string(js_get(js_at(content, 0), "text"), NULL));
	js_free(j);
	return core.shown;
}

/* Call and run until there is nothing left to do: what the model sees. */
static UNUSED const char *call(errand_agent caller, const char *tool, const char *args)
{
	int before = core.results;

	(void)call_begin(caller, tool, args);
	run();
	CHECK_INT(core.results, before + 1);
	return result_text();
}

static UNUSED const char *output_of(const struct work *w)
{
	char args[128];

	(void)snprintf(args, sizeof(args), "{\"task_id\":\"%s\"}", w->id);
	return call(core.alice, "task_output", args);
}

static UNUSED const char *kill_of(const struct work *w)
{
	char args[128];

	(void)snprintf(args, sizeof(args), "{\"task_id\":\"%s\"}", w->id);
	return call(core.alice, "task_kill", args);
}

static UNUSED errand_call wait_for_output(const struct work *w, int ms)
{
	char args[128];
	errand_call c;

	(void)snprintf(args, sizeof(args),
		       "{\"task_id\":\"%s\",\"wait\":true,\"timeout_ms\":%d}", w->id, ms);
	c = call_begin(core.alice, "task_output", args);
	run();
	return c;
}

/* "name/CODE" of the last result's error, "message" for one without, "" for a success. */
static UNUSED const char *result_code(void)
{
	static char copy[512];
	struct js *j = NULL;
	const struct js *e;

	CHECK_INT(js_parse(core.result, core.result_len, &j, NULL), 0);
	e = js_get(j, "error");
	CHECK(js_is_true(js_get(j, "isError")) == (e != NULL));
	if (!e)
		copy[0] = 0;
	else if (!js_get(e, "code"))
		(void)snprintf(copy, sizeof(copy), "message");
	else
		(void)snprintf(copy, sizeof(copy), "%s/%s",
			       js_string(js_get(e, "name"), NULL),
			       js_string(js_get(e, "code"), NULL));
	js_free(j);
	return copy;
}

/* ---- listening ---- */

/* Logs "done(bash-1 completed);", "changed;" or "inbox(inserted);". */
static UNUSED int on_event(void *ud, errand_host *h, errand_reg self, errand_agent owner,
			   const char *json, size_t len, errand_error *e)
{
	const char *what = ud;
	char id[64];

	(void)h;
	(void)self;
	(void)owner;
	(void)len;
	(void)e;
	if (strcmp(what, "changed") == 0) {
		logf_("changed;");
	} else if (strcmp(what, "inbox") == 0) {
		logf_("inbox(%s);", member(json, "event"));
	} else {
		(void)snprintf(id, sizeof(id), "%s", member(json, "id"));
		logf_("%s(%s %s);", what, id, member(json, "status"));
	}
	return 0;
}

static UNUSED errand_reg listen(int event, const char *what)
{
	union {
		const char *in;
		void *out;
	} ud = {.in = what};
	errand_reg r = 0;

	CHECK_INT(errand_on(core.host, 0, event, on_event, ud.out, NULL, &r, NULL), 0);
	return r;
}
