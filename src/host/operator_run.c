/* SPDX-License-Identifier: MIT */
/*
 * operator_run.c - a person starts a task. Its owner is a session, since an operator owns none;
 * what a task's own process starts belongs to that task's owner.
 */
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "host/audit.h"
#include "host/operator.h"
#include "run/bash.h"

/* Of people who name none. */
#define DEFAULT_SESSION "people"

/* One word of a command line, so that the shell takes it as it is. */
static void put_word(struct buf *out, const char *word, size_t len)
{
	buf_addc(out, '\'');
	for (size_t i = 0; i < len; i++)
		if (word[i] == '\'')
			buf_adds(out, "'\\''");
		else
			buf_addc(out, word[i]);
	buf_addc(out, '\'');
}

/* One word is a command line, several are a program and its arguments; @label is what a list
 * shows of them. */
static bool put_command(struct buf *out, struct buf *label, const struct js *argv)
{
	size_t n = js_count(argv), len;

	for (size_t i = 0; i < n; i++) {
		const char *word = js_string(js_at(argv, i), &len);

		if (!word || strlen(word) != len)
			return false;
		buf_adds(out, i ? " " : "");
		buf_adds(label, i ? " " : "");
		buf_add(label, word, len);
		if (n == 1)
			buf_add(out, word, len);
		else
			put_word(out, word, len);
	}
	return js_type(argv) == JS_ARRAY && label->len > 0 && !buf_error(out);
}

static int owner_of(struct ask *a, errand_agent *ret, struct err *err)
{
	const char *session = a->client->hello.session;

	if (a->agent != a->host->operator) {
		*ret = a->agent;
		return 0;
	}
	if (!session)
		session = DEFAULT_SESSION;
	return owners_agent(&a->host->owners, session, strlen(session), clock_mono_ms(),
			    ret, err);
}

static bool take_timeout(const struct js *j, int64_t *ret)
{
	double ms = js_number(j);

	if (js_type(j) == JS_NONE)
		return true;
	if (!(ms >= 1 && ms <= MAX_DEADLINE_MS))
		return false;
	*ret = (int64_t)ms;
	return true;
}

static void start(struct ask *a, const struct bash_request *request)
{
	errand_error *e = NULL;
	errand_text *id = NULL;
	struct err err = {0};
	errand_agent owner = 0;
	const char *text;
	size_t len;

	if (owner_of(a, &owner, &err) < 0) {
		ask_fail(a, "%s", err.msg);
		return;
	}
	if (bash_start(a->host->bash, owner, &a->client->hello.context.run, request, &id,
		       &e) < 0) {
		ask_refused(a, e);
		return;
	}
	text = errand_text_data(id, &len);
	js_put_member(&a->result, "id", text, len);
	audit_ask(a, "start", text, len, NULL, 0);
	errand_text_free(id);
	ask_done(a);
}

/* The words of the params, and what they are made into. */
struct order {
	struct buf command, label;
	struct bash_request request;
};

/* False: the ask has been failed. */
static bool read_order(struct ask *a, struct order *ret)
{
	struct bash_request *request = &ret->request;

	*request = (struct bash_request){.is_background = true};
	if (!put_command(&ret->command, &ret->label, js_get(a->params, "argv"))) {
		ask_fail(a, "invalid params: argv must be the words of a command");
		return false;
	}
	if (!take_timeout(js_get(a->params, "timeoutMs"), &request->timeout_ms)) {
		ask_fail(a, "invalid params: timeoutMs must be from 1 to %lld",
			 (long long)MAX_DEADLINE_MS);
		return false;
	}
	request->command = buf_text(&ret->command);
	request->command_len = ret->command.len;
	request->label = js_string(js_get(a->params, "label"), &request->label_len);
	if (request->label && request->label_len > BASH_LABEL_MAX) {
		ask_fail(
			a,
			"the label has %zu bytes, and at most %zu are shown: give a shorter "
			"one",
			request->label_len, (size_t)BASH_LABEL_MAX);
		return false;
	}
	if (!request->label) {
		request->label = buf_text(&ret->label);
		request->label_len = ret->label.len;
	}
	return true;
}

static void order_init(struct order *o)
{
	buf_init(&o->command, MAX_REQUEST_LINE);
	buf_init(&o->label, MAX_REQUEST_LINE);
}

static void order_release(struct order *o)
{
	buf_release(&o->command);
	buf_release(&o->label);
}

/* {"argv":[...],"label"?,"timeoutMs"?} -> {"id"}; the owner is the session of the hello */
void ask_run(struct ask *a)
{
	struct order o;

	order_init(&o);
	if (read_order(a, &o))
		start(a, &o.request);
	order_release(&o);
}

/* The host that has taken it may have died before it came to it. */
static void begin_again(struct ask *a, const struct bash_request *request,
			const char *result)
{
	struct js_span id = js_member((struct js_span){result, strlen(result)}, "id");
	struct err err = {0};

	if (id.len > 2 && bash_resume(a->host->bash, id.ptr + 1, id.len - 2,
				      &a->client->hello.context.run, request, &err) < 0)
		ask_fail(a, "%s", err.msg);
	else
		ask_repeat(a, result);
}

void ask_run_again(struct ask *a, const char *result)
{
	struct order o;

	order_init(&o);
	if (read_order(a, &o))
		begin_again(a, &o.request, result);
	order_release(&o);
}
