/* SPDX-License-Identifier: MIT */
/*
 * read.c - reading a task (spec 1.5), on a lease (D6).
 *
 * The cursor of a stream moves with the read, so that a second reader starts behind the
 * first one's range. A return moves it back to where that range began. An operator looks at
 * what is unread, and leaves it so (D13).
 */
#include "base/err.h"
#include "base/json.h"
#include "base/utf8.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/lease.h"
#include "core/task.h"

/* @l NULL: an onlooker. */
static int read_stream(errand_host *h, struct task *t, struct lease *l, struct buf *out,
		       errand_error **ret_err)
{
	struct errand_sink sink;
	errand_error *e = error_lend(&h->mem);
	uint64_t next = t->cursor;
	enum phase before = phase_enter(h, PHASE_PURE);
	int rc;

	buf_init_try(&sink.buf, h->max.result, &h->mem);
	rc = t->producer.read(t->producer.ud, t->obj.id, t->cursor, &sink, &next, e);
	h->phase = before;
	if (rc >= 0 && !buf_error(&sink.buf)) {
		errand_error_free(e);
		*out = sink.buf;
		if (l && next > t->cursor) {
			lease_hold_bytes(h, l, t, t->cursor);
			t->cursor = next;
		}
		return 0;
	}
	buf_release(&sink.buf);
	if (rc >= 0) {
		errand_error_free(e);
		return error_no_memory(ret_err, &h->mem);
	}
	if (ret_err)
		*ret_err = e;
	else
		errand_error_free(e);
	return ERRAND_ECALLBACK;
}

static int read_final(errand_host *h, const struct task *t, struct buf *out,
		      errand_error **ret_err)
{
	buf_init_try(out, h->max.result, &h->mem);
	if (buf_add(out, t->output.ptr, t->output.len) == 0)
		return 0;
	buf_release(out);
	return error_no_memory(ret_err, &h->mem);
}

int task_read(errand_host *h, const struct agent *caller, struct task *t, struct lease *l,
	      struct buf *ret_text, errand_error **ret_err)
{
	bool counts = !is_onlooker(caller);
	int rc = t->producer.read ? read_stream(h, t, counts ? l : NULL, ret_text, ret_err)
				  : read_final(h, t, ret_text, ret_err);

	if (rc == 0 && counts && status_is_terminal(t->status))
		lease_hold_end(h, l, t);
	return rc;
}

static int read_json(errand_host *h, const struct agent *caller, struct task *t,
		     struct lease *l, errand_text **ret, errand_error **ret_err)
{
	struct buf text, json;
	int rc = task_read(h, caller, t, l, &text, ret_err);

	if (rc != 0)
		return rc;
	buf_init_try(&json, h->max.json, &h->mem);
	(void)buf_addc(&json, '{');
	(void)js_put_member(&json, "text", buf_text(&text), text.len);
	(void)js_put_key(&json, "task");
	task_put_snapshot(&json, t);
	(void)buf_addc(&json, '}');
	buf_release(&text);
	return text_take(&json, ret, ret_err);
}

int errand_read(errand_host *h, const char *id, size_t len, errand_agent caller,
		errand_lease *ret_lease, errand_text **ret_json, errand_error **ret_err)
{
	const struct agent *who;
	struct lease *l;
	struct task *t;
	int rc = may_change(h, ret_err);

	if (rc != 0)
		return rc;
	if (!id || !ret_lease || !ret_json)
		return error_make(ret_err, &h->mem, ERRAND_EARG,
				  "no id, or nowhere to answer");
	rc = caller_get(h, caller, &who, ret_err);
	if (rc != 0)
		return rc;
	t = task_find(h, who, id, str_length(id, len), ret_err);
	if (!t)
		return ERRAND_EREFUSED;
	l = lease_new(h);
	rc = read_json(h, who, t, l, ret_json, ret_err);
	if (rc == 0 && !lease_is_empty(l)) {
		*ret_lease = lease_hand_out(h, l);
		return 0;
	}
	lease_return(h, l);
	if (rc == 0)
		*ret_lease = 0;
	return rc;
}

int errand_cursor(const errand_host *h, errand_task task, uint64_t *ret)
{
	const struct task *t = h ? object_get(h, task, OBJ_TASK) : NULL;

	if (!h || !ret)
		return ERRAND_EARG;
	if (!t)
		return ERRAND_EGONE;
	*ret = t->cursor;
	return 0;
}
