/* SPDX-License-Identifier: MIT */
/* Tests of src/mcp/digest.c: what somebody is told who comes back to a session. */
#include "check.h"
#include "conversation.h"

static struct talk t;

static void open_talk(void)
{
	talk_open(&t, false);
	say(&t, "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":\"initialize\","
		"\"params\":{\"protocolVersion\":\"2025-06-18\"}}");
}

/* The reply to task_list, with @more beside its name. */
static const char *list(const char *more)
{
	char line[300];

	(void)snprintf(line, sizeof(line),
		       "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
		       "\"params\":{\"name\":\"task_list\"%s}}",
		       more);
	say(&t, line);
	return last(&t);
}

static errand_agent self(void)
{
	errand_agent a = 0;

	(void)talk_agent(&t, NULL, 0, &a, NULL);
	return a;
}

TEST(who_comes_back_is_told_once_what_the_session_holds)
{
	open_talk();
	(void)job(&t, NULL);
	job_ends(&t, job(&t, NULL));
	t.unread = 7;
	mcp_resume(t.mcp, self());
	(void)list("");
	CHECK(has(last(&t),
		  "{\"type\":\"text\",\"text\":\"[session resumed; running: job-1; "
		  "ended meanwhile: job-2; unread output: job-1 7 bytes, "
		  "job-2 7 bytes]\\nbackground task job-2 "));
	deliver(&t);
	(void)list("");
	CHECK(!has(last(&t), "resumed"));
	talk_close(&t);
}

TEST(a_digest_that_was_not_delivered_comes_again)
{
	open_talk();
	(void)job(&t, NULL);
	mcp_resume(t.mcp, self());
	(void)list("");
	CHECK(has(last(&t), "[session resumed; running: job-1]\"}"));
	lose(&t);
	(void)list("");
	CHECK(has(last(&t), "[session resumed; running: job-1]\"}"));
	talk_close(&t);
}

TEST(a_digest_is_for_its_own_session_and_there_is_none_of_nothing)
{
	open_talk();
	mcp_resume(t.mcp, self());
	(void)list("");
	CHECK(!has(last(&t), "resumed"));
	(void)job(&t, NULL);
	mcp_resume(t.mcp, self());
	CHECK(!has(list(",\"_meta\":{\"errand/owner\":\"other\"}"), "resumed"));
	(void)list("");
	CHECK(has(last(&t), "resumed"));
	talk_close(&t);
}

TEST(a_long_digest_counts_what_it_leaves_out)
{
	open_talk();
	for (int i = 0; i < 23; i++)
		job_ends(&t, job(&t, NULL));
	mcp_resume(t.mcp, self());
	(void)list("");
	CHECK(has(last(&t), "job-19, job-20 and 3 more]"));
	talk_close(&t);
}
