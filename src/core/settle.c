/* SPDX-License-Identifier: MIT */
/* settle.c - the ends that producers report: queued, the first that is processed wins. */
#include "base/limits.h"
#include "base/utf8.h"
#include "core/host.h"
#include "core/task.h"

struct settlement {
	struct event ev;
	errand_task task;
	int status;
	struct str detail, output;
	errand_error *broken; /* the producer broke its promise */
};

static void settlement_drop(errand_host *h, struct event *ev)
{
	struct settlement *s = list_entry(ev, struct settlement, ev);

	str_free(&h->mem, &s->detail);
	str_free(&h->mem, &s->output);
	errand_error_free(s->broken);
	mem_free(&h->mem, s);
}

static void warn_broken(errand_host *h, const struct task *t, const errand_error *e)
{
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT * 2, &h->mem);
	(void)buf_adds(&b, "tasks: task ");
	task_put_id(&b, t);
	(void)buf_adds(&b, " 'done' rejected (producer contract violation): ");
	error_put_string(&b, e);
	host_warn(h, &b);
}

static void settlement_fire(errand_host *h, struct event *ev)
{
	struct settlement *s = list_entry(ev, struct settlement, ev);
	struct task *t = object_get(h, s->task, OBJ_TASK);

	if (t && !status_is_terminal(t->status)) {
		if (s->broken)
			warn_broken(h, t, s->broken);
		if (t->producer
			    .read) /* what a stream had to say, it has said (spec 1.5.2) */
			str_free(&h->mem, &s->output);
		task_settle(h, t, s->status, &s->detail, &s->output);
	}
	settlement_drop(h, ev);
}

static struct settlement *settlement_new(errand_host *h, errand_task t, int status)
{
	struct settlement *s = mem_new(&h->mem, sizeof(*s));

	s->ev = (struct event){.fire = settlement_fire, .drop = settlement_drop};
	s->task = t;
	s->status = status;
	return s;
}

static int check_live(errand_host *h, errand_task task)
{
	const struct task *t;
	int rc = may_queue(h);

	if (rc != 0)
		return rc;
	t = object_get(h, task, OBJ_TASK);
	return t && !status_is_terminal(t->status) ? 0 : ERRAND_EGONE;
}

/* An end is never refused for its size: what is over is cut. */
static int take_cut(errand_host *h, const char *text, size_t len, size_t max,
		    struct str *ret)
{
	len = str_length(text, len);
	return str_in(&h->mem, text, text ? utf8_head(text, len, max) : 0, max, ret);
}

int errand_settle(errand_host *h, errand_task t, int status, const char *detail,
		  size_t detail_len, const char *output, size_t output_len)
{
	struct settlement *s;
	int rc = check_live(h, t);

	if (rc != 0)
		return rc;
	if (status < ERRAND_COMPLETED || status > ERRAND_FAILED)
		return ERRAND_EARG;
	s = settlement_new(h, t, status);
	rc = take_cut(h, detail, detail_len, h->max.detail, &s->detail);
	if (rc == 0)
		rc = take_cut(h, output, output_len, h->max.result, &s->output);
	if (rc != 0) {
		settlement_drop(h, &s->ev);
		return rc;
	}
	event_queue(h, &s->ev);
	return 0;
}

int errand_settle_broken(errand_host *h, errand_task t, const errand_error *why)
{
	struct settlement *s;
	struct buf detail;
	int rc = check_live(h, t);

	if (rc != 0)
		return rc;
	s = settlement_new(h, t, ERRAND_FAILED);
	s->broken = error_copy(&h->mem, why);
	buf_init_mem(&detail, MAX_ERROR_TEXT * 2, &h->mem);
	error_put_string(&detail, s->broken);
	buf_cut(&detail, utf8_head(buf_text(&detail), detail.len, h->max.detail));
	s->detail = str_of_buf(&detail);
	event_queue(h, &s->ev);
	return 0;
}
