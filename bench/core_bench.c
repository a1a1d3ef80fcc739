/* SPDX-License-Identifier: MIT */
/*
 * core_bench.c - what the core alone costs: one thread, no I/O, CPU time.
 *
 * core_bench [TASKS]: TASKS (200000) tasks are started, settled and their notices claimed,
 * with 10,000 and with 100,000 others alive; a settlement alone, by what else lives and by its
 * own waiters; an owner's list and notices, by the tasks of others; calls go through the whole
 * pipeline; fit() cuts 10 kB; what 50 TASKS leave resident, and what a settled record costs. One
 * line each.
 */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "errand.h"

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static errand_str str(const char *s)
{
	return (errand_str){s, ERRAND_NUL};
}

static void must(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "core_bench: code %d\n", rc);
		exit(1);
	}
}

static int work_start(void *ud, errand_host *h, errand_task t, errand_error *e)
{
	(void)ud;
	(void)h;
	(void)t;
	(void)e;
	return 0;
}

static int work_cancel(void *ud, errand_host *h, errand_task t, const char *reason,
		       size_t len, errand_error *e)
{
	(void)ud;
	(void)h;
	(void)t;
	(void)reason;
	(void)len;
	(void)e;
	return 0;
}

static int on_result(void *ud, errand_host *h, errand_call c, errand_lease l,
		     const char *result_json, size_t len)
{
	(void)ud;
	(void)h;
	(void)c;
	(void)l;
	(void)result_json;
	(void)len;
	return ERRAND_DELIVERED;
}

static errand_task start(errand_host *h, errand_agent owner, errand_text **ret_id)
{
	struct errand_task_spec s = {.size = sizeof(s),
				     .kind = str("bash"),
				     .label = str("make -j4 all"),
				     .owner = owner,
				     .producer = {.size = sizeof(s.producer),
						  .start = work_start,
						  .cancel = work_cancel}};
	errand_task t = 0;

	must(errand_task_start(h, &s, &t, ret_id, NULL));
	return t;
}

static void run(errand_host *h)
{
	while (errand_run(h, 1000, 1000, 0) > 0)
		;
}

static errand_agent agent(errand_host *h, const char *session)
{
	struct errand_agent_options a = {.size = sizeof(a), .session = str(session)};
	errand_agent ret = 0;

	must(errand_agent_new(h, &a, &ret, NULL));
	return ret;
}

static errand_host *host_with(const char *config, int live, errand_agent *ret_agent)
{
	struct errand_host_options o = {
		.size = sizeof(o), .abi = ERRAND_ABI, .config_json = str(config)};
	errand_host *h = NULL;
	errand_agent other;
	errand_reg r;

	must(errand_host_new(&o, &h, NULL));
	run(h);
	must(errand_mount(h, 0, "{}", 2, &r, NULL));
	other = agent(h, "other");
	*ret_agent = agent(h, "a");
	for (int i = 0; i < live; i++)
		(void)start(h, other, NULL);
	run(h);
	return h;
}

static errand_host *host(int live, errand_agent *ret_agent)
{
	return host_with("{\"maxConcurrentTasksPerOwner\":null}", live, ret_agent);
}

/* Start, settle, claim the notice, forget. */
static void do_tasks(errand_host *h, errand_agent a, long count)
{
	for (long i = 0; i < count; i++) {
		errand_task t = start(h, a, NULL);
		errand_text *json = NULL;
		errand_lease l = 0;

		must(errand_settle(h, t, ERRAND_COMPLETED, "exit code: 0", ERRAND_NUL, NULL,
				   0));
		run(h);
		must(errand_claim(h, a, ERRAND_CLAIM_NOTICES, 0, &l, &json, NULL));
		errand_text_free(json);
		must(errand_lease_commit(h, l));
	}
}

static void bench_tasks(int live, int count)
{
	errand_agent a;
	errand_host *h = host(live, &a);
	double t0 = now();

	do_tasks(h, a, count);
	printf("start+settle+claim, %6d live: %8.0f tasks/s\n", live, count / (now() - t0));
	errand_host_free(h);
}

/* ---- what a settlement, a list and a claim depend on ---- */

static void on_waited(void *ud, errand_host *h, errand_lease l, const char *snapshot_json,
		      size_t len, const errand_error *e)
{
	(void)ud;
	(void)snapshot_json;
	(void)len;
	if (e)
		must(ERRAND_ECALLBACK);
	must(errand_lease_commit(h, l));
}

static errand_task start_awaited(errand_host *h, errand_agent owner, int waiters)
{
	errand_text *id = NULL;
	errand_task t = start(h, owner, &id);

	for (int i = 0; i < waiters; i++)
		must(errand_wait(h, errand_text_data(id, NULL), ERRAND_NUL, owner, "600000",
				 6, 0, on_waited, NULL, NULL, NULL));
	errand_text_free(id);
	return t;
}

/* One at a time, each with so many @waiters, while @live others go on that one waits for each. */
static void bench_settle(int live, int waiters)
{
	enum {
		COUNT = 2000
	};
	static errand_task tasks[COUNT];
	errand_agent a, b;
	errand_host *h = host(0, &a);
	double t0;

	b = agent(h, "b");
	for (int i = 0; i < live; i++)
		(void)start_awaited(h, b, 1);
	for (int i = 0; i < COUNT; i++)
		tasks[i] = start_awaited(h, a, waiters);
	run(h);
	t0 = now();
	for (int i = 0; i < COUNT; i++) {
		must(errand_settle(h, tasks[i], ERRAND_COMPLETED, "exit code: 0",
				   ERRAND_NUL, NULL, 0));
		run(h);
	}
	printf("settle, %6d live, %3d waiters:  %8.2f us\n", live, waiters,
	       (now() - t0) / COUNT * 1e6);
	errand_host_free(h);
}

static double time_of_list(errand_host *h, errand_agent a, int count)
{
	double t0 = now();

	for (int i = 0; i < count; i++) {
		errand_text *json = NULL;

		must(errand_list(h, a, &json, NULL));
		errand_text_free(json);
	}
	return (now() - t0) / count * 1e6;
}

/* All are claimed and given back: what a reply does that gets lost. */
static double time_of_claim(errand_host *h, errand_agent a, int count)
{
	double t0 = now();

	for (int i = 0; i < count; i++) {
		errand_text *json = NULL;
		errand_lease l = 0;

		must(errand_claim(h, a, ERRAND_CLAIM_NOTICES, 0, &l, &json, NULL));
		errand_text_free(json);
		must(errand_lease_return(h, l));
	}
	return (now() - t0) / count * 1e6;
}

/* Ten tasks of one owner's have ended, ten live; @others are another's. */
static void bench_owner(int others)
{
	errand_agent a;
	errand_host *h = host(others, &a);

	for (int i = 0; i < 10; i++) {
		must(errand_settle(h, start(h, a, NULL), ERRAND_COMPLETED, "exit code: 0",
				   ERRAND_NUL, NULL, 0));
		(void)start(h, a, NULL);
	}
	run(h);
	printf("of 20 tasks, %6d of others:  list %8.2f us, notices %8.2f us\n", others,
	       time_of_list(h, a, 2000), time_of_claim(h, a, 2000));
	errand_host_free(h);
}

/* ---- calls ---- */

static void say_next(void *ud, errand_host *h, errand_frame f,
		     const struct errand_frame_view *v)
{
	(void)ud;
	(void)v;
	must(errand_next(h, f));
}

static void pass_on(void *ud, errand_host *h, errand_frame f,
		    const struct errand_frame_view *v)
{
	(void)ud;
	must(errand_answer(h, f, v->answer_json.ptr, v->answer_json.len));
}

/* Two before, a guard, two around of which one looks at the answer, one after. */
static void add_six_listeners(errand_host *h)
{
	static const struct errand_listener six[] = {
		{.stage = ERRAND_STAGE_PRE, .enter = say_next},
		{.stage = ERRAND_STAGE_PRE, .enter = say_next},
		{.stage = ERRAND_STAGE_GUARD, .enter = say_next},
		{.stage = ERRAND_STAGE_AROUND, .enter = say_next},
		{.stage = ERRAND_STAGE_AROUND, .enter = say_next, .back = pass_on},
		{.stage = ERRAND_STAGE_POST, .enter = say_next},
	};

	for (size_t i = 0; i < sizeof(six) / sizeof(six[0]); i++) {
		struct errand_listener l = six[i];

		l.size = sizeof(l);
		must(errand_listen(h, 0, &l, NULL, NULL));
	}
}

static void bench_calls(int count, int has_listeners)
{
	errand_agent a;
	errand_host *h = host(100, &a);
	struct errand_call_options o = {.size = sizeof(o),
					.agent = a,
					.tool = str("task_output"),
					.args = str("{\"task_id\":\"bash-101\"}"),
					.on_result = on_result};
	double t0;

	if (has_listeners)
		add_six_listeners(h);
	(void)start(h, a, NULL);
	t0 = now();
	for (int i = 0; i < count; i++) {
		must(errand_call_new(h, &o, NULL, NULL));
		run(h);
	}
	printf("one task_output, %s: %8.2f us\n",
	       has_listeners ? "six listeners " : "whole pipeline",
	       (now() - t0) / count * 1e6);
	errand_host_free(h);
}

static void bench_fit(int count)
{
	char text[10000];
	double t0 = now();

	memset(text, 'x', sizeof(text));
	for (int i = 0; i < count; i++) {
		errand_text *t = NULL;

		must(errand_fit(text, sizeof(text), "\n[status: running]",
				"[output truncated]", 9000, &t));
		errand_text_free(t);
	}
	printf("fit() on 10 kB:                  %8.2f GB/s\n",
	       (double)sizeof(text) * count / (now() - t0) / 1e9);
}

static long resident_kib(void)
{
	FILE *f = fopen("/proc/self/statm", "re");
	long pages = 0;

	if (!f || fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f)
		(void)fclose(f);
	return pages * 4;
}

/* Of an owner whose newest 100 ended tasks are kept. */
static void bench_retention(long count)
{
	const long first = count < 100000 ? count / 2 : 100000;
	errand_agent a;
	errand_host *h = host_with("{\"maxFinishedTasksPerOwner\":100}", 0, &a);
	long before;

	do_tasks(h, a, first);
	before = resident_kib();
	do_tasks(h, a, count - first);
	printf("resident after %ld tasks: %ld KiB, after %ld: %ld KiB\n", first, before,
	       count, resident_kib());
	errand_host_free(h);
}

/* As the C library counts it: with its own overhead. */
static void bench_records(long count)
{
	errand_agent a;
	errand_host *h = host(0, &a);
	size_t before = mallinfo2().uordblks;

	do_tasks(h, a, count);
	printf("one settled record:              %8.0f bytes\n",
	       (double)(mallinfo2().uordblks - before) / (double)count);
	errand_host_free(h);
}

int main(int argc, char **argv)
{
	int count = argc > 1 ? (int)strtol(argv[1], NULL, 10) : 200000;

	bench_tasks(10000, count);
	bench_tasks(100000, count);
	for (int live = 1000; live <= 100000; live *= 10)
		bench_settle(live, 1);
	for (int waiters = 0; waiters <= 100; waiters = waiters ? waiters * 10 : 1)
		bench_settle(10000, waiters);
	for (int others = 10; others <= 100000; others *= 100)
		bench_owner(others);
	bench_calls(count / 4, 0);
	bench_calls(count / 4, 1);
	bench_fit(count);
	bench_retention(50L * count);
	bench_records(count / 2);
	return 0;
}
