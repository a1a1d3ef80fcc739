/* SPDX-License-Identifier: MIT */
/*
 * Tests of src/store/open.c and aside.c: what lies there is ours and sound, or is left alone,
 * or is kept under another name; and two that come at once.
 */
#include "store.h"

#include <errno.h>
#include <sys/wait.h>

#include "store/internal.h"

static char bytes[MIB(4)], again[MIB(4)];

/* A store with something in it, closed in good order. */
static void closed_store(void)
{
	fresh_store();
	put_agent(1, "alice");
	for (int i = 2; i < 400; i++)
		put_task(i, 1, "running", 0);
	must_commit();
	shut();
}

static void check_was_replaced(const char *why)
{
	char expected[512];

	(void)snprintf(expected, sizeof(expected), "the database was damaged (%s", why);
	CHECK(st.note && begins(st.note, expected));
	CHECK(strstr(st.note, "errand.db.corrupt-1'") != NULL);
	CHECK_INT(health().listed, 0);
	put_agent(1, "bob");
	must_commit();
	reopen();
	CHECK(!st.note);
	CHECK_INT(health().agents, 1);
}

/* ---- a new one, and permissions ---- */

TEST(a_new_one_is_private_and_leaves_no_scraps)
{
	static const char *const names[] = {STORE_FILE, STORE_FILE "-wal",
					    STORE_FILE "-shm"};
	struct stat about;
	mode_t before = umask(0);

	fresh_store();
	(void)umask(before);
	put_agent(1, "alice");
	must_commit();
	for (size_t i = 0; i < 3; i++) {
		CHECK_INT(stat(in_folder(names[i]), &about), 0);
		CHECK_INT(about.st_mode & 07777, 0600);
	}
	shut();
	CHECK(!exists(STORE_FILE "-wal") && !exists(STORE_FILE "-shm"));
	CHECK(!exists(STORE_FILE ".new") && !exists(STORE_FILE ".new-journal"));
}

TEST(what_an_interrupted_beginning_left_is_in_nobodys_way)
{
	fresh_folder();
	write_whole(STORE_FILE ".new", "half", 4);
	write_whole(STORE_FILE ".new-journal", "half", 4);
	reopen();
	CHECK(!st.note && !exists(STORE_FILE ".new"));
}

TEST(every_setting_is_as_the_page_says)
{
	fresh_store();
	CHECK_INT(db_int(st.store, "PRAGMA synchronous"), 2);
	CHECK_INT(db_int(st.store, "PRAGMA foreign_keys"), 1);
	CHECK_INT(db_int(st.store, "PRAGMA trusted_schema"), 0);
	CHECK_INT(db_int(st.store, "PRAGMA mmap_size"), 0);
	CHECK_INT(db_int(st.store, "PRAGMA auto_vacuum"), 2);
	CHECK_INT(db_int(st.store, "PRAGMA busy_timeout"), STORE_BUSY_MS);
	CHECK_INT(db_int(st.store, "PRAGMA application_id"), STORE_APPLICATION);
}

static void refused(const char *why)
{
	CHECK_INT(reopen_as(STORE_WRITE), -ERR_STATE);
	CHECK(!st.store && !st.note);
	CHECK(strstr(st.err.msg, why) != NULL);
	CHECK(strstr(st.err.msg, st.folder) != NULL);
	CHECK(!exists(STORE_FILE ".corrupt-1"));
}

TEST(one_that_is_open_to_others_is_refused)
{
	closed_store();
	CHECK_INT(chmod(in_folder(STORE_FILE), 0640), 0);
	refused("'errand.db' is open to others (mode 0640): chmod 600 it");
	CHECK_INT(chmod(in_folder(STORE_FILE), 0600), 0);
	reopen();
}

TEST(one_of_another_user_is_refused)
{
	if (geteuid() != 0)
		skip();
	closed_store();
	CHECK_INT(chown(in_folder(STORE_FILE), 65534, 65534), 0);
	refused("belongs to uid 65534, not to us");
}

TEST(a_link_is_not_followed)
{
	static const char *const names[] = {STORE_FILE, STORE_FILE "-wal",
					    STORE_FILE "-shm"};

	for (size_t i = 0; i < 3; i++) {
		closed_store();
		(void)unlink(in_folder(names[i]));
		write_whole("elsewhere", "mine", 4);
		CHECK_INT(symlink("elsewhere", in_folder(names[i])), 0);
		refused("is a symbolic link; links are not followed");
		CHECK_INT(read_whole("elsewhere", bytes, sizeof(bytes)), 4);
	}
}

TEST(a_folder_that_is_a_link_is_not_followed)
{
	char link[300], folder[256];

	closed_store();
	(void)snprintf(link, sizeof(link), "%s-link", st.folder);
	CHECK_INT(symlink(st.folder, link), 0);
	(void)snprintf(folder, sizeof(folder), "%s", st.folder);
	(void)snprintf(st.folder, sizeof(st.folder), "%.240s", link);
	CHECK_INT(reopen_as(STORE_WRITE), -ERR_SYS);
	(void)unlink(link);
	(void)snprintf(st.folder, sizeof(st.folder), "%s", folder);
}

TEST(a_folder_above_may_be_a_link)
{
	char folder[256];

	closed_store();
	(void)snprintf(folder, sizeof(folder), "%s", st.folder);
	CHECK_INT(mkdir(in_folder("real"), 0700), 0);
	CHECK_INT(mkdir(in_folder("real/state"), 0700), 0);
	CHECK_INT(symlink("real", in_folder("way")), 0);
	(void)snprintf(st.folder, sizeof(st.folder), "%.200s/way/state", folder);
	reopen();
	CHECK_INT(health().listed, 0);
	shut();
	empty_folder();
	CHECK_INT(rmdir(st.folder), 0);
	(void)snprintf(st.folder, sizeof(st.folder), "%s", folder);
}

TEST(a_directory_in_its_place_is_refused)
{
	fresh_folder();
	CHECK_INT(mkdir(in_folder(STORE_FILE), 0700), 0);
	refused("'errand.db' is not a file");
}

TEST(a_folder_that_is_not_there_is_named)
{
	char folder[256];

	fresh_folder();
	(void)snprintf(folder, sizeof(folder), "%s", st.folder);
	(void)snprintf(st.folder, sizeof(st.folder), "/nonexistent/state");
	CHECK_INT(reopen_as(STORE_WRITE), -ERR_SYS);
	CHECK(begins(st.err.msg,
		     "state folder '/nonexistent/state': cannot use it: No such"));
	(void)snprintf(st.folder, sizeof(st.folder), "%s", folder);
}

/* ---- network file systems ---- */

TEST(network_file_systems_are_known_by_their_number)
{
	static const struct {
		uint32_t magic;
		const char *name;
	} rows[] = {
		{0x6969, "NFS"},
		{0xff534d42, "CIFS"},
		{0xfe534d42, "SMB"},
		{0x517b, "SMB"},
		{0x01021997, "9p"},
		{0x65735546, "FUSE"},
		{0x5346414f, "AFS"},
		{0x6b414653, "AFS"},
		{0x0bd00bd0, "Lustre"},
		{0x47504653, "GPFS"},
		{0x00c36400, "Ceph"},
		{0xef53, NULL},
		{0x58465342, NULL},
		{0x9123683e, NULL},
		{0x01021994, NULL},
		{0x794c7630, NULL},
		{0xf2f52010, NULL},
		{0x2fc12fc1, NULL},
		{0, NULL},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (rows[i].name)
			CHECK_STR(place_is_remote(rows[i].magic), rows[i].name);
		else
			CHECK(place_is_remote(rows[i].magic) == NULL);
	}
}

/* ---- not ours ---- */

static void untouched_and_refused(const char *why)
{
	size_t len = read_whole(STORE_FILE, bytes, sizeof(bytes));

	refused(why);
	CHECK_INT(read_whole(STORE_FILE, again, sizeof(again)), len);
	CHECK(memcmp(bytes, again, len) == 0);
	CHECK_INT(reopen_as(STORE_READ), -ERR_STATE);
}

TEST(a_database_of_another_program_is_refused_and_not_touched)
{
	fresh_folder();
	sql(STORE_FILE, "CREATE TABLE t (x); INSERT INTO t VALUES (1)");
	CHECK_INT(chmod(in_folder(STORE_FILE), 0600), 0);
	untouched_and_refused("is a database of another program; it was not touched");
}

TEST(a_database_of_a_newer_errand_is_refused_and_not_touched)
{
	closed_store();
	sql(STORE_FILE, "PRAGMA user_version = 3");
	untouched_and_refused("is of a newer errand (version 3, this one knows 2)");
}

/* A process that dies with its change in the log and not in the file. */
static void leave_a_log(const char *change)
{
	pid_t pid = fork();
	sqlite3 *db = NULL;
	int status = -1;

	if (pid == 0)
		_exit(sqlite3_open(in_folder(STORE_FILE), &db) != SQLITE_OK ||
		      sqlite3_exec(db, change, NULL, NULL, NULL) != SQLITE_OK);
	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK_INT(status, 0);
}

TEST(a_newer_errand_is_also_seen_in_the_log_which_stays_as_it_is)
{
	size_t len;

	closed_store();
	leave_a_log("PRAGMA user_version = 7");
	len = read_whole(STORE_FILE "-wal", bytes, sizeof(bytes));
	CHECK(len > 0);
	refused("is of a newer errand (version 7)");
	CHECK_INT(read_whole(STORE_FILE "-wal", again, sizeof(again)), len);
	CHECK(memcmp(bytes, again, len) == 0);
}

/* ---- damaged ---- */

TEST(what_is_no_database_is_kept_aside)
{
	static const char text[] =
		"dear diary, this is not a database at all, though it is "
		"longer than a header of one hundred bytes would be\n";

	fresh_folder();
	write_whole(STORE_FILE, text, sizeof(text));
	reopen();
	CHECK_INT(read_whole(STORE_FILE ".corrupt-1", bytes, sizeof(bytes)), sizeof(text));
	CHECK(memcmp(bytes, text, sizeof(text)) == 0);
	check_was_replaced("it is not a database");
}

TEST(an_empty_file_is_a_damaged_database)
{
	fresh_folder();
	write_whole(STORE_FILE, "", 0);
	reopen();
	check_was_replaced("it is not a database");
}

TEST(a_log_without_its_database_is_kept_aside)
{
	fresh_folder();
	write_whole(STORE_FILE "-wal", "log", 3);
	reopen();
	CHECK(exists(STORE_FILE ".corrupt-1-wal"));
	check_was_replaced("only its log is left");
}

TEST(the_log_of_a_damaged_one_goes_with_it)
{
	closed_store();
	write_whole(STORE_FILE, "nonsense", 8);
	write_whole(STORE_FILE "-wal", "log", 3);
	write_whole(STORE_FILE "-shm", "shm", 3);
	reopen();
	CHECK(exists(STORE_FILE ".corrupt-1-wal") && exists(STORE_FILE ".corrupt-1-shm"));
	check_was_replaced("it is not a database");
}

TEST(what_is_aside_is_never_written_over)
{
	fresh_folder();
	for (int i = 1; i <= 3; i++) {
		char name[64], text[8];

		(void)snprintf(text, sizeof(text), "old %d", i);
		write_whole(STORE_FILE, text, 5);
		reopen();
		(void)snprintf(name, sizeof(name), STORE_FILE ".corrupt-%d", i);
		CHECK(strstr(st.note, name) != NULL);
		CHECK_INT(read_whole(name, bytes, sizeof(bytes)), 5);
		CHECK(memcmp(bytes, text, 5) == 0);
		shut();
	}
}

TEST(a_table_that_is_missing_is_damage)
{
	closed_store();
	sql(STORE_FILE, "DROP TABLE message");
	reopen();
	check_was_replaced("'");
	CHECK(exists(STORE_FILE ".corrupt-1"));
}

TEST(a_database_that_is_cut_short_is_kept_aside)
{
	closed_store();
	for (off_t keep = 0; keep < 120000; keep += 4099) {
		closed_store();
		CHECK_INT(truncate(in_folder(STORE_FILE), keep), 0);
		reopen();
		CHECK(st.note || health().listed == 398);
		if (st.note)
			check_was_replaced("");
	}
}

/* Wherever bytes are turned: opened, or set aside; read, or refused as damaged; no crash. */
TEST(turned_bytes_do_no_more_than_damage)
{
	struct store_loader none = {0};
	uint32_t seed = 1;
	int sound = 0, aside = 0, foreign = 0;
	size_t len;

	closed_store();
	len = read_whole(STORE_FILE, bytes, sizeof(bytes));
	for (int i = 0; i < 60; i++) {
		fresh_folder();
		memcpy(again, bytes, len);
		for (int k = 0; k < 1 + i % 4; k++) {
			seed = seed * 1664525u + 1013904223u;
			again[(seed >> 4) % (i % 3 ? len : 100)] ^= (char)(1
									   << (seed >> 29));
		}
		write_whole(STORE_FILE, again, len);
		if (reopen_as(STORE_WRITE) != 0) {
			foreign++;
			continue;
		}
		if (store_load(st.store, &none, &st.err) != 0)
			CHECK_INT(st.err.code, ERR_FORMAT);
		*(st.note ? &aside : &sound) += 1;
	}
	CHECK(sound > 0 && aside > 0 && foreign > 0);
}

TEST(what_could_not_be_restored_is_set_aside)
{
	char *note = NULL;

	closed_store();
	CHECK_INT(store_set_aside(st.folder, "entry 3 cannot be", &note, &st.err), 0);
	CHECK(strstr(note, "damaged (entry 3 cannot be); it is kept as '") != NULL);
	CHECK(exists(STORE_FILE ".corrupt-1") && !exists(STORE_FILE));
	free(note);
	reopen();
	CHECK_INT(health().listed, 0);
}

/* ---- to look only ---- */

TEST(who_only_looks_makes_and_mends_nothing)
{
	fresh_folder();
	CHECK_INT(reopen_as(STORE_READ), -ERR_NOT_FOUND);
	CHECK(!exists(STORE_FILE));
	write_whole(STORE_FILE, "nonsense", 8);
	CHECK_INT(reopen_as(STORE_READ), -ERR_FORMAT);
	CHECK(exists(STORE_FILE) && !exists(STORE_FILE ".corrupt-1"));
}

TEST(who_only_looks_cannot_commit)
{
	closed_store();
	CHECK_INT(reopen_as(STORE_READ), 0);
	CHECK_INT(health().listed, 398);
	put_agent(9, "eve");
	CHECK_INT(commit(), -ERR_SYS);
	CHECK_INT(st.err.errnum, EROFS);
}

TEST(who_only_looks_sees_each_commit_of_the_writer)
{
	struct store *reader = NULL;
	struct store_health h;

	fresh_store();
	CHECK_INT(store_open(st.folder, STORE_READ, &reader, NULL, &st.err), 0);
	for (int i = 1; i < 5; i++) {
		put_agent(i, "alice");
		CHECK_INT(store_check(reader, &h, &st.err), 0);
		CHECK_INT(h.agents, i - 1);
		must_commit();
		CHECK_INT(store_check(reader, &h, &st.err), 0);
		CHECK_INT(h.agents, i);
	}
	store_close(reader);
}

/* ---- two at once ---- */

/* A child that opens the same folder and commits agents from @first on. */
static pid_t other_writer(int first, int n)
{
	pid_t pid = fork();
	struct store_batch b;
	struct store *s = NULL;
	int rc;

	if (pid != 0)
		return pid;
	rc = store_open(st.folder, STORE_WRITE, &s, NULL, NULL);
	store_batch_init(&b);
	for (int i = first; rc == 0 && i < first + n; i++) {
		char fact[96];
		int len = snprintf(fact, sizeof(fact),
				   "{\"fact\":\"agent\",\"agent\":%d,\"session\":\"s\","
				   "\"wakes\":0}",
				   i);

		store_put_fact(&b, fact, (size_t)len);
		rc = store_commit(s, &b, NULL);
		store_batch_clear(&b);
	}
	store_close(s);
	_exit(rc == 0 ? 0 : 1);
}

static void check_ended_well(pid_t pid)
{
	int status = -1;

	CHECK_INT(waitpid(pid, &status, 0), pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(two_that_come_at_once_share_one_new_database)
{
	pid_t a, b;

	for (int i = 0; i < 10; i++) {
		fresh_folder();
		a = other_writer(1, 20);
		b = other_writer(101, 20);
		check_ended_well(a);
		check_ended_well(b);
		reopen();
		CHECK(!st.note);
		CHECK_INT(health().agents, 40);
	}
}

TEST(two_that_find_a_damaged_one_set_it_aside_once)
{
	pid_t a, b;

	fresh_folder();
	write_whole(STORE_FILE, "nonsense", 8);
	a = other_writer(1, 5);
	b = other_writer(101, 5);
	check_ended_well(a);
	check_ended_well(b);
	reopen();
	CHECK_INT(health().agents, 10);
	CHECK(exists(STORE_FILE ".corrupt-1") && !exists(STORE_FILE ".corrupt-2"));
}

TEST(one_that_is_locked_for_long_is_busy_and_then_goes_on)
{
	sqlite3 *other = NULL;

	fresh_store();
	(void)sqlite3_busy_timeout(st.store->db, 1);
	CHECK_INT(sqlite3_open(in_folder(STORE_FILE), &other), SQLITE_OK);
	CHECK_INT(sqlite3_exec(other, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	put_agent(1, "alice");
	CHECK_INT(commit(), -ERR_STATE);
	CHECK_INT(st.err.errnum, EBUSY);
	CHECK_INT(st.batch.count, 1);
	CHECK_INT(sqlite3_exec(other, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
	must_commit();
	(void)sqlite3_close(other);
}

/* ---- versions ---- */

TEST(a_step_of_the_tables_is_whole_or_not_there)
{
	static const char *const steps[] = {
		NULL, NULL,
		"CREATE TABLE more (x INTEGER) STRICT; PRAGMA user_version = 3;",
		"CREATE TABLE most (x INTEGER) STRICT; PRAGMA user_version = 4; nonsense"};

	closed_store();
	reopen();
	CHECK(schema_migrate(st.store, steps, 4, &st.err) != 0);
	CHECK_INT(db_int(st.store, "PRAGMA user_version"), 3);
	CHECK_INT(
		db_int(st.store, "SELECT count(*) FROM sqlite_schema WHERE name = 'more'"),
		1);
	CHECK_INT(
		db_int(st.store, "SELECT count(*) FROM sqlite_schema WHERE name = 'most'"),
		0);
	CHECK_INT(health().listed, 398);
}

/* As the first version left it. */
static void closed_store_of_version_1(void)
{
	closed_store();
	sql(STORE_FILE, "ALTER TABLE run DROP COLUMN reason");
	sql(STORE_FILE, "PRAGMA user_version = 1");
}

TEST(a_database_of_the_first_version_is_brought_up_to_date_with_all_its_rows)
{
	closed_store_of_version_1();
	reopen();
	CHECK_INT(db_int(st.store, "PRAGMA user_version"), 2);
	CHECK_INT(health().listed, 398);
	CHECK_INT(db_int(st.store, "SELECT count(*) FROM run WHERE reason IS NULL"),
		  db_int(st.store, "SELECT count(*) FROM run"));
}

TEST(who_only_looks_reads_a_database_of_the_first_version_and_leaves_it_so)
{
	closed_store_of_version_1();
	CHECK_INT(reopen_as(STORE_READ), 0);
	CHECK_INT(db_int(st.store, "PRAGMA user_version"), 1);
}

/* ---- one that is taken away ---- */

TEST(one_that_was_not_taken_away_stays_as_it_is)
{
	struct store *before;

	fresh_store();
	before = st.store;
	CHECK_INT(store_keep_place(&st.store, &st.err), 0);
	CHECK(st.store == before);
}

TEST(one_that_was_taken_away_is_written_anew_and_goes_on)
{
	for (int i = 0; i < 3; i++) {
		fresh_store();
		put_agent(1, "alice");
		must_commit();
		CHECK_INT(unlink(in_folder("errand.db")), 0);
		if (i == 1)
			CHECK_INT(unlink(in_folder("errand.db-wal")), 0);
		if (i == 2)
			write_whole("errand.db", "something else", 14);
		CHECK_INT(store_keep_place(&st.store, &st.err), 1);
		CHECK_INT(exists("errand.db.corrupt-1"), i == 2);
		CHECK(!exists("errand.db.new"));
		put_agent(2, "bob");
		must_commit();
		CHECK_INT(db_int(st.store, "SELECT count(*) FROM agent"), 2);
		reopen();
		CHECK_INT(db_int(st.store, "SELECT count(*) FROM agent"), 2);
	}
}
