/* SPDX-License-Identifier: MIT */
/* task.c - the registry: start, find, settle, kill, drop (spec 1, 2). */
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/journal.h"
#include "core/lease.h"
#include "core/reg.h"
#include "core/task.h"

bool status_is_terminal(int status)
{
	return status >= ERRAND_COMPLETED;
}

bool task_is_reported(const struct task *t)
{
	return t->reported || t->end_holds > 0;
}

static struct dispatch *queue_change(errand_host *h, const struct agent *owner)
{
	struct dispatch *d = dispatch_new(h, ERRAND_ON_CHANGED, owner);

	if (!d)
		return NULL;
	d->json = str_dup(&h->mem, "{}", 2);
	dispatch_queue(h, d);
	return d;
}

void task_changed(errand_host *h, const struct agent *owner)
{
	(void)queue_change(h, owner);
}

struct later {
	struct event ev;
	errand_task task;
	void (*fn)(errand_host *h, struct task *t);
};

static void later_drop(errand_host *h, struct event *ev)
{
	mem_free(&h->mem, list_entry(ev, struct later, ev));
}

static void later_fire(errand_host *h, struct event *ev)
{
	const struct later *l = list_entry(ev, struct later, ev);
	struct task *t = object_get(h, l->task, OBJ_TASK);

	if (t)
		l->fn(h, t);
	later_drop(h, ev);
}

void task_later(errand_host *h, const struct task *t,
		void (*fn)(errand_host *h, struct task *t))
{
	struct later *l = mem_new(&h->mem, sizeof(*l));

	*l = (struct later){{.fire = later_fire, .drop = later_drop}, t->obj.id, fn};
	event_queue(h, &l->ev);
}

/* ---- kinds and ids ---- */

struct kind *kind_get(errand_host *h, const struct str *text)
{
	struct name *n = names_get(&h->kinds, text->ptr, text->len);
	struct kind *k;

	if (n)
		return list_entry(n, struct kind, name);
	k = mem_new(&h->mem, sizeof(*k));
	k->text = str_dup(&h->mem, text->ptr, text->len);
	k->name.text = k->text.ptr;
	k->name.len = k->text.len;
	map_init(&k->tasks, &h->mem);
	names_put(&h->kinds, &k->name);
	list_add(&h->kind_list, &k->in_host);
	return k;
}

void task_put_id(struct buf *out, const struct task *t)
{
	(void)buf_add(out, t->kind->text.ptr, t->kind->text.len);
	(void)buf_addc(out, '-');
	(void)js_put_int(out, (int64_t)t->ordinal);
}

/* The digits at the end of an id, as we write them: no sign, no leading zero. 0: none. */
static uint64_t parse_ordinal(const char *digits, size_t len)
{
	uint64_t n = 0;

	if (len == 0 || len > 18 || digits[0] == '0')
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			return 0;
		n = n * 10 + (uint64_t)(digits[i] - '0');
	}
	return n;
}

struct task *task_by_id(const errand_host *h, const char *id, size_t len)
{
	const char *dash = len ? memrchr(id, '-', len) : NULL;
	struct name *n;

	if (!dash)
		return NULL;
	n = names_get(&h->kinds, id, (size_t)(dash - id));
	if (!n)
		return NULL;
	return map_get(&list_entry(n, struct kind, name)->tasks,
		       parse_ordinal(dash + 1, len - (size_t)(dash - id) - 1));
}

bool task_is_seen(const errand_host *h, const struct agent *caller, const struct task *t)
{
	if (!t->owner && h->unowned_access == UNOWNED_NONE)
		return false;
	if (is_onlooker(caller))
		return true;
	if (!t->owner)
		return h->unowned_access == UNOWNED_OPEN;
	return caller && t->owner->session == caller->session;
}

struct task *task_find(const errand_host *h, const struct agent *caller, const char *id,
		       size_t len, errand_error **ret_err)
{
	struct task *t = task_by_id(h, id, len);

	if (!t) {
		(void)error_about(ret_err, &h->mem, ERRAND_EREFUSED, "unknown task ", id,
				  len, "");
		return NULL;
	}
	if (!task_is_seen(h, caller, t)) {
		(void)error_about(ret_err, &h->mem, ERRAND_EREFUSED, "task ", id, len,
				  " belongs to another session");
		return NULL;
	}
	return t;
}

/* ---- what its owner knows ---- */

void task_report(errand_host *h, struct task *t)
{
	if (!t->reported)
		journal_of_task(h, t, "reported");
	t->reported = true;
	task_told(h, t);
}

/* Where the first byte lies that a lease may still give back. */
static uint64_t first_held(const struct task *t)
{
	uint64_t first = t->cursor;

	list_each(node, &t->holds)
	{
		const struct hold *hd = list_entry(node, struct hold, in_thing);

		if (hd->kind == HOLD_BYTES && hd->from < first)
			first = hd->from;
	}
	return first;
}

static void tell_consumed(errand_host *h, const struct task *t)
{
	enum phase before;

	if (!t->producer.consumed)
		return;
	before = phase_enter(h, PHASE_PURE);
	t->producer.consumed(t->producer.ud, t->obj.id, t->delivered);
	h->phase = before;
}

void task_delivered(errand_host *h, struct task *t)
{
	uint64_t upto = first_held(t);

	if (upto == t->delivered)
		return;
	t->delivered = upto;
	journal_cursor(h, t);
	tell_consumed(h, t);
}

/* ---- settlement ---- */

/* What listeners of the caller's are told. */
static void describe_end(errand_host *h, struct dispatch *d, const struct task *t)
{
	struct buf b;

	buf_init_mem(&b, h->max.json, &h->mem);
	task_put_snapshot(&b, t);
	d->json = str_of_buf(&b);
	buf_init_mem(&b, h->max.json, &h->mem);
	task_put_id(&b, t);
	d->subject = str_of_buf(&b);
}

static void announce_done(errand_host *h, const struct task *t)
{
	struct dispatch *d = dispatch_new(h, ERRAND_ON_DONE, t->owner);

	if (!d)
		return;
	d->task = t->obj.id;
	d->reported = task_is_reported(t);
	if (d->is_heard)
		describe_end(h, d, t);
	dispatch_queue(h, d);
}

/*
 * D3: the record, the reported bit, the waiters, the observers of changes, the listeners.
 * All that runs code of others is queued, in this order.
 */
void task_settle(errand_host *h, struct task *t, int status, struct str *detail,
		 struct str *output)
{
	t->status = status;
	t->detail = str_take(detail);
	t->output = str_take(output);
	t->finished_ms = h->wall_ms > t->started_ms ? h->wall_ms : t->started_ms;
	list_each(node, &t->waiters)
		waiter_settled(h, list_entry(node, struct waiter, in_task), t);
	task_changed(h, t->owner);
	announce_done(h, t);
	journal_task(h, t);
	task_told(h, t);
	task_ended(h, t);
}

void task_ended(errand_host *h, struct task *t)
{
	if (t->owner)
		agent_settled(h, t->owner);
	else
		h->unowned_live--;
	service_settled(h);
}

/* ---- kill ---- */

/* The observers are queued first: a producer that settles inside cancel comes after them, so
 * that they find the task stopping before they find it ended. A refusal changes nothing. */
int task_cancel(errand_host *h, struct task *t, const char *reason, size_t len,
		errand_error *e)
{
	struct dispatch *told = queue_change(h, t->owner);
	enum phase before = phase_enter(h, PHASE_SYNC);
	int rc = t->producer.cancel(t->producer.ud, h, t->obj.id, reason, len, e);

	h->phase = before;
	if (rc >= 0)
		return 0;
	if (told)
		dispatch_withdraw(h, told);
	return ERRAND_ECALLBACK;
}

/* Who asked for the end needs no notice; if that was an operator, the owner does (D13). */
int task_kill(errand_host *h, const struct agent *caller, struct task *t,
	      const char *reason, size_t len, bool *ret_requested, errand_error **ret_err)
{
	bool tells = !is_onlooker(caller);
	errand_error *e;

	if (status_is_terminal(t->status)) {
		if (tells)
			task_report(h, t);
		*ret_requested = false;
		return 0;
	}
	e = error_lend(&h->mem);
	if (task_cancel(h, t, reason, len, e) != 0) {
		if (ret_err)
			*ret_err = e;
		else
			errand_error_free(e);
		return ERRAND_ECALLBACK;
	}
	errand_error_free(e);
	t->status = ERRAND_STOPPING;
	t->reported = t->reported || tells;
	journal_task(h, t);
	*ret_requested = true;
	return 0;
}

int errand_kill(errand_host *h, const char *id, size_t len, errand_agent caller,
		const char *reason, size_t reason_len, int *ret_requested,
		errand_error **ret_err)
{
	const struct agent *who;
	struct str clean;
	struct task *t;
	bool requested = false;
	int rc = may_change(h, ret_err);

	if (rc == 0 && !id)
		rc = error_make(ret_err, &h->mem, ERRAND_EARG, "no id");
	if (rc == 0)
		rc = caller_get(h, caller, &who, ret_err);
	if (rc != 0)
		return rc;
	t = task_find(h, who, id, str_length(id, len), ret_err);
	if (!t)
		return ERRAND_EREFUSED;
	rc = str_in(&h->mem, reason, reason_len, h->max.args, &clean);
	if (rc != 0)
		return error_of_text(ret_err, &h->mem, rc, "reason", h->max.args);
	rc = task_kill(h, who, t, clean.ptr, clean.len, &requested, ret_err);
	str_free(&h->mem, &clean);
	if (rc == 0 && ret_requested)
		*ret_requested = requested;
	return rc;
}

/* ---- the end of a record ---- */

static void told_remove(struct task *t)
{
	if (list_is_empty(&t->in_told))
		return;
	list_del(&t->in_told);
	t->owner->n_told--;
}

void task_free(errand_host *h, struct task *t)
{
	while (!list_is_empty(&t->waiters))
		waiter_free(h, list_entry(t->waiters.next, struct waiter, in_task));
	while (!list_is_empty(&t->holds))
		hold_free(h, list_entry(t->holds.next, struct hold, in_thing));
	journal_of_task(h, t, "drop");
	map_del(&t->kind->tasks, t->ordinal);
	list_del(&t->in_session);
	list_del(&t->in_owner);
	told_remove(t);
	object_del(h, &t->obj);
	h->tasks--;
	str_free(&h->mem, &t->label);
	str_free(&h->mem, &t->detail);
	str_free(&h->mem, &t->output);
	destroy_ud(h, t->producer.destroy, t->producer.ud);
	mem_free(&h->mem, t);
}

static bool is_told(const struct task *t)
{
	return status_is_terminal(t->status) && (t->reported || t->notice_read);
}

void task_told(errand_host *h, struct task *t)
{
	struct agent *a = t->owner;

	if (!a || h->keep == 0 || !is_told(t) || !list_is_empty(&t->in_told))
		return;
	list_add(&a->told, &t->in_told);
	if (++a->n_told > h->keep && list_is_empty(&a->trim.node))
		event_queue(h, &a->trim);
}

/* One that a lease holds stays this time; a later one's report comes by again. */
void agent_trim(errand_host *h, struct agent *a)
{
	bool is_any = false;

	list_each(node, &a->told)
	{
		struct task *t = list_entry(node, struct task, in_told);

		if (a->n_told <= h->keep)
			break;
		if (!list_is_empty(&t->holds))
			continue;
		task_free(h, t);
		is_any = true;
	}
	if (is_any)
		task_changed(h, a);
}

int errand_task_drop(errand_host *h, errand_task task, errand_error **ret_err)
{
	struct task *t;
	struct agent *owner;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	t = object_get(h, task, OBJ_TASK);
	if (!t)
		return error_make(ret_err, &h->mem, ERRAND_EGONE, "no such task");
	if (!status_is_terminal(t->status))
		return error_make(ret_err, &h->mem, ERRAND_ESTATE, "the task is live");
	if (!is_told(t))
		return error_make(ret_err, &h->mem, ERRAND_ESTATE,
				  "the task's end is not yet reported");
	if (!list_is_empty(&t->holds))
		return error_make(ret_err, &h->mem, ERRAND_ESTATE,
				  "a lease holds the task's output");
	owner = t->owner;
	task_free(h, t);
	task_changed(h, owner);
	return 0;
}
