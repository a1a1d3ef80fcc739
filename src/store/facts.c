/* SPDX-License-Identifier: MIT */
/*
 * facts.c - what each fact does to the tables, and the commit that does it.
 *
 * A parameter is named as the fact's member that it takes: $label; $message::id is the
 * member `id` of the member `message`. What a fact does not have is NULL.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "base/json.h"
#include "store/internal.h"

#define MAX_MEMBER 32

#define NEXT_RANK "(SELECT ifnull(max(rank), 0) + 1 FROM task)"
/* An end that is now told to its owner for the first time takes its place in that order. */
#define TOLD_RANK                                                                          \
	"rank = CASE WHEN finished IS NULL OR reported OR told THEN rank ELSE " NEXT_RANK  \
	" END"
#define END_OF_LIST                                                                        \
	"(SELECT ifnull(max(place), 0) + 1 FROM message AS m"                              \
	" WHERE m.agent = $agent AND m.target = "
#define BEFORE "FROM message WHERE agent = $agent AND id = $before"

/* Of one name several are carried out, in this order. */
static const struct {
	const char *fact, *sql;
} table[] = {
	{"counter", "INSERT INTO counter VALUES ($kind, $counter)"
		    " ON CONFLICT DO UPDATE SET counter = max(counter, $counter)"},
	{"agent", "INSERT INTO agent VALUES ($agent, $session, $wakes)"
		  " ON CONFLICT DO UPDATE SET wakes = $wakes"},
	{"agent", "UPDATE last SET id = $agent WHERE id < $agent"},
	{"agent-gone", "DELETE FROM agent WHERE agent = $agent"},
	{"task",
	 "INSERT INTO task (task, kind, ordinal, label, agent, session, output_limit, status,"
	 " detail, output, started, finished, stream, reported, noticed, told, cursor, rank)"
	 " VALUES ($task, $kind, $ordinal, $label, $agent,"
	 " (SELECT session FROM agent WHERE agent = $agent), $outputLimitBytes, $status,"
	 " $detail, $output, $startedAt, $finishedAt, $stream, $reported, $noticed, $told,"
	 " $cursor, iif($finishedAt IS NULL, NULL, " NEXT_RANK "))"
	 " ON CONFLICT DO UPDATE SET status = $status, detail = $detail, output = $output,"
	 " finished = $finishedAt, stream = $stream, reported = $reported,"
	 " noticed = $noticed, told = $told, cursor = $cursor,"
	 " rank = ifnull(rank, excluded.rank)"},
	{"task", "UPDATE last SET id = $task WHERE id < $task"},
	{"drop", "UPDATE task SET listed = 0, agent = NULL WHERE task = $task"},
	{"reported", "UPDATE task SET " TOLD_RANK ", reported = 1 WHERE task = $task"},
	{"noticed", "UPDATE task SET noticed = 1 WHERE task = $task"},
	{"told", "UPDATE task SET " TOLD_RANK ", noticed = 1, told = 1 WHERE task = $task"},
	{"cursor", "UPDATE task SET cursor = $cursor WHERE task = $task"},
	{"message", "INSERT INTO message (agent, id, target, place, message)"
		    " VALUES ($agent, $message::id, $target, " END_OF_LIST
		    "$target), $message) ON CONFLICT (agent, id) DO UPDATE"
		    " SET target = excluded.target, place = excluded.place,"
		    " message = excluded.message"},
	{"message", "UPDATE last SET message = CAST(substr($message::id, 2) AS INTEGER)"
		    " WHERE $message::id GLOB 'm[0-9]*' AND length($message::id) <= 18"
		    " AND message < CAST(substr($message::id, 2) AS INTEGER)"},
	{"message", "UPDATE task SET noticed = 1 WHERE id = $message::task AND listed"
		    " AND $message::source::form = 'notice'"},
	{"message-moved", "UPDATE message SET place = place + 1 WHERE agent = $agent"
			  " AND target = (SELECT target " BEFORE ")"
			  " AND place >= (SELECT place " BEFORE ")"},
	{"message-moved", "UPDATE message SET moved = 1, place = ifnull("
			  "(SELECT place - 1 " BEFORE "), " END_OF_LIST
			  "message.target)) WHERE agent = $agent AND id = $id"},
	{"message-gone", "DELETE FROM message WHERE agent = $agent AND id = $id"},
	/* the host's own (batch.c) */
	{"run", "INSERT INTO run (task, uid, boot, bytes)"
		" VALUES ($task, $uid, $boot, $bytes)"
		" ON CONFLICT DO UPDATE SET uid = $uid, boot = $boot, bytes = $bytes"},
	{"kill-reason", "UPDATE run SET reason = $reason WHERE task = $task"},
	{"session", "INSERT INTO session VALUES ($name, $how, $seen, $pid, $ticks, $cwd)"
		    " ON CONFLICT DO UPDATE SET how = $how, seen = $seen, pid = $pid,"
		    " ticks = $ticks, cwd = $cwd"},
	{"session-gone", "DELETE FROM session WHERE name = $name"},
	{"request", "INSERT INTO request (nonce, sequence, at, reply)"
		    " VALUES ($nonce, $sequence, $at, $reply)"
		    " ON CONFLICT (nonce, sequence) DO UPDATE SET reply = $reply"},
	{"requests-seen",
	 "DELETE FROM request WHERE nonce = $nonce AND sequence <= $sequence"},
	{"audit", "INSERT INTO audit (at, who, door, act, task, detail)"
		  " VALUES ($at, $who, $door, $act, $task, $detail)"},
};

#define N_STATEMENTS (sizeof(table) / sizeof(table[0]))
_Static_assert(N_STATEMENTS <= MAX_FACT_STATEMENTS, "struct store has a place for each");

int facts_prepare(struct store *s, struct err *err)
{
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < N_STATEMENTS; i++)
		rc = db_prepare(s, table[i].sql, &s->facts[i], err);
	return rc;
}

void facts_finalize(struct store *s)
{
	for (size_t i = 0; i < N_STATEMENTS; i++)
		(void)sqlite3_finalize(s->facts[i]);
}

/* ---- from a member to a parameter ---- */

/* @path is "$a" or "$a::b". */
static const struct js *find(const struct js *fact, const char *path)
{
	char member[MAX_MEMBER];
	const char *end;

	for (path++; path; path = end ? end + 2 : NULL) {
		end = strstr(path, "::");
		(void)snprintf(member, sizeof(member), "%.*s",
			       (int)(end ? end - path : (ptrdiff_t)strlen(path)), path);
		fact = js_get(fact, member);
	}
	return fact;
}

static int bind_number(sqlite3_stmt *q, int i, double v)
{
	if (v == rint(v) && fabs(v) <= 9007199254740992.0)
		return sqlite3_bind_int64(q, i, (int64_t)v);
	return sqlite3_bind_double(q, i, v);
}

static int bind_string(sqlite3_stmt *q, int i, const struct js *v)
{
	size_t len;
	const char *s = js_string(v, &len);

	return sqlite3_bind_text64(q, i, s, len, SQLITE_STATIC, SQLITE_UTF8);
}

/* An object is kept as it is spelled. */
static int bind_object(sqlite3_stmt *q, int i, struct js_span text, const char *name)
{
	struct js_span member = js_member(text, name + 1);

	return sqlite3_bind_text64(q, i, member.ptr, member.len, SQLITE_STATIC,
				   SQLITE_UTF8);
}

static int bind(sqlite3_stmt *q, int i, const struct js *fact, struct js_span text)
{
	const char *name = sqlite3_bind_parameter_name(q, i);
	const struct js *v = find(fact, name);

	switch (js_type(v)) {
	case JS_BOOL:
		return sqlite3_bind_int(q, i, js_is_true(v));
	case JS_NUMBER:
		return bind_number(q, i, js_number(v));
	case JS_STRING:
		return bind_string(q, i, v);
	case JS_OBJECT:
	case JS_ARRAY:
		return bind_object(q, i, text, name);
	case JS_NONE:
	case JS_NULL:
		break;
	}
	return sqlite3_bind_null(q, i);
}

/* ---- a commit ---- */

static int carry_out(struct store *s, sqlite3_stmt *q, const struct js *fact,
		     struct js_span text, struct err *err)
{
	for (int i = 1; i <= sqlite3_bind_parameter_count(q); i++)
		if (bind(q, i, fact, text) != SQLITE_OK)
			return db_failed(s, "take a fact", err);
	return db_each(s, q, NULL, NULL, err);
}

static int take_fact(struct store *s, const struct js *fact, struct js_span text,
		     struct err *err)
{
	const struct js *name = js_get(fact, "fact");
	bool is_known = false;
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < N_STATEMENTS; i++) {
		if (!js_string_is(name, table[i].fact))
			continue;
		is_known = true;
		rc = carry_out(s, s->facts[i], fact, text, err);
	}
	return is_known ? rc : err_set(err, ERR_ARG, "no such fact");
}

/* A number that no double carries (-ERR_LOSSY) can only stand in a message, kept as text. */
static int take_text(struct store *s, struct js_span text, struct err *err)
{
	struct js *fact = NULL;
	int rc = js_parse_within(text.ptr, text.len, MAX_JSON_NESTING + MAX_JSON_ENVELOPE,
				 &fact, err);

	if (rc == 0 || rc == -ERR_LOSSY)
		rc = take_fact(s, fact, text, err);
	else
		rc = err_set(err, ERR_ARG, "not JSON");
	js_free(fact);
	return rc;
}

static int take_batch(void *ud, struct store *s, struct err *err)
{
	const struct store_batch *b = ud;
	const char *fact = buf_text(&b->facts);
	int rc;

	for (size_t i = 0; i < b->count; i++) {
		size_t len = strlen(fact);

		rc = take_text(s, (struct js_span){fact, len}, err);
		if (rc == -ERR_ARG)
			return err_wrap(err, "fact %zu (%.40s)", i, fact);
		if (rc != 0)
			return rc;
		fact += len + 1;
	}
	return 0;
}

int store_commit(struct store *s, const struct store_batch *b, struct err *err)
{
	if (buf_error(&b->facts))
		return err_set(err, ERR_LIMIT,
			       "more than %zu bytes of facts wait for the disk", MAX_BATCH);
	if (store_batch_is_empty(b))
		return 0;
	if (!s->facts[0])
		return err_sys(err, EROFS, "'%.200s' was opened to be looked at only",
			       s->path);
	return db_transact(s, take_batch, (void *)(uintptr_t)b, err);
}
