/* SPDX-License-Identifier: MIT */
/* Tests of the chains of policies: who takes part, in which order, what each may say before
 * the body runs (spec 9.2-9.5). */
#include "seats.h"

#define HI "{\"s\":\"hi\"}"

/* ---- order ---- */

TEST(listeners_speak_in_order_of_registration_and_prepended_ones_first)
{
	static struct seat a = {.name = "a"}, b = {.name = "b"}, c = {.name = "c"},
			   d = {.name = "d"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &a);
	CHECK_INT(try_sit(0, ERRAND_STAGE_PRE, ERRAND_PREPEND, &b), 0);
	sit(ERRAND_STAGE_PRE, &c);
	CHECK_INT(try_sit(0, ERRAND_STAGE_PRE, ERRAND_PREPEND, &d), 0);
	CHECK_STR(echoed(), HI);
	CHECK_STR(logged(), "d;b;a;c;");
}

/* Not by scope: by the moment of registration. */
TEST(the_order_goes_over_all_scopes)
{
	static struct seat near = {.name = "near"}, global = {.name = "global"},
			   own = {.name = "own"}, first = {.name = "first"};
	errand_scope s;
	errand_agent x;

	fresh_seats();
	s = preset();
	x = agent_in("x", s);
	CHECK_INT(try_sit(s, ERRAND_STAGE_AROUND, 0, &near), 0);
	CHECK_INT(try_sit(0, ERRAND_STAGE_AROUND, 0, &global), 0);
	CHECK_INT(try_sit(x, ERRAND_STAGE_AROUND, 0, &own), 0);
	CHECK_INT(try_sit(s, ERRAND_STAGE_AROUND, ERRAND_PREPEND, &first), 0);
	CHECK_STR(call(x, "echo", "{}"), HI);
	CHECK_STR(logged(), "first;near;global;own;");
	CHECK_STR(echoed(), HI);
	CHECK_STR(logged(), "global;");
	CHECK_STR(call(0, "echo", "{}"), HI);
	CHECK_STR(logged(), "global;");
}

TEST(guards_speak_from_far_to_near)
{
	static struct seat own = {.name = "own"}, near = {.name = "near", .say = "{}"},
			   global = {.name = "global"};
	errand_scope s;
	errand_agent x;

	fresh_seats();
	s = preset();
	x = agent_in("x", s);
	CHECK_INT(try_sit(x, ERRAND_STAGE_GUARD, 0, &own), 0);
	CHECK_INT(try_sit(s, ERRAND_STAGE_GUARD, 0, &near), 0);
	CHECK_INT(try_sit(0, ERRAND_STAGE_GUARD, 0, &global), 0);
	CHECK_STR(call(x, "echo", "{}"), HI);
	CHECK_STR(logged(), "global;near;own;");
}

TEST(an_answer_ends_the_chain_and_goes_back_through_it)
{
	static struct seat a = {.name = "a", .has_back = true}, b = {.name = "b"},
			   c = {.name = "c", .has_back = true},
			   d = {.name = "d",
				.say = "{\"kind\":\"deny\",\"reason\":\"no\"}"},
			   e = {.name = "e"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &a);
	sit(ERRAND_STAGE_PRE, &b);
	sit(ERRAND_STAGE_PRE, &c);
	sit(ERRAND_STAGE_PRE, &d);
	sit(ERRAND_STAGE_PRE, &e);
	CHECK_STR(echoed(), "Error: no");
	CHECK_STR(logged(), "a;b;c;d;back-c{\"kind\":\"deny\",\"reason\":\"no\"};"
			    "back-a{\"kind\":\"deny\",\"reason\":\"no\"};");
	CHECK_INT(tool.entered, 0);
}

TEST(the_end_of_the_chain_allows_and_back_may_change_that)
{
	static struct seat a = {.name = "a",
				.has_back = true,
				.back_say = "{\"kind\":\"deny\",\"reason\":\"after all\"}"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &a);
	CHECK_STR(echoed(), "Error: after all");
	CHECK_STR(logged(), "a;back-a{\"kind\":\"allow\"};");
}

TEST(back_may_recover_what_was_thrown)
{
	static struct seat a = {.name = "a",
				.has_back = true,
				.back_say = "{\"kind\":\"allow\"}"},
			   b = {.name = "b", .fail = "boom"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &a);
	sit(ERRAND_STAGE_PRE, &b);
	CHECK_STR(echoed(), HI);
	CHECK_STR(logged(), "a;b;back-a!boom;");
}

TEST(back_may_throw_what_was_answered)
{
	static struct seat a = {.name = "a", .has_back = true},
			   b = {.name = "b", .has_back = true, .back_fail = "late boom"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &a);
	sit(ERRAND_STAGE_PRE, &b);
	CHECK_STR(echoed(), "Error: late boom");
	CHECK_STR(logged(), "a;b;back-b{\"kind\":\"allow\"};back-a!late boom;");
}

/* ---- suspended ---- */

TEST(every_stage_may_be_answered_later)
{
	static struct seat pre = {.name = "pre", .is_later = true},
			   ask = {.name = "ask", .is_later = true, .shows = true},
			   guard = {.name = "guard", .is_later = true},
			   around = {.name = "around", .is_later = true},
			   post = {.name = "post", .is_later = true, .shows = true};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &pre);
	sit(ERRAND_STAGE_APPROVAL, &ask);
	sit(ERRAND_STAGE_GUARD, &guard);
	sit(ERRAND_STAGE_AROUND, &around);
	sit(ERRAND_STAGE_POST, &post);
	tool.answer = NULL;
	(void)begin("{}");
	run();
	go_on(&pre, "{\"kind\":\"ask\",\"reason\":\"sure?\"}");
	go_on(&ask, "{\"kind\":\"allowed-once\"}");
	go_on(&guard, "{}");
	CHECK_INT(errand_next(core.host, around.frame), 0);
	run();
	CHECK_INT(errand_answer(core.host, tool.frame, "{\"s\":\"late\"}", ERRAND_NUL), 0);
	run();
	CHECK_INT(core.results, 0);
	go_on(&post, "{\"kind\":\"accept\"}");
	CHECK_INT(core.results, 1);
	CHECK_STR(result_text(), "{\"s\":\"late\"}");
	CHECK_STR(logged(),
		  "pre;ask({\"kind\":\"ask\",\"reason\":\"sure?\"});guard;around;"
		  "post({\"isError\":false,\"content\":[{\"type\":\"text\",\"text\":"
		  "\"{\\\"s\\\":\\\"late\\\"}\"}],\"value\":{\"s\":\"late\"}});");
}

TEST(a_frame_is_answered_once)
{
	static struct seat a = {.name = "a", .is_later = true};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &a);
	(void)begin("{}");
	run();
	CHECK_INT(errand_answer(core.host, a.frame, "{\"kind\":\"allow\"}", ERRAND_NUL), 0);
	CHECK_INT(errand_answer(core.host, a.frame, "{\"kind\":\"allow\"}", ERRAND_NUL),
		  ERRAND_EGONE);
	CHECK_INT(errand_fail(core.host, a.frame, NULL), ERRAND_EGONE);
	CHECK_INT(errand_next(core.host, a.frame), ERRAND_EGONE);
	run();
	CHECK_STR(result_text(), HI);
}

TEST(next_is_said_once_and_then_the_rest_runs)
{
	static struct seat a = {.name = "a", .is_later = true},
			   b = {.name = "b", .is_later = true};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &a);
	sit(ERRAND_STAGE_PRE, &b);
	(void)begin("{}");
	run();
	CHECK_INT(errand_next(core.host, a.frame), 0);
	CHECK_STR(logged(), "a;");
	CHECK_INT(errand_next(core.host, a.frame), ERRAND_ESTATE);
	CHECK_INT(errand_answer(core.host, a.frame, "{}", 2), ERRAND_ESTATE);
	CHECK_INT(errand_fail(core.host, a.frame, NULL), ERRAND_ESTATE);
	run();
	CHECK_STR(logged(), "b;");
	CHECK_INT(errand_answer(core.host, a.frame, "{}", 2), ERRAND_ESTATE);
	CHECK_INT(errand_next(core.host, b.frame), 0);
	run();
	CHECK_INT(errand_next(core.host, a.frame), ERRAND_EGONE);
	CHECK_STR(result_text(), HI);
}

static void next_in_back(void *ud, errand_host *h, errand_frame f,
			 const struct errand_frame_view *v)
{
	(void)ud;
	CHECK_INT(errand_next(h, f), ERRAND_ESTATE);
	CHECK_INT(errand_answer(h, f, v->answer_json.ptr, v->answer_json.len), 0);
}

TEST(there_is_no_next_in_back_or_in_a_body)
{
	static struct seat a = {.name = "a"};
	struct errand_listener l = {.size = sizeof(l),
				    .stage = ERRAND_STAGE_PRE,
				    .enter = seat_enter,
				    .back = next_in_back,
				    .ud = &a};

	fresh_seats();
	a.stage = ERRAND_STAGE_PRE;
	CHECK_INT(errand_listen(core.host, 0, &l, NULL, NULL), 0);
	tool.answer = NULL;
	(void)begin("{}");
	run();
	CHECK_INT(errand_next(core.host, tool.frame), ERRAND_ESTATE);
	CHECK_INT(errand_answer(core.host, tool.frame, HI, ERRAND_NUL), 0);
	run();
	CHECK_STR(result_text(), HI);
}

/* ---- listeners come and go ---- */

TEST(a_listener_that_is_removed_before_its_turn_is_skipped)
{
	static struct seat a = {.name = "a", .is_later = true}, b = {.name = "b"},
			   c = {.name = "c"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &a);
	sit(ERRAND_STAGE_PRE, &b);
	sit(ERRAND_STAGE_PRE, &c);
	(void)begin("{}");
	run();
	CHECK_INT(errand_unregister(core.host, b.reg), 0);
	CHECK_INT(errand_next(core.host, a.frame), 0);
	run();
	CHECK_STR(logged(), "a;c;");
	CHECK_STR(result_text(), HI);
	b.destroyed = 0;
}

TEST(a_listener_that_is_added_waits_for_the_next_call)
{
	static struct seat a = {.name = "a", .is_later = true}, b = {.name = "b"},
			   other = {.name = "guard"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &a);
	(void)begin("{}");
	run();
	sit(ERRAND_STAGE_PRE, &b);
	sit(ERRAND_STAGE_GUARD, &other);
	CHECK_INT(errand_next(core.host, a.frame), 0);
	run();
	CHECK_STR(logged(), "a;guard;"); /* that stage had not been entered */
	a.is_later = false;
	CHECK_STR(echoed(), HI);
	CHECK_STR(logged(), "a;b;guard;");
}

TEST(a_listener_that_is_removed_while_its_frame_is_out_has_its_back)
{
	static struct seat a = {
		.name = "a",
		.is_later = true,
		.has_back = true,
		.back_say = "{\"kind\":\"deny\",\"reason\":\"still here\"}"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &a);
	(void)begin("{}");
	run();
	CHECK_INT(errand_unregister(core.host, a.reg), 0);
	CHECK_INT(a.destroyed, 0);
	CHECK_INT(errand_next(core.host, a.frame), 0);
	run();
	CHECK_STR(result_text(), "Error: still here");
	CHECK_INT(a.destroyed, 1);
}

TEST(the_host_may_go_while_frames_are_out)
{
	static struct seat a = {.name = "a"}, b = {.name = "b", .is_later = true};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &a);
	sit(ERRAND_STAGE_PRE, &b);
	(void)begin("{}");
	run();
	CHECK_INT(errand_unregister(core.host, a.reg), 0);
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_INT(a.destroyed, 1);
	CHECK_INT(b.destroyed, 1);
}

TEST(a_bad_listener_is_refused_and_destroyed)
{
	static struct seat a = {.name = "a"}, b = {.name = "b", .has_back = true};

	fresh_seats();
	CHECK_INT(try_sit(0, ERRAND_STAGE_BODY, 0, &a), ERRAND_EARG);
	CHECK_INT(try_sit(0, 0, 0, &a), ERRAND_EARG);
	CHECK_INT(try_sit(0, 7, 0, &a), ERRAND_EARG);
	CHECK_INT(try_sit(0, ERRAND_STAGE_PRE, 2, &a), ERRAND_EARG);
	CHECK_INT(try_sit(4711, ERRAND_STAGE_PRE, 0, &a), ERRAND_EGONE);
	CHECK_INT(try_sit(core.alice, ERRAND_STAGE_APPROVAL, 0, &a), ERRAND_EARG);
	CHECK_INT(a.destroyed, 6);
	CHECK_INT(try_sit(0, ERRAND_STAGE_GUARD, 0, &b), ERRAND_EARG);
	CHECK_INT(errand_listen(core.host, 0, NULL, NULL, NULL), ERRAND_EARG);
}

/* ---- decisions ---- */

static const char *decide(const char *decision)
{
	static struct seat a;

	fresh_seats();
	memset(&a, 0, sizeof(a));
	a.name = "a";
	a.say = decision;
	sit(ERRAND_STAGE_PRE, &a);
	return echoed();
}

TEST(a_denied_call_shows_the_reason)
{
	CHECK_STR(decide("{\"kind\":\"deny\",\"reason\":\"not now\"}"), "Error: not now");
	CHECK_STR(result_code(), "message");
	CHECK_INT(tool.entered, 0);
	CHECK_STR(decide("{\"kind\":\"deny\",\"reason\":\"\"}"), "Error: ");
	CHECK_STR(decide("{\"kind\":\"deny\"}"), "Error: tool \"echo\" was denied");
	CHECK_STR(decide("{\"kind\":\"allow\",\"reason\":\"x\"}"), HI);
}

TEST(a_decision_that_is_none_refuses_the_call)
{
	static const char *const bad[] = {"{}", "null", "{\"kind\":\"perhaps\"}",
					  "nonsense", "{\"kind\":1}"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		CHECK_STR(decide(bad[i]), "Error: tools/pre-execute answered with no "
					  "decision");
		CHECK_INT(tool.entered, 0);
	}
}

TEST(ask_without_a_channel_denies)
{
	CHECK_STR(decide("{\"kind\":\"ask\",\"reason\":\"a person must\"}"),
		  "Error: a person must");
	CHECK_STR(decide("{\"kind\":\"ask\"}"),
		  "Error: tool \"echo\" requires approval (not yet supported)");
	CHECK_INT(tool.entered, 0);
}

static const char *ask(const char *answer)
{
	static struct seat pre, channel;

	memset(&pre, 0, sizeof(pre));
	memset(&channel, 0, sizeof(channel));
	fresh_seats();
	pre.name = "pre";
	pre.say = "{\"kind\":\"ask\",\"reason\":\"why\"}";
	channel.name = "channel";
	channel.say = answer;
	sit(ERRAND_STAGE_PRE, &pre);
	sit(ERRAND_STAGE_APPROVAL, &channel);
	return echoed();
}

TEST(a_person_decides)
{
	CHECK_STR(ask("{\"kind\":\"allowed-once\"}"), HI);
	CHECK_STR(ask("{\"kind\":\"rejected\",\"reason\":\"x\"}"),
		  "Error: the user rejected tool \"echo\"");
	CHECK_STR(ask("{\"kind\":\"cancelled\"}"),
		  "Error: approval for tool \"echo\" was cancelled");
	CHECK_STR(ask("{\"kind\":\"unavailable\"}"),
		  "Error: tool \"echo\" requires approval, but no approval channel is "
		  "available");
	CHECK_STR(ask(NULL), "Error: tool \"echo\" requires approval, but no approval "
			     "channel is available");
	CHECK_STR(ask("{\"kind\":\"sure\"}"),
		  "Error: the approval channel answered with no decision");
	CHECK_INT(tool.entered, 0);
}

TEST(a_call_without_an_agent_cannot_be_asked_about)
{
	(void)ask("{\"kind\":\"allowed-once\"}");
	CHECK_STR(call(0, "echo", "{}"), "Error: tool \"echo\" requires approval, but the "
					 "call has no agent to route it through");
}

TEST(there_is_one_approval_channel)
{
	static struct seat one = {.name = "one"}, two = {.name = "two"};

	fresh_seats();
	sit(ERRAND_STAGE_APPROVAL, &one);
	CHECK_INT(try_sit(0, ERRAND_STAGE_APPROVAL, 0, &two), ERRAND_EREFUSED);
	CHECK_STR(core.message, "an approval channel is already registered");
	CHECK_INT(errand_unregister(core.host, one.reg), 0);
	sit(ERRAND_STAGE_APPROVAL, &two);
	errand_host_free(core.host);
	core.host = NULL;
}

TEST(the_first_guard_with_a_reason_denies)
{
	static struct seat a = {.name = "a", .say = "{}"},
			   b = {.name = "b", .say = "{\"reason\":\"guarded\"}"},
			   c = {.name = "c", .say = "{\"reason\":\"never\"}"};

	fresh_seats();
	sit(ERRAND_STAGE_GUARD, &a);
	sit(ERRAND_STAGE_GUARD, &b);
	sit(ERRAND_STAGE_GUARD, &c);
	CHECK_STR(echoed(), "Error: guarded");
	CHECK_STR(logged(), "a;b;");
	CHECK_STR(result_code(), "message");
	CHECK_INT(tool.entered, 0);
}

TEST(guards_are_not_asked_after_a_denial)
{
	static struct seat pre = {.name = "pre",
				  .say = "{\"kind\":\"deny\",\"reason\":\"no\"}"},
			   guard = {.name = "guard"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &pre);
	sit(ERRAND_STAGE_GUARD, &guard);
	CHECK_STR(echoed(), "Error: no");
	CHECK_STR(logged(), "pre;");
}

TEST(a_guard_that_makes_no_sense_refuses_the_call)
{
	static struct seat a = {.name = "a", .say = "{\"reason\":1}"};

	fresh_seats();
	sit(ERRAND_STAGE_GUARD, &a);
	CHECK_STR(echoed(), "Error: a guard answered with no reason");
	CHECK_INT(tool.entered, 0);
}

/* ---- throws ---- */

TEST(what_pre_execute_or_a_guard_throws_skips_post_execute)
{
	static struct seat pre = {.name = "pre", .fail = "pre boom"},
			   guard = {.name = "guard", .fail = "code:guard boom"},
			   post = {.name = "post"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &pre);
	sit(ERRAND_STAGE_POST, &post);
	CHECK_STR(echoed(), "Error: pre boom");
	CHECK_STR(result_code(), "message");
	CHECK_INT(errand_unregister(core.host, pre.reg), 0);
	sit(ERRAND_STAGE_GUARD, &guard);
	CHECK_STR(echoed(), "Error: guard boom");
	CHECK_STR(result_code(), "PolicyError/E_POLICY");
	CHECK_STR(logged(), "pre;guard;");
}

TEST(a_denied_call_goes_through_post_execute)
{
	static struct seat pre = {.name = "pre",
				  .say = "{\"kind\":\"deny\",\"reason\":\"no\"}"},
			   post = {.name = "post", .shows = true};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &pre);
	sit(ERRAND_STAGE_POST, &post);
	CHECK_STR(echoed(), "Error: no");
	CHECK_STR(logged(), "pre;post({\"isError\":true,\"content\":[{\"type\":\"text\","
			    "\"text\":\"Error: no\"}],\"error\":{\"message\":\"no\"}});");
}

/* ---- where a call is ---- */

static const char *state_of(errand_call c)
{
	errand_text *t = NULL;

	CHECK_INT(errand_call_state(core.host, c, &t), 0);
	return text_of(t);
}

TEST(a_call_says_where_it_is)
{
	static struct seat a = {.name = "a", .is_later = true};
	char want[128];
	errand_text *t;
	errand_call c;

	fresh_seats();
	tool.answer = NULL;
	sit(ERRAND_STAGE_AROUND, &a);
	c = begin("{}");
	CHECK_STR(state_of(c), "{\"stage\":\"queued\",\"since\":0,\"aborted\":false}");
	pass(5);
	(void)snprintf(want, sizeof(want),
		       "{\"stage\":\"around\",\"listener\":%llu,\"since\":5,\"aborted\":"
		       "false}",
		       (unsigned long long)a.reg);
	CHECK_STR(state_of(c), want);
	CHECK_INT(errand_next(core.host, a.frame), 0);
	pass(2);
	CHECK_INT(errand_call_abort(core.host, c), 0);
	CHECK_STR(state_of(c), "{\"stage\":\"body\",\"since\":7,\"aborted\":true}");
	CHECK_INT(errand_answer(core.host, tool.frame, HI, ERRAND_NUL), 0);
	run();
	CHECK_INT(errand_call_state(core.host, c, &t), ERRAND_EGONE);
}

/* ---- a result that is none ---- */

TEST(a_result_of_around_without_a_value_is_none_whatever_the_schema)
{
	static const char *const results[] = {"{}", "5", "null", "{\"content\":[]}",
					      "{\"isError\":false}"};
	struct errand_tool t = echo();

	t.output_schema = str("{}");
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
		struct seat a = {.name = "a", .say = results[i]};

		fresh_seats();
		CHECK_INT(errand_unregister(core.host, tool.reg), 0);
		CHECK_INT(add(&t), 0);
		sit(ERRAND_STAGE_AROUND, &a);
		CHECK_STR(
			echoed(),
			"Error: tool \"echo\" returned invalid output: not lossless JSON");
		CHECK_STR(result_code(), "ToolOutputError/INVALID_TOOL_OUTPUT");
		errand_host_free(core.host);
		core.host = NULL;
	}
}

/* ---- content under a limit ---- */

TEST(a_block_that_fits_its_limit_is_kept_whole)
{
	static const char block[] = "[{\"type\":\"text\",\"text\":\"hi\",\"mark\":1}]";
	static struct seat p = {.name = "p",
				.say = "{\"kind\":\"accept\",\"content\":[{\"type\":"
				       "\"text\",\"text\":\"hi\",\"mark\":1}]}"};
	struct work *w;

	fresh_seats();
	sit(ERRAND_STAGE_POST, &p);
	w = start_limited(core.alice, STREAM, "2");
	(void)output_of(w);
	CHECK_STR(member(core.result, "content"), block);
	w = start_limited(core.alice, STREAM, "1");
	CHECK_STR(output_of(w), "]");
}
