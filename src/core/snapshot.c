/* SPDX-License-Identifier: MIT */
/* snapshot.c - a task as JSON, and the queries that show it (spec 1.3, 1.4, 1.5, 1.9). */
#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/oneline.h"
#include "core/task.h"

const char *status_word(int status)
{
	static const char *const words[] = {
		[ERRAND_RUNNING] = "running",     [ERRAND_STOPPING] = "stopping",
		[ERRAND_COMPLETED] = "completed", [ERRAND_KILLED] = "killed",
		[ERRAND_FAILED] = "failed",
	};

	return words[status];
}

void task_line_of(const struct task *t, const struct buf *id, struct task_line *ret)
{
	*ret = (struct task_line){
		.id = buf_text(id),
		.id_len = id->len,
		.kind = t->kind->text.ptr,
		.kind_len = t->kind->text.len,
		.label = t->label.ptr,
		.label_len = t->label.len,
		.status = status_word(t->status),
		.detail = t->detail.ptr,
		.detail_len = t->detail.len,
	};
}

static void put_id_member(struct buf *out, const struct task *t)
{
	struct buf id;

	buf_init_mem(&id, MAX_JSON_TEXT, out->mem);
	task_put_id(&id, t);
	(void)js_put_member(out, "id", buf_text(&id), id.len);
	buf_release(&id);
}

static void put_int_member(struct buf *out, const char *key, int64_t v)
{
	(void)js_put_key(out, key);
	(void)js_put_int(out, v);
}

static void put_registry_members(struct buf *out, const struct task *t)
{
	if (t->limit)
		put_int_member(out, "outputLimitBytes", t->limit);
	if (t->owner)
		(void)js_put_member(out, "ownerSession", t->owner->session->text.ptr,
				    t->owner->session->text.len);
}

static void put_task(struct buf *out, const struct task *t, bool is_public)
{
	const char *word = status_word(t->status);

	(void)buf_addc(out, '{');
	put_id_member(out, t);
	(void)js_put_member(out, "kind", t->kind->text.ptr, t->kind->text.len);
	(void)js_put_member(out, "label", t->label.ptr, t->label.len);
	if (!is_public)
		put_registry_members(out, t);
	(void)js_put_member(out, "status", word, strlen(word));
	if (t->detail.ptr)
		(void)js_put_member(out, "detail", t->detail.ptr, t->detail.len);
	put_int_member(out, "startedAt", t->started_ms);
	if (status_is_terminal(t->status))
		put_int_member(out, "finishedAt", t->finished_ms);
	if (!is_public)
		(void)buf_addf(out, ",\"reported\":%s",
			       task_is_reported(t) ? "true" : "false");
	(void)buf_addc(out, '}');
}

void task_put_snapshot(struct buf *out, const struct task *t)
{
	put_task(out, t, false);
}

void task_put_public(struct buf *out, const struct task *t)
{
	put_task(out, t, true);
}

/* The tasks from @at on that were registered before @id; returns where it stopped. */
static struct list *each_before(struct list *at, const struct list *head, uint64_t id,
				void (*fn)(void *ud, const struct task *t), void *ud)
{
	while (at != head) {
		const struct task *t = list_entry(at, struct task, in_session);

		if (t->obj.id > id)
			break;
		at = at->next;
		fn(ud, t);
	}
	return at;
}

/* A record that is about to start is no task yet. */
static void each_of_all(const errand_host *h, const struct agent *caller,
			void (*fn)(void *ud, const struct task *t), void *ud)
{
	list_each(node, &h->by_type[OBJ_TASK])
	{
		const struct task *t = list_entry(node, struct task, obj.node);

		if (t->kind && task_is_seen(h, caller, t))
			fn(ud, t);
	}
}

void task_each(const errand_host *h, const struct agent *caller,
	       void (*fn)(void *ud, const struct task *t), void *ud)
{
	const struct list *head = caller ? &caller->session->tasks : NULL;
	struct list *own = caller ? caller->session->tasks.next : NULL;

	if (is_onlooker(caller)) {
		each_of_all(h, caller, fn, ud);
		return;
	}
	list_each(node, &h->unowned)
	{
		const struct task *t = list_entry(node, struct task, in_session);

		if (h->unowned_access != UNOWNED_OPEN)
			break;
		own = each_before(own, head, t->obj.id, fn, ud);
		fn(ud, t);
	}
	(void)each_before(own, head, UINT64_MAX, fn, ud);
}

static void add_to_list(void *ud, const struct task *t)
{
	struct buf *out = ud;

	if (out->len > 1)
		(void)buf_addc(out, ',');
	task_put_snapshot(out, t);
}

int errand_list(const errand_host *h, errand_agent caller, errand_text **ret_json,
		errand_error **ret_err)
{
	const struct agent *who;
	struct buf b;

	if (!h || !ret_json)
		return error_make(ret_err, NULL, ERRAND_EARG,
				  "no host, or nowhere to answer");
	if (caller_get(h, caller, &who, ret_err) != 0)
		return ERRAND_EGONE;
	buf_init_try(&b, SIZE_MAX / 4, &h->mem);
	(void)buf_addc(&b, '[');
	task_each(h, who, add_to_list, &b);
	(void)buf_addc(&b, ']');
	return text_take(&b, ret_json, ret_err);
}

int errand_get(const errand_host *h, const char *id, size_t len, errand_agent caller,
	       errand_text **ret_json, errand_error **ret_err)
{
	const struct agent *who;
	struct task *t;
	struct buf b;

	if (!h || !id || !ret_json)
		return error_make(ret_err, NULL, ERRAND_EARG, "no host, id or answer");
	if (caller_get(h, caller, &who, ret_err) != 0)
		return ERRAND_EGONE;
	t = task_find(h, who, id, str_length(id, len), ret_err);
	if (!t)
		return ERRAND_EREFUSED;
	buf_init_try(&b, h->max.json, &h->mem);
	task_put_snapshot(&b, t);
	return text_take(&b, ret_json, ret_err);
}
