/* SPDX-License-Identifier: MIT */
#include "host/audit.h"

#include <string.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "host/journal.h"
#include "host/operator.h"
#include "store/store.h"

/* Of a reason; a command is not repeated here. */
#define DETAIL_MAX 1000

static errand_str text(const char *s, size_t len)
{
	return (errand_str){s, s ? len : 0};
}

static errand_str name_of(const struct host *h, errand_agent agent)
{
	size_t len = 0;
	const char *name = owners_name(&h->owners, agent, &len);

	return name ? text(name, len) : text("-", 1);
}

static void put(struct host *h, const char *door, errand_str who, const char *act,
		errand_str task, errand_str detail)
{
	if (!h->journal)
		return;
	if (detail.ptr)
		detail.len = utf8_head(detail.ptr, detail.len, DETAIL_MAX);
	journal_audit(h->journal, &(struct store_audit){
					  .who = who,
					  .door = text(door, strlen(door)),
					  .act = text(act, strlen(act)),
					  .task = task,
					  .detail = detail,
					  .at = clock_wall_ms(),
				  });
}

void audit_ask(const struct ask *a, const char *act, const char *id, size_t len,
	       const char *detail, size_t detail_len)
{
	bool is_person = a->agent == a->host->operator;

	put(a->host, is_person ? "people" : "task",
	    is_person ? text("operator", strlen("operator")) : name_of(a->host, a->agent),
	    act, text(id, len), text(detail, detail_len));
}

void audit_kill(void *host, errand_agent owner, const char *id, const char *reason,
		size_t len)
{
	struct host *h = host;

	if (h->asking)
		return; /* whoever asks says so, once */
	put(h, owners_is_ending(&h->owners, owner) ? "host" : "mcp", name_of(h, owner),
	    "kill", text(id, strlen(id)), text(reason, len));
}

static const char *why_dropped(const struct host *h, errand_agent owner, bool is_for_room)
{
	if (is_for_room)
		return "there was more output of ended tasks than is kept";
	if (owners_is_ending(&h->owners, owner))
		return "its session has ended";
	return "more tasks had ended than are kept";
}

void audit_drop(void *host, errand_agent owner, const char *id, bool is_for_room)
{
	struct host *h = host;
	const char *why = why_dropped(h, owner, is_for_room);

	if (atomic_load(&h->is_leaving))
		return;
	journal_dropped(h->journal);
	put(h, "host", name_of(h, owner), "drop", text(id, strlen(id)),
	    text(why, strlen(why)));
}

void audit_start(struct host *h, errand_agent owner, const char *id)
{
	put(h, "mcp", name_of(h, owner), "start", text(id, strlen(id)), text(NULL, 0));
}

void audit_import(struct host *h, errand_agent owner, const char *id)
{
	put(h, "host", name_of(h, owner), "import", text(id, strlen(id)), text(NULL, 0));
}

void audit_session(struct host *h, const char *name, size_t len)
{
	put(h, "host", text(name, len), "end-session", text(NULL, 0), text(NULL, 0));
}
