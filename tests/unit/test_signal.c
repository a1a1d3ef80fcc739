/* SPDX-License-Identifier: MIT */
/* Abort signals, and who is told of them. */
#include "core.h"

static int destroyed;

static void count_destroy(void *ud)
{
	(void)ud;
	destroyed++;
}

static void say(void *ud, errand_host *h)
{
	(void)h;
	logf_("told %s;", (const char *)ud);
}

#define NAME(text) ((void *)(uintptr_t)(text))

static errand_signal signal_new(void)
{
	errand_signal s = 0;

	CHECK_INT(errand_signal_new(core.host, &s), 0);
	return s;
}

static errand_reg watch(errand_signal s, const char *name)
{
	errand_reg r = 0;

	destroyed = 0;
	CHECK_INT(errand_on_abort(core.host, s, say, NAME(name), count_destroy, &r), 0);
	CHECK(r != 0);
	return r;
}

TEST(a_watcher_is_told_in_the_run_and_once)
{
	errand_signal s;
	errand_reg r;

	fresh();
	s = signal_new();
	r = watch(s, "a");
	run();
	CHECK_STR(logged(), "");
	CHECK_INT(errand_abort(core.host, s), 0);
	CHECK_STR(logged(), "");
	CHECK_INT(errand_next_deadline(core.host), INT64_MIN);
	run();
	CHECK_STR(logged(), "told a;");
	CHECK_INT(destroyed, 1);
	CHECK_INT(errand_abort(core.host, s), 0);
	run();
	CHECK_STR(logged(), "");
	CHECK_INT(errand_unregister(core.host, r), ERRAND_EGONE);
	CHECK_INT(destroyed, 1);
}

TEST(watchers_are_told_in_order_of_registration)
{
	errand_signal s;

	fresh();
	s = signal_new();
	watch(s, "a");
	watch(s, "b");
	CHECK_INT(errand_on_abort(core.host, s, say, NAME("c"), NULL, NULL), 0);
	CHECK_INT(errand_abort(core.host, s), 0);
	run();
	CHECK_STR(logged(), "told a;told b;told c;");
}

TEST(a_signal_that_is_raised_already_is_told_of_in_the_next_run)
{
	errand_signal s;

	fresh();
	s = signal_new();
	CHECK_INT(errand_abort(core.host, s), 0);
	CHECK_INT(errand_aborted(core.host, s), 1);
	run();
	watch(s, "late");
	CHECK_STR(logged(), "");
	run();
	CHECK_STR(logged(), "told late;");
	CHECK_INT(destroyed, 1);
}

TEST(who_is_removed_is_not_told_even_if_it_was_queued)
{
	errand_signal s;
	errand_reg r;

	fresh();
	s = signal_new();
	r = watch(s, "a");
	CHECK_INT(errand_abort(core.host, s), 0);
	CHECK_INT(errand_unregister(core.host, r), 0);
	CHECK_INT(destroyed, 1);
	run();
	CHECK_STR(logged(), "");
}

TEST(watchers_go_with_the_signal)
{
	errand_signal s;
	errand_reg r;

	fresh();
	s = signal_new();
	r = watch(s, "a");
	CHECK_INT(errand_abort(core.host, s), 0);
	CHECK_INT(errand_signal_free(core.host, s), 0);
	CHECK_INT(destroyed, 1);
	CHECK_INT(errand_unregister(core.host, r), ERRAND_EGONE);
	run();
	CHECK_STR(logged(), "");
	CHECK_INT(errand_on_abort(core.host, s, say, NAME("b"), count_destroy, &r),
		  ERRAND_EGONE);
	CHECK_INT(destroyed, 2);
}

TEST(watchers_go_with_the_host_raised_or_not)
{
	errand_signal s;

	fresh();
	s = signal_new();
	watch(s, "a");
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_INT(destroyed, 1);
	fresh();
	s = signal_new();
	watch(s, "a");
	CHECK_INT(errand_abort(core.host, s), 0);
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_INT(destroyed, 1);
	CHECK_STR(logged(), "");
}

static void free_signal(void *ud, errand_host *h)
{
	const errand_signal *s = ud;

	logf_("free %d;", errand_signal_free(h, *s));
}

TEST(a_watcher_may_free_the_signal)
{
	errand_signal s;

	fresh();
	s = signal_new();
	CHECK_INT(errand_on_abort(core.host, s, free_signal, &s, NULL, NULL), 0);
	watch(s, "b");
	CHECK_INT(errand_abort(core.host, s), 0);
	run();
	CHECK_STR(logged(), "free 0;");
	CHECK_INT(destroyed, 1);
}

TEST(a_watcher_without_a_function_or_a_host_is_a_mistake)
{
	errand_signal s;

	fresh();
	s = signal_new();
	destroyed = 0;
	CHECK_INT(errand_on_abort(core.host, s, NULL, NULL, count_destroy, NULL),
		  ERRAND_EARG);
	CHECK_INT(errand_on_abort(NULL, s, say, NULL, count_destroy, NULL), ERRAND_EARG);
	CHECK_INT(errand_on_abort(core.host, core.alice, say, NULL, count_destroy, NULL),
		  ERRAND_EGONE);
	CHECK_INT(destroyed, 3);
}

/* ---- the signal of a call ---- */

static errand_frame frame;
static errand_signal of_call;

static void body(void *ud, errand_host *h, errand_frame f,
		 const struct errand_frame_view *v)
{
	(void)ud;
	frame = f;
	of_call = v->signal;
	CHECK_INT(errand_on_abort(h, v->signal, say, NAME("body"), count_destroy, NULL), 0);
}

static int on_end(void *ud, errand_host *h, errand_call c, errand_lease l, const char *json,
		  size_t len)
{
	(void)ud, (void)h, (void)c, (void)l, (void)json, (void)len;
	logf_("result;");
	return ERRAND_DELIVERED;
}

static errand_call call_slow(int64_t timeout_ms, errand_signal s)
{
	struct errand_tool t = {
		.size = sizeof(t),
		.name = str("slow"),
		.params_schema = str("{\"type\":\"object\",\"properties\":{}}"),
		.output_schema = str("{\"type\":\"string\"}"),
		.timeout_ms = timeout_ms,
		.exec = body};
	struct errand_call_options o = {
		.size = sizeof(o), .tool = str("slow"), .signal = s, .on_result = on_end};
	errand_call c = 0;
	errand_reg r;

	destroyed = 0;
	CHECK_INT(errand_tool_add(core.host, 0, &t, &r, NULL), 0);
	CHECK_INT(errand_call_new(core.host, &o, &c, NULL), 0);
	run();
	CHECK(frame != 0);
	return c;
}

TEST(a_body_hears_of_the_abort_of_its_call)
{
	errand_call c;

	fresh();
	c = call_slow(0, 0);
	CHECK_INT(errand_call_abort(core.host, c), 0);
	run();
	CHECK_STR(logged(), "told body;");
	CHECK_INT(destroyed, 1);
}

TEST(a_body_hears_of_the_signal_that_its_call_was_made_with)
{
	errand_signal s;

	fresh();
	s = signal_new();
	call_slow(0, s);
	CHECK(of_call != s);
	CHECK_INT(errand_abort(core.host, s), 0);
	run();
	CHECK_STR(logged(), "told body;");
}

TEST(a_body_hears_of_its_tools_timeout)
{
	fresh();
	call_slow(50, 0);
	pass(49);
	CHECK_STR(logged(), "");
	pass(1);
	CHECK_STR(logged(), "told body;");
}

TEST(who_watches_a_call_that_ends_well_is_not_told)
{
	fresh();
	call_slow(0, 0);
	CHECK_INT(errand_answer(core.host, frame, "\"done\"", ERRAND_NUL), 0);
	run();
	CHECK_STR(logged(), "result;");
	CHECK_INT(destroyed, 1);
	CHECK_INT(errand_aborted(core.host, of_call), ERRAND_EGONE);
}

/* ---- calls that a body makes ---- */

#define GENERATIONS 4

static struct {
	errand_frame frames[GENERATIONS];
	errand_signal signals[GENERATIONS];
	size_t count;
} within;

/* Makes the next call, with its own call's signal. */
static void nesting_body(void *ud, errand_host *h, errand_frame f,
			 const struct errand_frame_view *v)
{
	struct errand_call_options o = {.size = sizeof(o),
					.tool = str("nesting"),
					.signal = v->signal,
					.on_result = on_end};

	(void)ud;
	within.frames[within.count] = f;
	within.signals[within.count++] = v->signal;
	if (within.count < GENERATIONS)
		CHECK_INT(errand_call_new(h, &o, NULL, NULL), 0);
}

/* Calls in one another, the outermost made with the signal that is returned. */
static errand_signal nest(void)
{
	struct errand_tool t = {.size = sizeof(t),
				.name = str("nesting"),
				.params_schema = str("{}"),
				.output_schema = str("{}"),
				.exec = nesting_body};
	struct errand_call_options o = {
		.size = sizeof(o), .tool = str("nesting"), .on_result = on_end};
	errand_reg r;

	fresh();
	memset(&within, 0, sizeof(within));
	o.signal = signal_new();
	CHECK_INT(errand_tool_add(core.host, 0, &t, &r, NULL), 0);
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), 0);
	run();
	CHECK_INT(within.count, GENERATIONS);
	return o.signal;
}

TEST(an_abort_reaches_the_calls_of_calls_however_deep)
{
	errand_signal s = nest();

	CHECK_INT(errand_abort(core.host, s), 0);
	for (size_t i = 0; i < GENERATIONS; i++)
		CHECK_INT(errand_aborted(core.host, within.signals[i]), 1);
}

TEST(an_abort_of_a_call_in_the_middle_reaches_those_within_only)
{
	errand_signal s = nest();

	CHECK_INT(errand_abort(core.host, within.signals[1]), 0);
	CHECK_INT(errand_aborted(core.host, s), 0);
	CHECK_INT(errand_aborted(core.host, within.signals[0]), 0);
	for (size_t i = 1; i < GENERATIONS; i++)
		CHECK_INT(errand_aborted(core.host, within.signals[i]), 1);
}

TEST(what_a_call_had_begun_goes_on_without_it_when_it_ends)
{
	errand_signal s = nest();

	CHECK_INT(errand_answer(core.host, within.frames[1], "1", 1), 0);
	run();
	CHECK_STR(logged(), "result;");
	CHECK_INT(errand_abort(core.host, s), 0);
	CHECK_INT(errand_aborted(core.host, within.signals[0]), 1);
	CHECK_INT(errand_aborted(core.host, within.signals[1]), ERRAND_EGONE);
	CHECK_INT(errand_aborted(core.host, within.signals[2]), 0);
}
