/* SPDX-License-Identifier: MIT */
/* controller.c - the bodies of task_output, task_list and task_kill (spec 4.4-4.7, 5.7). */
#include "core/controller.h"

#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "core/call.h"
#include "core/card.h"
#include "core/host.h"
#include "core/lease.h"
#include "core/render.h"
#include "core/task.h"

static const char *task_id_of(const struct call *c, size_t *ret_len)
{
	return js_string(js_get(c->tree, "task_id"), ret_len);
}

/* The task that the arguments name, or the call fails. */
static struct task *find_or_fail(errand_host *h, struct call *c)
{
	errand_error *e = NULL;
	struct task *t = NULL;
	size_t len;
	const char *id = task_id_of(c, &len);

	if (len == 0)
		(void)error_make(&e, &h->mem, ERRAND_EREFUSED,
				 "invalid task_id: expected a non-empty string, got \"\"");
	else
		t = task_find(h, c->agent, id, len, &e);
	if (!t)
		call_fail(h, c, e);
	return t;
}

/* ---- task_output ---- */

static void read_and_answer(errand_host *h, struct call *c, struct task *t)
{
	errand_error *e = NULL;
	struct buf text, value;

	if (task_read(h, c->agent, t, call_lease(h, c), &text, &e) != 0) {
		call_fail(h, c, e);
		return;
	}
	buf_init_try(&value, h->max.json, &h->mem);
	(void)buf_addc(&value, '{');
	(void)js_put_member(&value, "text", buf_text(&text), text.len);
	(void)js_put_key(&value, "task");
	task_put_public(&value, t);
	(void)buf_addc(&value, '}');
	buf_release(&text);
	call_answer(h, c, &value);
}

/* The call cannot end before its frame is answered, so it is still there. */
static void on_waited(void *ud, errand_host *h, errand_lease lease,
		      const char *snapshot_json, size_t len, const errand_error *e)
{
	struct call *c = ud;
	struct lease *l = object_get(h, lease, OBJ_LEASE);
	struct task *t;

	(void)snapshot_json;
	(void)len;
	if (e) {
		call_fail(h, c, error_copy(&h->mem, e));
		return;
	}
	if (l)
		lease_merge(h, call_lease(h, c), l);
	t = find_or_fail(h, c);
	if (t)
		read_and_answer(h, c, t);
}

static void wait_first(errand_host *h, struct call *c, struct task *t,
		       const struct wait_config *config)
{
	const struct js *given = js_get(c->tree, "timeout_ms");
	struct wait_request r = {.signal = &c->signal,
				 .is_onlooker = is_onlooker(c->agent),
				 .fn = on_waited,
				 .ud = c};
	errand_error *e = NULL;
	struct buf shown;

	r.ms = given ? js_number(given) : config->timeout_ms;
	if (r.ms > config->max_ms)
		r.ms = config->max_ms;
	buf_init_mem(&shown, MAX_ERROR_TEXT, &h->mem);
	(void)js_put_number(&shown, r.ms);
	r.shown = buf_text(&shown);
	if (task_wait(h, t, &r, &e) != 0)
		call_fail(h, c, e);
	buf_release(&shown);
}

static void exec_output(void *ud, errand_host *h, errand_frame f,
			const struct errand_frame_view *v)
{
	struct call *c = call_of_frame(h, f);
	struct task *t = find_or_fail(h, c);

	(void)v;
	if (!t)
		return;
	if (js_is_true(js_get(c->tree, "wait")))
		wait_first(h, c, t, ud);
	else
		read_and_answer(h, c, t);
}

/* ---- task_list ---- */

static void add_public(void *ud, const struct task *t)
{
	struct buf *out = ud;

	if (out->len > 1)
		(void)buf_addc(out, ',');
	task_put_public(out, t);
}

static void exec_list(void *ud, errand_host *h, errand_frame f,
		      const struct errand_frame_view *v)
{
	struct call *c = call_of_frame(h, f);
	struct buf value;

	(void)ud;
	(void)v;
	buf_init_try(&value, h->max.json, &h->mem);
	(void)buf_addc(&value, '[');
	task_each(h, c->agent, add_public, &value);
	(void)buf_addc(&value, ']');
	call_answer(h, c, &value);
}

/* ---- task_kill ---- */

static void exec_kill(void *ud, errand_host *h, errand_frame f,
		      const struct errand_frame_view *v)
{
	struct call *c = call_of_frame(h, f);
	struct task *t = find_or_fail(h, c);
	errand_error *e = NULL;
	const char *reason;
	bool requested;
	struct buf value;
	size_t len = 0;

	(void)ud;
	(void)v;
	if (!t)
		return;
	reason = js_string(js_get(c->tree, "reason"), &len);
	if (task_kill(h, c->agent, t, reason, len, &requested, &e) != 0) {
		call_fail(h, c, e);
		return;
	}
	buf_init_mem(&value, h->max.json, &h->mem);
	(void)buf_addf(&value, "{\"outcome\":\"%s\",\"task\":",
		       requested ? "cancellation-requested" : "already-finished");
	task_put_public(&value, t);
	(void)buf_addc(&value, '}');
	call_answer(h, c, &value);
}

/* ---- the limit of a call (spec 5.7) ---- */

static int64_t visible_limit(errand_host *h, const struct call *c)
{
	size_t len = 0;
	const char *id = task_id_of(c, &len);
	const struct task *t = len ? task_find(h, c->agent, id, len, NULL) : NULL;

	return t ? t->limit : 0;
}

/* Before anything can refuse the call: what bounds it must not depend on how it ends. */
static void capture(errand_host *h, struct call *c)
{
	c->limit = visible_limit(h, c);
}

static void bound(errand_host *h, struct call *c, bool is_output)
{
	int64_t limit = c->limit ? c->limit : visible_limit(h, c);

	if (limit)
		render_bound(h, c, (uint64_t)limit, is_output);
}

static void bound_output(errand_host *h, struct call *c)
{
	bound(h, c, true);
}

static void bound_kill(errand_host *h, struct call *c)
{
	bound(h, c, false);
}

/* ---- the table ---- */

#define PUBLIC_TASK                                                                        \
	"{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"             \
	"\"id\":{\"type\":\"string\"},\"kind\":{\"type\":\"string\"},"                     \
	"\"label\":{\"type\":\"string\"},\"status\":{\"type\":\"string\",\"enum\":"        \
	"[\"running\",\"stopping\",\"completed\",\"killed\",\"failed\"]},"                 \
	"\"detail\":{\"type\":\"string\"},\"startedAt\":{\"type\":\"integer\"},"           \
	"\"finishedAt\":{\"type\":\"integer\"}},"                                          \
	"\"required\":[\"id\",\"kind\",\"label\",\"status\",\"startedAt\"]}"

const struct controller_tool controller_tools[N_CONTROLLER_TOOLS] = {
	{
		.name = "task_output",
		.description =
			"Read the output of a background task. A task that streams returns only "
			"what is new since the last read; a task with a final result returns it "
			"once the task has finished. The answer always ends with a [status: ...] "
			"line. Returns at once unless wait is true; a wait ends at a time limit, "
			"and the task lives on.",
		.params =
			"{\"type\":\"object\",\"properties\":{\"task_id\":{\"type\":\"string\","
			"\"description\":\"Id of the task, as given when it was started, for "
			"example bash-1.\"},\"wait\":{\"type\":\"boolean\",\"description\":\"Wait "
			"until the task has finished or the time limit is reached, then read. "
			"Only when you cannot go on without the result.\"},\"timeout_ms\":"
			"{\"type\":\"number\",\"description\":\"With wait: how long to wait at "
			"most, in milliseconds.\"}},\"required\":[\"task_id\"]}",
		.output =
			"{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
			"\"text\":{\"type\":\"string\"},\"task\":" PUBLIC_TASK
			"},\"required\":[\"text\",\"task\"]}",
		.exec = exec_output,
		.put_text = render_output,
		.card = card_output,
		.capture = capture,
		.last_mile = bound_output,
	},
	{
		.name = "task_list",
		.description =
			"List the background tasks of this session, running and "
			"finished, with their ids, kinds, states and labels. Reads no "
			"output.",
		.params = "{\"type\":\"object\",\"properties\":{}}",
		.output = "{\"type\":\"array\",\"items\":" PUBLIC_TASK "}",
		.exec = exec_list,
		.put_text = render_list,
		.card = card_list,
	},
	{
		.name = "task_kill",
		.description =
			"Ask a background task to stop. Returns at once; the task ends as killed "
			"when its work has stopped. Output that was not read stays readable.",
		.params =
			"{\"type\":\"object\",\"properties\":{\"task_id\":{\"type\":\"string\","
			"\"description\":\"Id of the task to stop.\"},\"reason\":{\"type\":"
			"\"string\",\"description\":\"Why; recorded and passed on to the "
			"task.\"}},\"required\":[\"task_id\"]}",
		.output =
			"{\"type\":\"object\",\"additionalProperties\":false,\"properties\":{"
			"\"outcome\":{\"type\":\"string\",\"enum\":[\"cancellation-requested\","
			"\"already-finished\"]},\"task\":" PUBLIC_TASK
			"},\"required\":[\"outcome\",\"task\"]}",
		.exec = exec_kill,
		.put_text = render_kill,
		.card = card_kill,
		.capture = capture,
		.last_mile = bound_kill,
	},
};
