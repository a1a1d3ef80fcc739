/* SPDX-License-Identifier: MIT */
/* Tests of what an agent may call: layers, shadowing, restrictions, cards (spec 3.9, 4.8). */
#include "scopes.h"

static void answer(void *ud, errand_host *h, errand_frame f,
		   const struct errand_frame_view *v)
{
	(void)v;
	CHECK_INT(errand_answer(h, f, ud, ERRAND_NUL), 0);
}

static errand_reg add_tool(errand_scope s, const char *name, const char *value)
{
	union {
		const char *in;
		void *out;
	} ud = {.in = value};
	struct errand_tool t = {.size = sizeof(t),
				.name = str(name),
				.params_schema = str("{}"),
				.output_schema = str("{}"),
				.exec = answer,
				.ud = ud.out};
	errand_reg r = 0;

	CHECK_INT(errand_tool_add(core.host, s, &t, &r, NULL), 0);
	return r;
}

static int try_restrict(errand_scope s, const char *filter)
{
	errand_error *e = NULL;
	errand_reg r;

	return refused(errand_restrict(core.host, s, filter, ERRAND_NUL, &r, &e), &e);
}

static errand_reg restrict_to(errand_scope s, const char *filter)
{
	errand_reg r = 0;

	CHECK_INT(errand_restrict(core.host, s, filter, ERRAND_NUL, &r, NULL), 0);
	return r;
}

/* ---- layers ---- */

TEST(the_nearest_tool_of_a_name_is_called)
{
	errand_scope top, low;
	errand_agent x;
	errand_reg near;

	bare(NULL);
	top = preset();
	low = preset_in(top);
	x = agent_in("x", low);
	(void)add_tool(0, "t", "1");
	(void)add_tool(top, "t", "2");
	near = add_tool(low, "t", "3");
	CHECK_STR(call(x, "t", "{}"), "3");
	CHECK_STR(call(agent_in("y", top), "t", "{}"), "2");
	CHECK_STR(call(agent("z"), "t", "{}"), "1");
	CHECK_STR(call(0, "t", "{}"), "1");
	CHECK_INT(errand_unregister(core.host, near), 0);
	CHECK_STR(call(x, "t", "{}"), "2");
}

TEST(a_shadowed_tool_is_listed_once_in_its_place)
{
	errand_scope s;
	errand_agent x;

	bare(NULL);
	s = preset();
	x = agent_in("x", s);
	(void)add_tool(s, "b", "1");
	(void)add_tool(s, "d", "1");
	(void)add_tool(0, "c", "2");
	(void)add_tool(0, "b", "2");
	(void)add_tool(0, "a", "2");
	CHECK_STR(tools_of(x), "c b a d");
	CHECK_STR(tools_of(0), "c b a");
}

TEST(names_are_sorted_by_utf16_unit)
{
	errand_text *t = NULL;

	bare(NULL);
	(void)add_tool(0, "\xef\xbc\xa1", "1");     /* U+FF21 */
	(void)add_tool(0, "\xf0\x9f\x98\x80", "1"); /* U+1F600, first unit 0xd83d */
	(void)add_tool(0, "\xe4\xb8\xad", "1");     /* U+4E2D */
	(void)add_tool(0, "ab", "1");
	(void)add_tool(0, "a", "1");
	CHECK_INT(errand_tools(core.host, 0, 0, &t, NULL), 0);
	CHECK_STR(joined(t, "name"), "a ab \xe4\xb8\xad \xf0\x9f\x98\x80 \xef\xbc\xa1");
}

/* ---- restrictions ---- */

TEST(what_is_denied_is_neither_listed_nor_callable)
{
	fresh();
	(void)restrict_to(core.alice, "{\"deny\":[\"task_output\",\"task_kill\"]}");
	CHECK_STR(tools_of(core.alice), "task_list");
	CHECK_STR(tools_of(core.bob), "task_output task_list task_kill");
	CHECK_STR(call(core.alice, "task_kill", "{\"task_id\":\"bash-1\"}"),
		  "Error: unknown tool \"task_kill\"");
	CHECK_STR(result_code(), "ToolNotFoundError/UNKNOWN_TOOL");
	CHECK_STR(call(core.alice, "task_list", "{}"), "(no background tasks)");
	CHECK_STR(sections_of(core.alice), "tool:tasks");
}

TEST(what_is_not_allowed_is_hidden)
{
	errand_reg r;

	fresh();
	r = restrict_to(core.alice, "{\"allow\":[\"task_list\",\"task_list\"]}");
	CHECK_STR(tools_of(core.alice), "task_list");
	(void)add_tool(0, "later", "1");
	CHECK_STR(tools_of(core.alice), "task_list");
	CHECK_INT(errand_unregister(core.host, r), 0);
	CHECK_STR(tools_of(core.alice), "task_output task_list task_kill later");
	(void)restrict_to(core.alice, "{\"allow\":[]}");
	CHECK_STR(tools_of(core.alice), "");
}

TEST(restrictions_of_a_chain_add_up)
{
	errand_scope top, low;
	errand_agent x;

	fresh();
	top = preset();
	low = preset_in(top);
	x = agent_in("x", low);
	(void)restrict_to(top, "{\"allow\":[\"task_list\",\"task_kill\"],\"deny\":null}");
	(void)restrict_to(low, "{\"deny\":[\"task_kill\"]}");
	CHECK_STR(tools_of(x), "task_list");
	CHECK_STR(tools_of(agent_in("y", top)), "task_list task_kill");
	(void)restrict_to(0, "{\"deny\":[\"task_list\"]}");
	CHECK_STR(tools_of(x), "");
	CHECK_STR(tools_of(0), "task_output task_kill");
}

TEST(tools_of_scopes_are_not_masked)
{
	errand_scope s;
	errand_agent x;

	bare(NULL);
	s = preset();
	x = agent_in("x", s);
	(void)add_tool(0, "t", "global");
	(void)restrict_to(s, "{\"allow\":[]}");
	CHECK_STR(tools_of(x), "");
	(void)add_tool(s, "t", "\"near\"");
	CHECK_STR(tools_of(x), "t");
	CHECK_STR(call(x, "t", "{}"), "\"near\"");
}

TEST(d19_an_empty_filter_is_a_mistake)
{
	static const char text[] =
		"tools.restrict({}) is a no-op: pass `allow` and/or `deny` (an empty filter "
		"is almost always a materialized-empty-config bug)";

	fresh();
	CHECK_INT(try_restrict(core.alice, "{}"), ERRAND_EREFUSED);
	CHECK_STR(core.message, text);
	CHECK_INT(try_restrict(core.alice, "{\"allow\":null}"), ERRAND_EREFUSED);
	CHECK_STR(core.message, text);
	CHECK_STR(tools_of(core.alice), "task_output task_list task_kill");
}

TEST(d19_names_that_no_global_tool_has_are_refused)
{
	errand_scope s;

	fresh();
	CHECK_INT(try_restrict(core.alice, "{\"deny\":[\"nope\",\"nada\"]}"),
		  ERRAND_EREFUSED);
	CHECK_STR(core.message, "tools.restrict() names unknown global tools \"nope\", "
				"\"nada\"; known global tools: task_kill, task_list, "
				"task_output");
	CHECK_INT(
		try_restrict(core.alice,
			     "{\"allow\":[\"task_list\",\"x\"],\"deny\":[\"task_kill\"]}"),
		ERRAND_EREFUSED);
	CHECK_STR(core.message, "tools.restrict() names unknown global tool \"x\"; known "
				"global tools: task_kill, task_list, task_output");
	bare(NULL);
	s = preset();
	(void)mount_in(s);
	CHECK_INT(try_restrict(s, "{\"deny\":[\"task_output\"]}"), ERRAND_EREFUSED);
	CHECK_STR(core.message, "tools.restrict() names unknown global tool "
				"\"task_output\"; known global tools: (none)");
}

TEST(a_filter_has_a_shape)
{
	static const char *const bad[] = {"[]", "{\"allow\":\"task_list\"}",
					  "{\"deny\":[1]}", "{\"allow\":{}}"};

	fresh();
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		CHECK_INT(try_restrict(core.alice, bad[i]), ERRAND_EARG);
	CHECK_INT(try_restrict(core.alice, "{"), ERRAND_EJSON);
	CHECK_INT(try_restrict(core.alice, NULL), ERRAND_EARG);
	CHECK_STR(tools_of(core.alice), "task_output task_list task_kill");
}

/* ---- cards ---- */

static const char *card(errand_agent a, const char *tool, const char *args)
{
	errand_text *t = NULL;

	CHECK_INT(errand_card(core.host, a, tool, args, ERRAND_NUL, &t, NULL), 0);
	return t ? text_of(t) : "(none)";
}

TEST(each_of_the_three_tools_has_a_card)
{
	fresh();
	CHECK_STR(card(core.alice, "task_output", "{\"task_id\":\"bash-1\",\"wait\":true}"),
		  "{\"card\":\"generic\",\"title\":\"Read output from background task "
		  "bash-1\",\"kind\":\"read\",\"rawInput\":\"bash-1\"}");
	CHECK_STR(card(core.alice, "task_kill", "{\"task_id\":\"\"}"),
		  "{\"card\":\"generic\",\"title\":\"Kill background task \",\"kind\":"
		  "\"execute\",\"rawInput\":\"\"}");
	CHECK_STR(card(core.alice, "task_list", ""),
		  "{\"card\":\"generic\",\"title\":\"List background tasks\",\"kind\":"
		  "\"read\"}");
	CHECK_STR(card(0, "task_list", NULL),
		  "{\"card\":\"generic\",\"title\":\"List background tasks\",\"kind\":"
		  "\"read\"}");
}

TEST(arguments_that_do_not_fit_have_no_card)
{
	fresh();
	CHECK_STR(card(core.alice, "task_output", "{}"), "(none)");
	CHECK_STR(card(core.alice, "task_output", "{\"task_id\":1}"), "(none)");
	CHECK_STR(card(core.alice, "task_output", "not json"), "(none)");
	CHECK_STR(card(core.alice, "task_output", "{\"task_id\":\"x\",\"n\":-0}"),
		  "(none)");
	CHECK_STR(card(core.alice, "task_output", "{\"task_id\":\"x\",\"n\":1e999}"),
		  "(none)");
	CHECK_STR(card(core.alice, "task_list", "[]"), "(none)");
}

TEST(a_tool_that_is_not_seen_has_no_card)
{
	fresh();
	(void)restrict_to(core.alice, "{\"deny\":[\"task_list\"]}");
	CHECK_STR(card(core.alice, "task_list", "{}"), "(none)");
	CHECK(strcmp(card(core.bob, "task_list", "{}"), "(none)") != 0);
	CHECK_STR(card(core.bob, "unheard_of", "{}"), "(none)");
}

static int make_card(void *ud, const char *args, size_t len, errand_sink *out,
		     errand_error *e)
{
	(void)args, (void)len;
	if (!ud) {
		errand_error_set(e, NULL, NULL, "no", ERRAND_NUL);
		return ERRAND_ECALLBACK;
	}
	(void)errand_sink_write(out, ud, strlen(ud));
	return 0;
}

TEST(a_card_that_fails_is_none)
{
	static char garbage[] = "{", silent[] = "";
	char *const uds[] = {NULL, garbage, silent};

	for (size_t i = 0; i < 3; i++) {
		struct errand_tool t = {.size = sizeof(t),
					.name = str("t"),
					.params_schema = str("{}"),
					.output_schema = str("{}"),
					.exec = answer,
					.card = make_card,
					.ud = uds[i]};
		errand_reg r;

		bare(NULL);
		CHECK_INT(errand_tool_add(core.host, 0, &t, &r, NULL), 0);
		CHECK_STR(card(0, "t", "{}"), "(none)");
	}
}
