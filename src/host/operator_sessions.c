/* SPDX-License-Identifier: MIT */
/* operator_sessions.c - the names under which tasks are kept, for people. */
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "host/audit.h"
#include "host/operator.h"

static void put_number(struct buf *out, const char *key, int64_t n)
{
	js_put_key(out, key);
	js_put_int(out, n);
}

static void put_session(void *ud, const struct owner_view *v)
{
	struct buf *out = ud;

	if (out->data[out->len - 1] == '}')
		buf_addc(out, ',');
	buf_addc(out, '{');
	js_put_member(out, "name", v->name, v->name_len);
	put_number(out, "clients", (int64_t)v->clients);
	put_number(out, "tasks", (int64_t)v->tasks);
	put_number(out, "live", (int64_t)v->live);
	if (v->due_ms != INT64_MAX) {
		int64_t left = v->due_ms - clock_mono_ms();

		put_number(out, "endsInMs", left > 0 ? left : 0);
	}
	buf_addc(out, '}');
}

/* Only for people: the names are others' owner keys. */
static bool is_operator(struct ask *a)
{
	if (a->agent == a->host->operator)
		return true;
	ask_fail(a, "a task may not look at sessions");
	return false;
}

/* {} -> {"sessions":[{"name","clients","tasks","live","endsInMs"?}, ...]} */
void ask_sessions(struct ask *a)
{
	if (!is_operator(a))
		return;
	js_put_key(&a->result, "sessions");
	buf_addc(&a->result, '[');
	owners_each(&a->host->owners, put_session, &a->result);
	buf_addc(&a->result, ']');
	ask_done(a);
}

/* {"name"} -> {"live"}: it and its tasks, so many of which live, are being ended */
void ask_end_session(struct ask *a)
{
	size_t len, live = 0;
	struct err err = {0};
	const char *name;

	if (!is_operator(a))
		return;
	name = ask_string(a, "name", &len);
	if (!name)
		return;
	if (owners_end(&a->host->owners, name, len, &live, &err) < 0) {
		ask_fail(a, "%s", err.msg);
		return;
	}
	audit_ask(a, "end-session", NULL, 0, name, len);
	put_number(&a->result, "live", (int64_t)live);
	ask_done(a);
}
