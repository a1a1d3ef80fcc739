/* SPDX-License-Identifier: MIT */
/*
 * Behaviours of the contract's list (spec 16) and of its differences (D1 to D19) that belong
 * to no one file of src/core; tests/house/behaviours.txt says where each is shown.
 */
#include "seats.h"
#include "session.h"

#define REASON "0123456789012345678901234"

static void fresh_counted(long limit)
{
	char config[64];

	(void)snprintf(config, sizeof(config), "{\"maxConcurrentTasksPerOwner\":%ld}",
		       limit);
	fresh_as(limit ? config : "{\"maxConcurrentTasksPerOwner\":null}");
}

static const char *first_text(errand_agent a)
{
	static char copy[1024];
	const char *text = strstr(inbox(a), "\"text\":\"background");

	CHECK(text != NULL);
	(void)snprintf(copy, sizeof(copy), "%.*s",
		       (int)(strstr(text, "\"}]") - text - strlen("\"text\":\"")),
		       text + strlen("\"text\":\""));
	return copy;
}

/* ---- the registry ---- */

TEST(an_owner_that_was_refused_may_own_when_it_is_registered)
{
	fresh();
	CHECK_INT(errand_agent_register(core.host, core.alice, 0, NULL), 0);
	CHECK_INT(try_start_for(core.alice), ERRAND_EREFUSED);
	CHECK_INT(errand_agent_register(core.host, core.alice, 1, NULL), 0);
	CHECK_INT(try_start_for(core.alice), 0);
	CHECK_STR(core.work[1].id, "bash-1");
	(void)logged();
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	CHECK_STR(logged(), "cancel(owner disposed);");
}

TEST(a_gate_that_was_closed_opens_again)
{
	errand_reg a = 0, b = 0;

	fresh();
	CHECK_INT(unregister(core.mount), 0);
	for (int i = 0; i < 2; i++) {
		CHECK_INT(try_start_for(core.alice), ERRAND_EREFUSED);
		CHECK_INT(errand_surface(core.host, 0, "same", &a, NULL), 0);
		CHECK_INT(errand_surface(core.host, 0, "same", &b, NULL), 0);
		CHECK_INT(unregister(a), 0);
		CHECK_INT(try_start_for(core.alice), 0);
		CHECK_INT(unregister(b), 0);
	}
	CHECK_INT(try_start_for(core.alice), ERRAND_EREFUSED);
}

TEST(the_teardown_of_an_owner_does_not_need_the_mount)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(unregister(core.mount), 0);
	core.mount = mount_in(0);
	(void)start(core.alice, FINAL);
	CHECK_INT(unregister(core.mount), 0);
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	CHECK_STR(logged(), "cancel(owner disposed);cancel(owner disposed);");
	end(w);
	end(&core.work[1]);
	CHECK_INT(w->destroyed + core.work[1].destroyed, 2);
}

TEST(an_end_without_output_is_read_as_nothing)
{
	struct work *final, *stream;

	fresh();
	final = start(core.alice, FINAL);
	stream = start(core.alice, STREAM);
	settle(final, ERRAND_COMPLETED, NULL, NULL);
	settle(stream, ERRAND_COMPLETED, NULL, "is not shown");
	run();
	CHECK_STR(output_of(final), "(no new output)\n[status: completed]");
	CHECK_STR(output_of(stream), "(no new output)\n[status: completed]");
	settle(start(core.alice, FINAL), ERRAND_COMPLETED, NULL, "");
	run();
	CHECK_STR(output_of(&core.work[2]), "(no new output)\n[status: completed]");
}

static void give_up(void *ud, errand_host *h, errand_lease l, const char *snapshot_json,
		    size_t len, const errand_error *e)
{
	(void)ud, (void)h, (void)l, (void)snapshot_json, (void)len, (void)e;
}

static long blocks;

static void *count_alloc(void *ud, size_t n)
{
	(void)ud;
	blocks++;
	return malloc(n);
}

static void *count_resize(void *ud, void *p, size_t n)
{
	(void)ud;
	blocks += p == NULL;
	return realloc(p, n);
}

static void count_free(void *ud, void *p)
{
	(void)ud;
	blocks -= p != NULL;
	free(p);
}

static void fresh_on_counted_memory(void)
{
	struct errand_host_options o = {.size = sizeof(o),
					.abi = ERRAND_ABI,
					.alloc = count_alloc,
					.resize = count_resize,
					.dealloc = count_free};

	fresh();
	errand_host_free(core.host);
	blocks = 0;
	CHECK_INT(errand_host_new(&o, &core.host, NULL), 0);
	core.mount = mount_in(0);
	core.alice = agent("alice");
}

static void wait_and_give_up(const struct work *w, bool is_aborted)
{
	errand_signal s = 0;

	CHECK_INT(errand_signal_new(core.host, &s), 0);
	CHECK_INT(errand_wait(core.host, w->id, ERRAND_NUL, core.alice, "5", 1, s, give_up,
			      NULL, NULL, NULL),
		  0);
	if (is_aborted)
		CHECK_INT(errand_abort(core.host, s), 0);
	pass(5);
	CHECK_INT(errand_signal_free(core.host, s), 0);
}

TEST(waits_that_were_given_up_leave_nothing_behind_while_the_task_lives)
{
	struct work *w;
	long before = 0;

	fresh_on_counted_memory();
	w = start(core.alice, FINAL);
	for (int i = 0; i < 1000; i++) {
		wait_and_give_up(w, i % 2);
		if (i == 10)
			before = blocks;
	}
	CHECK_INT(blocks, before);
	end(w);
	CHECK_INT(notices(core.alice), 1);
}

TEST(what_the_tools_say_when_the_registry_is_gone)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	w->cancel_settles = true;
	CHECK_INT(errand_service_dispose(core.host, NULL, NULL, NULL, NULL), 0);
	run();
	CHECK_STR(output_of(w), "Error: unknown task bash-1");
	CHECK_STR(kill_of(w), "Error: unknown task bash-1");
	CHECK_STR(call(core.alice, "task_list", "{}"), "(no background tasks)");
}

static int on_change_of(void *ud, errand_host *h, errand_reg self, errand_agent owner,
			const char *json, size_t len, errand_error *e)
{
	(void)ud, (void)h, (void)self, (void)len, (void)e;
	CHECK_STR(json, "{}");
	logf_("%s;", owner == core.alice ? "alice" : owner ? "another" : "nobody");
	return 0;
}

TEST(a_change_names_the_very_owner_or_nobody)
{
	errand_agent next;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	run();
	CHECK_INT(errand_on(core.host, 0, ERRAND_ON_CHANGED, on_change_of, NULL, NULL, NULL,
			    NULL),
		  0);
	CHECK_INT(errand_agent_register(core.host, core.alice, 0, NULL), 0);
	next = agent("alice");
	end(w);
	CHECK_STR(logged(), "alice;");
	end(start(0, FINAL));
	CHECK_STR(logged(), "nobody;nobody;");
	end(start(next, FINAL));
	CHECK_STR(logged(), "another;another;");
}

TEST(an_owner_that_had_nothing_changes_nothing_when_it_goes)
{
	fresh();
	(void)listen(ERRAND_ON_CHANGED, "changed");
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	run();
	CHECK_STR(logged(), "");
}

TEST(d9_a_successor_of_the_same_session_has_places_of_its_own)
{
	errand_agent next;

	fresh_counted(1);
	(void)start(core.alice, FINAL);
	CHECK_INT(try_start_for(core.alice), ERRAND_EREFUSED);
	CHECK_INT(errand_agent_register(core.host, core.alice, 0, NULL), 0);
	next = agent("alice");
	CHECK_INT(try_start_for(next), 0);
	CHECK_INT(try_start_for(next), ERRAND_EREFUSED);
}

/* ---- the controller under a limit ---- */

TEST(a_limit_leaves_the_newline_rule_as_it_is)
{
	struct work *w;

	fresh();
	w = start_limited(core.alice, STREAM, "30");
	CHECK_STR(output_of(w), "t truncated]\n[status: running]");
	emit(w, "\n");
	CHECK_STR(output_of(w), "\n[status: running]");
	emit(w, "x\n");
	CHECK_STR(output_of(w), "x\n[status: running]");
	emit(w, "x\n\n");
	CHECK_STR(output_of(w), "x\n\n[status: running]");
	w = start_limited(core.alice, STREAM, "33");
	CHECK_STR(output_of(w), "(no new output)\n[status: running]");
}

TEST(a_bounded_cancel_that_throws_keeps_its_tail)
{
	struct work *w;

	fresh();
	w = start_limited(core.alice, FINAL, "25");
	w->cancel_error = "cancel boom again and again";
	CHECK_STR(kill_of(w), " again\n[result truncated]");
	CHECK_STR(member(member(core.result, "error"), "message"),
		  "cancel boom again and again");
}

TEST(what_a_policy_says_is_bounded_at_each_stage)
{
	static struct seat seats[] = {
		{.name = "pre", .say = "{\"kind\":\"deny\",\"reason\":\"" REASON "\"}"},
		{.name = "pre", .fail = REASON},
		{.name = "guard", .say = "{\"reason\":\"" REASON "\"}"},
		{.name = "around", .fail = REASON},
		{.name = "post", .fail = REASON},
		{.name = "post",
		 .say = "{\"kind\":\"block\",\"feedback\":[{\"type\":\"text\",\"text\":"
			"\"" REASON REASON "\"}]}"},
	};
	static const int stages[] = {ERRAND_STAGE_PRE,   ERRAND_STAGE_PRE,
				     ERRAND_STAGE_GUARD, ERRAND_STAGE_AROUND,
				     ERRAND_STAGE_POST,  ERRAND_STAGE_POST};

	for (size_t i = 0; i < sizeof(seats) / sizeof(seats[0]); i++) {
		struct work *w;

		fresh();
		w = start_limited(core.alice, STREAM, "25");
		sit(stages[i], &seats[i]);
		CHECK_STR(output_of(w), "901234\n[result truncated]");
		CHECK_STR(kill_of(w), "901234\n[result truncated]");
	}
}

TEST(what_a_policy_structured_is_left_to_its_author)
{
	static const char *const contents[] = {
		"[]",
		"[{\"type\":\"text\",\"text\":\"" REASON "\"},{\"type\":\"text\","
		"\"text\":\"" REASON "\"}]",
		"[{\"type\":\"image\",\"data\":\"" REASON "\"}]"};
	static struct seat post = {.name = "post"};
	char decision[256];

	for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
		struct work *w;

		fresh();
		w = start_limited(core.alice, STREAM, "20");
		(void)snprintf(decision, sizeof(decision),
			       "{\"kind\":\"accept\",\"content\":%s}", contents[i]);
		post.say = decision;
		sit(ERRAND_STAGE_POST, &post);
		(void)wait_for_output(w, 1);
		pass(1);
		CHECK_STR(member(core.result, "content"), contents[i]);
	}
}

TEST(d6_a_read_whose_value_does_not_pass_is_unread_again)
{
	static struct seat post = {.name = "post",
				   .say = "{\"kind\":\"accept\",\"value\":{\"text\":1}}"};
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "text\n");
	end(w);
	sit(ERRAND_STAGE_POST, &post);
	CHECK(strstr(output_of(w), "returned invalid output"));
	CHECK_STR(result_code(), "ToolOutputError/INVALID_TOOL_OUTPUT");
	CHECK(!is_reported(w));
	CHECK_INT(unregister(post.reg), 0);
	CHECK_STR(output_of(w), "text\n[status: completed]");
	CHECK(is_reported(w));
}

/* ---- notices ---- */

TEST(a_notice_of_80_bytes_keeps_what_fits_of_the_middle)
{
	fresh();
	end(start_limited(core.alice, FINAL, "80"));
	CHECK_STR(first_text(core.alice),
		  "background task bash-1 (bash: sleep 60) fi\\n[notice truncated]\\nDone; "
		  "task_output.");
}

TEST(the_hundredth_send_to_a_terminal_keeps_its_id_in_64_bytes)
{
	struct errand_task_spec s;

	fresh_counted(0);
	for (int i = 0; i < 99; i++) {
		core.works = 0;
		(void)start_labelled(core.bob, "pty-send", "x");
	}
	core.works = 0;
	s = spec(core.alice, FINAL);
	s.kind = str("pty-send");
	s.limit_json = str("64");
	CHECK_INT(try_start(&s), 0);
	end(&core.work[0]);
	CHECK_STR(first_text(core.alice),
		  "background task pty-send-100\\nDone; task_output.");
}

TEST(d8_one_budget_whatever_the_number_of_mounts)
{
	errand_scope near;

	fresh_waking();
	session.on_wake = turn;
	near = core.alice;
	(void)mount_in(near);
	for (int i = 0; i < 5; i++)
		end(start(core.alice, FINAL));
	CHECK_INT(session.wakes, 3);
	CHECK_STR(pending(), "m4,m5");
}

/* ---- names and flags ---- */

TEST(d10_no_text_names_a_package_or_the_old_family)
{
	static const char *const calls[] = {"task_output", "task_kill", "task_list",
					    "nope"};
	static const char *const old[] = {"deepseek", "@", "job"};

	fresh_counted(1);
	(void)start(core.alice, FINAL);
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		(void)call(core.alice, calls[i], "{\"task_id\":\"x\"}");
		for (size_t k = 0; k < 3; k++)
			CHECK(strstr(core.result, old[k]) == NULL);
	}
	CHECK_INT(try_start_for(core.alice), ERRAND_EREFUSED);
	CHECK(strstr(core.message, "use task_kill") && !strstr(core.message, "job"));
	CHECK_STR(tools_of(core.alice), three);
	CHECK_STR(sections_of(core.alice), "tool:tasks");
}

TEST(d19_the_three_tools_are_exclusive_for_whoever_schedules_and_nobody_else)
{
	errand_text *t = NULL;
	struct work *w;

	fresh();
	CHECK_INT(errand_tools(core.host, core.alice, 0, &t, NULL), 0);
	CHECK_INT(times(text_of(t), "\"exclusive\":true"), 3);
	w = start(core.alice, FINAL);
	(void)wait_for_output(w, 1000);
	CHECK_STR(call(core.alice, "task_list", "{}"),
		  "bash-1 [bash] running \xe2\x80\x94 sleep 60");
	CHECK_STR(kill_of(w), "requested cancellation of task bash-1");
	end(w);
	CHECK_STR(result_text(), "(no new output)\n[status: completed]");
}
