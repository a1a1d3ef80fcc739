/* SPDX-License-Identifier: MIT */
/* Tests of prompt sections: order, scopes, shadowing, variables, assembly (spec 8.2, 8.3). */
#include <math.h>

#include "scopes.h"

static int try_add(errand_scope s, const char *name, double order, const char *text)
{
	errand_error *e = NULL;
	errand_reg r;

	return refused(
		errand_section_add(core.host, s, name, order, text, ERRAND_NUL, &r, &e),
		&e);
}

static errand_reg add(errand_scope s, const char *name, double order, const char *text)
{
	errand_reg r = 0;

	CHECK_INT(errand_section_add(core.host, s, name, order, text, ERRAND_NUL, &r, NULL),
		  0);
	return r;
}

/* The prompt, or the error's text. */
static const char *prompt(errand_agent a, const char *variables)
{
	errand_error *e = NULL;
	errand_text *t = NULL;

	if (errand_prompt(core.host, a, variables, ERRAND_NUL, &t, &e) != 0)
		return message(e);
	return text_of(t);
}

TEST(sections_stand_by_order_with_a_blank_line_between)
{
	bare(NULL);
	(void)add(0, "late", 100.5, "three");
	(void)add(0, "early", -100, "one");
	(void)add(0, "middle", 0, "two");
	CHECK_STR(prompt(0, NULL), "one\n\ntwo\n\nthree");
	CHECK_STR(sections_of(0), "early middle late");
}

TEST(of_equal_orders_the_far_and_the_older_stand_first)
{
	errand_scope top, low;
	errand_agent x;

	bare(NULL);
	top = preset();
	low = preset_in(top);
	x = agent_in("x", low);
	(void)add(x, "own", 1, "6");
	(void)add(low, "low-a", 1, "4");
	(void)add(low, "low-b", 1, "5");
	(void)add(top, "top", 1, "3");
	(void)add(0, "global-a", 1, "1");
	(void)add(0, "global-b", 1, "2");
	CHECK_STR(sections_of(x), "global-a global-b top low-a low-b own");
	CHECK_STR(prompt(x, NULL), "1\n\n2\n\n3\n\n4\n\n5\n\n6");
	CHECK_STR(prompt(0, NULL), "1\n\n2");
}

TEST(a_nearer_section_takes_the_place_of_a_farther_one)
{
	errand_scope s;
	errand_agent x;
	errand_reg r;

	bare(NULL);
	s = preset();
	x = agent_in("x", s);
	(void)add(0, "a", 1, "global a");
	(void)add(0, "b", 1, "global b");
	r = add(s, "a", 1, "near a");
	CHECK_STR(prompt(x, NULL), "near a\n\nglobal b");
	CHECK_STR(prompt(0, NULL), "global a\n\nglobal b");
	CHECK_INT(errand_unregister(core.host, r), 0);
	CHECK_STR(prompt(x, NULL), "global a\n\nglobal b");
	(void)add(s, "a", 2, "later a");
	CHECK_STR(prompt(x, NULL), "global b\n\nlater a");
}

TEST(a_name_is_taken_once_in_a_layer)
{
	errand_scope s;

	bare(NULL);
	s = preset();
	(void)add(0, "x", 1, "t");
	(void)add(s, "x", 1, "t");
	CHECK_INT(try_add(0, "x", 2, "u"), ERRAND_EREFUSED);
	CHECK_STR(core.message, "prompt section \"x\" is already registered (for a "
				"per-agent override, register through that agent's "
				"`agent.ctx` instead)");
	CHECK_INT(try_add(s, "x", 2, "u"), ERRAND_EREFUSED);
	CHECK_STR(core.message, "prompt section \"x\" is already registered in this scope");
}

TEST(an_order_is_finite)
{
	bare(NULL);
	CHECK_INT(try_add(0, "x", NAN, "t"), ERRAND_EARG);
	CHECK_STR(core.message, "prompt section \"x\" needs a finite order");
	CHECK_INT(try_add(0, "x", INFINITY, "t"), ERRAND_EARG);
	CHECK_INT(try_add(0, "x", -INFINITY, "t"), ERRAND_EARG);
	CHECK_INT(try_add(0, "", 1, "t"), ERRAND_EARG);
	CHECK_INT(try_add(0, "x", 1, NULL), ERRAND_EARG);
	CHECK_STR(sections_of(0), "");
}

TEST(empty_sections_leave_no_gap)
{
	bare(NULL);
	(void)add(0, "a", 1, "");
	(void)add(0, "b", 2, "b");
	(void)add(0, "c", 3, "{{nothing}}");
	(void)add(0, "d", 4, "d");
	CHECK_STR(prompt(0, "{\"nothing\":\"\"}"), "b\n\nd");
}

TEST(variables_are_filled_in)
{
	bare(NULL);
	(void)add(0, "a", 1, "{{who}} at {{place.1}}{{who}}, {not} } }} {");
	CHECK_STR(prompt(0, "{\"who\":\"me\",\"place.1\":\"home\",\"more\":\"x\"}"),
		  "me at homeme, {not} } }} {");
}

TEST(a_value_is_not_looked_into)
{
	bare(NULL);
	(void)add(0, "a", 1, "{{a}}");
	CHECK_STR(prompt(0, "{\"a\":\"{{a}} {{\"}"), "{{a}} {{");
}

TEST(a_variable_that_is_not_given_is_an_error)
{
	bare(NULL);
	(void)add(0, "s", 1, "hello {{who}}");
	CHECK_STR(prompt(0, NULL),
		  "prompt section \"s\" uses an unknown variable: {{who}}");
	CHECK_STR(prompt(0, "{\"who\":1}"),
		  "prompt section \"s\" uses an unknown variable: {{who}}");
	CHECK_STR(prompt(0, "{\"whom\":\"x\"}"),
		  "prompt section \"s\" uses an unknown variable: {{who}}");
}

TEST(what_only_looks_like_a_variable_is_an_error)
{
	static const char *const bad[] = {"{{}}",      "{{ who }}", "{{who}",   "{{who",
					  "{{w h o}}", "{{",        "{{{who}}}"};

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		bare(NULL);
		(void)add(0, "s", 1, bad[i]);
		CHECK(strstr(prompt(0, "{\"who\":\"x\"}"),
			     "prompt section \"s\" has a malformed variable: {{") != NULL);
	}
	CHECK_STR(core.message, "prompt section \"s\" has a malformed variable: {{{who}}}");
}

TEST(only_sections_that_are_seen_need_their_variables)
{
	errand_scope s;

	bare(NULL);
	s = preset();
	(void)add(s, "s", 1, "{{missing}}");
	CHECK_STR(prompt(0, NULL), "");
	(void)add(0, "s2", 1, "fine");
	CHECK_STR(prompt(0, NULL), "fine");
}

TEST(variables_are_an_object)
{
	bare(NULL);
	CHECK_STR(prompt(0, "[]"), "variables must be an object of strings");
	CHECK(strstr(prompt(0, "{"), "variables: ") != NULL);
	CHECK_STR(prompt(0, NULL), "");
}

TEST(a_section_is_shown_as_it_was_added)
{
	errand_text *t = NULL;

	bare(NULL);
	(void)add(0, "s", 0.5, "a {{b}}\n\"q\"");
	CHECK_INT(errand_sections(core.host, 0, &t, NULL), 0);
	CHECK_STR(text_of(t),
		  "[{\"name\":\"s\",\"order\":0.5,\"text\":\"a {{b}}\\n\\\"q\\\"\"}]");
	CHECK_INT(errand_sections(core.host, 4711, &t, NULL), ERRAND_EGONE);
}

TEST(the_section_of_a_mount_is_seen_below_it)
{
	errand_scope s;
	errand_reg r;
	errand_agent x;

	bare(NULL);
	s = preset();
	r = mount_in(s);
	x = agent_in("x", preset_in(s));
	CHECK_STR(sections_of(x), "tool:tasks");
	CHECK_STR(sections_of(agent("y")), "");
	CHECK_INT(errand_unregister(core.host, r), 0);
	CHECK_STR(sections_of(x), "");
}

TEST(a_prompt_is_the_same_every_time)
{
	char *once;

	fresh();
	(void)add(0, "z", 106, "z");
	(void)add(0, "a", 106, "a");
	once = strdup(prompt(core.alice, NULL));
	fresh();
	(void)add(0, "z", 106, "z");
	(void)add(0, "a", 106, "a");
	CHECK_STR(prompt(core.alice, NULL), once);
	free(once);
}
