/* SPDX-License-Identifier: MIT */
/* Tests of src/core/controller.c, render.c, mount.c, section.c: the three tools. */
#include "core.h"

#define DASH "\xe2\x80\x94"

static const char *call_for(errand_agent caller, const char *tool, const char *id)
{
	char args[512];

	(void)snprintf(args, sizeof(args), "{\"task_id\":\"%s\"}", id);
	return call(caller, tool, args);
}

static int mount(const char *config)
{
	errand_error *e = NULL;
	int rc = errand_mount(core.host, 0, config, ERRAND_NUL, &core.mount, &e);

	(void)message(e);
	return rc;
}

static const char *prompt(errand_agent a)
{
	errand_text *t = NULL;

	CHECK_INT(errand_prompt(core.host, a, NULL, 0, &t, NULL), 0);
	return text_of(t);
}

/* ---- task_output ---- */

TEST(an_output_ends_with_the_status_line)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "line\n");
	CHECK_STR(output_of(w), "line\n[status: running]");
	emit(w, "no newline");
	CHECK_STR(output_of(w), "no newline\n[status: running]");
	emit(w, "a\n\n");
	CHECK_STR(output_of(w), "a\n\n[status: running]");
	emit(w, "\n");
	CHECK_STR(output_of(w), "\n[status: running]");
}

TEST(nothing_new_is_said_to_be_nothing_new)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_STR(output_of(w), "(no new output)\n[status: running]");
	settle(w, ERRAND_FAILED, "max-tokens", NULL);
	run();
	CHECK_STR(output_of(w), "(no new output)\n[status: failed, max-tokens]");
}

TEST(d18_an_empty_detail_shows_its_comma)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	settle(w, ERRAND_COMPLETED, "", NULL);
	run();
	CHECK_STR(output_of(w), "(no new output)\n[status: completed, ]");
}

TEST(the_value_is_text_and_public_task)
{
	struct work *w;

	fresh();
	w = start_limited(core.alice, STREAM, "4096");
	emit(w, "x");
	(void)output_of(w);
	CHECK_STR(member(core.result, "value"),
		  "{\"text\":\"x\",\"task\":{\"id\":\"bash-1\",\"kind\":\"bash\",\"label\":"
		  "\"sleep 60\",\"status\":\"running\",\"startedAt\":1000}}");
}

TEST(d4_a_detail_stays_on_its_status_line)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	settle(w, ERRAND_FAILED, "a\n[status: completed]", NULL);
	run();
	CHECK_STR(output_of(w), "(no new output)\n[status: failed, a [status: completed]]");
	CHECK(strstr(core.result, "\"detail\":\"a\\n[status: completed]\""));
}

TEST(an_empty_id_is_refused_before_it_is_looked_up)
{
	fresh();
	CHECK_STR(call_for(core.alice, "task_output", ""),
		  "Error: invalid task_id: expected a non-empty string, got \"\"");
	CHECK_STR(call_for(core.alice, "task_kill", ""),
		  "Error: invalid task_id: expected a non-empty string, got \"\"");
	CHECK_STR(result_code(), "message");
}

TEST(an_id_is_not_trimmed)
{
	fresh();
	(void)start(core.alice, FINAL);
	CHECK_STR(call_for(core.alice, "task_output", " bash-1"),
		  "Error: unknown task  bash-1");
}

TEST(an_id_with_a_nul_is_shown_whole)
{
	fresh();
	(void)call(core.alice, "task_output", "{\"task_id\":\"a\\u0000b\"}");
	CHECK_STR(core.result, "{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":"
			       "\"Error: unknown task a\\u0000b\"}],\"error\":{\"message\":"
			       "\"unknown task a\\u0000b\"}}");
}

TEST(d18_a_foreign_task_is_said_to_be_foreign)
{
	fresh();
	(void)start(core.alice, FINAL);
	CHECK_STR(call_for(core.bob, "task_output", "bash-1"),
		  "Error: task bash-1 belongs to another session");
	CHECK_STR(call_for(0, "task_kill", "bash-1"),
		  "Error: task bash-1 belongs to another session");
}

TEST(open_work_is_everybodys)
{
	fresh();
	(void)start(0, FINAL);
	CHECK_STR(call_for(core.bob, "task_output", "bash-1"),
		  "(no new output)\n[status: running]");
	CHECK_STR(call_for(0, "task_kill", "bash-1"),
		  "requested cancellation of task bash-1");
}

TEST(a_read_that_throws_is_an_error_with_its_text)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	w->read_error = "disk on fire";
	CHECK_STR(output_of(w), "Error: disk on fire");
}

/* ---- waiting ---- */

TEST(wait_true_waits_for_the_end)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "x\n");
	(void)wait_for_output(w, 1000);
	CHECK_INT(core.results, 0);
	end(w);
	CHECK_STR(result_text(), "x\n[status: completed]");
}

TEST(wait_that_is_not_true_does_not_wait)
{
	fresh();
	(void)start(core.alice, FINAL);
	CHECK_STR(call(core.alice, "task_output",
		       "{\"task_id\":\"bash-1\",\"wait\":false,\"timeout_ms\":-5}"),
		  "(no new output)\n[status: running]");
	CHECK_STR(call(core.alice, "task_output",
		       "{\"task_id\":\"bash-1\",\"timeout_ms\":0}"),
		  "(no new output)\n[status: running]");
}

TEST(a_wait_that_takes_too_long_is_no_error)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	(void)wait_for_output(w, 50);
	emit(w, "so far");
	pass(50);
	CHECK_STR(result_text(), "so far\n[status: running]");
	CHECK_STR(result_code(), "");
}

TEST(a_wait_takes_the_default_and_never_more_than_the_cap)
{
	fresh();
	CHECK_INT(errand_unregister(core.host, core.mount), 0);
	CHECK_INT(mount("{\"waitTimeoutMs\":100,\"maxWaitTimeoutMs\":200}"), 0);
	(void)start(core.alice, FINAL);
	(void)call_begin(core.alice, "task_output",
			 "{\"task_id\":\"bash-1\",\"wait\":true}");
	run();
	CHECK_INT(errand_next_deadline(core.host), 100);
	pass(100);
	CHECK_INT(core.results, 1);
	(void)call_begin(core.alice, "task_output",
			 "{\"task_id\":\"bash-1\",\"wait\":true,\"timeout_ms\":1e21}");
	run();
	CHECK_INT(errand_next_deadline(core.host), 300);
}

TEST(a_bad_timeout_is_told_as_javascript_would)
{
	fresh();
	(void)start(core.alice, FINAL);
	CHECK_STR(
		call(core.alice, "task_output",
		     "{\"task_id\":\"bash-1\",\"wait\":true,\"timeout_ms\":-0.00000015}"),
		"Error: invalid wait timeout: expected a positive number of milliseconds, got "
		"-1.5e-7");
}

TEST(a_cap_beyond_every_timer_shows_in_the_wait)
{
	fresh();
	CHECK_INT(errand_unregister(core.host, core.mount), 0);
	CHECK_INT(mount("{\"maxWaitTimeoutMs\":1e10}"), 0);
	(void)start(core.alice, FINAL);
	CHECK_STR(
		call(core.alice, "task_output",
		     "{\"task_id\":\"bash-1\",\"wait\":true,\"timeout_ms\":1e10}"),
		"Error: deadline timeoutMs must be a positive finite number no greater than "
		"2147483647");
}

TEST(an_aborted_wait_leaves_the_task_alone)
{
	struct work *w;
	errand_call c;

	fresh();
	w = start(core.alice, FINAL);
	c = wait_for_output(w, 1000);
	CHECK_INT(errand_call_abort(core.host, c), 0);
	run();
	CHECK_STR(result_text(), "Error: wait aborted");
	CHECK_STR(result_code(), "message");
	CHECK_STR(status_of(w), "running");
	end(w);
	CHECK_INT(notices(core.alice), 1);
}

TEST(two_waiters_share_one_stream)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "only once");
	(void)wait_for_output(w, 1000);
	(void)wait_for_output(w, 1000);
	end(w);
	CHECK_INT(core.results, 2);
	CHECK_STR(result_text(), "(no new output)\n[status: completed]");
}

TEST(a_record_that_goes_during_a_wait_is_unknown_then)
{
	struct work *w;

	fresh();
	w = start(0, FINAL);
	(void)wait_for_output(w, 1000);
	settle(w, ERRAND_COMPLETED, NULL, NULL);
	CHECK_INT(errand_run(core.host, 0, WALL, 1), 1);
	CHECK_INT(errand_kill(core.host, w->id, ERRAND_NUL, 0, NULL, 0, NULL, NULL), 0);
	CHECK_INT(errand_task_drop(core.host, w->task, NULL), ERRAND_ESTATE);
	run();
	CHECK_STR(result_text(), "(no new output)\n[status: completed]");
}

/* ---- task_list ---- */

TEST(an_empty_list_says_so)
{
	fresh();
	CHECK_STR(call(core.alice, "task_list", "{}"), "(no background tasks)");
	CHECK_STR(member(core.result, "value"), "[]");
}

TEST(a_list_has_a_row_a_task)
{
	fresh();
	(void)start_labelled(core.alice, "bash", "make all");
	(void)start_labelled(0, "subagent", "look it up");
	(void)start_labelled(core.bob, "bash", "secret");
	CHECK_STR(call(core.alice, "task_list", "{\"extra\":1}"),
		  "bash-1 [bash] running " DASH " make all\n"
		  "subagent-1 [subagent] running " DASH " look it up");
}

TEST(d4_a_label_cannot_forge_a_row)
{
	fresh();
	(void)start_labelled(core.alice, "bash", "x\nbash-9 [bash] completed " DASH " y");
	CHECK_STR(call(core.alice, "task_list", "{}"),
		  "bash-1 [bash] running " DASH " x bash-9 [bash] completed " DASH " y");
}

TEST(a_list_is_never_bounded)
{
	fresh();
	(void)start_limited(core.alice, FINAL, "1");
	CHECK_STR(call(core.alice, "task_list", "{}"),
		  "bash-1 [bash] running " DASH " sleep 60");
}

/* ---- task_kill ---- */

TEST(a_kill_answers_at_once)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_STR(kill_of(w), "requested cancellation of task bash-1");
	CHECK(strstr(core.result, "\"outcome\":\"cancellation-requested\""));
	CHECK(strstr(core.result, "\"status\":\"stopping\""));
}

TEST(a_kill_of_what_ended_says_how_it_ended)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "unread\n");
	settle(w, ERRAND_KILLED, "signal: SIGTERM", NULL);
	run();
	CHECK_STR(kill_of(w), "task bash-1 had already finished [status: killed, signal: "
			      "SIGTERM]");
	CHECK_STR(output_of(w), "unread\n[status: killed, signal: SIGTERM]");
}

TEST(a_kill_hands_the_reason_to_the_producer)
{
	fresh();
	(void)start(core.alice, FINAL);
	(void)call(core.alice, "task_kill",
		   "{\"task_id\":\"bash-1\",\"reason\":\"super\\n\"}");
	CHECK_STR(logged(), "cancel(super\n);");
}

TEST(a_kill_that_throws_is_an_error_with_its_text)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	w->cancel_error = "cancel boom";
	CHECK_STR(kill_of(w), "Error: cancel boom");
	CHECK_STR(status_of(w), "running");
}

/* ---- limits ---- */

TEST(a_bounded_output_keeps_the_status_line_and_the_newest)
{
	struct work *w;

	fresh();
	w = start_limited(core.alice, STREAM, "50");
	emit(w, "0123456789012345678901234567890123456789\n");
	CHECK_STR(output_of(w), "7890123456789\n[output truncated]\n[status: running]");
}

TEST(a_tiny_limit_keeps_the_end_of_the_status_line)
{
	struct work *w;

	fresh();
	w = start_limited(core.alice, STREAM, "10");
	emit(w, "0123456789");
	CHECK_STR(output_of(w), ": running]");
}

TEST(a_producers_own_mark_is_used_again)
{
	struct work *w;

	fresh();
	w = start_limited(core.alice, STREAM, "50");
	emit(w, "0123456789012345678901234567890123456789\n[output truncated]\n");
	CHECK_STR(output_of(w), "7890123456789\n[output truncated]\n[status: running]");
}

TEST(a_bounded_error_keeps_its_tail)
{
	struct work *w;

	fresh();
	w = start_limited(core.alice, STREAM, "25");
	w->read_error = "a long story about a disk that is on fire";
	CHECK_STR(output_of(w), "n fire\n[result truncated]");
	CHECK(strstr(core.result,
		     "\"message\":\"a long story about a disk that is on fire\""));
}

TEST(a_bounded_kill_keeps_its_tail)
{
	struct work *w;

	fresh();
	w = start_limited(core.alice, FINAL, "8");
	CHECK_STR(kill_of(w), "uncated]");
}

TEST(a_limit_bounds_bad_arguments_too)
{
	fresh();
	(void)start_limited(core.alice, FINAL, "20");
	CHECK_STR(call(core.alice, "task_output", "{\"task_id\":\"bash-1\",\"wait\":1}"),
		  "n\n[result truncated]");
	CHECK_STR(result_code(), "ToolArgsError/INVALID_ARGS");
}

TEST(a_limit_that_was_not_captured_is_looked_up_at_the_end)
{
	errand_call c;

	fresh();
	(void)start_limited(core.alice, FINAL, "20");
	c = call_begin(core.alice, "task_output", "{\"task_id\":\"bash-1\"}");
	CHECK_INT(errand_call_abort(core.host, c), 0);
	run();
	CHECK_STR(result_text(), "h\n[result truncated]");
}

TEST(arguments_that_are_not_lossless_have_no_limit)
{
	fresh();
	(void)start_limited(core.alice, FINAL, "20");
	CHECK_STR(call(core.alice, "task_output",
		       "{\"task_id\":\"bash-1\",\"timeout_ms\":-0}"),
		  "Error: tool execution arguments must be losslessly JSON-serializable");
}

TEST(a_limit_is_invisible_to_strangers)
{
	fresh();
	(void)start_limited(core.alice, FINAL, "8");
	CHECK_STR(call_for(core.bob, "task_output", "bash-1"),
		  "Error: task bash-1 belongs to another session");
}

TEST(a_limit_that_was_captured_outlives_its_record)
{
	struct work *w;

	fresh();
	w = start_limited(core.alice, FINAL, "20");
	w->cancel_settles = true;
	(void)wait_for_output(w, 1000);
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	run();
	CHECK_STR(result_text(), "ed]\n[status: killed]");
}

TEST(the_value_is_never_bounded)
{
	struct work *w;

	fresh();
	w = start_limited(core.alice, STREAM, "10");
	emit(w, "0123456789abcdef");
	(void)output_of(w);
	CHECK(strstr(core.result, "\"text\":\"0123456789abcdef\""));
}

/* ---- mount ---- */

TEST(the_prompt_is_the_section_of_the_mount)
{
	fresh();
	CHECK(strstr(prompt(core.alice),
		     "Track every background task id you start. You are "
		     "notified in-session when a task finishes " DASH
		     " do not busy-poll") == core.shown);
	CHECK_INT(strlen(core.shown), 391);
	CHECK_INT(errand_unregister(core.host, core.mount), 0);
	CHECK_STR(prompt(core.alice), "");
	CHECK_INT(errand_prompt(core.host, 4711, NULL, 0, &(errand_text *){NULL}, NULL),
		  ERRAND_EGONE);
}

TEST(a_second_mount_is_refused_and_changes_nothing)
{
	errand_reg first;

	fresh();
	first = core.mount;
	CHECK_INT(mount("{}"), ERRAND_EREFUSED);
	CHECK_STR(
		core.message,
		"prompt section \"tool:tasks\" is already registered (for a per-agent override, "
		"register through that agent's `agent.ctx` instead)");
	CHECK_STR(call(core.alice, "task_list", "{}"), "(no background tasks)");
	CHECK_INT(errand_unregister(core.host, first), 0);
	CHECK_INT(mount("{}"), 0);
}

static void never(void *ud, errand_host *h, errand_frame f,
		  const struct errand_frame_view *v)
{
	(void)ud;
	(void)h;
	(void)f;
	(void)v;
}

TEST(a_mount_whose_tool_is_taken_is_rolled_back)
{
	struct errand_tool t = {.size = sizeof(t),
				.name = str("task_kill"),
				.params_schema = str("{}"),
				.output_schema = str("{}"),
				.exec = never};
	errand_reg reg = 0;

	bare(NULL);
	CHECK_INT(errand_tool_add(core.host, 0, &t, &reg, NULL), 0);
	CHECK_INT(mount("{}"), ERRAND_EREFUSED);
	CHECK_STR(core.message, "tool \"task_kill\" is already registered");
	CHECK_STR(prompt(0), "");
	CHECK_STR(call(0, "task_list", "{}"), "Error: unknown tool \"task_list\"");
	CHECK_INT(errand_unregister(core.host, reg), 0);
	CHECK_INT(mount("{}"), 0);
}

TEST(unmounting_takes_the_tools_and_leaves_the_work)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(errand_unregister(core.host, core.mount), 0);
	CHECK_STR(call(core.alice, "task_list", "{}"), "Error: unknown tool \"task_list\"");
	CHECK_STR(status_of(w), "running");
	CHECK_INT(mount("{}"), 0);
	CHECK_STR(call(core.alice, "task_list", "{}"),
		  "bash-1 [bash] running " DASH " sleep 60");
}

TEST(a_wait_under_way_outlives_the_mount)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	(void)wait_for_output(w, 1000);
	CHECK_INT(errand_unregister(core.host, core.mount), 0);
	pass(1000);
	CHECK_STR(result_text(), "(no new output)\n[status: running]");
}

TEST(d10_a_default_over_the_cap_is_refused)
{
	bare(NULL);
	CHECK_INT(mount("{\"waitTimeoutMs\":100,\"maxWaitTimeoutMs\":50}"),
		  ERRAND_EREFUSED);
	CHECK_STR(core.message,
		  "tool-tasks: waitTimeoutMs (100) exceeds maxWaitTimeoutMs (50)");
	CHECK_INT(mount("{\"maxWaitTimeoutMs\":29999}"), ERRAND_EREFUSED);
	CHECK_INT(mount("{\"waitTimeoutMs\":600000.5}"), ERRAND_EREFUSED);
	CHECK_INT(mount("{\"waitTimeoutMs\":600000}"), 0);
}

struct refusal {
	const char *config, *got;
};

static void all_are_refused(const struct refusal *all, size_t count, const char *key,
			    const char *expected)
{
	char want[160];

	bare(NULL);
	for (size_t i = 0; i < count; i++) {
		CHECK_INT(mount(all[i].config), ERRAND_EREFUSED);
		(void)snprintf(want, sizeof(want),
			       "invalid config:\n  - $.%s expected %s but got %s (at %s)",
			       key, expected, all[i].got, key);
		CHECK_STR(core.message, want);
	}
}

TEST(a_configured_number_is_at_least_one)
{
	static const struct refusal all[] = {{"{\"waitTimeoutMs\":0}", "0"},
					     {"{\"waitTimeoutMs\":-1}", "-1"},
					     {"{\"waitTimeoutMs\":0.5}", "0.5"},
					     {"{\"waitTimeoutMs\":-1e999}", "-1e999"}};

	all_are_refused(all, sizeof(all) / sizeof(all[0]), "waitTimeoutMs", "number >= 1");
}

TEST(what_is_no_number_is_refused_as_such)
{
	static const struct refusal all[] = {{"{\"maxWaitTimeoutMs\":\"9\"}", "9"},
					     {"{\"maxWaitTimeoutMs\":\"\"}", ""},
					     {"{\"maxWaitTimeoutMs\":true}", "true"}};

	all_are_refused(all, sizeof(all) / sizeof(all[0]), "maxWaitTimeoutMs", "number");
}

TEST(null_and_unknown_keys_are_no_configuration)
{
	bare(NULL);
	CHECK_INT(mount("{\"waitTimeoutMs\":null,\"bogus\":[1]}"), 0);
	CHECK_INT(errand_unregister(core.host, core.mount), 0);
	CHECK_INT(mount(NULL), 0);
}

TEST(a_configuration_is_an_object)
{
	bare(NULL);
	CHECK_INT(mount("[]"), ERRAND_EREFUSED);
	CHECK_STR(core.message, "invalid config:\n  - $ expected object but got []");
	CHECK_INT(mount("{"), ERRAND_EJSON);
	CHECK_INT(errand_mount(core.host, 3, "{}", ERRAND_NUL, &core.mount, NULL),
		  ERRAND_EGONE);
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, NULL, NULL), ERRAND_EARG);
}
