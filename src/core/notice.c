/* SPDX-License-Identifier: MIT */
/*
 * notice.c - one message for an end that nobody was told of (spec 6, D1, D2, D6).
 *
 * Due at the settlement, if the end is not reported then. An end that is on a lease counts
 * as reported; if the lease comes back, the notice is due at that moment. It goes to the end
 * of next-step, or wakes an idle owner that can be woken and has budget left: then it is on
 * next-turn, as a turn of its own (D8).
 */
#include "core/notice.h"

#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "core/agent.h"
#include "core/config.h"
#include "core/host.h"
#include "core/inbox.h"
#include "core/journal.h"
#include "core/oneline.h"
#include "core/reg.h"
#include "core/task.h"

#define SUMMARY_UNITS 120
#define DEFAULT_WAKES 3

static const char how_to_read[] = ". Read its output with task_output.";
static const char cut_mark[] = "\n[notice truncated]";
static const char action[] = "\nDone; task_output.";

#define LEN(literal) (sizeof(literal) - 1)

/* ---- the text ---- */

static void put_tail(struct buf *out, const char *text, size_t len, size_t max)
{
	size_t kept = utf8_tail(text, len, max);

	(void)buf_add(out, text + len - kept, kept);
}

/* The id and what to do matter more than label and detail (spec 6.4, 15.6). */
static void put_bounded(struct buf *out, const struct buf *subject, const struct buf *story,
			size_t limit)
{
	size_t fixed = subject->len + LEN(cut_mark) + LEN(action);

	if (fixed <= limit) {
		(void)buf_add(out, subject->data, subject->len);
		(void)buf_add(out, story->data,
			      utf8_head(story->data, story->len, limit - fixed));
		(void)buf_adds(out, cut_mark);
		(void)buf_adds(out, action);
	} else if (subject->len + LEN(action) <= limit) {
		(void)buf_add(out, subject->data, subject->len);
		(void)buf_adds(out, action);
	} else if (LEN(action) >= limit) {
		put_tail(out, action, LEN(action), limit);
	} else {
		(void)buf_add(out, subject->data,
			      utf8_head(subject->data, subject->len, limit - LEN(action)));
		(void)buf_adds(out, action);
	}
}

void notice_put_text(struct buf *out, const struct task_line *t, uint64_t limit)
{
	struct buf subject, story;

	buf_init_mem(&subject, MAX_JSON_TEXT, out->mem);
	(void)buf_adds(&subject, "background task ");
	oneline_put(&subject, t->id, t->id_len);
	buf_init_mem(&story, MAX_JSON_TEXT, out->mem);
	(void)buf_adds(&story, " (");
	oneline_put(&story, t->kind, t->kind_len);
	(void)buf_adds(&story, ": ");
	oneline_put(&story, t->label, t->label_len);
	(void)buf_adds(&story, ") finished ");
	oneline_put_status(&story, t);
	if (limit != 0 && subject.len + story.len + LEN(how_to_read) > limit) {
		put_bounded(out, &subject, &story, (size_t)limit);
	} else {
		(void)buf_add(out, buf_text(&subject), subject.len);
		(void)buf_add(out, buf_text(&story), story.len);
		(void)buf_adds(out, how_to_read);
	}
	buf_release(&subject);
	buf_release(&story);
}

/* ---- the summary ---- */

/* @b holds one line: cut it in place. */
static void cut_summary(struct buf *b)
{
	if (utf8_units(buf_text(b), b->len) <= SUMMARY_UNITS)
		return;
	buf_cut(b, utf8_head_units(b->data, b->len, SUMMARY_UNITS - 1));
	(void)buf_adds(b, "\xe2\x80\xa6");
}

void notice_put_summary(struct buf *out, const struct task_line *t)
{
	oneline_put(out, t->kind, t->kind_len);
	(void)buf_addc(out, ' ');
	oneline_put(out, t->label, t->label_len);
	(void)buf_addc(out, ' ');
	oneline_put_status(out, t);
	cut_summary(out);
}

int errand_summary(const char *text, size_t len, errand_text **ret)
{
	struct buf out;

	if (!text || !ret)
		return ERRAND_EARG;
	buf_init_try(&out, SIZE_MAX / 4, NULL);
	oneline_put(&out, text, str_length(text, len));
	cut_summary(&out);
	return text_take(&out, ret, NULL);
}

/* ---- the message ---- */

static struct str build_json(errand_host *h, const struct str *id,
			     const struct task_line *t, uint64_t limit)
{
	struct buf out, part;

	buf_init_mem(&out, h->max.json, &h->mem);
	buf_init_mem(&part, h->max.json, &h->mem);
	(void)buf_addc(&out, '{');
	(void)js_put_member(&out, "id", id->ptr, id->len);
	notice_put_text(&part, t, limit);
	(void)buf_adds(&out,
		       ",\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":");
	(void)js_put_string(&out, buf_text(&part), part.len);
	(void)buf_adds(&out, "}],\"source\":{\"kind\":\"plugin\",\"plugin\":\"tool-tasks\","
			     "\"form\":\"notice\",\"summary\":");
	buf_clear(&part);
	notice_put_summary(&part, t);
	(void)js_put_string(&out, buf_text(&part), part.len);
	(void)buf_adds(&out, "},\"task\":");
	(void)js_put_string(&out, t->id, t->id_len);
	(void)buf_addc(&out, '}');
	buf_release(&part);
	return str_of_buf(&out);
}

static struct message *notice_new(errand_host *h, const struct task *t)
{
	struct message *m = mem_new(&h->mem, sizeof(*m));
	struct task_line line;
	struct buf id;

	buf_init_mem(&id, h->max.json, &h->mem);
	task_put_id(&id, t);
	task_line_of(t, &id, &line);
	m->is_notice = true;
	m->task = t->obj.id;
	m->id = message_new_id(h, t->owner);
	message_named(m);
	m->json = build_json(h, &m->id, &line, (uint64_t)t->limit);
	buf_release(&id);
	return m;
}

/* A session that refuses the message is a listener that threw (spec 6.9). */
static void warn_lost(errand_host *h, const struct task *t, const errand_error *e)
{
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT * 2, &h->mem);
	(void)buf_adds(&b, "tasks: onTaskDone listener threw for ");
	task_put_id(&b, t);
	(void)buf_adds(&b, ": ");
	error_put_string(&b, e);
	host_warn(h, &b);
}

static void send(errand_host *h, struct task *t)
{
	struct agent *a = t->owner;
	errand_error *e = NULL;
	struct message *m;
	bool wakes;

	t->notice_withheld = false;
	if (!a || a->disposing || h->service.is_disposed)
		return;
	wakes = agent_may_wake(a, t->max_wakes);
	m = notice_new(h, t);
	m->target = wakes ? ERRAND_NEXT_TURN : ERRAND_NEXT_STEP;
	if (inbox_add(h, a, m, &e) == 0) {
		t->noticed = true;
		journal_of_task(h, t, "noticed");
		if (wakes)
			agent_ask(h, a);
		/* Last: who hears of it may take it, and drop the task. */
		inbox_announce(h, a, "inserted", m, NULL, true);
		return;
	}
	warn_lost(h, t, e);
	errand_error_free(e);
	message_free(h, m);
}

/* ---- configuration ---- */

static int refuse_fraction(errand_host *h, double v, errand_error **ret_err)
{
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT, &h->mem);
	(void)buf_adds(&b, "tool-tasks: maxConsecutiveWakes (");
	(void)js_put_number(&b, v);
	(void)buf_adds(&b, ") must be a whole number of turns");
	return error_take(ret_err, ERRAND_EREFUSED, &b);
}

int notice_config(errand_host *h, const struct settings *config, int64_t *ret_max_wakes,
		  errand_error **ret_err)
{
	static const char *const ways[] = {"quiet", "wakeup", NULL};
	double wakes = DEFAULT_WAKES;
	int way = 1;
	int rc = config_word(&h->mem, config, "completionDelivery", ways, &way, ret_err);

	if (rc == 0)
		rc = config_number(&h->mem, config, "maxConsecutiveWakes", &wakes, ret_err);
	if (rc != 0)
		return rc;
	if (!config_is_count(wakes))
		return refuse_fraction(h, wakes, ret_err);
	*ret_max_wakes = way == 0 ? 0 : (int64_t)wakes;
	return 0;
}

/* ---- when ---- */

void notice_on_done(errand_host *h, const struct listener *l, const struct dispatch *d)
{
	struct task *t = object_get(h, d->task, OBJ_TASK);

	if (!t)
		return;
	t->max_wakes = l->max_wakes;
	if (!d->reported || !task_is_reported(t))
		send(h, t);
	else
		t->notice_withheld = !t->reported;
}

void notice_again(errand_host *h, const struct task *t)
{
	struct dispatch *d = dispatch_new(h, ERRAND_ON_DONE, t->owner);

	if (!d)
		return;
	d->task = t->obj.id;
	d->is_for_mount = true;
	dispatch_now(h, d);
}

static void send_due(errand_host *h, struct task *t)
{
	if (t->notice_withheld && !task_is_reported(t))
		send(h, t);
}

void notice_due(errand_host *h, const struct task *t)
{
	if (t->notice_withheld)
		task_later(h, t, send_due);
}
