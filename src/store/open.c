/* SPDX-License-Identifier: MIT */
/* open.c - find, judge, make and open the database. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/mem.h"
#include "store/internal.h"

#define NEW_FILE STORE_FILE ".new"

/* ---- what lies there ---- */

enum found {
	NOTHING,
	A_FILE,
	ONLY_A_LOG, /* the log of a database that is gone */
};

static int check_file(const struct stat *st, const char *name, struct err *err)
{
	if (S_ISLNK(st->st_mode))
		return err_set(err, ERR_STATE,
			       "'%s' is a symbolic link; links are not followed", name);
	if (!S_ISREG(st->st_mode))
		return err_set(err, ERR_STATE, "'%s' is not a file", name);
	if (st->st_uid != geteuid())
		return err_set(err, ERR_STATE, "'%s' belongs to uid %u, not to us", name,
			       (unsigned)st->st_uid);
	if (st->st_mode & 077)
		return err_set(err, ERR_STATE,
			       "'%s' is open to others (mode %04o): chmod 600 it", name,
			       (unsigned)(st->st_mode & 07777));
	return 0;
}

/* 1: it is there, 0: it is not. */
static int look_at(int dir, const char *name, struct err *err)
{
	struct stat st;
	int rc;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0
				       : err_sys(err, errno, "cannot look at '%s'", name);
	rc = check_file(&st, name, err);
	return rc < 0 ? rc : 1;
}

static int find(int dir, enum found *ret, struct err *err)
{
	int file = look_at(dir, STORE_FILE, err);
	int log = file < 0 ? file : look_at(dir, STORE_FILE "-wal", err);
	int shm = log < 0 ? log : look_at(dir, STORE_FILE "-shm", err);

	if (shm < 0)
		return shm;
	*ret = file ? A_FILE : log || shm ? ONLY_A_LOG : NOTHING;
	return 0;
}

static int check_place(int dir, struct err *err)
{
	struct statfs fs;
	const char *name;

	if (fstatfs(dir, &fs) < 0)
		return err_sys(err, errno, "cannot look at its file system");
	name = place_is_remote((uint32_t)fs.f_type);
	if (name)
		return err_set(
			err, ERR_STATE,
			"it lies on %s, where a database is not safe: give a folder on a "
			"local disk with --state or ERRAND_STATE",
			name);
	return 0;
}

/* ---- a connection ---- */

static uint32_t big_endian(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/*
 * The first bytes of the file tell whose it is, before SQLite does anything with it. They are
 * read through SQLite: a descriptor of ours, once closed, would take its locks along.
 */
static int check_header(struct store *s, struct err *err)
{
	uint8_t header[100];
	sqlite3_file *f = NULL;
	uint32_t version;

	(void)sqlite3_file_control(s->db, "main", SQLITE_FCNTL_FILE_POINTER, (void *)&f);
	if (!f || !f->pMethods)
		return err_set(err, ERR_FORMAT, "it cannot be read");
	if (f->pMethods->xRead(f, header, sizeof(header), 0) != SQLITE_OK ||
	    memcmp(header, "SQLite format 3", 16) != 0)
		return err_set(err, ERR_FORMAT, "it is not a database");
	if (big_endian(header + 68) != STORE_APPLICATION)
		return err_set(
			err, ERR_STATE,
			"'%.150s' is a database of another program; it was not touched",
			s->path);
	version = big_endian(header + 60);
	if (version > STORE_VERSION)
		return err_set(
			err, ERR_STATE,
			"'%.100s' is of a newer errand (version %u, this one knows %d): "
			"use that; nothing was touched",
			s->path, version, STORE_VERSION);
	return 0;
}

static void harden(sqlite3 *db)
{
	static const int on[] = {SQLITE_DBCONFIG_DEFENSIVE, SQLITE_DBCONFIG_ENABLE_FKEY};
	static const int off[] = {
		SQLITE_DBCONFIG_TRUSTED_SCHEMA, SQLITE_DBCONFIG_DQS_DDL,
		SQLITE_DBCONFIG_DQS_DML,        SQLITE_DBCONFIG_ENABLE_VIEW,
		SQLITE_DBCONFIG_ENABLE_TRIGGER, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION};

	for (size_t i = 0; i < sizeof(on) / sizeof(on[0]); i++)
		(void)sqlite3_db_config(db, on[i], 1, NULL);
	for (size_t i = 0; i < sizeof(off) / sizeof(off[0]); i++)
		(void)sqlite3_db_config(db, off[i], 0, NULL);
	(void)sqlite3_extended_result_codes(db, 1);
	(void)sqlite3_busy_timeout(db, STORE_BUSY_MS);
}

static int connect(const char *path, int flags, struct store **ret, struct err *err)
{
	struct store *s = mem_new(NULL, sizeof(*s));

	*ret = s;
	s->path = mem_dup(NULL, path, strlen(path));
	if (sqlite3_open_v2(path, &s->db,
			    flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW |
				    SQLITE_OPEN_EXRESCODE,
			    NULL) != SQLITE_OK)
		return db_failed(s, "open it", err);
	harden(s->db);
	return 0;
}

void store_close(struct store *s)
{
	if (!s)
		return;
	facts_finalize(s);
	(void)sqlite3_close(s->db);
	mem_free(NULL, s->path);
	mem_free(NULL, s);
}

/* ---- a new one ---- */

static int make_tables(struct store *s, struct err *err)
{
	int rc = db_run(s,
			"PRAGMA auto_vacuum = INCREMENTAL;" /* before anything is written */
			"PRAGMA application_id = 0x45525244;"
			"PRAGMA synchronous = FULL",
			err);

	if (rc == 0)
		rc = schema_migrate(s, schema_steps, STORE_VERSION, err);
	return rc == 0 ? db_run(s, "PRAGMA journal_mode = WAL", err) : rc;
}

static void remove_new(int dir)
{
	static const char *const left[] = {NEW_FILE, NEW_FILE "-journal", NEW_FILE "-wal",
					   NEW_FILE "-shm"};

	for (size_t i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		(void)unlinkat(dir, left[i], 0);
}

/* Under another name until it is whole: a short errand.db is always a damaged one. */
static int make_new(int dir, const char *path, struct err *err)
{
	autobuf struct buf name = BUF_INIT(PATH_MAX);
	struct store *s = NULL;
	autoclose int fd = -1;
	int rc;

	remove_new(dir);
	(void)buf_addf(&name, "%s.new", path);
	fd = openat(dir, NEW_FILE, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return err_sys(err, errno, "cannot make '%s'", NEW_FILE);
	rc = connect(buf_text(&name), SQLITE_OPEN_READWRITE, &s, err);
	if (rc == 0)
		rc = make_tables(s, err);
	store_close(s);
	if (rc == 0 && renameat2(dir, NEW_FILE, dir, STORE_FILE, RENAME_NOREPLACE) < 0)
		rc = err_sys(err, errno, "cannot make '%s'", STORE_FILE);
	if (rc == 0 && fsync(dir) < 0)
		rc = err_sys(err, errno, "cannot make '%s' durable", STORE_FILE);
	remove_new(dir);
	return rc;
}

/* ---- opening ---- */

/* What must be so before anything is believed; a damaged database is -ERR_FORMAT. */
static int judge(struct store *s, struct err *err)
{
	struct store_health h;
	int rc = store_check(s, &h, err);

	if (rc == 0 && h.problem[0])
		rc = err_set(err, ERR_FORMAT, "%.150s", h.problem);
	if (rc == 0 && h.version > STORE_VERSION)
		rc = err_set(err, ERR_STATE, "'%.100s' is of a newer errand (version %d)",
			     s->path, (int)h.version);
	return rc;
}

static int settle_in(struct store *s, enum store_mode mode, struct err *err)
{
	int rc = db_run(s,
			"PRAGMA synchronous = FULL; PRAGMA mmap_size = 0;"
			"PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;"
			"PRAGMA journal_size_limit = 4194304",
			err);

	if (rc == 0)
		rc = judge(s, err);
	if (rc == 0 && mode == STORE_WRITE)
		rc = db_run(s, "PRAGMA journal_mode = WAL", err);
	if (rc == 0 && mode == STORE_WRITE)
		rc = schema_migrate(s, schema_steps, STORE_VERSION, err);
	/* Who only looks may see tables of an older version, and commits nothing. */
	return rc == 0 && mode == STORE_WRITE ? facts_prepare(s, err) : rc;
}

static int open_file(const char *path, enum store_mode mode, struct store **ret,
		     struct err *err)
{
	struct store *s = NULL;
	int rc = connect(path,
			 mode == STORE_WRITE ? SQLITE_OPEN_READWRITE : SQLITE_OPEN_READONLY,
			 &s, err);

	if (rc == 0)
		rc = check_header(s, err);
	if (rc == 0)
		rc = settle_in(s, mode, err);
	if (rc != 0) {
		/* What is not ours is left as it is, its log too. */
		(void)sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
		store_close(s);
		return rc;
	}
	(void)stat(path, &s->file);
	*ret = s;
	return 0;
}

static int open_found(int dir, const char *path, enum store_mode mode, struct store **ret,
		      struct err *err)
{
	enum found found = NOTHING;
	int rc = find(dir, &found, err);

	if (rc != 0)
		return rc;
	if (found == ONLY_A_LOG)
		return err_set(err, ERR_FORMAT, "only its log is left");
	if (found == NOTHING && mode == STORE_READ)
		return err_set(err, ERR_NOT_FOUND, "there is no '%s'", STORE_FILE);
	if (found == NOTHING)
		rc = make_new(dir, path, err);
	return rc == 0 ? open_file(path, mode, ret, err) : rc;
}

static int open_or_replace(int dir, const char *folder, enum store_mode mode,
			   struct store **ret, char **ret_note, struct err *err)
{
	autobuf struct buf path = BUF_INIT(PATH_MAX);
	struct err why = {0};
	int rc;

	if (buf_addf(&path, "%s/" STORE_FILE, folder) != 0)
		return err_set(err, ERR_LIMIT, "its path is too long");
	rc = open_found(dir, buf_text(&path), mode, ret, &why);
	if (rc == -ERR_FORMAT && mode == STORE_WRITE) {
		rc = aside_move(dir, folder, why.msg, ret_note, &why);
		if (rc == 0)
			rc = open_found(dir, buf_text(&path), mode, ret, &why);
	}
	if (rc != 0 && err)
		*err = why;
	return rc;
}

/*
 * The lock is held while a database is judged, made or moved: two that come at once do not
 * do that to each other.
 */
static int open_folder(const char *folder, int *ret_dir, char **ret_path, struct err *err)
{
	autoclose int dir = open(folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	int rc;

	if (dir < 0)
		return err_sys(err, errno, "cannot use it");
	rc = check_place(dir, err);
	if (rc != 0)
		return rc;
	/* SQLite takes no path with a link in it. */
	*ret_path = realpath(folder, NULL);
	if (!*ret_path)
		return err_sys(err, errno, "cannot use it");
	while (flock(dir, LOCK_EX) < 0)
		if (errno != EINTR)
			return err_sys(err, errno, "cannot lock it");
	*ret_dir = take_fd(&dir);
	return 0;
}

int store_open(const char *folder, enum store_mode mode, struct store **ret,
	       char **ret_note, struct err *err)
{
	autoclose int dir = -1;
	autofree char *real = NULL;
	int rc;

	if (ret_note)
		*ret_note = NULL;
	rc = open_folder(folder, &dir, &real, err);
	if (rc == 0)
		rc = open_or_replace(dir, real, mode, ret, ret_note, err);
	return rc == 0 ? 0 : err_wrap(err, "state folder '%.100s'", folder);
}

int store_set_aside(const char *folder, const char *why, char **ret_note, struct err *err)
{
	autoclose int dir = -1;
	autofree char *real = NULL;
	int rc;

	if (ret_note)
		*ret_note = NULL;
	rc = open_folder(folder, &dir, &real, err);
	if (rc == 0)
		rc = aside_move(dir, real, why, ret_note, err);
	return rc == 0 ? 0 : err_wrap(err, "state folder '%.100s'", folder);
}

/* ---- a database that was taken away ---- */

static int write_anew(struct store *s, int dir, struct err *err)
{
	autobuf struct buf name = BUF_INIT(PATH_MAX);
	autoclose int fd = -1;
	sqlite3_stmt *q = NULL;
	int rc;

	remove_new(dir);
	(void)buf_addf(&name, "%s.new", s->path);
	fd = openat(dir, NEW_FILE, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW,
		    0600);
	if (fd < 0)
		return err_sys(err, errno, "cannot make '%s'", NEW_FILE);
	rc = db_prepare(s, "VACUUM INTO $to", &q, err);
	if (rc == 0) {
		db_bind_text(q, "$to", (errand_str){buf_text(&name), name.len});
		rc = db_each(s, q, NULL, NULL, err);
	}
	(void)sqlite3_finalize(q);
	if (rc == 0 && fsync(fd) < 0)
		rc = err_sys(err, errno, "cannot make '%s' durable", NEW_FILE);
	return rc;
}

/* Whatever lies in its place, a log of ours too, is not what was kept. */
static int put_back(int dir, const char *folder, struct err *err)
{
	struct stat st;
	int rc = 0;

	if (fstatat(dir, STORE_FILE, &st, AT_SYMLINK_NOFOLLOW) == 0)
		rc = aside_move(dir, folder, "it was put here while another was in use",
				NULL, err);
	(void)unlinkat(dir, STORE_FILE "-wal", 0);
	(void)unlinkat(dir, STORE_FILE "-shm", 0);
	if (rc == 0 && renameat2(dir, NEW_FILE, dir, STORE_FILE, RENAME_NOREPLACE) < 0)
		rc = err_sys(err, errno, "cannot make '%s'", STORE_FILE);
	return rc;
}

int store_keep_place(struct store **s, struct err *err)
{
	autofree char *folder = NULL, *real = NULL;
	autoclose int dir = -1;
	struct stat st;
	int rc;

	if (stat((*s)->path, &st) == 0 && st.st_ino == (*s)->file.st_ino &&
	    st.st_dev == (*s)->file.st_dev)
		return 0;
	folder = mem_dup(NULL, (*s)->path, strlen((*s)->path) - strlen("/" STORE_FILE));
	rc = open_folder(folder, &dir, &real, err);
	if (rc == 0)
		rc = write_anew(*s, dir, err);
	if (rc != 0)
		return rc;
	store_close(*s);
	*s = NULL;
	rc = put_back(dir, folder, err);
	if (rc == 0)
		rc = open_or_replace(dir, real, STORE_WRITE, s, NULL, err);
	return rc == 0 ? 1 : rc;
}
