/* SPDX-License-Identifier: MIT */
/* Tests of src/core/wait.c and signal.c: what ends a wait, and what it leaves. */
#include "core.h"

static errand_lease lease;
static int destroyed;

static void on_waited(void *ud, errand_host *h, errand_lease l, const char *snapshot_json,
		      size_t len, const errand_error *e)
{
	(void)ud;
	(void)h;
	(void)len;
	lease = l;
	if (e)
		logf_("error(%s);", errand_error_message(e, NULL));
	else
		logf_("waited(%s);", member(snapshot_json, "status"));
}

static void count_destroy(void *ud)
{
	(void)ud;
	destroyed++;
}

/* 0 or the code, the message in core.message. */
static int wait_for(const char *id, const char *timeout_json, errand_signal s)
{
	errand_error *e = NULL;
	int rc;

	destroyed = 0;
	rc = errand_wait(core.host, id, ERRAND_NUL, core.alice, timeout_json, ERRAND_NUL, s,
			 on_waited, NULL, count_destroy, &e);
	(void)message(e);
	return rc;
}

static errand_signal signal_new(void)
{
	errand_signal s = 0;

	CHECK_INT(errand_signal_new(core.host, &s), 0);
	return s;
}

TEST(a_wait_ends_with_the_task)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(wait_for(w->id, "50", 0), 0);
	run();
	CHECK_STR(logged(), "");
	end(w);
	CHECK_STR(logged(), "waited(completed);");
	CHECK_INT(destroyed, 1);
}

TEST(a_wait_that_saw_the_end_suppresses_the_notice)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(wait_for(w->id, "50", 0), 0);
	end(w);
	CHECK(is_reported(w));
	CHECK_INT(errand_lease_commit(core.host, lease), 0);
	run();
	CHECK_INT(notices(core.alice), 0);
}

TEST(d6_a_wait_whose_end_was_not_delivered_owes_the_notice)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(wait_for(w->id, "50", 0), 0);
	end(w);
	CHECK_INT(errand_lease_return(core.host, lease), 0);
	CHECK_INT(notices(core.alice), 0);
	run();
	CHECK_INT(notices(core.alice), 1);
	CHECK(!is_reported(w));
}

TEST(a_wait_for_an_end_that_was_ends_at_once_but_not_within)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	CHECK_INT(wait_for(w->id, "50", 0), 0);
	CHECK_STR(logged(), "");
	run();
	CHECK_STR(logged(), "waited(completed);");
	CHECK(lease != 0);
}

TEST(a_deadline_is_no_error)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(wait_for(w->id, "50", 0), 0);
	pass(49);
	CHECK_STR(logged(), "");
	pass(1);
	CHECK_STR(logged(), "waited(running);");
	CHECK(lease == 0);
	CHECK(!is_reported(w));
}

TEST(the_host_says_when_the_deadline_is)
{
	struct work *w;

	fresh();
	pass(1000);
	w = start(core.alice, FINAL);
	run();
	CHECK(errand_next_deadline(core.host) == ERRAND_NEVER);
	CHECK_INT(wait_for(w->id, "50", 0), 0);
	CHECK_INT(errand_next_deadline(core.host), 1050);
	end(w);
	CHECK(errand_next_deadline(core.host) == ERRAND_NEVER);
}

TEST(a_deadline_leaves_the_notice_for_later)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(wait_for(w->id, "50", 0), 0);
	pass(50);
	end(w);
	CHECK_STR(logged(), "waited(running);");
	CHECK_INT(notices(core.alice), 1);
}

TEST(a_fraction_of_a_millisecond_is_let_go)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(wait_for(w->id, "0.25", 0), 0);
	CHECK_STR(logged(), "");
	run();
	CHECK_STR(logged(), "waited(running);");
	CHECK_INT(wait_for(w->id, "1.9", 0), 0);
	run();
	CHECK_STR(logged(), "");
	pass(1);
	CHECK_STR(logged(), "waited(running);");
}

TEST(a_bad_timeout_is_shown_as_json)
{
	static const struct {
		const char *given, *shown;
	} cases[] = {{"0", "0"},
		     {"-5", "-5"},
		     {"-0", "0"},
		     {"null", "null"},
		     {"\"5\"", "\"5\""},
		     {"1e999", "null"},
		     {"-1.5e-7", "-1.5e-7"},
		     {"-1e21", "-1e+21"},
		     {"-123456789012345680000", "-123456789012345680000"}};
	char want[160];

	fresh();
	(void)start(core.alice, FINAL);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_INT(wait_for("bash-1", cases[i].given, 0), ERRAND_EREFUSED);
		(void)snprintf(
			want, sizeof(want),
			"invalid wait timeout: expected a positive number of milliseconds, "
			"got %s",
			cases[i].shown);
		CHECK_STR(core.message, want);
		CHECK_INT(destroyed, 1);
	}
}

TEST(a_timeout_is_looked_at_even_for_an_ended_task)
{
	fresh();
	end(start(core.alice, FINAL));
	CHECK_INT(wait_for("bash-1", "0", 0), ERRAND_EREFUSED);
	CHECK(strstr(core.message, "invalid wait timeout"));
}

TEST(unknown_and_foreign_come_before_the_timeout)
{
	fresh();
	(void)start(core.bob, FINAL);
	CHECK_INT(wait_for("nope", "0", 0), ERRAND_EREFUSED);
	CHECK_STR(core.message, "unknown task nope");
	CHECK_INT(wait_for("bash-1", "0", 0), ERRAND_EREFUSED);
	CHECK_STR(core.message, "task bash-1 belongs to another session");
}

TEST(a_timeout_beyond_every_timer_is_refused_for_a_live_task)
{
	fresh();
	(void)start(core.alice, FINAL);
	CHECK_INT(wait_for("bash-1", "2147483648", 0), ERRAND_EREFUSED);
	CHECK_STR(core.message,
		  "deadline timeoutMs must be a positive finite number no greater "
		  "than 2147483647");
	CHECK_INT(wait_for("bash-1", "2147483647", 0), 0);
}

TEST(a_timeout_that_is_no_json_is_a_mistake_of_the_program)
{
	fresh();
	(void)start(core.alice, FINAL);
	CHECK_INT(wait_for("bash-1", "soon", 0), ERRAND_EJSON);
	CHECK_INT(wait_for("bash-1", NULL, 0), ERRAND_EARG);
}

/* ---- aborts ---- */

TEST(an_abort_ends_the_wait_and_not_the_task)
{
	errand_signal s;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	s = signal_new();
	CHECK_INT(wait_for(w->id, "50", s), 0);
	CHECK_INT(errand_abort(core.host, s), 0);
	CHECK_STR(logged(), "");
	run();
	CHECK_STR(logged(), "error(wait aborted);");
	CHECK_STR(status_of(w), "running");
	CHECK_INT(destroyed, 1);
}

TEST(an_abort_that_came_before_refuses_the_wait)
{
	errand_signal s;

	fresh();
	(void)start(core.alice, FINAL);
	s = signal_new();
	CHECK_INT(errand_abort(core.host, s), 0);
	CHECK_INT(wait_for("bash-1", "50", s), ERRAND_EREFUSED);
	CHECK_STR(core.message, "wait aborted");
}

TEST(an_abort_that_came_before_does_not_hide_an_end)
{
	errand_signal s;

	fresh();
	end(start(core.alice, FINAL));
	s = signal_new();
	CHECK_INT(errand_abort(core.host, s), 0);
	CHECK_INT(wait_for("bash-1", "50", s), 0);
	run();
	CHECK_STR(logged(), "waited(completed);");
}

TEST(an_abort_before_a_queued_end_is_processed_wins)
{
	errand_signal s;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	s = signal_new();
	CHECK_INT(wait_for(w->id, "50", s), 0);
	settle(w, ERRAND_COMPLETED, NULL, NULL);
	CHECK_INT(errand_abort(core.host, s), 0);
	run();
	CHECK_STR(logged(), "error(wait aborted);");
	CHECK_INT(notices(core.alice), 1);
}

static int abort_it(void *ud, errand_host *h, errand_reg self, errand_agent owner,
		    const char *json, size_t len, errand_error *e)
{
	(void)self;
	(void)owner;
	(void)json;
	(void)len;
	(void)e;
	(void)errand_abort(h, *(errand_signal *)ud);
	return 0;
}

TEST(an_abort_after_an_end_was_processed_loses)
{
	errand_signal s;
	errand_reg r = 0;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	s = signal_new();
	CHECK_INT(errand_on(core.host, 0, ERRAND_ON_CHANGED, abort_it, &s, NULL, &r, NULL),
		  0);
	CHECK_INT(wait_for(w->id, "50", s), 0);
	end(w);
	CHECK_STR(logged(), "waited(completed);");
	CHECK_INT(notices(core.alice), 0);
}

TEST(an_end_and_a_deadline_of_one_moment_is_an_end)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(wait_for(w->id, "50", 0), 0);
	settle(w, ERRAND_COMPLETED, NULL, NULL);
	pass(50);
	CHECK_STR(logged(), "waited(completed);");
}

TEST(all_waiters_are_released)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	for (int i = 0; i < 3; i++)
		CHECK_INT(wait_for(w->id, "50", 0), 0);
	end(w);
	CHECK_STR(logged(), "waited(completed);waited(completed);waited(completed);");
}

TEST(one_aborted_waiter_leaves_the_others_their_suppression)
{
	errand_signal s;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	s = signal_new();
	CHECK_INT(wait_for(w->id, "50", s), 0);
	CHECK_INT(wait_for(w->id, "50", 0), 0);
	CHECK_INT(errand_abort(core.host, s), 0);
	end(w);
	CHECK_STR(logged(), "error(wait aborted);waited(completed);");
	CHECK_INT(notices(core.alice), 0);
}

TEST(deadlines_fire_in_order)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	for (int i = 20; i > 0; i--) {
		char ms[8];

		(void)snprintf(ms, sizeof(ms), "%d", i * 10);
		CHECK_INT(wait_for(w->id, ms, 0), 0);
	}
	for (int i = 1; i <= 20; i++) {
		CHECK_INT(errand_next_deadline(core.host), i * 10);
		pass(10);
		CHECK_STR(logged(), "waited(running);");
	}
}

TEST(waits_that_were_aborted_leave_the_other_deadlines_in_order)
{
	errand_signal s;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	s = signal_new();
	for (int i = 1; i <= 30; i++) {
		char ms[8];

		(void)snprintf(ms, sizeof(ms), "%d", (i * 7) % 31);
		CHECK_INT(wait_for(w->id, ms, i % 3 ? s : 0), 0);
	}
	CHECK_INT(errand_abort(core.host, s), 0);
	run();
	CHECK_INT(times(logged(), "wait aborted"), 20);
	for (int i = 0; i < 31; i++)
		pass(1);
	CHECK_INT(times(logged(), "waited(running)"), 10);
	CHECK(errand_next_deadline(core.host) == ERRAND_NEVER);
}

TEST(a_waiter_of_a_disposed_owner_gets_the_end)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	w->cancel_settles = true;
	CHECK_INT(wait_for(w->id, "50", 0), 0);
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	run();
	CHECK_STR(logged(), "cancel(owner disposed);waited(killed);");
}

TEST(waiters_go_with_the_host)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(wait_for(w->id, "50", 0), 0);
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_INT(destroyed, 1);
	CHECK_STR(logged(), "");
}

TEST(answers_under_way_go_with_the_host)
{
	fresh();
	end(start(core.alice, FINAL));
	CHECK_INT(wait_for("bash-1", "50", 0), 0);
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_INT(destroyed, 1);
}

/* ---- signals ---- */

TEST(a_signal_is_raised_for_good)
{
	errand_signal s;

	fresh();
	s = signal_new();
	CHECK_INT(errand_aborted(core.host, s), 0);
	CHECK_INT(errand_abort(core.host, s), 0);
	CHECK_INT(errand_abort(core.host, s), 0);
	CHECK_INT(errand_aborted(core.host, s), 1);
}

TEST(a_signal_that_was_freed_is_stale)
{
	errand_signal s;

	fresh();
	s = signal_new();
	CHECK_INT(errand_signal_free(core.host, s), 0);
	CHECK_INT(errand_signal_free(core.host, s), ERRAND_EGONE);
	CHECK_INT(errand_abort(core.host, s), ERRAND_EGONE);
	CHECK_INT(errand_aborted(core.host, s), ERRAND_EGONE);
}

TEST(a_wait_goes_on_without_the_signal_that_was_freed)
{
	errand_signal s;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	s = signal_new();
	CHECK_INT(wait_for(w->id, "50", s), 0);
	CHECK_INT(errand_signal_free(core.host, s), 0);
	end(w);
	CHECK_STR(logged(), "waited(completed);");
}

TEST(a_wait_under_a_stale_signal_is_refused)
{
	fresh();
	(void)start(core.alice, FINAL);
	CHECK_INT(wait_for("bash-1", "50", 4711), ERRAND_EGONE);
}
