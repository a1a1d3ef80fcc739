/* SPDX-License-Identifier: MIT */
/* Tests of src/core/agent.c: registration and disposal (spec 2, 12.1, 12.2, D2). */
#include "core.h"

static int try_agent(const char *session, uint32_t flags, errand_agent *ret)
{
	struct errand_agent_options o = {
		.size = sizeof(o), .flags = flags, .session = str(session)};
	errand_error *e = NULL;
	int rc = errand_agent_new(core.host, &o, ret, &e);

	(void)message(e);
	return rc;
}

static void on_gone(void *ud, errand_host *h)
{
	(void)ud;
	(void)h;
	logf_("gone;");
}

static void on_destroy(void *ud)
{
	(void)ud;
	logf_("destroyed;");
}

static void dispose(errand_agent a)
{
	CHECK_INT(errand_agent_dispose(core.host, a, on_gone, NULL, on_destroy, NULL), 0);
}

static bool is_listed(const char *id)
{
	errand_text *t = NULL;
	int rc = errand_get(core.host, id, ERRAND_NUL, core.alice, &t, NULL);

	errand_text_free(t);
	return rc == 0;
}

/* ---- registration ---- */

TEST(a_session_is_registered_once)
{
	errand_agent a;

	fresh();
	CHECK_INT(try_agent("alice", 0, &a), ERRAND_EREFUSED);
	CHECK_STR(core.message, "agent \"alice\" is already registered");
}

TEST(an_unregistered_twin_may_look_but_not_start)
{
	struct errand_task_spec s;
	errand_agent a = 0;

	fresh();
	CHECK_INT(try_agent("alice", ERRAND_AGENT_UNREGISTERED, &a), 0);
	(void)start(core.alice, FINAL);
	CHECK_STR(call(a, "task_list", "{}"),
		  "bash-1 [bash] running \xe2\x80\x94 sleep 60");
	s = spec(a, FINAL);
	CHECK_INT(try_start(&s), ERRAND_EREFUSED);
}

TEST(a_twin_may_register_when_the_first_is_out)
{
	errand_agent a = 0;

	fresh();
	CHECK_INT(try_agent("alice", ERRAND_AGENT_UNREGISTERED, &a), 0);
	CHECK_INT(errand_agent_register(core.host, a, 1, NULL), ERRAND_EREFUSED);
	CHECK_INT(errand_agent_register(core.host, core.alice, 0, NULL), 0);
	CHECK_INT(errand_agent_register(core.host, a, 1, NULL), 0);
	CHECK_INT(errand_agent_register(core.host, a, 1, NULL), 0);
}

TEST(taking_out_who_is_not_in_leaves_the_other_in)
{
	errand_agent a = 0;

	fresh();
	CHECK_INT(try_agent("alice", ERRAND_AGENT_UNREGISTERED, &a), 0);
	CHECK_INT(errand_agent_register(core.host, a, 0, NULL), 0);
	(void)start(core.alice, FINAL);
}

TEST(an_agent_needs_a_session)
{
	errand_agent a;

	fresh();
	CHECK_INT(try_agent("", 0, &a), ERRAND_EARG);
	CHECK_INT(errand_agent_new(core.host, NULL, &a, NULL), ERRAND_EARG);
	CHECK_INT(errand_agent_register(core.host, 4711, 1, NULL), ERRAND_EGONE);
}

/* ---- disposal ---- */

TEST(an_agent_without_tasks_is_gone_in_the_next_run)
{
	errand_agent again = 0;

	fresh();
	dispose(core.alice);
	CHECK_STR(logged(), "");
	run();
	CHECK_STR(logged(), "gone;destroyed;");
	CHECK_INT(try_agent("alice", 0, &again), 0);
	CHECK(again != core.alice);
}

TEST(disposal_cancels_what_lives_and_waits_for_it)
{
	struct work *a, *b;

	fresh();
	a = start(core.alice, FINAL);
	b = start(core.alice, FINAL);
	dispose(core.alice);
	CHECK_STR(logged(), "cancel(owner disposed);cancel(owner disposed);");
	run();
	CHECK_STR(status_of(a), "stopping");
	end(a);
	CHECK_STR(logged(), "");
	CHECK(is_listed(a->id));
	end(b);
	CHECK_STR(logged(), "gone;destroyed;");
}

TEST(disposal_drops_the_records_also_of_what_ended_before)
{
	struct work *a, *b;

	fresh();
	a = start(core.alice, FINAL);
	b = start(core.alice, FINAL);
	end(a);
	b->cancel_settles = true;
	dispose(core.alice);
	run();
	CHECK_STR(logged(), "cancel(owner disposed);gone;destroyed;");
	CHECK_INT(a->destroyed, 1);
	CHECK_INT(b->destroyed, 1);
}

TEST(disposal_touches_only_this_instances_tasks)
{
	errand_agent next;
	struct work *old, *new, *other, *open;

	fresh();
	old = start(core.alice, FINAL);
	CHECK_INT(errand_agent_register(core.host, core.alice, 0, NULL), 0);
	next = agent("alice");
	new = start(next, FINAL);
	other = start(core.bob, FINAL);
	open = start(0, FINAL);
	dispose(core.alice);
	CHECK_STR(logged(), "cancel(owner disposed);");
	end(old);
	core.alice = next;
	CHECK_STR(status_of(new), "running");
	CHECK_STR(status_of(open), "running");
	CHECK_STR(member(snapshot(other, core.bob), "status"), "running");
	CHECK(!is_listed(old->id));
}

TEST(what_is_stopping_already_is_cancelled_again)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	(void)kill_of(w);
	dispose(core.alice);
	CHECK_STR(logged(), "cancel;cancel(owner disposed);");
}

TEST(d2_teardown_sends_no_notice)
{
	struct work *w;

	fresh();
	(void)listen(ERRAND_ON_INBOX, "inbox");
	(void)listen(ERRAND_ON_DONE, "done");
	w = start(core.alice, FINAL);
	w->cancel_settles = true;
	dispose(core.alice);
	run();
	CHECK_STR(logged(), "cancel(owner disposed);done(bash-1 killed);gone;destroyed;");
}

static int look_at_reported(void *ud, errand_host *h, errand_task t, const char *reason,
			    size_t len, errand_error *e)
{
	errand_text *json = NULL;

	(void)t;
	(void)reason;
	(void)len;
	(void)e;
	CHECK_INT(
		errand_get(h, ((struct work *)ud)->id, ERRAND_NUL, core.alice, &json, NULL),
		0);
	logf_("reported=%s;", member(text_of(json), "reported"));
	return 0;
}

TEST(d2_the_end_is_reported_before_cancel_is_called)
{
	struct errand_task_spec s;

	fresh();
	s = spec(core.alice, FINAL);
	s.producer.cancel = look_at_reported;
	CHECK_INT(try_start(&s), 0);
	(void)logged();
	dispose(core.alice);
	CHECK_STR(logged(), "reported=true;");
}

TEST(d2_a_cancel_that_throws_in_teardown_fails_the_record_silently)
{
	struct work *w;

	fresh();
	(void)listen(ERRAND_ON_INBOX, "inbox");
	w = start(core.alice, FINAL);
	w->cancel_error = "cancel boom";
	dispose(core.alice);
	CHECK_STR(logged(),
		  "cancel(owner disposed);warn(tasks: cancel of bash-1 threw during "
		  "teardown; task record forced failed and work may be orphaned: Error: "
		  "cancel boom);");
	CHECK_STR(member(snapshot(w, core.alice), "detail"),
		  "cancel threw during teardown; work may be orphaned: Error: cancel boom");
	CHECK_STR(status_of(w), "failed");
	run();
	CHECK_STR(logged(), "gone;destroyed;");
}

static int settle_then_throw(void *ud, errand_host *h, errand_task t, const char *reason,
			     size_t len, errand_error *e)
{
	(void)ud;
	(void)reason;
	(void)len;
	(void)errand_settle(h, t, ERRAND_COMPLETED, NULL, 0, NULL, 0);
	errand_error_set(e, NULL, NULL, "late", 4);
	return ERRAND_ECALLBACK;
}

TEST(a_forced_end_wins_over_a_later_real_one)
{
	struct errand_task_spec s;

	fresh();
	(void)listen(ERRAND_ON_DONE, "done");
	s = spec(core.alice, FINAL);
	s.producer.cancel = settle_then_throw;
	CHECK_INT(try_start(&s), 0);
	dispose(core.alice);
	(void)logged();
	run();
	CHECK_STR(logged(), "done(bash-1 failed);gone;destroyed;");
}

TEST(disposal_clears_the_inbox)
{
	fresh();
	end(start(core.alice, FINAL));
	CHECK_INT(notices(core.alice), 1);
	(void)listen(ERRAND_ON_INBOX, "inbox");
	dispose(core.alice);
	run();
	CHECK_STR(logged(), "inbox(discarded);gone;destroyed;");
}

TEST(an_owed_notice_is_not_sent_into_a_teardown)
{
	struct work *a;

	fresh();
	a = start(core.alice, FINAL);
	(void)start(core.alice, FINAL);
	core.fate = ERRAND_HELD;
	(void)wait_for_output(a, 1000);
	end(a);
	dispose(core.alice);
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	run();
	CHECK_INT(notices(core.alice), 0);
}

TEST(an_agent_is_disposed_once)
{
	errand_error *e = NULL;

	fresh();
	(void)start(core.alice, FINAL);
	dispose(core.alice);
	(void)logged();
	CHECK_INT(
		errand_agent_dispose(core.host, core.alice, on_gone, NULL, on_destroy, &e),
		ERRAND_ESTATE);
	CHECK_STR(message(e), "already being disposed");
	CHECK_STR(logged(), "destroyed;");
	CHECK_INT(errand_agent_dispose(core.host, 4711, on_gone, NULL, on_destroy, NULL),
		  ERRAND_EGONE);
	CHECK_STR(logged(), "destroyed;");
}

TEST(changes_are_told_for_stopping_for_ends_and_for_the_drop)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	run();
	(void)listen(ERRAND_ON_CHANGED, "changed");
	dispose(core.alice);
	run();
	CHECK_STR(logged(), "cancel(owner disposed);changed;");
	end(w);
	CHECK_STR(logged(), "changed;changed;gone;destroyed;");
}

TEST(a_call_that_is_under_way_outlives_its_agent)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	w->cancel_settles = true;
	(void)wait_for_output(w, 1000);
	dispose(core.alice);
	run();
	CHECK_INT(core.results, 1);
	CHECK_STR(result_text(), "(no new output)\n[status: killed]");
	CHECK_STR(logged(), "cancel(owner disposed);gone;destroyed;");
}

TEST(a_call_on_open_work_goes_on_after_its_agent_is_gone)
{
	struct work *w;

	fresh();
	w = start(0, FINAL);
	(void)wait_for_output(w, 1000);
	dispose(core.alice);
	run();
	CHECK_STR(logged(), "gone;destroyed;");
	CHECK_INT(errand_inbox(core.host, core.alice, &(errand_text *){NULL}, NULL),
		  ERRAND_EGONE);
	end(w);
	CHECK_STR(result_text(), "(no new output)\n[status: completed]");
}

TEST(an_agent_goes_with_the_host_in_the_middle_of_its_teardown)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	dispose(core.alice);
	(void)logged();
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_INT(w->destroyed, 1);
	CHECK_STR(logged(), "destroyed;");
}

TEST(an_agent_goes_with_the_host_when_it_is_all_but_gone)
{
	fresh();
	dispose(core.alice);
	CHECK_INT(errand_run(core.host, 0, WALL, 1), 1);
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_STR(logged(), "destroyed;");
}
