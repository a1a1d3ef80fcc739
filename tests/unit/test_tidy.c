/* SPDX-License-Identifier: MIT */
/* Tests of what src/host/journal.c tidies by itself, with a clock of the test's own. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "check.h"
#include "host/internal.h"
#include "host/journal.h"
#include "store/store.h"

#define HOUR_MS INT64_C(3600000)

static struct {
	char folder[64];
	struct host host;
	struct err err;
} w;

static void begin(void)
{
	(void)snprintf(w.folder, sizeof(w.folder), "/tmp/errand-test-XXXXXX");
	CHECK(mkdtemp(w.folder) != NULL);
	w.host = (struct host){.state = STATE_NONE,
			       .is_leaving = true}; /* it takes no turns */
	CHECK_INT(uv_loop_init(&w.host.loop), 0);
	CHECK_INT(state_open(&w.host.state, w.folder, &w.err), 0);
	CHECK_INT(journal_new(&w.host, &w.host.journal, &w.err), 0);
}

static void end(void)
{
	static const char *const names[] = {STORE_FILE, STORE_FILE "-wal",
					    STORE_FILE "-shm", STATE_LOCK};

	journal_free(w.host.journal);
	CHECK_INT(uv_loop_close(&w.host.loop), 0);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		(void)unlinkat(w.host.state.folder_fd, names[i], 0);
	CHECK_INT(rmdir(w.folder), 0);
	state_close(&w.host.state);
}

/* Of 1970, and so too old at any time. */
static void add_requests(int n)
{
	struct store_batch batch;
	struct store *s = NULL;

	store_batch_init(&batch);
	for (int i = 0; i < n; i++)
		store_put_request(&batch, &(struct store_request){
						  .nonce = {"n", 1},
						  .sequence = i + 1,
						  .reply = {"{}", 2},
						  .at = 1,
					  });
	CHECK_INT(store_open(w.folder, STORE_WRITE, &s, NULL, &w.err), 0);
	CHECK_INT(store_commit(s, &batch, &w.err), 0);
	store_batch_release(&batch);
	store_close(s);
}

static int64_t requests(void)
{
	struct store_health health = {0};
	struct store *s = NULL;

	CHECK_INT(store_open(w.folder, STORE_READ, &s, NULL, &w.err), 0);
	CHECK_INT(store_check(s, &health, &w.err), 0);
	store_close(s);
	return health.requests;
}

static void tick(int64_t in_ms)
{
	journal_tick(w.host.journal, clock_mono_ms() + in_ms);
	(void)uv_run(&w.host.loop, UV_RUN_DEFAULT); /* until it is committed */
}

TEST(what_is_too_old_goes_once_an_hour_though_nothing_happens)
{
	begin();
	add_requests(3);
	tick(HOUR_MS - 60000);
	CHECK_INT(requests(), 3);
	tick(HOUR_MS);
	CHECK_INT(requests(), 0);
	add_requests(1);
	tick(2 * HOUR_MS - 60000);
	CHECK_INT(requests(), 1);
	tick(2 * HOUR_MS);
	CHECK_INT(requests(), 0);
	end();
}

TEST(an_hour_later_is_the_next_time_that_it_wants_to_be_asked)
{
	int64_t due;

	begin();
	due = journal_deadline(w.host.journal) - clock_mono_ms();
	CHECK(due > HOUR_MS - 60000 && due <= HOUR_MS);
	tick(HOUR_MS);
	due = journal_deadline(w.host.journal) - clock_mono_ms();
	CHECK(due > 2 * HOUR_MS - 60000 && due <= 2 * HOUR_MS);
	end();
}
