/* SPDX-License-Identifier: MIT */
/* db.c - the few ways in which the store speaks to SQLite. */
#include <errno.h>
#include <string.h>

#include "store/internal.h"

/* ---- failures ---- */

static const struct {
	int sqlite; /* primary result code */
	enum err_code code;
	int errnum; /* where the system's own is not known */
} failures[] = {
	{SQLITE_FULL, ERR_SYS, ENOSPC},
	{SQLITE_IOERR, ERR_SYS, EIO},
	{SQLITE_CANTOPEN, ERR_SYS, EACCES},
	{SQLITE_READONLY, ERR_SYS, EROFS},
	{SQLITE_PERM, ERR_SYS, EACCES},
	{SQLITE_BUSY, ERR_STATE, EBUSY},
	{SQLITE_LOCKED, ERR_STATE, EBUSY},
	{SQLITE_CORRUPT, ERR_FORMAT, 0},
	{SQLITE_NOTADB, ERR_FORMAT, 0},
	{SQLITE_NOMEM, ERR_NOMEM, ENOMEM},
	{SQLITE_CONSTRAINT, ERR_ARG, 0},
	{SQLITE_TOOBIG, ERR_ARG, 0},
	{SQLITE_MISMATCH, ERR_ARG, 0},
	/* The statements are right: so the tables, or JSON in them, are not. */
	{SQLITE_ERROR, ERR_FORMAT, 0},
};

/* SQLite does not always keep it. A full disk is worth a look at what its last call left. */
static int system_errno(sqlite3 *db)
{
	int left = errno, kept = sqlite3_system_errno(db);

	if (kept == 0 && (left == ENOSPC || left == EDQUOT || left == EFBIG))
		return left;
	return kept;
}

int db_failed(const struct store *s, const char *what, struct err *err)
{
	int errnum = 0, rc = sqlite3_errcode(s->db) & 0xff;
	const char *why = sqlite3_errmsg(s->db);

	for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++) {
		if (failures[i].sqlite != rc)
			continue;
		if (rc == SQLITE_IOERR || rc == SQLITE_CANTOPEN)
			errnum = system_errno(s->db);
		if (errnum == 0)
			errnum = failures[i].errnum;
		if (failures[i].code == ERR_SYS)
			return err_sys(err, errnum, "'%.100s': cannot %s: %.60s", s->path,
				       what, why);
		(void)err_set(err, failures[i].code, "'%.100s': cannot %s: %.80s", s->path,
			      what, why);
		if (err)
			err->errnum = errnum;
		return -(int)failures[i].code;
	}
	return err_set(err, ERR_STATE, "'%.100s': cannot %s: %.80s", s->path, what, why);
}

/* ---- statements ---- */

int db_run(struct store *s, const char *sql, struct err *err)
{
	if (sqlite3_exec(s->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return db_failed(s, "write to it", err);
	return 0;
}

int db_prepare(struct store *s, const char *sql, sqlite3_stmt **ret, struct err *err)
{
	if (sqlite3_prepare_v3(s->db, sql, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL) !=
	    SQLITE_OK)
		return db_failed(s, "use its tables", err);
	return 0;
}

void db_bind_int(sqlite3_stmt *q, const char *name, int64_t v)
{
	int i = sqlite3_bind_parameter_index(q, name);

	if (i > 0)
		(void)sqlite3_bind_int64(q, i, v);
}

void db_bind_text(sqlite3_stmt *q, const char *name, errand_str v)
{
	int i = sqlite3_bind_parameter_index(q, name);
	size_t len = v.ptr && v.len == ERRAND_NUL ? strlen(v.ptr) : v.len;

	if (i > 0 && v.ptr)
		(void)sqlite3_bind_text64(q, i, v.ptr, len, SQLITE_STATIC, SQLITE_UTF8);
}

errand_str db_column_text(sqlite3_stmt *q, int column)
{
	const char *text = (const char *)sqlite3_column_text(q, column);

	return (errand_str){text, (size_t)sqlite3_column_bytes(q, column)};
}

int db_each(struct store *s, sqlite3_stmt *q, void (*row)(void *ud, sqlite3_stmt *q),
	    void *ud, struct err *err)
{
	int rc, result = 0;

	while ((rc = sqlite3_step(q)) == SQLITE_ROW)
		if (row)
			row(ud, q);
	if (rc != SQLITE_DONE)
		result = db_failed(s, "do what it was asked", err);
	(void)sqlite3_reset(q);
	(void)sqlite3_clear_bindings(q);
	return result;
}

static void take_int(void *ud, sqlite3_stmt *q)
{
	*(int64_t *)ud = sqlite3_column_int64(q, 0);
}

int64_t db_int(struct store *s, const char *sql)
{
	sqlite3_stmt *q = NULL;
	int64_t n = -1;

	if (db_prepare(s, sql, &q, NULL) != 0 || db_each(s, q, take_int, &n, NULL) != 0)
		n = -1;
	(void)sqlite3_finalize(q);
	return n;
}

/* ---- transactions ---- */

int db_transact(struct store *s, int (*fn)(void *ud, struct store *s, struct err *err),
		void *ud, struct err *err)
{
	int rc = db_run(s, "BEGIN IMMEDIATE", err);

	if (rc != 0)
		return rc;
	rc = fn(ud, s, err);
	if (rc == 0)
		rc = db_run(s, "COMMIT", err);
	/* A few failures have ended the transaction already. */
	if (rc != 0 && !sqlite3_get_autocommit(s->db))
		(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}
