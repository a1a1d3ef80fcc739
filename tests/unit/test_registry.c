/* SPDX-License-Identifier: MIT */
/* Tests of src/core/task.c, settle.c, snapshot.c: ends, sight, kill, drop. */
#include "core.h"

static const char *list(errand_agent caller)
{
	errand_text *t = NULL;

	CHECK_INT(errand_list(core.host, caller, &t, NULL), 0);
	return text_of(t);
}

static int get(const char *id, errand_agent caller)
{
	errand_error *e = NULL;
	errand_text *t = NULL;
	int rc = errand_get(core.host, id, ERRAND_NUL, caller, &t, &e);

	(void)message(e);
	errand_text_free(t);
	return rc;
}

static int kill_for(const struct work *w, const char *reason)
{
	errand_error *e = NULL;
	int requested = -1;
	int rc = errand_kill(core.host, w->id, ERRAND_NUL, core.alice, reason, ERRAND_NUL,
			     &requested, &e);

	(void)message(e);
	return rc < 0 ? rc : requested;
}

static int drop(const struct work *w)
{
	errand_error *e = NULL;
	int rc = errand_task_drop(core.host, w->task, &e);

	(void)message(e);
	return rc;
}

static void report(const struct work *w)
{
	CHECK_INT(kill_for(w, NULL), 0);
}

/* ---- ends ---- */

TEST(a_new_task_runs_since_now)
{
	struct work *w;

	fresh();
	pass(5);
	w = start(core.alice, FINAL);
	CHECK_STR(
		snapshot(w, core.alice),
		"{\"id\":\"bash-1\",\"kind\":\"bash\",\"label\":\"sleep 60\",\"ownerSession\":"
		"\"alice\",\"status\":\"running\",\"startedAt\":1005,\"reported\":false}");
}

TEST(an_end_has_a_time_and_maybe_a_detail)
{
	struct work *w;

	fresh();
	w = start_limited(0, FINAL, "64");
	pass(7);
	settle(w, ERRAND_FAILED, "why", NULL);
	run();
	CHECK_STR(snapshot(w, core.alice),
		  "{\"id\":\"bash-1\",\"kind\":\"bash\",\"label\":\"sleep 60\","
		  "\"outputLimitBytes\":64,\"status\":\"failed\",\"detail\":\"why\","
		  "\"startedAt\":1000,\"finishedAt\":1007,\"reported\":false}");
}

TEST(an_end_is_never_before_its_start)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	settle(w, ERRAND_COMPLETED, NULL, NULL);
	CHECK_INT(errand_run(core.host, core.now, 10, 0), 0);
	CHECK_STR(member(snapshot(w, core.alice), "finishedAt"), "1000");
}

TEST(an_empty_detail_is_not_an_absent_one)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	settle(w, ERRAND_COMPLETED, "", NULL);
	run();
	CHECK(strstr(snapshot(w, core.alice), "\"detail\":\"\""));
}

TEST(a_settlement_waits_for_the_run)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	settle(w, ERRAND_COMPLETED, NULL, NULL);
	CHECK_STR(status_of(w), "running");
	CHECK(errand_next_deadline(core.host) == INT64_MIN);
	run();
	CHECK_STR(status_of(w), "completed");
}

TEST(the_first_end_wins)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	settle(w, ERRAND_FAILED, "first", NULL);
	settle(w, ERRAND_COMPLETED, "second", NULL);
	run();
	CHECK_STR(member(snapshot(w, core.alice), "detail"), "first");
	CHECK_INT(errand_settle(core.host, w->task, ERRAND_KILLED, NULL, 0, NULL, 0),
		  ERRAND_EGONE);
}

TEST(only_ends_settle)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(errand_settle(core.host, w->task, ERRAND_RUNNING, NULL, 0, NULL, 0),
		  ERRAND_EARG);
	CHECK_INT(errand_settle(core.host, w->task, ERRAND_STOPPING, NULL, 0, NULL, 0),
		  ERRAND_EARG);
	CHECK_INT(errand_settle(core.host, w->task, 9, NULL, 0, NULL, 0), ERRAND_EARG);
	CHECK_INT(errand_settle(core.host, 12345, ERRAND_KILLED, NULL, 0, NULL, 0),
		  ERRAND_EGONE);
}

TEST(a_killed_task_may_end_completed)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(kill_for(w, NULL), 1);
	settle(w, ERRAND_COMPLETED, NULL, NULL);
	run();
	CHECK_STR(status_of(w), "completed");
}

TEST(an_end_is_not_refused_for_a_detail_that_is_too_long)
{
	char *big = calloc(1, MAX_DETAIL + 2);
	struct work *w;

	fresh();
	memset(big, 'x', MAX_DETAIL + 1);
	w = start(core.alice, FINAL);
	settle(w, ERRAND_FAILED, big, NULL);
	run();
	CHECK_STR(call(core.alice, "task_list", "{}"),
		  "bash-1 [bash] failed \xe2\x80\x94 sleep 60");
	free(big);
}

TEST(a_broken_producer_is_told_of_and_fails)
{
	errand_error *e = errand_error_new(NULL, NULL, "transport exploded", ERRAND_NUL);
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(errand_settle_broken(core.host, w->task, e), 0);
	run();
	CHECK_STR(logged(), "warn(tasks: task bash-1 'done' rejected (producer contract "
			    "violation): Error: transport exploded);");
	CHECK_STR(status_of(w), "failed");
	CHECK_STR(member(snapshot(w, core.alice), "detail"), "Error: transport exploded");
	CHECK_INT(notices(core.alice), 1);
	errand_error_free(e);
}

TEST(a_plain_string_that_was_thrown_keeps_its_text)
{
	errand_error *e = errand_error_new("", NULL, "plain", ERRAND_NUL);
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(errand_settle_broken(core.host, w->task, e), 0);
	run();
	CHECK_STR(member(snapshot(w, core.alice), "detail"), "plain");
	errand_error_free(e);
}

TEST(a_producer_that_breaks_after_its_end_is_not_heard)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	settle(w, ERRAND_COMPLETED, NULL, NULL);
	CHECK_INT(errand_settle_broken(core.host, w->task, NULL), 0);
	run();
	CHECK_STR(logged(), "");
	CHECK_STR(status_of(w), "completed");
}

/* ---- sight ---- */

TEST(a_list_is_in_order_of_registration_over_owners)
{
	fresh();
	(void)start(core.alice, FINAL);
	(void)start(0, FINAL);
	(void)start(core.bob, FINAL);
	(void)start(core.alice, FINAL);
	(void)start(0, FINAL);
	(void)list(core.alice);
	CHECK_INT(times(core.shown, "\"id\""), 4);
	CHECK(strstr(core.shown, "bash-1") < strstr(core.shown, "bash-2"));
	CHECK(strstr(core.shown, "bash-2") < strstr(core.shown, "bash-4"));
	CHECK(strstr(core.shown, "bash-4") < strstr(core.shown, "bash-5"));
	CHECK(strstr(core.shown, "bash-3") == NULL);
}

TEST(nobody_sees_what_nobody_owns)
{
	fresh();
	(void)start(core.alice, FINAL);
	(void)start(0, FINAL);
	(void)list(0);
	CHECK_INT(times(core.shown, "\"id\""), 1);
	CHECK(strstr(core.shown, "bash-2"));
}

TEST(d15_ended_records_stay_listed)
{
	fresh();
	end(start(core.alice, FINAL));
	CHECK_INT(times(list(core.alice), "completed"), 1);
}

TEST(listing_and_looking_change_nothing)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	(void)list(core.alice);
	CHECK(!is_reported(w));
}

TEST(d18_unknown_and_foreign_are_two_texts)
{
	fresh();
	(void)start(core.alice, FINAL);
	CHECK_INT(get("bash-9", core.bob), ERRAND_EREFUSED);
	CHECK_STR(core.message, "unknown task bash-9");
	CHECK_INT(get("bash-1", core.bob), ERRAND_EREFUSED);
	CHECK_STR(core.message, "task bash-1 belongs to another session");
	CHECK_INT(get("bash-1", 0), ERRAND_EREFUSED);
	CHECK_STR(core.message, "task bash-1 belongs to another session");
	CHECK_INT(get("", core.alice), ERRAND_EREFUSED);
	CHECK_STR(core.message, "unknown task ");
}

TEST(only_the_id_itself_names_a_task)
{
	static const char *const others[] = {"bash-01",
					     "bash-1 ",
					     " bash-1",
					     "bash--1",
					     "bash-",
					     "bash",
					     "-1",
					     "bash-0",
					     "BASH-1",
					     "bash-+1",
					     "bash-18446744073709551617"};

	fresh();
	(void)start(core.alice, FINAL);
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		CHECK_INT(get(others[i], core.alice), ERRAND_EREFUSED);
	CHECK_INT(get("bash-1", core.alice), 0);
}

TEST(access_goes_by_session_not_by_instance)
{
	errand_agent next;

	fresh();
	(void)start(core.alice, FINAL);
	CHECK_INT(errand_agent_register(core.host, core.alice, 0, NULL), 0);
	next = agent("alice");
	CHECK_INT(get("bash-1", next), 0);
	CHECK_INT(get("bash-1", core.alice), 0);
}

TEST(a_caller_that_is_gone_is_no_caller)
{
	fresh();
	CHECK_INT(get("bash-1", 999), ERRAND_EGONE);
	CHECK_INT(errand_list(core.host, 999, &(errand_text *){NULL}, NULL), ERRAND_EGONE);
}

/* ---- kill ---- */

TEST(a_kill_hands_on_its_reason_as_it_is)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(kill_for(w, "superseded"), 1);
	CHECK_INT(kill_for(w, ""), 1);
	CHECK_INT(kill_for(w, NULL), 1);
	CHECK_STR(logged(), "cancel(superseded);cancel();cancel;");
	CHECK_STR(status_of(w), "stopping");
}

TEST(a_kill_reports_the_end)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(kill_for(w, NULL), 1);
	CHECK(is_reported(w));
	settle(w, ERRAND_KILLED, NULL, NULL);
	run();
	CHECK_INT(notices(core.alice), 0);
}

TEST(a_kill_that_settles_at_once_reports_too)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	w->cancel_settles = true;
	CHECK_INT(kill_for(w, NULL), 1);
	CHECK_STR(status_of(w), "stopping");
	run();
	CHECK_STR(status_of(w), "killed");
	CHECK(is_reported(w));
	CHECK_INT(notices(core.alice), 0);
}

TEST(a_cancel_that_throws_changes_nothing)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	w->cancel_error = "cancel boom";
	CHECK_INT(kill_for(w, NULL), ERRAND_ECALLBACK);
	CHECK_STR(core.message, "cancel boom");
	CHECK_STR(status_of(w), "running");
	CHECK(!is_reported(w));
	end(w);
	CHECK_INT(notices(core.alice), 1);
}

TEST(a_kill_works_after_one_that_threw)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	w->cancel_error = "cancel boom";
	CHECK_INT(kill_for(w, NULL), ERRAND_ECALLBACK);
	w->cancel_error = NULL;
	CHECK_INT(kill_for(w, NULL), 1);
}

TEST(an_ended_task_is_not_cancelled_again_but_reported)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	CHECK_INT(kill_for(w, "x"), 0);
	CHECK_STR(logged(), "");
	CHECK(is_reported(w));
}

TEST(a_kill_without_an_id_is_a_mistake_of_the_program)
{
	errand_error *e = NULL;

	fresh();
	CHECK_INT(errand_kill(core.host, NULL, ERRAND_NUL, core.alice, NULL, 0, NULL, &e),
		  ERRAND_EARG);
	CHECK_STR(message(e), "no id");
}

TEST(a_kill_of_anothers_task_is_refused)
{
	struct work *w;

	fresh();
	w = start(core.bob, FINAL);
	CHECK_INT(kill_for(w, NULL), ERRAND_EREFUSED);
	CHECK_STR(core.message, "task bash-1 belongs to another session");
	CHECK_STR(logged(), "");
}

/* ---- drop ---- */

TEST(d15_a_reported_end_may_be_dropped)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	report(w);
	CHECK_INT(drop(w), 0);
	CHECK_INT(w->destroyed, 1);
	CHECK_INT(get("bash-1", core.alice), ERRAND_EREFUSED);
	CHECK_STR(core.message, "unknown task bash-1");
}

TEST(d15_a_live_task_may_not_be_dropped)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(drop(w), ERRAND_ESTATE);
	CHECK_INT(kill_for(w, NULL), 1);
	CHECK_INT(drop(w), ERRAND_ESTATE);
	CHECK_INT(w->destroyed, 0);
}

TEST(d15_an_unreported_end_may_not_be_dropped)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	CHECK_INT(drop(w), ERRAND_ESTATE);
	CHECK_STR(core.message, "the task's end is not yet reported");
}

TEST(d15_a_record_on_a_lease_may_not_be_dropped)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	report(w);
	core.fate = ERRAND_HELD;
	(void)output_of(w);
	CHECK_INT(drop(w), ERRAND_ESTATE);
	CHECK_INT(errand_lease_commit(core.host, core.lease), 0);
	CHECK_INT(drop(w), 0);
}

TEST(a_record_is_dropped_once)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	report(w);
	CHECK_INT(drop(w), 0);
	CHECK_INT(drop(w), ERRAND_EGONE);
	CHECK_INT(errand_settle(core.host, w->task, ERRAND_KILLED, NULL, 0, NULL, 0),
		  ERRAND_EGONE);
}

/* ---- who is told, and in which order ---- */

static void on_waited(void *ud, errand_host *h, errand_lease l, const char *snapshot_json,
		      size_t len, const errand_error *e)
{
	(void)ud;
	(void)h;
	(void)len;
	(void)e;
	CHECK(l != 0);
	CHECK_STR(member(snapshot_json, "reported"), "true");
	logf_("waited;");
}

TEST(d3_waiters_then_observers_then_listeners)
{
	struct work *w;

	fresh();
	(void)listen(ERRAND_ON_DONE, "done");
	(void)listen(ERRAND_ON_CHANGED, "changed");
	w = start(core.alice, FINAL);
	run();
	CHECK_INT(errand_wait(core.host, w->id, ERRAND_NUL, core.alice, "9", 1, 0,
			      on_waited, NULL, NULL, NULL),
		  0);
	(void)logged();
	end(w);
	CHECK_STR(logged(), "waited;changed;done(bash-1 completed);");
	CHECK_INT(notices(core.alice), 0);
}

static int look_at_record(void *ud, errand_host *h, errand_reg self, errand_agent owner,
			  const char *json, size_t len, errand_error *e)
{
	(void)ud;
	(void)h;
	(void)self;
	(void)owner;
	(void)json;
	(void)len;
	(void)e;
	logf_("%s;", status_of(&core.work[0]));
	return 0;
}

TEST(d3_the_record_is_there_before_anybody_hears_of_it)
{
	errand_reg r = 0;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	run();
	CHECK_INT(errand_on(core.host, 0, ERRAND_ON_CHANGED, look_at_record, NULL, NULL, &r,
			    NULL),
		  0);
	end(w);
	CHECK_STR(logged(), "completed;");
}

TEST(changes_are_told_at_start_kill_end_and_drop)
{
	struct work *w;

	fresh();
	(void)listen(ERRAND_ON_CHANGED, "changed");
	w = start(core.alice, FINAL);
	run();
	CHECK_STR(logged(), "changed;");
	CHECK_INT(kill_for(w, NULL), 1);
	CHECK_INT(kill_for(w, NULL), 1);
	run();
	CHECK_STR(logged(), "cancel;cancel;changed;changed;");
	end(w);
	CHECK_STR(logged(), "changed;");
	CHECK_INT(drop(w), 0);
	run();
	CHECK_STR(logged(), "changed;");
}

TEST(observers_find_a_task_stopping_before_they_find_it_killed)
{
	errand_reg r = 0;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	w->cancel_settles = true;
	run();
	CHECK_INT(errand_on(core.host, 0, ERRAND_ON_CHANGED, look_at_record, NULL, NULL, &r,
			    NULL),
		  0);
	CHECK_INT(kill_for(w, NULL), 1);
	run();
	CHECK_STR(logged(), "cancel;stopping;killed;");
}

TEST(a_kill_or_a_start_that_fails_changes_nothing)
{
	struct errand_task_spec s;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	(void)listen(ERRAND_ON_CHANGED, "changed");
	w->cancel_error = "no";
	CHECK_INT(kill_for(w, NULL), ERRAND_ECALLBACK);
	s = spec(core.alice, FINAL);
	s.kind = str("");
	CHECK_INT(try_start(&s), ERRAND_EREFUSED);
	run();
	CHECK_STR(logged(), "cancel;");
}

TEST(reads_are_no_changes)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	(void)listen(ERRAND_ON_CHANGED, "changed");
	(void)output_of(w);
	CHECK_STR(logged(), "");
}
