/* SPDX-License-Identifier: MIT */
/* Tests of src/core/host.c, object.c, event.c: the loop, phases, listeners, memory. */
#include "core.h"

static int new_host(const char *config, errand_host **ret)
{
	struct errand_host_options o = {
		.size = sizeof(o), .abi = ERRAND_ABI, .config_json = str(config)};
	errand_error *e = NULL;
	int rc = errand_host_new(&o, ret, &e);

	(void)message(e);
	return rc;
}

static void log_destroy(void *ud)
{
	(void)ud;
	logf_("destroyed;");
}

/* ---- making one ---- */

TEST(a_host_wants_options_of_its_own_version)
{
	struct errand_host_options o = {.size = sizeof(o), .abi = ERRAND_ABI + 1};
	errand_host *h = NULL;

	CHECK_INT(errand_host_new(&o, &h, NULL), ERRAND_EARG);
	o.abi = ERRAND_ABI;
	o.size = 4;
	CHECK_INT(errand_host_new(&o, &h, NULL), ERRAND_EARG);
	CHECK_INT(errand_host_new(NULL, &h, NULL), ERRAND_EARG);
	o.size = sizeof(o);
	CHECK_INT(errand_host_new(&o, NULL, NULL), ERRAND_EARG);
	CHECK(h == NULL);
}

static void *only_alloc(void *ud, size_t n)
{
	(void)ud;
	return malloc(n);
}

TEST(an_allocator_is_whole_or_absent)
{
	struct errand_host_options o = {
		.size = sizeof(o), .abi = ERRAND_ABI, .alloc = only_alloc};
	errand_host *h = NULL;

	CHECK_INT(errand_host_new(&o, &h, NULL), ERRAND_EARG);
}

TEST(a_host_destroys_its_ud_once_also_when_it_was_refused)
{
	struct errand_host_options o = {.size = sizeof(o),
					.abi = ERRAND_ABI,
					.config_json = str("["),
					.destroy = log_destroy};
	errand_host *h = NULL;

	(void)logged();
	CHECK_INT(errand_host_new(&o, &h, NULL), ERRAND_EJSON);
	CHECK_STR(logged(), "destroyed;");
	o.config_json.ptr = NULL;
	CHECK_INT(errand_host_new(&o, &h, NULL), 0);
	CHECK_STR(logged(), "");
	errand_host_free(h);
	CHECK_STR(logged(), "destroyed;");
}

TEST(d9_a_configured_limit_is_a_whole_number)
{
	static const char *const bad[] = {"0", "-1", "1.5", "\"10\"", "1e999", "1e300"};
	char config[80], want[160];
	errand_host *h = NULL;

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		(void)snprintf(config, sizeof(config),
			       "{\"maxConcurrentTasksPerOwner\":%s}", bad[i]);
		CHECK_INT(new_host(config, &h), ERRAND_EREFUSED);
		(void)snprintf(
			want, sizeof(want),
			"invalid config:\n  - $.maxConcurrentTasksPerOwner expected integer "
			">= 1 but got %s (at maxConcurrentTasksPerOwner)",
			i == 5 ? "1e+300" : bad[i]);
		CHECK_STR(core.message, want);
	}
}

TEST(no_host_is_no_crash)
{
	errand_host_free(NULL);
	CHECK_INT(errand_run(NULL, 0, 0, 0), ERRAND_EARG);
	CHECK(errand_next_deadline(NULL) == ERRAND_NEVER);
	CHECK_INT(errand_settle(NULL, 1, ERRAND_KILLED, NULL, 0, NULL, 0), ERRAND_EARG);
	CHECK_INT(errand_abort(NULL, 1), ERRAND_EARG);
	CHECK_INT(errand_aborted(NULL, 1), ERRAND_EARG);
	CHECK_INT(errand_unregister(NULL, 1), ERRAND_EARG);
	CHECK_INT(errand_lease_commit(NULL, 1), ERRAND_EARG);
	CHECK_INT(errand_list(NULL, 0, NULL, NULL), ERRAND_EARG);
	CHECK_INT(errand_prompt(NULL, 0, NULL, 0, NULL, NULL), ERRAND_EARG);
	CHECK_INT(errand_tools(NULL, 0, 0, NULL, NULL), ERRAND_EARG);
	CHECK_INT(errand_get(NULL, "x", 1, 0, NULL, NULL), ERRAND_EARG);
	CHECK_INT(errand_inbox(NULL, 0, NULL, NULL), ERRAND_EARG);
	CHECK_INT(errand_call_new(NULL, NULL, NULL, NULL), ERRAND_EARG);
	CHECK_INT(errand_task_start(NULL, NULL, NULL, NULL, NULL), ERRAND_EARG);
	CHECK_INT(errand_tool_add(NULL, 0, NULL, NULL, NULL), ERRAND_EARG);
}

/* ---- the loop ---- */

TEST(a_run_does_no_more_than_its_budget)
{
	fresh();
	for (int i = 0; i < 5; i++)
		settle(start(0, FINAL), ERRAND_COMPLETED, NULL, NULL);
	CHECK_INT(errand_run(core.host, 0, WALL, 3), 1);
	CHECK_STR(member(snapshot(&core.work[2], 0), "status"), "completed");
	CHECK_STR(member(snapshot(&core.work[3], 0), "status"), "running");
	run();
	CHECK_STR(member(snapshot(&core.work[4], 0), "status"), "completed");
}

TEST(the_monotonic_clock_never_goes_back)
{
	struct work *w;

	fresh();
	pass(1000);
	CHECK_INT(errand_run(core.host, 10, WALL, 0), 0);
	w = start(core.alice, FINAL);
	run();
	(void)wait_for_output(w, 5);
	CHECK_INT(errand_next_deadline(core.host), 1005);
}

TEST(deadlines_are_not_starved_by_a_long_queue)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	(void)wait_for_output(w, 5);
	for (int i = 0; i < 5; i++)
		settle(start(0, FINAL), ERRAND_COMPLETED, NULL, NULL);
	CHECK_INT(errand_run(core.host, 5, WALL, 1), 1);
	core.now = 5;
	run();
	CHECK_STR(result_text(), "(no new output)\n[status: running]");
}

TEST(a_host_that_is_idle_sleeps_for_ever)
{
	fresh();
	run();
	CHECK(errand_next_deadline(core.host) == ERRAND_NEVER);
	CHECK_INT(errand_run(core.host, 0, WALL, 0), 0);
}

/* ---- what may be called from where ---- */

static int start_in_start(void *ud, errand_host *h, errand_task t, errand_error *e)
{
	struct errand_task_spec s = spec(0, FINAL);
	errand_text *text = NULL;

	(void)ud;
	(void)t;
	(void)e;
	CHECK_INT(errand_task_start(h, &s, NULL, NULL, NULL), ERRAND_EREENTER);
	CHECK_INT(errand_kill(h, "bash-1", 6, 0, NULL, 0, NULL, NULL), ERRAND_EREENTER);
	CHECK_INT(errand_unregister(h, core.mount), ERRAND_EREENTER);
	CHECK_INT(errand_run(h, 0, 0, 0), ERRAND_EREENTER);
	errand_host_free(h);
	CHECK_INT(errand_list(h, 0, &text, NULL), 0);
	errand_text_free(text);
	return 0;
}

TEST(a_starter_may_ask_and_settle_but_not_change)
{
	struct errand_task_spec s;

	fresh();
	s = spec(core.alice, FINAL);
	s.producer.start = start_in_start;
	CHECK_INT(try_start(&s), 0);
}

static int change_in_read(void *ud, errand_task t, uint64_t from, errand_sink *out,
			  uint64_t *ret_next, errand_error *e)
{
	(void)ud;
	(void)from;
	(void)out;
	(void)ret_next;
	(void)e;
	CHECK_INT(errand_settle(core.host, t, ERRAND_KILLED, NULL, 0, NULL, 0),
		  ERRAND_EREENTER);
	CHECK_INT(errand_lease_return(core.host, 1), ERRAND_EREENTER);
	CHECK_INT(errand_answer(core.host, 1, "", 0), ERRAND_EREENTER);
	CHECK_INT(errand_signal_new(core.host, &(errand_signal){0}), ERRAND_EREENTER);
	logf_("pure;");
	return 0;
}

TEST(a_pure_callback_may_only_ask)
{
	struct errand_task_spec s;

	fresh();
	s = spec(core.alice, STREAM);
	s.producer.read = change_in_read;
	CHECK_INT(try_start(&s), 0);
	(void)logged();
	(void)output_of(&core.work[0]);
	CHECK_STR(logged(), "pure;");
}

static int change_on_done(void *ud, errand_host *h, errand_reg self, errand_agent owner,
			  const char *json, size_t len, errand_error *e)
{
	(void)ud;
	(void)json;
	(void)len;
	(void)e;
	CHECK(owner == core.alice);
	CHECK_INT(errand_run(h, 0, 0, 0), ERRAND_EREENTER);
	CHECK_INT(errand_unregister(h, self), 0);
	(void)start(core.alice, FINAL);
	(void)start(core.alice, FINAL);
	CHECK_INT(errand_kill(h, "bash-2", 6, core.alice, NULL, 0, NULL, NULL), 0);
	CHECK_INT(errand_agent_dispose(h, core.bob, NULL, NULL, NULL, NULL), 0);
	return 0;
}

TEST(a_callback_of_the_run_may_change_everything)
{
	errand_reg r = 0;

	fresh();
	CHECK_INT(errand_on(core.host, 0, ERRAND_ON_DONE, change_on_done, NULL, log_destroy,
			    &r, NULL),
		  0);
	end(start(core.alice, FINAL));
	CHECK_STR(logged(), "cancel;destroyed;");
	CHECK_STR(status_of(&core.work[1]), "stopping");
	CHECK_STR(status_of(&core.work[2]), "running");
}

/* ---- listeners ---- */

TEST(listeners_are_called_in_order_of_registration)
{
	fresh();
	(void)listen(ERRAND_ON_DONE, "a");
	(void)listen(ERRAND_ON_DONE, "b");
	end(start(core.alice, FINAL));
	CHECK_STR(logged(), "a(bash-1 completed);b(bash-1 completed);");
}

TEST(equal_listeners_are_two)
{
	errand_reg first;

	fresh();
	first = listen(ERRAND_ON_DONE, "a");
	(void)listen(ERRAND_ON_DONE, "a");
	CHECK_INT(errand_unregister(core.host, first), 0);
	CHECK_INT(errand_unregister(core.host, first), ERRAND_EGONE);
	end(start(core.alice, FINAL));
	CHECK_STR(logged(), "a(bash-1 completed);");
}

static int throw_it(void *ud, errand_host *h, errand_reg self, errand_agent owner,
		    const char *json, size_t len, errand_error *e)
{
	(void)ud;
	(void)h;
	(void)self;
	(void)owner;
	(void)json;
	(void)len;
	errand_error_set(e, NULL, NULL, "listener boom", ERRAND_NUL);
	return ERRAND_ECALLBACK;
}

TEST(a_listener_that_throws_is_warned_about_and_stops_nobody)
{
	errand_reg r = 0;

	fresh();
	CHECK_INT(errand_on(core.host, 0, ERRAND_ON_DONE, throw_it, NULL, NULL, &r, NULL),
		  0);
	(void)listen(ERRAND_ON_DONE, "b");
	end(start(core.alice, FINAL));
	CHECK_STR(logged(),
		  "warn(tasks: onTaskDone listener threw for bash-1: Error: listener "
		  "boom);b(bash-1 completed);");
	CHECK_INT(notices(core.alice), 1);
}

TEST(d10_an_observer_that_throws_is_warned_about)
{
	errand_reg r = 0;

	fresh();
	CHECK_INT(
		errand_on(core.host, 0, ERRAND_ON_CHANGED, throw_it, NULL, NULL, &r, NULL),
		0);
	(void)start(core.alice, FINAL);
	run();
	CHECK_STR(logged(),
		  "warn(tasks: onTasksChanged listener threw: Error: listener boom);");
}

static errand_reg victim;

static int remove_victim(void *ud, errand_host *h, errand_reg self, errand_agent owner,
			 const char *json, size_t len, errand_error *e)
{
	(void)ud;
	(void)self;
	(void)owner;
	(void)json;
	(void)len;
	(void)e;
	(void)errand_unregister(h, victim);
	(void)listen(ERRAND_ON_DONE, "late");
	return 0;
}

TEST(a_removed_listener_is_skipped_and_an_added_one_waits)
{
	errand_reg r = 0;

	fresh();
	CHECK_INT(errand_on(core.host, 0, ERRAND_ON_DONE, remove_victim, NULL, NULL, &r,
			    NULL),
		  0);
	victim = listen(ERRAND_ON_DONE, "victim");
	end(start(core.alice, FINAL));
	CHECK_STR(logged(), "");
	CHECK_INT(errand_unregister(core.host, r), 0);
	end(start(core.alice, FINAL));
	CHECK_STR(logged(), "late(bash-2 completed);");
}

TEST(a_listener_hears_nothing_of_what_was_before_it)
{
	struct work *w;

	fresh();
	(void)listen(ERRAND_ON_CHANGED, "changed");
	w = start(core.alice, FINAL);
	settle(w, ERRAND_COMPLETED, NULL, NULL);
	(void)listen(ERRAND_ON_CHANGED, "changed");
	CHECK_INT(errand_run(core.host, 0, WALL, 1), 1);
	CHECK_STR(logged(), "changed;");
	run();
	CHECK_STR(logged(), "changed;changed;");
}

TEST(an_event_there_is_not_cannot_be_heard)
{
	errand_reg r = 0;

	fresh();
	CHECK_INT(errand_on(core.host, 0, 0, on_event, NULL, NULL, &r, NULL), ERRAND_EARG);
	CHECK_INT(errand_on(core.host, 0, 5, on_event, NULL, NULL, &r, NULL), ERRAND_EARG);
	CHECK_INT(errand_on(core.host, 0, 1, NULL, NULL, log_destroy, &r, NULL),
		  ERRAND_EARG);
	CHECK_STR(logged(), "destroyed;");
	CHECK_INT(errand_on(core.host, 9, 1, on_event, NULL, NULL, &r, NULL), ERRAND_EGONE);
}

TEST(a_part_of_a_mount_cannot_be_removed_by_a_guess)
{
	errand_reg last;

	fresh();
	last = listen(ERRAND_ON_DONE, "a");
	for (errand_reg r = 0; r < last; r++)
		if (r != core.mount)
			CHECK_INT(errand_unregister(core.host, r), ERRAND_EGONE);
	CHECK_STR(call(core.alice, "task_list", "{}"), "(no background tasks)");
}

TEST(ids_of_one_type_are_no_ids_of_another)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(errand_abort(core.host, w->task), ERRAND_EGONE);
	CHECK_INT(errand_unregister(core.host, core.alice), ERRAND_EGONE);
	CHECK_INT(errand_settle(core.host, core.alice, ERRAND_KILLED, NULL, 0, NULL, 0),
		  ERRAND_EGONE);
	CHECK_INT(errand_call_abort(core.host, core.mount), ERRAND_EGONE);
}

/* ---- memory ---- */

static struct {
	long live, count, fail_at; /* fail_at 0: never */
	size_t big;                /* only what is at least so large fails */
} heap;

static bool fails(size_t n)
{
	return ++heap.count == heap.fail_at || (heap.big && n >= heap.big);
}

static void *heap_alloc(void *ud, size_t n)
{
	(void)ud;
	if (fails(n))
		return NULL;
	heap.live++;
	return malloc(n);
}

static void *heap_resize(void *ud, void *p, size_t n)
{
	(void)ud;
	if (fails(n))
		return NULL;
	heap.live += p == NULL;
	return realloc(p, n);
}

static void heap_free(void *ud, void *p)
{
	(void)ud;
	heap.live -= p != NULL;
	free(p);
}

static void fresh_heap(void)
{
	struct errand_host_options o = {.size = sizeof(o),
					.abi = ERRAND_ABI,
					.alloc = heap_alloc,
					.resize = heap_resize,
					.dealloc = heap_free};

	fresh();
	errand_host_free(core.host);
	memset(&heap, 0, sizeof(heap));
	CHECK_INT(errand_host_new(&o, &core.host, NULL), 0);
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
	core.bob = agent("bob");
}

TEST(a_host_gives_back_all_it_took)
{
	struct work *w;

	fresh_heap();
	(void)listen(ERRAND_ON_DONE, "done");
	w = start_limited(core.alice, STREAM, "64");
	emit(w, "x");
	(void)wait_for_output(w, 1000);
	(void)output_of(w);
	end(w);
	end(start(core.alice, FINAL));
	(void)start(core.bob, FINAL);
	(void)call(core.alice, "task_list", "{}");
	core.fate = ERRAND_HELD;
	(void)output_of(w);
	(void)call_begin(core.alice, "task_list", "{}");
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_INT(heap.live, 0);
}

TEST(ten_thousand_tasks_leave_no_growth)
{
	long before = 0;

	fresh_heap();
	for (int i = 0; i < 10000; i++) {
		errand_lease l = 0;
		errand_text *t = NULL;
		struct work *w;

		core.works = 0;
		w = start(core.alice, FINAL);
		end(w);
		(void)output_of(w);
		CHECK_INT(errand_claim(core.host, core.alice, ERRAND_CLAIM_NOTICES, 0, &l,
				       &t, NULL),
			  0);
		errand_text_free(t);
		CHECK_INT(errand_lease_commit(core.host, l), 0);
		CHECK_INT(errand_task_drop(core.host, w->task, NULL), 0);
		run();
		if (i == 10)
			before = heap.live;
	}
	CHECK_INT(heap.live, before);
}

TEST(a_label_that_cannot_be_copied_changes_nothing)
{
	char *big = calloc(1, 100001);
	struct errand_task_spec s;

	fresh_heap();
	memset(big, 'x', 100000);
	s = spec(core.alice, FINAL);
	s.label = str(big);
	heap.big = 50000;
	CHECK_INT(try_start(&s), ERRAND_ENOMEM);
	CHECK_STR(logged(), "");
	heap.big = 0;
	CHECK_STR(start(core.alice, FINAL)->id, "bash-1");
	free(big);
}

TEST(arguments_that_cannot_be_copied_make_no_call)
{
	struct errand_call_options o = {
		.size = sizeof(o), .tool = str("task_list"), .on_result = on_result};
	char *big = calloc(1, 100001);

	fresh_heap();
	memset(big, ' ', 100000);
	o.args = str(big);
	heap.big = 50000;
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), ERRAND_ENOMEM);
	heap.big = 0;
	run();
	CHECK_INT(core.results, 0);
	free(big);
}

TEST(an_end_that_cannot_be_copied_may_be_tried_again)
{
	char *big = calloc(1, 100001);
	struct work *w;

	fresh_heap();
	memset(big, 'x', 100000);
	w = start(core.alice, FINAL);
	heap.big = 50000;
	CHECK_INT(errand_settle(core.host, w->task, ERRAND_COMPLETED, NULL, 0, big, 100000),
		  ERRAND_ENOMEM);
	heap.big = 0;
	CHECK_INT(errand_settle(core.host, w->task, ERRAND_COMPLETED, NULL, 0, big, 100000),
		  0);
	free(big);
}

TEST(a_final_output_that_cannot_be_copied_is_still_there)
{
	errand_lease l = 0;
	errand_text *t = NULL;
	char *big = calloc(1, 100001);
	struct work *w;

	fresh_heap();
	memset(big, 'x', 100000);
	w = start(core.alice, FINAL);
	settle(w, ERRAND_COMPLETED, NULL, big);
	run();
	heap.big = 50000;
	CHECK_INT(errand_read(core.host, w->id, ERRAND_NUL, core.alice, &l, &t, NULL),
		  ERRAND_ENOMEM);
	CHECK(!is_reported(w));
	heap.big = 0;
	CHECK_INT(errand_read(core.host, w->id, ERRAND_NUL, core.alice, &l, &t, NULL), 0);
	errand_text_free(t);
	free(big);
}
