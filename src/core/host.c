/* SPDX-License-Identifier: MIT */
/* host.c - the host: made, run, asked for its next deadline, freed. */
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "core/abi.h"
#include "core/agent.h"
#include "core/call.h"
#include "core/config.h"
#include "core/host.h"
#include "core/lease.h"
#include "core/mailbox.h"
#include "core/reg.h"
#include "core/scope.h"
#include "core/signal.h"
#include "core/task.h"

#define DEFAULT_OWNER_LIMIT 10
#define DEFAULT_BUDGET 1000
/* A producer has this long to end what it was told to cancel. */
#define DEFAULT_TEARDOWN_MS 10000

static int read_config(errand_host *h, errand_str text, errand_error **ret_err)
{
	/* In the order of enum unowned_access. */
	static const char *const access[] = {"open", "operator", "none", NULL};
	struct settings config;
	int64_t limit = DEFAULT_OWNER_LIMIT, keep = 0;
	int rc = config_parse(&h->mem, text.ptr, str_length(text.ptr, text.len), &config,
			      ret_err);

	if (rc != 0)
		return rc;
	rc = config_count(&h->mem, &config, "maxConcurrentTasksPerOwner", &limit, ret_err);
	if (rc == 0)
		rc = config_count(&h->mem, &config, "maxFinishedTasksPerOwner", &keep,
				  ret_err);
	if (rc == 0)
		rc = config_word(&h->mem, &config, "unownedAccess", access,
				 &h->unowned_access, ret_err);
	if (rc == 0)
		rc = config_count(&h->mem, &config, "teardownTimeoutMs", &h->teardown_ms,
				  ret_err);
	h->owner_limit = limit;
	h->keep = keep;
	js_free(config.tree);
	return rc;
}

static bool has_whole_allocator(const struct errand_host_options *o)
{
	int given = (o->alloc != NULL) + (o->resize != NULL) + (o->dealloc != NULL);

	return given == 0 || given == 3;
}

static int check_options(const struct errand_host_options *o, errand_host **ret,
			 errand_error **ret_err)
{
	if (o->abi != ERRAND_ABI)
		return error_make(ret_err, NULL, ERRAND_EARG,
				  "host options: abi %u, this library has %u", o->abi,
				  ERRAND_ABI);
	if (!has_whole_allocator(o))
		return error_make(ret_err, NULL, ERRAND_EARG,
				  "host options: an allocator is three functions or none");
	if (!ret)
		return error_make(ret_err, NULL, ERRAND_EARG, "nowhere to put the host");
	return 0;
}

static errand_host *host_alloc(const struct errand_host_options *o)
{
	struct mem mem = {o->alloc, o->resize, o->dealloc, o->mem_ud, o->oom};
	errand_host *h = mem_new(&mem, sizeof(*h));

	h->mem = mem;
	map_init(&h->objects, &h->mem);
	for (int i = 0; i < N_OBJECT_TYPES; i++)
		list_init(&h->by_type[i]);
	list_init(&h->queue);
	list_init(&h->mailboxes);
	list_init(&h->unowned);
	list_init(&h->kind_list);
	names_init(&h->sessions, &h->mem);
	names_init(&h->kinds, &h->mem);
	layer_init(h, &h->global);
	h->teardown_ms = DEFAULT_TEARDOWN_MS;
	service_init(h);
	h->warn = o->warn;
	h->message_id = o->message_id;
	h->journal = o->journal;
	h->ud = o->ud;
	h->destroy = o->destroy;
	return h;
}

int errand_host_new(const struct errand_host_options *o, errand_host **ret,
		    errand_error **ret_err)
{
	struct errand_host_options own;
	errand_host *h;
	int rc;

	if (!o)
		return error_make(ret_err, NULL, ERRAND_EARG, "no host options");
	rc = abi_take(NULL, ABI_HOST_OPTIONS, &own, o, ret_err);
	if (rc == 0)
		rc = check_options(&own, ret, ret_err);
	if (rc != 0) {
		destroy_ud(NULL, own.destroy, own.ud);
		return rc;
	}
	h = host_alloc(&own);
	rc = maxima_read(&h->mem, own.limits_json, &h->max, ret_err);
	if (rc == 0)
		rc = read_config(h, own.config_json, ret_err);
	if (rc != 0) {
		errand_host_free(h);
		return rc;
	}
	*ret = h;
	return 0;
}

static void free_objects(errand_host *h)
{
	void *o;

	while ((o = object_first(h, OBJ_CALL)))
		call_free(h, o);
	while ((o = object_first(h, OBJ_LEASE)))
		lease_drop(h, o);
	while ((o = object_first(h, OBJ_TASK)))
		task_free(h, o);
	while ((o = object_first(h, OBJ_AGENT)))
		agent_free(h, o);
	while ((o = object_first(h, OBJ_REG)))
		reg_undo(h, o);
	while ((o = object_first(h, OBJ_SCOPE)))
		scope_free(h, o);
	while ((o = object_first(h, OBJ_SIGNAL)))
		signal_free(h, o);
}

static void free_kinds(errand_host *h)
{
	list_each(node, &h->kind_list)
	{
		struct kind *k = list_entry(node, struct kind, in_host);

		map_release(&k->tasks);
		mem_free(&h->mem, k->text.ptr);
		mem_free(&h->mem, k);
	}
}

void errand_host_free(errand_host *h)
{
	struct mem mem;

	if (!h || h->phase != PHASE_TOP)
		return;
	h->phase = PHASE_PURE;
	h->journal = NULL; /* nothing of this has happened */
	mailboxes_close(h);
	while (!list_is_empty(&h->queue)) {
		struct event *ev = list_entry(h->queue.next, struct event, node);

		list_del(&ev->node);
		ev->drop(h, ev);
	}
	free_objects(h);
	destroy_ud(h, h->service.ending.destroy, h->service.ending.ud);
	free_kinds(h);
	names_release(&h->kinds);
	names_release(&h->sessions);
	names_release(&h->global.tools);
	map_release(&h->objects);
	mem_free(&h->mem, h->timers.heap);
	if (h->destroy)
		h->destroy(h->ud);
	mem = h->mem;
	mem_free(&mem, h);
}

/* ---- the loop ---- */

static void fire_next(errand_host *h)
{
	struct event *ev = list_entry(h->queue.next, struct event, node);

	list_del(&ev->node);
	ev->fire(h, ev);
}

/* Deadlines wait for what was queued before them (a settlement and a deadline of the same
 * moment: spec 14.2), but not for more than one budget of it. */
static void fire_timers(errand_host *h)
{
	struct timer *t;

	while ((t = timer_first(h)) && t->due <= h->mono_ms) {
		timer_clear(h, t);
		t->fire(h, t);
	}
}

int errand_run(errand_host *h, int64_t mono_ms, int64_t wall_ms, uint32_t budget)
{
	if (!h)
		return ERRAND_EARG;
	if (h->phase != PHASE_TOP)
		return ERRAND_EREENTER;
	h->phase = PHASE_RUN;
	if (mono_ms > h->mono_ms || !h->has_run)
		h->mono_ms = mono_ms;
	h->wall_ms = wall_ms;
	h->has_run = true;
	if (budget == 0)
		budget = DEFAULT_BUDGET;
	mailboxes_collect(h);
	do {
		for (; budget > 0 && !list_is_empty(&h->queue); budget--)
			fire_next(h);
		fire_timers(h);
	} while (budget > 0 && !list_is_empty(&h->queue));
	h->phase = PHASE_TOP;
	return !list_is_empty(&h->queue);
}

int64_t errand_next_deadline(const errand_host *h)
{
	const struct timer *t;

	if (!h)
		return ERRAND_NEVER;
	if (!list_is_empty(&h->queue) || mailboxes_have(h))
		return INT64_MIN;
	t = timer_first(h);
	return t ? t->due : ERRAND_NEVER;
}

/* ---- phases ---- */

int may_change(const errand_host *h, errand_error **ret_err)
{
	if (!h)
		return error_make(ret_err, NULL, ERRAND_EARG, "no host");
	if (h->phase == PHASE_TOP || h->phase == PHASE_RUN)
		return 0;
	return error_make(ret_err, &h->mem, ERRAND_EREENTER, "not from this callback");
}

int may_queue(const errand_host *h)
{
	if (!h)
		return ERRAND_EARG;
	return h->phase == PHASE_PURE ? ERRAND_EREENTER : 0;
}

enum phase phase_enter(errand_host *h, enum phase p)
{
	enum phase before = h->phase;

	h->phase = p;
	return before;
}

void destroy_ud(errand_host *h, errand_destroy_fn destroy, void *ud)
{
	enum phase before;

	if (!destroy)
		return;
	if (!h) {
		destroy(ud);
		return;
	}
	before = phase_enter(h, PHASE_PURE);
	destroy(ud);
	h->phase = before;
}

void host_warn(errand_host *h, struct buf *text)
{
	enum phase before = phase_enter(h, PHASE_PURE);

	if (h->warn)
		h->warn(h->ud, buf_text(text), text->len);
	h->phase = before;
	buf_release(text);
}
