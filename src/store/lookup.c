/* SPDX-License-Identifier: MIT */
/* lookup.c - what people ask for: tasks, those of the past too, and who did what. */
#include "store/internal.h"

#define DEFAULT_ROWS 100
#define MAX_ROWS 10000

static const char history[] =
	"SELECT json_object('task', t.task, 'id', id, 'kind', kind,"
	" 'label', substr(label, 1, 1000), 'session', session, 'status', status,"
	" 'detail', detail, 'startedAt', started, 'finishedAt', finished, 'uid', uid,"
	" 'bytes', bytes, 'listed', json(iif(listed, 'true', 'false')))"
	" FROM task AS t LEFT JOIN run USING (task)"
	" WHERE ($before = 0 OR t.task < $before) AND ($id IS NULL OR id = $id)"
	" AND ($session IS NULL OR session = $session) AND ($kind IS NULL OR kind = $kind)"
	" AND ($status IS NULL OR status = $status) ORDER BY t.task DESC LIMIT $limit";

static const char audit[] =
	"SELECT json_object('number', number, 'at', at, 'who', who, 'door', door,"
	" 'act', act, 'task', task, 'detail', ifnull(detail, (SELECT substr(label, 1, 200)"
	" FROM task WHERE id = audit.task AND act = 'start' LIMIT 1))) FROM audit"
	" WHERE ($before = 0 OR number < $before) AND ($id IS NULL OR task = $id)"
	" ORDER BY number DESC LIMIT $limit";

struct rows {
	store_row_fn fn;
	void *ud;
};

static void on_row(void *ud, sqlite3_stmt *q)
{
	const struct rows *r = ud;
	errand_str json = db_column_text(q, 0);

	if (json.ptr)
		r->fn(r->ud, json.ptr, json.len);
}

static int look(struct store *s, const char *sql, const struct store_filter *f,
		struct rows *rows, struct err *err)
{
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(s, sql, &q, err);

	if (rc == 0) {
		db_bind_int(q, "$before", f->before);
		db_bind_int(q, "$limit",
			    f->limit <= 0         ? DEFAULT_ROWS
			    : f->limit > MAX_ROWS ? MAX_ROWS
						  : f->limit);
		db_bind_text(q, "$id", f->id);
		db_bind_text(q, "$session", f->session);
		db_bind_text(q, "$kind", f->kind);
		db_bind_text(q, "$status", f->status);
		rc = db_each(s, q, on_row, rows, err);
	}
	(void)sqlite3_finalize(q);
	return rc;
}

int store_history(struct store *s, const struct store_filter *f, store_row_fn row, void *ud,
		  struct err *err)
{
	return look(s, history, f, &(struct rows){row, ud}, err);
}

int store_audit_trail(struct store *s, const struct store_filter *f, store_row_fn row,
		      void *ud, struct err *err)
{
	return look(s, audit, f, &(struct rows){row, ud}, err);
}
