/* SPDX-License-Identifier: MIT */
/* check.c - how the database is, for a doctor. */
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "store/internal.h"

struct word {
	char *text;
	size_t size;
};

static void take_word(void *ud, sqlite3_stmt *q)
{
	const struct word *w = ud;
	const char *text = (const char *)sqlite3_column_text(q, 0);

	(void)snprintf(w->text, w->size, "%s", text ? text : "");
}

static int word(struct store *s, const char *sql, char *ret, size_t size, struct err *err)
{
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(s, sql, &q, err);

	if (rc == 0)
		rc = db_each(s, q, take_word, &(struct word){ret, size}, err);
	(void)sqlite3_finalize(q);
	return rc;
}

static void look_at_disk(const struct store *s, struct store_health *h)
{
	struct statvfs disk;
	struct stat st;
	struct buf log = BUF_INIT(KIB(8));

	(void)buf_addf(&log, "%s-wal", s->path);
	if (statvfs(s->path, &disk) == 0)
		h->disk_free = (int64_t)disk.f_bavail * (int64_t)disk.f_frsize;
	if (stat(buf_text(&log), &st) == 0)
		h->log_bytes = st.st_size;
	buf_release(&log);
}

int store_check(struct store *s, struct store_health *ret, struct err *err)
{
	struct store_health h = {0};
	int rc = word(s, "PRAGMA quick_check(1)", h.problem, sizeof(h.problem), err);

	if (rc == 0)
		rc = word(s, "PRAGMA journal_mode", h.journal, sizeof(h.journal), err);
	if (rc != 0)
		return rc;
	if (strcmp(h.problem, "ok") == 0)
		h.problem[0] = 0;
	h.version = db_int(s, "PRAGMA user_version");
	h.bytes = db_int(s, "PRAGMA page_count") * db_int(s, "PRAGMA page_size");
	h.unused_bytes = db_int(s, "PRAGMA freelist_count") * db_int(s, "PRAGMA page_size");
	h.live = db_int(s, "SELECT count(*) FROM task WHERE listed AND finished IS NULL");
	h.listed = db_int(s, "SELECT count(*) FROM task WHERE listed");
	h.history = db_int(s, "SELECT count(*) FROM task WHERE NOT listed");
	h.agents = db_int(s, "SELECT count(*) FROM agent");
	h.messages = db_int(s, "SELECT count(*) FROM message");
	h.sessions = db_int(s, "SELECT count(*) FROM session");
	h.requests = db_int(s, "SELECT count(*) FROM request");
	h.audit = db_int(s, "SELECT count(*) FROM audit");
	look_at_disk(s, &h);
	*ret = h;
	return 0;
}
