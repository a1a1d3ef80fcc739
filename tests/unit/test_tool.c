/* SPDX-License-Identifier: MIT */
/* Tests of src/core/tool.c: tools are added, shown, removed, and outlive their removal. */
#include "echo.h"

TEST(a_name_is_taken_once)
{
	struct errand_tool t = echo();

	fresh_tool();
	CHECK_INT(add(&t), ERRAND_EREFUSED);
	CHECK_STR(core.message, "tool \"echo\" is already registered");
	CHECK_INT(tool.destroyed, 1);
}

TEST(a_schema_outside_the_subset_is_refused)
{
	struct errand_tool t = echo();

	fresh();
	memset(&tool, 0, sizeof(tool));
	t.params_schema = str("{\"type\":\"object\",\"minProperties\":1}");
	CHECK_INT(add(&t), ERRAND_EREFUSED);
	CHECK_STR(core.message, "params_schema is outside the supported subset at "
				"\"minProperties\"");
	t = echo();
	t.output_schema = str("nonsense");
	CHECK_INT(add(&t), ERRAND_EJSON);
	t.output_schema.ptr = NULL;
	CHECK_INT(add(&t), ERRAND_EARG);
	CHECK_INT(tool.destroyed, 3);
}

TEST(a_tool_without_a_body_is_a_mistake)
{
	struct errand_tool t = echo();

	fresh();
	t.exec = NULL;
	CHECK_INT(add(&t), ERRAND_EARG);
	t = echo();
	CHECK_INT(errand_tool_add(core.host, 4711, &t, &tool.reg, NULL), ERRAND_EGONE);
}

TEST(a_tool_that_was_removed_is_unknown)
{
	fresh_tool();
	CHECK_INT(errand_unregister(core.host, tool.reg), 0);
	CHECK_INT(tool.destroyed, 1);
	CHECK_STR(call(core.alice, "echo", "{}"), "Error: unknown tool \"echo\"");
}

TEST(a_tool_lives_until_its_last_call_has_ended)
{
	fresh_tool();
	tool.answer = NULL;
	(void)begin("{}");
	run();
	CHECK_INT(errand_unregister(core.host, tool.reg), 0);
	CHECK_INT(tool.destroyed, 0);
	CHECK_INT(errand_answer(core.host, tool.frame, "{\"s\":\"x\"}", ERRAND_NUL), 0);
	run();
	CHECK_INT(core.results, 1);
	CHECK_STR(result_code(), "");
	CHECK_INT(tool.destroyed, 1);
}

TEST(a_tool_that_is_replaced_meanwhile_is_not_mixed_up)
{
	struct errand_tool t = echo();

	fresh_tool();
	tool.answer = NULL;
	(void)begin("{}");
	run();
	CHECK_INT(errand_unregister(core.host, tool.reg), 0);
	t.output_schema = str("{\"type\":\"array\"}");
	CHECK_INT(add(&t), 0);
	CHECK_INT(errand_answer(core.host, tool.frame, "{\"s\":\"x\"}", ERRAND_NUL), 0);
	run();
	CHECK_STR(result_code(), "");
}

TEST(tools_are_shown_by_name_or_in_order)
{
	errand_text *t = NULL;
	const char *json;

	fresh_tool();
	CHECK_INT(errand_tools(core.host, core.alice, 0, &t, NULL), 0);
	json = text_of(t);
	CHECK(strstr(json, "\"echo\"") < strstr(json, "\"task_kill\""));
	CHECK(strstr(json, "\"task_list\"") < strstr(json, "\"task_output\""));
	CHECK_INT(errand_tools(core.host, 0, 1, &t, NULL), 0);
	json = text_of(t);
	CHECK(strstr(json, "\"task_output\"") < strstr(json, "\"task_list\""));
	CHECK(strstr(json, "\"task_kill\"") < strstr(json, "\"echo\""));
	CHECK_INT(errand_tools(core.host, 4711, 1, &t, NULL), ERRAND_EGONE);
}

TEST(a_tool_is_shown_with_its_schemas)
{
	errand_text *t = NULL;
	struct errand_tool o = echo();

	bare(NULL);
	memset(&tool, 0, sizeof(tool));
	CHECK_INT(add(&o), 0);
	CHECK_INT(errand_tools(core.host, 0, 0, &t, NULL), 0);
	CHECK_STR(text_of(t),
		  "[{\"name\":\"echo\",\"description\":\"Says it again.\",\"parameters\":{"
		  "\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"number\"}}},"
		  "\"outputSchema\":{\"type\":\"object\",\"properties\":{\"s\":{\"type\":"
		  "\"string\"}},\"required\":[\"s\"]},\"exclusive\":false}]");
}

TEST(half_a_pair_in_a_schema_is_replaced_where_it_is_shown)
{
	errand_text *t = NULL;
	struct errand_tool o = echo();

	bare(NULL);
	o.params_schema = str("{\"type\":\"object\",\"title\":\"\\ud800\"}");
	CHECK_INT(add(&o), 0);
	CHECK_INT(errand_tools(core.host, 0, 0, &t, NULL), 0);
	CHECK(strstr(text_of(t), "\"title\":\"\\ufffd\""));
}

TEST(a_name_is_taken_as_it_is_kept)
{
	struct errand_tool t = echo();

	fresh();
	t.name = str("t\xff");
	CHECK_INT(add(&t), 0);
	t.name = str("t\xfe");
	CHECK_INT(add(&t), ERRAND_EREFUSED);
	CHECK_STR(core.message, "tool \"t\xef\xbf\xbd\" is already registered");
}

TEST(a_schema_with_broken_bytes_is_no_json)
{
	struct errand_tool t = echo();

	fresh();
	t.params_schema = str("{\"type\":\"object\",\"title\":\"\xff\"}");
	CHECK_INT(add(&t), ERRAND_EJSON);
}
