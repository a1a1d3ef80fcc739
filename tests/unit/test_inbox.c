/* SPDX-License-Identifier: MIT */
/* Tests of src/core/inbox.c: pending, claimed, given back, discarded. */
#include "core.h"

static errand_lease lease;

/* Insert a user's message under @id; 0 or the code. */
static int insert(errand_agent a, const char *id)
{
	return try_insert(a, ERRAND_NEXT_STEP, id, "user");
}

/* The ids in a JSON array of messages, with a space between. */
static const char *ids_in(const char *json)
{
	static char ids[512];
	struct js *j = NULL;

	CHECK_INT(js_parse(json, strlen(json), &j, NULL), 0);
	ids[0] = 0;
	for (size_t i = 0; i < js_count(j); i++)
		(void)snprintf(ids + strlen(ids), sizeof(ids) - strlen(ids), "%s%s",
			       i ? " " : "", js_string(js_get(js_at(j, i), "id"), NULL));
	js_free(j);
	return ids;
}

static const char *pending(void)
{
	return ids_in(inbox(core.alice));
}

static const char *claim(int what)
{
	errand_text *t = NULL;

	CHECK_INT(errand_claim(core.host, core.alice, what, 0, &lease, &t, NULL), 0);
	return ids_in(text_of(t));
}

static void three(void)
{
	fresh();
	CHECK_INT(insert(core.alice, "a"), 0);
	CHECK_INT(insert(core.alice, "b"), 0);
	CHECK_INT(insert(core.alice, "c"), 0);
}

TEST(messages_wait_in_order_of_arrival)
{
	three();
	CHECK_STR(pending(), "a b c");
	CHECK_STR(inbox(core.bob), "[]");
}

TEST(a_message_keeps_its_members_and_gets_no_task)
{
	fresh();
	CHECK_INT(insert(core.alice, "a"), 0);
	CHECK_STR(
		inbox(core.alice),
		"[{\"target\":\"next-step\",\"id\":\"a\",\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
		"\"hi\"}],\"source\":{\"kind\":\"user\"}}]");
}

TEST(a_message_without_an_id_gets_one_that_is_free)
{
	static const char json[] = "{\"role\":\"user\",\"content\":[]}";
	errand_text *id = NULL;

	fresh();
	CHECK_INT(insert(core.alice, "m1"), 0);
	CHECK_INT(errand_insert(core.host, core.alice, ERRAND_NEXT_STEP, json, ERRAND_NUL,
				&id, NULL),
		  0);
	CHECK_STR(text_of(id), "m2");
	CHECK_STR(pending(), "m1 m2");
}

TEST(a_message_is_pending_once)
{
	three();
	CHECK_INT(insert(core.alice, "b"), ERRAND_EREFUSED);
	CHECK_STR(core.message, "message \"b\" is already pending");
	CHECK_INT(insert(core.bob, "b"), 0);
}

TEST(what_is_no_message_is_refused)
{
	static const struct {
		const char *json;
		int rc;
	} cases[] = {{"", ERRAND_EJSON},
		     {"{", ERRAND_EJSON},
		     {"[]", ERRAND_EARG},
		     {"{\"role\":\"user\"}", ERRAND_EARG},
		     {"{\"content\":\"text\"}", ERRAND_EARG}};

	fresh();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_INT(errand_insert(core.host, core.alice, ERRAND_NEXT_STEP,
					cases[i].json, ERRAND_NUL, NULL, NULL),
			  cases[i].rc);
	CHECK_INT(errand_insert(core.host, core.alice, 7, "{\"content\":[]}", ERRAND_NUL,
				NULL, NULL),
		  ERRAND_EARG);
	CHECK_STR(pending(), "");
}

TEST(an_id_that_is_no_string_is_refused)
{
	static const struct {
		const char *id, *shown;
	} cases[] = {{"7", "7"}, {"null", "null"}, {"[\"a\"]", "[\"a\"]"}};
	char json[64], want[80];
	errand_error *e = NULL;

	fresh();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)snprintf(json, sizeof(json), "{\"content\":[],\"id\":%s}",
			       cases[i].id);
		CHECK_INT(errand_insert(core.host, core.alice, ERRAND_NEXT_STEP, json,
					ERRAND_NUL, NULL, &e),
			  ERRAND_EARG);
		(void)snprintf(want, sizeof(want),
			       "a message's id is a string, or not given; got %s",
			       cases[i].shown);
		CHECK_STR(message(e), want);
	}
	CHECK_STR(pending(), "");
}

TEST(half_a_pair_in_a_message_is_replaced)
{
	fresh();
	CHECK_INT(errand_insert(core.host, core.alice, ERRAND_NEXT_STEP,
				"{\"id\":\"\\udc00\",\"content\":[\"\\ud800\"],"
				"\"source\":{\"k\":\"\\ud83d\\ude00\\ud83d\"}}",
				ERRAND_NUL, NULL, NULL),
		  0);
	CHECK_STR(inbox(core.alice),
		  "[{\"target\":\"next-step\",\"id\":\"\xef\xbf\xbd\",\"content\":"
		  "[\"\\ufffd\"],\"source\":{\"k\":\"\\ud83d\\ude00\\ufffd\"}}]");
}

TEST(a_number_that_no_double_holds_is_named)
{
	errand_error *e = NULL;

	fresh();
	CHECK_INT(errand_insert(core.host, core.alice, ERRAND_NEXT_STEP,
				"{\"content\":[1e999]}", ERRAND_NUL, NULL, &e),
		  ERRAND_EJSON);
	CHECK_STR(message(e), "message: a number that no double can hold");
}

TEST(a_claim_takes_all_in_order)
{
	three();
	CHECK_STR(claim(ERRAND_CLAIM_STEP), "a b c");
	CHECK(lease != 0);
	CHECK_STR(pending(), "");
}

TEST(a_claim_of_nothing_has_no_lease)
{
	fresh();
	lease = 99;
	CHECK_STR(claim(ERRAND_CLAIM_STEP), "");
	CHECK(lease == 0);
}

TEST(a_claim_of_notices_leaves_the_others)
{
	fresh();
	CHECK_INT(insert(core.alice, "a"), 0);
	end(start(core.alice, FINAL));
	CHECK_INT(insert(core.alice, "b"), 0);
	CHECK_STR(pending(), "a m1 b");
	CHECK_STR(claim(ERRAND_CLAIM_NOTICES), "m1");
	CHECK_STR(pending(), "a b");
}

TEST(a_claimed_notice_names_its_task)
{
	errand_text *t = NULL;

	fresh();
	end(start(core.alice, FINAL));
	CHECK_INT(errand_claim(core.host, core.alice, ERRAND_CLAIM_NOTICES, 0, &lease, &t,
			       NULL),
		  0);
	CHECK(strstr(text_of(t), "\"task\":\"bash-1\"}]"));
}

TEST(d6_what_is_claimed_and_committed_is_gone)
{
	three();
	(void)claim(ERRAND_CLAIM_STEP);
	CHECK_INT(errand_lease_commit(core.host, lease), 0);
	CHECK_STR(pending(), "");
	CHECK_INT(insert(core.alice, "b"), 0);
}

TEST(d6_what_is_returned_comes_back_to_the_front)
{
	three();
	(void)claim(ERRAND_CLAIM_STEP);
	CHECK_INT(insert(core.alice, "d"), 0);
	CHECK_INT(errand_lease_return(core.host, lease), 0);
	CHECK_STR(pending(), "a b c d");
}

TEST(d6_a_claimed_message_keeps_its_id)
{
	three();
	(void)claim(ERRAND_CLAIM_STEP);
	CHECK_INT(insert(core.alice, "b"), ERRAND_EREFUSED);
	CHECK_INT(errand_discard(core.host, core.alice, "b", ERRAND_NUL, NULL),
		  ERRAND_EGONE);
}

TEST(d6_leases_returned_in_any_order_come_back_in_order)
{
	errand_lease first;

	three();
	(void)claim(ERRAND_CLAIM_STEP);
	first = lease;
	CHECK_INT(insert(core.alice, "d"), 0);
	(void)claim(ERRAND_CLAIM_STEP);
	CHECK_INT(errand_lease_return(core.host, first), 0);
	CHECK_INT(errand_lease_return(core.host, lease), 0);
	CHECK_STR(pending(), "a b c d");
}

TEST(d6_the_later_lease_may_come_back_first)
{
	errand_lease first;

	three();
	(void)claim(ERRAND_CLAIM_STEP);
	first = lease;
	CHECK_INT(insert(core.alice, "d"), 0);
	(void)claim(ERRAND_CLAIM_STEP);
	CHECK_INT(errand_lease_return(core.host, lease), 0);
	CHECK_INT(errand_lease_return(core.host, first), 0);
	CHECK_STR(pending(), "a b c d");
}

TEST(a_returned_notice_goes_before_what_was_never_claimed)
{
	fresh();
	CHECK_INT(insert(core.alice, "a"), 0);
	end(start(core.alice, FINAL));
	(void)claim(ERRAND_CLAIM_NOTICES);
	CHECK_INT(errand_lease_return(core.host, lease), 0);
	CHECK_STR(pending(), "m1 a");
}

TEST(several_notices_are_claimed_in_order_of_their_ends)
{
	struct work *first, *second;

	fresh();
	first = start(core.alice, FINAL);
	second = start(core.alice, FINAL);
	end(second);
	end(first);
	CHECK_STR(claim(ERRAND_CLAIM_STEP), "m1 m2");
}

TEST(a_discarded_message_is_gone_for_good)
{
	three();
	CHECK_INT(errand_discard(core.host, core.alice, "b", ERRAND_NUL, NULL), 0);
	CHECK_STR(pending(), "a c");
	CHECK_INT(errand_discard(core.host, core.alice, "b", ERRAND_NUL, NULL),
		  ERRAND_EGONE);
	CHECK_INT(insert(core.alice, "b"), 0);
	CHECK_STR(pending(), "a c b");
}

TEST(what_happens_to_messages_is_told)
{
	fresh();
	(void)listen(ERRAND_ON_INBOX, "inbox");
	CHECK_INT(insert(core.alice, "a"), 0);
	CHECK_INT(insert(core.alice, "b"), 0);
	CHECK_STR(logged(), "");
	run();
	CHECK_STR(logged(), "inbox(inserted);inbox(inserted);");
	CHECK_INT(errand_discard(core.host, core.alice, "b", ERRAND_NUL, NULL), 0);
	(void)claim(ERRAND_CLAIM_STEP);
	run();
	CHECK_STR(logged(), "inbox(discarded);inbox(claimed);");
}

TEST(what_comes_back_is_told_as_inserted)
{
	three();
	run();
	(void)listen(ERRAND_ON_INBOX, "inbox");
	(void)claim(ERRAND_CLAIM_STEP);
	CHECK_INT(errand_lease_return(core.host, lease), 0);
	run();
	CHECK_STR(logged(), "inbox(claimed);inbox(claimed);inbox(claimed);"
			    "inbox(inserted);inbox(inserted);inbox(inserted);");
}

/* Takes the notice for good, and the task with it. */
static int take_and_drop(void *ud, errand_host *h, errand_reg self, errand_agent owner,
			 const char *json, size_t len, errand_error *e)
{
	errand_text *t = NULL;

	(void)ud, (void)self, (void)len, (void)e;
	if (strcmp(member(json, "event"), "inserted") != 0)
		return 0;
	CHECK_INT(errand_claim(h, owner, ERRAND_CLAIM_NOTICES, 0, &lease, &t, NULL), 0);
	errand_text_free(t);
	CHECK_INT(errand_lease_commit(h, lease), 0);
	CHECK_INT(errand_task_drop(h, core.work[0].task, NULL), 0);
	return 0;
}

TEST(who_hears_of_a_notice_may_take_it_and_drop_its_task)
{
	struct work *w;

	fresh();
	CHECK_INT(errand_on(core.host, 0, ERRAND_ON_INBOX, take_and_drop, NULL, NULL, NULL,
			    NULL),
		  0);
	w = start(core.alice, FINAL);
	end(w);
	CHECK_INT(w->destroyed, 1);
	CHECK_STR(inbox(core.alice), "[]");
}

TEST(a_notice_is_told_before_later_listeners_hear_of_the_end)
{
	fresh();
	(void)listen(ERRAND_ON_INBOX, "inbox");
	(void)listen(ERRAND_ON_DONE, "done");
	end(start(core.alice, FINAL));
	CHECK_STR(logged(), "inbox(inserted);done(bash-1 completed);");
}

TEST(a_listener_before_the_mount_hears_of_the_end_before_the_notice)
{
	bare(NULL);
	(void)listen(ERRAND_ON_INBOX, "inbox");
	(void)listen(ERRAND_ON_DONE, "done");
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
	end(start(core.alice, FINAL));
	CHECK_STR(logged(), "done(bash-1 completed);inbox(inserted);");
}

TEST(claimed_messages_go_with_their_agent)
{
	three();
	(void)claim(ERRAND_CLAIM_STEP);
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	run();
	CHECK_INT(errand_lease_return(core.host, lease), ERRAND_EGONE);
}

TEST(an_agent_that_is_gone_has_no_inbox)
{
	errand_text *t = NULL;

	fresh();
	CHECK_INT(errand_inbox(core.host, 4711, &t, NULL), ERRAND_EGONE);
	CHECK_INT(insert(4711, "a"), ERRAND_EGONE);
	CHECK_INT(errand_discard(core.host, 4711, "a", 1, NULL), ERRAND_EGONE);
	CHECK_INT(errand_claim(core.host, 4711, ERRAND_CLAIM_STEP, 0, &lease, &t, NULL),
		  ERRAND_EGONE);
}

TEST(a_claim_of_what_there_is_not_is_a_mistake)
{
	errand_text *t = NULL;

	fresh();
	CHECK_INT(errand_claim(core.host, core.alice, 9, 0, &lease, &t, NULL), ERRAND_EARG);
	CHECK_INT(errand_claim(core.host, core.alice, ERRAND_CLAIM_STEP, 0, NULL, &t, NULL),
		  ERRAND_EARG);
}
