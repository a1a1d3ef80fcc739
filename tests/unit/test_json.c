/* SPDX-License-Identifier: MIT */
/* Tests of src/base/json.c: what is read, what is refused, how numbers are written. */
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "check.h"

static struct js *parse(const char *text)
{
	struct js *j = NULL;

	CHECK_INT(js_parse(text, strlen(text), &j, NULL), 0);
	return j;
}

static int verdict(const char *text, size_t len)
{
	struct js *j = NULL;
	int rc = js_parse(text, len, &j, NULL);

	js_free(j);
	return rc;
}

#define VERDICT(text) verdict(text, sizeof(text) - 1)

static const char *number(double v)
{
	static char text[64];
	struct buf b = BUF_INIT(63);

	CHECK_INT(js_put_number(&b, v), 0);
	memcpy(text, b.data, b.len + 1);
	buf_release(&b);
	return text;
}

static const char *again(const char *in)
{
	static char text[256];
	struct buf b = BUF_INIT(255);
	struct js *j = parse(in);

	CHECK_INT(js_put_value(&b, j), 0);
	memcpy(text, b.data, b.len + 1);
	buf_release(&b);
	js_free(j);
	return text;
}

static const char *member(const char *object, const char *key)
{
	static char text[256];
	struct js_span s = js_member((struct js_span){object, strlen(object)}, key);

	if (!s.ptr)
		return "(none)";
	memcpy(text, s.ptr, s.len);
	text[s.len] = 0;
	return text;
}

TEST(every_type_of_value_is_told_apart)
{
	struct js *j = parse("[null,true,1.5,\"s\",[],{}]");

	for (int i = 0; i < 6; i++)
		CHECK_INT(js_type(js_at(j, (size_t)i)), JS_NULL + i);
	CHECK_INT(js_type(js_at(j, 6)), JS_NONE);
	js_free(j);
}

TEST(getters_answer_nothing_for_what_is_not_there)
{
	struct js *j = parse("{\"a\":1}");

	CHECK(js_get(j, "b") == NULL);
	CHECK(js_get(js_get(j, "a"), "x") == NULL);
	CHECK(js_string(js_get(j, "a"), NULL) == NULL);
	CHECK(isnan(js_number(j)));
	CHECK(!js_is_true(NULL));
	CHECK_INT(js_count(NULL), 0);
	js_free(j);
}

TEST(a_string_may_hold_a_nul)
{
	struct js *j = parse("\"a\\u0000b\"");
	size_t len = 0;
	const char *s = js_string(j, &len);

	CHECK_BYTES(s, len, "a\0b");
	js_free(j);
}

TEST(ill_formed_text_is_refused)
{
	CHECK_INT(VERDICT(""), -ERR_FORMAT);
	CHECK_INT(VERDICT("{"), -ERR_FORMAT);
	CHECK_INT(VERDICT("{} x"), -ERR_FORMAT);
	CHECK_INT(VERDICT("01"), -ERR_FORMAT);
	CHECK_INT(VERDICT("NaN"), -ERR_FORMAT);
	CHECK_INT(VERDICT("\"\\ud80\""), -ERR_FORMAT);
	CHECK_INT(VERDICT("\\ud800"), -ERR_FORMAT);
	CHECK_INT(VERDICT("\"\\ud800"), -ERR_FORMAT);
	CHECK_INT(VERDICT("\"\\ud800\\"), -ERR_FORMAT);
	CHECK_INT(VERDICT("\"\\ud800\xff\""), -ERR_FORMAT);
	CHECK_INT(VERDICT("\"\xff\""), -ERR_FORMAT);
	CHECK_INT(VERDICT("\"a\0b\""), -ERR_FORMAT);
	CHECK_INT(VERDICT("[1\0,2]"), -ERR_FORMAT);
	CHECK_INT(VERDICT("{\"a\":1"), -ERR_FORMAT);
}

TEST(half_a_surrogate_pair_is_read_as_a_replacement)
{
	struct js *j = NULL;

	CHECK_STR(again("\"\\ud83d\\ude00\""), "\"\xf0\x9f\x98\x80\"");
	CHECK_STR(again("\"a\\ud800b\""), "\"a\xef\xbf\xbd\x62\"");
	CHECK_STR(again("\"\\uDFFF\""), "\"\xef\xbf\xbd\"");
	CHECK_STR(again("\"\\ude00\\ud83d\""), "\"\xef\xbf\xbd\xef\xbf\xbd\"");
	CHECK_STR(again("\"\\ud83d\\ud83d\\ude00\""), "\"\xef\xbf\xbd\xf0\x9f\x98\x80\"");
	CHECK_STR(again("\"\\ud83d\\\\ude00\""), "\"\xef\xbf\xbd\\\\ude00\"");
	CHECK_STR(again("\"\\\\ud800 \\ud800\""), "\"\\\\ud800 \xef\xbf\xbd\"");
	CHECK_STR(again("{\"\\udc00\":[1]}"), "{\"\xef\xbf\xbd\":[1]}");
	CHECK_INT(js_parse("[1e999,\"\\ud800\"]", 16, &j, NULL), -ERR_LOSSY);
	CHECK_BYTES(js_string(js_at(j, 1), NULL), 3, "\xef\xbf\xbd");
	js_free(j);
}

TEST(nesting_beyond_the_limit_is_refused_and_told)
{
	enum {
		N = 200000
	};
	char *deep = malloc(2 * N);
	struct err err;
	struct js *j = NULL;

	memset(deep, '[', N);
	memset(deep + N, ']', N);
	CHECK_INT(js_parse(deep, 2 * N, &j, &err), -ERR_LIMIT);
	CHECK_STR(err.msg, "nested deeper than 1024 levels");
	CHECK_INT(verdict(deep + N - MAX_JSON_NESTING, 2 * MAX_JSON_NESTING), 0);
	CHECK_INT(verdict(deep + N - MAX_JSON_NESTING - 1, 2 * MAX_JSON_NESTING + 2),
		  -ERR_LIMIT);
	free(deep);
}

TEST(a_nul_in_a_key_is_not_taken_and_told)
{
	static const char text[] = "{\"a\\u0000b\":1}", lossy[] = "[1e999,{\"\\u0000\":1}]";
	struct err err;
	struct js *j = NULL;

	CHECK_INT(js_parse(text, strlen(text), &j, &err), -ERR_ARG);
	CHECK_STR(err.msg, "a key holds a NUL, which is not supported");
	CHECK_INT(js_parse(lossy, strlen(lossy), &j, &err), -ERR_ARG);
}

TEST(brackets_in_strings_are_not_nesting)
{
	char text[3000];

	memset(text, '[', sizeof(text));
	text[0] = text[sizeof(text) - 1] = '"';
	CHECK_INT(verdict(text, sizeof(text)), 0);
}

TEST(of_equal_keys_the_last_wins_in_tree_and_text)
{
	struct js *j = parse("{\"id\":1,\"id\":\"two\"}");

	CHECK(js_string_is(js_get(j, "id"), "two"));
	CHECK_STR(member("{\"id\":1,\"id\":\"two\"}", "id"), "\"two\"");
	js_free(j);
}

TEST(an_overflowing_number_is_lossy_not_ill_formed)
{
	CHECK_INT(VERDICT("1e999"), -ERR_LOSSY);
	CHECK_INT(VERDICT("{\"a\":[-1e999, 1E+400]}"), -ERR_LOSSY);
	CHECK_INT(VERDICT("\"1e999\""), 0);
	CHECK_INT(VERDICT("1e999 x"), -ERR_FORMAT);
	CHECK_INT(VERDICT("[1e999\x01]"), -ERR_FORMAT);
	CHECK_INT(VERDICT("[1e999.5]"), -ERR_FORMAT);
	CHECK_INT(VERDICT("[1e999e5]"), -ERR_FORMAT);
	CHECK_INT(VERDICT("[1e999-1]"), -ERR_FORMAT);
	CHECK_INT(VERDICT("{\"a\":1201e999\"b\",\"c\":{}}"), -ERR_FORMAT);
	CHECK_INT(VERDICT("{\"a\":1e999\x01\0,\"b\":1}"), -ERR_FORMAT);
	CHECK_INT(VERDICT("1e-999"), 0);
}

TEST(an_overflowing_number_leaves_a_tree_with_minus_zero_in_its_place)
{
	struct js *j = NULL;

	CHECK_INT(js_parse("{\"a\":1e999,\"b\":2}", 17, &j, NULL), -ERR_LOSSY);
	CHECK(js_number(js_get(j, "b")) == 2);
	CHECK(js_has_negative_zero(j));
	js_free(j);
}

TEST(a_number_of_a_thousand_digits_is_seen_as_an_overflow)
{
	char text[1000];

	memset(text, '9', sizeof(text));
	CHECK_INT(verdict(text, sizeof(text)), -ERR_LOSSY);
	text[1] = 'e';
	text[2] = '-';
	memset(text + 3, '0', sizeof(text) - 4);
	CHECK_INT(verdict(text, sizeof(text)), 0);
}

TEST(minus_zero_is_found_wherever_it_stands)
{
	static const char *const with[] = {"-0", "[1,-0.0]", "{\"a\":{\"b\":[-0e5]}}"};
	static const char *const without[] = {"0", "[\"-0\"]", "{\"-0\":1}", "-1", "null"};
	struct js *j;

	for (size_t i = 0; i < 3; i++) {
		j = parse(with[i]);
		CHECK(js_has_negative_zero(j));
		js_free(j);
	}
	for (size_t i = 0; i < 5; i++) {
		j = parse(without[i]);
		CHECK(!js_has_negative_zero(j));
		js_free(j);
	}
}

TEST(integers_beyond_64_bits_are_numbers)
{
	CHECK_STR(again("[123456789012345680000,18446744073709551616]"),
		  "[123456789012345680000,18446744073709552000]");
}

TEST(numbers_are_written_as_javascript_does)
{
	CHECK_STR(number(0), "0");
	CHECK_STR(number(-0.0), "0");
	CHECK_STR(number(0.1), "0.1");
	CHECK_STR(number(-1.5e-7), "-1.5e-7");
	CHECK_STR(number(0.000001), "0.000001");
	CHECK_STR(number(1e21), "1e+21");
	CHECK_STR(number(-1e21), "-1e+21");
	CHECK_STR(number(1e20), "100000000000000000000");
	CHECK_STR(number(123.456), "123.456");
	CHECK_STR(number(5e-324), "5e-324");
	CHECK_STR(number(1.7976931348623157e308), "1.7976931348623157e+308");
	CHECK_STR(number(INFINITY), "null");
	CHECK_STR(number(NAN), "null");
}

TEST(a_value_is_written_back_compact_and_in_order)
{
	CHECK_STR(again(" { \"b\" : [ 1 , null ] , \"a\" : { } } "),
		  "{\"b\":[1,null],\"a\":{}}");
}

TEST(strings_are_escaped_and_cleaned)
{
	struct buf b = BUF_INIT(100);

	CHECK_INT(js_put_string(&b,
				"\"\\\n\x01\x7f\xff"
				"\xc3\xa9",
				8),
		  0);
	CHECK_STR(b.data, "\"\\\"\\\\\\n\\u0001\\u007f\xef\xbf\xbd\xc3\xa9\"");
	buf_release(&b);
}

TEST(a_string_that_does_not_fit_makes_the_buffer_bad)
{
	struct buf b = BUF_INIT(5);

	CHECK_INT(js_put_string(&b, "abcdef", 6), -ERR_LIMIT);
	buf_release(&b);
}

TEST(keys_are_separated_by_commas)
{
	struct buf b = BUF_INIT(100);

	(void)buf_addc(&b, '{');
	(void)js_put_key(&b, "n");
	(void)js_put_int(&b, -5);
	CHECK_INT(js_put_member(&b, "s", "x", 1), 0);
	CHECK_STR(b.data, "{\"n\":-5,\"s\":\"x\"");
	buf_release(&b);
}

TEST(a_member_is_given_with_its_exact_spelling)
{
	const char *o = " { \"x\" : {\"id\":9} , \"id\" : 1.50e1 , \"s\":\"a\\\"}\" } ";

	CHECK_STR(member(o, "id"), "1.50e1");
	CHECK_STR(member(o, "x"), "{\"id\":9}");
	CHECK_STR(member(o, "s"), "\"a\\\"}\"");
	CHECK_STR(member(o, "none"), "(none)");
	CHECK_STR(member("[1]", "id"), "(none)");
	CHECK_STR(member("{}", "id"), "(none)");
}

TEST(members_are_found_in_one_pass)
{
	static const char *const keys[] = {"b", "none", "a"};
	const char *o = "{\"a\":1, \"b\" : [2] ,\"\\u0061\":3}";
	struct js_span found[3];

	js_members((struct js_span){o, strlen(o)}, keys, found, 3);
	CHECK(found[0].len == 3 && memcmp(found[0].ptr, "[2]", 3) == 0);
	CHECK(!found[1].ptr);
	CHECK(found[2].len == 1 && *found[2].ptr == '3');
	js_members((struct js_span){NULL, 0}, keys, found, 3);
	CHECK(!found[0].ptr && !found[1].ptr && !found[2].ptr);
}

TEST(a_key_may_be_spelled_with_escapes)
{
	CHECK_STR(member("{\"\\u0069d\":7}", "id"), "7");
	CHECK_STR(member("{\"\\u0069\\u0000d\":7}", "id"), "(none)");
}

TEST(overflows_are_told_apart_by_where_they_stand)
{
	const char *text = "{\"a\":[1e999,2],\"b\":3}";
	struct js_span whole = {text, strlen(text)};
	struct js_span a = js_member(whole, "a"), b = js_member(whole, "b");

	CHECK(js_overflows_only_in(whole, a));
	CHECK(!js_overflows_only_in(whole, b));
	CHECK(!js_overflows_only_in(whole, (struct js_span){NULL, 0}));
}

static void put_file(const char *dir, const char *name, const char *text)
{
	char path[80];
	FILE *f;

	(void)snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	CHECK(f && fputs(text, f) >= 0 && fclose(f) == 0);
}

/* A shell's @script in the folder @dir. */
static void run_in(const char *dir, const char *script)
{
	pid_t child = fork();

	if (child == 0) {
		if (chdir(dir) == 0)
			execlp("sh", "sh", "-c", script, (char *)NULL);
		_exit(127);
	}
	CHECK(waitpid(child, NULL, 0) == child);
}

/* A locale with a decimal comma: one that is made here, for there may be no other. */
static void use_comma(void)
{
	char dir[] = "/tmp/errand-locale-XXXXXX";

	CHECK(mkdtemp(dir) != NULL);
	put_file(dir, "numbers",
		 "LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\n"
		 "END LC_NUMERIC\n");
	put_file(dir, "ascii",
		 "<code_set_name> A\n<escape_char> /\nCHARMAP\n<U0000>..<U007F> /x00\n"
		 "END CHARMAP\n");
	run_in(dir, "localedef -c -f ./ascii -i ./numbers ./comma >log 2>&1");
	CHECK_INT(setenv("LOCPATH", dir, 1), 0);
	CHECK(setlocale(LC_NUMERIC, "comma") != NULL);
	run_in(dir, "rm -r \"$PWD\"");
	CHECK_STR(localeconv()->decimal_point, ",");
}

TEST(d16_a_number_overflows_in_each_locale)
{
	use_comma();
	CHECK_INT(verdict("[1.5e999]", 9), -ERR_LOSSY);
	CHECK_STR(again("[1.5,-2.25e-7]"), "[1.5,-2.25e-7]");
	(void)setlocale(LC_NUMERIC, "C");
}
