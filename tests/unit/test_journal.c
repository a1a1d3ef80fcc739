/* SPDX-License-Identifier: MIT */
/* Tests of src/core/journal.c and restore.c: nothing durable is lost, no notice is. */
#include "journal.h"

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

static errand_agent new_carol(void)
{
	struct errand_agent_options o = {
		.size = sizeof(o), .session = str("carol"), .wake = on_wake};
	errand_agent a = 0;

	CHECK_INT(errand_agent_new(core.host, &o, &a, NULL), 0);
	return a;
}

/* The program dies; a new one takes the whole journal. */
static void carol_comes_back(void)
{
	char *json = prefix(j.count);

	bare(NULL);
	CHECK_INT(restore(json), 0);
	free(json);
	CHECK_INT(errand_mount(core.host, 0, NULL, 0, &core.mount, NULL), 0);
	(void)new_carol();
	run();
}

TEST(d8_a_wake_that_was_lost_is_made_good)
{
	errand_agent carol;

	fresh_journal();
	carol = new_carol();
	end(start(carol, FINAL));
	CHECK_STR(logged(), "wake;");
	carol_comes_back();
	CHECK_STR(logged(), "wake;");
}

TEST(d8_a_notice_of_a_turn_that_died_wakes)
{
	errand_agent carol;

	fresh_journal();
	carol = new_carol();
	CHECK_INT(errand_turn_open(core.host, carol, NULL, NULL), 0);
	end(start(carol, FINAL));
	CHECK_STR(logged(), "");
	carol_comes_back();
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

/* ---- what was taken once is taken again ---- */

/* Another host with @config and @limits, from the whole journal. */
static void reborn_within(const char *config, const char *limits)
{
	struct errand_host_options o = {.size = sizeof(o),
					.abi = ERRAND_ABI,
					.config_json = str(config),
					.limits_json = str(limits),
					.warn = on_warn,
					.journal = on_fact};
	char *json = prefix(j.count);

	errand_host_free(core.host);
	CHECK_INT(errand_host_new(&o, &core.host, NULL), 0);
	CHECK_INT(restore(json), 0);
	free(json);
	run();
}

static void read_end(const struct work *w)
{
	errand_lease lease = 0;
	errand_text *json = NULL;

	CHECK_INT(
		errand_read(core.host, w->id, ERRAND_NUL, core.alice, &lease, &json, NULL),
		0);
	errand_text_free(json);
	CHECK_INT(errand_lease_commit(core.host, lease), 0);
}

TEST(an_owner_that_is_gone_has_nothing_to_be_dropped)
{
	struct work *a, *b;

	fresh_journal();
	a = start(core.alice, FINAL);
	b = start(core.alice, FINAL);
	end(a);
	end(b);
	read_end(a);
	read_end(b);
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	run();
	reborn_within("{\"maxFinishedTasksPerOwner\":1}", "{}");
	CHECK_INT(errand_agent_state(core.host, core.alice), ERRAND_DISPOSED);
}

TEST(an_agent_that_is_being_disposed_of_is_given_to_nobody)
{
	errand_agent before;

	fresh_journal();
	start(core.alice, FINAL);
	before = core.alice;
	reborn_within("{}", "{}");
	CHECK_INT(errand_agent_dispose(core.host, before, NULL, NULL, NULL, NULL), 0);
	CHECK(agent("alice") != before);
}

static void insert(const char *json)
{
	CHECK_INT(errand_insert(core.host, core.alice, ERRAND_NEXT_STEP, json, ERRAND_NUL,
				NULL, NULL),
		  0);
}

TEST(a_message_comes_back_as_it_was_written)
{
	static const char odd[] =
		"[12345678901234567890, -0,1.50,\"\\u007f\",\"\\ud83d\\ude00\"]";
	char json[200];

	fresh_journal();
	(void)snprintf(json, sizeof(json), "{\"role\":\"user\",\"content\":%s}", odd);
	insert(json);
	reborn_within("{}", "{}");
	CHECK(strstr(inbox(core.alice), odd) != NULL);
}

TEST(a_message_as_long_as_may_be_comes_back)
{
	char json[1025];

	fresh_journal();
	reborn_within("{}", "{\"argsBytes\":1024}");
	(void)snprintf(json, sizeof(json), "{\"role\":\"user\",\"content\":[\"%994s\"]}",
		       "x");
	CHECK_INT(strlen(json), 1024); /* and an id is added */
	insert(json);
	reborn_within("{}", "{\"argsBytes\":1024}");
	CHECK(strstr(inbox(core.alice), " x\"]") != NULL);
}

TEST(a_message_as_deep_as_may_be_comes_back)
{
	char json[2 * MAX_JSON_NESTING + 50];

	fresh_journal();
	(void)snprintf(json, sizeof(json), "{\"role\":\"user\",\"content\":%s}",
		       nested(MAX_JSON_NESTING - 1));
	insert(json);
	reborn_within("{}", "{\"nesting\":16}"); /* what is lowered is for what is new */
	CHECK_INT(times(inbox(core.alice), "\"content\":[[["), 1);
}

TEST(an_agent_that_came_back_has_no_place_below_itself)
{
	struct errand_agent_options o = {.size = sizeof(o), .session = str("alice")};
	errand_scope below;
	errand_error *e = NULL;
	errand_agent a;
	errand_reg binding;

	fresh_journal();
	reborn_within("{}", "{}");
	CHECK_INT(errand_scope_new(core.host, &below, NULL), 0);
	CHECK_INT(errand_scope_bind(core.host, below, core.alice, &binding, NULL), 0);
	o.scope = below;
	CHECK_INT(errand_agent_new(core.host, &o, &a, &e), ERRAND_EREFUSED);
	CHECK_STR(message(e), "dsh-scope: scope parent link would form a cycle");
	o.scope = 0;
	CHECK_INT(errand_agent_new(core.host, &o, &a, NULL), 0);
	CHECK(a == core.alice);
}
