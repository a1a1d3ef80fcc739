/* SPDX-License-Identifier: MIT */
/* Tests of src/host/owners.c: names and the agents they stand for. */
#include "base/err.h"
#include "check.h"
#include "conversation.h"
#include "host/owners.h"

static struct talk t; /* only its core */
static struct owners owners;

static void begin(void)
{
	talk_open(&t, false);
	owners_init(&owners);
	owners.host = t.host;
}

static void end(void)
{
	talk_close(&t);
	owners_release(&owners);
}

static errand_agent agent(const char *name)
{
	errand_agent a = 0;

	CHECK_INT(owners_agent(&owners, name, strlen(name), 0, &a, NULL), 0);
	return a;
}

TEST(one_name_is_one_agent)
{
	begin();
	CHECK(agent("a") == agent("a"));
	CHECK(agent("a") != agent("b"));
	CHECK(agent("a") != agent("aa"));
	end();
}

TEST(owners_are_limited)
{
	struct err err = {0};
	char name[20];
	errand_agent a;

	begin();
	for (int i = 0; i < 10000; i++) {
		(void)snprintf(name, sizeof(name), "o%d", i);
		(void)agent(name);
	}
	CHECK_INT(owners_agent(&owners, "more", 4, 0, &a, &err), -ERR_LIMIT);
	CHECK_STR(err.msg, "there are 10000 owners already");
	CHECK_INT(owners_agent(&owners, "o7", 2, 0, &a, &err), 0);
	end();
}
