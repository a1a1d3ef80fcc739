/* SPDX-License-Identifier: MIT */
/*
 * operator.c - the methods. The core knows what an operator may: it sees, reads and kills every
 * task, owns none, moves no cursor and reports nothing (D13). Asked for a task's owner instead,
 * the same functions see that owner's tasks only.
 */
#include "host/operator.h"

#include <math.h>
#include <unistd.h>

#include "base/json.h"
#include "base/limits.h"
#include "run/bash.h"

static void put_text(struct buf *out, const char *key, const errand_text *json)
{
	size_t len;
	const char *p = errand_text_data(json, &len);

	js_put_key(out, key);
	buf_add(out, p, len);
}

/* {} -> {"tasks":[snapshot, ...]} */
static void list_tasks(struct ask *a)
{
	errand_text *json = NULL;
	errand_error *e = NULL;

	if (errand_list(a->host->core, a->agent, &json, &e) < 0) {
		ask_refused(a, e);
		return;
	}
	put_text(&a->result, "tasks", json);
	errand_text_free(json);
	ask_done(a);
}

/* {"id"} -> {"task":snapshot} */
static void get_task(struct ask *a)
{
	errand_text *json = NULL;
	errand_error *e = NULL;
	size_t len;
	const char *id = ask_string(a, "id", &len);

	if (!id)
		return;
	if (errand_get(a->host->core, id, len, a->agent, &json, &e) < 0) {
		ask_refused(a, e);
		return;
	}
	put_text(&a->result, "task", json);
	errand_text_free(json);
	ask_done(a);
}

/* {"id","reason"?} -> {"requested":true}, or false for a task that had ended */
static void kill_task(struct ask *a)
{
	errand_error *e = NULL;
	int requested = 0;
	size_t len, reason_len = 0;
	const char *id = ask_string(a, "id", &len);
	const char *reason = js_string(js_get(a->params, "reason"), &reason_len);

	if (!id)
		return;
	if (errand_kill(a->host->core, id, len, a->agent, reason, reason_len, &requested,
			&e) < 0) {
		ask_refused(a, e);
		return;
	}
	if (!requested) /* what it has left running is the producer's */
		bash_sweep(a->host->bash, id, len);
	js_put_key(&a->result, "requested");
	buf_adds(&a->result, requested ? "true" : "false");
	ask_done(a);
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
	js_put_key(&a->result, "task");
	buf_add(&a->result, snapshot, len);
	ask_done(a);
}

/* {"id","timeoutMs"?} -> {"task":snapshot}, of the ended task or, at the timeout, of a live one */
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
	{"errand/get", get_task},   {"errand/kill", kill_task}, {"errand/list", list_tasks},
	{"errand/stat", stat_host}, {"errand/wait", wait_task}, {NULL, NULL},
};
