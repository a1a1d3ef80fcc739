/* SPDX-License-Identifier: MIT */
/* Tests of src/core/log.c, inbox.c, claim.c, replay.c: the inbox in the session's log. */
#include "session.h"

static const char empty[] = "[]";

static void three(void)
{
	fresh_session();
	say(ERRAND_NEXT_STEP, "a");
	say(ERRAND_NEXT_STEP, "b");
	say(ERRAND_NEXT_TURN, "p");
	(void)events();
}

static int replay(const char *json)
{
	errand_error *e = NULL;
	int rc = errand_replay(core.host, core.alice, json, ERRAND_NUL, &e);

	(void)message(e);
	return rc;
}

/* ---- what is logged ---- */

TEST(an_insert_is_logged_with_its_place)
{
	fresh_session();
	say(ERRAND_NEXT_STEP, "a");
	say(ERRAND_NEXT_STEP, "b");
	say(ERRAND_NEXT_TURN, "p");
	CHECK_STR(events(), "next-step@0+a;next-step@1+b;next-turn@0+p;");
	CHECK_STR(pending(), "a,b,p");
}

TEST(an_event_is_the_contracts_to_the_byte)
{
	fresh_session();
	say(ERRAND_NEXT_STEP, "a");
	CHECK_STR(log_json(),
		  "[{\"seq\":0,\"type\":\"agent/inbox/spliced\",\"data\":{\"target\":"
		  "\"next-step\",\"start\":0,\"inserted\":[{\"id\":\"a\",\"role\":\"user\","
		  "\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"source\":{\"kind\":"
		  "\"user\"}}]}}]");
}

TEST(a_claim_is_logged_as_removed_without_an_outcome)
{
	three();
	CHECK_STR(claim(ERRAND_CLAIM_STEP), "a,b");
	CHECK_STR(events(), "next-step@0-2;");
	CHECK_STR(pending(), "p");
}

TEST(a_claim_for_a_turn_takes_one_prompt_behind_all_of_next_step)
{
	three();
	say(ERRAND_NEXT_TURN, "q");
	(void)events();
	CHECK_STR(claim(ERRAND_CLAIM_TURN), "a,b,p");
	CHECK_STR(events(), "next-step@0-2;next-turn@0-1;");
	CHECK_STR(pending(), "q");
}

TEST(a_claim_of_nothing_logs_nothing)
{
	fresh_session();
	CHECK_STR(claim(ERRAND_CLAIM_TURN), "");
	CHECK_STR(events(), "");
}

TEST(a_claim_of_notices_is_logged_where_they_stood)
{
	fresh_session();
	say(ERRAND_NEXT_STEP, "a");
	end(start(core.alice, FINAL));
	say(ERRAND_NEXT_STEP, "b");
	end(start(core.alice, FINAL));
	end(start(core.alice, FINAL));
	(void)events();
	CHECK_STR(claim(ERRAND_CLAIM_NOTICES), "m1,m2,m3");
	CHECK_STR(events(), "next-step@1-1;next-step@2-2;");
	CHECK_STR(pending(), "a,b");
}

TEST(d7_what_comes_back_is_logged_as_inserted_at_the_front)
{
	three();
	(void)claim(ERRAND_CLAIM_TURN);
	say(ERRAND_NEXT_STEP, "c");
	(void)events();
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	CHECK_STR(events(), "next-step@0+a,b;next-turn@0+p;");
	CHECK_STR(pending(), "a,b,c,p");
}

TEST(d7_two_leases_come_back_each_to_its_place)
{
	errand_lease first;

	three();
	(void)claim(ERRAND_CLAIM_STEP);
	first = core.lease;
	say(ERRAND_NEXT_STEP, "c");
	(void)claim(ERRAND_CLAIM_STEP);
	(void)events();
	CHECK_INT(errand_lease_return(core.host, first), 0);
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	CHECK_STR(events(), "next-step@0+a,b;next-step@2+c;");
}

TEST(a_discard_is_logged_as_canceled_where_it_stood)
{
	three();
	CHECK_INT(errand_discard(core.host, core.alice, "b", ERRAND_NUL, NULL), 0);
	CHECK_STR(events(), "next-step@1-1x;");
}

TEST(a_cancel_discards_next_step_before_next_turn)
{
	three();
	(void)listen(ERRAND_ON_INBOX, "inbox");
	CHECK_INT(errand_agent_cancel(core.host, core.alice, 0, NULL), 0);
	CHECK_STR(events(), "next-step@0-2x;next-turn@0-1x;");
	CHECK_STR(inbox(core.alice), empty);
	run();
	CHECK_STR(logged(), "inbox(discarded);inbox(discarded);inbox(discarded);");
}

TEST(a_cancel_may_keep_the_inbox)
{
	three();
	CHECK_INT(errand_agent_cancel(core.host, core.alice, 1, NULL), 0);
	CHECK_STR(events(), "");
	CHECK_STR(pending(), "a,b,p");
	CHECK_INT(errand_agent_cancel(core.host, 4711, 1, NULL), ERRAND_EGONE);
}

TEST(disposal_logs_what_it_discards)
{
	three();
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	CHECK_STR(events(), "next-step@0-2x;next-turn@0-1x;");
	CHECK_INT(try_say(ERRAND_NEXT_STEP, "z", "user"), ERRAND_ESTATE);
	run();
	CHECK_STR(events(), "");
}

TEST(a_message_is_pending_once_in_both_lists_together)
{
	three();
	CHECK_INT(try_say(ERRAND_NEXT_TURN, "a", "user"), ERRAND_EREFUSED);
	CHECK_STR(core.message, "message \"a\" is already pending");
	(void)claim(ERRAND_CLAIM_STEP);
	CHECK_INT(try_say(ERRAND_NEXT_TURN, "a", "user"), ERRAND_EREFUSED);
	CHECK_STR(events(), "next-step@0-2;");
}

TEST(observers_hear_of_the_list_and_of_the_turn_of_a_claim)
{
	fresh_session();
	CHECK_INT(errand_on(core.host, 0, ERRAND_ON_INBOX, on_event, (char[]){"inbox"},
			    NULL, &(errand_reg){0}, NULL),
		  0);
	say(ERRAND_NEXT_TURN, "p");
	(void)claim(ERRAND_CLAIM_TURN);
	run();
	CHECK_STR(logged(), "inbox(inserted);inbox(claimed);");
}

/* ---- a log that refuses ---- */

static void refuse(int after)
{
	session.refusal = "disk full";
	session.refuse_after = after;
}

TEST(an_insert_that_the_log_refuses_does_not_happen)
{
	three();
	refuse(0);
	CHECK_INT(try_say(ERRAND_NEXT_STEP, "c", "user"), ERRAND_ECALLBACK);
	CHECK_STR(core.message, "disk full");
	CHECK_STR(pending(), "a,b,p");
	session.refusal = NULL;
	say(ERRAND_NEXT_STEP, "c");
	CHECK_STR(events(), "next-step@2+c;");
}

TEST(a_notice_that_the_log_refuses_is_lost_with_a_warning)
{
	struct work *w;

	fresh_session();
	w = start(core.alice, FINAL);
	refuse(0);
	end(w);
	CHECK_STR(logged(),
		  "warn(tasks: onTaskDone listener threw for bash-1: Error: disk full);");
	CHECK_STR(inbox(core.alice), empty);
	CHECK(!is_reported(w));
}

TEST(a_claim_that_the_log_refuses_takes_nothing)
{
	errand_lease l = 99;
	errand_text *t = NULL;

	three();
	refuse(1); /* next-step goes, next-turn does not */
	CHECK_INT(errand_claim(core.host, core.alice, ERRAND_CLAIM_TURN, 1, &l, &t, NULL),
		  ERRAND_ECALLBACK);
	CHECK_INT(l, 99);
	CHECK(t == NULL);
	CHECK_STR(pending(), "a,b,p");
	CHECK_STR(logged(),
		  "warn(inbox of alice was given back to although its log refused: "
		  "Error: disk full);");
}

TEST(a_cancel_that_the_log_refuses_keeps_the_rest)
{
	three();
	refuse(0);
	CHECK_INT(errand_agent_cancel(core.host, core.alice, 0, NULL), ERRAND_ECALLBACK);
	CHECK_INT(errand_discard(core.host, core.alice, "a", 1, NULL), ERRAND_ECALLBACK);
	CHECK_STR(pending(), "a,b,p");
}

TEST(disposal_clears_the_inbox_whatever_the_log_says)
{
	three();
	refuse(0);
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	CHECK_STR(inbox(core.alice), empty);
	CHECK_STR(logged(), "warn(inbox of alice was cleared although its log refused: "
			    "Error: disk full);");
}

/* ---- replay ---- */

TEST(a_log_that_is_replayed_gives_the_same_inbox)
{
	static char before[8192];

	three();
	end(start(core.alice, FINAL));
	(void)claim(ERRAND_CLAIM_TURN);
	say(ERRAND_NEXT_STEP, "c");
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	CHECK_INT(errand_discard(core.host, core.alice, "b", 1, NULL), 0);
	(void)snprintf(before, sizeof(before), "%s", inbox(core.alice));
	(void)listen(ERRAND_ON_INBOX, "inbox");
	CHECK_INT(replay(log_json()), 0);
	CHECK_STR(inbox(core.alice), before);
	CHECK_STR(pending(), "a,m1,c,p");
	run();
	CHECK_STR(logged(), "");
}

TEST(a_replayed_notice_is_one_again)
{
	fresh_session();
	end(start(core.alice, FINAL));
	say(ERRAND_NEXT_STEP, "a");
	CHECK_INT(replay(log_json()), 0);
	CHECK_STR(claim(ERRAND_CLAIM_NOTICES), "m1");
}

TEST(what_is_said_to_be_a_notice_is_none)
{
	fresh_session();
	CHECK_INT(
		errand_insert(core.host, core.alice, ERRAND_NEXT_STEP,
			      "{\"content\":[],\"id\":\"x\",\"task\":\"bash-1\",\"source\":"
			      "{\"form\":\"notice\"}}",
			      ERRAND_NUL, NULL, NULL),
		0);
	CHECK_STR(claim(ERRAND_CLAIM_NOTICES), "");
}

TEST(a_log_goes_on_behind_what_was_replayed)
{
	three();
	CHECK_INT(replay(log_json()), 0);
	CHECK_INT(session.next_seq, 3);
	say(ERRAND_NEXT_STEP, "c");
	CHECK_STR(events(), "next-step@2+c;");
}

TEST(other_events_do_not_touch_the_inbox)
{
	fresh_session();
	CHECK_INT(replay("[{\"seq\":7,\"type\":\"assistant/message\",\"data\":{}},"
			 "{\"type\":\"turn/start\",\"data\":{\"turn\":3}}]"),
		  0);
	CHECK_STR(inbox(core.alice), empty);
}

#define SPLICE(seq, data)                                                                  \
	"{\"seq\":" #seq ",\"type\":\"agent/inbox/spliced\",\"data\":{" data "}}"
#define MESSAGE(id) "{\"id\":\"" id "\",\"role\":\"user\",\"content\":[]}"

TEST(a_splice_that_cannot_be_is_named_and_nothing_changes)
{
	static const char *const cases[] = {
		"\"target\":\"next-step\",\"start\":1,\"inserted\":[]",
		"\"target\":\"next-step\",\"start\":-1,\"inserted\":[]",
		"\"target\":\"next-step\",\"start\":0.5,\"inserted\":[]",
		"\"target\":\"next-step\",\"start\":0,\"removedCount\":1,\"inserted\":[]",
		"\"target\":\"elsewhere\",\"start\":0,\"inserted\":[]",
		"\"target\":\"next-step\",\"start\":0",
		"\"target\":\"next-step\",\"start\":0,\"inserted\":[{}]",
		"\"target\":\"next-step\",\"start\":0,\"inserted\":[{\"id\":\"x\"}]",
		"\"target\":\"next-step\",\"start\":0,\"inserted\":[" MESSAGE(
			"x") "," MESSAGE("x") "]",
	};
	char json[512];

	three();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)snprintf(json, sizeof(json), "[" SPLICE(41, "%s") "]", cases[i]);
		CHECK_INT(replay(json), ERRAND_EREFUSED);
		CHECK_STR(core.message, "invalid persisted inbox splice at session seq 41");
		CHECK_STR(pending(), "a,b,p");
	}
	say(ERRAND_NEXT_STEP, "c");
}

TEST(what_is_no_log_is_not_replayed)
{
	three();
	CHECK_INT(replay("{}"), ERRAND_EJSON);
	CHECK_INT(replay("["), ERRAND_EJSON);
	CHECK_INT(errand_replay(core.host, core.alice, NULL, 0, NULL), ERRAND_EARG);
	CHECK_INT(errand_replay(core.host, 4711, "[]", 2, NULL), ERRAND_EGONE);
	CHECK_STR(pending(), "a,b,p");
}

TEST(there_is_no_replay_while_messages_are_on_a_lease)
{
	three();
	(void)claim(ERRAND_CLAIM_STEP);
	CHECK_INT(replay("[]"), ERRAND_ESTATE);
	CHECK_INT(errand_lease_commit(core.host, core.lease), 0);
	CHECK_INT(replay("[]"), 0);
	CHECK_STR(inbox(core.alice), empty);
}

TEST(the_ud_of_an_agent_is_destroyed_with_it_or_with_the_refusal)
{
	struct errand_agent_options o = {.size = sizeof(o),
					 .session = str("alice"),
					 .ud = &core.work[0],
					 .destroy = work_destroy};
	errand_agent a = 0;

	fresh_session();
	CHECK_INT(errand_agent_new(core.host, &o, &a, NULL), ERRAND_EREFUSED);
	CHECK_INT(core.work[0].destroyed, 1);
	o.session = str("carol");
	CHECK_INT(errand_agent_new(core.host, &o, &a, NULL), 0);
	CHECK_INT(errand_agent_dispose(core.host, a, NULL, NULL, NULL, NULL), 0);
	CHECK_INT(core.work[0].destroyed, 1);
	run();
	CHECK_INT(core.work[0].destroyed, 2);
}
