/* SPDX-License-Identifier: MIT */
/* Tests of src/mcp: which line an answer belongs to, and which lines have none. */
#include "check.h"
#include "conversation.h"

#define PING "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}"
#define CALL(id)                                                                           \
	"{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"tools/call\",\"params\":{"        \
	"\"name\":\"task_output\",\"arguments\":{\"task_id\":\"job-1\",\"wait\":true}}}"
#define CANCEL(id)                                                                         \
	"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{"         \
	"\"requestId\":" id "}}"

static struct talk t;

static void begin(const char *version)
{
	char line[200];

	talk_open(&t, false);
	(void)snprintf(line, sizeof(line),
		       "{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":"
		       "{\"protocolVersion\":\"%s\"}}",
		       version);
	say(&t, line);
}

static uint64_t last_tag(void)
{
	return t.tags[t.count - 1];
}

TEST(a_handshake_is_seen)
{
	talk_open(&t, false);
	say(&t, PING);
	CHECK(!mcp_is_initialized(t.mcp));
	talk_close(&t);
	begin("2025-06-18");
	CHECK(mcp_is_initialized(t.mcp));
	talk_close(&t);
}

TEST(an_answer_has_the_tag_of_its_line_however_late)
{
	errand_task task;

	begin("2025-06-18");
	task = job(&t, NULL);
	say(&t, CALL("5"));
	CHECK_INT(t.said, 2);
	say(&t, PING);
	CHECK_INT(last_tag(), 3);
	job_ends(&t, task);
	CHECK_INT(last_tag(), 2);
	CHECK_INT(t.unanswered, 0);
	talk_close(&t);
}

TEST(what_needs_no_answer_is_told_to_have_none)
{
	begin("2025-06-18");
	say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
	CHECK_INT(t.unanswered, 2);
	say(&t, " ");
	CHECK_INT(t.unanswered, 3);
	say(&t, "{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}");
	CHECK_INT(t.unanswered, 4);
	say(&t, "{");
	CHECK_INT(t.unanswered, 4);
	CHECK_INT(last_tag(), 5);
	talk_close(&t);
}

TEST(a_cancelled_call_has_no_answer)
{
	begin("2025-06-18");
	(void)job(&t, NULL);
	say(&t, CALL("5"));
	t.now = 0;
	mcp_line(t.mcp, CANCEL("5"), strlen(CANCEL("5")), 77, t.now);
	CHECK_INT(t.unanswered,
		  77); /* the cancellation's own comes behind that of the call */
	CHECK_INT(t.count, 1);
	talk_close(&t);
}

TEST(a_batch_is_one_line)
{
	begin("2025-03-26");
	say(&t, "[" PING "]");
	CHECK_INT(last_tag(), 2);
	say(&t, "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}]");
	CHECK_INT(t.unanswered, 3);
	talk_close(&t);
}

TEST(a_batch_whose_last_call_is_cancelled_is_answered_or_has_no_answer)
{
	begin("2025-03-26");
	(void)job(&t, NULL);
	say(&t, "[" CALL("5") "]");
	CHECK_INT(t.count, 1);
	say(&t, CANCEL("5"));
	CHECK_INT(t.count, 1);
	CHECK_INT(t.unanswered, 3);
	talk_close(&t);
}

TEST(progress_belongs_to_no_line)
{
	begin("2025-06-18");
	(void)job(&t, NULL);
	say(&t, "{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"tools/call\",\"params\":{"
		"\"_meta\":{\"progressToken\":1},\"name\":\"task_output\","
		"\"arguments\":{\"task_id\":\"job-1\",\"wait\":true}}}");
	mcp_tick(t.mcp, 5000);
	CHECK(has(last(&t), "notifications/progress"));
	CHECK_INT(last_tag(), 0);
	talk_close(&t);
}

TEST(a_call_that_nobody_made_has_no_caller)
{
	begin("2025-06-18");
	CHECK(mcp_caller(t.server, 12345, NULL) == NULL);
	talk_close(&t);
}
