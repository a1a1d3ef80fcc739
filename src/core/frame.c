/* SPDX-License-Identifier: MIT */
/*
 * frame.c - the chain of one stage: entered one by one, answered the other way (spec 9.2).
 *
 *     enter(1) -> next        back(1) -> answer --> done
 *         enter(2) -> next        ^
 *             end ------ answer --'
 *
 * Each listener that was entered has a frame, which owes one answer. Whatever is said to a
 * frame only queues the call's next step, so nothing recurses; of one call only its innermost
 * frame may speak, so one step at a time is enough. Who is in the chain was fixed when the
 * stage was entered; one that was removed before its turn is skipped.
 */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "core/call.h"
#include "core/decide.h"
#include "core/host.h"
#include "core/lease.h"
#include "core/outcome.h"
#include "core/policy.h"
#include "core/scope.h"

/* ---- who takes part ---- */

static size_t count_policies(const errand_host *h, const struct scope *s, int stage,
			     size_t *ret_layers)
{
	size_t n = 0;

	*ret_layers = 0;
	chain_each(layer, h, s)
	{
		const struct list *all = &layer->policies[stage - 1];

		*ret_layers += !list_is_empty(all);
		list_each(node, all) n++;
	}
	return n;
}

bool has_policies(const errand_host *h, const struct call *c, int stage)
{
	chain_each(layer, h, scope_of(c->agent))
	{
		if (!list_is_empty(&layer->policies[stage - 1]))
			return true;
	}
	return false;
}

static int by_rank(const void *a, const void *b)
{
	const struct frame *x = a, *y = b;

	return x->rank < y->rank ? -1 : x->rank > y->rank;
}

/* From the near end of the scopes: so guards stand as they are to, global ones first, then far
 * to near (spec 9.4). All others go by rank. */
static struct chain *chain_new(errand_host *h, const struct call *c, int stage)
{
	const struct scope *s = scope_of(c->agent);
	size_t layers, n = count_policies(h, s, stage, &layers), at = n;
	struct chain *chain = mem_new(&h->mem, sizeof(*chain) + n * sizeof(struct frame));

	chain->count = n;
	chain_each(layer, h, s)
	{
		const struct list *all = &layer->policies[stage - 1];

		for (struct list *node = all->prev; node != all; node = node->prev) {
			const struct policy *p = list_entry(node, struct policy, node);

			chain->frames[--at].reg = p->number;
			chain->frames[at].rank = p->rank;
		}
	}
	if (layers > 1 && stage != ERRAND_STAGE_GUARD)
		qsort(chain->frames, n, sizeof(chain->frames[0]), by_rank);
	return chain;
}

/* ---- frames ---- */

void frame_open(errand_host *h, struct frame *f, struct call *c)
{
	f->call = c;
	f->state = FRAME_OPEN;
	c->since_ms = h->mono_ms;
	object_add(h, &f->obj, OBJ_FRAME);
}

static void frame_close(errand_host *h, struct frame *f)
{
	object_del(h, &f->obj);
	if (f->policy)
		policy_release(h, f->policy);
	f->policy = NULL;
}

void chain_free(errand_host *h, struct call *c)
{
	for (size_t i = 0; c->chain && i < c->chain->entered; i++)
		frame_close(h, &c->chain->frames[i]);
	mem_free(&h->mem, c->chain);
	c->chain = NULL;
}

static void call_out(errand_host *h, const struct frame *f, errand_enter_fn fn)
{
	const struct call *c = f->call;
	struct errand_frame_view view = {
		.size = sizeof(view),
		.stage = c->stage,
		.call = c->obj.id,
		.agent = c->agent ? c->agent->number : 0,
		.signal = c->signal.obj.id,
		.tool = str_view(&c->tool_name),
		.args_json = str_view(&c->args),
		.answer_json = str_view(&c->answer),
		.error = c->thrown,
	};

	fn(f->policy->ud, h, f->obj.id, &view);
}

/* ---- in ---- */

static void enter_next(errand_host *h, struct call *c)
{
	struct chain *chain = c->chain;

	while (chain->entered < chain->count) {
		struct frame *f = &chain->frames[chain->entered++];
		struct policy *p = policy_get(h, f->reg);

		if (p && p->builtin)
			p->builtin(h, c, p->number);
		if (!p || p->builtin)
			continue;
		p->busy++;
		f->policy = p;
		frame_open(h, f, c);
		call_out(h, f, p->enter);
		return;
	}
	chain->end(h, c);
}

void chain_run(errand_host *h, struct call *c, int stage,
	       void (*end)(errand_host *h, struct call *c),
	       void (*done)(errand_host *h, struct call *c))
{
	chain_free(h, c);
	c->stage = stage;
	c->since_ms = h->mono_ms;
	c->chain = chain_new(h, c, stage);
	c->chain->end = end;
	c->chain->done = done;
	enter_next(h, c);
}

/* ---- out ---- */

static const char wrapper[] = "{\"value\":";

void chain_unwrap(errand_host *h, struct call *c)
{
	size_t before = sizeof(wrapper) - 1;
	struct str raw;

	if (!c->is_wrapped)
		return;
	c->is_wrapped = false;
	c->is_raw = true;
	raw = str_dup(&h->mem, c->answer.ptr + before, c->answer.len - before - 1);
	str_free(&h->mem, &c->answer);
	c->answer = raw;
}

/* What the body said is text only where somebody looks at it. */
static void make_readable(errand_host *h, struct call *c)
{
	struct buf b;

	if (!c->is_raw)
		return;
	c->is_raw = false;
	buf_init_mem(&b, h->max.json * 2, &h->mem);
	if (c->error) {
		outcome_fail(h, c, error_copy(&h->mem, c->error));
		outcome_put(&b, c);
		outcome_forget(h, c);
	} else {
		(void)buf_adds(&b, wrapper);
		(void)buf_add(&b, c->answer.ptr, c->answer.len);
		(void)buf_addc(&b, '}');
		c->is_wrapped = true;
	}
	str_free(&h->mem, &c->answer);
	c->answer = str_of_buf(&b);
}

/* From the innermost frame outwards, up to one that wants to see what came. */
void chain_unwind(errand_host *h, struct call *c)
{
	struct chain *chain = c->chain;

	while (chain->entered > 0) {
		struct frame *f = &chain->frames[chain->entered - 1];

		if (f->policy && f->policy->back && f->state == FRAME_NEXT) {
			make_readable(h, c);
			f->state = FRAME_BACK;
			c->since_ms = h->mono_ms;
			call_out(h, f, f->policy->back);
			return;
		}
		frame_close(h, f);
		chain->entered--;
	}
	chain->done(h, c);
}

/* A guard that has no reason lets the next one speak (spec 9.4). */
static void after_answer(errand_host *h, struct call *c)
{
	struct str reason = {NULL, 0};

	if (c->stage == ERRAND_STAGE_GUARD && !c->thrown &&
	    decide_guard(h, c, &reason) == VERDICT_ALLOW)
		enter_next(h, c);
	else
		chain_unwind(h, c);
	str_free(&h->mem, &reason);
}

/* ---- what is said to a frame ---- */

/* 0, and the frame may speak. */
static int find_open(const errand_host *h, errand_frame id, struct frame **ret)
{
	struct frame *f;
	int rc = may_queue(h);

	if (rc != 0)
		return rc;
	f = object_get(h, id, OBJ_FRAME);
	if (!f)
		return ERRAND_EGONE;
	if (f->state == FRAME_NEXT)
		return ERRAND_ESTATE;
	*ret = f;
	return 0;
}

static void forget_answer(errand_host *h, struct call *c)
{
	str_free(&h->mem, &c->answer);
	errand_error_free(c->thrown);
	c->thrown = NULL;
	c->is_wrapped = false;
}

static void say(errand_host *h, struct frame *f)
{
	struct call *c = f->call;

	frame_close(h, f);
	call_queue(h, c, after_answer);
}

/* What back() was shown, byte for byte: it need not be copied. */
static bool is_passed_on(const struct frame *f, const char *json, size_t len)
{
	const struct call *c = f->call;

	return f->state == FRAME_BACK && !c->thrown && c->answer.ptr &&
	       c->answer.len == len && memcmp(c->answer.ptr, json, len) == 0;
}

int errand_answer(errand_host *h, errand_frame id, const char *json, size_t len)
{
	struct frame *f = NULL;
	struct call *c;
	struct buf copy;
	int rc = find_open(h, id, &f);

	if (rc != 0)
		return rc;
	if (!json)
		return ERRAND_EARG;
	c = f->call;
	if (is_passed_on(f, json, str_length(json, len))) {
		say(h, f);
		return 0;
	}
	buf_init_try(&copy, h->max.json, &h->mem);
	rc = rc_of_base(put_json(&copy, json, str_length(json, len)));
	if (rc != 0) {
		buf_release(&copy);
		return rc;
	}
	if (f == &c->frame) {
		call_answer(h, c, &copy);
		return 0;
	}
	forget_answer(h, c);
	c->answer = str_of_buf(&copy);
	say(h, f);
	return 0;
}

int errand_fail(errand_host *h, errand_frame id, const errand_error *e)
{
	struct frame *f = NULL;
	errand_error *copy;
	struct call *c;
	int rc = find_open(h, id, &f);

	if (rc != 0)
		return rc;
	c = f->call;
	copy = error_copy(&h->mem, e);
	if (f == &c->frame) {
		call_fail(h, c, copy);
		return 0;
	}
	forget_answer(h, c);
	c->thrown = copy;
	say(h, f);
	return 0;
}

int errand_next(errand_host *h, errand_frame id)
{
	struct frame *f = NULL;
	int rc = find_open(h, id, &f);

	if (rc != 0)
		return rc;
	if (f->state != FRAME_OPEN || f == &f->call->frame)
		return ERRAND_ESTATE;
	f->state = FRAME_NEXT;
	call_queue(h, f->call, enter_next);
	return 0;
}

int errand_frame_lease(errand_host *h, errand_frame id, errand_lease lease)
{
	struct call *c;
	struct lease *l;
	int rc = may_queue(h);

	if (rc != 0)
		return rc;
	c = call_of_frame(h, id);
	l = object_get(h, lease, OBJ_LEASE);
	if (!c || !l)
		return ERRAND_EGONE;
	if (l != c->lease)
		lease_merge(h, call_lease(h, c), l);
	return 0;
}

/* ---- where a call is ---- */

/* The listener whose turn it is; 0: none is. */
static errand_reg speaker(const struct call *c)
{
	const struct frame *f;

	if (!c->chain || c->chain->entered == 0)
		return 0;
	f = &c->chain->frames[c->chain->entered - 1];
	return f->policy && f->state != FRAME_NEXT ? f->reg : 0;
}

int errand_call_state(const errand_host *h, errand_call call, errand_text **ret_json)
{
	static const char *const words[] = {"queued", "pre",  "approval", "guard",
					    "around", "body", "post"};
	const struct call *c;
	struct buf b;

	if (!h || !ret_json)
		return ERRAND_EARG;
	c = object_get(h, call, OBJ_CALL);
	if (!c)
		return ERRAND_EGONE;
	buf_init_try(&b, MAX_ERROR_TEXT, &h->mem);
	(void)buf_addf(&b, "{\"stage\":\"%s\"", words[c->stage]);
	if (speaker(c)) {
		(void)js_put_key(&b, "listener");
		(void)js_put_int(&b, (int64_t)speaker(c));
	}
	(void)js_put_key(&b, "since");
	(void)js_put_int(&b, c->since_ms);
	(void)buf_addf(&b, ",\"aborted\":%s}", c->signal.raised ? "true" : "false");
	return text_take(&b, ret_json, NULL);
}
