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

/* ---- how long they stay ---- */

static void finish(void)
{
	while (errand_run(t.host, 0, 0, 0) > 0)
		;
}

static void enter(const char *name, int64_t now)
{
	CHECK_INT(owners_enter(&owners, name, strlen(name), now, NULL), 0);
}

static void leave(const char *name, int64_t now)
{
	owners_leave(&owners, name, strlen(name), now);
}

TEST(a_made_up_name_goes_after_the_grace_a_given_one_later)
{
	begin();
	owners.grace_ms = 10;
	owners.keep_ms = 1000;
	enter("~1", 0);
	enter("given", 0);
	CHECK(owners_deadline(&owners) == INT64_MAX);
	leave("~1", 5);
	leave("given", 5);
	CHECK_INT(owners_deadline(&owners), 15);
	owners_tick(&owners, 14);
	finish();
	CHECK_INT(owners.count, 2);
	owners_tick(&owners, 15);
	finish();
	CHECK_INT(owners.count, 1);
	CHECK_INT(owners_deadline(&owners), 1005);
	owners_tick(&owners, 1005);
	finish();
	CHECK_INT(owners.count, 0);
	end();
}

static size_t one_client(void *ud, const char *name, size_t len)
{
	(void)ud;
	(void)name;
	(void)len;
	return 1;
}

TEST(a_name_that_was_ended_under_its_client_begins_anew_with_it)
{
	size_t live;

	begin();
	owners.grace_ms = 10;
	owners.connected = one_client;
	(void)agent("~1");
	CHECK_INT(owners_end(&owners, "~1", 2, &live, NULL), 0);
	finish();
	CHECK_INT(owners.count, 0);
	(void)agent("~1");
	CHECK(owners_deadline(&owners) == INT64_MAX);
	leave("~1", 5);
	CHECK_INT(owners_deadline(&owners), 15);
	end();
}

TEST(a_name_stays_while_somebody_is_there)
{
	begin();
	owners.grace_ms = 10;
	enter("~1", 0);
	enter("~1", 0);
	leave("~1", 5);
	CHECK(owners_deadline(&owners) == INT64_MAX);
	leave("~1", 7);
	CHECK_INT(owners_deadline(&owners), 17);
	enter("~1", 8);
	CHECK(owners_deadline(&owners) == INT64_MAX);
	end();
}

TEST(a_name_that_comes_again_after_its_end_is_another_agent)
{
	errand_agent first;

	begin();
	owners.grace_ms = 10;
	first = agent("~1");
	owners_tick(&owners, 10);
	finish();
	CHECK(agent("~1") != first);
	end();
}

TEST(a_name_that_is_just_ending_has_to_wait)
{
	struct err err = {0};
	errand_agent a;

	begin();
	owners.grace_ms = 10;
	a = agent("~1");
	CHECK(!owners_is_ending(&owners, a));
	owners_tick(&owners, 10);
	CHECK(owners_is_ending(&owners, a));
	CHECK(!owners_is_ending(&owners, a + 1));
	CHECK_INT(owners_agent(&owners, "~1", 2, 10, &a, &err), -ERR_STATE);
	CHECK_STR(err.msg, "the session '~1' is just ending: try again");
	finish();
	end();
}

TEST(without_a_time_names_stay_for_ever)
{
	begin();
	(void)agent("~1");
	(void)agent("given");
	CHECK(owners_deadline(&owners) == INT64_MAX);
	end();
}

/* ---- what is remembered of them ---- */

static char said[200];

static void on_seen(void *ud, const char *name, size_t len, bool is_connected)
{
	size_t n = strlen(said);

	(void)ud;
	(void)snprintf(said + n, sizeof(said) - n, "%.*s%s ", (int)len, name,
		       is_connected ? "+" : "-");
}

static void on_gone(void *ud, const char *name, size_t len)
{
	size_t n = strlen(said);

	(void)ud;
	(void)snprintf(said + n, sizeof(said) - n, "%.*s! ", (int)len, name);
}

static void begin_told(void)
{
	begin();
	said[0] = 0;
	owners.keep_ms = 10000;
	owners.grace_ms = 10;
	owners.seen = on_seen;
	owners.gone = on_gone;
}

TEST(a_given_name_is_told_when_somebody_comes_and_goes_and_when_it_ends)
{
	begin_told();
	enter("a", 0);
	enter("a", 1);
	leave("a", 2);
	leave("a", 3);
	enter("~1", 3);
	leave("~1", 3);
	CHECK_STR(said, "a+ a- ");
	owners_tick(&owners, 20000);
	finish();
	CHECK_STR(said, "a+ a- a! ");
	end();
}

TEST(a_name_that_only_calls_is_told_once_an_hour)
{
	errand_agent a;

	begin_told();
	for (int64_t now = 0; now < 7200000; now += 60000)
		CHECK_INT(owners_agent(&owners, "a", 1, now, &a, NULL), 0);
	CHECK_STR(said, "a- a- ");
	end();
}

TEST(time_away_counts_and_leaves_time_to_come_back)
{
	begin_told();
	(void)agent("a");
	CHECK(owners_away(&owners, "a", 1, 100, 4000));
	CHECK_INT(owners_deadline(&owners), 6100);
	CHECK(owners_away(&owners, "a", 1, 100, 400000));
	CHECK_INT(owners_deadline(&owners), 110);
	CHECK(!owners_away(&owners, "b", 1, 100, 0));
	end();
}
