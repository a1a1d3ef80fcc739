/* SPDX-License-Identifier: MIT */
/*
 * digest.c - what a session holds when somebody comes back to it, in one line, for a model that
 * may have forgotten its tasks. It rides in front of the notices of the first reply.
 */
#include "mcp/internal.h"

/* Ids in each list; more are counted. */
#define MAX_IDS 20

struct digest {
	const struct mcp *mcp;
	struct buf running, ended, unread;
	size_t n_running, n_ended, n_unread;
};

/* Room for one more id in a list? */
static bool next(struct buf *list, size_t *n)
{
	if ((*n)++ >= MAX_IDS)
		return false;
	if (list->len > 0)
		buf_adds(list, ", ");
	return true;
}

static double unread_bytes(const struct mcp *m, const char *id, size_t len)
{
	struct buf facts = BUF_INIT(KIB(16));
	struct js *all = NULL;
	double n = 0;

	m->ops.facts(m->ud, id, len, &facts);
	if (facts.len > 0 && js_parse(facts.data, facts.len, &all, NULL) == 0)
		n = js_number(js_get(all, "unreadBytes"));
	js_free(all);
	buf_release(&facts);
	return n >= 1 ? n : 0;
}

static void add_task(struct digest *d, const struct js *task)
{
	const struct js *status = js_get(task, "status");
	bool is_live = js_string_is(status, "running") || js_string_is(status, "stopping");
	size_t len = 0;
	const char *id = js_string(js_get(task, "id"), &len);
	double unread = id ? unread_bytes(d->mcp, id, len) : 0;

	if (!id)
		return;
	if (is_live && next(&d->running, &d->n_running))
		buf_add(&d->running, id, len);
	if (unread > 0 && next(&d->unread, &d->n_unread))
		buf_addf(&d->unread, "%.*s %.0f bytes", (int)len, id, unread);
}

static void add_row(void *ud, struct js_span row)
{
	struct js *task = NULL;

	if (js_parse(row.ptr, row.len, &task, NULL) == 0)
		add_task(ud, task);
	js_free(task);
}

/* Those whose notices are still to come. */
static void add_ended(struct digest *d, errand_agent agent)
{
	struct js *messages = NULL;
	errand_text *json = NULL;
	const char *p;
	size_t len;

	if (errand_inbox(d->mcp->server->host, agent, &json, NULL) < 0)
		return;
	p = errand_text_data(json, &len);
	if (js_parse(p, len, &messages, NULL) == 0)
		for (size_t i = 0; i < js_count(messages); i++) {
			p = js_string(js_get(js_at(messages, i), "task"), &len);
			if (p && next(&d->ended, &d->n_ended))
				buf_add(&d->ended, p, len);
		}
	js_free(messages);
	errand_text_free(json);
}

static void put_list(struct buf *out, const char *what, const struct buf *list, size_t n)
{
	if (list->len == 0)
		return;
	buf_addf(out, "%s%s: ", out->len > 0 ? "; " : "", what);
	buf_add(out, list->data, list->len);
	if (n > MAX_IDS)
		buf_addf(out, " and %zu more", n - MAX_IDS);
}

void mcp_resume(struct mcp *m, errand_agent agent)
{
	struct digest d = {.mcp = m};
	struct buf lists = BUF_INIT(KIB(64));
	errand_text *json = NULL;
	struct js_span all;

	if (!m->ops.facts || errand_list(m->server->host, agent, &json, NULL) < 0)
		return;
	buf_init(&d.running, KIB(16));
	buf_init(&d.ended, KIB(16));
	buf_init(&d.unread, KIB(16));
	all.ptr = errand_text_data(json, &all.len);
	js_each(all, add_row, &d);
	add_ended(&d, agent);
	put_list(&lists, "running", &d.running, d.n_running);
	put_list(&lists, "ended meanwhile", &d.ended, d.n_ended);
	put_list(&lists, "unread output", &d.unread, d.n_unread);
	buf_clear(&m->digest);
	if (lists.len > 0)
		buf_addf(&m->digest, "[session resumed; %s]", buf_text(&lists));
	m->digest_agent = lists.len > 0 ? agent : 0;
	errand_text_free(json);
	buf_release(&lists);
	buf_release(&d.running);
	buf_release(&d.ended);
	buf_release(&d.unread);
}
