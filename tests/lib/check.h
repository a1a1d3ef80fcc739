/* SPDX-License-Identifier: MIT */
/*
 * check.h - a thin face of cmocka for unit tests: TEST(what_is_true) { ... } registers
 * itself, and the program's main() is here. One test file includes it, once.
 */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define CHECK_MAX_TESTS 512

static struct CMUnitTest check_tests[CHECK_MAX_TESTS];
static size_t check_count;

#define TEST(what)                                                                         \
	static void test_##what(void **state);                                             \
	__attribute__((constructor)) static void register_##what(void)                     \
	{                                                                                  \
		check_tests[check_count++] =                                               \
			(struct CMUnitTest){.name = #what, .test_func = test_##what};      \
	}                                                                                  \
	static void test_##what(void **state __attribute__((unused)))

#define CHECK(claim) assert_true(claim)
#define CHECK_INT(a, b) assert_int_equal(a, b)
#define CHECK_STR(a, b) assert_string_equal(a, b)
/* @len bytes at @p are the string literal @s, NULs and all. */
#define CHECK_BYTES(p, len, s)                                                             \
	do {                                                                               \
		assert_int_equal(len, sizeof(s) - 1);                                      \
		assert_memory_equal(p, s, sizeof(s) - 1);                                  \
	} while (0)

int main(void)
{
	return _cmocka_run_group_tests("tests", check_tests, check_count, NULL, NULL);
}
