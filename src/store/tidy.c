/* SPDX-License-Identifier: MIT */
/*
 * tidy.c - what is old enough to be forgotten. History is counted from its newest end back, in
 * the order of the ends; a clock that was set back makes nothing old.
 */
#include "base/buf.h"
#include "store/internal.h"

#define STEP "500" /* rows of each kind, and pages, in one step */

/* A limit of 0 is none. A task takes what its row and its folder take. */
static const char old_tasks[] =
	"CREATE TEMP TABLE IF NOT EXISTS old (task INTEGER PRIMARY KEY, uid TEXT) STRICT;"
	"DELETE FROM old";
static const char choose[] =
	"INSERT INTO old SELECT task, uid FROM (SELECT task, uid, finished,"
	" row_number() OVER newest AS n, sum(ifnull(bytes, 0) + length(label) +"
	" ifnull(length(output), 0)) OVER newest AS total"
	" FROM task LEFT JOIN run USING (task) WHERE NOT listed"
	" WINDOW newest AS (ORDER BY rank DESC, task DESC))"
	" WHERE ($age > 0 AND finished < $now - $age) OR ($tasks > 0 AND n > $tasks)"
	" OR ($bytes > 0 AND total > $bytes) ORDER BY n DESC LIMIT " STEP;

static const char *const forget[] = {
	"DELETE FROM run WHERE task IN (SELECT task FROM old)",
	"DELETE FROM task WHERE task IN (SELECT task FROM old)",
	"DELETE FROM request WHERE number IN (SELECT number FROM request"
	" WHERE ($requestsAge > 0 AND at < $now - $requestsAge) OR ($requests > 0 AND number"
	" <= (SELECT number FROM request ORDER BY number DESC LIMIT 1 OFFSET $requests))"
	" LIMIT " STEP ")",
	"DELETE FROM audit WHERE number IN (SELECT number FROM audit WHERE $audit > 0 AND"
	" number <= (SELECT number FROM audit ORDER BY number DESC LIMIT 1 OFFSET $audit)"
	" LIMIT " STEP ")",
};

struct tidying {
	const struct store_limits *limits;
	int64_t now;
	int64_t removed; /* the most that one of the statements removed */
};

static int limited(struct store *s, const char *sql, struct tidying *t, struct err *err)
{
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(s, sql, &q, err);

	if (rc == 0) {
		db_bind_int(q, "$now", t->now);
		db_bind_int(q, "$age", t->limits->history_age_ms);
		db_bind_int(q, "$tasks", t->limits->history_tasks);
		db_bind_int(q, "$bytes", t->limits->history_bytes);
		db_bind_int(q, "$requestsAge", t->limits->requests_age_ms);
		db_bind_int(q, "$requests", t->limits->requests);
		db_bind_int(q, "$audit", t->limits->audit);
		rc = db_each(s, q, NULL, NULL, err);
	}
	(void)sqlite3_finalize(q);
	if (rc == 0 && sqlite3_changes64(s->db) > t->removed)
		t->removed = sqlite3_changes64(s->db);
	return rc;
}

static int tidy(void *ud, struct store *s, struct err *err)
{
	int rc = limited(s, choose, ud, err);

	for (size_t i = 0; rc == 0 && i < sizeof(forget) / sizeof(forget[0]); i++)
		rc = limited(s, forget[i], ud, err);
	return rc;
}

struct goner {
	void (*fn)(void *ud, const char *uid);
	void *ud;
};

static void on_gone(void *ud, sqlite3_stmt *q)
{
	const struct goner *g = ud;

	g->fn(g->ud, (const char *)sqlite3_column_text(q, 0));
}

static int tell_gone(struct store *s, struct goner *g, struct err *err)
{
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(s, "SELECT uid FROM old WHERE uid IS NOT NULL", &q, err);

	if (rc == 0)
		rc = db_each(s, q, on_gone, g, err);
	(void)sqlite3_finalize(q);
	return rc;
}

int store_tidy(struct store *s, const struct store_limits *l, int64_t now,
	       void (*gone)(void *ud, const char *uid), void *ud, bool *ret_more,
	       struct err *err)
{
	struct tidying t = {.limits = l, .now = now};
	int rc = db_run(s, old_tasks, err);

	if (rc == 0)
		rc = db_transact(s, tidy, &t, err);
	if (rc == 0 && gone)
		rc = tell_gone(s, &(struct goner){gone, ud}, err);
	if (rc == 0)
		rc = db_run(s, "PRAGMA incremental_vacuum(" STEP ")", err);
	*ret_more = rc == 0 && (t.removed > 0 || db_int(s, "PRAGMA freelist_count") > 0);
	return rc;
}

int store_shrink(struct store *s, struct err *err)
{
	int rc = db_run(s, "PRAGMA incremental_vacuum", err);

	return rc < 0 ? rc : db_run(s, "PRAGMA wal_checkpoint(TRUNCATE)", err);
}
