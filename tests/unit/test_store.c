/* SPDX-License-Identifier: MIT */
/* Tests of src/store: what is committed comes back, is found, and goes when it is old. */
#include "store.h"

#include "base/json.h"

static const struct store_filter all = {0};

/* ---- batches ---- */

TEST(an_empty_batch_costs_nothing)
{
	fresh_store();
	CHECK(store_batch_is_empty(&st.batch));
	must_commit();
}

TEST(a_batch_that_was_not_committed_is_not_there)
{
	fresh_store();
	put_agent(1, "alice");
	reopen();
	CHECK_INT(health().agents, 0);
	must_commit();
	reopen();
	CHECK_INT(health().agents, 1);
}

TEST(a_fact_that_cannot_be_undoes_the_whole_batch_and_is_named)
{
	static const char *const bad[] = {
		"{\"fact\":\"agent\",\"agent\":2}",
		"{\"fact\":\"nonsense\"}",
		"{\"fact\":\"task\",\"task\":1,\"agent\":77}",
		"{}",
		"[]",
		"7",
		"{\"fact\":",
		"{\"fact\":\"counter\",\"kind\":7.5,\"counter\":\"x\"}",
	};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		fresh_store();
		put_agent(1, "alice");
		put(bad[i]);
		CHECK_INT(commit(), -ERR_ARG);
		CHECK(strstr(st.err.msg, "fact 1 ({") || strstr(st.err.msg, "fact 1 (7") ||
		      strstr(st.err.msg, "fact 1 ([]"));
		CHECK_INT(st.batch.count, 2);
		CHECK_INT(health().agents, 0);
	}
}

TEST(a_batch_behind_a_failed_one_goes_with_it_in_their_order)
{
	struct store_batch later;

	fresh_store();
	store_batch_init(&later);
	put_agent(1, "alice");
	store_put_fact(&later, "{\"fact\":\"agent-gone\",\"agent\":1}", 31);
	CHECK_INT(store_batch_move(&st.batch, &later), 0);
	CHECK(store_batch_is_empty(&later));
	CHECK_INT(st.batch.count, 2);
	must_commit();
	CHECK_INT(health().agents, 0);
	store_batch_release(&later);
}

TEST(a_batch_without_room_refuses_and_keeps_what_it_has)
{
	struct store_batch big;
	char *fact = calloc(1, MIB(50));

	fresh_store();
	store_batch_init(&big);
	memset(fact, 'x', MIB(50) - 1);
	put_agent(1, "alice");
	for (int i = 0; i < 5; i++)
		store_put_fact(&big, fact, MIB(50) - 1);
	CHECK_INT(buf_error(&big.facts), 0);
	for (int i = 0; i < 1; i++)
		store_put_fact(&st.batch, fact, MIB(50) - 1);
	CHECK_INT(store_batch_move(&st.batch, &big), -ERR_LIMIT);
	CHECK_INT(big.count, 5);
	CHECK_INT(st.batch.count, 2);
	store_put_fact(&big, fact, MIB(50) - 1);
	CHECK_INT(store_commit(st.store, &big, &st.err), -ERR_LIMIT);
	CHECK_STR(st.err.msg, "more than 268435456 bytes of facts wait for the disk");
	store_batch_release(&big);
	store_batch_release(&st.batch);
	store_batch_init(&st.batch);
	free(fact);
}

/* ---- facts ---- */

TEST(of_facts_about_one_thing_the_last_is_kept)
{
	fresh_store();
	put("{\"fact\":\"counter\",\"kind\":\"bash\",\"counter\":1}");
	put("{\"fact\":\"counter\",\"kind\":\"bash\",\"counter\":2}");
	put_agent(1, "alice");
	put("{\"fact\":\"agent\",\"agent\":1,\"session\":\"alice\",\"wakes\":3}");
	put_task(2, 1, "running", 0);
	put_task(2, 1, "completed", 50);
	put("{\"fact\":\"cursor\",\"task\":2,\"cursor\":10}");
	put("{\"fact\":\"cursor\",\"task\":2,\"cursor\":20}");
	put_about("noticed", 2);
	must_commit();
	reopen();
	CHECK_STR(
		loaded(),
		"{\"fact\":\"counter\",\"kind\":\"bash\",\"counter\":2}\n"
		"{\"fact\":\"agent\",\"agent\":1,\"session\":\"alice\",\"wakes\":3}\n"
		"{\"fact\":\"task\",\"task\":2,\"kind\":\"bash\",\"ordinal\":2,\"label\":"
		"\"make 2\",\"agent\":1,\"outputLimitBytes\":null,\"startedAt\":20,"
		"\"cursor\":20,\"stream\":true,\"reported\":false,\"noticed\":true,\"told\":"
		"false,\"status\":\"running\"}\n"
		"{\"fact\":\"task\",\"task\":2,\"kind\":\"bash\",\"ordinal\":2,\"label\":"
		"\"make 2\",\"agent\":1,\"outputLimitBytes\":null,\"startedAt\":20,"
		"\"cursor\":20,\"stream\":true,\"reported\":false,\"noticed\":true,\"told\":"
		"false,\"status\":\"completed\",\"detail\":\"exit code: 0\",\"output\":null,"
		"\"finishedAt\":50}\n"
		"{\"fact\":\"agent\",\"agent\":3,\"session\":\"-\",\"wakes\":0}\n"
		"{\"fact\":\"agent-gone\",\"agent\":3}\n");
}

/* The ends in the order of a load. */
static const char *ends(void)
{
	static char tasks[64];
	const char *line = loaded();
	size_t n = 0;

	for (; line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
		const char *stop = strchr(line, '\n');
		const char *end = strstr(line, "\"finishedAt\"");

		if (begins(line, "{\"fact\":\"task\",\"task\":") && end && end < stop)
			tasks[n++] = line[strlen("{\"fact\":\"task\",\"task\":")];
	}
	tasks[n] = 0;
	return tasks;
}

TEST(ends_come_in_the_order_in_which_they_came_or_were_told)
{
	fresh_store();
	put_agent(1, "alice");
	for (int i = 2; i <= 5; i++)
		put_task(i, 1, "running", 0);
	put_task(4, 1, "completed", 30);
	put_task(2, 1, "completed", 20);
	put_task(3, 1, "completed", 10);
	must_commit();
	CHECK_STR(ends(), "423");
	put_about("told", 4);
	put_about("reported", 5); /* lives: its place is that of its end */
	must_commit();
	CHECK_STR(ends(), "234");
	put_about("reported", 2);
	put_about("reported", 4); /* it was told before */
	put_task(5, 1, "killed", 5);
	must_commit();
	CHECK_STR(ends(), "3425");
}

TEST(any_text_comes_back_as_it_went)
{
	static const char fact[] =
		"{\"fact\":\"task\",\"task\":1,\"kind\":\"k\\u0000\\\"'\",\"ordinal\":1,"
		"\"label\":\"a\\u0000b\\u001f\\n\xf0\x9f\x92\xa9'); DROP TABLE task; --\","
		"\"status\":\"killed\",\"output\":\"\",\"outputLimitBytes\":9007199254740991,"
		"\"startedAt\":-5,\"finishedAt\":4102444800000,\"stream\":false,"
		"\"reported\":true,\"noticed\":false,\"told\":false,\"cursor\":0}";
	char *facts;
	struct js *j = NULL;
	const struct js *task;
	const char *text;
	size_t len;

	fresh_store();
	put(fact);
	must_commit();
	facts = facts_of(st.store);
	CHECK_INT(js_parse(facts, strlen(facts), &j, NULL), 0);
	task = js_at(j, 1);
	text = js_string(js_get(task, "label"), &len);
	CHECK_BYTES(text, len, "a\0b\x1f\n\xf0\x9f\x92\xa9'); DROP TABLE task; --");
	text = js_string(js_get(task, "kind"), &len);
	CHECK_BYTES(text, len, "k\0\"'");
	text = js_string(js_get(task, "output"), &len);
	CHECK_BYTES(text, len, "");
	CHECK(js_number(js_get(task, "outputLimitBytes")) == 9007199254740991.0);
	CHECK(js_number(js_get(task, "startedAt")) == -5);
	CHECK(js_number(js_get(task, "finishedAt")) == 4102444800000.0);
	js_free(j);
	free(facts);
}

TEST(ids_that_are_gone_are_not_given_again)
{
	fresh_store();
	put_agent(7, "alice");
	put_task(9, 7, "completed", 50);
	put_about("drop", 9);
	put("{\"fact\":\"agent-gone\",\"agent\":7}");
	must_commit();
	reopen();
	CHECK_STR(loaded(),
		  "{\"fact\":\"agent\",\"agent\":10,\"session\":\"-\",\"wakes\":0}\n"
		  "{\"fact\":\"agent-gone\",\"agent\":10}\n");
}

/* ---- messages ---- */

static void put_message(const char *id, const char *target)
{
	char fact[256];

	(void)snprintf(fact, sizeof(fact),
		       "{\"fact\":\"message\",\"agent\":1,\"target\":\"%s\",\"message\":"
		       "{\"id\":\"%s\",\"content\":[]}}",
		       target, id);
	put(fact);
}

static void move_message(const char *id, const char *before)
{
	char fact[256];

	(void)snprintf(fact, sizeof(fact),
		       "{\"fact\":\"message-moved\",\"agent\":1,\"id\":\"%s\"%s%s%s}", id,
		       before ? ",\"before\":\"" : "", before ? before : "",
		       before ? "\"" : "");
	put(fact);
}

/* What the lists of agent 1 look like, next-step first. */
static const char *order(void)
{
	return text_from("SELECT ifnull(group_concat(id, ''), '') FROM (SELECT id"
			 " FROM message ORDER BY target, place)");
}

TEST(messages_keep_their_order_and_their_lists)
{
	fresh_store();
	put_agent(1, "alice");
	put_message("a", "next-step");
	put_message("x", "next-turn");
	put_message("b", "next-step");
	put_message("y", "next-turn");
	put_message("c", "next-step");
	must_commit();
	CHECK_STR(order(), "abcxy");
	move_message("c", "a");
	move_message("y", "x");
	must_commit();
	CHECK_STR(order(), "cabyx");
	move_message("c", NULL);
	must_commit();
	CHECK_STR(order(), "abcyx");
	put("{\"fact\":\"message-gone\",\"agent\":1,\"id\":\"b\"}");
	put_message("d", "next-step");
	move_message("d", "c");
	must_commit();
	reopen();
	CHECK_STR(order(), "adcyx");
	put("{\"fact\":\"agent-gone\",\"agent\":1}");
	must_commit();
	CHECK_STR(order(), "");
}

TEST(what_was_given_back_is_put_in_its_place_after_all_have_arrived)
{
	fresh_store();
	put_agent(1, "alice");
	put_message("a", "next-step");
	put_message("b", "next-step");
	put_message("c", "next-step");
	move_message("c", "a");
	move_message("b", NULL);
	must_commit();
	CHECK_STR(order(), "cab");
	CHECK(strstr(loaded(),
		     "\"message\":{\"id\":\"c\",\"content\":[]}}\n"
		     "{\"fact\":\"message-moved\",\"agent\":1,\"id\":\"b\",\"before\":null}\n"
		     "{\"fact\":\"message-moved\",\"agent\":1,\"id\":\"c\",\"before\":\"a\"}"
		     "\n") != NULL);
}

TEST(a_pending_notice_means_that_its_task_was_noticed)
{
	fresh_store();
	put_agent(1, "alice");
	put_task(2, 1, "completed", 50);
	put("{\"fact\":\"message\",\"agent\":1,\"target\":\"next-step\",\"message\":{\"id\":"
	    "\"m1\",\"content\":[],\"source\":{\"form\":\"notice\"},\"task\":\"bash-2\"}}");
	put("{\"fact\":\"message-gone\",\"agent\":1,\"id\":\"m1\"}");
	must_commit();
	CHECK(strstr(loaded(), "\"noticed\":true") != NULL);
}

TEST(a_message_is_kept_as_it_is_spelled)
{
	fresh_store();
	put_agent(1, "alice");
	put("{\"fact\":\"message\",\"agent\":1,\"target\":\"next-step\",\"message\":"
	    "{\"id\":\"q\", \"content\":[1e3, 1.50, 123456789012345678901]}}");
	must_commit();
	CHECK(strstr(loaded(), "\"content\":[1e3,1.50,123456789012345678901]") != NULL);
}

/* ---- the host's own ---- */

TEST(runs_sessions_and_requests_come_back)
{
	struct store_run r = {.task = 2, .uid = s_("u1"), .boot = s_("b"), .bytes = 5};
	struct store_session s = {.name = s_("codex"),
				  .how = s_("thread"),
				  .seen = 9,
				  .pid = 4711,
				  .ticks = 12,
				  .cwd = s_("/home/me")};
	struct store_request q = {
		.nonce = s_("n"), .sequence = 1, .at = 3, .reply = s_("{\"id\":1}")};

	fresh_store();
	store_put_run(&st.batch, &r); /* before its task: the order is free */
	put_task(2, 0, "running", 0);
	store_put_session(&st.batch, &s);
	s = (struct store_session){.name = s_("bare"), .how = s_("flag")};
	store_put_session(&st.batch, &s);
	store_put_request(&st.batch, &q);
	q = (struct store_request){.nonce = s_("n"), .sequence = 2, .at = 4};
	store_put_request(&st.batch, &q);
	must_commit();
	reopen();
	CHECK(begins(loaded(), "run 2 u1 b 5 listed\n"
			       "session bare flag 0 0 0 -\n"
			       "session codex thread 9 4711 12 /home/me\n"
			       "request n 1 3 {\"id\":1}\n"
			       "request n 2 4 -\n"
			       "{"));
}

TEST(why_an_end_was_asked_for_outlives_the_end)
{
	struct store_run r = {.task = 2, .uid = s_("u1"), .boot = s_("b")};

	fresh_store();
	put_task(2, 0, "running", 0);
	store_put_run(&st.batch, &r);
	store_put_kill_reason(&st.batch, 2, s_("no \"use\""));
	r.bytes = 5;
	store_put_run(&st.batch, &r);
	must_commit();
	reopen();
	CHECK(begins(loaded(), "run 2 u1 b no \"use\" 5 listed\n"));
}

TEST(a_session_that_ended_and_requests_that_were_answered_go)
{
	fresh_store();
	store_put_session(&st.batch,
			  &(struct store_session){.name = s_("a"), .how = s_("flag")});
	for (int i = 1; i <= 3; i++)
		store_put_request(&st.batch,
				  &(struct store_request){.nonce = s_("n"), .sequence = i});
	store_put_request(&st.batch,
			  &(struct store_request){.nonce = s_("o"), .sequence = 1});
	must_commit();
	store_drop_session(&st.batch, s_("a"));
	store_drop_requests(&st.batch, s_("n"), 2);
	must_commit();
	CHECK(begins(loaded(), "request n 3 0 -\nrequest o 1 0 -\n{"));
}

TEST(a_reply_that_is_too_long_leaves_the_key)
{
	char *reply = calloc(1, MAX_KEPT_REPLY + 2);
	struct store_request q = {.nonce = s_("n"), .sequence = 1};

	memset(reply, 'x', MAX_KEPT_REPLY + 1);
	fresh_store();
	q.reply = (errand_str){reply, MAX_KEPT_REPLY + 1};
	store_put_request(&st.batch, &q);
	must_commit();
	CHECK(begins(loaded(), "request n 1 0 -\n"));
	q.reply.len = MAX_KEPT_REPLY;
	store_put_request(&st.batch, &q);
	must_commit();
	CHECK(begins(loaded(), "request n 1 0 xxx"));
	free(reply);
}

/* ---- for people ---- */

static void some_history(void)
{
	fresh_store();
	put_agent(1, "alice");
	put_agent(2, "bob");
	put_task(3, 1, "completed", 90);
	put_task(4, 2, "running", 0);
	put_task(5, 1, "killed", 80);
	put_about("drop", 3);
	put("{\"fact\":\"task\",\"task\":6,\"kind\":\"sub\",\"ordinal\":1,\"label\":\"l\","
	    "\"status\":\"running\",\"startedAt\":1,\"stream\":false,\"reported\":false,"
	    "\"noticed\":false,\"told\":false,\"cursor\":0}");
	must_commit();
}

TEST(history_shows_what_left_the_list_too)
{
	some_history();
	CHECK_INT(lines(history(&all)), 4);
	CHECK_STR(
		history(&(struct store_filter){.id = s_("bash-3")}),
		"{\"task\":3,\"id\":\"bash-3\",\"kind\":\"bash\",\"label\":\"make 3\","
		"\"session\":\"alice\",\"status\":\"completed\",\"detail\":\"exit code: 0\","
		"\"startedAt\":30,\"finishedAt\":90,\"uid\":null,\"bytes\":null,"
		"\"listed\":false}\n");
}

TEST(history_is_filtered_and_paged)
{
	some_history();
	CHECK_INT(lines(history(&(struct store_filter){.session = s_("alice")})), 2);
	CHECK_INT(lines(history(&(struct store_filter){.session = s_("carol")})), 0);
	CHECK_INT(lines(history(&(struct store_filter){.kind = s_("sub")})), 1);
	CHECK_INT(lines(history(&(struct store_filter){.status = s_("running")})), 2);
	CHECK(begins(history(&(struct store_filter){.limit = 1}), "{\"task\":6,"));
	CHECK_INT(lines(buf_text(&st.shown)), 1);
	CHECK(begins(history(&(struct store_filter){.limit = 1, .before = 6}),
		     "{\"task\":5,"));
	CHECK_INT(lines(history(&(struct store_filter){.before = 3})), 0);
}

static void put_audit(const char *task, int64_t at)
{
	store_put_audit(&st.batch, &(struct store_audit){.who = s_("operator"),
							 .door = s_("cli"),
							 .act = s_("kill"),
							 .task = s_(task),
							 .at = at});
}

TEST(the_trail_tells_who_did_what_the_newest_first_whatever_the_clock_said)
{
	fresh_store();
	put_audit("bash-1", 900);
	put_audit("bash-2", 100);
	must_commit();
	CHECK_STR(audit_trail(&all),
		  "{\"number\":2,\"at\":100,\"who\":\"operator\",\"door\":\"cli\",\"act\":"
		  "\"kill\",\"task\":\"bash-2\",\"detail\":null}\n"
		  "{\"number\":1,\"at\":900,\"who\":\"operator\",\"door\":\"cli\",\"act\":"
		  "\"kill\",\"task\":\"bash-1\",\"detail\":null}\n");
	CHECK_INT(lines(audit_trail(&(struct store_filter){.id = s_("bash-1")})), 1);
	CHECK_INT(lines(audit_trail(&(struct store_filter){.before = 2})), 1);
}

/* ---- upkeep ---- */

static char gone[16384];

static void on_gone(void *ud, const char *uid)
{
	(void)ud;
	(void)snprintf(gone + strlen(gone), sizeof(gone) - strlen(gone), "%s ", uid);
}

static bool tidy(const struct store_limits *l, int64_t now)
{
	bool more = false;

	gone[0] = 0;
	if (store_tidy(st.store, l, now, on_gone, NULL, &more, &st.err) != 0)
		fail_msg("%s", st.err.msg);
	return more;
}

/* Ends in another order than the starts, and times that contradict both. */
static void past_of_four(void)
{
	fresh_store();
	put_past(3, 700);
	put_past(1, 900);
	put_past(4, 200);
	put_past(2, 800);
	must_commit();
}

TEST(history_goes_by_count_the_first_to_end_first)
{
	past_of_four();
	CHECK(tidy(&(struct store_limits){.history_tasks = 2}, 1000));
	CHECK_STR(gone, "uid1 uid3 ");
	CHECK_INT(lines(history(&all)), 2);
	CHECK(strstr(loaded(), "uid1") == NULL);
}

TEST(history_goes_by_the_bytes_of_its_folders)
{
	past_of_four();
	(void)tidy(&(struct store_limits){.history_bytes = 3500}, 1000);
	CHECK_STR(gone, "uid3 ");
}

TEST(history_goes_by_age_and_a_clock_set_back_ages_nothing)
{
	past_of_four();
	(void)tidy(&(struct store_limits){.history_age_ms = 250}, 10);
	CHECK_STR(gone, "");
	(void)tidy(&(struct store_limits){.history_age_ms = 250}, 1000);
	CHECK_STR(gone, "uid3 uid4 ");
}

TEST(without_limits_all_stays)
{
	past_of_four();
	CHECK(!tidy(&(struct store_limits){0}, 1000));
	CHECK_INT(lines(history(&all)), 4);
}

TEST(what_the_model_still_sees_never_goes)
{
	struct store_limits tight = {.history_age_ms = 1,
				     .history_tasks = 1,
				     .history_bytes = 1,
				     .requests_age_ms = 1,
				     .requests = 1,
				     .audit = 1};

	fresh_store();
	put_agent(1, "alice");
	put_task(2, 1, "running", 0);
	put_task(3, 1, "completed", 20); /* not told yet */
	put_message("a", "next-step");
	put_past(4, 20);
	must_commit();
	while (tidy(&tight, 1000000))
		;
	CHECK_INT(health().listed, 2);
	CHECK_INT(health().history, 0);
	CHECK_STR(order(), "a");
}

TEST(requests_and_audit_keep_the_newest)
{
	fresh_store();
	for (int i = 1; i <= 5; i++) {
		store_put_request(&st.batch, &(struct store_request){.nonce = s_("n"),
								     .sequence = i,
								     .at = 100 - i});
		put_audit("bash-1", 7);
	}
	must_commit();
	(void)tidy(&(struct store_limits){.requests = 2, .audit = 1}, 0);
	CHECK(begins(loaded(), "request n 4 96 -\nrequest n 5 95 -\n{"));
	CHECK_INT(lines(audit_trail(&all)), 1);
	(void)tidy(&(struct store_limits){.requests_age_ms = 50}, 146);
	CHECK(begins(loaded(), "request n 4 96 -\n{"));
}

TEST(a_step_is_bounded_and_the_file_shrinks_in_the_end)
{
	int64_t before;
	int steps = 0;

	fresh_store();
	for (int i = 1; i <= 2000; i++)
		put_past(i, i);
	must_commit();
	before = health().bytes;
	while (tidy(&(struct store_limits){.history_tasks = 1}, 0))
		steps++;
	CHECK(steps >= 4);
	CHECK_INT(health().history, 1);
	CHECK(health().bytes < before / 4);
	CHECK_INT(health().unused_bytes, 0);
}

TEST(the_doctor_sees_counts_and_how_it_is_kept)
{
	struct store_health h;

	some_history();
	h = health();
	CHECK_STR(h.problem, "");
	CHECK_STR(h.journal, "wal");
	CHECK_INT(h.version, 2);
	CHECK_INT(h.live, 2);
	CHECK_INT(h.listed, 3);
	CHECK_INT(h.history, 1);
	CHECK_INT(h.agents, 2);
	CHECK(h.bytes > 0 && h.log_bytes > 0 && h.disk_free > 0);
}
