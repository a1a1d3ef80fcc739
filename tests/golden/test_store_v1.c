/* SPDX-License-Identifier: MIT */
/*
 * A database as version 1 made it, with a row of each kind, is opened and brought up to date
 * by every later errand, and gives what it gave then. store-v1.sql is never written again.
 */
#include "store.h"

static char text[KIB(64)], expected[KIB(64)];

static void load_golden(const char *path, char *into, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, into, size - 1);

	CHECK(n > 0);
	into[n] = 0;
	(void)close(fd);
}

static void a_database_of_version_1(void)
{
	fresh_folder();
	load_golden(GOLDEN "/store-v1.sql", text, sizeof(text));
	sql(STORE_FILE, text);
	CHECK_INT(chmod(in_folder(STORE_FILE), 0600), 0);
}

TEST(a_database_of_version_1_gives_what_it_gave_then)
{
	a_database_of_version_1();
	reopen();
	CHECK(!st.note);
	load_golden(GOLDEN "/store-v1.facts", expected, sizeof(expected));
	CHECK_STR(loaded(), expected);
}

TEST(a_database_of_version_1_shows_its_past_and_its_trail)
{
	static const struct store_filter all = {0};

	a_database_of_version_1();
	reopen();
	CHECK_INT(lines(history(&all)), 4);
	CHECK_INT(lines(audit_trail(&all)), 1);
	CHECK_INT(health().history, 1);
	CHECK_INT(health().live, 1);
}

TEST(a_database_of_version_1_is_written_on)
{
	a_database_of_version_1();
	reopen();
	put_agent(50, "carol");
	put_task(51, 50, "running", 0);
	store_put_audit(&st.batch, &(struct store_audit){.who = s_("w"),
							 .door = s_("d"),
							 .act = s_("a"),
							 .task = s_("bash-51")});
	must_commit();
	reopen();
	CHECK_INT(health().live, 2);
	CHECK_INT(health().audit, 2);
}
