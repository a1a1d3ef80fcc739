/* SPDX-License-Identifier: MIT */
/*
 * turn.c - the turn of an agent's loop: its state, and its events (spec 7.6-7.12).
 *
 *   IDLE -- turn_open --> BUSY -- step_begin --> (in a step) -- step_end --> BUSY | CLOSING
 *    ^                                                                          |
 *    `------------------------------- turn_close -------------------------------'
 *
 * CLOSING is the window behind a step that found nothing more to do: what arrives in it is
 * worth one more step (D8), so a turn that has completed does not close over it.
 */
#include "base/err.h"
#include "base/json.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/inbox.h"
#include "core/journal.h"
#include "core/lease.h"
#include "core/log.h"
#include "core/reg.h"
#include "core/scope.h"

static int not_now(const errand_host *h, errand_error **ret_err, const char *why)
{
	return error_make(ret_err, &h->mem, ERRAND_ESTATE, "%s", why);
}

static int get(errand_host *h, errand_agent agent, struct agent **ret,
	       errand_error **ret_err)
{
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	*ret = agent_get(h, agent, ret_err);
	return *ret ? 0 : ERRAND_EGONE;
}

int errand_agent_state(const errand_host *h, errand_agent agent)
{
	static const int states[] = {
		[TURN_NONE] = ERRAND_IDLE,
		[TURN_OPEN] = ERRAND_BUSY,
		[TURN_STEP] = ERRAND_BUSY,
		[TURN_CLOSING] = ERRAND_CLOSING,
	};
	const struct agent *a = h ? object_get(h, agent, OBJ_AGENT) : NULL;

	if (!h)
		return ERRAND_EARG;
	return a && !a->disposing ? states[a->phase] : ERRAND_DISPOSED;
}

/* ---- events ---- */

static void put_count(struct buf *b, const char *key, uint64_t n)
{
	(void)js_put_key(b, key);
	(void)js_put_int(b, (int64_t)n);
}

static int log_turn(errand_host *h, struct agent *a, const char *type, uint64_t turn,
		    const struct js_span *reason, errand_error **ret_err)
{
	struct buf event;

	if (!a->log)
		return 0;
	buf_init_try(&event, SIZE_MAX / 4, &h->mem);
	log_begin(a, &event, type);
	(void)buf_addf(&event, "\"turn\":%llu", (unsigned long long)turn);
	if (reason) {
		(void)js_put_key(&event, "reason");
		(void)put_json(&event, reason->ptr, reason->len);
	}
	return log_end(h, a, &event, ret_err);
}

static int log_step(errand_host *h, struct agent *a, const char *type, uint64_t step,
		    const struct message *m, errand_error **ret_err)
{
	struct buf event;

	if (!a->log)
		return 0;
	/* One of several events, of which some may be written already. */
	buf_init_mem(&event, SIZE_MAX / 4, &h->mem);
	log_begin(a, &event, type);
	(void)buf_addf(&event, "\"turn\":%llu", (unsigned long long)a->turn);
	put_count(&event, "step", step);
	if (m) {
		(void)js_put_key(&event, "message");
		(void)buf_add(&event, m->json.ptr, m->json.len);
	}
	return log_end(h, a, &event, ret_err);
}

/* The events that we write ourselves, and that a replay would believe. */
static bool is_ours(const struct js *type)
{
	static const char *const types[] = {
		"agent/inbox/spliced", "turn/start", "turn/end",
		"step/start",          "step/end",   "user/message",
	};

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (js_string_is(type, types[i]))
			return true;
	return false;
}

static int check_event(const errand_host *h, const struct js *event, errand_error **ret_err)
{
	const struct js *type = js_get(event, "type");

	if (js_type(type) != JS_STRING || is_ours(type) || js_get(event, "seq"))
		return error_make(ret_err, &h->mem, ERRAND_EARG,
				  "an event of yours has a type that is not ours, and no "
				  "seq");
	return 0;
}

static int append(errand_host *h, struct agent *a, struct js_span type, struct js_span data,
		  errand_error **ret_err)
{
	struct buf event;

	if (!a->log)
		return 0;
	buf_init_try(&event, SIZE_MAX / 4, &h->mem);
	(void)buf_adds(&event, "{\"seq\":");
	(void)js_put_int(&event, (int64_t)a->log_seq);
	(void)js_put_key(&event, "type");
	(void)put_json(&event, type.ptr, type.len);
	if (data.ptr) {
		(void)js_put_key(&event, "data");
		(void)put_json(&event, data.ptr, data.len);
	}
	(void)buf_addc(&event, '}');
	return log_append(h, a, &event, ret_err);
}

int errand_log(errand_host *h, errand_agent agent, const char *event_json, size_t len,
	       errand_error **ret_err)
{
	struct js_span text = {event_json, str_length(event_json, len)};
	struct err err = {0};
	struct js *event = NULL;
	struct agent *a;
	int rc = get(h, agent, &a, ret_err);

	if (rc != 0)
		return rc;
	if (!event_json)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "no event");
	if (text.len > h->max.json)
		return error_make(ret_err, &h->mem, ERRAND_ELIMIT,
				  "event is over %zu bytes", h->max.json);
	rc = js_parse_within(text.ptr, text.len, h->max.nesting, &event, &err);
	if (rc != 0)
		rc = error_make(ret_err, &h->mem, rc_of_parse(rc), "event: %s", err.msg);
	else
		rc = check_event(h, event, ret_err);
	js_free(event);
	if (rc != 0)
		return rc;
	return append(h, a, js_member(text, "type"), js_member(text, "data"), ret_err);
}

/* ---- steps ---- */

/* What a step may begin with: a claim of this agent's. NULL with 0: nothing new. */
static int find_claim(const errand_host *h, const struct agent *a, errand_lease lease,
		      struct lease **ret, errand_error **ret_err)
{
	*ret = NULL;
	if (lease == 0)
		return 0;
	*ret = object_get(h, lease, OBJ_LEASE);
	if (!*ret)
		return error_make(ret_err, &h->mem, ERRAND_EGONE, "no such lease");
	list_each(node, &(*ret)->holds)
	{
		const struct hold *hd = list_entry(node, struct hold, in_lease);

		if (hd->kind != HOLD_MESSAGES || hd->agent != a)
			return error_make(ret_err, &h->mem, ERRAND_EARG,
					  "not a claim of this agent");
	}
	return 0;
}

/* A step that is to begin, or is refused. */
static int find_step(errand_host *h, errand_agent agent, errand_lease lease,
		     struct agent **ret, struct lease **ret_lease, errand_error **ret_err)
{
	int rc = get(h, agent, ret, ret_err);

	if (rc != 0)
		return rc;
	if ((*ret)->phase == TURN_STEP)
		return not_now(h, ret_err, "a step is under way");
	if ((*ret)->phase == TURN_NONE)
		return not_now(h, ret_err, "no turn is open");
	return find_claim(h, *ret, lease, ret_lease, ret_err);
}

static int log_begin_of_step(errand_host *h, struct agent *a, errand_error **ret_err)
{
	int rc = a->is_begun ? 0 : log_step(h, a, "step/start", a->step + 1, NULL, ret_err);

	if (rc == 0)
		a->is_begun = true;
	return rc;
}

static int log_messages(errand_host *h, struct agent *a, const struct lease *l,
			errand_error **ret_err)
{
	list_each(node, &l->holds)
	{
		const struct hold *hd = list_entry(node, struct hold, in_lease);

		list_each(at, &hd->messages)
		{
			struct message *m = list_entry(at, struct message, node);
			int rc = m->is_logged ? 0
					      : log_step(h, a, "user/message", a->step + 1,
							 m, ret_err);

			if (rc != 0)
				return rc;
			m->is_logged = true;
		}
	}
	return 0;
}

/* What the log took cannot be undone: a step that did not come to be ends there, and counts. */
static int end_what_is_begun(errand_host *h, struct agent *a, errand_error **ret_err)
{
	int rc = a->is_begun ? log_step(h, a, "step/end", a->step + 1, NULL, ret_err) : 0;

	if (rc == 0 && a->is_begun) {
		a->step++;
		a->is_begun = false;
	}
	return rc;
}

int errand_step_begin(errand_host *h, errand_agent agent, errand_lease lease,
		      errand_error **ret_err)
{
	struct agent *a;
	struct lease *l;
	int rc = find_step(h, agent, lease, &a, &l, ret_err);

	if (rc == 0)
		rc = log_begin_of_step(h, a, ret_err);
	if (rc == 0 && l)
		rc = log_messages(h, a, l, ret_err);
	if (rc != 0)
		return rc;
	a->step++;
	a->is_begun = false;
	a->phase = TURN_STEP;
	if (l)
		lease_commit(h, l);
	return 0;
}

int errand_step_reject(errand_host *h, errand_agent agent, errand_lease lease,
		       errand_error **ret_err)
{
	struct agent *a;
	struct lease *l;
	int rc = find_step(h, agent, lease, &a, &l, ret_err);

	if (rc == 0)
		rc = end_what_is_begun(h, a, ret_err);
	if (rc == 0 && l)
		lease_return(h, l);
	return rc;
}

int errand_step_end(errand_host *h, errand_agent agent, int *ret_again,
		    errand_error **ret_err)
{
	struct agent *a;
	bool again;
	int rc = get(h, agent, &a, ret_err);

	if (rc != 0)
		return rc;
	if (a->phase != TURN_STEP)
		return not_now(h, ret_err, "no step is under way");
	rc = log_step(h, a, "step/end", a->step, NULL, ret_err);
	if (rc != 0)
		return rc;
	again = inbox_of(a, ERRAND_NEXT_STEP)->count > 0;
	a->phase = again ? TURN_OPEN : TURN_CLOSING;
	if (ret_again)
		*ret_again = again;
	return 0;
}

/* ---- turns ---- */

int errand_turn_open(errand_host *h, errand_agent agent, uint64_t *ret_turn,
		     errand_error **ret_err)
{
	struct agent *a;
	int rc = get(h, agent, &a, ret_err);

	if (rc != 0)
		return rc;
	if (a->disposing)
		return not_now(h, ret_err, "already being disposed");
	if (a->phase != TURN_NONE)
		return not_now(h, ret_err, "a turn is open");
	rc = log_turn(h, a, "turn/start", a->turn + 1, NULL, ret_err);
	if (rc != 0)
		return rc;
	a->turn++;
	a->step = 0;
	a->phase = TURN_OPEN;
	if (ret_turn)
		*ret_turn = a->turn;
	return 0;
}

static int close_turn(errand_host *h, struct agent *a, const struct js *reason,
		      const struct js_span *text, errand_error **ret_err)
{
	const struct js *kind = js_get(reason, "kind");
	int rc;

	if (js_type(kind) != JS_STRING)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "a reason has a kind");
	if (js_string_is(kind, "completed") && inbox_of(a, ERRAND_NEXT_STEP)->count > 0)
		return not_now(h, ret_err, "next-step holds something: run another step");
	rc = end_what_is_begun(h, a, ret_err);
	if (rc == 0)
		rc = log_turn(h, a, "turn/end", a->turn, text, ret_err);
	if (rc != 0)
		return rc;
	a->phase = TURN_NONE;
	a->is_stopped = js_string_is(kind, "aborted");
	agent_ask_again(h, a);
	return 0;
}

int errand_turn_close(errand_host *h, errand_agent agent, const char *reason_json,
		      size_t len, errand_error **ret_err)
{
	struct js_span text = {reason_json, str_length(reason_json, len)};
	struct err err = {0};
	struct js *reason = NULL;
	struct agent *a;
	int rc = get(h, agent, &a, ret_err);

	if (rc != 0)
		return rc;
	if (a->phase == TURN_NONE)
		return not_now(h, ret_err, "no turn is open");
	if (a->phase == TURN_STEP)
		return not_now(h, ret_err, "a step is under way");
	if (!reason_json)
		return error_make(ret_err, &h->mem, ERRAND_EARG, "no reason");
	if (text.len > h->max.args)
		return error_make(ret_err, &h->mem, ERRAND_ELIMIT,
				  "reason is over %zu bytes", h->max.args);
	rc = js_parse_within(text.ptr, text.len, h->max.nesting, &reason, &err);
	if (rc == 0)
		rc = close_turn(h, a, reason, &text, ret_err);
	else
		rc = error_make(ret_err, &h->mem, rc_of_parse(rc), "reason: %s", err.msg);
	js_free(reason);
	return rc;
}

/* ---- wake (D8) ---- */

bool has_notice(const struct list *messages)
{
	list_each(node, messages)
	{
		if (list_entry(node, struct message, node)->is_notice)
			return true;
	}
	return false;
}

static bool is_wanted(const struct agent *a)
{
	return !a->disposing && !a->is_stopped &&
	       (has_notice(&a->inbox[0].list) || has_notice(&a->inbox[1].list));
}

/* The budget of the nearest mount. */
static int64_t wakes_allowed(const errand_host *h, const struct agent *a)
{
	chain_each(layer, h, scope_of(a))
	{
		list_each(node, &layer->listeners[ERRAND_ON_DONE - 1])
		{
			const struct listener *l = list_entry(node, struct listener, node);

			if (l->builtin)
				return l->max_wakes;
		}
	}
	return 0;
}

static void pay(errand_host *h, struct agent *a)
{
	a->wakes++;
	journal_agent(h, a);
}

/* Whoever opened a turn meanwhile is not asked: its end asks again. What is asked for a second
 * time costs a second time: else turns that are refused would follow one another for ever. */
static void wake_fire(errand_host *h, struct event *ev)
{
	struct agent *a = list_entry(ev, struct agent, waking);
	bool wanted = is_wanted(a), was_paid = a->is_paid;

	if (wanted && a->phase != TURN_NONE)
		return;
	a->is_paid = false;
	a->is_refused = wanted && !was_paid && a->wakes >= wakes_allowed(h, a);
	if (!wanted || a->is_refused)
		return;
	if (!was_paid)
		pay(h, a);
	a->wake(a->ud, h, a->number);
}

static void wake_drop(errand_host *h, struct event *ev)
{
	(void)h;
	(void)ev; /* the agent is freed with the others */
}

void agent_wake_init(struct agent *a)
{
	a->waking = (struct event){.fire = wake_fire, .drop = wake_drop};
	list_init(&a->waking.node);
}

void agent_ask_again(errand_host *h, struct agent *a)
{
	if (a->wake && list_is_empty(&a->waking.node))
		event_queue(h, &a->waking);
}

void agent_ask(errand_host *h, struct agent *a)
{
	pay(h, a);
	a->is_paid = true;
	agent_ask_again(h, a);
}

/* One turn is asked for at a time: what ends meanwhile goes along with it. But the question
 * may have been queued with nothing to ask for. */
bool agent_may_wake(struct agent *a, int64_t max_wakes)
{
	bool is_asked = !list_is_empty(&a->waking.node) && is_wanted(a);

	if (!a->wake || a->phase != TURN_NONE || is_asked)
		return false;
	a->is_stopped = false;
	a->is_refused = a->wakes >= max_wakes;
	return !a->is_refused;
}
