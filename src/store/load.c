/* SPDX-License-Identifier: MIT */
/*
 * load.c - the tables as facts again, in an order in which errand_restore() takes them.
 */
#include "store/internal.h"

/*
 * Every listed task begins, in the order of their starts; then their ends come, in the order
 * in which they came or were told: what is owed is owed in that order, and of what was told
 * the oldest goes first. Messages come in the order of their arrival; then those that were
 * given back are put in their places, from the end on. Flags are JSON's own.
 */
#define FLAG(name) "'" #name "', json(iif(" #name ", 'true', 'false'))"
#define TASK                                                                               \
	"'fact', 'task', 'task', task, 'kind', kind, 'ordinal', ordinal, 'label', label, " \
	"'agent', agent, 'outputLimitBytes', output_limit, 'startedAt', started, "         \
	"'cursor', cursor, " FLAG(stream) ", " FLAG(reported) ", " FLAG(                   \
		noticed) ", " FLAG(told)

static const char *const facts[] = {
	"SELECT json_object('fact', 'counter', 'kind', kind, 'counter', counter)"
	" FROM counter",
	"SELECT json_object('fact', 'agent', 'agent', agent, 'session', session,"
	" 'wakes', wakes) FROM agent ORDER BY agent",
	"SELECT json_object(" TASK ", 'status', iif(finished IS NULL, status, 'running'))"
	" FROM task WHERE listed ORDER BY task",
	"SELECT json_object(" TASK ", 'status', status, 'detail', detail, 'output', output,"
	" 'finishedAt', finished)"
	" FROM task WHERE listed AND finished IS NOT NULL ORDER BY rank",
	"SELECT json_object('fact', 'message', 'agent', agent, 'target', target,"
	" 'message', json(message)) FROM message ORDER BY number",
	"SELECT json_object('fact', 'message-moved', 'agent', agent, 'id', id, 'before',"
	" (SELECT id FROM message AS n WHERE n.agent = m.agent AND n.target = m.target"
	" AND n.place > m.place ORDER BY n.place LIMIT 1))"
	" FROM message AS m WHERE moved ORDER BY agent, target, place DESC",
	/* Somebody who was given the last ids and left: so that nobody is given them again. */
	"SELECT json_object('fact', 'agent', 'agent', id + 1, 'session', '-', 'wakes', 0)"
	" FROM last",
	"SELECT json_object('fact', 'message', 'agent', id + 1, 'target', 'next-step',"
	" 'message', json_object('id', 'm' || message, 'role', 'user', 'content',"
	" json('[]'))) FROM last WHERE message > 0 AND NOT EXISTS"
	" (SELECT 1 FROM message AS m WHERE m.id = 'm' || last.message)",
	"SELECT json_object('fact', 'agent-gone', 'agent', id + 1) FROM last",
};

static void on_fact(void *ud, sqlite3_stmt *q)
{
	const struct store_loader *l = ud;
	errand_str text = db_column_text(q, 0);

	if (l->fact && text.ptr)
		l->fact(l->ud, text.ptr, text.len);
}

static void on_run(void *ud, sqlite3_stmt *q)
{
	const struct store_loader *l = ud;

	if (l->run)
		l->run(l->ud, &(struct store_run){
				      .task = (errand_task)sqlite3_column_int64(q, 0),
				      .uid = db_column_text(q, 1),
				      .boot = db_column_text(q, 2),
				      .bytes = sqlite3_column_int64(q, 3),
				      .kill_reason = db_column_text(q, 4),
				      .is_listed = sqlite3_column_int(q, 5) != 0,
			      });
}

static void on_session(void *ud, sqlite3_stmt *q)
{
	const struct store_loader *l = ud;

	if (l->session)
		l->session(l->ud, &(struct store_session){
					  .name = db_column_text(q, 0),
					  .how = db_column_text(q, 1),
					  .seen = sqlite3_column_int64(q, 2),
					  .pid = sqlite3_column_int64(q, 3),
					  .ticks = sqlite3_column_int64(q, 4),
					  .cwd = db_column_text(q, 5),
				  });
}

static void on_request(void *ud, sqlite3_stmt *q)
{
	const struct store_loader *l = ud;

	if (l->request)
		l->request(l->ud, &(struct store_request){
					  .nonce = db_column_text(q, 0),
					  .sequence = sqlite3_column_int64(q, 1),
					  .at = sqlite3_column_int64(q, 2),
					  .reply = db_column_text(q, 3),
				  });
}

static int each(struct store *s, const char *sql, void (*row)(void *ud, sqlite3_stmt *q),
		const struct store_loader *l, struct err *err)
{
	sqlite3_stmt *q = NULL;
	int rc = db_prepare(s, sql, &q, err);

	if (rc == 0)
		rc = db_each(s, q, row, (void *)(uintptr_t)l, err);
	(void)sqlite3_finalize(q);
	return rc;
}

static int load(struct store *s, const struct store_loader *l, struct err *err)
{
	int rc = each(s,
		      "SELECT task, uid, boot, bytes, reason, ifnull((SELECT listed FROM"
		      " task WHERE task.task = run.task), 0) FROM run",
		      on_run, l, err);

	if (rc == 0)
		rc = each(s, "SELECT name, how, seen, pid, ticks, cwd FROM session",
			  on_session, l, err);
	if (rc == 0)
		rc = each(s,
			  "SELECT nonce, sequence, at, reply FROM request ORDER BY number",
			  on_request, l, err);
	for (size_t i = 0; rc == 0 && i < sizeof(facts) / sizeof(facts[0]); i++)
		rc = each(s, facts[i], on_fact, l, err);
	return rc;
}

int store_load(struct store *s, const struct store_loader *l, struct err *err)
{
	int rc = db_run(s, "BEGIN", err);

	if (rc != 0)
		return rc;
	rc = load(s, l, err);
	(void)sqlite3_exec(s->db, "ROLLBACK", NULL, NULL, NULL);
	return rc;
}
