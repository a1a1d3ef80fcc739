/* SPDX-License-Identifier: MIT */
/* Tests of src/host/owners.c: names, and which ended tasks are kept (D15). */
#include "base/err.h"
#include "check.h"
#include "conversation.h"
#include "host/owners.h"

static struct talk t; /* only its core, and its kind of tasks */
static struct owners owners;

static void begin(int64_t keep)
{
	talk_open(&t, false);
	owners_init(&owners, keep);
	CHECK_INT(owners_watch(&owners, t.host), 0);
}

static void end(void)
{
	talk_close(&t);
	owners_release(&owners);
}

static errand_agent agent(const char *name)
{
	errand_agent a = 0;

	CHECK_INT(owners_agent(&owners, name, strlen(name), &a, NULL), 0);
	return a;
}

static errand_task start(errand_agent owner)
{
	struct errand_task_spec s = {
		.size = sizeof(s),
		.kind = {"job", 3},
		.label = {"work", 4},
		.owner = owner,
		.producer = {.size = sizeof(s.producer),
			     .start = talk_start,
			     .cancel = talk_cancel,
			     .ud = &t},
	};
	errand_text *id = NULL;
	errand_task task = 0;

	CHECK_INT(errand_task_start(t.host, &s, &task, &id, NULL), 0);
	errand_text_free(id);
	return task;
}

static void ends(errand_agent owner, errand_task task)
{
	owners_task_ended(&owners, owner, task);
	job_ends(&t, task);
}

/* A delivered reply has shown the end. */
static void tell(errand_agent owner, const char *id)
{
	errand_lease lease = 0;
	errand_text *json = NULL;

	CHECK_INT(errand_read(t.host, id, ERRAND_NUL, owner, &lease, &json, NULL), 0);
	errand_text_free(json);
	CHECK_INT(errand_lease_commit(t.host, lease), 0);
	owners_told(&owners, owner, id, strlen(id));
	owners_trim(&owners);
}

static bool is_listed(errand_agent owner, const char *id)
{
	errand_text *json = NULL;
	int rc = errand_get(t.host, id, ERRAND_NUL, owner, &json, NULL);

	errand_text_free(json);
	return rc == 0;
}

TEST(one_name_is_one_agent)
{
	begin(1);
	CHECK(agent("a") == agent("a"));
	CHECK(agent("a") != agent("b"));
	CHECK(agent("a") != agent("aa"));
	end();
}

TEST(of_the_told_the_newest_stay)
{
	errand_agent a;

	begin(1);
	a = agent("a");
	ends(a, start(a));
	ends(a, start(a));
	tell(a, "job-1");
	CHECK(is_listed(a, "job-1"));
	tell(a, "job-2");
	CHECK(!is_listed(a, "job-1"));
	CHECK(is_listed(a, "job-2"));
	end();
}

TEST(the_untold_and_the_living_stay_however_many_they_are)
{
	errand_agent a;

	begin(0);
	a = agent("a");
	ends(a, start(a));
	(void)start(a);
	ends(a, start(a));
	owners_trim(&owners);
	CHECK(is_listed(a, "job-1") && is_listed(a, "job-2") && is_listed(a, "job-3"));
	tell(a, "job-3");
	CHECK(is_listed(a, "job-1") && is_listed(a, "job-2") && !is_listed(a, "job-3"));
	end();
}

TEST(one_owner_does_not_push_out_another_ones)
{
	errand_agent a, b;

	begin(1);
	a = agent("a");
	b = agent("b");
	ends(a, start(a));
	ends(b, start(b));
	ends(b, start(b));
	tell(a, "job-1");
	tell(b, "job-2");
	tell(b, "job-3");
	CHECK(is_listed(a, "job-1") && !is_listed(b, "job-2") && is_listed(b, "job-3"));
	end();
}

TEST(a_kill_before_the_end_counts_as_told)
{
	errand_agent a;
	errand_task task;
	int requested;

	begin(0);
	a = agent("a");
	task = start(a);
	owners_task_ended(&owners, a, task);
	CHECK_INT(errand_kill(t.host, "job-1", 5, a, NULL, 0, &requested, NULL), 0);
	talk_work(&t);
	owners_trim(&owners);
	CHECK(!is_listed(a, "job-1"));
	end();
}

TEST(what_a_lease_holds_is_dropped_later)
{
	errand_lease lease = 0;
	errand_text *json = NULL;
	errand_agent a;

	begin(0);
	a = agent("a");
	ends(a, start(a));
	CHECK_INT(errand_read(t.host, "job-1", 5, a, &lease, &json, NULL), 0);
	errand_text_free(json);
	owners_told(&owners, a, "job-1", 5);
	owners_trim(&owners);
	CHECK(is_listed(a, "job-1"));
	CHECK_INT(errand_lease_commit(t.host, lease), 0);
	owners_told(&owners, a, "job-1", 5);
	owners_trim(&owners);
	CHECK(!is_listed(a, "job-1"));
	end();
}

TEST(owners_are_limited)
{
	struct err err = {0};
	char name[20];
	errand_agent a;

	begin(1);
	for (int i = 0; i < 10000; i++) {
		(void)snprintf(name, sizeof(name), "o%d", i);
		(void)agent(name);
	}
	CHECK_INT(owners_agent(&owners, "more", 4, &a, &err), -ERR_LIMIT);
	CHECK_STR(err.msg, "there are 10000 owners already");
	CHECK_INT(owners_agent(&owners, "o7", 2, &a, &err), 0);
	end();
}
