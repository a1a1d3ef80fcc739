/* SPDX-License-Identifier: MIT */
/* message.c - one message of an inbox: parsed, named, claimed and given back (spec 7). */
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/inbox.h"
#include "core/task.h"

#define MAX_MESSAGE_ID 256

void message_free(errand_host *h, struct message *m)
{
	str_free(&h->mem, &m->id);
	str_free(&h->mem, &m->json);
	mem_free(&h->mem, m);
}

/* ---- ids ---- */

static struct str ask_for_id(errand_host *h)
{
	struct errand_sink sink;
	struct buf id;
	enum phase before = phase_enter(h, PHASE_PURE);

	buf_init_mem(&sink.buf, MAX_MESSAGE_ID, &h->mem);
	h->message_id(h->ud, &sink);
	h->phase = before;
	buf_init_mem(&id, MAX_MESSAGE_ID * 3, &h->mem);
	(void)utf8_clean(&id, buf_text(&sink.buf), sink.buf.len);
	buf_release(&sink.buf);
	return str_of_buf(&id);
}

struct str message_new_id(errand_host *h, const struct agent *a)
{
	char text[32];
	size_t len;

	if (h->message_id)
		return ask_for_id(h);
	do {
		(void)snprintf(text, sizeof(text), "m%llu",
			       (unsigned long long)++h->last_message);
		len = strlen(text);
	} while (names_get(&a->pending, text, len));
	return str_dup(&h->mem, text, len);
}

void message_id_seen(errand_host *h, const struct message *m)
{
	uint64_t n = 0;

	for (size_t i = 1; i < m->id.len && i < 18; i++) {
		if (m->id.ptr[i] < '0' || m->id.ptr[i] > '9')
			return;
		n = n * 10 + (uint64_t)(m->id.ptr[i] - '0');
	}
	if (m->id.len > 0 && m->id.ptr[0] == 'm' && n > h->last_message)
		h->last_message = n;
}

void message_named(struct message *m)
{
	m->name.text = m->id.ptr;
	m->name.len = m->id.len;
}

/* ---- parsing ---- */

/* The members that are kept, in one order whatever the caller's. */
static int take_members(errand_host *h, struct message *m, struct js_span text)
{
	static const char *const keys[] = {"role", "content", "source", "task"};
	struct buf b;

	buf_init_try(&b, SIZE_MAX / 4, &h->mem);
	(void)buf_addc(&b, '{');
	(void)js_put_member(&b, "id", m->id.ptr, m->id.len);
	for (size_t i = 0; i < (m->is_notice ? 4 : 3); i++) {
		struct js_span member = js_member(text, keys[i]);

		if (!member.ptr)
			continue;
		(void)js_put_key(&b, keys[i]);
		(void)put_json(&b, member.ptr, member.len);
	}
	if (buf_addc(&b, '}') != 0) {
		buf_release(&b);
		return ERRAND_ENOMEM;
	}
	m->json = str_of_buf(&b);
	return 0;
}

static int take_id(errand_host *h, const struct agent *a, const struct js *id,
		   struct message *m)
{
	size_t len;
	const char *text = js_string(id, &len);

	if (!text)
		m->id = message_new_id(h, a);
	return text ? str_in(&h->mem, text, len, SIZE_MAX, &m->id) : 0;
}

static int check_members(const errand_host *h, const struct js *j, errand_error **ret_err)
{
	const struct js *id = js_get(j, "id");
	struct buf b;

	if (js_type(js_get(j, "content")) != JS_ARRAY)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "a message needs content");
	if (js_type(id) == JS_NONE || js_type(id) == JS_STRING)
		return 0;
	buf_init_mem(&b, MAX_ERROR_TEXT, &h->mem);
	(void)buf_adds(&b, "a message's id is a string, or not given; got ");
	(void)js_put_value(&b, id);
	return error_take(ret_err, ERRAND_EARG, &b);
}

static void read_notice(const errand_host *h, const struct agent *a, struct message *m,
			const struct js *j)
{
	size_t len = 0;
	const char *id = js_string(js_get(j, "task"), &len);
	const struct task *t = id ? task_by_id(h, id, len) : NULL;

	m->is_notice = id && js_string_is(js_get(js_get(j, "source"), "form"), "notice");
	/* A log that comes from another host may speak of another task of that name. */
	if (m->is_notice && t && t->owner == a && status_is_terminal(t->status))
		m->task = t->obj.id;
}

/* @text was parsed as @j. */
static int build_message(errand_host *h, const struct agent *a, const struct js *j,
			 struct js_span text, bool is_ours, struct message **ret,
			 errand_error **ret_err)
{
	struct message *m;
	int rc = check_members(h, j, ret_err);

	if (rc != 0)
		return rc;
	m = mem_new(&h->mem, sizeof(*m));
	rc = take_id(h, a, js_get(j, "id"), m);
	message_named(m);
	m->target = ERRAND_NEXT_STEP;
	m->is_user = js_string_is(js_get(js_get(j, "source"), "kind"), "user");
	if (is_ours)
		read_notice(h, a, m, j);
	if (rc == 0)
		rc = take_members(h, m, text);
	if (rc != 0) {
		message_free(h, m);
		return error_no_memory(ret_err, &h->mem);
	}
	*ret = m;
	return 0;
}

int message_parse(errand_host *h, const struct agent *a, struct js_span text,
		  struct message **ret, errand_error **ret_err)
{
	struct err err = {0};
	struct js *j = NULL;
	int rc;

	if (text.len > h->max.args)
		return error_make(ret_err, &h->mem, ERRAND_ELIMIT,
				  "message is over %zu bytes", h->max.args);
	rc = js_parse_within(text.ptr, text.len, h->max.nesting, &j, &err);
	if (rc != 0) {
		js_free(j);
		return error_make(ret_err, &h->mem, rc_of_parse(rc), "message: %s",
				  err.msg);
	}
	rc = build_message(h, a, j, text, false, ret, ret_err);
	js_free(j);
	return rc;
}

int message_read(errand_host *h, struct agent *a, const struct js *j, struct js_span text,
		 struct message **ret)
{
	size_t len;
	const char *id = js_string(js_get(j, "id"), &len);
	int rc;

	if (!id || names_get(&a->pending, id, len))
		return ERRAND_EREFUSED;
	rc = build_message(h, a, j, text, true, ret, NULL);
	return rc == ERRAND_EARG ? ERRAND_EREFUSED : rc;
}
