/* SPDX-License-Identifier: MIT */
/* Tests of src/core/journal.c and restore.c: nothing durable is lost, no notice is. */
#include "core.h"

#define MAX_FACTS 1024

static struct {
	char *facts[MAX_FACTS];
	size_t count;
	const char *refusal; /* adopt refuses with this */
	errand_lease leases[64];
	size_t open;
} j;

static void on_fact(void *ud, const char *json, size_t len)
{
	(void)ud;
	CHECK(j.count < MAX_FACTS);
	j.facts[j.count++] = strndup(json, len);
}

static void forget_journal(void)
{
	while (j.count > 0)
		free(j.facts[--j.count]);
	memset(&j, 0, sizeof(j));
}

/* A host that keeps a journal, from its first fact on. */
static void fresh_journal(void)
{
	forget_journal();
	fixture_journal = on_fact;
	fresh();
	fixture_journal = NULL;
}

static char *prefix(size_t n)
{
	struct buf b = BUF_INIT(MIB(1));
	size_t len;

	(void)buf_addc(&b, '[');
	for (size_t i = 0; i < n; i++) {
		(void)buf_adds(&b, i ? "," : "");
		(void)buf_adds(&b, j.facts[i]);
	}
	(void)buf_addc(&b, ']');
	return buf_take(&b, &len);
}

/* ---- the other host ---- */

static int adopt(void *ud, errand_host *h, errand_task t, const char *record, size_t len,
		 struct errand_producer *ret, errand_error *e)
{
	(void)ud;
	(void)h;
	(void)len;
	for (size_t i = 0; !j.refusal && i < core.works; i++) {
		struct errand_task_spec s;

		if (core.work[i].task != t)
			continue;
		s = spec(0, strstr(record, "\"stream\":true") ? STREAM : FINAL);
		*ret = s.producer;
		ret->ud = &core.work[i];
		return 0;
	}
	errand_error_set(e, NULL, NULL, j.refusal ? j.refusal : "unknown", ERRAND_NUL);
	return ERRAND_ECALLBACK;
}

static int restore(const char *json)
{
	errand_error *e = NULL;
	int rc = errand_restore(core.host, json, ERRAND_NUL, adopt, NULL, &e);

	(void)message(e);
	return rc;
}

/* A new host in the place of the old, with @n facts of its journal. */
static void reborn(size_t n)
{
	struct errand_host_options o = {
		.size = sizeof(o), .abi = ERRAND_ABI, .warn = on_warn};
	char *json = prefix(n);

	errand_host_free(core.host);
	CHECK_INT(errand_host_new(&o, &core.host, NULL), 0);
	CHECK_INT(restore(json), 0);
	free(json);
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
	core.bob = agent("bob");
	run();
}

static void reborn_whole(void)
{
	reborn(j.count);
}

/* All that can be seen of a host: records, bits, cursors, messages, counters. */
static char *dump(void)
{
	errand_agent op = operator_agent();
	struct buf b = BUF_INIT(MIB(1));
	errand_text *t = NULL;
	size_t len;

	CHECK_INT(errand_list(core.host, op, &t, NULL), 0);
	(void)buf_adds(&b, text_of(t));
	for (size_t i = 0; i < core.works; i++) {
		errand_lease l = 0;

		if (errand_read(core.host, core.work[i].id, ERRAND_NUL, op, &l, &t, NULL) !=
		    0)
			continue;
		(void)buf_adds(&b, text_of(t));
	}
	(void)buf_adds(&b, inbox(core.alice));
	(void)buf_adds(&b, inbox(core.bob));
	CHECK_INT(errand_agent_dispose(core.host, op, NULL, NULL, NULL, NULL), 0);
	run();
	return buf_take(&b, &len);
}

/* ---- one thing at a time ---- */

TEST(a_running_task_is_adopted_under_its_id)
{
	struct work *w;

	fresh_journal();
	w = start(core.alice, FINAL);
	reborn_whole();
	CHECK_STR(status_of(w), "running");
	end(w);
	CHECK_STR(status_of(w), "completed");
	CHECK_INT(notices(core.alice), 1);
}

TEST(a_task_that_nobody_adopts_is_lost_and_its_owner_told)
{
	struct work *w;

	fresh_journal();
	w = start(core.alice, FINAL);
	j.refusal = "the machine restarted";
	reborn_whole();
	CHECK_STR(status_of(w), "failed");
	CHECK_STR(member(snapshot(w, core.alice), "detail"), "lost: the machine restarted");
	CHECK_INT(notices(core.alice), 1);
}

TEST(without_adopt_all_are_lost)
{
	char *json;

	fresh_journal();
	(void)start(0, FINAL);
	json = prefix(j.count);
	bare(NULL);
	CHECK_INT(errand_restore(core.host, json, ERRAND_NUL, NULL, NULL, NULL), 0);
	free(json);
	(void)snprintf(core.work[0].id, sizeof(core.work[0].id), "bash-1");
	CHECK_INT(errand_kill(core.host, "bash-1", 6, 0, NULL, 0, NULL, NULL), 0);
	run();
	CHECK_STR(member(snapshot(&core.work[0], 0), "detail"),
		  "lost: nobody takes it over");
}

TEST(the_output_of_a_stream_is_read_on_where_delivery_ended)
{
	struct work *w;

	fresh_journal();
	w = start(core.alice, STREAM);
	emit(w, "one\n");
	CHECK_STR(output_of(w), "one\n[status: running]");
	emit(w, "two\n");
	end(w);
	reborn_whole();
	CHECK_STR(output_of(w), "two\n[status: completed]");
}

TEST(bytes_that_were_on_a_lease_are_unread_again)
{
	struct work *w;

	fresh_journal();
	w = start(core.alice, STREAM);
	emit(w, "one\n");
	core.fate = ERRAND_HELD;
	CHECK_STR(output_of(w), "one\n[status: running]");
	core.fate = ERRAND_DELIVERED;
	emit(w, "two\n");
	CHECK_STR(output_of(w), "two\n[status: running]");
	reborn_whole();
	CHECK_STR(output_of(w), "one\ntwo\n[status: running]");
}

TEST(an_end_that_was_on_a_lease_is_told_again)
{
	struct work *w;

	fresh_journal();
	w = start(core.alice, FINAL);
	core.fate = ERRAND_HELD;
	(void)wait_for_output(w, 1000);
	end(w);
	CHECK(is_reported(w));
	reborn_whole();
	CHECK(!is_reported(w));
	CHECK_INT(notices(core.alice), 1);
}

TEST(a_notice_that_was_claimed_is_pending_again)
{
	errand_text *t = NULL;
	errand_lease l = 0;

	fresh_journal();
	end(start(core.alice, FINAL));
	CHECK_INT(
		errand_claim(core.host, core.alice, ERRAND_CLAIM_NOTICES, 0, &l, &t, NULL),
		0);
	errand_text_free(t);
	reborn_whole();
	CHECK_INT(notices(core.alice), 1);
}

TEST(a_notice_that_was_delivered_is_not_sent_again)
{
	errand_text *t = NULL;
	errand_lease l = 0;

	fresh_journal();
	end(start(core.alice, FINAL));
	CHECK_INT(
		errand_claim(core.host, core.alice, ERRAND_CLAIM_NOTICES, 0, &l, &t, NULL),
		0);
	errand_text_free(t);
	CHECK_INT(errand_lease_commit(core.host, l), 0);
	reborn_whole();
	CHECK_INT(notices(core.alice), 0);
}

TEST(so_is_one_that_was_discarded)
{
	fresh_journal();
	end(start(core.alice, FINAL));
	CHECK_INT(errand_agent_cancel(core.host, core.alice, 0, NULL), 0);
	reborn_whole();
	CHECK_INT(notices(core.alice), 0);
}

/* As a store does that forgets what is gone. */
static void drop_facts_of_messages(void)
{
	size_t kept = 0;

	for (size_t i = 0; i < j.count; i++) {
		if (strstr(j.facts[i], "{\"fact\":\"message"))
			free(j.facts[i]);
		else
			j.facts[kept++] = j.facts[i];
	}
	j.count = kept;
}

TEST(a_store_may_forget_messages_that_are_gone)
{
	fresh_journal();
	end(start(core.alice, FINAL));
	CHECK_INT(errand_agent_cancel(core.host, core.alice, 0, NULL), 0);
	drop_facts_of_messages();
	reborn_whole();
	CHECK_INT(notices(core.alice), 0);
}

TEST(only_the_mount_hears_of_an_end_again)
{
	char *json;

	fresh_journal();
	(void)errand_unregister(core.host, core.mount);
	CHECK_INT(errand_surface(core.host, 0, "x", &core.mount, NULL), 0);
	end(start(core.alice, FINAL));
	json = prefix(j.count);
	bare(NULL);
	CHECK_INT(restore(json), 0);
	free(json);
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	(void)listen(ERRAND_ON_DONE, "done");
	core.alice = agent("alice");
	run();
	CHECK_STR(logged(), "");
	CHECK_INT(notices(core.alice), 1);
}

TEST(numbers_are_never_given_twice)
{
	struct work *w;

	fresh_journal();
	w = start(core.alice, FINAL);
	(void)kill_of(w);
	settle(w, ERRAND_KILLED, NULL, NULL);
	run();
	CHECK_INT(errand_task_drop(core.host, w->task, NULL), 0);
	reborn_whole();
	CHECK_STR(start(core.alice, FINAL)->id, "bash-2");
}

TEST(an_agent_keeps_its_id_and_its_tasks)
{
	errand_agent before;
	struct work *w;

	fresh_journal();
	before = core.alice;
	w = start(core.alice, FINAL);
	reborn_whole();
	CHECK_INT(core.alice, before);
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	CHECK_STR(logged(), "cancel(owner disposed);");
	end(w);
}

TEST(an_agent_that_was_disposed_of_does_not_come_back)
{
	errand_agent before;

	fresh_journal();
	before = core.alice;
	end(start(core.alice, FINAL));
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	run();
	reborn_whole();
	CHECK(core.alice != before);
}

static void on_wake(void *ud, errand_host *h, errand_agent a)
{
	(void)ud;
	(void)h;
	(void)a;
	logf_("wake;");
}

TEST(d8_a_wake_that_was_lost_is_made_good)
{
	struct errand_agent_options o = {
		.size = sizeof(o), .session = str("carol"), .wake = on_wake};
	errand_agent carol = 0;
	char *json;

	fresh_journal();
	CHECK_INT(errand_agent_new(core.host, &o, &carol, NULL), 0);
	end(start(carol, FINAL));
	CHECK_STR(logged(), "wake;");
	json = prefix(j.count);
	bare(NULL);
	CHECK_INT(restore(json), 0);
	free(json);
	CHECK_INT(errand_agent_new(core.host, &o, &carol, NULL), 0);
	run();
	CHECK_STR(logged(), "wake;");
}

/* ---- what cannot be ---- */

TEST(a_journal_comes_before_anything_else)
{
	fresh();
	CHECK_INT(restore("[]"), ERRAND_ESTATE);
	bare(NULL);
	CHECK_INT(restore("[]"), 0);
	CHECK_INT(restore("{}"), ERRAND_EJSON);
	CHECK_INT(restore("["), ERRAND_EJSON);
	CHECK_INT(errand_restore(core.host, NULL, 0, adopt, NULL, NULL), ERRAND_EARG);
}

TEST(a_damaged_journal_is_named)
{
	static const char *const bad[] = {
		"{}",
		"7",
		"{\"fact\":\"agent\",\"agent\":1}",
		"{\"fact\":\"agent-gone\",\"agent\":1}",
		"{\"fact\":\"counter\"}",
		"{\"fact\":\"task\",\"task\":1,\"status\":\"running\"}",
		"{\"fact\":\"task\",\"task\":1,\"kind\":\"k\",\"ordinal\":1,\"label\":\"l\"}",
		("{\"fact\":\"task\",\"task\":1,\"kind\":\"k\",\"ordinal\":1,\"label\":\"l\","
		 "\"status\":\"running\",\"agent\":7}"),
		"{\"fact\":\"drop\",\"task\":1}",
		"{\"fact\":\"reported\",\"task\":1}",
		"{\"fact\":\"noticed\",\"task\":1}",
		"{\"fact\":\"told\",\"task\":1}",
		"{\"fact\":\"cursor\",\"task\":1}",
		"{\"fact\":\"message\",\"agent\":1,\"message\":{}}",
		"{\"fact\":\"message-moved\",\"agent\":1,\"id\":\"m\"}",
		"{\"fact\":\"message-gone\",\"agent\":1,\"id\":\"m\"}",
	};
	char json[256];

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bare(NULL);
		(void)snprintf(json, sizeof(json),
			       "[{\"fact\":\"counter\",\"kind\":\"a\",\"counter\":3},%s]",
			       bad[i]);
		CHECK_INT(restore(json), ERRAND_EREFUSED);
		CHECK_STR(core.message,
			  "journal entry 1 cannot be: damaged, or out of order");
	}
}

/* ---- any schedule ---- */

static uint32_t seed;

static unsigned roll(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 16) % n;
}

static errand_agent someone(void)
{
	return roll(2) ? core.alice : core.bob;
}

static struct work *some_work(void)
{
	return core.works ? &core.work[roll((unsigned)core.works)] : NULL;
}

static void keep_lease(errand_lease l)
{
	if (l != 0)
		j.leases[j.open++] = l;
}

static void end_lease(void)
{
	errand_lease l;
	size_t i;

	if (j.open == 0)
		return;
	i = roll((unsigned)j.open);
	l = j.leases[i];
	j.leases[i] = j.leases[--j.open];
	(void)(roll(2) ? errand_lease_commit(core.host, l)
		       : errand_lease_return(core.host, l));
}

static void do_start(void)
{
	if (core.works < 8)
		(void)start(roll(5) ? someone() : 0, roll(2) ? STREAM : FINAL);
}

static void do_settle(void)
{
	const struct work *w = some_work();

	if (w)
		(void)errand_settle(core.host, w->task, ERRAND_COMPLETED, "d", 1, "out", 3);
}

static void do_emit(void)
{
	struct work *w = some_work();

	if (w && w->len < 400)
		emit(w, "line\n");
}

static void do_kill(void)
{
	const struct work *w = some_work();

	if (!w || roll(3))
		return;
	if (errand_kill(core.host, w->id, ERRAND_NUL, someone(), NULL, 0, NULL, NULL) != 0)
		return;
}

static void do_read(void)
{
	const struct work *w = some_work();
	errand_text *t = NULL;
	errand_lease l = 0;

	if (!w || j.open >= 60)
		return;
	if (errand_read(core.host, w->id, ERRAND_NUL, someone(), &l, &t, NULL) == 0)
		keep_lease(l);
	errand_text_free(t);
}

static void do_claim(void)
{
	errand_text *t = NULL;
	errand_lease l = 0;

	if (j.open >= 60)
		return;
	CHECK_INT(errand_claim(core.host, someone(), 1 + (int)roll(3), 0, &l, &t, NULL), 0);
	errand_text_free(t);
	keep_lease(l);
}

static void do_insert(void)
{
	static const char json[] = "{\"role\":\"user\",\"content\":[],\"source\":{\"kind\":"
				   "\"user\"}}";

	CHECK_INT(errand_insert(core.host, someone(), 1 + (int)roll(2), json, ERRAND_NUL,
				NULL, NULL),
		  0);
}

static void do_cancel(void)
{
	if (roll(4) == 0)
		CHECK_INT(errand_agent_cancel(core.host, someone(), 0, NULL), 0);
}

static void do_drop(void)
{
	const struct work *w = some_work();

	if (w && roll(3) == 0 && errand_task_drop(core.host, w->task, NULL) != 0)
		return;
}

static void schedule(void)
{
	static void (*const steps[])(void) = {
		do_start, do_start,  do_settle, do_emit,   do_kill, do_read, do_read,
		do_claim, do_insert, do_cancel, end_lease, do_drop, run,
	};

	for (int i = 0; i < 60; i++)
		steps[roll(sizeof(steps) / sizeof(steps[0]))]();
	while (j.open > 0)
		end_lease();
	run();
}

TEST(a_host_that_is_restored_equals_the_one_that_wrote)
{
	for (uint32_t s = 1; s <= 400; s++) {
		char *before, *after;

		seed = s;
		fresh_journal();
		schedule();
		before = dump();
		reborn_whole();
		after = dump();
		CHECK_STR(after, before);
		free(before);
		free(after);
	}
}

/* Of the first @n facts: the notice of @w was delivered or discarded. */
static bool was_dealt_with(const struct work *w, size_t n)
{
	char about[96], gone[96], id[32];

	(void)snprintf(about, sizeof(about), "\"task\":\"%s\"}", w->id);
	for (size_t i = 0; i < n; i++) {
		if (!strstr(j.facts[i], "\"fact\":\"message\"") ||
		    !strstr(j.facts[i], about))
			continue;
		(void)snprintf(id, sizeof(id), "%.20s",
			       strstr(j.facts[i], "\"message\":{\"id\":\"") + 17);
		*strchr(id, '"') = 0;
		(void)snprintf(gone, sizeof(gone), "\"id\":\"%s\"}", id);
		for (size_t k = i; k < n; k++)
			if (strstr(j.facts[k], "\"message-gone\"") &&
			    strstr(j.facts[k], gone))
				return true;
	}
	return false;
}

static void check_told(const struct work *w, errand_agent op, size_t n)
{
	errand_text *t = NULL;
	char about[96];
	const char *json;

	if (errand_get(core.host, w->id, ERRAND_NUL, op, &t, NULL) != 0)
		return; /* not begun at that point, or dropped */
	json = text_of(t);
	if (strstr(json, "\"reported\":true") || !strstr(json, "ownerSession"))
		return;
	CHECK(strstr(json, "\"status\":\"completed\"") != NULL);
	(void)snprintf(about, sizeof(about), "\"task\":\"%s\"}", w->id);
	if (!strstr(inbox(core.alice), about) && !strstr(inbox(core.bob), about))
		CHECK(was_dealt_with(w, n));
}

static void cut_at(size_t n)
{
	errand_agent op;

	reborn(n);
	op = operator_agent();
	for (size_t i = 0; i < core.works; i++)
		(void)errand_settle(core.host, core.work[i].task, ERRAND_COMPLETED, NULL, 0,
				    NULL, 0);
	run();
	for (size_t i = 0; i < core.works; i++)
		check_told(&core.work[i], op, n);
}

TEST(no_notice_is_lost_wherever_the_journal_is_cut)
{
	for (uint32_t s = 1; s <= 25; s++) {
		seed = s;
		fresh_journal();
		schedule();
		for (size_t n = 0; n <= j.count; n++)
			cut_at(n);
	}
}
