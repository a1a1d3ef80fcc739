/* SPDX-License-Identifier: MIT */
/*
 * restore.c - a host put back from its journal (design.md 4.5, 5).
 *
 * Ids are those of the host that wrote the journal, so restoring comes before anything else.
 * What was on a lease is undelivered again. A notice that is owed is sent in the first
 * errand_run(), by the mount that serves its owner then.
 */
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/abi.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/inbox.h"
#include "core/journal.h"
#include "core/log.h"
#include "core/notice.h"
#include "core/task.h"

typedef int (*adopt_fn)(void *ud, errand_host *h, errand_task t, const char *record,
			size_t len, struct errand_producer *ret, errand_error *e);

/* ---- values ---- */

static uint64_t id_in(const struct js *fact, const char *key)
{
	double v = js_number(js_get(fact, key));

	return v >= 0 && v <= 9007199254740991.0 ? (uint64_t)v : 0;
}

static struct str text_in(errand_host *h, const struct js *fact, const char *key)
{
	size_t len;
	const char *s = js_string(js_get(fact, key), &len);

	return s ? str_dup(&h->mem, s, len) : (struct str){NULL, 0};
}

static bool has_text(const struct js *fact, const char *key)
{
	size_t len = 0;

	return js_string(js_get(fact, key), &len) && len > 0;
}

static bool is_text(const struct js *fact, const char *key, const struct str *text)
{
	size_t len = 0;
	const char *s = js_string(js_get(fact, key), &len);

	return s && len == text->len && memcmp(s, text->ptr, len) == 0;
}

static int status_in(const struct js *fact)
{
	for (int status = ERRAND_RUNNING; status <= ERRAND_FAILED; status++)
		if (js_string_is(js_get(fact, "status"), status_word(status)))
			return status;
	return 0;
}

/* ---- agents ---- */

static bool on_agent(errand_host *h, const struct js *fact)
{
	uint64_t id = id_in(fact, "agent");
	struct agent *a = object_get(h, id, OBJ_AGENT);

	if (id != 0 && !map_get(&h->objects, id) && has_text(fact, "session"))
		a = agent_restore(h, id, text_in(h, fact, "session"));
	if (!a || !is_text(fact, "session", &a->session->text))
		return false;
	a->wakes = (int64_t)id_in(fact, "wakes");
	return true;
}

/* Its tasks were dropped before, each by a fact of its own. */
static bool on_agent_gone(errand_host *h, const struct js *fact)
{
	struct agent *a = object_get(h, id_in(fact, "agent"), OBJ_AGENT);

	if (!a || !list_is_empty(&a->tasks))
		return false;
	agent_free(h, a);
	return true;
}

/* ---- tasks ---- */

static bool on_counter(errand_host *h, const struct js *fact)
{
	struct str text = text_in(h, fact, "kind");
	uint64_t counter = id_in(fact, "counter");
	struct kind *k;

	if (!text.ptr)
		return false;
	k = kind_get(h, &text);
	if (k->counter < counter)
		k->counter = counter;
	str_free(&h->mem, &text);
	return true;
}

static struct task *make(errand_host *h, uint64_t id, const struct js *fact)
{
	struct str kind = text_in(h, fact, "kind");
	uint64_t ordinal = id_in(fact, "ordinal"), owner = id_in(fact, "agent");
	struct agent *a = object_get(h, owner, OBJ_AGENT);
	struct task *t = NULL;
	struct kind *k = kind.ptr ? kind_get(h, &kind) : NULL;

	if (k && id != 0 && ordinal != 0 && (owner == 0 || a) &&
	    js_string(js_get(fact, "label"), NULL) && !map_get(&h->objects, id) &&
	    !map_get(&k->tasks, ordinal))
		t = task_restore(h, id, k, ordinal, a);
	str_free(&h->mem, &kind);
	return t;
}

static void send_owed(errand_host *h, struct task *t)
{
	if (t->owner && !t->noticed && !task_is_reported(t))
		notice_again(h, t);
}

static void fill(errand_host *h, struct task *t, const struct js *fact)
{
	str_free(&h->mem, &t->label);
	str_free(&h->mem, &t->detail);
	str_free(&h->mem, &t->output);
	t->label = text_in(h, fact, "label");
	if (status_is_terminal(t->status)) { /* a live one gets them from its end */
		t->detail = text_in(h, fact, "detail");
		t->output = text_in(h, fact, "output");
	}
	t->limit = (int64_t)id_in(fact, "outputLimitBytes");
	t->started_ms = (int64_t)id_in(fact, "startedAt");
	t->finished_ms = (int64_t)id_in(fact, "finishedAt");
	if (t->finished_ms < t->started_ms) /* never shown so (spec 1.9) */
		t->finished_ms = t->started_ms;
	t->reported = js_is_true(js_get(fact, "reported"));
	t->noticed = js_is_true(js_get(fact, "noticed"));
	t->notice_read = js_is_true(js_get(fact, "told"));
	t->is_stream = js_is_true(js_get(fact, "stream"));
	t->cursor = t->delivered = id_in(fact, "cursor");
}

/* Id and owner stay; a task goes forward, and ends once. */
static bool may_follow(const struct task *t, const struct js *fact, int status)
{
	uint64_t owner = t->owner ? t->owner->number : 0;

	if (!is_text(fact, "kind", &t->kind->text) ||
	    id_in(fact, "ordinal") != t->ordinal || id_in(fact, "agent") != owner)
		return false;
	return status_is_terminal(t->status) ? status == t->status : status >= t->status;
}

static bool on_task(errand_host *h, const struct js *fact)
{
	uint64_t id = id_in(fact, "task");
	struct task *t = object_get(h, id, OBJ_TASK);
	int status = status_in(fact);
	bool was_terminal;

	if (status == 0 || !has_text(fact, "kind") || !has_text(fact, "label"))
		return false;
	if (!t)
		t = make(h, id, fact);
	if (!t || !may_follow(t, fact, status))
		return false;
	was_terminal = status_is_terminal(t->status);
	t->status = status;
	fill(h, t, fact);
	if (status_is_terminal(status) && !was_terminal) {
		task_ended(h, t);
		task_later(h, t, send_owed);
	}
	task_told(h, t);
	return true;
}

static bool on_drop(errand_host *h, const struct js *fact)
{
	struct task *t = object_get(h, id_in(fact, "task"), OBJ_TASK);

	if (!t || !status_is_terminal(t->status))
		return false;
	task_free(h, t);
	return true;
}

static bool on_reported(errand_host *h, const struct js *fact)
{
	struct task *t = object_get(h, id_in(fact, "task"), OBJ_TASK);

	if (!t)
		return false;
	t->reported = true;
	task_told(h, t);
	return true;
}

static bool on_told(errand_host *h, const struct js *fact)
{
	struct task *t = object_get(h, id_in(fact, "task"), OBJ_TASK);

	if (!t)
		return false;
	t->notice_read = t->noticed = true;
	task_told(h, t);
	return true;
}

static bool on_noticed(errand_host *h, const struct js *fact)
{
	struct task *t = object_get(h, id_in(fact, "task"), OBJ_TASK);

	if (t)
		t->noticed = true;
	return t != NULL;
}

static bool on_cursor(errand_host *h, const struct js *fact)
{
	struct task *t = object_get(h, id_in(fact, "task"), OBJ_TASK);

	if (!t)
		return false;
	t->cursor = t->delivered = id_in(fact, "cursor");
	return true;
}

/* ---- messages ---- */

static struct message *message_in(const struct agent *a, const struct js *fact,
				  const char *key)
{
	size_t len = 0;
	const char *id = a ? js_string(js_get(fact, key), &len) : NULL;
	struct name *n = id ? names_get(&a->pending, id, len) : NULL;

	return n ? list_entry(n, struct message, name) : NULL;
}

static bool refuse_message(errand_host *h, struct message *m)
{
	message_free(h, m);
	return false;
}

/* @text: that of the message in it. */
static bool on_message(errand_host *h, const struct js *fact, struct js_span text)
{
	struct agent *a = object_get(h, id_in(fact, "agent"), OBJ_AGENT);
	const struct js *target = js_get(fact, "target");
	struct message *m = NULL;
	struct task *t;
	int rc = a ? message_read(h, a, js_get(fact, "message"), text, &m)
		   : ERRAND_EREFUSED;

	if (rc == ERRAND_ENOMEM)
		mem_fail(&h->mem, sizeof(*m));
	if (rc != 0)
		return false;
	if (js_string_is(target, target_word(ERRAND_NEXT_TURN)))
		m->target = ERRAND_NEXT_TURN;
	else if (!js_string_is(target, target_word(ERRAND_NEXT_STEP)))
		return refuse_message(h, m);
	inbox_put(a, m);
	message_id_seen(h, m);
	t = m->is_notice ? object_get(h, m->task, OBJ_TASK) : NULL;
	if (t)
		t->noticed = true;
	return true;
}

static bool on_message_moved(errand_host *h, const struct js *fact)
{
	struct agent *a = object_get(h, id_in(fact, "agent"), OBJ_AGENT);
	struct message *m = message_in(a, fact, "id");
	struct message *before = message_in(a, fact, "before");

	if (!m || (before && (before == m || before->target != m->target)))
		return false;
	inbox_move(a, m, before);
	return true;
}

static bool on_message_gone(errand_host *h, const struct js *fact)
{
	struct agent *a = object_get(h, id_in(fact, "agent"), OBJ_AGENT);
	struct message *m = message_in(a, fact, "id");

	if (!m)
		return false;
	inbox_forget(h, a, m);
	return true;
}

/* ---- all facts ---- */

static const struct {
	const char *fact;
	bool (*take)(errand_host *h, const struct js *fact);
} facts[] = {
	{"agent", on_agent},
	{"agent-gone", on_agent_gone},
	{"counter", on_counter},
	{"task", on_task},
	{"drop", on_drop},
	{"reported", on_reported},
	{"noticed", on_noticed},
	{"told", on_told},
	{"cursor", on_cursor},
	{"message-moved", on_message_moved},
	{"message-gone", on_message_gone},
};

static bool take(errand_host *h, const struct js *fact, struct js_span text)
{
	if (js_string_is(js_get(fact, "fact"), "message"))
		return on_message(h, fact, js_member(text, "message"));
	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++)
		if (js_string_is(js_get(fact, "fact"), facts[i].fact))
			return facts[i].take(h, fact);
	return false;
}

struct walk {
	errand_host *h;
	const struct js *all;
	size_t taken;
	bool is_over; /* the next one cannot be */
};

static void take_next(void *ud, struct js_span text)
{
	struct walk *w = ud;

	if (w->is_over || !take(w->h, js_at(w->all, w->taken), text))
		w->is_over = true;
	else
		w->taken++;
}

/* @text was parsed as @all. */
static int take_all(errand_host *h, const struct js *all, struct js_span text,
		    errand_error **ret_err)
{
	struct walk w = {.h = h, .all = all};

	js_each(text, take_next, &w);
	if (!w.is_over)
		return 0;
	return error_make(ret_err, &h->mem, ERRAND_EREFUSED,
			  "journal entry %zu cannot be: damaged, or out of order", w.taken);
}

/* ---- producers ---- */

/* It is settled already, only not yet processed. */
static int cancel_lost(void *ud, errand_host *h, errand_task t, const char *reason,
		       size_t len, errand_error *e)
{
	(void)ud;
	(void)h;
	(void)t;
	(void)reason;
	(void)len;
	(void)e;
	return 0;
}

static void lose(errand_host *h, struct task *t, const errand_error *why)
{
	struct buf detail;
	size_t len;
	const char *message = errand_error_message(why, &len);

	t->producer.cancel = cancel_lost;
	buf_init_mem(&detail, MAX_ERROR_TEXT * 2, &h->mem);
	(void)buf_adds(&detail, "lost: ");
	(void)buf_add(&detail, message, len);
	(void)errand_settle(h, t->obj.id, ERRAND_FAILED, buf_text(&detail), detail.len,
			    NULL, 0);
	buf_release(&detail);
}

/* A program that was built with a newer errand.h may fill in more than we know. */
union producer_room {
	struct errand_producer producer;
	unsigned char bytes[ABI_MAX_SIZE];
};

static int take_producer(errand_host *h, const union producer_room *room,
			 struct errand_producer *ret, errand_error **ret_err)
{
	int rc = abi_take(&h->mem, ABI_PRODUCER, ret, room, ret_err);

	if (rc == 0 && !ret->cancel)
		rc = error_make(ret_err, &h->mem, ERRAND_EARG, "a producer needs cancel()");
	if (rc != 0)
		destroy_ud(h, ret->destroy, ret->ud);
	return rc;
}

static void ask(errand_host *h, struct task *t, adopt_fn adopt, void *ud)
{
	union producer_room room = {0};
	struct errand_producer p = {0};
	errand_error *e = error_lend(&h->mem);
	enum phase before = phase_enter(h, PHASE_SYNC);
	struct buf record;
	int rc;

	buf_init_mem(&record, SIZE_MAX / 4, &h->mem);
	(void)buf_addc(&record, '{');
	journal_put_task(&record, t);
	(void)buf_addc(&record, '}');
	rc = adopt(ud, h, t->obj.id, buf_text(&record), record.len, &room.producer, e);
	buf_release(&record);
	h->phase = before;
	if (rc >= 0) {
		errand_error_free(e);
		e = NULL;
		rc = take_producer(h, &room, &p, &e);
	}
	if (rc >= 0)
		t->producer = p;
	else if (!status_is_terminal(t->status))
		lose(h, t, e);
	errand_error_free(e);
}

static int no_adopt(void *ud, errand_host *h, errand_task t, const char *record, size_t len,
		    struct errand_producer *ret, errand_error *e)
{
	(void)ud;
	(void)h;
	(void)t;
	(void)record;
	(void)len;
	(void)ret;
	errand_error_set(e, NULL, NULL, "nobody takes it over", ERRAND_NUL);
	return ERRAND_ECALLBACK;
}

/* Those that live, and those whose output is still to be read. */
static void adopt_all(errand_host *h, adopt_fn adopt, void *ud)
{
	list_each(node, &h->by_type[OBJ_TASK])
	{
		struct task *t = list_entry(node, struct task, obj.node);

		if (t->is_stream || !status_is_terminal(t->status))
			ask(h, t, adopt ? adopt : no_adopt, ud);
	}
}

/* ---- the public face ---- */

static int restore(errand_host *h, const struct js *all, struct js_span text,
		   adopt_fn adopt, void *ud, errand_error **ret_err)
{
	void (*journal)(void *ud, const char *json, size_t len) = h->journal;
	int rc;

	h->journal = NULL; /* these facts are known */
	rc = take_all(h, all, text, ret_err);
	h->journal = journal;
	if (rc == 0)
		adopt_all(h, adopt, ud);
	return rc;
}

int errand_restore(errand_host *h, const char *json, size_t len,
		   int (*adopt)(void *ud, errand_host *h, errand_task t, const char *record,
				size_t len, struct errand_producer *ret, errand_error *e),
		   void *ud, errand_error **ret_err)
{
	struct js_span text = {json, str_length(json, len)};
	struct err err = {0};
	struct js *all = NULL;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (h->last_id != 0 || !json)
		return error_make(ret_err, &h->mem, json ? ERRAND_ESTATE : ERRAND_EARG,
				  "a journal is restored before anything else");
	rc = js_parse_within(text.ptr, text.len, MAX_JSON_NESTING + MAX_JSON_ENVELOPE, &all,
			     &err);
	if (rc != 0)
		rc = error_make(ret_err, &h->mem, rc_of_parse(rc), "journal: %s", err.msg);
	else if (js_type(all) != JS_ARRAY)
		rc = error_make(ret_err, &h->mem, ERRAND_EJSON, "journal: no array");
	else
		rc = restore(h, all, text, adopt, ud, ret_err);
	js_free(all);
	return rc;
}
