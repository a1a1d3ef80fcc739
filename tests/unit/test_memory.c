/* SPDX-License-Identifier: MIT */
/* What a host keeps: nothing of a task that is over and forgotten, little of one that is not. */
#include "core.h"

/* ---- an allocator that counts the bytes that are out ---- */

static long live;

union head {
	size_t n;
	max_align_t align;
};

static void *count_alloc(void *ud, size_t n)
{
	union head *h = malloc(sizeof(*h) + n);

	(void)ud;
	CHECK(h != NULL);
	h->n = n;
	live += (long)n;
	return h + 1;
}

static void count_dealloc(void *ud, void *p)
{
	union head *h = (union head *)p - 1;

	(void)ud;
	live -= (long)h->n;
	free(h);
}

static void *count_resize(void *ud, void *p, size_t n)
{
	union head *h = p ? (union head *)p - 1 : NULL;
	void *q = count_alloc(ud, n);

	if (!h)
		return q;
	memcpy(q, p, h->n < n ? h->n : n);
	count_dealloc(ud, p);
	return q;
}

static void counted(const char *config)
{
	struct errand_host_options o = {.size = sizeof(o),
					.abi = ERRAND_ABI,
					.config_json = str(config),
					.alloc = count_alloc,
					.resize = count_resize,
					.dealloc = count_dealloc};

	bare(NULL);
	errand_host_free(core.host);
	CHECK_INT(errand_host_new(&o, &core.host, NULL), 0);
	run();
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
}

/* Started, ended, its notice delivered. */
static void one_task(void)
{
	struct errand_task_spec s = spec(core.alice, FINAL);
	errand_text *t = NULL;
	errand_lease l = 0;
	errand_task task = 0;

	CHECK_INT(errand_task_start(core.host, &s, &task, NULL, NULL), 0);
	CHECK_INT(errand_settle(core.host, task, ERRAND_COMPLETED, "exit code: 0", 12,
				"out", 3),
		  0);
	core.log[0] = 0;
	run();
	CHECK_INT(
		errand_claim(core.host, core.alice, ERRAND_CLAIM_NOTICES, 0, &l, &t, NULL),
		0);
	errand_text_free(t);
	CHECK_INT(errand_lease_commit(core.host, l), 0);
	run();
}

TEST(d15_what_is_kept_does_not_grow_with_the_tasks_that_were)
{
	const char *wanted = getenv("TASKS");
	long tasks = wanted ? strtol(wanted, NULL, 10) : 300000, first;

	counted("{\"maxFinishedTasksPerOwner\":100}");
	for (long i = 0; i < tasks / 3; i++)
		one_task();
	first = live;
	for (long i = tasks / 3; i < tasks; i++)
		one_task();
	CHECK_INT(live, first);
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_INT(live, 0);
}

TEST(a_settled_record_costs_less_than_a_kibibyte_besides_its_strings)
{
	const long strings = sizeof("sleep 60") + sizeof("exit code: 0") + sizeof("out");
	const int count = 10000;
	long before, each;

	counted("{}");
	before = live;
	for (int i = 0; i < count; i++)
		one_task();
	each = (live - before) / count - strings;
	print_message("# %ld bytes\n", each);
	CHECK(each > 0 && each <= 1024);
}
