/* SPDX-License-Identifier: MIT */
/*
 * The store on a disk that fails and in a process that is killed, at each of its writes in
 * turn: what was acknowledged is there, no batch is there by half, and the same batch can be
 * committed again.
 */
#include "store.h"

#include <errno.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "store/internal.h"

#define ROWS 5 /* agents in a batch, beside one entry of the audit */

/* ---- the disk, in front of the real one: these are what SQLite calls ---- */

static struct {
	int at;      /* the so-manieth write from now fails; 0: none */
	int lasting; /* and all after it */
	int errnum;  /* with this; 0: the process is killed instead */
	int seen;    /* writes since */
	bool is_hit;
} disk;

static bool goes_wrong(void)
{
	disk.seen++;
	if (disk.at == 0 || disk.seen < disk.at || (disk.seen > disk.at && !disk.lasting))
		return false;
	disk.is_hit = true;
	errno = disk.errnum;
	return true;
}

#define VISIBLE __attribute__((visibility("default")))
VISIBLE ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at);
VISIBLE int ftruncate64(int fd, off64_t len);

ssize_t pwrite64(int fd, const void *data, size_t n, off64_t at)
{
	if (!goes_wrong())
		return syscall(SYS_pwrite64, fd, data, n, at);
	if (disk.errnum == 0) { /* half a write, and the end */
		(void)syscall(SYS_pwrite64, fd, data, n / 2, at);
		(void)kill(getpid(), SIGKILL);
	}
	return -1;
}

VISIBLE int fdatasync(int fd)
{
	if (!goes_wrong())
		return (int)syscall(SYS_fdatasync, fd);
	if (disk.errnum == 0)
		(void)kill(getpid(), SIGKILL);
	return -1;
}

int ftruncate64(int fd, off64_t len)
{
	if (!goes_wrong())
		return (int)syscall(SYS_ftruncate, fd, len);
	if (disk.errnum == 0)
		(void)kill(getpid(), SIGKILL);
	return -1;
}

static void disk_fails(int at, int errnum, int lasting)
{
	disk.at = at;
	disk.errnum = errnum;
	disk.lasting = lasting;
	disk.seen = 0;
	disk.is_hit = false;
}

/* Did it happen at all? */
static bool disk_works(void)
{
	disk.at = 0;
	return disk.is_hit;
}

/* ---- batches that can be counted ---- */

static void put_batch(int n)
{
	for (int i = 0; i < ROWS; i++)
		put_agent(n * ROWS + i + 1, "alice");
	store_put_audit(&st.batch,
			&(struct store_audit){
				.who = s_("w"), .door = s_("d"), .act = s_("a"), .at = n});
}

/* How many there are, none by half. */
static int batches(void)
{
	struct store_health h = health();

	CHECK_STR(h.problem, "");
	CHECK_INT(h.agents, h.audit * ROWS);
	return (int)h.audit;
}

/* A checkpoint with each commit, so that its writes are met too. */
static void open_busily(void)
{
	reopen();
	(void)sqlite3_wal_autocheckpoint(st.store->db, 1);
}

static const struct {
	int errnum, lasting;
} faults[] = {{ENOSPC, 0}, {ENOSPC, 1}, {EIO, 0}, {EIO, 1}, {EDQUOT, 1}};

#define each_fault(f) for (size_t f = 0; f < sizeof(faults) / sizeof(faults[0]); f++)

/* ---- a failing disk ---- */

/* False: the disk was never asked so often. */
static bool commit_fails_at(int n, int errnum, int lasting)
{
	int rc, facts;
	bool is_hit;

	fresh_store();
	open_busily();
	put_batch(0);
	must_commit();
	put_batch(1);
	facts = (int)st.batch.count;
	disk_fails(n, errnum, lasting);
	rc = commit();
	is_hit = disk_works();
	if (rc != 0) {
		CHECK(is_hit);
		CHECK_INT(rc, -ERR_SYS);
		CHECK_INT(st.err.errnum, errnum);
		CHECK(strstr(st.err.msg, strerror(st.err.errnum)) != NULL);
		CHECK(strstr(st.err.msg, st.folder) != NULL);
		CHECK_INT(st.batch.count, facts);
		CHECK_INT(batches(), 1);
		put_batch(2); /* a later one joins it */
		must_commit();
	}
	CHECK_INT(batches(), rc == 0 ? 2 : 3);
	reopen();
	CHECK(!st.note);
	CHECK_INT(batches(), rc == 0 ? 2 : 3);
	return is_hit;
}

TEST(every_write_of_a_commit_may_fail)
{
	each_fault(f)
	{
		int n = 1;

		while (commit_fails_at(n, faults[f].errnum, faults[f].lasting))
			n++;
		CHECK(n > 4);
	}
}

/* The same, but the host is killed after the failure. */
TEST(what_was_committed_before_a_failure_outlives_host_and_disk)
{
	each_fault(f)
	{
		for (int n = 1; n < 12; n++) {
			fresh_store();
			open_busily();
			put_batch(0);
			must_commit();
			put_batch(1);
			disk_fails(n, faults[f].errnum, faults[f].lasting);
			(void)commit();
			shut();
			(void)disk_works();
			store_batch_clear(&st.batch);
			reopen();
			CHECK(!st.note);
			CHECK(batches() >= 1);
		}
	}
}

static bool opening_fails_at(int n, int errnum, int lasting, bool is_new)
{
	int rc;
	bool is_hit;

	fresh_folder();
	if (!is_new) {
		reopen();
		put_batch(0);
		must_commit();
		shut();
	}
	disk_fails(n, errnum, lasting);
	rc = reopen_as(STORE_WRITE);
	is_hit = disk_works();
	if (rc != 0) {
		CHECK_INT(rc, -ERR_SYS);
		CHECK(st.err.errnum == errnum || st.err.errnum == EIO);
	}
	reopen();
	CHECK(!st.note && !exists(STORE_FILE ".corrupt-1"));
	CHECK_INT(batches(), is_new ? 0 : 1);
	return is_hit;
}

TEST(every_write_of_an_opening_may_fail_and_nothing_is_taken_for_damage)
{
	each_fault(f)
	{
		for (int is_new = 0; is_new < 2; is_new++) {
			int n = 1;

			while (opening_fails_at(n, faults[f].errnum, faults[f].lasting,
						is_new))
				n++;
		}
	}
}

static int gone;

static void on_gone(void *ud, const char *uid)
{
	(void)ud;
	(void)uid;
	gone++;
}

static bool tidying_fails_at(int n, int errnum, int lasting)
{
	static const struct store_limits limits = {.history_tasks = 3};
	bool more = false, is_hit;

	fresh_store();
	open_busily();
	for (int i = 1; i <= 10; i++)
		put_past(i, i);
	must_commit();
	gone = 0;
	disk_fails(n, errnum, lasting);
	if (store_tidy(st.store, &limits, 0, on_gone, NULL, &more, &st.err) == 0)
		CHECK_INT(gone, 7);
	is_hit = disk_works();
	CHECK_INT(health().history, 10 - gone);
	CHECK(gone == 0 || gone == 7);
	reopen();
	CHECK_INT(health().history, 10 - gone);
	return is_hit;
}

TEST(a_run_folder_is_given_up_only_once_that_is_durable)
{
	each_fault(f)
	{
		int n = 1;

		while (tidying_fails_at(n, faults[f].errnum, faults[f].lasting))
			n++;
	}
}

/* ---- kill -9 ---- */

/* A process that commits batch after batch, one byte to @fd for each that is durable. */
static void commit_on_and_on(int fd, int first, int n, int dies_at)
{
	struct store *s = NULL;

	st.store = NULL;
	disk_fails(dies_at, 0, 0);
	if (store_open(st.folder, STORE_WRITE, &s, NULL, NULL) != 0)
		_exit(1);
	(void)sqlite3_wal_autocheckpoint(s->db, 4);
	for (int i = first; i < first + n; i++) {
		store_batch_clear(&st.batch);
		put_batch(i);
		if (store_commit(s, &st.batch, NULL) != 0 || write(fd, "x", 1) != 1)
			_exit(1);
	}
	store_close(s);
	_exit(0);
}

struct writer {
	pid_t pid;
	int fd;
};

static struct writer writer(int first, int n, int dies_at)
{
	int fds[2];
	struct writer w;

	CHECK_INT(pipe2(fds, O_CLOEXEC), 0);
	w.pid = fork();
	CHECK(w.pid >= 0);
	if (w.pid == 0)
		commit_on_and_on(fds[1], first, n, dies_at);
	(void)close(fds[1]);
	w.fd = fds[0];
	return w;
}

static int count_acknowledged(const struct writer *w, int at_most)
{
	int n = 0;
	char byte;

	while (n < at_most && read(w->fd, &byte, 1) == 1)
		n++;
	return n;
}

/* True: it was killed. */
static bool bury(const struct writer *w)
{
	int status = 0;

	(void)close(w->fd);
	CHECK_INT(waitpid(w->pid, &status, 0), w->pid);
	CHECK(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	return WIFSIGNALED(status);
}

static bool killed_at(int n, bool is_new)
{
	struct writer w;
	int acknowledged, found;
	bool is_killed;

	fresh_folder();
	if (!is_new) {
		reopen();
		shut();
	}
	w = writer(0, 6, n);
	acknowledged = count_acknowledged(&w, 6);
	is_killed = bury(&w);
	store_batch_clear(&st.batch);
	reopen();
	CHECK(!st.note);
	found = batches();
	CHECK(found == acknowledged || found == acknowledged + 1);
	CHECK(is_killed || acknowledged == 6);
	put_batch(77);
	must_commit();
	CHECK_INT(batches(), found + 1);
	return is_killed;
}

TEST(killed_at_any_write_every_acknowledged_batch_is_there_and_none_by_half)
{
	int n = 1;

	while (killed_at(n, false))
		n++;
	CHECK(n > 20);
}

TEST(killed_at_any_write_of_its_first_opening_it_begins_anew)
{
	int n = 1;

	while (killed_at(n, true))
		n++;
	CHECK(n > 40);
}

TEST(killed_at_random_moments_nothing_acknowledged_is_ever_lost)
{
	const char *rounds = getenv("ROUNDS");
	long n = rounds ? strtol(rounds, NULL, 10) : 25;
	int there = 0;
	uint32_t seed = 7;

	fresh_store();
	shut();
	for (long i = 0; i < n; i++) {
		struct writer w = writer(there, 100000, 0);
		int seen, found;

		seed = seed * 1664525u + 1013904223u;
		seen = count_acknowledged(&w, (int)(seed >> 16) % 40);
		(void)kill(w.pid, SIGKILL);
		seen += count_acknowledged(&w, 100000);
		CHECK(bury(&w));
		reopen();
		CHECK(!st.note);
		found = batches();
		CHECK(found == there + seen || found == there + seen + 1);
		there = found;
		shut();
	}
	store_batch_clear(&st.batch);
}
