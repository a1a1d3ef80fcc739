/* SPDX-License-Identifier: MIT */
/* Tests of which word was meant. */
#include "check.h"

#include "cli/nearest.h"

static const char *meant(const char *typed)
{
	static const char *const words[] = {"--all",   "--json",    "--watch", "--state",
					    "--label", "--timeout", "--wait",  "-f",
					    "ls",      "logs",      "kill",    "output"};
	struct nearest n = {.typed = typed, .len = strlen(typed)};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		nearest_try(&n, words[i]);
	return n.found ? n.found : "";
}

TEST(a_slip_of_the_pen_is_understood)
{
	CHECK_STR(meant("--jsn"), "--json");   /* left out */
	CHECK_STR(meant("--jsoon"), "--json"); /* one too many */
	CHECK_STR(meant("--jsan"), "--json");  /* another */
	CHECK_STR(meant("--josn"), "--json");  /* exchanged */
	CHECK_STR(meant("--lable"), "--label");
	CHECK_STR(meant("klil"), "kill");
	CHECK_STR(meant("ouptut"), "output");
	CHECK_STR(meant("lss"), "ls"); /* nearer than logs */
}

TEST(a_word_that_is_only_begun_is_understood)
{
	CHECK_STR(meant("--time"), "--timeout");
	CHECK_STR(meant("out"), "output");
}

TEST(the_nearest_is_the_one)
{
	CHECK_STR(meant("--wat"),
		  "--watch"); /* begun; --wait lacks a letter, and comes later */
	CHECK_STR(meant("--wai"), "--wait");
	CHECK_STR(meant("--all"), "--all");
}

TEST(nothing_is_made_of_what_is_far)
{
	CHECK_STR(meant("fly"), "");
	CHECK_STR(meant("bogus"), ""); /* two letters of five make no logs */
	CHECK_STR(meant("--verbose"), "");
	CHECK_STR(meant("-x"), "");
	CHECK_STR(meant(""), "");
	CHECK_STR(meant("--"), "");
	CHECK_STR(meant("--aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), "");
}
