/* SPDX-License-Identifier: MIT */
/*
 * store.h - the fixture of the store's tests: a folder of its own, in memory where it can be
 * (they sync some ten thousand times), what a load gave as text, and a look into the database
 * beside the store. One test file includes it.
 */
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/limits.h"
#include "check.h"
#include "store/store.h"

#define UNUSED __attribute__((unused))

static struct {
	char folder[256];
	struct store *store;
	struct store_batch batch;
	char *note; /* of the last open */
	struct err err;
	struct buf shown; /* by the last load or look-up */
} st;

static UNUSED errand_str s_(const char *text)
{
	return (errand_str){text, ERRAND_NUL};
}

/* ---- files ---- */

static UNUSED const char *in_folder(const char *name)
{
	static char path[2][512];
	static int turn;

	turn = !turn;
	(void)snprintf(path[turn], sizeof(path[turn]), "%s/%s", st.folder, name);
	return path[turn];
}

static UNUSED bool exists(const char *name)
{
	struct stat about;

	return lstat(in_folder(name), &about) == 0;
}

static UNUSED size_t read_whole(const char *name, char *into, size_t size)
{
	int fd = open(in_folder(name), O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, into, size);

	if (fd >= 0)
		(void)close(fd);
	return n < 0 ? 0 : (size_t)n;
}

static UNUSED void write_whole(const char *name, const void *bytes, size_t len)
{
	int fd = open(in_folder(name), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	CHECK_INT(write(fd, bytes, len), len);
	(void)close(fd);
}

static UNUSED void empty_folder(void)
{
	DIR *dir = opendir(st.folder);
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    unlinkat(dirfd(dir), e->d_name, 0) < 0)
			(void)unlinkat(dirfd(dir), e->d_name, AT_REMOVEDIR);
	if (dir)
		(void)closedir(dir);
}

/* ---- the store ---- */

static UNUSED void shut(void)
{
	store_close(st.store);
	st.store = NULL;
}

static UNUSED void remove_folder(void)
{
	shut();
	store_batch_release(&st.batch);
	buf_release(&st.shown);
	free(st.note);
	st.note = NULL;
	empty_folder();
	(void)rmdir(st.folder);
}

static UNUSED int reopen_as(enum store_mode mode)
{
	shut();
	free(st.note);
	st.note = NULL;
	st.err = (struct err){0};
	return store_open(st.folder, mode, &st.store, &st.note, &st.err);
}

static UNUSED void reopen(void)
{
	if (reopen_as(STORE_WRITE) != 0)
		fail_msg("%s", st.err.msg);
}

/* A folder without anything in it. */
static UNUSED void fresh_folder(void)
{
	const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	static bool is_registered;

	if (!is_registered)
		(void)atexit(remove_folder);
	is_registered = true;
	if (st.folder[0]) {
		shut();
		empty_folder();
	} else {
		(void)snprintf(st.folder, sizeof(st.folder), "%s/errand-store-XXXXXX", tmp);
		CHECK(mkdtemp(st.folder) != NULL);
		buf_init(&st.shown, MIB(64));
		store_batch_init(&st.batch);
	}
	store_batch_clear(&st.batch);
}

static UNUSED void fresh_store(void)
{
	fresh_folder();
	reopen();
}

static UNUSED void put(const char *fact)
{
	store_put_fact(&st.batch, fact, strlen(fact));
}

static UNUSED int commit(void)
{
	int rc;

	st.err = (struct err){0};
	rc = store_commit(st.store, &st.batch, &st.err);
	if (rc == 0)
		store_batch_clear(&st.batch);
	return rc;
}

static UNUSED void must_commit(void)
{
	if (commit() != 0)
		fail_msg("%s", st.err.msg);
}

/* ---- what is in it ---- */

static void show_text(errand_str text)
{
	(void)buf_addc(&st.shown, ' ');
	if (text.ptr)
		(void)buf_add(&st.shown, text.ptr, text.len);
	else
		(void)buf_addc(&st.shown, '-');
}

static void on_run(void *ud, const struct store_run *r)
{
	(void)ud;
	(void)buf_addf(&st.shown, "run %d", (int)r->task);
	show_text(r->uid);
	show_text(r->boot);
	if (r->kill_reason.ptr)
		show_text(r->kill_reason);
	(void)buf_addf(&st.shown, " %d %s\n", (int)r->bytes,
		       r->is_listed ? "listed" : "past");
}

static void on_session(void *ud, const struct store_session *s)
{
	(void)ud;
	(void)buf_adds(&st.shown, "session");
	show_text(s->name);
	show_text(s->how);
	(void)buf_addf(&st.shown, " %d %d %d", (int)s->seen, (int)s->pid, (int)s->ticks);
	show_text(s->cwd);
	(void)buf_addc(&st.shown, '\n');
}

static void on_request(void *ud, const struct store_request *r)
{
	(void)ud;
	(void)buf_adds(&st.shown, "request");
	show_text(r->nonce);
	(void)buf_addf(&st.shown, " %d %d", (int)r->sequence, (int)r->at);
	show_text(r->reply);
	(void)buf_addc(&st.shown, '\n');
}

static void on_row(void *ud, const char *json, size_t len)
{
	(void)ud;
	(void)buf_add(&st.shown, json, len);
	(void)buf_addc(&st.shown, '\n');
}

/* All that a load gives, a line each. */
static UNUSED const char *loaded(void)
{
	struct store_loader l = {.run = on_run,
				 .session = on_session,
				 .request = on_request,
				 .fact = on_row};

	buf_clear(&st.shown);
	if (store_load(st.store, &l, &st.err) != 0)
		fail_msg("%s", st.err.msg);
	return buf_text(&st.shown);
}

static void on_fact_of_many(void *ud, const char *json, size_t len)
{
	struct buf *out = ud;

	(void)buf_adds(out, out->len > 1 ? "," : "");
	(void)buf_add(out, json, len);
}

/* The facts as errand_restore() takes them; to be freed. */
static UNUSED char *facts_of(struct store *s)
{
	struct buf out = BUF_INIT(MIB(64));
	struct store_loader l = {.fact = on_fact_of_many, .ud = &out};

	(void)buf_addc(&out, '[');
	if (store_load(s, &l, &st.err) != 0)
		fail_msg("%s", st.err.msg);
	(void)buf_addc(&out, ']');
	CHECK_INT(buf_error(&out), 0);
	return buf_take(&out, NULL);
}

static UNUSED const char *history(const struct store_filter *f)
{
	buf_clear(&st.shown);
	if (store_history(st.store, f, on_row, NULL, &st.err) != 0)
		fail_msg("%s", st.err.msg);
	return buf_text(&st.shown);
}

static UNUSED const char *audit_trail(const struct store_filter *f)
{
	buf_clear(&st.shown);
	if (store_audit_trail(st.store, f, on_row, NULL, &st.err) != 0)
		fail_msg("%s", st.err.msg);
	return buf_text(&st.shown);
}

static UNUSED bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

static UNUSED size_t lines(const char *text)
{
	size_t n = 0;

	for (; *text; text++)
		n += *text == '\n';
	return n;
}

static UNUSED struct store_health health(void)
{
	struct store_health h;

	if (store_check(st.store, &h, &st.err) != 0)
		fail_msg("%s", st.err.msg);
	return h;
}

/* SQL beside the store's back. */
static UNUSED void sql(const char *name, const char *text)
{
	sqlite3 *db = NULL;
	char *problem = NULL;

	CHECK_INT(sqlite3_open(in_folder(name), &db), SQLITE_OK);
	if (sqlite3_exec(db, text, NULL, NULL, &problem) != SQLITE_OK)
		fail_msg("%s", problem);
	(void)sqlite3_close(db);
}

/* The first value that a query beside the store's back gives. */
static UNUSED const char *text_from(const char *query)
{
	static char text[1024];
	sqlite3 *db = NULL;
	sqlite3_stmt *q = NULL;

	CHECK_INT(sqlite3_open(in_folder(STORE_FILE), &db), SQLITE_OK);
	CHECK_INT(sqlite3_prepare_v2(db, query, -1, &q, NULL), SQLITE_OK);
	CHECK_INT(sqlite3_step(q), SQLITE_ROW);
	(void)snprintf(text, sizeof(text), "%s", (const char *)sqlite3_column_text(q, 0));
	(void)sqlite3_finalize(q);
	(void)sqlite3_close(db);
	return text;
}

/* ---- facts ---- */

static UNUSED void put_agent(int agent, const char *session)
{
	char fact[128];

	(void)snprintf(fact, sizeof(fact),
		       "{\"fact\":\"agent\",\"agent\":%d,\"session\":\"%s\",\"wakes\":0}",
		       agent, session);
	put(fact);
}

/* Of kind bash, its ordinal its number; @agent 0: nobody's. It has ended if @status says so. */
static UNUSED void put_task(int task, int agent, const char *status, int finished)
{
	char fact[512], owner[32] = "", end[64] = "";

	if (agent)
		(void)snprintf(owner, sizeof(owner), "\"agent\":%d,", agent);
	if (finished)
		(void)snprintf(end, sizeof(end),
			       "\"finishedAt\":%d,\"detail\":\"exit code: 0\",", finished);
	(void)snprintf(
		fact, sizeof(fact),
		"{\"fact\":\"task\",\"task\":%d,\"kind\":\"bash\",\"ordinal\":%d,"
		"\"label\":\"make %d\",%s\"status\":\"%s\",%s\"startedAt\":%d,"
		"\"stream\":true,\"reported\":false,\"noticed\":false,\"told\":false,"
		"\"cursor\":0}",
		task, task, task, owner, status, end, task * 10);
	put(fact);
}

static UNUSED void put_about(const char *name, int task)
{
	char fact[64];

	(void)snprintf(fact, sizeof(fact), "{\"fact\":\"%s\",\"task\":%d}", name, task);
	put(fact);
}

/* A task that began, ended at @finished, was told and has left the list. */
static UNUSED void put_past(int task, int finished)
{
	struct store_run r = {.task = (errand_task)task, .boot = s_("boot"), .bytes = 1000};
	char uid[32];

	(void)snprintf(uid, sizeof(uid), "uid%d", task);
	r.uid = s_(uid);
	put_task(task, 0, "completed", finished);
	put_about("reported", task);
	put_about("drop", task);
	store_put_run(&st.batch, &r);
}
