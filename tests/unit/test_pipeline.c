/* SPDX-License-Identifier: MIT */
/* Tests of a call from its body on: around, validation, post-execute, finaliser, observers,
 * cancellation, timeouts, the captured limit (spec 5.7, 9.6-9.12). */
#include "seats.h"

#define HI "{\"s\":\"hi\"}"
#define SHOWN(text) "[{\"type\":\"text\",\"text\":\"" text "\"}]"

static const char invalid_s[] =
	"Error: tool \"echo\" returned invalid output: missing required property \"value.s\"";

static const char *content(void)
{
	return member(core.result, "content");
}

/* ---- around ---- */

TEST(around_listeners_see_the_value_and_pass_it_on)
{
	static struct seat a = {.name = "a", .has_back = true}, b = {.name = "b"},
			   c = {.name = "c", .has_back = true};

	fresh_seats();
	sit(ERRAND_STAGE_AROUND, &a);
	sit(ERRAND_STAGE_AROUND, &b);
	sit(ERRAND_STAGE_AROUND, &c);
	CHECK_STR(echoed(), HI);
	CHECK_STR(logged(), "a;b;c;back-c{\"value\":" HI "};back-a{\"value\":" HI "};");
	CHECK_STR(member(core.result, "value"), HI);
}

TEST(around_may_answer_without_the_body)
{
	static struct seat a = {.name = "a",
				.say = "{\"value\":{\"s\":\"cached\"},\"content\":[1]}"};

	fresh_seats();
	sit(ERRAND_STAGE_AROUND, &a);
	CHECK_STR(echoed(), "{\"s\":\"cached\"}");
	CHECK_INT(tool.entered, 0);
	CHECK_STR(member(core.result, "value"), "{\"s\":\"cached\"}");
}

TEST(a_value_of_around_is_rendered_again)
{
	static struct seat a = {.name = "a",
				.has_back = true,
				.back_say = "{\"value\":{\"s\":\"changed\"}}"};

	fresh_full_tool();
	sit(ERRAND_STAGE_AROUND, &a);
	CHECK_STR(echoed(), "rendered");
	CHECK_INT(tool.rendered, 1);
	CHECK_STR(member(core.result, "value"), "{\"s\":\"changed\"}");
}

TEST(around_may_turn_a_success_into_an_error)
{
	static struct seat a = {.name = "a", .has_back = true},
			   b = {.name = "b",
				.has_back = true,
				.back_say = "{\"isError\":true,\"content\":[],\"error\":{"
					    "\"message\":\"m\"}}"};

	fresh_seats();
	sit(ERRAND_STAGE_AROUND, &a);
	sit(ERRAND_STAGE_AROUND, &b);
	(void)begin("{}");
	run();
	CHECK_STR(content(), "[]");
	CHECK_STR(result_code(), "message");
	CHECK_STR(member(core.result, "value"), "(none)");
}

TEST(a_value_of_around_is_checked_and_a_wrong_one_skips_post_execute)
{
	static struct seat a = {.name = "a", .say = "{\"value\":{}}"},
			   post = {.name = "post"};

	fresh_seats();
	sit(ERRAND_STAGE_AROUND, &a);
	sit(ERRAND_STAGE_POST, &post);
	CHECK_STR(echoed(), invalid_s);
	CHECK_STR(result_code(), "ToolOutputError/INVALID_TOOL_OUTPUT");
	a.say = "{}";
	CHECK_STR(echoed(),
		  "Error: tool \"echo\" returned invalid output: \"value\" must be "
		  "an object");
	a.say = "nonsense";
	CHECK_STR(echoed(), "Error: tool \"echo\" returned invalid output: not lossless "
			    "JSON");
	CHECK_STR(logged(), "a;a;a;");
}

TEST(an_error_result_of_around_is_kept_as_it_is)
{
	static struct seat a = {.name = "a",
				.say = "{\"isError\":true,\"content\":" SHOWN(
					"one") ",\"error\":{\"message\":\"m\",\"info\":{"
					       "\"name\":\"N\",\"code\":\"C\"}}}"},
			   post = {.name = "post"};

	fresh_seats();
	sit(ERRAND_STAGE_AROUND, &a);
	sit(ERRAND_STAGE_POST, &post);
	CHECK_STR(echoed(), "one");
	CHECK_STR(result_code(), "N/C");
	CHECK_STR(member(member(core.result, "error"), "message"), "m");
	CHECK_STR(logged(), "a;post;");
	a.say = "{\"isError\":true}";
	CHECK_STR(echoed(), "Error: tool call failed");
}

TEST(what_around_throws_skips_post_execute)
{
	static struct seat a = {.name = "a", .fail = "around boom"},
			   post = {.name = "post"};

	fresh_seats();
	sit(ERRAND_STAGE_AROUND, &a);
	sit(ERRAND_STAGE_POST, &post);
	CHECK_STR(echoed(), "Error: around boom");
	CHECK_STR(logged(), "a;");
}

/* ---- the body ---- */

static void fail_body(const char *text)
{
	errand_error *e = errand_error_new(NULL, NULL, text, ERRAND_NUL);

	CHECK_INT(errand_fail(core.host, tool.frame, e), 0);
	errand_error_free(e);
	run();
}

TEST(what_the_body_throws_goes_through_post_execute)
{
	static struct seat post = {.name = "post"};

	fresh_seats();
	sit(ERRAND_STAGE_POST, &post);
	tool.answer = NULL;
	(void)begin("{}");
	run();
	fail_body("body boom");
	CHECK_STR(result_text(), "Error: body boom");
	CHECK_STR(logged(), "post;");
}

TEST(around_listeners_see_a_failed_body_as_a_result)
{
	static struct seat a = {.name = "a", .has_back = true};

	fresh_seats();
	sit(ERRAND_STAGE_AROUND, &a);
	tool.answer = NULL;
	(void)begin("{}");
	run();
	fail_body("body boom");
	CHECK_STR(result_text(), "Error: body boom");
	CHECK_STR(logged(), "a;back-a{\"isError\":true,\"content\":" SHOWN(
				    "Error: body boom") ",\"error\":{\"message\":\"body "
							"boom\"}};");
}

TEST(around_may_save_a_failed_body)
{
	static struct seat a = {
		.name = "a", .has_back = true, .back_say = "{\"value\":{\"s\":\"saved\"}}"};

	fresh_seats();
	sit(ERRAND_STAGE_AROUND, &a);
	tool.answer = NULL;
	(void)begin("{}");
	run();
	fail_body("body boom");
	CHECK_STR(result_text(), "{\"s\":\"saved\"}");
	CHECK_STR(result_code(), "");
}

TEST(arguments_are_checked_where_the_body_would_run)
{
	static struct seat pre = {.name = "pre"}, around = {.name = "around"},
			   post = {.name = "post"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &pre);
	sit(ERRAND_STAGE_AROUND, &around);
	sit(ERRAND_STAGE_POST, &post);
	CHECK_STR(call(core.alice, "echo", "{\"n\":\"x\"}"),
		  "Error: invalid arguments: \"n\" must be a number");
	CHECK_STR(logged(), "pre;around;post;");
	CHECK_INT(tool.entered, 0);
}

TEST(arguments_that_are_not_lossless_meet_no_policy)
{
	static struct seat pre = {.name = "pre"}, post = {.name = "post"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &pre);
	sit(ERRAND_STAGE_POST, &post);
	CHECK_STR(call(core.alice, "echo", "{\"n\":-0}"),
		  "Error: tool execution arguments must be losslessly JSON-serializable");
	CHECK_STR(logged(), "");
}

TEST(an_unknown_tool_may_be_denied)
{
	static struct seat pre = {.name = "pre"}, around = {.name = "around"},
			   post = {.name = "post"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &pre);
	sit(ERRAND_STAGE_AROUND, &around);
	sit(ERRAND_STAGE_POST, &post);
	CHECK_STR(call(core.alice, "nope", "{}"), "Error: unknown tool \"nope\"");
	CHECK_STR(logged(), "pre;post;");
	pre.say = "{\"kind\":\"deny\",\"reason\":\"no\"}";
	CHECK_STR(call(core.alice, "nope", "{}"), "Error: no");
}

/* ---- post-execute ---- */

static struct seat poster;

static void sit_post(const char *decision)
{
	memset(&poster, 0, sizeof(poster));
	poster.name = "post";
	poster.say = decision;
	sit(ERRAND_STAGE_POST, &poster);
}

static void after(const char *decision)
{
	fresh_seats();
	sit_post(decision);
	(void)begin("{}");
	run();
}

TEST(post_execute_may_replace_the_content)
{
	after("{\"kind\":\"accept\",\"content\":[]}");
	CHECK_STR(content(), "[]");
	CHECK_STR(member(core.result, "value"), HI);
	CHECK_STR(result_code(), "");
	after("{\"kind\":\"accept\",\"content\":" SHOWN("a") ",\"x\":1}");
	CHECK_STR(result_text(), "a");
	after("{\"kind\":\"accept\",\"content\":null}");
	CHECK_STR(result_text(), HI);
	after("{\"kind\":\"accept\",\"content\":\"a\"}");
	CHECK_STR(result_text(), "Error: tools/post-execute gave content that is no array");
}

TEST(post_execute_may_replace_the_value)
{
	after("{\"kind\":\"accept\",\"value\":{\"s\":\"new\"}}");
	CHECK_STR(result_text(), "{\"s\":\"new\"}");
	CHECK_STR(member(core.result, "value"), "{\"s\":\"new\"}");
	after("{\"kind\":\"accept\",\"value\":{}}");
	CHECK_STR(result_text(), invalid_s);
	CHECK_STR(result_code(), "ToolOutputError/INVALID_TOOL_OUTPUT");
	CHECK_STR(member(core.result, "value"), "(none)");
	after("{\"kind\":\"accept\",\"value\":{\"s\":\"new\"},\"content\":[]}");
	CHECK_STR(result_text(), "Error: tools/post-execute accept decision cannot replace "
				 "both value and content");
}

TEST(post_execute_may_not_give_a_failed_result_a_value)
{
	fresh_seats();
	sit_post("{\"kind\":\"accept\",\"value\":{\"s\":\"new\"}}");
	CHECK_STR(call(core.alice, "nope", "{}"),
		  "Error: tools/post-execute cannot replace the value of a failed result");
}

TEST(post_execute_keeps_an_error_whose_content_it_replaces)
{
	fresh_seats();
	sit_post("{\"kind\":\"accept\",\"content\":" SHOWN("nicer") "}");
	CHECK_STR(call(core.alice, "nope", "{}"), "nicer");
	CHECK_STR(result_code(), "ToolNotFoundError/UNKNOWN_TOOL");
}

TEST(post_execute_may_block)
{
	after("{\"kind\":\"block\",\"feedback\":[{\"type\":\"text\",\"text\":\"a\"},"
	      "{\"type\":\"image\"},{\"type\":\"text\",\"text\":\"b\"}]}");
	CHECK_STR(result_code(), "message");
	CHECK_STR(member(member(core.result, "error"), "message"), "a\n[image content]\nb");
	CHECK_STR(content(), "[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"image\"},"
			     "{\"type\":\"text\",\"text\":\"b\"}]");
	CHECK_STR(member(core.result, "value"), "(none)");
	after("{\"kind\":\"block\",\"feedback\":[]}");
	CHECK_STR(member(member(core.result, "error"), "message"),
		  "tool result blocked by post-execute policy");
	CHECK_STR(content(), "[]");
	after("{\"kind\":\"block\"}");
	CHECK_STR(content(), "[]");
}

TEST(post_execute_that_throws_or_makes_no_sense_fails_the_call)
{
	static const char *const bad[] = {"{}", "nonsense", "{\"kind\":\"allow\"}",
					  "{\"kind\":\"accept\",\"content\":[1e999]}"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		after(bad[i]);
		CHECK_STR(result_text(),
			  "Error: tools/post-execute answered with no decision");
	}
	fresh_seats();
	sit_post(NULL);
	poster.fail = "code:post boom";
	CHECK_STR(echoed(), "Error: post boom");
	CHECK_STR(result_code(), "PolicyError/E_POLICY");
}

TEST(an_outer_post_listener_sees_the_decision_of_the_rest)
{
	static struct seat outer = {.name = "outer", .has_back = true, .shows = true};

	fresh_seats();
	sit(ERRAND_STAGE_POST, &outer);
	sit_post("{\"kind\":\"block\"}");
	poster.shows = true;
	CHECK_INT(tool.entered, 0);
	(void)begin("{}");
	run();
	CHECK_STR(logged(),
		  "outer({\"isError\":false,\"content\":[{\"type\":\"text\",\"text\":"
		  "\"{\\\"s\\\":\\\"hi\\\"}\"}],\"value\":{\"s\":\"hi\"}});"
		  "post({\"isError\":false,\"content\":[{\"type\":\"text\",\"text\":"
		  "\"{\\\"s\\\":\\\"hi\\\"}\"}],\"value\":{\"s\":\"hi\"}});"
		  "back-outer{\"kind\":\"block\"};");
}

/* ---- the finaliser ---- */

TEST(the_finaliser_runs_once_whatever_happens)
{
	static struct seat pre = {.name = "pre", .fail = "boom"};

	fresh_full_tool();
	(void)echoed();
	CHECK_INT(tool.finalized, 1);
	sit(ERRAND_STAGE_PRE, &pre);
	CHECK_STR(echoed(), "Error: boom");
	CHECK_INT(tool.finalized, 2);
	CHECK_STR(call(core.alice, "echo", "{\"n\":-0}"),
		  "Error: tool execution arguments must be losslessly JSON-serializable");
	CHECK_INT(tool.finalized, 3);
}

TEST(the_finaliser_has_the_last_word_on_what_a_policy_made)
{
	fresh_full_tool();
	tool.finalize_answer = "{\"content\":" SHOWN("last") "}";
	sit_post("{\"kind\":\"block\",\"feedback\":[]}");
	CHECK_STR(echoed(), "last");
	CHECK_STR(result_code(), "message");
	tool.finalize_error = "cannot";
	CHECK_STR(echoed(), "Error: cannot");
}

/* ---- observers ---- */

static int on_final(void *ud, errand_host *h, errand_reg self, errand_agent owner,
		    const char *json, size_t len, errand_error *e)
{
	(void)h, (void)self;
	logf_("%s(%.*s by %s);", (const char *)ud, (int)len, json,
	      owner == core.alice ? "alice" : "somebody");
	if (strcmp(ud, "bad") != 0)
		return 0;
	errand_error_set(e, NULL, NULL, "observer boom", ERRAND_NUL);
	return ERRAND_ECALLBACK;
}

TEST(observers_see_the_final_result)
{
	static char bad[] = "bad", good[] = "good";
	char want[512];
	errand_call c;

	fresh_seats();
	CHECK_INT(
		errand_on(core.host, 0, ERRAND_ON_RESULT, on_final, bad, NULL, NULL, NULL),
		0);
	CHECK_INT(errand_on(core.host, core.alice, ERRAND_ON_RESULT, on_final, good, NULL,
			    NULL, NULL),
		  0);
	sit_post("{\"kind\":\"block\",\"feedback\":[]}");
	c = begin("{}");
	run();
	(void)snprintf(want, sizeof(want),
		       "{\"call\":%llu,\"tool\":\"echo\",\"result\":{\"isError\":true,"
		       "\"content\":[],\"error\":{\"message\":\"tool result blocked by "
		       "post-execute policy\"}}} by alice);",
		       (unsigned long long)c);
	CHECK(strstr(core.log, want) != NULL);
	CHECK(strstr(core.log, "warn(tools: result observer threw for echo: Error: "
			       "observer boom);good(") != NULL);
	(void)logged();
	(void)call(core.bob, "echo", "{\"n\":-0}");
	CHECK_INT(times(logged(), " by somebody);"), 1);
}

TEST(observers_see_whose_call_it_was_when_she_is_gone)
{
	static char good[] = "good";

	fresh_seats();
	tool.answer = NULL;
	CHECK_INT(
		errand_on(core.host, 0, ERRAND_ON_RESULT, on_final, good, NULL, NULL, NULL),
		0);
	(void)begin("{}");
	run();
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	run();
	CHECK_INT(errand_answer(core.host, tool.frame, "{\"s\":\"late\"}", ERRAND_NUL), 0);
	(void)logged();
	run();
	CHECK_INT(times(logged(), " by alice);"), 1);
}

/* ---- cancellation ---- */

static errand_call begin_and_abort(const struct seat *at)
{
	errand_call c = begin("{}");

	run();
	CHECK_INT(errand_call_abort(core.host, c), 0);
	CHECK_INT(errand_next(core.host, at->frame), 0);
	run();
	return c;
}

TEST(a_call_that_is_aborted_at_entry_meets_no_policy)
{
	static struct seat pre = {.name = "pre"}, post = {.name = "post"};

	fresh_seats();
	sit(ERRAND_STAGE_PRE, &pre);
	sit(ERRAND_STAGE_POST, &post);
	CHECK_INT(errand_call_abort(core.host, begin("{}")), 0);
	run();
	CHECK_STR(result_text(), "Error: tool call aborted before dispatch");
	CHECK_STR(result_code(), "AbortError/ABORTED_BEFORE_DISPATCH");
	CHECK_STR(logged(), "");
}

TEST(a_call_that_is_aborted_before_its_body_has_post_execute)
{
	static const int stages[] = {ERRAND_STAGE_PRE, ERRAND_STAGE_GUARD,
				     ERRAND_STAGE_AROUND};
	static struct seat at, post;

	for (size_t i = 0; i < 3; i++) {
		fresh_seats();
		at = (struct seat){.name = "at", .is_later = true};
		post = (struct seat){.name = "post"};
		sit(stages[i], &at);
		sit(ERRAND_STAGE_POST, &post);
		(void)begin_and_abort(&at);
		CHECK_STR(result_text(), "Error: tool call aborted before dispatch");
		CHECK_STR(result_code(), "AbortError/ABORTED_BEFORE_DISPATCH");
		CHECK_STR(logged(), "at;post;");
		CHECK_INT(tool.entered, 0);
	}
}

TEST(a_success_is_aborted_at_any_time_before_its_result)
{
	static struct seat post = {.name = "post", .is_later = true};
	errand_call c;

	fresh_seats();
	tool.answer = NULL;
	c = begin("{}");
	run();
	CHECK_INT(errand_call_abort(core.host, c), 0);
	CHECK_INT(core.results, 0);
	CHECK_INT(errand_answer(core.host, tool.frame, HI, ERRAND_NUL), 0);
	run();
	CHECK_STR(result_text(), "Error: tool call aborted");
	CHECK_STR(result_code(), "AbortError/ABORTED");
	fresh_seats();
	sit(ERRAND_STAGE_POST, &post);
	(void)begin_and_abort(&post);
	CHECK_STR(result_text(), "Error: tool call aborted");
}

TEST(post_execute_sees_that_a_success_was_aborted)
{
	static struct seat post = {.name = "post", .shows = true};
	errand_call c;

	fresh_seats();
	sit(ERRAND_STAGE_POST, &post);
	tool.answer = NULL;
	c = begin("{}");
	run();
	CHECK_INT(errand_call_abort(core.host, c), 0);
	CHECK_INT(errand_answer(core.host, tool.frame, HI, ERRAND_NUL), 0);
	run();
	CHECK_STR(
		logged(),
		"post({\"isError\":true,\"content\":" SHOWN(
			"Error: tool call aborted") ","
						    "\"error\":{\"message\":\"tool call aborted\",\"name\":\"AbortError\","
						    "\"code\":\"ABORTED\"}});");
}

TEST(an_error_outlives_an_abort)
{
	errand_call c;

	fresh_seats();
	tool.answer = NULL;
	c = begin("{}");
	run();
	CHECK_INT(errand_call_abort(core.host, c), 0);
	fail_body("own words");
	CHECK_STR(result_text(), "Error: own words");
	CHECK_STR(result_code(), "message");
}

TEST(d6_what_a_policy_takes_from_the_result_is_unread_again)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "text\n");
	sit_post("{\"kind\":\"block\",\"feedback\":[]}");
	(void)wait_for_output(w, 1);
	pass(1);
	CHECK_STR(content(), "[]");
	CHECK_INT(errand_unregister(core.host, poster.reg), 0);
	CHECK_STR(output_of(w), "text\n[status: running]");
}

/* ---- a tool's own timeout ---- */

static void fresh_slow_tool(void)
{
	struct errand_tool t = echo();

	fresh();
	memset(&tool, 0, sizeof(tool));
	t.timeout_ms = 1500;
	CHECK_INT(add(&t), 0);
	(void)logged();
}

TEST(a_tool_that_is_too_slow_is_told_waited_for_and_replaced)
{
	static struct seat post = {.name = "post"};

	fresh_slow_tool();
	sit(ERRAND_STAGE_POST, &post);
	(void)begin("{}");
	run();
	CHECK_INT(errand_next_deadline(core.host), 1500);
	pass(1499);
	CHECK_INT(errand_aborted(core.host, tool.signal), 0);
	pass(1);
	CHECK_INT(errand_aborted(core.host, tool.signal), 1);
	CHECK_INT(core.results, 0);
	CHECK_INT(errand_answer(core.host, tool.frame, HI, ERRAND_NUL), 0);
	run();
	CHECK_STR(result_text(), "Error: tool call timed out after 1500ms");
	CHECK_STR(result_code(), "ToolTimeoutError/TOOL_TIMEOUT");
	CHECK_STR(logged(), "post;");
}

TEST(a_late_failure_is_replaced_too)
{
	fresh_slow_tool();
	(void)begin("{}");
	run();
	pass(1500);
	fail_body("interrupted");
	CHECK_STR(result_text(), "Error: tool call timed out after 1500ms");
}

TEST(a_tool_in_time_has_no_deadline_left)
{
	fresh_slow_tool();
	(void)begin("{}");
	run();
	pass(1499);
	CHECK_INT(errand_answer(core.host, tool.frame, HI, ERRAND_NUL), 0);
	run();
	CHECK_STR(result_text(), HI);
	CHECK(errand_next_deadline(core.host) == ERRAND_NEVER);
}

TEST(the_time_of_policies_is_not_the_tools)
{
	static struct seat a = {.name = "a", .is_later = true};

	fresh_slow_tool();
	sit(ERRAND_STAGE_AROUND, &a);
	(void)begin("{}");
	pass(5000);
	CHECK_INT(errand_next(core.host, a.frame), 0);
	run();
	pass(1499);
	CHECK_INT(errand_answer(core.host, tool.frame, HI, ERRAND_NUL), 0);
	run();
	CHECK_STR(result_text(), HI);
}

TEST(the_time_of_a_tool_ends_with_its_body)
{
	static struct seat post = {.name = "post", .is_later = true};

	fresh_slow_tool();
	tool.answer = HI;
	sit(ERRAND_STAGE_POST, &post);
	(void)begin("{}");
	run();
	pass(5000);
	CHECK_INT(errand_aborted(core.host, tool.signal), 0);
	go_on(&post, "{\"kind\":\"accept\"}");
	CHECK_STR(result_text(), HI);
}

TEST(who_aborted_first_decides)
{
	errand_call c;

	fresh_slow_tool();
	c = begin("{}");
	run();
	CHECK_INT(errand_call_abort(core.host, c), 0);
	pass(1500);
	CHECK_INT(errand_answer(core.host, tool.frame, HI, ERRAND_NUL), 0);
	run();
	CHECK_STR(result_code(), "AbortError/ABORTED");
}

TEST(around_may_save_a_call_that_timed_out)
{
	static struct seat a = {
		.name = "a", .has_back = true, .back_say = "{\"value\":{\"s\":\"saved\"}}"};

	fresh_slow_tool();
	sit(ERRAND_STAGE_AROUND, &a);
	(void)begin("{}");
	run();
	pass(1500);
	CHECK_INT(errand_answer(core.host, tool.frame, HI, ERRAND_NUL), 0);
	run();
	CHECK_STR(result_text(), "{\"s\":\"saved\"}");
}

TEST(a_timeout_is_shown_with_the_tool)
{
	errand_text *t = NULL;

	fresh_slow_tool();
	CHECK_INT(errand_tools(core.host, 0, 0, &t, NULL), 0);
	CHECK_INT(times(text_of(t), "\"timeoutMs\":1500,\"exclusive\":false"), 1);
	CHECK_INT(times(core.shown, "timeoutMs"), 1);
}

/* ---- the captured limit ---- */

static void drop_owner(void *ud, errand_host *h)
{
	const struct seat *s = ud;

	CHECK_INT(errand_answer(
			  h, s->frame,
			  "{\"kind\":\"deny\",\"reason\":\"0123456789012345678901234\"}",
			  ERRAND_NUL),
		  0);
}

static struct seat disposer;

static const char *dispose_then_deny_of(errand_agent owner)
{
	struct work *w = start_limited(owner, STREAM, "20");

	w->cancel_settles = true;
	(void)call_begin(owner, "task_output", "{\"task_id\":\"bash-1\"}");
	run();
	CHECK_INT(errand_agent_dispose(core.host, owner, drop_owner, &disposer, NULL, NULL),
		  0);
	run();
	return result_text();
}

static void sit_disposer(uint32_t flags)
{
	disposer = (struct seat){.name = "disposer", .is_later = true};
	CHECK_INT(try_sit(0, ERRAND_STAGE_PRE, flags, &disposer), 0);
}

static const char *dispose_then_deny(uint32_t flags)
{
	fresh();
	sit_disposer(flags);
	return dispose_then_deny_of(core.alice);
}

TEST(a_limit_that_was_captured_outlives_the_record)
{
	CHECK_STR(dispose_then_deny(0), "4\n[result truncated]");
}

TEST(a_policy_that_is_prepended_later_comes_before_the_capture)
{
	CHECK_STR(dispose_then_deny(ERRAND_PREPEND), "Error: 0123456789012345678901234");
}

TEST(a_mount_captures_before_the_policies_that_it_finds)
{
	bare(NULL);
	sit_disposer(ERRAND_PREPEND);
	(void)mount_in(0);
	CHECK_STR(dispose_then_deny_of(agent("alice")), "4\n[result truncated]");
}

/* That of another mount would come in time, but the tool is not that mount's. */
TEST(a_mount_captures_for_its_own_tools)
{
	errand_scope s;

	bare(NULL);
	s = preset();
	(void)mount_in(s);
	sit_disposer(ERRAND_PREPEND);
	(void)mount_in(0);
	CHECK_STR(dispose_then_deny_of(agent_in("alice", s)),
		  "Error: 0123456789012345678901234");
}

TEST(a_limit_that_was_not_captured_is_looked_up_at_the_end)
{
	static struct seat pre = {
		.name = "pre",
		.say = "{\"kind\":\"deny\",\"reason\":\"0123456789012345678901234\"}"};

	fresh();
	(void)start_limited(core.alice, STREAM, "20");
	CHECK_INT(try_sit(0, ERRAND_STAGE_PRE, ERRAND_PREPEND, &pre), 0);
	CHECK_STR(call(core.alice, "task_kill", "{\"task_id\":\"bash-1\"}"),
		  "4\n[result truncated]");
	CHECK_STR(call(core.alice, "task_list", "{}"), "Error: 0123456789012345678901234");
}

TEST(a_text_that_a_policy_left_as_it_was_keeps_its_status_line)
{
	static const char *const texts[] = {
		"some long text, and more of it\\n[status: running]",
		"some long text, and more of it\\n[status: stopped]"};
	char decision[256];

	for (int i = 0; i < 2; i++) {
		struct work *w;

		fresh();
		w = start_limited(core.alice, STREAM, "45");
		emit(w, "some long text, and more of it\n");
		(void)snprintf(decision, sizeof(decision),
			       "{\"kind\":\"accept\",\"content\":[{\"type\":\"text\","
			       "\"text\":\"%s\"}]}",
			       texts[i]);
		sit_post(decision);
		CHECK_STR(output_of(w),
			  i == 0 ? "re of it\n[output truncated]\n[status: running]"
				 : "re of it\n[status: stopped]\n[result truncated]");
	}
}
