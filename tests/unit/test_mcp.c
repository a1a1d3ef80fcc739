/* SPDX-License-Identifier: MIT */
/* Tests of src/mcp: a conversation over a real core, line by line. */
#include "check.h"
#include "conversation.h"

static struct talk t;

#define VERSION_META                                                                       \
	"\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","           \
	"\"io.modelcontextprotocol/clientCapabilities\":{}}"

/* With initialize of @version done; NULL: without. */
static void open_talk(const char *version)
{
	char line[200];

	talk_open(&t, false);
	if (!version)
		return;
	(void)snprintf(line, sizeof(line),
		       "{\"jsonrpc\":\"2.0\",\"id\":\"i\",\"method\":\"initialize\","
		       "\"params\":{\"protocolVersion\":\"%s\"}}",
		       version);
	say(&t, line);
}

/* Ask and return the answer. */
static const char *ask(const char *id, const char *method, const char *params)
{
	struct buf line = BUF_INIT(MIB(1));

	buf_addf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%s,\"method\":\"%s\"%s%s}", id, method,
		 params ? ",\"params\":" : "", params ? params : "");
	say_bytes(&t, line.data, line.len);
	buf_release(&line);
	return last(&t);
}

static const char *call(const char *id, const char *tool, const char *arguments)
{
	char params[400];

	(void)snprintf(params, sizeof(params), "{\"name\":\"%s\",\"arguments\":%s}", tool,
		       arguments);
	return ask(id, "tools/call", params);
}

static const char *call_as(const char *id, const char *meta, const char *tool,
			   const char *arguments)
{
	char params[400];

	(void)snprintf(params, sizeof(params),
		       "{\"name\":\"%s\",\"arguments\":%s,\"_meta\":%s}", tool, arguments,
		       meta);
	return ask(id, "tools/call", params);
}

static void cancel(const char *id)
{
	char line[200];

	(void)snprintf(line, sizeof(line),
		       "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		       "\"params\":{\"requestId\":%s}}",
		       id);
	say(&t, line);
}

#define WAIT "{\"task_id\":\"job-1\",\"wait\":true,\"timeout_ms\":20000}"
#define READ "{\"task_id\":\"job-1\"}"
#define NOTICE(n)                                                                          \
	"background task job-" n                                                           \
	" (job: work) finished [status: completed, exit code: 0]. "                        \
	"Read its output with task_output."

/* ---- lifecycle ---- */

static bool is_reported(const char *id)
{
	errand_text *json = NULL;
	bool is;

	CHECK_INT(errand_get(t.host, id, ERRAND_NUL, t.owners[0].agent, &json, NULL), 0);
	is = has(errand_text_data(json, NULL), "\"reported\":true");
	errand_text_free(json);
	return is;
}

TEST(each_legacy_version_is_answered_with_itself)
{
	static const char *const versions[] = {"2024-11-05", "2025-03-26", "2025-06-18",
					       "2025-11-25"};

	for (size_t i = 0; i < 4; i++) {
		open_talk(versions[i]);
		CHECK(has(last(&t), versions[i]));
		talk_close(&t);
	}
}

TEST(an_unknown_version_is_answered_with_the_newest_legacy_one)
{
	open_talk("2026-07-28");
	CHECK(has(last(&t), "\"protocolVersion\":\"2025-11-25\""));
	CHECK(has(last(&t), "\"serverInfo\":{\"name\":\"errand\",\"version\":\"1.2.3\"}"));
	CHECK(has(last(&t), "\"capabilities\":{\"tools\":{}}"));
	talk_close(&t);
}

TEST(instructions_are_short_and_say_whose_the_ids_are)
{
	const char *at;

	open_talk("2025-06-18");
	at = strstr(last(&t), "\"instructions\":\"");
	CHECK(at && strcspn(at + 16, "\"") < 1024);
	CHECK(has(last(&t), "are this server's own"));
	talk_close(&t);
}

TEST(before_initialize_only_ping_is_served)
{
	open_talk(NULL);
	CHECK_STR(ask("1", "ping", NULL), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
	CHECK(has(ask("2", "tools/list", NULL), "\"code\":-32600"));
	CHECK(has(ask("3", "no/such", NULL), "\"code\":-32600"));
	CHECK(has(ask("4", "initialize", "{\"protocolVersion\":\"2025-06-18\"}"),
		  "\"result\""));
	CHECK(has(ask("5", "tools/list", NULL), "\"tools\":[{\"name\":\"task_kill\""));
	CHECK(has(ask("6", "initialize", "{\"protocolVersion\":\"2025-06-18\"}"),
		  "\"result\""));
	talk_close(&t);
}

TEST(initialize_without_a_version_is_refused)
{
	open_talk(NULL);
	CHECK(has(ask("1", "initialize", "{}"), "\"code\":-32602"));
	CHECK(has(ask("2", "initialize", NULL), "\"code\":-32602"));
	talk_close(&t);
}

/* ---- the modern era ---- */

TEST(discover_offers_modern_versions_only)
{
	open_talk(NULL);
	(void)ask("\"server-discover-probe-1\"", "server/discover", "{" VERSION_META "}");
	CHECK(has(last(&t), "\"id\":\"server-discover-probe-1\""));
	CHECK(has(last(&t), "\"resultType\":\"complete\""));
	CHECK(has(last(&t), "\"supportedVersions\":[\"2026-07-28\"]"));
	CHECK(has(last(&t), "\"cacheScope\":\"private\""));
	CHECK(has(last(&t), "\"io.modelcontextprotocol/serverInfo\":{\"name\":\"errand\""));
	talk_close(&t);
}

TEST(discover_without_meta_is_refused)
{
	open_talk(NULL);
	CHECK(has(ask("1", "server/discover", NULL), "\"code\":-32602"));
	talk_close(&t);
}

TEST(a_legacy_only_server_knows_no_discover)
{
	talk_open(&t, true);
	CHECK(has(ask("1", "server/discover", "{" VERSION_META "}"), "\"code\":-32601"));
	CHECK(has(ask("2", "server/discover", NULL), "\"code\":-32601"));
	talk_close(&t);
}

TEST(an_unknown_modern_version_is_named_with_the_known_ones)
{
	open_talk(NULL);
	(void)ask(
		"1", "tools/list",
		"{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"1900-01-01\"}}");
	CHECK(has(last(&t), "\"code\":-32022"));
	CHECK(has(last(&t),
		  "{\"supported\":[\"2026-07-28\"],\"requested\":\"1900-01-01\"}"));
	talk_close(&t);
}

TEST(a_modern_request_needs_capabilities)
{
	open_talk(NULL);
	(void)ask(
		"1", "tools/list",
		"{\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\"}}");
	CHECK(has(last(&t), "\"code\":-32602"));
	talk_close(&t);
}

TEST(modern_requests_need_no_initialize_and_have_result_types)
{
	open_talk(NULL);
	CHECK(has(ask("1", "tools/list", "{" VERSION_META "}"),
		  "\"resultType\":\"complete\""));
	CHECK(has(last(&t), "\"ttlMs\":"));
	(void)ask("2", "tools/call", "{\"name\":\"task_list\"," VERSION_META "}");
	CHECK(has(last(&t), "\"resultType\":\"complete\""));
	CHECK(has(last(&t), "(no background tasks)"));
	CHECK(has(last(&t), "\"io.modelcontextprotocol/serverInfo\""));
	talk_close(&t);
}

TEST(what_the_modern_era_removed_is_unknown_in_it)
{
	open_talk("2025-06-18");
	CHECK(has(ask("1", "ping", "{" VERSION_META "}"), "\"code\":-32601"));
	CHECK(has(ask("2", "initialize", "{" VERSION_META "}"), "\"code\":-32601"));
	CHECK(has(ask("3", "logging/setLevel", "{" VERSION_META "}"), "\"code\":-32601"));
	CHECK(has(ask("4", "ping", NULL), "\"result\":{}"));
	talk_close(&t);
}

TEST(a_subscription_is_acknowledged_and_stays_open_until_cancelled)
{
	size_t before;

	open_talk(NULL);
	(void)ask("77", "subscriptions/listen",
		  "{\"notifications\":{\"toolsListChanged\":true}," VERSION_META "}");
	CHECK_STR(last(&t),
		  "{\"jsonrpc\":\"2.0\",\"method\":"
		  "\"notifications/subscriptions/acknowledged\",\"params\":{\"_meta\":"
		  "{\"io.modelcontextprotocol/subscriptionId\":77},\"notifications\":{}}}");
	CHECK(has(ask("78", "server/discover", "{" VERSION_META "}"), "\"result\""));
	before = t.count;
	cancel("77");
	cancel("77");
	CHECK_INT(t.count, before);
	CHECK(has(ask("79", "tools/list", "{" VERSION_META "}"), "\"tools\""));
	talk_close(&t);
}

/* ---- tools ---- */

TEST(the_tool_list_never_changes_by_a_byte)
{
	char *first;

	open_talk("2025-06-18");
	first = strdup(ask("1", "tools/list", NULL));
	CHECK_STR(ask("1", "tools/list", "{}"), first);
	CHECK(has(first, "\"anthropic/alwaysLoad\":true"));
	CHECK(!has(first, "outputSchema"));
	CHECK(!has(first, "execution"));
	CHECK(has(first,
		  "\"annotations\":{\"readOnlyHint\":true,\"destructiveHint\":false"));
	free(first);
	CHECK(has(ask("2", "tools/list", "{\"cursor\":\"x\"}"), "\"code\":-32602"));
	talk_close(&t);
}

TEST(an_unknown_tool_is_a_bad_parameter)
{
	open_talk("2025-06-18");
	CHECK(has(call("1", "nope", "{}"), "\"code\":-32602"));
	CHECK(has(last(&t), "unknown tool \\\"nope\\\""));
	CHECK(has(ask("2", "tools/call", "{}"), "\"code\":-32602"));
	CHECK(has(ask("3", "tools/call", "{\"name\":7}"), "\"code\":-32602"));
	CHECK(has(ask("4", "tools/call", "[]"), "\"code\":-32602"));
	CHECK(has(ask("5", "tools/call", "{\"name\":\"task_list\",\"_meta\":7}"),
		  "\"code\":-32602"));
	talk_close(&t);
}

TEST(missing_arguments_are_an_empty_object)
{
	open_talk("2025-06-18");
	CHECK_STR(
		ask("1", "tools/call", "{\"name\":\"task_list\"}"),
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\","
		"\"text\":\"(no background tasks)\"}],\"isError\":false}}");
	talk_close(&t);
}

TEST(bad_arguments_are_a_result_to_read)
{
	open_talk("2025-06-18");
	CHECK(has(call("1", "task_output", "{\"task_id\":42}"),
		  "Error: invalid arguments: \\\"task_id\\\" must be a string"));
	CHECK(has(last(&t), "\"isError\":true"));
	CHECK(has(call("2", "task_output", "7"), "\\\"arguments\\\" must be an object"));
	CHECK(has(call("3", "task_output", "{\"task_id\":\"x\",\"timeout_ms\":1e999}"),
		  "losslessly JSON-serializable"));
	CHECK(has(call("4", "task_output", "{\"task_id\":\"x\",\"timeout_ms\":-0}"),
		  "losslessly JSON-serializable"));
	talk_close(&t);
}

TEST(d16_an_overflow_outside_the_arguments_is_a_bad_parameter)
{
	open_talk("2025-06-18");
	CHECK(has(ask("1", "ping", "{\"x\":1e999}"), "\"code\":-32602"));
	CHECK(has(ask("2", "tools/call", "{\"name\":\"task_list\",\"x\":1e999}"),
		  "\"code\":-32602"));
	talk_close(&t);
}

TEST(a_result_carries_the_canonical_value_but_a_list_does_not)
{
	open_talk("2025-06-18");
	(void)job(&t, NULL);
	(void)snprintf(t.output, sizeof(t.output), "hi\n");
	CHECK(has(call("1", "task_output", READ), "\"text\":\"hi\\n[status: running]\""));
	CHECK(has(
		last(&t),
		"\"_meta\":{\"errand/task\":{\"text\":\"hi\\n\",\"task\":{\"id\":\"job-1\""));
	CHECK(has(call("2", "task_list", "{}"), "job-1 [job] running"));
	CHECK(!has(last(&t), "errand/task"));
	talk_close(&t);
}

TEST(what_a_producer_knows_stands_beside_the_value_and_in_lists)
{
	static const char one[] =
		"\"errand/facts\":{\"job-1\":{\"of\":\"job-1\",\"much\":\"x\"}";

	open_talk("2025-06-18");
	(void)job(&t, NULL);
	CHECK(!has(call("1", "task_output", READ), "facts"));
	t.facts = 1;
	CHECK(has(call("2", "task_output", READ), one));
	CHECK(has(call("3", "task_kill", READ), one));
	(void)job(&t, NULL);
	CHECK(has(call("4", "task_list", "{}"), one));
	CHECK(has(last(&t), ",\"job-2\":{\"of\":\"job-2\",\"much\":\"x\"}}}"));
	CHECK(!has(call("5", "task_output", "{\"task_id\":\"job-9\"}"), "facts"));
	talk_close(&t);
}

/* ---- leases ---- */

TEST(d6_what_was_not_delivered_is_read_again)
{
	open_talk("2025-06-18");
	(void)job(&t, NULL);
	(void)snprintf(t.output, sizeof(t.output), "once\n");
	CHECK(has(call("1", "task_output", READ), "once"));
	lose(&t);
	CHECK(has(call("2", "task_output", READ), "once"));
	deliver(&t);
	CHECK(has(call("3", "task_output", READ), "(no new output)"));
	talk_close(&t);
}

TEST(a_reply_that_is_cancelled_in_the_queue_is_taken_back)
{
	open_talk("2025-06-18");
	(void)job(&t, NULL);
	(void)snprintf(t.output, sizeof(t.output), "once\n");
	(void)call("1", "task_output", READ);
	cancel("1");
	CHECK_STR(last(&t), "(taken back)");
	CHECK(has(call("2", "task_output", READ), "once"));
	talk_close(&t);
}

TEST(a_reply_that_was_written_cannot_be_cancelled)
{
	open_talk("2025-06-18");
	(void)job(&t, NULL);
	(void)snprintf(t.output, sizeof(t.output), "once\n");
	(void)call("1", "task_output", READ);
	deliver(&t);
	cancel("1");
	CHECK(has(call("2", "task_output", READ), "(no new output)"));
	talk_close(&t);
}

TEST(a_cancelled_wait_is_not_answered_and_its_task_lives)
{
	errand_task task;
	size_t before;

	open_talk("2025-06-18");
	task = job(&t, NULL);
	before = t.count;
	(void)call("1", "task_output", WAIT);
	cancel("1.0");
	CHECK_INT(t.count, before);
	CHECK(has(call("2", "task_list", "{}"), "job-1 [job] running"));
	job_ends(&t, task);
	CHECK(has(call("3", "task_list", "{}"), NOTICE("1")));
	talk_close(&t);
}

TEST(a_string_id_does_not_cancel_a_number)
{
	errand_task task;

	open_talk("2025-06-18");
	task = job(&t, NULL);
	(void)call("1", "task_output", WAIT);
	cancel("\"1\"");
	cancel("null");
	cancel("\"i\"");
	job_ends(&t, task);
	CHECK(has(last(&t), "\"id\":1,"));
	CHECK(has(last(&t), "[status: completed, exit code: 0]"));
	talk_close(&t);
}

TEST(a_client_that_goes_returns_what_it_was_owed)
{
	open_talk("2025-06-18");
	(void)job(&t, NULL);
	(void)snprintf(t.output, sizeof(t.output), "once\n");
	(void)call("1", "task_output", READ);
	(void)call("2", "task_output", WAIT);
	talk_close(&t);
}

TEST(replies_say_so_while_nothing_can_be_kept)
{
	open_talk("2025-06-18");
	mcp_server_unsaved(t.server, "no \"space\"");
	CHECK(has(call("1", "task_list", "{}"),
		  "\"_meta\":{\"errand/unsaved\":\"no \\\"space\\\"\"}"));
	mcp_server_unsaved(t.server, NULL);
	CHECK(!has(call("2", "task_list", "{}"), "unsaved"));
	talk_close(&t);
}

/* ---- notices ---- */

TEST(a_notice_is_the_last_block_of_the_next_reply_and_comes_once)
{
	open_talk("2025-06-18");
	job_ends(&t, job(&t, NULL));
	(void)call("1", "task_list", "{}");
	CHECK(has(last(&t), "completed — work\"},{\"type\":\"text\",\"text\":\"" NOTICE(
				    "1") "\"}],\"isError\":false"));
	deliver(&t);
	CHECK(!has(call("2", "task_list", "{}"), "Read its output"));
	talk_close(&t);
}

TEST(several_notices_are_one_block_in_order)
{
	errand_task one, two;

	open_talk("2025-06-18");
	one = job(&t, NULL);
	two = job(&t, NULL);
	job_ends(&t, two);
	job_ends(&t, one);
	CHECK(has(call("1", "task_list", "{}"), NOTICE("2") "\\n" NOTICE("1")));
	talk_close(&t);
}

TEST(notices_go_with_errors_too)
{
	open_talk("2025-06-18");
	job_ends(&t, job(&t, NULL));
	CHECK(has(call("1", "task_output", "{\"task_id\":\"\"}"), NOTICE("1")));
	CHECK(has(last(&t), "\"isError\":true"));
	talk_close(&t);
}

TEST(d6_a_notice_that_was_not_delivered_comes_again)
{
	open_talk("2025-06-18");
	job_ends(&t, job(&t, NULL));
	(void)call("1", "task_list", "{}");
	lose(&t);
	CHECK(has(call("2", "task_list", "{}"), NOTICE("1")));
	talk_close(&t);
}

TEST(d14_a_reply_that_shows_the_end_withdraws_the_notice)
{
	open_talk("2025-06-18");
	job_ends(&t, job(&t, NULL));
	CHECK(has(call("1", "task_output", READ), "[status: completed, exit code: 0]"));
	CHECK(!has(last(&t), "Read its output"));
	deliver(&t);
	CHECK(!has(call("2", "task_list", "{}"), "Read its output"));
	talk_close(&t);
}

TEST(d14_a_lost_reply_that_showed_the_end_leaves_the_notice)
{
	open_talk("2025-06-18");
	job_ends(&t, job(&t, NULL));
	(void)call("1", "task_output", READ);
	lose(&t);
	CHECK(has(call("2", "task_list", "{}"), NOTICE("1")));
	talk_close(&t);
}

TEST(d14_a_notice_that_comes_back_before_a_shown_end_is_delivered_is_not_sent_again)
{
	open_talk("2025-06-18");
	job_ends(&t, job(&t, NULL));
	(void)call("1", "task_list", "{}");
	(void)call("2", "task_output", READ);
	say(&t, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\","
		"\"params\":{\"requestId\":1}}");
	CHECK(!has(call("3", "task_list", "{}"), "Read its output"));
	deliver(&t);
	CHECK(!has(call("4", "task_list", "{}"), "Read its output"));
	talk_close(&t);
}

TEST(d14_a_notice_that_comes_back_after_the_end_was_shown_is_withdrawn)
{
	open_talk("2025-06-18");
	job_ends(&t, job(&t, NULL));
	(void)call("1", "task_list", "{}");
	CHECK(has(last(&t), "Read its output"));
	(void)call("2", "task_output", READ);
	/* The second reply is delivered, the first is not. */
	mcp_sent(t.mcp, t.tokens[t.count - 1]);
	t.tokens[t.count - 1] = 0;
	lose(&t);
	CHECK(!has(call("3", "task_list", "{}"), "Read its output"));
	talk_close(&t);
}

TEST(d14_a_kill_of_an_ended_task_withdraws_its_notice)
{
	open_talk("2025-06-18");
	job_ends(&t, job(&t, NULL));
	CHECK(has(call("1", "task_kill", READ), "had already finished"));
	CHECK(!has(last(&t), "Read its output"));
	deliver(&t);
	CHECK(!has(call("2", "task_list", "{}"), "Read its output"));
	talk_close(&t);
}

/* ---- owners ---- */

TEST(only_a_kill_of_an_ended_task_of_ones_own_reaches_what_it_left)
{
	open_talk("2025-06-18");
	(void)job(&t, NULL);
	CHECK(has(call("1", "task_kill", READ), "requested cancellation"));
	CHECK_STR(t.killed_late, "");
	CHECK(has(call("2", "task_output", WAIT), "[status: killed"));
	CHECK_STR(t.killed_late, "");
	CHECK(has(call("3", "task_kill", "{\"task_id\":\"job-9\"}"), "unknown task"));
	CHECK_STR(t.killed_late, "");
	CHECK(has(call("4", "task_kill", READ), "had already finished"));
	CHECK_STR(t.killed_late, "job-1");
	talk_close(&t);
}

TEST(an_owner_sees_only_its_own_tasks_and_notices)
{
	open_talk("2025-06-18");
	job_ends(&t, job(&t, "a"));
	CHECK(has(call("1", "task_list", "{}"), "(no background tasks)"));
	CHECK(has(call_as("2", "{\"threadId\":\"b\"}", "task_output", READ),
		  "task job-1 belongs to another session"));
	CHECK(!has(last(&t), "Read its output"));
	CHECK(has(call_as("3", "{\"threadId\":\"a\"}", "task_list", "{}"), NOTICE("1")));
	talk_close(&t);
}

TEST(a_thread_comes_before_an_owner_key)
{
	open_talk("2025-06-18");
	(void)job(&t, "a");
	CHECK(has(call_as("1", "{\"errand/owner\":\"a\"}", "task_list", "{}"), "job-1"));
	CHECK(has(call_as("2", "{\"threadId\":\"b\",\"errand/owner\":\"a\"}", "task_list",
			  "{}"),
		  "(no background tasks)"));
	talk_close(&t);
}

TEST(a_bad_owner_key_is_refused_rather_than_ignored)
{
	open_talk("2025-06-18");
	CHECK(has(call_as("1", "{\"errand/owner\":7}", "task_list", "{}"),
		  "\"code\":-32602"));
	CHECK(has(call_as("2", "{\"errand/owner\":\"\"}", "task_list", "{}"),
		  "\"code\":-32602"));
	CHECK(has(
		call_as("3", "{\"threadId\":7,\"errand/owner\":\"a\"}", "task_list", "{}"),
		"_meta[\\\"threadId\\\"] must be a non-empty string"));
	CHECK(has(call_as("4", "{\"threadId\":null}", "task_list", "{}"), "\"result\""));
	talk_close(&t);
}

/* ---- progress ---- */

TEST(progress_comes_every_five_seconds_until_the_answer)
{
	errand_task task;
	size_t before;

	open_talk("2025-06-18");
	task = job(&t, NULL);
	(void)call_as("1", "{\"progressToken\":\"p\"}", "task_output", WAIT);
	before = t.count;
	CHECK_INT(mcp_deadline(t.mcp), 5000);
	mcp_tick(t.mcp, 4999);
	CHECK_INT(t.count, before);
	mcp_tick(t.mcp, t.now = 5000);
	CHECK_STR(last(&t), "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\","
			    "\"params\":{\"progressToken\":\"p\",\"progress\":5,"
			    "\"message\":\"5 s\"}}");
	mcp_tick(t.mcp, t.now = 10000);
	CHECK(has(last(&t), "\"progress\":10"));
	job_ends(&t, task);
	CHECK(mcp_deadline(t.mcp) == INT64_MAX);
	talk_close(&t);
}

TEST(a_slow_reader_gets_no_progress_and_without_a_token_there_is_none)
{
	size_t before;

	open_talk("2025-06-18");
	(void)job(&t, NULL);
	(void)call("1", "task_output", WAIT);
	CHECK(mcp_deadline(t.mcp) == INT64_MAX);
	(void)call_as("2", "{\"progressToken\":1.0}", "task_output", WAIT);
	before = t.count;
	t.is_behind = true;
	mcp_tick(t.mcp, 5000);
	CHECK_INT(t.count, before);
	t.is_behind = false;
	mcp_tick(t.mcp, 10000);
	CHECK(has(last(&t), "\"progressToken\":1.0,\"progress\":5"));
	cancel("2");
	CHECK(mcp_deadline(t.mcp) == INT64_MAX);
	talk_close(&t);
}

/* ---- batches ---- */

#define PING(id) "{\"jsonrpc\":\"2.0\",\"id\":" id ",\"method\":\"ping\"}"

TEST(batches_are_refused_unless_the_version_has_them)
{
	open_talk("2025-06-18");
	say(&t, "[" PING("1") "]");
	CHECK(has(last(&t), "\"id\":null,\"error\":{\"code\":-32600"));
	talk_close(&t);
}

TEST(a_batch_is_answered_as_one_array_when_all_is_done)
{
	errand_task task;
	size_t before;

	open_talk("2025-03-26");
	task = job(&t, NULL);
	before = t.count;
	say(&t,
	    "[" PING(
		    "1") ",{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\","
			 "\"params\":{\"name\":\"task_output\",\"arguments\":" WAIT "}},7,"
			 "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}]");
	CHECK_INT(t.count, before);
	job_ends(&t, task);
	CHECK_INT(t.count, before + 1);
	CHECK_INT(last(&t)[0], '[');
	CHECK(has(last(&t), "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}},"));
	CHECK(has(last(&t), "\"id\":null,\"error\":{\"code\":-32600"));
	CHECK(has(last(&t), "\"id\":2,\"result\""));
	deliver(&t);
	CHECK(is_reported("job-1"));
	talk_close(&t);
}

TEST(an_empty_batch_is_refused_one_of_notifications_is_not_answered)
{
	size_t before;

	open_talk("2025-03-26");
	say(&t, "[]");
	CHECK(has(last(&t), "\"code\":-32600"));
	before = t.count;
	say(&t, "[{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}]");
	CHECK_INT(t.count, before);
	talk_close(&t);
}

TEST(a_cancelled_member_leaves_its_batch)
{
	open_talk("2025-03-26");
	(void)job(&t, NULL);
	say(&t,
	    "[" PING("1") ",{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\","
			  "\"params\":{\"name\":\"task_output\",\"arguments\":" WAIT "}}]");
	cancel("2");
	CHECK_STR(last(&t), "[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}]");
	talk_close(&t);
}

TEST(a_client_that_goes_amid_a_batch_leaves_nothing)
{
	open_talk("2025-03-26");
	(void)job(&t, NULL);
	say(&t,
	    "[" PING("1") ",{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\","
			  "\"params\":{\"name\":\"task_output\",\"arguments\":" WAIT "}}]");
	talk_close(&t);
}

/* ---- limits ---- */

TEST(a_line_that_was_too_long_is_refused_without_an_id)
{
	open_talk(NULL);
	mcp_line_too_long(t.mcp, 1);
	CHECK(has(last(&t), "\"id\":null,\"error\":{\"code\":-32600"));
	talk_close(&t);
}

/* Line feeds at the start of the text in the last reply's first block. */
static size_t line_feeds(void)
{
	const char *text = strstr(last(&t), "\"text\":\"") + 8;
	size_t n = 0;

	for (; text[2 * n] == '\\' && text[2 * n + 1] == 'n'; n++)
		;
	return n;
}

TEST(facts_are_the_first_to_go_from_a_reply_that_is_too_long)
{
	open_talk("2025-06-18");
	(void)job(&t, NULL);
	job_ends(&t, job(&t, NULL));
	t.facts = 10000;
	t.bulk = MIB(2) - 1500; /* each twice, and twice as long in JSON */
	(void)call("1", "task_output", READ);
	CHECK(!has(last(&t), "errand/facts"));
	CHECK(has(last(&t), "errand/task") && has(last(&t), "task job-2"));
	CHECK(line_feeds() == t.bulk);
	deliver(&t);
	CHECK(has(call("2", "task_output", READ), "errand/facts"));
	talk_close(&t);
}

TEST(a_page_too_long_for_two_copies_of_its_text_loses_nothing)
{
	size_t total = 0, pages = 0;

	open_talk("2025-06-18");
	(void)job(&t, NULL);
	t.bulk = MIB(3);
	while (total < t.bulk && ++pages < 10) {
		CHECK(has(call("1", "task_output", READ), "\"isError\":false"));
		CHECK(strlen(last(&t)) <= MAX_REPLY_LINE);
		CHECK(has(last(&t), "\"task\":{\"id\":\"job-1\""));
		total += line_feeds();
		deliver(&t);
	}
	CHECK_INT(total, t.bulk);
	talk_close(&t);
}

TEST(a_result_that_no_line_can_hold_is_an_error_and_stays_unread)
{
	open_talk("2025-06-18");
	(void)job(&t, NULL);
	t.bulk = MIB(20);
	(void)call("1", "task_output", READ);
	CHECK(strlen(last(&t)) <= MAX_REPLY_LINE);
	deliver(&t);
	if (line_feeds() == 0) {
		CHECK(has(last(&t), "nothing of it was consumed"));
		t.bulk = 2;
		CHECK(has(call("2", "task_output", READ), "\"text\":\"\\n\\n[status"));
	}
	talk_close(&t);
}

TEST(too_many_requests_in_flight_are_refused_until_some_end)
{
	char id[20];

	talk_open(&t, false);
	(void)ask("\"i\"", "initialize", "{\"protocolVersion\":\"2025-06-18\"}");
	(void)job(&t, NULL);
	for (int i = 0; i < 10000; i++) {
		(void)snprintf(id, sizeof(id), "%d", i);
		(void)call(id, "task_output", WAIT);
	}
	CHECK(has(call("\"more\"", "task_output", WAIT), "too many requests in flight"));
	cancel("17");
	CHECK(!has(call("\"again\"", "task_list", "{}"), "too many"));
	talk_close(&t);
}
