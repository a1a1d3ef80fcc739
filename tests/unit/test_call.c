/* SPDX-License-Identifier: MIT */
/* Tests of src/core/call.c and call_api.c: the stages of a call, with a tool of ours. */
#include "echo.h"

/* ---- the way through ---- */

TEST(a_call_answers_in_the_run_and_not_before)
{
	fresh_tool();
	(void)begin("{}");
	CHECK_INT(tool.entered, 0);
	CHECK_INT(core.results, 0);
	run();
	CHECK_STR(core.result,
		  "{\"isError\":false,\"content\":[{\"type\":\"text\",\"text\":"
		  "\"{\\\"s\\\":\\\"hi\\\"}\"}],\"value\":{\"s\":\"hi\"}}");
}

TEST(a_body_may_answer_later)
{
	fresh_tool();
	tool.answer = NULL;
	(void)begin("{}");
	run();
	CHECK_INT(core.results, 0);
	CHECK_INT(errand_answer(core.host, tool.frame, "{\"s\":\"late\"}", ERRAND_NUL), 0);
	CHECK_INT(core.results, 0);
	run();
	CHECK(strstr(core.result, "late"));
}

TEST(a_frame_takes_one_answer)
{
	fresh_tool();
	tool.answer = NULL;
	(void)begin("{}");
	run();
	CHECK_INT(errand_answer(core.host, tool.frame, "{\"s\":\"1\"}", ERRAND_NUL), 0);
	CHECK_INT(errand_answer(core.host, tool.frame, "{\"s\":\"2\"}", ERRAND_NUL),
		  ERRAND_EGONE);
	CHECK_INT(errand_fail(core.host, tool.frame, NULL), ERRAND_EGONE);
	run();
	CHECK_INT(core.results, 1);
	CHECK(strstr(core.result, "\"1\""));
}

TEST(the_body_sees_who_calls_and_with_what)
{
	fresh_tool();
	(void)begin("{\"n\": 1.50, \"x\":[]}");
	run();
	CHECK(tool.agent == core.alice);
	CHECK_STR(tool.args, "{\"n\": 1.50, \"x\":[]}");
	(void)call_begin(0, "echo", "");
	run();
	CHECK(tool.agent == 0);
	CHECK_STR(tool.args, "{}");
}

TEST(a_body_that_fails_shows_its_message)
{
	errand_error *e = errand_error_new("TypeError", NULL, "no luck", ERRAND_NUL);

	fresh_tool();
	tool.answer = NULL;
	(void)begin("{}");
	run();
	CHECK_INT(errand_fail(core.host, tool.frame, e), 0);
	run();
	CHECK_STR(core.result, "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":"
			       "\"Error: no luck\"}],\"error\":{\"message\":\"no luck\"}}");
	errand_error_free(e);
}

TEST(a_coded_error_shows_name_and_code)
{
	errand_error *e = errand_error_new("MyError", "MINE", "no luck", ERRAND_NUL);

	fresh_tool();
	tool.answer = NULL;
	(void)begin("{}");
	run();
	CHECK_INT(errand_fail(core.host, tool.frame, e), 0);
	run();
	CHECK_STR(result_code(), "MyError/MINE");
	errand_error_free(e);
}

TEST(an_unknown_tool_is_a_result)
{
	fresh_tool();
	CHECK_STR(call(core.alice, "nope", "{}"), "Error: unknown tool \"nope\"");
	CHECK_STR(result_code(), "ToolNotFoundError/UNKNOWN_TOOL");
}

TEST(arguments_that_do_not_fit_the_schema_do_not_reach_the_body)
{
	fresh_tool();
	CHECK_STR(call(core.alice, "echo", "{\"n\":\"1\"}"),
		  "Error: invalid arguments: \"n\" must be a number");
	CHECK_STR(result_code(), "ToolArgsError/INVALID_ARGS");
	CHECK_INT(tool.entered, 0);
}

TEST(arguments_that_are_no_json_are_a_string)
{
	static const char *const texts[] = {"{",  "nonsense", "{\"n\":1}x",
					    "\"", " ",        "{\"n\":\"\xff\"}"};

	fresh_tool();
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK_STR(call(core.alice, "echo", texts[i]),
			  "Error: invalid arguments: \"arguments\" must be an object");
}

TEST(json_that_is_no_object_is_no_arguments)
{
	static const char *const texts[] = {"null", "[]", "1", "true", "\"{}\""};

	fresh_tool();
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK_STR(call(core.alice, "echo", texts[i]),
			  "Error: invalid arguments: \"arguments\" must be an object");
}

TEST(d16_numbers_that_no_double_carries_are_not_lossless)
{
	static const char *const texts[] = {
		"{\"n\":-0}",    "{\"n\":-0.0}",     "{\"n\":-0e5}",
		"{\"n\":1e999}", "{\"x\":[-1e400]}", "{\"x\":{\"y\":-0}}",
	};

	fresh_tool();
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		CHECK_STR(
			call(core.alice, "echo", texts[i]),
			"Error: tool execution arguments must be losslessly JSON-serializable");
	CHECK_STR(result_code(), "message");
	CHECK_INT(tool.entered, 0);
}

TEST(d16_long_integers_and_tiny_numbers_are_numbers)
{
	fresh_tool();
	tool.answer = "{\"s\":\"ok\"}";
	(void)call(core.alice, "echo", "{\"n\":123456789012345678901234567890}");
	CHECK_STR(result_code(), "");
	(void)call(core.alice, "echo", "{\"n\":1e-400}");
	CHECK_STR(result_code(), "");
	CHECK_STR(call(core.alice, "echo", "{\"n\":0,\"s\":\"-0 1e999\"}"),
		  "{\"s\":\"ok\"}");
}

TEST(a_caller_may_say_that_its_value_is_no_json)
{
	struct errand_call_options o = {.size = sizeof(o),
					.flags = ERRAND_ARGS_NOT_JSON,
					.tool = str("echo"),
					.args = str("{}"),
					.on_result = on_result};

	fresh_tool();
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), 0);
	run();
	CHECK_STR(result_text(),
		  "Error: tool execution arguments must be losslessly JSON-serializable");
}

TEST(not_lossless_comes_before_an_unknown_tool)
{
	fresh_tool();
	CHECK_STR(call(core.alice, "nope", "{\"n\":-0}"),
		  "Error: tool execution arguments must be losslessly JSON-serializable");
}

/* ---- values and content ---- */

TEST(a_value_that_does_not_fit_its_schema_is_an_error)
{
	fresh_tool();
	tool.answer = "{\"t\":1}";
	CHECK_STR(call(core.alice, "echo", "{}"),
		  "Error: tool \"echo\" returned invalid output: missing required property "
		  "\"value.s\"");
	CHECK_STR(result_code(), "ToolOutputError/INVALID_TOOL_OUTPUT");
	CHECK(strstr(core.result, "\"value\":") == NULL);
}

TEST(an_answer_that_is_no_json_is_an_error)
{
	fresh_tool();
	tool.answer = "{";
	(void)call(core.alice, "echo", "{}");
	CHECK_STR(result_code(), "ToolOutputError/INVALID_TOOL_OUTPUT");
	tool.answer = "{\"s\":\"x\",\"n\":1e999}";
	(void)call(core.alice, "echo", "{}");
	CHECK_STR(result_code(), "ToolOutputError/INVALID_TOOL_OUTPUT");
}

TEST(half_a_pair_is_replaced_in_what_the_body_says_and_is_told)
{
	fresh_tool();
	tool.answer = "{\"s\":\"a\\ud800\",\"\\udc00\":\"\\ud83d\\ude00\"}";
	(void)call(core.alice, "echo", "{\"x\":\"\\udfff\"}");
	CHECK_STR(tool.args, "{\"x\":\"\\ufffd\"}");
	CHECK(strstr(core.result, "\"value\":{\"s\":\"a\\ufffd\",\"\\ufffd\":"
				  "\"\\ud83d\\ude00\"}"));
}

TEST(half_a_pair_is_replaced_in_what_is_made_of_a_value)
{
	fresh_full_tool();
	tool.render_answer = "[{\"type\":\"text\",\"text\":\"\\ud800\"}]";
	CHECK_STR(call(core.alice, "echo", "{}"), "\xef\xbf\xbd");
	CHECK(strstr(core.result, "\\ufffd"));
	tool.finalize_answer = "{\"content\":[\"\\udbff\"]}";
	(void)call(core.alice, "echo", "{}");
	CHECK(strstr(core.result, "\"content\":[\"\\ufffd\"]"));
}

TEST(a_renderer_makes_the_content)
{
	fresh_full_tool();
	CHECK_STR(call(core.alice, "echo", "{}"), "rendered");
	CHECK_INT(tool.rendered, 1);
	CHECK(strstr(core.result, "\"value\":{\"s\":\"hi\"}"));
}

TEST(a_renderer_that_fails_is_an_error)
{
	fresh_full_tool();
	tool.render_answer = NULL;
	CHECK_STR(call(core.alice, "echo", "{}"), "Error: cannot render");
	CHECK(strstr(core.result, "\"value\":") == NULL);
}

TEST(a_renderer_that_makes_no_blocks_is_an_error)
{
	fresh_full_tool();
	tool.render_answer = "\"text\"";
	CHECK_STR(call(core.alice, "echo", "{}"),
		  "Error: the tool rendered no content blocks");
	tool.render_answer = "";
	CHECK_STR(call(core.alice, "echo", "{}"),
		  "Error: the tool rendered no content blocks");
}

TEST(a_finaliser_sees_arguments_and_result_and_may_leave_it)
{
	fresh_full_tool();
	CHECK_STR(call(core.alice, "echo", "{\"n\":1}"), "rendered");
	CHECK_STR(
		tool.finalize_in,
		"{\"args\":{\"n\":1},\"result\":{\"isError\":false,\"content\":[{\"type\":"
		"\"text\",\"text\":\"rendered\"}],\"value\":{\"s\":\"hi\"}}}");
}

TEST(a_finaliser_may_replace_the_content_only)
{
	fresh_full_tool();
	tool.finalize_answer = "{\"content\":[{\"type\":\"text\",\"text\":\"other\"}],"
			       "\"isError\":true}";
	CHECK_STR(call(core.alice, "echo", "{}"), "other");
	CHECK_STR(result_code(), "");
	CHECK(strstr(core.result, "\"value\":{\"s\":\"hi\"}"));
}

TEST(a_finaliser_is_called_once_for_every_outcome)
{
	fresh_full_tool();
	(void)call(core.alice, "echo", "{}");
	CHECK_INT(tool.finalized, 1);
	(void)call(core.alice, "echo", "{\"n\":-0}");
	CHECK_INT(tool.finalized, 2);
	CHECK(strstr(tool.finalize_in, "{\"args\":null,"));
	(void)call(core.alice, "echo", "[]");
	CHECK_INT(tool.finalized, 3);
	tool.answer = "{}";
	(void)call(core.alice, "echo", "{}");
	CHECK_INT(tool.finalized, 4);
}

TEST(a_finaliser_that_throws_becomes_the_result)
{
	fresh_full_tool();
	tool.finalize_error = "finaliser boom";
	CHECK_STR(call(core.alice, "echo", "{}"), "Error: finaliser boom");
	CHECK_STR(result_code(), "message");
}

TEST(a_finaliser_that_writes_nonsense_changes_nothing)
{
	static const char *const answers[] = {"", "nonsense", "{}", "{\"content\":1}",
					      "{\"content\""};

	fresh_full_tool();
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		tool.finalize_answer = answers[i];
		CHECK_STR(call(core.alice, "echo", "{}"), "rendered");
	}
}

/* ---- aborts ---- */

TEST(a_call_aborted_before_it_began_does_not_enter)
{
	errand_call c;

	fresh_tool();
	c = begin("{}");
	CHECK_INT(errand_call_abort(core.host, c), 0);
	run();
	CHECK_STR(result_text(), "Error: tool call aborted before dispatch");
	CHECK_STR(result_code(), "AbortError/ABORTED_BEFORE_DISPATCH");
	CHECK_INT(tool.entered, 0);
}

TEST(a_signal_aborts_all_its_calls)
{
	struct errand_call_options o = {.size = sizeof(o),
					.tool = str("echo"),
					.args = str("{}"),
					.on_result = on_result};

	fresh_tool();
	CHECK_INT(errand_signal_new(core.host, &o.signal), 0);
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), 0);
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), 0);
	CHECK_INT(errand_abort(core.host, o.signal), 0);
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), 0);
	run();
	CHECK_INT(core.results, 3);
	CHECK_INT(tool.entered, 0);
}

TEST(an_abort_does_not_force_the_body)
{
	errand_call c;

	fresh_tool();
	tool.answer = NULL;
	c = begin("{}");
	run();
	CHECK_INT(errand_aborted(core.host, tool.signal), 0);
	CHECK_INT(errand_call_abort(core.host, c), 0);
	CHECK_INT(errand_aborted(core.host, tool.signal), 1);
	run();
	CHECK_INT(core.results, 0);
	CHECK_INT(errand_answer(core.host, tool.frame, "{\"s\":\"x\"}", ERRAND_NUL), 0);
	run();
	CHECK_STR(result_text(), "Error: tool call aborted");
	CHECK_STR(result_code(), "AbortError/ABORTED");
}

TEST(an_aborted_body_that_failed_keeps_its_own_text)
{
	errand_error *e = errand_error_new(NULL, NULL, "mine", 4);
	errand_call c;

	fresh_tool();
	tool.answer = NULL;
	c = begin("{}");
	run();
	CHECK_INT(errand_call_abort(core.host, c), 0);
	CHECK_INT(errand_fail(core.host, tool.frame, e), 0);
	run();
	CHECK_STR(result_text(), "Error: mine");
	errand_error_free(e);
}

TEST(an_abort_after_the_answer_and_before_the_run_counts)
{
	errand_call c;

	fresh_tool();
	tool.answer = NULL;
	c = begin("{}");
	run();
	CHECK_INT(errand_answer(core.host, tool.frame, "{\"s\":\"x\"}", ERRAND_NUL), 0);
	CHECK_INT(errand_call_abort(core.host, c), 0);
	run();
	CHECK_STR(result_text(), "Error: tool call aborted");
}

TEST(a_call_that_ended_is_stale)
{
	errand_call c;

	fresh_tool();
	c = begin("{}");
	run();
	CHECK_INT(errand_call_abort(core.host, c), ERRAND_EGONE);
	CHECK_INT(errand_aborted(core.host, tool.signal), ERRAND_EGONE);
}

TEST(a_calls_own_signal_is_not_yours_to_free)
{
	fresh_tool();
	tool.answer = NULL;
	(void)begin("{}");
	run();
	CHECK_INT(errand_signal_free(core.host, tool.signal), ERRAND_EARG);
}

TEST(not_lossless_comes_before_an_abort)
{
	errand_call c;

	fresh_tool();
	c = begin("{\"n\":-0}");
	CHECK_INT(errand_call_abort(core.host, c), 0);
	run();
	CHECK_STR(result_text(),
		  "Error: tool execution arguments must be losslessly JSON-serializable");
}

TEST(a_nul_in_a_key_of_the_arguments_is_named)
{
	fresh_tool();
	(void)begin("{\"n\":1,\"a\\u0000\":2}");
	run();
	CHECK_STR(result_text(),
		  "Error: arguments: a key holds a NUL, which is not supported");
	CHECK_INT(tool.entered, 0);
}

/* ---- leases of a body ---- */

static errand_lease read_in_body(struct work *w)
{
	errand_lease l = 0;
	errand_text *t = NULL;

	CHECK_INT(errand_read(core.host, w->id, ERRAND_NUL, core.alice, &l, &t, NULL), 0);
	errand_text_free(t);
	return l;
}

/* A body that is to answer yet, and a stream with something to read; *@ret (may be NULL) is the
 * call. */
static struct work *in_a_body(errand_call *ret)
{
	struct work *w;
	errand_call c;

	fresh_tool();
	tool.answer = NULL;
	w = start(core.alice, STREAM);
	emit(w, "x\n");
	c = begin("{}");
	run();
	if (ret)
		*ret = c;
	return w;
}

TEST(d6_a_body_binds_what_it_read_to_its_call)
{
	struct work *w = in_a_body(NULL);
	errand_lease l = read_in_body(w);

	CHECK_INT(errand_frame_lease(core.host, tool.frame, l), 0);
	CHECK_INT(errand_lease_commit(core.host, l), ERRAND_EGONE);
	core.fate = ERRAND_LOST;
	CHECK_INT(errand_answer(core.host, tool.frame, "{\"s\":\"x\"}", ERRAND_NUL), 0);
	run();
	CHECK(core.lease != 0);
	core.fate = ERRAND_DELIVERED;
	CHECK_STR(output_of(w), "x\n[status: running]");
}

TEST(d6_a_call_that_fails_has_consumed_nothing)
{
	struct work *w = in_a_body(NULL);

	CHECK_INT(errand_frame_lease(core.host, tool.frame, read_in_body(w)), 0);
	CHECK_INT(errand_answer(core.host, tool.frame, "{\"bad\":1}", ERRAND_NUL), 0);
	run();
	CHECK(core.lease == 0);
	CHECK_STR(output_of(w), "x\n[status: running]");
}

TEST(d6_a_call_that_is_aborted_after_its_read_has_consumed_nothing)
{
	errand_call c;
	struct work *w = in_a_body(&c);

	CHECK_INT(errand_frame_lease(core.host, tool.frame, read_in_body(w)), 0);
	CHECK_INT(errand_call_abort(core.host, c), 0);
	CHECK_INT(errand_answer(core.host, tool.frame, "{\"s\":\"x\"}", ERRAND_NUL), 0);
	run();
	CHECK_STR(output_of(w), "x\n[status: running]");
}

TEST(d6_a_lease_cannot_be_named_before_it_is_handed_out)
{
	struct work *w = in_a_body(NULL);

	CHECK_INT(errand_frame_lease(core.host, tool.frame, read_in_body(w)), 0);
	for (errand_lease guess = 1; guess < 100; guess++)
		CHECK_INT(errand_lease_commit(core.host, guess), ERRAND_EGONE);
	core.fate = ERRAND_LOST;
	CHECK_INT(errand_answer(core.host, tool.frame, "{\"s\":\"x\"}", ERRAND_NUL), 0);
	run();
	core.fate = ERRAND_DELIVERED;
	CHECK_STR(output_of(w), "x\n[status: running]");
}

TEST(a_lease_of_nobody_cannot_be_bound)
{
	fresh_tool();
	tool.answer = NULL;
	(void)begin("{}");
	run();
	CHECK_INT(errand_frame_lease(core.host, tool.frame, 4711), ERRAND_EGONE);
	CHECK_INT(errand_frame_lease(core.host, 4711, 4712), ERRAND_EGONE);
}

/* ---- calls that cannot begin ---- */

TEST(arguments_over_their_maximum_are_refused_at_once)
{
	struct errand_call_options o = {
		.size = sizeof(o), .tool = str("echo"), .on_result = on_result};
	errand_error *e = NULL;
	char *big = malloc(MAX_ARGS + 1);

	fresh_tool();
	memset(big, ' ', MAX_ARGS + 1);
	o.args.ptr = big;
	o.args.len = MAX_ARGS + 1;
	CHECK_INT(errand_call_new(core.host, &o, NULL, &e), ERRAND_ELIMIT);
	CHECK_STR(message(e), "args are over 16777216 bytes");
	free(big);
}

TEST(a_call_without_a_tool_or_an_answer_is_a_mistake)
{
	struct errand_call_options o = {.size = sizeof(o), .tool = str("echo")};

	fresh_tool();
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), ERRAND_EARG);
	o.on_result = on_result;
	o.tool.ptr = NULL;
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), ERRAND_EARG);
	o.tool = str("echo");
	o.size = 4;
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), ERRAND_EARG);
}

TEST(a_call_of_who_is_gone_is_refused)
{
	struct errand_call_options o = {.size = sizeof(o),
					.agent = 4711,
					.tool = str("echo"),
					.on_result = on_result};

	fresh_tool();
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), ERRAND_EGONE);
	o.agent = 0;
	o.signal = 4711;
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), ERRAND_EGONE);
}

TEST(what_a_call_was_given_is_destroyed_once)
{
	struct errand_call_options o = {.size = sizeof(o),
					.tool = str("echo"),
					.on_result = on_result,
					.destroy = on_destroy};

	fresh_tool();
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), 0);
	CHECK_INT(tool.destroyed, 0);
	run();
	CHECK_INT(tool.destroyed, 1);
	o.agent = 4711;
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), ERRAND_EGONE);
	CHECK_INT(tool.destroyed, 2);
}

TEST(calls_go_with_the_host_without_a_result)
{
	struct errand_call_options o = {.size = sizeof(o),
					.tool = str("echo"),
					.on_result = on_result,
					.destroy = on_destroy};

	fresh_tool();
	tool.answer = NULL;
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), 0);
	run();
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), 0);
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_INT(core.results, 0);
	CHECK_INT(tool.destroyed, 3);
}

TEST(answers_must_be_given)
{
	fresh_tool();
	tool.answer = NULL;
	(void)begin("{}");
	run();
	CHECK_INT(errand_answer(core.host, tool.frame, NULL, 0), ERRAND_EARG);
	CHECK_INT(errand_fail(core.host, tool.frame, NULL), 0);
	run();
	CHECK_STR(result_text(), "Error: ");
}
