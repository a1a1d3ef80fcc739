/* SPDX-License-Identifier: MIT */
/* Tests of D8: an end wakes an idle owner (spec 13.2, 10.6). */
#include "session.h"

static struct work *end_one(void)
{
	struct work *w = start(core.alice, FINAL);

	end(w);
	return w;
}

static const char *mount_error(const char *config)
{
	errand_error *e = NULL;
	errand_reg r;

	bare(NULL);
	CHECK_INT(errand_mount(core.host, 0, config, ERRAND_NUL, &r, &e), ERRAND_EREFUSED);
	return message(e);
}

TEST(d8_an_end_wakes_an_idle_owner_with_a_turn_of_its_own)
{
	fresh_waking();
	(void)end_one();
	CHECK_STR(events(), "next-turn@0+m1;");
	CHECK_STR(logged(), "wake;");
}

TEST(d8_the_turn_may_be_opened_inside_wake)
{
	fresh_waking();
	session.on_wake = turn;
	(void)end_one();
	CHECK_STR(events(), "next-turn@0+m1;turn/start 1;next-turn@0-1;step/start 1.1;"
			    "user/message m1;step/end 1.1;turn/end 1 completed;");
	CHECK_STR(inbox(core.alice), "[]");
}

TEST(d8_a_busy_owner_is_injected)
{
	fresh_waking();
	turn_open();
	step_begin(ERRAND_CLAIM_TURN);
	(void)events();
	(void)end_one();
	CHECK_STR(events(), "next-step@0+m1;");
	CHECK_STR(logged(), "");
}

TEST(d8_so_is_one_whose_user_has_stopped_it)
{
	fresh_waking();
	turn_open();
	CHECK_INT(errand_agent_cancel(core.host, core.alice, 0, NULL), 0);
	(void)end_one();
	CHECK_INT(try_close("aborted"), 0);
	run();
	CHECK_STR(pending(), "m1");
	CHECK_STR(logged(), "");
}

TEST(d8_an_end_after_the_turn_has_closed_wakes)
{
	fresh_waking();
	turn();
	(void)end_one();
	CHECK_STR(logged(), "wake;");
}

static errand_lease shown;

static void on_waited(void *ud, errand_host *h, errand_lease l, const char *snapshot_json,
		      size_t len, const errand_error *e)
{
	(void)ud;
	(void)h;
	(void)snapshot_json;
	(void)len;
	(void)e;
	shown = l;
}

TEST(d8_so_does_one_that_was_owed_again_just_before_it_closed)
{
	const struct work *w;

	fresh_waking();
	w = start(core.alice, FINAL);
	CHECK_INT(errand_wait(core.host, w->id, ERRAND_NUL, core.alice, "5", 1, 0,
			      on_waited, NULL, NULL, NULL),
		  0);
	turn_open();
	end(w); /* its notice waits for what becomes of the lease */
	CHECK_STR(inbox(core.alice), "[]");
	CHECK_INT(errand_lease_return(core.host, shown), 0);
	CHECK_INT(try_close("completed"), 0);
	run();
	CHECK_INT(times(inbox(core.alice), "\"target\":\"next-turn\""), 1);
	CHECK_STR(logged(), "wake;");
}

TEST(d8_quiet_never_wakes)
{
	fresh_with("{\"completionDelivery\":\"quiet\"}", true);
	(void)end_one();
	CHECK_STR(events(), "next-step@0+m1;");
	CHECK_STR(logged(), "");
}

TEST(d8_who_cannot_be_woken_is_injected)
{
	fresh_session();
	(void)end_one();
	CHECK_STR(events(), "next-step@0+m1;");
}

TEST(d8_three_turns_are_opened_without_a_user)
{
	fresh_waking();
	session.on_wake = turn;
	for (int i = 0; i < 5; i++)
		(void)end_one();
	CHECK_INT(session.wakes, 3);
	CHECK_STR(pending(), "m4,m5");
}

TEST(d8_a_delivered_user_message_refills_the_budget)
{
	fresh_with("{\"maxConsecutiveWakes\":1}", true);
	session.on_wake = turn;
	(void)end_one();
	(void)end_one();
	CHECK_INT(session.wakes, 1);
	say(ERRAND_NEXT_TURN, "p");
	(void)end_one();
	CHECK_INT(session.wakes, 1);
	turn();
	(void)end_one();
	CHECK_INT(session.wakes, 2);
}

TEST(d8_a_plugin_never_refills_it)
{
	fresh_with("{\"maxConsecutiveWakes\":1}", true);
	session.on_wake = turn;
	(void)end_one();
	CHECK_INT(try_say(ERRAND_NEXT_TURN, "p", "plugin"), 0);
	turn();
	(void)end_one();
	CHECK_INT(session.wakes, 1);
}

static void refused_turn(void)
{
	turn_open();
	(void)claim(ERRAND_CLAIM_TURN);
	CHECK_INT(errand_step_reject(core.host, core.alice, core.lease, NULL), 0);
	CHECK_INT(try_close("blocked"), 0);
}

TEST(d8_turns_that_are_refused_cost_their_wakes_too)
{
	fresh_with("{\"maxConsecutiveWakes\":2}", true);
	session.on_wake = refused_turn;
	(void)end_one();
	CHECK_INT(session.wakes, 2);
	CHECK_STR(pending(), "m1");
	session.on_wake = NULL;
	say(ERRAND_NEXT_STEP, "u"); /* a user's word makes new ones */
	turn_open();
	step_begin(ERRAND_CLAIM_STEP);
	CHECK_INT(step_end(), 0);
	CHECK_INT(try_close("completed"), 0);
	run();
	CHECK_INT(session.wakes, 3);
}

TEST(d8_what_had_to_wait_for_the_users_word_is_asked_when_that_is_delivered)
{
	fresh_with("{\"maxConsecutiveWakes\":1}", true);
	(void)end_one();
	CHECK_INT(session.wakes, 1);
	turn_open();
	say(ERRAND_NEXT_STEP, "u");
	(void)claim(ERRAND_CLAIM_STEP);
	CHECK_INT(try_close("completed"), 0);
	run();
	CHECK_INT(session.wakes, 1);
	CHECK_INT(errand_lease_commit(core.host, core.lease), 0);
	run();
	CHECK_INT(session.wakes, 2);
}

TEST(d8_so_is_what_ended_after_the_turn_that_took_the_users_word)
{
	fresh_with("{\"maxConsecutiveWakes\":1}", true);
	session.on_wake = turn;
	(void)end_one();
	session.on_wake = NULL;
	turn_open();
	say(ERRAND_NEXT_STEP, "u");
	(void)claim(ERRAND_CLAIM_STEP);
	CHECK_INT(try_close("completed"), 0);
	(void)end_one(); /* the budget is spent */
	CHECK_INT(session.wakes, 1);
	CHECK_INT(errand_lease_commit(core.host, core.lease), 0);
	run();
	CHECK_INT(session.wakes, 2);
}

/* The end of a task lies on next-step, and no turn is open. */
static void park_one(const char *reason)
{
	turn_open();
	(void)end_one();
	CHECK_INT(try_close(reason), 0);
	run();
}

TEST(d8_a_turn_that_was_blocked_with_a_notice_on_next_step_is_asked_for_again)
{
	fresh_with("{\"maxConsecutiveWakes\":1}", true);
	park_one("blocked");
	CHECK_INT(session.wakes, 1);
	CHECK_INT(times(inbox(core.alice), "\"target\":\"next-step\""), 1);
	session.on_wake = turn;
	(void)end_one(); /* and its wake is paid for */
	CHECK_INT(session.wakes, 1);
}

TEST(d8_a_notice_that_comes_back_after_the_turn_wakes)
{
	fresh_waking();
	turn_open();
	(void)end_one();
	CHECK_STR(claim(ERRAND_CLAIM_STEP), "m1");
	CHECK_INT(try_close("completed"), 0);
	run();
	CHECK_STR(logged(), "");
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	run();
	CHECK_STR(logged(), "wake;");
	turn();
	CHECK_STR(inbox(core.alice), "[]");
}

/* What a host that went has left in the log of the session, for a fresh one. */
static void replay_into_fresh(void)
{
	static char log[65536];

	(void)snprintf(log, sizeof(log), "%s", log_json());
	fresh_waking();
	CHECK_INT(errand_replay(core.host, core.alice, log, ERRAND_NUL, NULL), 0);
	CHECK_INT(session.wakes, 0);
	run();
}

TEST(d8_a_notice_that_a_log_gives_back_wakes)
{
	fresh_waking();
	turn_open();
	(void)end_one();
	replay_into_fresh();
	CHECK_STR(pending(), "m1");
	CHECK_INT(session.wakes, 1);
}

TEST(d8_but_not_what_was_there_when_the_user_stopped_the_last_turn_of_it)
{
	fresh_waking();
	park_one("aborted");
	replay_into_fresh();
	CHECK_STR(pending(), "m1");
	CHECK_INT(session.wakes, 0);
}

TEST(d8_what_ended_behind_that_turn_does_and_a_prompt_does_not)
{
	fresh_waking();
	park_one("aborted");
	(void)end_one();
	replay_into_fresh();
	CHECK_INT(session.wakes, 1);
	fresh_waking();
	say(ERRAND_NEXT_TURN, "p");
	replay_into_fresh();
	CHECK_STR(pending(), "p");
	CHECK_INT(session.wakes, 0);
}

TEST(d8_what_comes_back_to_a_quiet_agent_does_not)
{
	fresh_with("{\"completionDelivery\":\"quiet\"}", true);
	(void)end_one();
	CHECK_STR(claim(ERRAND_CLAIM_NOTICES), "m1");
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	run();
	CHECK_STR(logged(), "");
}

TEST(d8_nor_a_prompt_that_comes_back)
{
	fresh_waking();
	say(ERRAND_NEXT_TURN, "p");
	(void)claim(ERRAND_CLAIM_TURN);
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	run();
	CHECK_STR(logged(), "");
}

TEST(d8_whom_the_user_has_stopped_only_another_end_wakes)
{
	fresh_waking();
	park_one("aborted");
	CHECK_STR(claim(ERRAND_CLAIM_NOTICES), "m1");
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	run();
	CHECK_STR(logged(), "");
	(void)end_one();
	CHECK_STR(logged(), "wake;");
}

TEST(d8_a_turn_that_is_asked_for_is_not_when_the_user_stops_the_next)
{
	fresh_waking();
	turn_open();
	(void)end_one();
	CHECK_INT(try_close("blocked"), 0);
	turn_open();
	CHECK_INT(try_close("aborted"), 0);
	run();
	CHECK_STR(logged(), "");
}

TEST(d8_nor_does_a_user_message_that_was_not_delivered)
{
	fresh_with("{\"maxConsecutiveWakes\":1}", true);
	session.on_wake = turn;
	(void)end_one();
	say(ERRAND_NEXT_STEP, "p");
	turn_open();
	(void)claim(ERRAND_CLAIM_TURN);
	CHECK_INT(errand_step_reject(core.host, core.alice, core.lease, NULL), 0);
	CHECK_INT(try_close("blocked"), 0);
	(void)end_one();
	CHECK_INT(session.wakes, 1);
}

TEST(d8_a_reported_end_wakes_nobody)
{
	struct work *w;

	fresh_waking();
	w = start(core.alice, FINAL);
	(void)kill_of(w);
	settle(w, ERRAND_KILLED, NULL, NULL);
	run();
	CHECK_STR(logged(), "cancel;");
}

TEST(d8_a_returned_end_wakes_when_it_comes_back)
{
	struct work *w;

	fresh_waking();
	w = start(core.alice, FINAL);
	core.fate = ERRAND_HELD;
	(void)wait_for_output(w, 1000);
	end(w);
	CHECK_STR(logged(), "");
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	run();
	CHECK_STR(logged(), "wake;");
	CHECK_STR(events(), "next-turn@0+m1;");
}

TEST(d8_what_ends_while_a_turn_is_asked_for_goes_along)
{
	struct work *a, *b;

	fresh_waking();
	session.on_wake = turn;
	a = start(core.alice, FINAL);
	b = start(core.alice, FINAL);
	settle(a, ERRAND_COMPLETED, NULL, NULL);
	settle(b, ERRAND_COMPLETED, NULL, NULL);
	run();
	CHECK_INT(session.wakes, 1);
	CHECK_STR(inbox(core.alice), "[]");
}

TEST(d8_a_wake_that_came_in_a_turn_is_repeated_behind_it)
{
	fresh_waking();
	settle(start(core.alice, FINAL), ERRAND_COMPLETED, NULL, NULL);
	/* The settlement, then its listeners; the wake is still queued. */
	CHECK_INT(errand_run(core.host, 0, WALL, 2), 1);
	CHECK_STR(pending(), "m1");
	turn_open();
	run();
	CHECK_STR(logged(), "");
	CHECK_INT(errand_step_begin(core.host, core.alice, 0, NULL), 0);
	CHECK_INT(step_end(), 0);
	CHECK_INT(try_close("completed"), 0);
	run();
	CHECK_STR(logged(), "wake;");
}

TEST(d8_a_notice_that_was_taken_meanwhile_wakes_nobody)
{
	fresh_waking();
	settle(start(core.alice, FINAL), ERRAND_COMPLETED, NULL, NULL);
	CHECK_INT(errand_run(core.host, 0, WALL, 2), 1);
	CHECK_STR(claim(ERRAND_CLAIM_NOTICES), "m1");
	run();
	CHECK_STR(logged(), "");
}

TEST(d8_who_goes_is_not_woken)
{
	fresh_waking();
	settle(start(core.alice, FINAL), ERRAND_COMPLETED, NULL, NULL);
	CHECK_INT(errand_run(core.host, 0, WALL, 2), 1);
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	run();
	CHECK_STR(logged(), "");
}

TEST(the_host_may_go_while_a_turn_is_asked_for)
{
	fresh_waking();
	settle(start(core.alice, FINAL), ERRAND_COMPLETED, NULL, NULL);
	CHECK_INT(errand_run(core.host, 0, WALL, 2), 1);
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_STR(logged(), "");
}

TEST(a_budget_is_a_whole_number_of_turns)
{
	CHECK_STR(mount_error("{\"maxConsecutiveWakes\":2.5}"),
		  "tool-tasks: maxConsecutiveWakes (2.5) must be a whole number of turns");
	CHECK_STR(
		mount_error("{\"maxConsecutiveWakes\":0}"),
		"invalid config:\n  - $.maxConsecutiveWakes expected number >= 1 but got 0 "
		"(at maxConsecutiveWakes)");
	CHECK_STR(mount_error("{\"maxConsecutiveWakes\":1e999}"),
		  "invalid config:\n  - $.maxConsecutiveWakes expected number >= 1 but got "
		  "1e999 (at maxConsecutiveWakes)");
	CHECK_STR(mount_error("1e999"),
		  "invalid config:\n  - $ expected object but got 1e999");
}

TEST(a_delivery_is_quiet_or_wakeup)
{
	CHECK_STR(
		mount_error("{\"completionDelivery\":\"loud\"}"),
		"invalid config:\n  - $.completionDelivery expected \"quiet\" | \"wakeup\" "
		"but got \"loud\" (at completionDelivery)");
	CHECK(strstr(mount_error("{\"completionDelivery\":1}"), "but got 1 (at"));
}

TEST(what_is_null_keeps_its_default)
{
	fresh_with("{\"completionDelivery\":null,\"maxConsecutiveWakes\":null}", true);
	session.on_wake = turn;
	for (int i = 0; i < 4; i++)
		(void)end_one();
	CHECK_INT(session.wakes, 3);
}
