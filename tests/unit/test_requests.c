/* SPDX-License-Identifier: MIT */
/* Tests of src/host/requests.c: what a request has started is found when it comes again. */
#include "check.h"
#include "host/requests.h"

static struct requests r;
static uint64_t seen;

static void begin(void)
{
	requests_init(&r);
}

static const char *ids(const struct request *q)
{
	return buf_text(&q->ids);
}

TEST(a_request_that_has_started_nothing_is_unknown)
{
	begin();
	CHECK(requests_take(&r, "a", 1) == NULL);
	CHECK(!requests_seen(&r, "a", 1, &seen));
	requests_release(&r);
}

TEST(what_was_just_started_is_not_taken_for_an_earlier_start)
{
	begin();
	CHECK_STR(ids(requests_note(&r, "a", 1, "bash-1")), "bash-1");
	CHECK(requests_take(&r, "a", 1) == NULL);
	CHECK_STR(ids(requests_note(&r, "a", 1, "bash-2")), "bash-1 bash-2");
	CHECK(requests_take(&r, "a", 1) == NULL);
	requests_release(&r);
}

TEST(a_client_that_comes_back_finds_its_starts_in_their_order)
{
	begin();
	(void)requests_note(&r, "a", 1, "bash-1");
	(void)requests_note(&r, "a", 1, "bash-2");
	requests_rewind(&r, "b");
	CHECK(requests_take(&r, "a", 1) == NULL);
	requests_rewind(&r, "a");
	CHECK_STR(requests_take(&r, "a", 1), "bash-1");
	CHECK_STR(requests_take(&r, "a", 1), "bash-2");
	CHECK(requests_take(&r, "a", 1) == NULL);
	/* A third one is new. */
	CHECK_STR(ids(requests_note(&r, "a", 1, "bash-7")), "bash-1 bash-2 bash-7");
	requests_release(&r);
}

TEST(what_was_loaded_is_found_by_its_client_and_number_only)
{
	begin();
	requests_put(&r, "a", 1, "bash-1", 6);
	CHECK(requests_take(&r, "a", 2) == NULL);
	CHECK(requests_take(&r, "b", 1) == NULL);
	CHECK_STR(requests_take(&r, "a", 1), "bash-1");
	requests_release(&r);
}

TEST(an_answered_request_is_forgotten)
{
	begin();
	(void)requests_note(&r, "a", 3, "bash-1");
	CHECK(requests_seen(&r, "a", 3, &seen));
	CHECK_INT(seen, 3);
	requests_rewind(&r, "a");
	CHECK(requests_take(&r, "a", 3) == NULL);
	requests_release(&r);
}

TEST(answers_out_of_order_forget_no_open_request)
{
	begin();
	(void)requests_note(&r, "a", 3, "bash-1");
	(void)requests_note(&r, "a", 5, "bash-2");
	(void)requests_note(&r, "b", 1, "bash-3");
	CHECK(requests_seen(&r, "a", 5, &seen));
	CHECK_INT(seen, 2);
	CHECK(requests_seen(&r, "a", 3, &seen));
	CHECK_INT(seen, 3);
	requests_release(&r);
}

TEST(clients_that_never_come_back_do_not_fill_the_memory)
{
	begin();
	for (uint64_t i = 1; i <= 10001; i++)
		requests_put(&r, "a", i, "bash-1", 6);
	CHECK_INT(r.count, 10000);
	CHECK(requests_take(&r, "a", 1) == NULL);
	CHECK_STR(requests_take(&r, "a", 2), "bash-1");
	requests_release(&r);
}

TEST(an_answer_is_found_by_the_next_host_only)
{
	begin();
	CHECK_STR(ids(requests_answer(&r, "a", 1, "{}", 2)), "{}");
	CHECK(requests_answered(&r, "a", 1) == NULL);
	/* Used again it is another request. */
	CHECK_STR(ids(requests_answer(&r, "a", 1, "{\"x\":1}", 7)), "{\"x\":1}");
	CHECK_INT(r.count, 1);
	requests_put(&r, "a", 2, "{}", 2);
	CHECK_STR(requests_answered(&r, "a", 2), "{}");
	CHECK(requests_answered(&r, "b", 2) == NULL);
	requests_release(&r);
}

TEST(a_client_that_leaves_takes_its_own_with_it)
{
	begin();
	CHECK(!requests_forget(&r, "a"));
	requests_put(&r, "a", 1, "{}", 2);
	requests_put(&r, "b", 1, "{}", 2);
	requests_put(&r, "a", 2, "{}", 2);
	CHECK(requests_forget(&r, "a"));
	CHECK_INT(r.count, 1);
	CHECK(requests_answered(&r, "a", 1) == NULL);
	CHECK_STR(requests_answered(&r, "b", 1), "{}");
	requests_release(&r);
}
