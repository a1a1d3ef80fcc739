/* SPDX-License-Identifier: MIT */
/* start.c - a task begins: what is checked, in which order, and what is undone (spec 1.1). */
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/abi.h"
#include "core/agent.h"
#include "core/config.h"
#include "core/host.h"
#include "core/journal.h"
#include "core/scope.h"
#include "core/task.h"

/* A start under way: what was checked, until the record takes it. */
struct start {
	const struct errand_task_spec *spec;
	struct agent *owner;
	struct str kind, label;
	int64_t limit;
};

static int check_service(errand_host *h, struct start *s, errand_error **ret_err)
{
	(void)s;
	if (!h->service.is_disposed)
		return 0;
	return error_make(ret_err, &h->mem, ERRAND_EREFUSED,
			  "background tasks unavailable: no task registry");
}

static int check_served(errand_host *h, struct start *s, errand_error **ret_err)
{
	if (is_served(h, s->owner))
		return 0;
	return error_make(ret_err, &h->mem, ERRAND_EREFUSED,
			  "background tasks unavailable: no control surface serves this "
			  "agent (mount tool-tasks in its composition)");
}

static int take_word(errand_host *h, const char *what, errand_str in, struct str *ret,
		     errand_error **ret_err)
{
	int rc = str_in(&h->mem, in.ptr, in.len, h->max.label, ret);

	if (rc == ERRAND_ELIMIT)
		return error_make(ret_err, &h->mem, rc, "task %s is over %zu bytes", what,
				  h->max.label);
	if (rc != 0)
		return error_no_memory(ret_err, &h->mem);
	if (ret->len == 0)
		return error_make(ret_err, &h->mem, ERRAND_EREFUSED,
				  "invalid task %s: expected a non-empty string", what);
	return 0;
}

static int check_kind(errand_host *h, struct start *s, errand_error **ret_err)
{
	return take_word(h, "kind", s->spec->kind, &s->kind, ret_err);
}

static int check_label(errand_host *h, struct start *s, errand_error **ret_err)
{
	return take_word(h, "label", s->spec->label, &s->label, ret_err);
}

static int refuse_limit(errand_host *h, const struct js *got, errand_error **ret_err)
{
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT, &h->mem);
	(void)buf_adds(&b,
		       "invalid outputLimitBytes: expected a positive safe integer, got ");
	(void)js_put_value(&b, got);
	return error_take(ret_err, ERRAND_EREFUSED, &b);
}

static int check_limit(errand_host *h, struct start *s, errand_error **ret_err)
{
	errand_str text = s->spec->limit_json;
	struct err err = {0};
	struct js *j = NULL;
	double v;
	int rc;

	if (!text.ptr)
		return 0;
	rc = js_parse(text.ptr, str_length(text.ptr, text.len), &j, &err);
	if (rc == -ERR_LOSSY) {
		js_free(j);
		return refuse_limit(h, NULL, ret_err); /* prints null, as for Infinity */
	}
	if (rc != 0)
		return error_make(ret_err, &h->mem, rc_of_parse(rc), "outputLimitBytes: %s",
				  err.msg);
	v = js_number(j);
	if (config_is_count(v))
		s->limit = (int64_t)v;
	else
		rc = refuse_limit(h, j, ret_err);
	js_free(j);
	return rc;
}

static int check_owner(errand_host *h, struct start *s, errand_error **ret_err)
{
	const struct agent *a = s->owner;

	if (!a)
		return 0;
	if (a->is_operator)
		return error_make(ret_err, &h->mem, ERRAND_EREFUSED,
				  "an operator owns no tasks");
	if (a->session->registered != a)
		return error_about(
			ret_err, &h->mem, ERRAND_EREFUSED, "agent \"", a->session->text.ptr,
			a->session->text.len,
			"\" is not the registered agent instance (background task "
			"owner must be live)");
	if (a->disposing)
		return error_make(ret_err, &h->mem, ERRAND_EREFUSED,
				  "cannot create effect on inactive context");
	return 0;
}

static int check_admission(errand_host *h, struct start *s, errand_error **ret_err)
{
	size_t live = s->owner ? s->owner->live : h->unowned_live;

	if (h->owner_limit > 0 && live >= (uint64_t)h->owner_limit)
		return error_make(
			ret_err, &h->mem, ERRAND_EREFUSED,
			"background task limit reached for this owner (limit: %lld); "
			"use task_kill to stop an unneeded task, wait for it to "
			"finish, then retry",
			(long long)h->owner_limit);
	if (h->tasks >= h->max.tasks)
		return error_make(ret_err, &h->mem, ERRAND_ELIMIT, "over %zu tasks",
				  h->max.tasks);
	return 0;
}

/* The order is the contract's (spec 1.1.1, 1.10.1). */
static int check_all(errand_host *h, struct start *s, errand_error **ret_err)
{
	static int (*const checks[])(errand_host * h, struct start * s,
				     errand_error * *ret_err) = {
		check_service, check_served, check_kind,      check_label,
		check_limit,   check_owner,  check_admission,
	};

	for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
		int rc = checks[i](h, s, ret_err);

		if (rc != 0)
			return rc;
	}
	return 0;
}

static struct task *record_alloc(errand_host *h, struct agent *owner)
{
	struct task *t = mem_new(&h->mem, sizeof(*t));

	t->owner = owner;
	t->status = ERRAND_RUNNING;
	list_init(&t->in_session);
	list_init(&t->in_owner);
	list_init(&t->in_told);
	list_init(&t->waiters);
	list_init(&t->holds);
	return t;
}

/* A record that has its 64-bit id, for settlements at once, but no place in any list. */
static struct task *record_new(errand_host *h, struct start *s)
{
	struct task *t = record_alloc(h, s->owner);

	t->label = str_take(&s->label);
	t->limit = s->limit;
	t->started_ms = h->wall_ms;
	t->producer = s->spec->producer;
	object_add(h, &t->obj, OBJ_TASK);
	return t;
}

static void record_undo(errand_host *h, struct task *t)
{
	object_del(h, &t->obj);
	str_free(&h->mem, &t->label);
	mem_free(&h->mem, t);
}

static int run_starter(errand_host *h, struct task *t, errand_error **ret_err)
{
	errand_error *e = error_lend(&h->mem);
	enum phase before = phase_enter(h, PHASE_SYNC);
	int rc = t->producer.start(t->producer.ud, h, t->obj.id, e);

	h->phase = before;
	if (rc >= 0) {
		errand_error_free(e);
		return 0;
	}
	if (ret_err)
		*ret_err = e;
	else
		errand_error_free(e);
	return ERRAND_ECALLBACK;
}

static void record_list(errand_host *h, struct task *t, struct kind *k, uint64_t ordinal)
{
	struct agent *a = t->owner;

	t->kind = k;
	t->ordinal = ordinal;
	map_put(&k->tasks, t->ordinal, t);
	list_add(a ? &a->session->tasks : &h->unowned, &t->in_session);
	if (a)
		list_add(&a->tasks, &t->in_owner);
	if (a)
		a->live++;
	else
		h->unowned_live++;
	h->tasks++;
	h->live++;
}

static void record_enter(errand_host *h, struct task *t, struct kind *k)
{
	record_list(h, t, k, ++k->counter);
	journal_counter(h, k);
	journal_task(h, t);
	task_changed(h, t->owner);
}

struct task *task_restore(errand_host *h, uint64_t id, struct kind *k, uint64_t ordinal,
			  struct agent *owner)
{
	struct task *t = record_alloc(h, owner);

	object_add_as(h, &t->obj, OBJ_TASK, id);
	if (k->counter < ordinal)
		k->counter = ordinal;
	record_list(h, t, k, ordinal);
	return t;
}

static int start_checked(errand_host *h, struct start *s, errand_task *ret,
			 errand_text **ret_id_text, errand_error **ret_err)
{
	struct task *t = record_new(h, s);
	struct buf id;
	int rc = run_starter(h, t, ret_err);

	if (rc != 0) {
		record_undo(h, t);
		return rc;
	}
	record_enter(h, t, kind_get(h, &s->kind));
	if (ret)
		*ret = t->obj.id;
	if (!ret_id_text)
		return 0;
	buf_init_mem(&id, h->max.json, &h->mem);
	task_put_id(&id, t);
	*ret_id_text = text_of_buf(&id);
	return 0;
}

static int start(errand_host *h, const struct errand_task_spec *spec, errand_task *ret,
		 errand_text **ret_id_text, errand_error **ret_err)
{
	struct start s = {.spec = spec};
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (!spec->producer.start || !spec->producer.cancel)
		return error_make(ret_err, &h->mem, ERRAND_EARG,
				  "a producer needs start() and cancel()");
	if (spec->owner != 0 && !(s.owner = agent_get(h, spec->owner, ret_err)))
		return ERRAND_EGONE;
	rc = check_all(h, &s, ret_err);
	if (rc == 0)
		rc = start_checked(h, &s, ret, ret_id_text, ret_err);
	str_free(&h->mem, &s.kind);
	str_free(&h->mem, &s.label);
	return rc;
}

int errand_task_start(errand_host *h, const struct errand_task_spec *spec, errand_task *ret,
		      errand_text **ret_id_text, errand_error **ret_err)
{
	struct errand_task_spec own;
	int rc;

	if (!h || !spec)
		return error_make(ret_err, NULL, ERRAND_EARG, "no host or no task spec");
	rc = abi_take_spec(&h->mem, &own, spec, ret_err);
	if (rc == 0)
		rc = start(h, &own, ret, ret_id_text, ret_err);
	if (rc != 0)
		destroy_ud(h, own.producer.destroy, own.producer.ud);
	return rc;
}
