/* SPDX-License-Identifier: MIT */
/*
 * replay.c - an inbox put back from the session's log (spec 7.5): silently, and as a whole
 * or not at all.
 */
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/agent.h"
#include "core/config.h"
#include "core/host.h"
#include "core/inbox.h"
#include "core/journal.h"
#include "core/log.h"

/* What the agent had before, in case the log is no good. */
struct saved {
	struct inbox inbox[2];
	struct names pending;
	uint64_t last_seq, log_seq, turn;
	bool is_stopped;
};

static void inboxes_move(struct inbox *to, struct inbox *from)
{
	for (int i = 0; i < 2; i++) {
		list_init(&to[i].list);
		list_move(&to[i].list, &from[i].list);
		to[i].count = from[i].count;
		from[i].count = 0;
	}
}

static void put_aside(errand_host *h, struct agent *a, struct saved *s)
{
	inboxes_move(s->inbox, a->inbox);
	s->pending = a->pending;
	s->last_seq = a->last_seq;
	s->log_seq = a->log_seq;
	s->turn = a->turn;
	s->is_stopped = a->is_stopped;
	names_init(&a->pending, &h->mem);
}

static void put_back(errand_host *h, struct agent *a, struct saved *s)
{
	inbox_release(h, a);
	names_release(&a->pending);
	inboxes_move(a->inbox, s->inbox);
	a->pending = s->pending;
	a->last_seq = s->last_seq;
	a->log_seq = s->log_seq;
	a->turn = s->turn;
	a->is_stopped = s->is_stopped;
}

static void saved_release(errand_host *h, struct saved *s)
{
	for (int i = 0; i < 2; i++)
		list_each(node, &s->inbox[i].list)
			message_free(h, list_entry(node, struct message, node));
	names_release(&s->pending);
}

/* ---- one splice ---- */

static int target_of(const struct js *data)
{
	const struct js *word = js_get(data, "target");

	if (js_string_is(word, target_word(ERRAND_NEXT_STEP)))
		return ERRAND_NEXT_STEP;
	return js_string_is(word, target_word(ERRAND_NEXT_TURN)) ? ERRAND_NEXT_TURN : 0;
}

/* A whole number from 0 to @max; absent is 0. */
static bool read_size(const struct js *j, size_t max, size_t *ret)
{
	double v = js_type(j) == JS_NONE ? 0 : js_number(j);

	if (!(v >= 0 && v <= (double)max) || v != (double)(size_t)v)
		return false;
	*ret = (size_t)v;
	return true;
}

/* Messages on their way to their place. */
struct insertion {
	errand_host *h;
	struct agent *agent;
	const struct js *messages;
	size_t next; /* of these */
	int target;
	struct list *at;
	int rc; /* 0, EREFUSED or ENOMEM */
};

static void insert_one(void *ud, struct js_span text)
{
	struct insertion *in = ud;
	struct inbox *box = inbox_of(in->agent, in->target);
	const struct js *j = js_at(in->messages, in->next++);
	struct message *m = NULL;

	if (in->rc == 0)
		in->rc = message_read(in->h, in->agent, j, text, &m);
	if (!m)
		return;
	m->target = in->target;
	m->was_returned = in->at != &box->list;
	if (m->is_notice && !m->was_returned)
		in->agent->is_stopped = false;
	inbox_put(in->agent, m);
	list_del(&m->node);
	list_add(in->at, &m->node);
}

/* 0, EREFUSED or ENOMEM. @text was parsed as @data. */
static int apply(errand_host *h, struct agent *a, const struct js *data,
		 struct js_span text)
{
	const struct js *inserted = js_get(data, "inserted");
	int target = target_of(data);
	struct inbox *box = target ? inbox_of(a, target) : NULL;
	struct insertion in = {.h = h, .agent = a, .messages = inserted, .target = target};
	size_t start, removed;
	struct list *at;

	if (!box || js_type(inserted) != JS_ARRAY ||
	    !read_size(js_get(data, "start"), box->count, &start) ||
	    !read_size(js_get(data, "removedCount"), box->count - start, &removed))
		return ERRAND_EREFUSED;
	at = box->list.next;
	for (size_t i = 0; i < start; i++)
		at = at->next;
	for (; removed > 0; removed--) {
		struct message *gone = list_entry(at, struct message, node);

		at = at->next;
		inbox_forget(h, a, gone);
	}
	in.at = at;
	js_each(js_member(text, "inserted"), insert_one, &in);
	return in.rc;
}

/* ---- the log ---- */

static uint64_t count_of(const struct js *j, uint64_t otherwise)
{
	double v = js_number(j);

	return v == 0 || config_is_count(v) ? (uint64_t)v : otherwise;
}

/* @text was parsed as @event. */
static int replay_event(errand_host *h, struct agent *a, const struct js *event,
			struct js_span text, uint64_t number, errand_error **ret_err)
{
	const struct js *data = js_get(event, "data");
	const struct js *type = js_get(event, "type");
	uint64_t seq = count_of(js_get(event, "seq"), number);
	int rc;

	if (js_string_is(type, "turn/start"))
		a->turn = count_of(js_get(data, "turn"), a->turn);
	if (js_string_is(type, "turn/end"))
		a->is_stopped = js_string_is(js_get(js_get(data, "reason"), "kind"),
					     "aborted");
	a->log_seq = seq + 1;
	if (!js_string_is(type, "agent/inbox/spliced"))
		return 0;
	rc = apply(h, a, data, js_member(text, "data"));
	if (rc == 0)
		return 0;
	if (rc == ERRAND_ENOMEM)
		return error_no_memory(ret_err, &h->mem);
	return error_make(ret_err, &h->mem, ERRAND_EREFUSED,
			  "invalid persisted inbox splice at session seq %llu",
			  (unsigned long long)seq);
}

/* The journal hears of what has come of it, not of the way. */
static void tell(errand_host *h, const struct agent *a, const struct saved *before)
{
	for (int i = 0; i < 2; i++)
		list_each(node, &before->inbox[i].list)
			journal_message_gone(h, a, list_entry(node, struct message, node));
	for (int i = 0; i < 2; i++)
		list_each(node, &a->inbox[i].list)
			journal_message(h, a, list_entry(node, struct message, node));
}

struct walk {
	errand_host *h;
	struct agent *agent;
	const struct js *events;
	size_t next; /* of these */
	errand_error **ret_err;
	int rc;
};

static void replay_next(void *ud, struct js_span text)
{
	struct walk *w = ud;
	size_t i = w->next++;

	if (w->rc == 0)
		w->rc = replay_event(w->h, w->agent, js_at(w->events, i), text, i,
				     w->ret_err);
}

/* @text was parsed as @events. */
static int replay(errand_host *h, struct agent *a, const struct js *events,
		  struct js_span text, errand_error **ret_err)
{
	struct walk w = {.h = h, .agent = a, .events = events, .ret_err = ret_err};
	void (*journal)(void *ud, const char *json, size_t len) = h->journal;
	struct saved saved;

	h->journal = NULL;
	put_aside(h, a, &saved);
	js_each(text, replay_next, &w);
	if (w.rc != 0)
		put_back(h, a, &saved);
	h->journal = journal;
	if (w.rc != 0)
		return w.rc;
	tell(h, a, &saved);
	saved_release(h, &saved);
	agent_ask_again(h, a);
	return 0;
}

static int check_quiet(const errand_host *h, const struct agent *a, errand_error **ret_err)
{
	if (a->disposing)
		return error_make(ret_err, &h->mem, ERRAND_ESTATE,
				  "already being disposed");
	if (a->phase != TURN_NONE)
		return error_make(ret_err, &h->mem, ERRAND_ESTATE, "a turn is open");
	if (!list_is_empty(&a->holds))
		return error_make(ret_err, &h->mem, ERRAND_ESTATE,
				  "messages are claimed on a lease");
	return 0;
}

int errand_replay(errand_host *h, errand_agent agent, const char *events_json, size_t len,
		  errand_error **ret_err)
{
	struct err err = {0};
	struct js *events = NULL;
	struct agent *a;
	int rc = agent_to_change(h, agent, &a, ret_err);

	if (rc != 0)
		return rc;
	rc = check_quiet(h, a, ret_err);
	if (rc != 0)
		return rc;
	len = str_length(events_json, len);
	if (!events_json)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "no events");
	if (len > h->max.json)
		return error_make(ret_err, &h->mem, ERRAND_ELIMIT,
				  "events are over %zu bytes", h->max.json);
	rc = js_parse_within(events_json, len, MAX_JSON_NESTING + MAX_JSON_ENVELOPE,
			     &events, &err);
	if (rc != 0)
		rc = error_make(ret_err, &h->mem, rc_of_parse(rc), "events: %s", err.msg);
	else if (js_type(events) != JS_ARRAY)
		rc = error_make(ret_err, &h->mem, ERRAND_EJSON, "events: no array");
	else
		rc = replay(h, a, events, (struct js_span){events_json, len}, ret_err);
	js_free(events);
	return rc;
}
