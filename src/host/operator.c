/* SPDX-License-Identifier: MIT */
/*
 * operator.c - the methods. The core knows what an operator may: it sees, reads and kills every
 * task, owns none, moves no cursor and reports nothing (D13). Asked for a task's owner instead,
 * the same functions see that owner's tasks only.
 */
#include "host/operator.h"

#include <limits.h>
#include <math.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/human.h"
#include "base/json.h"
#include "base/limits.h"
#include "host/audit.h"
#include "run/bash.h"

/* ---- looking ---- */

typedef void (*put_fn)(const struct bash *b, const char *id, size_t len, struct buf *out);

static void put_object(struct ask *a, const char *key, put_fn put, struct js_span id)
{
	autobuf struct buf object = BUF_INIT(KIB(64));

	put(a->host->bash, id.ptr + 1, id.len - 2, &object); /* without its quotes */
	if (!object.len)
		return;
	js_put_key(&a->result, key);
	buf_add(&a->result, object.data, object.len);
}

/* The snapshot, and what its producer knows. */
static void put_task(void *ud, struct js_span snapshot)
{
	struct ask *a = ud;
	struct js_span id = js_member(snapshot, "id");

	if (a->result.len && a->result.data[a->result.len - 1] == '}')
		buf_addc(&a->result, ',');
	buf_add(&a->result, snapshot.ptr, snapshot.len - 1); /* still open */
	put_object(a, "facts", bash_facts, id);
	put_object(a, "now", bash_now, id);
	buf_addc(&a->result, '}');
}

static void ask_put_task(struct ask *a, const char *snapshot, size_t len)
{
	js_put_key(&a->result, "task");
	put_task(a, (struct js_span){snapshot, len});
}

/* {} -> {"tasks":[task, ...]} */
static void list_tasks(struct ask *a)
{
	errand_text *json = NULL;
	errand_error *e = NULL;
	struct js_span all;

	if (errand_list(a->host->core, a->agent, &json, &e) < 0) {
		ask_refused(a, e);
		return;
	}
	all.ptr = errand_text_data(json, &all.len);
	js_put_key(&a->result, "tasks");
	buf_addc(&a->result, '[');
	js_each(all, put_task, a);
	buf_addc(&a->result, ']');
	errand_text_free(json);
	ask_done(a);
}

/* The id in the params, of a task that may be seen; NULL: the ask has been failed. */
static const char *seen_task(struct ask *a, size_t *ret_len, errand_text **ret_json)
{
	errand_error *e = NULL;
	const char *id = ask_string(a, "id", ret_len);

	if (!id)
		return NULL;
	if (errand_get(a->host->core, id, *ret_len, a->agent, ret_json, &e) == 0)
		return id;
	ask_refused(a, e);
	return NULL;
}

/* {"id"} -> {"task":task} */
static void get_task(struct ask *a)
{
	errand_text *json = NULL;
	const char *snapshot;
	size_t len;

	if (!seen_task(a, &len, &json))
		return;
	snapshot = errand_text_data(json, &len);
	ask_put_task(a, snapshot, len);
	errand_text_free(json);
	ask_done(a);
}

/* The process of the task in the params; NULL: the ask has been failed. */
static struct run_task *seen_process(struct ask *a)
{
	errand_text *json = NULL;
	size_t len;
	const char *id = seen_task(a, &len, &json);
	struct run_task *t = id ? bash_process(a->host->bash, id, len) : NULL;

	errand_text_free(json);
	if (id && !t)
		ask_fail(a, "task %.*s has no process of its own", (int)len, id);
	return t;
}

/* {"id"} -> {"folder"}: where its log is, for readers of the same user (run/reader.h) */
static void find_log(struct ask *a)
{
	autobuf struct buf path = BUF_INIT(PATH_MAX);
	const struct run_task *t = seen_process(a);

	if (!t)
		return;
	buf_addf(&path, "%s/tasks/%s", a->host->state.path, run_uid(t));
	js_put_member(&a->result, "folder", buf_text(&path), path.len);
	ask_done(a);
}

/* ---- ending ---- */

static void tell_swept(struct ask *a, int64_t found, int64_t left)
{
	js_put_key(&a->result, "found");
	js_put_int(&a->result, found);
	js_put_key(&a->result, "left");
	js_put_int(&a->result, left);
	ask_done(a);
}

/* Of the task in the params. */
static void audit_about(const struct ask *a, const char *act, const char *detail,
			size_t detail_len)
{
	size_t len;
	const char *id = js_string(js_get(a->params, "id"), &len);

	audit_ask(a, act, id, len, detail, detail_len);
}

static void on_swept(void *ud, struct run_task *t, const struct run_answer *answer)
{
	struct ask *a = ud;

	(void)t;
	if (answer->why)
		ask_fail(a, "%s", answer->why);
	else
		tell_swept(a, answer->found, (int64_t)answer->attached + answer->detached);
}

/* {"id"} -> {"found","left"}: all that outlived the ended task, detached ones as well */
static void sweep_task(struct ask *a)
{
	struct run_task *t = seen_process(a);
	struct err err = {0};
	int rc = t ? run_sweep(t, true, on_swept, a, &err) : 0;

	if (rc == -ERR_NOT_FOUND)
		tell_swept(a, 0, 0);
	else if (rc < 0)
		ask_fail(a, "%s", err.msg);
	else if (t)
		audit_about(a, "sweep", NULL, 0);
}

static void on_extended(void *ud, struct run_task *t, const struct run_answer *answer)
{
	struct ask *a = ud;

	(void)t;
	if (answer->why)
		ask_fail(a, "%s", answer->why);
	else
		ask_done(a);
}

static void audit_extend(const struct ask *a, int64_t ms)
{
	autobuf struct buf text = BUF_INIT(64);

	if (ms)
		human_put_ms(&text, ms);
	else
		buf_adds(&text, "no deadline");
	audit_about(a, "extend", buf_text(&text), text.len);
}

/* {"id","ms"} -> {}: a new deadline, so long from now; 0: none any more */
static void extend_task(struct ask *a)
{
	double ms = js_number(js_get(a->params, "ms"));
	struct err err = {0};
	struct run_task *t;

	if (!(ms >= 0 && ms <= MAX_DEADLINE_MS)) {
		ask_fail(a, "invalid params: ms must be from 0 to %lld",
			 (long long)MAX_DEADLINE_MS);
		return;
	}
	t = seen_process(a);
	if (!t)
		return;
	if (run_extend(t, (int64_t)ms, on_extended, a, &err) < 0)
		ask_fail(a, "%s", err.msg);
	else
		audit_extend(a, (int64_t)ms);
}

static int kill_for(struct ask *a, const char *id, size_t len, const char *reason,
		    size_t reason_len, int *ret_requested, errand_error **ret_err)
{
	int rc;

	a->host->asking = a;
	rc = errand_kill(a->host->core, id, len, a->agent, reason, reason_len,
			 ret_requested, ret_err);
	a->host->asking = NULL;
	return rc;
}

/* {"id","reason"?} -> {"requested":true}, or false for a task that had ended */
static void kill_task(struct ask *a)
{
	errand_error *e = NULL;
	int requested = 0;
	size_t len, reason_len = 0;
	const char *reason = js_string(js_get(a->params, "reason"), &reason_len);
	const char *id = ask_string(a, "id", &len); /* the last: it may end the ask */

	if (!id)
		return;
	if (kill_for(a, id, len, reason, reason_len, &requested, &e) < 0) {
		ask_refused(a, e);
		return;
	}
	audit_ask(a, "kill", id, len, reason, reason_len);
	if (!requested) /* what it has left running is the producer's */
		bash_sweep(a->host->bash, id, len);
	js_put_key(&a->result, "requested");
	buf_adds(&a->result, requested ? "true" : "false");
	ask_done(a);
}

/* Its owner may have been about to begin when the host died, and has heard of no kill. */
static void kill_again(struct ask *a, const char *result)
{
	errand_error *e = NULL;
	int requested;
	size_t len;
	const char *id = js_string(js_get(a->params, "id"), &len);

	if (id && kill_for(a, id, len, NULL, 0, &requested, &e) < 0)
		errand_error_free(e); /* it has gone meanwhile, as was wanted */
	ask_repeat(a, result);
}

/* ---- waiting ---- */

static void on_waited(void *ud, errand_host *h, errand_lease l, const char *snapshot,
		      size_t len, const errand_error *e)
{
	struct ask *a = ud;

	if (l)
		(void)errand_lease_commit(h, l);
	if (e) {
		ask_fail(a, "%s", errand_error_message(e, NULL));
		return;
	}
	ask_put_task(a, snapshot, len);
	ask_done(a);
}

/* {"id","timeoutMs"?} -> {"task":task}, of the ended task or, at the timeout, of a live one */
static void wait_task(struct ask *a)
{
	struct buf timeout = BUF_INIT(64);
	errand_error *e = NULL;
	double ms = js_number(js_get(a->params, "timeoutMs"));
	size_t len;
	const char *id = ask_string(a, "id", &len);
	int rc;

	if (!id)
		return;
	js_put_number(&timeout, isnan(ms) ? INT32_MAX : ms);
	rc = errand_signal_new(a->host->core, &a->signal);
	if (rc == 0)
		rc = errand_wait(a->host->core, id, len, a->agent, buf_text(&timeout),
				 timeout.len, a->signal, on_waited, a, NULL, &e);
	buf_release(&timeout);
	if (rc < 0)
		ask_refused(a, e);
}

/* ---- the host itself ---- */

static void put_number(struct buf *out, const char *key, int64_t n)
{
	js_put_key(out, key);
	js_put_int(out, n);
}

static size_t count(const struct list *l)
{
	size_t n = 0;

	for (const struct list *node = l->next; node != l; node = node->next)
		n++;
	return n;
}

/* {} -> {"version","pid","state","startedAt","clients","owners","busy"} */
static void stat_host(struct ask *a)
{
	const struct host *h = a->host;
	struct buf *out = &a->result;

	js_put_member(out, "version", ERRAND_VERSION, strlen(ERRAND_VERSION));
	put_number(out, "pid", getpid());
	js_put_member(out, "state", h->state.path, strlen(h->state.path));
	put_number(out, "startedAt", h->began_ms);
	put_number(out, "clients", (int64_t)count(&h->clients));
	put_number(out, "owners", (int64_t)h->owners.count);
	js_put_key(out, "busy");
	buf_adds(out, run_is_busy(h->run) ? "true" : "false");
	ask_done(a);
}

const struct operator_method operator_methods[] = {
	{"errand/end-session", ask_end_session, ask_repeat},
	{"errand/extend", extend_task, NULL},
	{"errand/get", get_task, NULL},
	{"errand/kill", kill_task, kill_again},
	{"errand/list", list_tasks, NULL},
	{"errand/log", find_log, NULL},
	{"errand/run", ask_run, ask_run_again},
	{"errand/sessions", ask_sessions, NULL},
	{"errand/stat", stat_host, NULL},
	{"errand/sweep", sweep_task, NULL},
	{"errand/wait", wait_task, NULL},
	{NULL, NULL, NULL},
};
