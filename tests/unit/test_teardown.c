/* SPDX-License-Identifier: MIT */
/* Tests of src/core/teardown.c: the deadline (D12), the service (spec 12.6), order (12.7). */
#include "core.h"

static void on_gone(void *ud, errand_host *h)
{
	(void)h;
	logf_("%s;", (const char *)ud);
}

static void on_destroy(void *ud)
{
	(void)ud;
	logf_("destroyed;");
}

static char agent_gone[] = "agent gone", service_gone[] = "service gone";

static void dispose_agent(errand_agent a)
{
	CHECK_INT(errand_agent_dispose(core.host, a, on_gone, agent_gone, NULL, NULL), 0);
}

static void dispose_service(void)
{
	CHECK_INT(
		errand_service_dispose(core.host, on_gone, service_gone, on_destroy, NULL),
		0);
}

/* What a listener hears of the end of the only task. */
static const char *end_of(const struct work *w)
{
	static char text[256];

	(void)snprintf(text, sizeof(text), "%s: ", status_of(w));
	(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s",
		       member(snapshot(w, core.alice), "detail"));
	return text;
}

/* ---- D12 ---- */

TEST(d12_a_producer_that_never_settles_cannot_stall_its_owners_teardown)
{
	struct work *w;

	fresh();
	(void)listen(ERRAND_ON_DONE, "done");
	(void)listen(ERRAND_ON_INBOX, "inbox");
	w = start(core.alice, FINAL);
	dispose_agent(core.alice);
	pass(9999);
	CHECK_STR(logged(), "cancel(owner disposed);");
	pass(1);
	CHECK_STR(logged(),
		  "warn(tasks: teardown of bash-1 timed out; task record forced "
		  "failed and work may be orphaned);done(bash-1 failed);agent gone;");
	CHECK_INT(w->destroyed, 1);
}

static int on_detail(void *ud, errand_host *h, errand_reg self, errand_agent owner,
		     const char *json, size_t len, errand_error *e)
{
	(void)ud;
	(void)h;
	(void)self;
	(void)owner;
	(void)len;
	(void)e;
	logf_("%s;", member(json, "detail"));
	return 0;
}

TEST(d12_its_detail_says_that_work_may_be_orphaned)
{
	fresh_as("{\"teardownTimeoutMs\":5}");
	CHECK_INT(errand_on(core.host, 0, ERRAND_ON_DONE, on_detail, NULL, NULL,
			    &(errand_reg){0}, NULL),
		  0);
	(void)start(core.alice, FINAL);
	dispose_agent(core.alice);
	(void)logged();
	pass(5);
	CHECK(strstr(logged(), ");teardown timed out; work may be orphaned;agent gone;"));
}

TEST(d12_what_settles_in_time_keeps_its_own_end)
{
	struct work *a;

	fresh();
	(void)listen(ERRAND_ON_DONE, "done");
	a = start(core.alice, FINAL);
	(void)start(core.alice, FINAL);
	dispose_agent(core.alice);
	pass(5000);
	settle(a, ERRAND_KILLED, "signal: SIGTERM", NULL);
	run();
	(void)logged();
	CHECK_STR(end_of(a), "killed: signal: SIGTERM");
	pass(5000);
	CHECK_STR(logged(),
		  "warn(tasks: teardown of bash-2 timed out; task record forced "
		  "failed and work may be orphaned);done(bash-2 failed);agent gone;");
	CHECK(errand_next_deadline(core.host) == ERRAND_NEVER);
}

TEST(d12_a_late_end_is_ignored)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	dispose_agent(core.alice);
	pass(10000);
	CHECK_INT(errand_settle(core.host, w->task, ERRAND_COMPLETED, NULL, 0, NULL, 0),
		  ERRAND_EGONE);
}

TEST(d12_without_a_limit_a_teardown_waits)
{
	struct work *w;

	fresh_as("{\"teardownTimeoutMs\":null}");
	w = start(core.alice, FINAL);
	dispose_agent(core.alice);
	pass(1000000000);
	CHECK_STR(logged(), "cancel(owner disposed);");
	end(w);
	CHECK_STR(logged(), "agent gone;");
}

TEST(d12_the_deadline_of_the_service_is_the_same)
{
	fresh();
	(void)start(core.alice, FINAL);
	(void)start(0, FINAL);
	dispose_service();
	(void)logged();
	pass(10000);
	CHECK_STR(logged(),
		  "warn(tasks: teardown of bash-1 timed out; task record forced "
		  "failed and work may be orphaned);warn(tasks: teardown of bash-2 "
		  "timed out; task record forced failed and work may be orphaned);"
		  "service gone;destroyed;");
}

/* ---- the service ---- */

TEST(the_service_cancels_everything_and_waits)
{
	struct work *a, *b;

	fresh();
	a = start(core.alice, FINAL);
	b = start(0, FINAL);
	end(start(core.bob, FINAL));
	dispose_service();
	CHECK_STR(logged(),
		  "cancel(tasks service disposed);cancel(tasks service disposed);");
	end(a);
	CHECK_STR(logged(), "");
	CHECK_STR(end_of(a), "completed: (none)");
	end(b);
	CHECK_STR(logged(), "service gone;destroyed;");
	CHECK_STR(call(core.alice, "task_list", "{}"), "(no background tasks)");
	CHECK_INT(a->destroyed, 1);
	CHECK_INT(b->destroyed, 1);
}

TEST(a_service_without_tasks_is_gone_in_the_next_run)
{
	fresh();
	dispose_service();
	CHECK_STR(logged(), "");
	run();
	CHECK_STR(logged(), "service gone;destroyed;");
}

TEST(d2_the_end_of_the_service_notifies_nobody)
{
	struct work *w;

	fresh();
	(void)listen(ERRAND_ON_DONE, "done");
	(void)listen(ERRAND_ON_INBOX, "inbox");
	w = start(core.alice, FINAL);
	w->cancel_settles = true;
	dispose_service();
	run();
	CHECK_STR(logged(), "cancel(tasks service disposed);service gone;destroyed;");
	CHECK_INT(notices(core.alice), 0);
}

TEST(d2_nor_does_an_end_that_was_on_its_way)
{
	struct work *w;

	fresh();
	(void)listen(ERRAND_ON_DONE, "done");
	w = start(core.alice, FINAL);
	settle(w, ERRAND_COMPLETED, NULL, NULL);
	CHECK_INT(errand_run(core.host, 0, WALL, 1), 1);
	dispose_service();
	run();
	CHECK_STR(logged(), "service gone;destroyed;");
	CHECK_INT(notices(core.alice), 0);
}

TEST(d2_a_cancel_that_throws_fails_the_record_of_the_service_too)
{
	struct work *w;

	fresh();
	w = start(0, FINAL);
	w->cancel_error = "cancel boom";
	dispose_service();
	run();
	CHECK_STR(logged(),
		  "cancel(tasks service disposed);warn(tasks: cancel of bash-1 "
		  "threw during teardown; task record forced failed and work may be "
		  "orphaned: Error: cancel boom);service gone;destroyed;");
}

TEST(changes_are_told_once_for_each_owner_that_had_something)
{
	fresh();
	end(start(core.alice, FINAL));
	end(start(core.alice, FINAL));
	end(start(0, FINAL));
	(void)listen(ERRAND_ON_CHANGED, "changed");
	dispose_service();
	run();
	CHECK_STR(logged(), "changed;changed;service gone;destroyed;");
}

static int on_owner(void *ud, errand_host *h, errand_reg self, errand_agent owner,
		    const char *json, size_t len, errand_error *e)
{
	(void)ud;
	(void)h;
	(void)self;
	(void)json;
	(void)len;
	(void)e;
	logf_("%s;", owner == core.alice ? "alice" : owner == core.bob ? "bob" : "nobody");
	return 0;
}

TEST(owners_lose_their_tasks_in_the_order_in_which_they_first_had_one)
{
	fresh();
	end(start(0, FINAL));
	end(start(core.bob, FINAL));
	end(start(core.alice, FINAL));
	end(start(core.bob, FINAL));
	CHECK_INT(errand_on(core.host, 0, ERRAND_ON_CHANGED, on_owner, NULL, NULL, NULL,
			    NULL),
		  0);
	dispose_service();
	run();
	CHECK_STR(logged(), "nobody;bob;alice;service gone;destroyed;");
}

TEST(d10_nothing_starts_after_the_service)
{
	struct errand_task_spec s;

	fresh();
	dispose_service();
	s = spec(core.alice, FINAL);
	CHECK_INT(try_start(&s), ERRAND_EREFUSED);
	CHECK_STR(core.message, "background tasks unavailable: no task registry");
	run();
	CHECK_INT(try_start(&s), ERRAND_EREFUSED);
}

TEST(the_service_is_disposed_once)
{
	fresh();
	dispose_service();
	CHECK_INT(
		errand_service_dispose(core.host, on_gone, service_gone, on_destroy, NULL),
		ERRAND_ESTATE);
	CHECK_STR(logged(), "destroyed;");
	run();
	CHECK_STR(logged(), "service gone;destroyed;");
}

TEST(an_owner_and_the_service_may_go_together)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	dispose_agent(core.alice);
	dispose_service();
	CHECK_STR(logged(), "cancel(owner disposed);cancel(tasks service disposed);");
	end(w);
	CHECK_STR(logged(), "agent gone;service gone;destroyed;");
	CHECK_INT(w->destroyed, 1);
}

TEST(an_owner_may_go_after_the_service)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	dispose_service();
	dispose_agent(core.alice);
	end(w);
	CHECK_STR(logged(), "cancel(tasks service disposed);cancel(owner disposed);"
			    "agent gone;service gone;destroyed;");
}

TEST(a_waiter_gets_the_end_that_the_service_made)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	(void)wait_for_output(w, 60000);
	w->cancel_settles = true;
	dispose_service();
	run();
	CHECK_STR(result_text(), "(no new output)\n[status: killed]");
}

TEST(the_host_may_go_in_the_middle_of_it)
{
	fresh();
	(void)start(core.alice, FINAL);
	dispose_service();
	(void)logged();
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_STR(logged(), "destroyed;");
}

TEST(a_timeout_is_a_number)
{
	struct errand_host_options o = {.size = sizeof(o), .abi = ERRAND_ABI};
	errand_error *e = NULL;
	errand_host *h = NULL;

	o.config_json = str("{\"teardownTimeoutMs\":0}");
	CHECK_INT(errand_host_new(&o, &h, &e), ERRAND_EREFUSED);
	CHECK_STR(message(e),
		  "invalid config:\n  - $.teardownTimeoutMs expected integer >= 1 "
		  "but got 0 (at teardownTimeoutMs)");
}
