/* SPDX-License-Identifier: MIT */
/* Tests of src/core/start.c: what may begin, in which order it is refused, and its id. */
#include "core.h"

static int start_kind(const char *kind)
{
	struct errand_task_spec s = spec(core.alice, FINAL);

	s.kind = str(kind);
	return try_start(&s);
}

static int start_with_limit(const char *limit_json)
{
	struct errand_task_spec s = spec(core.alice, FINAL);

	s.limit_json = str(limit_json);
	return try_start(&s);
}

static struct work *last(void)
{
	return &core.work[core.works - 1];
}

TEST(a_start_runs_the_starter_once_and_at_once)
{
	struct errand_task_spec s;

	fresh();
	s = spec(core.alice, FINAL);
	CHECK_INT(try_start(&s), 0);
	CHECK_STR(logged(), "start;");
	CHECK_STR(last()->id, "bash-1");
}

TEST(ids_count_by_kind_over_all_owners)
{
	fresh();
	CHECK_STR(start(core.alice, FINAL)->id, "bash-1");
	CHECK_STR(start_labelled(core.bob, "subagent", "x")->id, "subagent-1");
	CHECK_STR(start(core.bob, FINAL)->id, "bash-2");
	CHECK_STR(start(0, FINAL)->id, "bash-3");
}

TEST(an_id_is_never_used_again)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	(void)output_of(w);
	CHECK_INT(errand_task_drop(core.host, w->task, NULL), 0);
	CHECK_STR(start(core.alice, FINAL)->id, "bash-2");
}

TEST(kinds_that_look_like_ids_are_kinds)
{
	fresh();
	CHECK_STR(start(core.alice, FINAL)->id, "bash-1");
	CHECK_STR(start_labelled(core.alice, "bash-1", "x")->id, "bash-1-1");
	CHECK_STR(status_of(last()), "running");
}

TEST(blank_kinds_and_labels_are_legal)
{
	fresh();
	CHECK_STR(start_labelled(core.alice, " ", "\n")->id, " -1");
}

TEST(d10_without_a_control_surface_nothing_starts)
{
	fresh();
	CHECK_INT(errand_unregister(core.host, core.mount), 0);
	CHECK_INT(start_kind("bash"), ERRAND_EREFUSED);
	CHECK_STR(
		core.message,
		"background tasks unavailable: no control surface serves this agent (mount "
		"tool-tasks in its composition)");
	CHECK_STR(logged(), "");
}

TEST(the_surface_is_asked_for_before_the_kind)
{
	fresh();
	CHECK_INT(errand_unregister(core.host, core.mount), 0);
	CHECK_INT(start_kind(""), ERRAND_EREFUSED);
	CHECK(strstr(core.message, "no control surface"));
}

TEST(a_kind_is_not_empty)
{
	fresh();
	CHECK_INT(start_kind(""), ERRAND_EREFUSED);
	CHECK_STR(core.message, "invalid task kind: expected a non-empty string");
	CHECK_STR(logged(), "");
}

TEST(a_kind_that_is_absent_is_empty)
{
	struct errand_task_spec s;

	fresh();
	s = spec(core.alice, FINAL);
	s.kind.ptr = NULL;
	s.kind.len = 0;
	CHECK_INT(try_start(&s), ERRAND_EREFUSED);
	CHECK_STR(core.message, "invalid task kind: expected a non-empty string");
}

TEST(a_label_is_not_empty_and_comes_after_the_kind)
{
	struct errand_task_spec s;

	fresh();
	s = spec(core.alice, FINAL);
	s.label = str("");
	CHECK_INT(try_start(&s), ERRAND_EREFUSED);
	CHECK_STR(core.message, "invalid task label: expected a non-empty string");
	s = spec(core.alice, FINAL);
	s.kind = s.label = str("");
	CHECK_INT(try_start(&s), ERRAND_EREFUSED);
	CHECK_STR(core.message, "invalid task kind: expected a non-empty string");
}

TEST(a_limit_is_a_positive_safe_integer)
{
	fresh();
	CHECK_INT(start_with_limit("1"), 0);
	CHECK_INT(start_with_limit("9007199254740991"), 0);
	CHECK_INT(start_with_limit("2.0"), 0);
	CHECK_INT(start_with_limit("9007199254740992"), ERRAND_EREFUSED);
	CHECK_STR(core.message,
		  "invalid outputLimitBytes: expected a positive safe integer, got "
		  "9007199254740992");
}

TEST(a_bad_limit_is_shown_as_json)
{
	static const struct {
		const char *limit, *got;
	} cases[] = {{"0", "0"},        {"-1", "-1"},       {"1.5", "1.5"},
		     {"null", "null"},  {"\"5\"", "\"5\""}, {"true", "true"},
		     {"1e999", "null"}, {"-0", "0"},        {"[1]", "[1]"}};
	char want[128];

	fresh();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CHECK_INT(start_with_limit(cases[i].limit), ERRAND_EREFUSED);
		(void)snprintf(
			want, sizeof(want),
			"invalid outputLimitBytes: expected a positive safe integer, got %s",
			cases[i].got);
		CHECK_STR(core.message, want);
	}
}

TEST(a_limit_that_is_no_json_is_a_mistake_of_the_program)
{
	fresh();
	CHECK_INT(start_with_limit("NaN"), ERRAND_EJSON);
}

TEST(the_limit_comes_after_the_label_and_before_the_owner)
{
	struct errand_task_spec s;

	fresh();
	CHECK_INT(errand_agent_register(core.host, core.alice, 0, NULL), 0);
	s = spec(core.alice, FINAL);
	s.limit_json = str("0");
	CHECK_INT(try_start(&s), ERRAND_EREFUSED);
	CHECK(strstr(core.message, "outputLimitBytes"));
	s.label = str("");
	CHECK_INT(try_start(&s), ERRAND_EREFUSED);
	CHECK(strstr(core.message, "label"));
}

TEST(d10_an_owner_that_is_not_registered_cannot_own)
{
	fresh();
	CHECK_INT(errand_agent_register(core.host, core.alice, 0, NULL), 0);
	CHECK_INT(start_kind("bash"), ERRAND_EREFUSED);
	CHECK_STR(core.message,
		  "agent \"alice\" is not the registered agent instance (background "
		  "task owner must be live)");
}

TEST(a_stale_instance_cannot_own_what_its_successor_can)
{
	errand_agent next;
	struct errand_task_spec s;

	fresh();
	CHECK_INT(errand_agent_register(core.host, core.alice, 0, NULL), 0);
	next = agent("alice");
	CHECK_INT(start_kind("bash"), ERRAND_EREFUSED);
	s = spec(next, FINAL);
	CHECK_INT(try_start(&s), 0);
}

TEST(an_owner_that_is_being_disposed_cannot_own)
{
	fresh();
	(void)start(core.alice, FINAL);
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	CHECK_INT(start_kind("bash"), ERRAND_EREFUSED);
	CHECK_STR(core.message, "cannot create effect on inactive context");
}

TEST(an_owner_that_is_gone_is_a_stale_id)
{
	fresh();
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	run();
	CHECK_INT(start_kind("bash"), ERRAND_EGONE);
}

TEST(a_starter_that_fails_consumes_no_id)
{
	fresh();
	core.work[0].start_error = "no such command";
	CHECK_INT(start_kind("bash"), ERRAND_ECALLBACK);
	CHECK_STR(core.message, "no such command");
	CHECK_STR(start(core.alice, FINAL)->id, "bash-1");
}

TEST(a_starter_that_fails_leaves_nothing_behind)
{
	errand_text *t = NULL;

	fresh();
	core.work[0].start_error = "no";
	core.work[0].start_settles = true;
	CHECK_INT(start_kind("bash"), ERRAND_ECALLBACK);
	run();
	CHECK_INT(core.work[0].destroyed, 1);
	CHECK_INT(errand_list(core.host, core.alice, &t, NULL), 0);
	CHECK_STR(text_of(t), "[]");
	CHECK_INT(notices(core.alice), 0);
}

TEST(a_settlement_within_start_comes_after_the_id)
{
	fresh();
	core.work[0].start_settles = true;
	CHECK_INT(start_kind("bash"), 0);
	CHECK_STR(status_of(last()), "running");
	run();
	CHECK_STR(status_of(last()), "completed");
}

TEST(refused_starts_destroy_what_they_were_given)
{
	fresh();
	CHECK_INT(start_kind(""), ERRAND_EREFUSED);
	CHECK_INT(core.work[0].destroyed, 1);
	CHECK_INT(start_with_limit("0"), ERRAND_EREFUSED);
	CHECK_INT(core.work[1].destroyed, 1);
}

TEST(d9_ten_tasks_of_one_owner_may_live)
{
	fresh();
	for (int i = 0; i < 10; i++)
		(void)start(core.alice, FINAL);
	CHECK_INT(start_kind("bash"), ERRAND_EREFUSED);
	CHECK_STR(
		core.message,
		"background task limit reached for this owner (limit: 10); use task_kill to stop "
		"an unneeded task, wait for it to finish, then retry");
	CHECK_STR(logged(), "");
}

TEST(d9_unowned_tasks_share_a_bucket_of_their_own)
{
	struct errand_task_spec s;

	bare("{\"maxConcurrentTasksPerOwner\":1}");
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
	(void)start(0, FINAL);
	(void)start(core.alice, FINAL);
	s = spec(0, FINAL);
	CHECK_INT(try_start(&s), ERRAND_EREFUSED);
	CHECK(strstr(core.message, "(limit: 1)"));
}

TEST(d9_a_kill_request_frees_no_place_and_an_end_does)
{
	struct work *w;

	bare("{\"maxConcurrentTasksPerOwner\":1}");
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
	w = start(core.alice, FINAL);
	(void)kill_of(w);
	CHECK_INT(start_kind("bash"), ERRAND_EREFUSED);
	end(w);
	CHECK_INT(start_kind("bash"), 0);
	CHECK_STR(last()->id, "bash-2");
}

TEST(d9_null_is_no_limit)
{
	bare("{\"maxConcurrentTasksPerOwner\":null}");
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
	for (int i = 0; i < 30; i++)
		CHECK_INT(start_kind("bash"), 0);
}

TEST(d9_the_limit_is_looked_at_last)
{
	bare("{\"maxConcurrentTasksPerOwner\":1}");
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
	(void)start(core.alice, FINAL);
	CHECK_INT(start_with_limit("0"), ERRAND_EREFUSED);
	CHECK(strstr(core.message, "outputLimitBytes"));
	CHECK_INT(errand_agent_register(core.host, core.alice, 0, NULL), 0);
	CHECK_INT(start_kind("bash"), ERRAND_EREFUSED);
	CHECK(strstr(core.message, "registered agent instance"));
}

TEST(a_spec_without_hooks_is_a_mistake_of_the_program)
{
	struct errand_task_spec s;

	fresh();
	s = spec(core.alice, FINAL);
	s.producer.cancel = NULL;
	CHECK_INT(try_start(&s), ERRAND_EARG);
	s = spec(core.alice, FINAL);
	s.size = 8;
	CHECK_INT(try_start(&s), ERRAND_EARG);
}

TEST(a_label_over_its_maximum_is_refused)
{
	struct errand_task_spec s;
	char *big = calloc(1, MAX_LABEL + 2);

	fresh();
	memset(big, 'x', MAX_LABEL + 1);
	s = spec(core.alice, FINAL);
	s.label = str(big);
	CHECK_INT(try_start(&s), ERRAND_ELIMIT);
	CHECK_STR(core.message, "task label is over 1048576 bytes");
	free(big);
}

TEST(an_ill_formed_label_is_replaced)
{
	struct work *w;

	fresh();
	w = start_labelled(core.alice, "bash", "a\xff");
	CHECK_STR(member(snapshot(w, core.alice), "label"), "a\xef\xbf\xbd");
}

TEST(a_surface_alone_opens_the_gate)
{
	errand_reg surface = 0;

	fresh();
	CHECK_INT(errand_unregister(core.host, core.mount), 0);
	CHECK_INT(errand_surface(core.host, 0, "mine", &surface, NULL), 0);
	CHECK_INT(start_kind("bash"), 0);
	CHECK_INT(errand_unregister(core.host, surface), 0);
	CHECK_INT(start_kind("bash"), ERRAND_EREFUSED);
}

TEST(surfaces_of_one_name_are_two)
{
	errand_reg a = 0, b = 0;

	fresh();
	CHECK_INT(errand_unregister(core.host, core.mount), 0);
	CHECK_INT(errand_surface(core.host, 0, "mine", &a, NULL), 0);
	CHECK_INT(errand_surface(core.host, 0, "mine", &b, NULL), 0);
	CHECK_INT(errand_unregister(core.host, a), 0);
	CHECK_INT(errand_unregister(core.host, a), ERRAND_EGONE);
	CHECK_INT(start_kind("bash"), 0);
}

TEST(a_surface_needs_a_name_and_a_scope)
{
	fresh();
	CHECK_INT(errand_surface(core.host, 0, "", &core.mount, NULL), ERRAND_EARG);
	CHECK_INT(errand_surface(core.host, 7, "x", &core.mount, NULL), ERRAND_EGONE);
}

static errand_reg observer;

static int start_and_blame(void *ud, errand_host *h, errand_task t, errand_error *e)
{
	(void)ud;
	CHECK_INT(errand_event_failed(h, observer, t, e), ERRAND_EGONE);
	return 0;
}

TEST(what_is_about_to_start_has_no_events_yet)
{
	struct errand_task_spec s;

	fresh();
	observer = listen(ERRAND_ON_DONE, "done");
	s = spec(core.alice, FINAL);
	s.producer.start = start_and_blame;
	CHECK_INT(try_start(&s), 0);
}
