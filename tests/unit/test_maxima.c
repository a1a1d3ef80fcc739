/* SPDX-License-Identifier: MIT */
/* The maxima of a host: lowered, raised, refused. */
#include "echo.h"

static int new_host(const char *limits, errand_host **ret, errand_error **e)
{
	struct errand_host_options o = {
		.size = sizeof(o), .abi = ERRAND_ABI, .warn = on_warn};

	o.limits_json = str(limits);
	o.config_json = str("{\"maxConcurrentTasksPerOwner\":null}");
	return errand_host_new(&o, ret, e);
}

/* As fresh(), under @limits. */
static void fresh_within(const char *limits)
{
	bare(NULL);
	errand_host_free(core.host);
	CHECK_INT(new_host(limits, &core.host, NULL), 0);
	run();
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
}

static const char *refusal(const char *limits, int code)
{
	errand_error *e = NULL;
	errand_host *h = NULL;

	CHECK_INT(new_host(limits, &h, &e), code);
	CHECK(!h);
	return message(e);
}

/* @len bytes of 'x', with @before and @after around. */
static char *filled(const char *before, size_t len, const char *after)
{
	size_t first = strlen(before), last = strlen(after);
	char *s = malloc(first + len + last + 1);

	CHECK(s);
	memcpy(s, before, first);
	memset(s + first, 'x', len);
	memcpy(s + first + len, after, last + 1);
	return s;
}

/* The member "text" of what a read of the first task shows: its length. */
static size_t length_read(void)
{
	errand_text *t = NULL;
	errand_lease lease;
	const char *json, *text;

	CHECK_INT(errand_read(core.host, core.work[0].id, ERRAND_NUL, core.alice, &lease,
			      &t, NULL),
		  0);
	json = errand_text_data(t, NULL);
	text = strstr(json, "\"text\":\"") + 8;
	json = strchr(text, '"');
	errand_text_free(t);
	return (size_t)(json - text);
}

/* ---- what is refused ---- */

TEST(a_limit_out_of_its_range_names_the_range)
{
	CHECK_STR(
		refusal("{\"argsBytes\":1023}", ERRAND_EREFUSED),
		"limits: argsBytes: expected a whole number from 1024 to 67108864, got 1023");
	CHECK_STR(
		refusal("{\"tasks\":1000000001}", ERRAND_EREFUSED),
		"limits: tasks: expected a whole number from 1 to 1000000000, got 1000000001");
	CHECK_STR(refusal("{\"nesting\":1025}", ERRAND_EREFUSED),
		  "limits: nesting: expected a whole number from 16 to 1024, got 1025");
}

TEST(a_limit_is_a_whole_number)
{
	CHECK(strstr(refusal("{\"tasks\":1.5}", ERRAND_EREFUSED), "got 1.5"));
	CHECK(strstr(refusal("{\"tasks\":null}", ERRAND_EREFUSED), "got null"));
	CHECK(strstr(refusal("{\"tasks\":\"7\"}", ERRAND_EREFUSED), "got \"7\""));
	CHECK(strstr(refusal("{\"tasks\":-0}", ERRAND_EREFUSED), "got 0"));
}

TEST(a_number_that_no_double_holds_is_shown_as_it_was_written)
{
	CHECK_STR(refusal("{\"tasks\": 1e999 }", ERRAND_EREFUSED),
		  "limits: tasks: expected a whole number from 1 to 1000000000, got 1e999");
	CHECK(strstr(refusal("{\"argsBytes\":[1, -1e400],\"tasks\":1}", ERRAND_EREFUSED),
		     "got [1, -1e400]"));
	CHECK(strstr(
		refusal("{\"argsBytes\":1e999,\"tasks\":0}", ERRAND_EREFUSED),
		"argsBytes: expected a whole number from 1024 to 67108864, got 1e999"));
	CHECK(strstr(refusal("{\"tasks\":0,\"argsBytes\":1e999}", ERRAND_EREFUSED),
		     "got 0"));
}

TEST(a_limit_there_is_not_is_a_mistake)
{
	CHECK_STR(refusal("{\"argBytes\":5000}", ERRAND_EREFUSED),
		  "limits: there is none called \"argBytes\"");
}

TEST(limits_are_an_object_in_json)
{
	CHECK_STR(refusal("[]", ERRAND_EREFUSED), "limits: expected an object");
	CHECK(strstr(refusal("{", ERRAND_EJSON), "limits: "));
	CHECK(strstr(refusal("", ERRAND_EJSON), "limits: "));
}

TEST(json_text_must_hold_what_is_made_of_a_result_and_of_arguments)
{
	CHECK_STR(refusal("{\"resultBytes\":16777216}", ERRAND_EREFUSED),
		  "limits: resultBytes of 16777216 needs jsonBytes of 134217728 at least, "
		  "not 67108864");
	CHECK_STR(refusal("{\"argsBytes\":16777217}", ERRAND_EREFUSED),
		  "limits: argsBytes of 16777217 needs jsonBytes of 67108868 at least, not "
		  "67108864");
}

TEST(the_bounds_themselves_are_taken)
{
	fresh_within("{}");
	fresh_within("{\"argsBytes\":1024,\"labelBytes\":64,\"definitionBytes\":4096,"
		     "\"detailBytes\":64,\"resultBytes\":1024,\"nesting\":16,\"tasks\":1}");
	fresh_within("{\"argsBytes\":67108864,\"labelBytes\":1048576,"
		     "\"definitionBytes\":1048576,\"detailBytes\":1048576,"
		     "\"resultBytes\":67108864,\"jsonBytes\":1073741824,\"nesting\":1024,"
		     "\"tasks\":1000000000}");
	CHECK_STR(call(core.alice, "task_list", "{}"), "(no background tasks)");
}

/* ---- what is lowered ---- */

static int insert(size_t content, errand_error **e)
{
	char *m = filled("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"",
			 content, "\"}]}");
	int rc = errand_insert(core.host, core.alice, ERRAND_NEXT_STEP, m, ERRAND_NUL, NULL,
			       e);

	free(m);
	return rc;
}

TEST(arguments_messages_and_reasons_are_bounded)
{
	struct errand_call_options o = {.size = sizeof(o), .tool = str("x")};
	errand_error *e = NULL;
	char *text = filled("", 1025, "");

	fresh_within("{\"argsBytes\":1024}");
	o.on_result = on_result;
	o.args = str(text);
	CHECK_INT(errand_call_new(core.host, &o, NULL, &e), ERRAND_ELIMIT);
	CHECK_STR(message(e), "args are over 1024 bytes");
	o.args.len = 1024;
	CHECK_INT(errand_call_new(core.host, &o, NULL, NULL), 0);
	CHECK_INT(insert(900, NULL), 0);
	CHECK_INT(insert(1000, &e), ERRAND_ELIMIT);
	CHECK_STR(message(e), "message is over 1024 bytes");
	start(core.alice, FINAL);
	CHECK_INT(errand_kill(core.host, "bash-1", ERRAND_NUL, core.alice, text, 1025, NULL,
			      &e),
		  ERRAND_ELIMIT);
	CHECK_STR(message(e), "reason is over 1024 bytes");
	free(text);
}

TEST(kinds_and_labels_are_bounded)
{
	struct errand_task_spec s;
	char *text = filled("", 65, "");

	fresh_within("{\"labelBytes\":64}");
	s = spec(core.alice, FINAL);
	s.label = str(text);
	CHECK_INT(try_start(&s), ERRAND_ELIMIT);
	CHECK_STR(core.message, "task label is over 64 bytes");
	s = spec(core.alice, FINAL);
	s.kind = str(text);
	CHECK_INT(try_start(&s), ERRAND_ELIMIT);
	CHECK_STR(core.message, "task kind is over 64 bytes");
	s.kind.len = 64;
	CHECK_INT(try_start(&s), 0);
	free(text);
}

TEST(definitions_are_bounded)
{
	char *text = filled("", 4097, "");
	struct errand_agent_options a = {.size = sizeof(a), .session = str(text)};
	errand_error *e = NULL;
	errand_agent id;
	errand_reg r;

	fresh_within("{\"definitionBytes\":4096}");
	CHECK_INT(errand_agent_new(core.host, &a, &id, &e), ERRAND_ELIMIT);
	CHECK_STR(message(e), "session id is over 4096 bytes");
	CHECK_INT(errand_restrict(core.host, 0, text, 4097, &r, &e), ERRAND_ELIMIT);
	CHECK_STR(message(e), "filter is over 4096 bytes");
	a.session.len = 4096;
	CHECK_INT(errand_agent_new(core.host, &a, &id, NULL), 0);
	free(text);
}

TEST(details_and_outputs_are_cut)
{
	struct work *w;
	char *text = filled("", 2000, "");

	fresh_within("{\"detailBytes\":64,\"resultBytes\":1024}");
	w = start(core.alice, FINAL);
	settle(w, ERRAND_COMPLETED, text, text);
	run();
	CHECK_INT(strlen(member(snapshot(w, core.alice), "detail")), 64);
	CHECK_INT(length_read(), 1024);
	free(text);
}

static void no_wake(void *ud)
{
	(void)ud;
}

TEST(details_and_outputs_from_another_thread_are_cut_too)
{
	static errand_mailbox *box;
	struct work *w;
	char *text = filled("", 2000, "");

	fresh_within("{\"detailBytes\":64,\"resultBytes\":1024}");
	w = start(core.alice, FINAL);
	CHECK_INT(errand_mailbox_new(core.host, no_wake, NULL, NULL, &box, NULL), 0);
	CHECK_INT(errand_post_settle(box, w->task, ERRAND_COMPLETED, text, ERRAND_NUL, text,
				     ERRAND_NUL),
		  0);
	run();
	CHECK_INT(strlen(member(snapshot(w, core.alice), "detail")), 64);
	CHECK_INT(length_read(), 1024);
	errand_mailbox_free(box);
	free(text);
}

static void nest(char *text, int levels)
{
	memset(text, '[', (size_t)levels);
	memset(text + levels, ']', (size_t)levels);
	text[2 * levels] = 0;
}

TEST(arguments_and_messages_nest_so_deep)
{
	char args[200], message_json[300], deep[100];
	errand_error *e = NULL;

	fresh_within("{\"nesting\":16}");
	nest(deep, 15);
	(void)snprintf(args, sizeof(args), "{\"x\":%s}", deep);
	CHECK_STR(call(core.alice, "task_list", args), "(no background tasks)");
	nest(deep, 16);
	(void)snprintf(args, sizeof(args), "{\"x\":%s}", deep);
	CHECK_STR(call(core.alice, "task_list", args),
		  "Error: arguments: nested deeper than 16 levels");
	(void)snprintf(message_json, sizeof(message_json),
		       "{\"role\":\"user\",\"content\":%s}", deep);
	CHECK_INT(errand_insert(core.host, core.alice, ERRAND_NEXT_STEP, message_json,
				ERRAND_NUL, NULL, &e),
		  ERRAND_ELIMIT);
	CHECK_STR(message(e), "message: nested deeper than 16 levels");
}

/* Passes on what it is shown, not byte for byte. */
static void go_on(void *ud, errand_host *h, errand_frame f,
		  const struct errand_frame_view *v)
{
	(void)ud;
	(void)v;
	CHECK_INT(errand_next(h, f), 0);
}

static void rewrite(void *ud, errand_host *h, errand_frame f,
		    const struct errand_frame_view *v)
{
	char copy[200];

	(void)ud;
	(void)snprintf(copy, sizeof(copy), " %.*s", (int)v->answer_json.len,
		       v->answer_json.ptr);
	CHECK_INT(errand_answer(h, f, copy, ERRAND_NUL), 0);
}

static void replace(void *ud, errand_host *h, errand_frame f,
		    const struct errand_frame_view *v)
{
	char copy[200];

	(void)v;
	(void)snprintf(copy, sizeof(copy), "{\"kind\":\"accept\",\"value\":%s}",
		       (const char *)ud);
	CHECK_INT(errand_answer(h, f, copy, ERRAND_NUL), 0);
}

static void listen_to(int stage, errand_enter_fn enter, errand_enter_fn back, char *ud)
{
	struct errand_listener l = {
		.size = sizeof(l), .stage = stage, .enter = enter, .back = back, .ud = ud};

	CHECK_INT(errand_listen(core.host, 0, &l, NULL, NULL), 0);
}

static bool is_taken(const char *value)
{
	tool.answer = value;
	(void)begin("{}");
	run();
	return strstr(core.result, "\"isError\":false") != NULL;
}

TEST(a_value_nests_so_deep_whoever_has_looked_at_it)
{
	struct errand_tool t = echo();
	char deep[100], deeper[100];

	fresh_within("{\"nesting\":16}");
	t.output_schema = str("{}");
	CHECK_INT(add(&t), 0);
	nest(deep, 16);
	nest(deeper, 17);
	CHECK(is_taken(deep) && !is_taken(deeper));
	listen_to(ERRAND_STAGE_AROUND, go_on, rewrite, NULL);
	CHECK(is_taken(deep) && !is_taken(deeper));
	listen_to(ERRAND_STAGE_POST, replace, NULL, deep);
	CHECK(is_taken("1"));
	listen_to(ERRAND_STAGE_POST, go_on, NULL, NULL);
	CHECK(is_taken("1"));
}

TEST(records_are_counted)
{
	struct errand_task_spec s;
	struct work *w;

	fresh_within("{\"tasks\":2}");
	w = start(core.alice, FINAL);
	start(core.alice, FINAL);
	s = spec(core.alice, FINAL);
	CHECK_INT(try_start(&s), ERRAND_ELIMIT);
	CHECK_STR(core.message, "over 2 tasks");
	end(w);
	CHECK_INT(
		errand_kill(core.host, w->id, ERRAND_NUL, core.alice, NULL, 0, NULL, NULL),
		0);
	CHECK_INT(errand_task_drop(core.host, w->task, NULL), 0);
	s = spec(core.alice, FINAL);
	CHECK_INT(try_start(&s), 0);
}

/* ---- what is raised ---- */

TEST(a_raised_result_holds_more)
{
	size_t len = MAX_RESULT + 100;
	char *text = filled("", len, "");
	struct work *w;

	fresh_within("{\"resultBytes\":16777216,\"jsonBytes\":134217728}");
	w = start(core.alice, FINAL);
	settle(w, ERRAND_COMPLETED, NULL, text);
	run();
	CHECK_INT(length_read(), len);
	(void)output_of(w);
	CHECK(core.result_len > 2 * len); /* content and value */
	CHECK(strstr(core.result, "x\\n[status: completed]"));
	free(text);
}

TEST(raised_arguments_reach_the_tool)
{
	char *args = filled("{\"task_id\":\"", MAX_ARGS, "\"}");

	fresh_within("{\"argsBytes\":33554432,\"jsonBytes\":134217728}");
	CHECK(strncmp(call(core.alice, "task_output", args), "Error: unknown task xxx",
		      23) == 0);
	free(args);
}

TEST(a_raised_log_event_is_taken)
{
	char *event = filled("{\"type\":\"x\",\"data\":\"", MAX_JSON_TEXT, "\"}");
	uint64_t turn;

	fresh_within("{\"jsonBytes\":134217728}");
	CHECK_INT(errand_turn_open(core.host, core.alice, &turn, NULL), 0);
	CHECK_INT(errand_log(core.host, core.alice, event, ERRAND_NUL, NULL), 0);
	fresh_within("{}");
	CHECK_INT(errand_turn_open(core.host, core.alice, &turn, NULL), 0);
	CHECK_INT(errand_log(core.host, core.alice, event, ERRAND_NUL, NULL),
		  ERRAND_ELIMIT);
	free(event);
}
