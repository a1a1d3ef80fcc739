/* SPDX-License-Identifier: MIT */
/*
 * schema.c - the tables. A step of schema_steps is never changed once it was released: a
 * later version adds one at the end, and a step only adds (tables, columns with a default,
 * indices), so that no row of an older errand is lost on the way.
 */
#include "store/internal.h"

/*
 * last: the highest ids ever given, also to what is gone by now.
 * task.rank: in which order ends came; of those that were told, in which they were told.
 * task.listed: 0 once the task has left the model's list and is history.
 * message.number: the order of arrival; .place: that of the list; .moved: the two may differ.
 */
static const char version_1[] =
	"CREATE TABLE last (one INTEGER PRIMARY KEY CHECK (one = 1), id INTEGER NOT NULL,"
	"  message INTEGER NOT NULL) STRICT;"
	"INSERT INTO last VALUES (1, 0, 0);"
	"CREATE TABLE counter (kind TEXT NOT NULL PRIMARY KEY, counter INTEGER NOT NULL)"
	"  STRICT, WITHOUT ROWID;"
	"CREATE TABLE agent (agent INTEGER PRIMARY KEY, session TEXT NOT NULL,"
	"  wakes INTEGER NOT NULL) STRICT;"
	"CREATE TABLE task (task INTEGER PRIMARY KEY, kind TEXT NOT NULL,"
	"  ordinal INTEGER NOT NULL, id TEXT AS (kind || '-' || ordinal),"
	"  label TEXT NOT NULL, agent INTEGER REFERENCES agent, session TEXT,"
	"  output_limit INTEGER, status TEXT NOT NULL, detail TEXT, output TEXT,"
	"  started INTEGER NOT NULL, finished INTEGER, stream INTEGER NOT NULL,"
	"  reported INTEGER NOT NULL, noticed INTEGER NOT NULL, told INTEGER NOT NULL,"
	"  cursor INTEGER NOT NULL, rank INTEGER, listed INTEGER NOT NULL DEFAULT 1) STRICT;"
	"CREATE INDEX task_id ON task (id);"
	"CREATE INDEX task_agent ON task (agent);"
	"CREATE INDEX task_session ON task (session);"
	"CREATE INDEX task_rank ON task (rank);"
	"CREATE TABLE message (number INTEGER PRIMARY KEY,"
	"  agent INTEGER NOT NULL REFERENCES agent ON DELETE CASCADE, id TEXT NOT NULL,"
	"  target TEXT NOT NULL, place INTEGER NOT NULL, moved INTEGER NOT NULL DEFAULT 0,"
	"  message TEXT NOT NULL, UNIQUE (agent, id)) STRICT;"
	"CREATE INDEX message_place ON message (agent, target, place);"
	"CREATE TABLE run (task INTEGER PRIMARY KEY, uid TEXT NOT NULL, boot TEXT NOT NULL,"
	"  bytes INTEGER NOT NULL) STRICT;"
	"CREATE TABLE session (name TEXT NOT NULL PRIMARY KEY, how TEXT NOT NULL,"
	"  seen INTEGER NOT NULL, pid INTEGER NOT NULL, ticks INTEGER NOT NULL, cwd TEXT)"
	"  STRICT, WITHOUT ROWID;"
	"CREATE TABLE request (number INTEGER PRIMARY KEY, nonce TEXT NOT NULL,"
	"  sequence INTEGER NOT NULL, at INTEGER NOT NULL, reply TEXT,"
	"  UNIQUE (nonce, sequence)) STRICT;"
	"CREATE TABLE audit (number INTEGER PRIMARY KEY, at INTEGER NOT NULL,"
	"  who TEXT NOT NULL, door TEXT NOT NULL, act TEXT NOT NULL, task TEXT,"
	"  detail TEXT) STRICT;"
	"CREATE INDEX audit_task ON audit (task);"
	"PRAGMA user_version = 1;";

/* run.reason: why its end was asked for first. */
static const char version_2[] = "ALTER TABLE run ADD COLUMN reason TEXT;"
				"PRAGMA user_version = 2;";

const char *const schema_steps[STORE_VERSION] = {version_1, version_2};

static int take_step(void *ud, struct store *s, struct err *err)
{
	return db_run(s, ud, err);
}

int schema_migrate(struct store *s, const char *const *steps, int n, struct err *err)
{
	int64_t version = db_int(s, "PRAGMA user_version");
	int rc = 0;

	if (version < 0)
		return db_failed(s, "read its version", err);
	for (int from = (int)version; rc == 0 && from < n; from++)
		rc = db_transact(s, take_step, (void *)(uintptr_t)steps[from], err);
	return rc;
}
