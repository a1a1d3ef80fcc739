/* SPDX-License-Identifier: MIT */
/*
 * batch.c - facts on their way to the store, as the core's journal gives them: JSON objects.
 * The host's own take the same form, so that one table (facts.c) says what each means.
 */
#include <string.h>

#include "base/json.h"
#include "store/internal.h"

void store_batch_init(struct store_batch *b)
{
	b->count = 0;
	buf_init(&b->facts, MAX_BATCH);
}

void store_batch_release(struct store_batch *b)
{
	b->count = 0;
	buf_release(&b->facts);
}

void store_batch_clear(struct store_batch *b)
{
	b->count = 0;
	buf_clear(&b->facts);
}

int store_batch_move(struct store_batch *to, struct store_batch *from)
{
	int rc = buf_error(&from->facts);

	if (rc == 0)
		rc = buf_error(&to->facts);
	if (rc == 0)
		rc = from->facts.len > buf_room(&to->facts)
			     ? -ERR_LIMIT
			     : buf_reserve(&to->facts, from->facts.len);
	if (rc != 0)
		return rc;
	(void)buf_add(&to->facts, buf_text(&from->facts), from->facts.len);
	to->count += from->count;
	store_batch_clear(from);
	return 0;
}

/* ---- the core's ---- */

void store_put_fact(struct store_batch *b, const char *json, size_t len)
{
	(void)buf_add(&b->facts, json, len);
	(void)buf_addc(&b->facts, 0);
	b->count++;
}

/* ---- the host's own ---- */

static struct buf *begin(struct store_batch *b, const char *fact)
{
	(void)buf_addf(&b->facts, "{\"fact\":\"%s\"", fact);
	return &b->facts;
}

static void end(struct store_batch *b)
{
	(void)buf_addc(&b->facts, '}');
	(void)buf_addc(&b->facts, 0);
	b->count++;
}

static void put_int(struct buf *out, const char *key, int64_t v)
{
	(void)js_put_key(out, key);
	(void)js_put_int(out, v);
}

static size_t length(errand_str s)
{
	return s.len == ERRAND_NUL ? strlen(s.ptr) : s.len;
}

static void put_text(struct buf *out, const char *key, errand_str s)
{
	if (s.ptr)
		(void)js_put_member(out, key, s.ptr, length(s));
}

void store_put_run(struct store_batch *b, const struct store_run *r)
{
	struct buf *out = begin(b, "run");

	put_int(out, "task", (int64_t)r->task);
	put_text(out, "uid", r->uid);
	put_text(out, "boot", r->boot);
	put_int(out, "bytes", r->bytes);
	end(b);
}

void store_put_kill_reason(struct store_batch *b, errand_task task, errand_str reason)
{
	struct buf *out = begin(b, "kill-reason");

	put_int(out, "task", (int64_t)task);
	put_text(out, "reason", reason);
	end(b);
}

void store_put_session(struct store_batch *b, const struct store_session *s)
{
	struct buf *out = begin(b, "session");

	put_text(out, "name", s->name);
	put_text(out, "how", s->how);
	put_int(out, "seen", s->seen);
	put_int(out, "pid", s->pid);
	put_int(out, "ticks", s->ticks);
	put_text(out, "cwd", s->cwd);
	end(b);
}

void store_drop_session(struct store_batch *b, errand_str name)
{
	put_text(begin(b, "session-gone"), "name", name);
	end(b);
}

void store_put_request(struct store_batch *b, const struct store_request *r)
{
	struct buf *out = begin(b, "request");

	put_text(out, "nonce", r->nonce);
	put_int(out, "sequence", r->sequence);
	put_int(out, "at", r->at);
	if (r->reply.ptr && length(r->reply) <= MAX_KEPT_REPLY)
		put_text(out, "reply", r->reply);
	end(b);
}

void store_drop_requests(struct store_batch *b, errand_str nonce, int64_t sequence)
{
	struct buf *out = begin(b, "requests-seen");

	put_text(out, "nonce", nonce);
	put_int(out, "sequence", sequence);
	end(b);
}

void store_put_audit(struct store_batch *b, const struct store_audit *a)
{
	struct buf *out = begin(b, "audit");

	put_int(out, "at", a->at);
	put_text(out, "who", a->who);
	put_text(out, "door", a->door);
	put_text(out, "act", a->act);
	put_text(out, "task", a->task);
	put_text(out, "detail", a->detail);
	end(b);
}
