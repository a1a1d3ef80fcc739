/* SPDX-License-Identifier: MIT */
/*
 * log.c - the session's log: events that an agent's owner keeps (spec 7.2, 7.12).
 *
 * An event is appended before what it describes happens; a log that refuses stops it. An
 * agent without a log changes without being asked.
 */
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/inbox.h"
#include "core/log.h"

const char *target_word(int target)
{
	return target == ERRAND_NEXT_TURN ? "next-turn" : "next-step";
}

void log_begin(const struct agent *a, struct buf *event, const char *type)
{
	(void)buf_adds(event, "{\"seq\":");
	(void)js_put_int(event, (int64_t)a->log_seq);
	(void)buf_addf(event, ",\"type\":\"%s\",\"data\":{", type);
}

int log_append(errand_host *h, struct agent *a, struct buf *event, errand_error **ret_err)
{
	errand_error *e;
	enum phase before;
	int rc;

	if (buf_error(event)) {
		buf_release(event);
		return error_no_memory(ret_err, &h->mem);
	}
	e = error_lend(&h->mem);
	before = phase_enter(h, PHASE_PURE);
	rc = a->log(a->ud, a->number, a->log_seq, event->data, event->len, e);
	h->phase = before;
	buf_release(event);
	if (rc >= 0)
		a->log_seq++;
	if (rc >= 0 || !ret_err)
		errand_error_free(e);
	else
		*ret_err = e;
	return rc >= 0 ? 0 : ERRAND_ECALLBACK;
}

int log_end(errand_host *h, struct agent *a, struct buf *event, errand_error **ret_err)
{
	(void)buf_adds(event, "}}");
	return log_append(h, a, event, ret_err);
}

static void put_inserted(struct buf *out, const struct list *messages)
{
	(void)buf_adds(out, ",\"inserted\":[");
	if (messages)
		messages_put(out, messages);
	(void)buf_addc(out, ']');
}

int log_splice(errand_host *h, struct agent *a, const struct splice *s,
	       errand_error **ret_err)
{
	struct buf event;

	if (!a->log)
		return 0;
	if (s->may_fail)
		buf_init_try(&event, SIZE_MAX / 4, &h->mem);
	else
		buf_init_mem(&event, SIZE_MAX / 4, &h->mem);
	log_begin(a, &event, "agent/inbox/spliced");
	(void)buf_addf(&event, "\"target\":\"%s\",\"start\":%zu", target_word(s->target),
		       s->start);
	if (s->removed > 0)
		(void)buf_addf(&event, ",\"removedCount\":%zu", s->removed);
	put_inserted(&event, s->inserted);
	if (s->is_canceled)
		(void)buf_adds(&event, ",\"outcome\":\"canceled\"");
	return log_end(h, a, &event, ret_err);
}

void log_warn(errand_host *h, const struct agent *a, const char *what, errand_error *e)
{
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT * 2, &h->mem);
	(void)buf_adds(&b, "inbox of ");
	(void)buf_add(&b, a->session->text.ptr, a->session->text.len);
	(void)buf_addf(&b, " was %s although its log refused: ", what);
	error_put_string(&b, e);
	host_warn(h, &b);
	errand_error_free(e);
}
