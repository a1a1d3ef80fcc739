/* SPDX-License-Identifier: MIT */
/* Tests of src/core/turn.c: the turn of an agent's loop (spec 7.6-7.12, D7, D8). */
#include "session.h"

static void in_a_turn(void)
{
	fresh_session();
	say(ERRAND_NEXT_TURN, "p");
	turn_open();
	(void)events();
}

static int begin(errand_lease l)
{
	return errand_step_begin(core.host, core.alice, l, NULL);
}

static int append(const char *event)
{
	errand_error *e = NULL;
	int rc = errand_log(core.host, core.alice, event, ERRAND_NUL, &e);

	(void)message(e);
	return rc;
}

TEST(a_turn_is_logged_from_start_to_end)
{
	fresh_session();
	say(ERRAND_NEXT_STEP, "a");
	say(ERRAND_NEXT_TURN, "p");
	(void)events();
	turn();
	CHECK_STR(events(),
		  "turn/start 1;next-step@0-1;next-turn@0-1;step/start 1.1;user/message a;"
		  "user/message p;step/end 1.1;turn/end 1 completed;");
	turn();
	CHECK_STR(events(),
		  "turn/start 2;step/start 2.1;step/end 2.1;turn/end 2 completed;");
}

TEST(a_users_message_is_logged_whole_with_its_step)
{
	in_a_turn();
	step_begin(ERRAND_CLAIM_TURN);
	CHECK(strstr(log_json(),
		     "{\"seq\":4,\"type\":\"user/message\",\"data\":{\"turn\":1,\"step\":1,"
		     "\"message\":{\"id\":\"p\",\"role\":\"user\",\"content\":[{\"type\":"
		     "\"text\",\"text\":\"hi\"}],\"source\":{\"kind\":\"user\"}}}}"));
}

TEST(the_state_follows_the_loop)
{
	fresh_session();
	CHECK_INT(turn_state(), ERRAND_IDLE);
	turn_open();
	CHECK_INT(turn_state(), ERRAND_BUSY);
	step_begin(ERRAND_CLAIM_TURN);
	CHECK_INT(turn_state(), ERRAND_BUSY);
	CHECK_INT(step_end(), 0);
	CHECK_INT(turn_state(), ERRAND_CLOSING);
	CHECK_INT(try_close("completed"), 0);
	CHECK_INT(turn_state(), ERRAND_IDLE);
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	CHECK_INT(turn_state(), ERRAND_DISPOSED);
	run();
	CHECK_INT(turn_state(), ERRAND_DISPOSED);
	CHECK_INT(errand_agent_state(NULL, 1), ERRAND_EARG);
}

TEST(a_notice_of_a_step_is_claimed_at_the_next)
{
	in_a_turn();
	step_begin(ERRAND_CLAIM_TURN);
	end(start(core.alice, FINAL));
	(void)events();
	CHECK_INT(step_end(), 1);
	CHECK_INT(turn_state(), ERRAND_BUSY);
	step_begin(ERRAND_CLAIM_STEP);
	CHECK_STR(events(), "step/end 1.1;next-step@0-1;step/start 1.2;user/message m1;");
}

TEST(d8_an_end_in_the_closing_window_gets_one_more_step)
{
	in_a_turn();
	step_begin(ERRAND_CLAIM_TURN);
	CHECK_INT(step_end(), 0);
	end(start(core.alice, FINAL));
	(void)events();
	CHECK_INT(try_close("completed"), ERRAND_ESTATE);
	CHECK_STR(core.message, "next-step holds something: run another step");
	step_begin(ERRAND_CLAIM_STEP);
	CHECK_INT(step_end(), 0);
	CHECK_INT(try_close("completed"), 0);
	CHECK_STR(events(), "next-step@0-1;step/start 1.2;user/message m1;step/end 1.2;"
			    "turn/end 1 completed;");
}

TEST(a_turn_that_did_not_complete_closes_over_what_is_left)
{
	static const char *const kinds[] = {"aborted", "blocked", "error"};

	fresh_session();
	say(ERRAND_NEXT_STEP, "a");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		turn_open();
		CHECK_INT(try_close(kinds[i]), 0);
		CHECK_STR(pending(), "a");
	}
}

TEST(d7_a_rejected_step_loses_no_notice)
{
	fresh_session();
	end(start(core.alice, FINAL));
	say(ERRAND_NEXT_TURN, "p");
	turn_open();
	CHECK_STR(claim(ERRAND_CLAIM_TURN), "m1,p");
	say(ERRAND_NEXT_STEP, "late");
	(void)events();
	CHECK_INT(errand_step_reject(core.host, core.alice, core.lease, NULL), 0);
	CHECK_STR(events(), "next-step@0+m1;next-turn@0+p;");
	CHECK_INT(try_close("blocked"), 0);
	CHECK_STR(pending(), "m1,late,p");
	turn();
	CHECK_STR(events(), "turn/end 1 blocked;turn/start 2;next-step@0-2;next-turn@0-1;"
			    "step/start 2.1;user/message m1;user/message late;"
			    "user/message p;step/end 2.1;turn/end 2 completed;");
}

TEST(d7_the_same_step_number_is_used_after_a_rejection)
{
	in_a_turn();
	(void)claim(ERRAND_CLAIM_TURN);
	CHECK_INT(errand_step_reject(core.host, core.alice, core.lease, NULL), 0);
	step_begin(ERRAND_CLAIM_TURN);
	CHECK_STR(events(), "next-turn@0-1;next-turn@0+p;next-turn@0-1;step/start 1.1;"
			    "user/message p;");
}

TEST(what_arrives_between_claim_and_step_waits_for_the_next)
{
	in_a_turn();
	(void)claim(ERRAND_CLAIM_TURN);
	end(start(core.alice, FINAL));
	CHECK_INT(begin(core.lease), 0);
	CHECK_STR(pending(), "m1");
	CHECK_INT(step_end(), 1);
}

TEST(each_part_has_its_place)
{
	fresh_session();
	CHECK_INT(begin(0), ERRAND_ESTATE);
	CHECK_INT(errand_step_reject(core.host, core.alice, 0, NULL), ERRAND_ESTATE);
	CHECK_INT(errand_step_end(core.host, core.alice, NULL, NULL), ERRAND_ESTATE);
	CHECK_INT(try_close("completed"), ERRAND_ESTATE);
	turn_open();
	CHECK_INT(errand_turn_open(core.host, core.alice, NULL, NULL), ERRAND_ESTATE);
	CHECK_INT(begin(0), 0);
	CHECK_INT(begin(0), ERRAND_ESTATE);
	CHECK_INT(errand_step_reject(core.host, core.alice, 0, NULL), ERRAND_ESTATE);
	CHECK_INT(try_close("aborted"), ERRAND_ESTATE);
	CHECK_STR(events(), "turn/start 1;step/start 1.1;");
}

TEST(a_step_begins_with_a_claim_of_its_own_agent_only)
{
	struct work *w;
	errand_text *t = NULL;
	errand_lease l = 0;

	in_a_turn();
	w = start(core.alice, STREAM);
	emit(w, "x");
	CHECK_INT(errand_read(core.host, w->id, ERRAND_NUL, core.alice, &l, &t, NULL), 0);
	errand_text_free(t);
	CHECK_INT(begin(l), ERRAND_EARG);
	CHECK_INT(begin(4711), ERRAND_EGONE);
	CHECK_INT(errand_step_reject(core.host, core.alice, l, NULL), ERRAND_EARG);
	CHECK_INT(errand_step_reject(core.host, core.alice, 4711, NULL), ERRAND_EGONE);
	CHECK_INT(errand_step_reject(core.host, core.alice, 0, NULL), 0);
	CHECK_INT(errand_turn_open(core.host, 4711, NULL, NULL), ERRAND_EGONE);
}

TEST(events_of_the_loop_go_into_the_log)
{
	in_a_turn();
	CHECK_INT(append(" {\"type\" : \"tool/call\", \"data\":{\"callId\": \"c1\"}}"), 0);
	CHECK(strstr(log_json(),
		     "{\"seq\":2,\"type\":\"tool/call\",\"data\":{\"callId\": \"c1\"}}"));
	CHECK_INT(append("{\"type\":\"assistant/message\"}"), 0);
}

TEST(events_that_are_ours_are_not_the_loops_to_write)
{
	static const char *const bad[] = {
		"{}",
		"[]",
		"{\"type\":7}",
		"{\"type\":\"x\",\"seq\":1}",
		"{\"type\":\"user/message\"}",
		"{\"type\":\"agent/inbox/spliced\"}",
	};

	in_a_turn();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(append(bad[i]), ERRAND_EARG);
	CHECK_INT(append("{"), ERRAND_EJSON);
	CHECK_STR(events(), "");
}

TEST(what_the_log_refuses_has_not_happened)
{
	in_a_turn();
	(void)claim(ERRAND_CLAIM_TURN);
	session.refusal = "disk full";
	CHECK_INT(begin(core.lease), ERRAND_ECALLBACK);
	CHECK_INT(try_close("completed"), ERRAND_ECALLBACK);
	CHECK_INT(append("{\"type\":\"x\"}"), ERRAND_ECALLBACK);
	session.refusal = NULL;
	CHECK_INT(begin(core.lease), 0);
	session.refusal = "disk full";
	CHECK_INT(errand_step_end(core.host, core.alice, NULL, NULL), ERRAND_ECALLBACK);
	session.refusal = NULL;
	CHECK_INT(step_end(), 0);
	CHECK_INT(try_close("completed"), 0);
	session.refusal = "disk full";
	CHECK_INT(errand_turn_open(core.host, core.alice, NULL, NULL), ERRAND_ECALLBACK);
	CHECK_INT(turn_state(), ERRAND_IDLE);
}

/* A step that the log stops behind its start and its first message. */
static void half_a_step(void)
{
	fresh_session();
	say(ERRAND_NEXT_STEP, "a");
	say(ERRAND_NEXT_TURN, "p");
	turn_open();
	(void)claim(ERRAND_CLAIM_TURN);
	(void)events();
	session.refusal = "disk full";
	session.refuse_after = 2;
	CHECK_INT(begin(core.lease), ERRAND_ECALLBACK);
	CHECK_STR(events(), "step/start 1.1;user/message a;");
	CHECK_INT(errand_step_end(core.host, core.alice, NULL, NULL), ERRAND_ESTATE);
	session.refusal = NULL;
}

TEST(a_step_that_the_log_stopped_in_the_middle_goes_on_behind_it)
{
	half_a_step();
	CHECK_INT(begin(core.lease), 0);
	CHECK_INT(step_end(), 0);
	CHECK_STR(events(), "user/message p;step/end 1.1;");
	step_begin(ERRAND_CLAIM_STEP);
	CHECK_STR(events(), "step/start 1.2;");
}

TEST(a_step_that_the_log_stopped_in_the_middle_may_be_rejected)
{
	half_a_step();
	session.refusal = "disk full";
	session.refuse_after = 0;
	CHECK_INT(errand_step_reject(core.host, core.alice, core.lease, NULL),
		  ERRAND_ECALLBACK);
	CHECK_STR(pending(), "");
	session.refusal = NULL;
	CHECK_INT(errand_step_reject(core.host, core.alice, core.lease, NULL), 0);
	CHECK_STR(events(), "step/end 1.1;next-step@0+a;next-turn@0+p;");
	step_begin(ERRAND_CLAIM_TURN);
	CHECK_STR(events(), "next-step@0-1;next-turn@0-1;step/start 1.2;user/message a;"
			    "user/message p;");
}

TEST(a_turn_that_closes_ends_the_step_that_the_log_stopped_in_the_middle)
{
	half_a_step();
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	CHECK_INT(try_close("aborted"), 0);
	CHECK_STR(events(), "next-step@0+a;next-turn@0+p;step/end 1.1;turn/end 1 aborted;");
	turn_open();
	step_begin(ERRAND_CLAIM_STEP);
	CHECK_STR(events(), "turn/start 2;next-step@0-1;step/start 2.1;user/message a;");
}

TEST(a_claim_that_the_log_stopped_in_the_middle_comes_back)
{
	errand_text *t = NULL;

	fresh_session();
	say(ERRAND_NEXT_STEP, "a");
	say(ERRAND_NEXT_TURN, "p");
	session.refusal = "disk full";
	session.refuse_after = 1;
	CHECK_INT(errand_claim(core.host, core.alice, ERRAND_CLAIM_TURN, 0, &core.lease, &t,
			       NULL),
		  ERRAND_ECALLBACK);
	session.refusal = NULL;
	CHECK_STR(pending(), "a,p");
	CHECK_STR(claim(ERRAND_CLAIM_TURN), "a,p");
}

TEST(half_a_pair_in_an_event_or_a_reason_is_replaced)
{
	in_a_turn();
	CHECK_INT(append("{\"type\":\"x\\ud800\",\"data\":[\"\\udfff\"]}"), 0);
	CHECK(strstr(log_json(), "\"type\":\"x\\ufffd\",\"data\":[\"\\ufffd\"]"));
	CHECK_INT(errand_turn_close(core.host, core.alice,
				    "{\"kind\":\"aborted\",\"why\":\"\\ud83d\"}",
				    ERRAND_NUL, NULL),
		  0);
	CHECK(strstr(log_json(), "\"why\":\"\\ufffd\""));
}

TEST(a_reason_has_a_kind)
{
	in_a_turn();
	CHECK_INT(errand_turn_close(core.host, core.alice, "{}", 2, NULL), ERRAND_EARG);
	CHECK_INT(errand_turn_close(core.host, core.alice, "{", 1, NULL), ERRAND_EJSON);
	CHECK_INT(errand_turn_close(core.host, core.alice, NULL, 0, NULL), ERRAND_EARG);
	CHECK_INT(turn_state(), ERRAND_BUSY);
}

TEST(turns_count_on_behind_a_replayed_log)
{
	fresh_session();
	turn();
	turn();
	CHECK_INT(errand_replay(core.host, core.alice, log_json(), ERRAND_NUL, NULL), 0);
	(void)events();
	turn_open();
	CHECK_STR(events(), "turn/start 3;");
	CHECK_INT(errand_replay(core.host, core.alice, "[]", 2, NULL), ERRAND_ESTATE);
}

TEST(an_agent_that_is_being_disposed_may_end_its_turn_but_open_none)
{
	struct work *w;

	in_a_turn();
	w = start(core.alice, FINAL);
	step_begin(ERRAND_CLAIM_TURN);
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	CHECK_INT(step_end(), 0);
	CHECK_INT(try_close("aborted"), 0);
	CHECK_INT(errand_turn_open(core.host, core.alice, NULL, NULL), ERRAND_ESTATE);
	end(w);
}

TEST(a_turn_needs_no_log)
{
	fresh();
	end(start(core.alice, FINAL));
	turn_open();
	CHECK_STR(claim(ERRAND_CLAIM_TURN), "m1");
	CHECK_INT(begin(core.lease), 0);
	CHECK_INT(append("{\"type\":\"x\"}"), 0);
	CHECK_INT(step_end(), 0);
	CHECK_INT(try_close("completed"), 0);
	CHECK_STR(inbox(core.alice), "[]");
}

/* ---- the log, read again ---- */

TEST(what_a_log_took_it_gives_back_however_deep)
{
	char json[2 * MAX_JSON_NESTING + 50];

	fresh_session();
	(void)snprintf(json, sizeof(json), "{\"type\":\"mine\",\"data\":%s}",
		       nested(MAX_JSON_NESTING - 1));
	CHECK_INT(errand_log(core.host, core.alice, json, ERRAND_NUL, NULL), 0);
	(void)snprintf(json, sizeof(json), "{\"role\":\"user\",\"content\":%s}",
		       nested(MAX_JSON_NESTING - 1));
	CHECK_INT(errand_insert(core.host, core.alice, ERRAND_NEXT_STEP, json, ERRAND_NUL,
				NULL, NULL),
		  0);
	CHECK_INT(errand_replay(core.host, core.alice, log_json(), ERRAND_NUL, NULL), 0);
	CHECK_INT(times(inbox(core.alice), "\"content\":[[["), 1);
}

TEST(a_notice_of_another_hosts_task_tells_nothing_of_ours)
{
	static const char log[] =
		"[{\"seq\":0,\"type\":\"agent/inbox/spliced\",\"data\":{\"target\":"
		"\"next-step\",\"start\":0,\"inserted\":[{\"id\":\"old\",\"role\":\"user\","
		"\"content\":[],\"source\":{\"form\":\"notice\"},\"task\":\"bash-1\"}]}}]";
	struct work *w;

	fresh();
	w = start(core.alice, FINAL); /* bash-1 here, too */
	CHECK_INT(errand_replay(core.host, core.alice, log, ERRAND_NUL, NULL), 0);
	(void)claim(ERRAND_CLAIM_NOTICES);
	CHECK_INT(errand_lease_commit(core.host, core.lease), 0);
	end(w);
	CHECK_INT(errand_task_drop(core.host, w->task, NULL), ERRAND_ESTATE);
	CHECK_INT(notices(core.alice), 1);
}
