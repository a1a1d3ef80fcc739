/* SPDX-License-Identifier: MIT */
/* internal.h - what the files of the store share. */
#pragma once

#include <sqlite3.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/limits.h"
#include "store/store.h"

#define STORE_APPLICATION 0x45525244 /* "ERRD" */
#define STORE_VERSION 2
#define MAX_FACT_STATEMENTS 40

struct store {
	sqlite3 *db;
	char *path;
	struct stat file; /* what lay at @path when it was opened */
	/* One for each row of the table of facts (facts.c). */
	sqlite3_stmt *facts[MAX_FACT_STATEMENTS];
};

/* ---- db.c ---- */

/* What SQLite says went wrong while doing @what, as an err. */
int db_failed(const struct store *s, const char *what, struct err *err);
int db_run(struct store *s, const char *sql, struct err *err);
int db_prepare(struct store *s, const char *sql, sqlite3_stmt **ret, struct err *err);
/* Bind by name; a statement that has no such parameter is not concerned. */
void db_bind_int(sqlite3_stmt *q, const char *name, int64_t v);
void db_bind_text(sqlite3_stmt *q, const char *name, errand_str v); /* absent: NULL */
/* Call @row (NULL: there is none to see) for each row, then forget the row's values. */
int db_each(struct store *s, sqlite3_stmt *q, void (*row)(void *ud, sqlite3_stmt *q),
	    void *ud, struct err *err);
int64_t db_int(struct store *s, const char *sql); /* -1: it failed */
errand_str db_column_text(sqlite3_stmt *q, int column);
/* In one transaction; @fn's failure undoes it. */
int db_transact(struct store *s, int (*fn)(void *ud, struct store *s, struct err *err),
		void *ud, struct err *err);

/* ---- schema.c ---- */

/* Bring the tables from the version that they have to @n, one transaction for each step; the
 * folder is locked. */
int schema_migrate(struct store *s, const char *const *steps, int n, struct err *err);
extern const char *const schema_steps[STORE_VERSION];

/* ---- facts.c ---- */

int facts_prepare(struct store *s, struct err *err);
void facts_finalize(struct store *s);

/* ---- aside.c ---- */

int aside_move(int dir, const char *folder, const char *why, char **ret_note,
	       struct err *err);

/* ---- place.c ---- */

/* "NFS" ...; NULL: a file system on which a database can live. @magic as of statfs(2). */
const char *place_is_remote(uint32_t magic);
