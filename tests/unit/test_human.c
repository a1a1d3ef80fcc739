/* SPDX-License-Identifier: MIT */
/* Tests of durations and sizes as people write and read them. */
#include "check.h"

#include "base/buf.h"
#include "base/err.h"
#include "base/human.h"

static int64_t ms_of(const char *text)
{
	int64_t ms = -1;

	CHECK_INT(human_read_ms(text, &ms, NULL), 0);
	return ms;
}

static void no_duration(const char *text)
{
	struct err err = {0};
	int64_t ms;

	CHECK_INT(human_read_ms(text, &ms, &err), -ERR_ARG);
	CHECK(strstr(err.msg, "90s, 15m, 2h, 1h30m") != NULL);
}

static const char *shown_ms(int64_t ms)
{
	static struct buf out = BUF_INIT(64);

	buf_clear(&out);
	human_put_ms(&out, ms);
	return buf_text(&out);
}

static const char *shown_bytes(uint64_t n)
{
	static struct buf out = BUF_INIT(64);

	buf_clear(&out);
	human_put_bytes(&out, n);
	return buf_text(&out);
}

TEST(a_duration_is_a_number_and_its_unit)
{
	CHECK_INT(ms_of("500ms"), 500);
	CHECK_INT(ms_of("90s"), 90000);
	CHECK_INT(ms_of("15m"), 900000);
	CHECK_INT(ms_of("2h"), 7200000);
	CHECK_INT(ms_of("2d"), 172800000);
}

TEST(or_several_the_largest_first)
{
	CHECK_INT(ms_of("1h30m"), 5400000);
	CHECK_INT(ms_of("1d2h3m4s5ms"), 93784005);
	no_duration("30m1h");
	no_duration("1h1h");
}

TEST(a_duration_without_unit_number_or_length_is_none)
{
	no_duration("");
	no_duration("90");
	no_duration("s");
	no_duration("0s");
	no_duration("-5s");
	no_duration("1.5h");
	no_duration("5 s");
	no_duration("5S");
	no_duration("5weeks");
}

TEST(a_duration_of_more_than_a_year_is_a_mistake)
{
	CHECK_INT(ms_of("366d"), INT64_C(31622400000));
	no_duration("367d");
	no_duration("366d1ms");
	no_duration("99999999999999999999999999d");
}

TEST(a_duration_is_shown_by_its_two_largest_units)
{
	CHECK_STR(shown_ms(0), "0ms");
	CHECK_STR(shown_ms(-3), "0ms");
	CHECK_STR(shown_ms(999), "999ms");
	CHECK_STR(shown_ms(1999), "1s");
	CHECK_STR(shown_ms(60000), "1m");
	CHECK_STR(shown_ms(150000), "2m30s");
	CHECK_STR(shown_ms(3605000), "1h");
	CHECK_STR(shown_ms(5400000), "1h30m");
	CHECK_STR(shown_ms(INT64_C(273600000)), "3d4h");
}

TEST(a_size_has_four_digits_at_most)
{
	CHECK_STR(shown_bytes(0), "0");
	CHECK_STR(shown_bytes(1023), "1023");
	CHECK_STR(shown_bytes(1024), "1.0K");
	CHECK_STR(shown_bytes(1536), "1.5K");
	CHECK_STR(shown_bytes(10240), "10K");
	CHECK_STR(shown_bytes(1048575), "1023K");
	CHECK_STR(shown_bytes(1048576), "1.0M");
	CHECK_STR(shown_bytes(UINT64_MAX), "15E");
}

TEST(a_time_is_shown_as_the_clock_on_the_wall_says)
{
	struct buf out = BUF_INIT(64);

	CHECK_INT(setenv("TZ", "UTC-1", 1), 0);
	tzset();
	human_put_time(&out, INT64_C(1769850000123));
	CHECK_STR(buf_text(&out), "2026-01-31 10:00:00");
	buf_release(&out);
	CHECK_INT(unsetenv("TZ"), 0);
	tzset();
}
