/* SPDX-License-Identifier: MIT */
/* Tests of src/host/version.c: who is newer. */
#include "check.h"
#include "host/version.h"

/* @a is newer than @b, and @b older than @a. */
static void newer(const char *a, const char *b)
{
	CHECK(version_compare(a, b) > 0);
	CHECK(version_compare(b, a) < 0);
}

static void same(const char *a, const char *b)
{
	CHECK_INT(version_compare(a, b), 0);
	CHECK_INT(version_compare(b, a), 0);
}

TEST(numbers_are_compared_and_not_digits)
{
	newer("0.10.0", "0.9.0");
	newer("10.0", "9.99.99");
	newer("0.1.10", "0.1.9");
	same("0.01.0", "0.1.0");
}

TEST(the_first_difference_decides)
{
	newer("1.0.0", "0.99.99");
	newer("0.2.0", "0.1.9");
	newer("0.1.1", "0.1.0");
	same("0.1.0", "0.1.0");
}

TEST(a_number_that_is_missing_is_zero)
{
	same("1", "1.0.0");
	newer("1.0.1", "1");
	newer("0.0.1", "");
	same("", "");
}

TEST(what_stands_behind_the_numbers_does_not_count)
{
	same("1.2-rc1", "1.2");
	same("1.2-rc2", "1.2.0-rc1");
	newer("1.3-rc1", "1.2");
	same("v2", "");
	same("-1", "0");
}

TEST(a_number_of_any_length_is_one)
{
	newer("99999999999999999999999999", "1");
	same("99999999999999999999999999", "99999999999999999999999999");
}
