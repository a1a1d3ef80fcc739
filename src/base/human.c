/* SPDX-License-Identifier: MIT */
#include "base/human.h"

#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "base/err.h"

/* A year: what is longer is a mistake. */
#define MAX_MS (INT64_C(366) * 86400 * 1000)

static const struct unit {
	const char *name;
	int64_t ms;
} units[] = {
	{"d", INT64_C(86400000)},
	{"h", INT64_C(3600000)},
	{"m", INT64_C(60000)},
	{"s", INT64_C(1000)},
	{"ms", 1},
};

#define UNITS (sizeof(units) / sizeof(units[0]))

/* ---- reading ---- */

/* The index of the unit at *@at, which is moved behind it; UNITS: there is none. */
static size_t take_unit(const char **at)
{
	size_t len = strspn(*at, "abcdefghijklmnopqrstuvwxyz");

	for (size_t i = 0; i < UNITS; i++) {
		if (strlen(units[i].name) != len || strncmp(*at, units[i].name, len) != 0)
			continue;
		*at += len;
		return i;
	}
	return UNITS;
}

/* Up to MAX_MS + 1; false: no digit. */
static bool take_number(const char **at, int64_t *ret)
{
	const char *begin = *at;
	int64_t n = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++)
		if (n <= MAX_MS)
			n = n * 10 + (**at - '0');
	*ret = n <= MAX_MS ? n : MAX_MS + 1;
	return *at > begin;
}

static bool read_sum(const char *text, int64_t *ret)
{
	const char *at = text;
	size_t next = 0, unit;
	int64_t n, sum = 0;

	while (*at) {
		if (!take_number(&at, &n))
			return false;
		unit = take_unit(&at);
		if (unit < next || unit == UNITS || n > (MAX_MS - sum) / units[unit].ms)
			return false;
		sum += n * units[unit].ms;
		next = unit + 1;
	}
	*ret = sum;
	return sum > 0;
}

int human_read_ms(const char *text, int64_t *ret, struct err *err)
{
	if (read_sum(text, ret))
		return 0;
	return err_set(err, ERR_ARG,
		       "'%.40s' is no duration: write 90s, 15m, 2h, 1h30m, 2d or 500ms, "
		       "above 0 and at most 366d",
		       text);
}

/* ---- writing ---- */

void human_put_ms(struct buf *out, int64_t ms)
{
	size_t i = 0;

	if (ms < 1000) {
		buf_addf(out, "%" PRId64 "ms", ms > 0 ? ms : 0);
		return;
	}
	while (ms < units[i].ms)
		i++;
	buf_addf(out, "%" PRId64 "%s", ms / units[i].ms, units[i].name);
	ms %= units[i].ms;
	if (units[i].ms > 1000 && ms >= units[i + 1].ms)
		buf_addf(out, "%" PRId64 "%s", ms / units[i + 1].ms, units[i + 1].name);
}

void human_put_bytes(struct buf *out, uint64_t bytes)
{
	static const char names[] = "KMGTPE";
	uint64_t unit = 1024;
	size_t i = 0;

	if (bytes < 1024) {
		buf_addf(out, "%" PRIu64, bytes);
		return;
	}
	for (; names[i + 1] && bytes / unit >= 1024; i++)
		unit *= 1024;
	if (bytes / unit < 10)
		buf_addf(out, "%" PRIu64 ".%" PRIu64 "%c", bytes / unit,
			 bytes % unit * 10 / unit, names[i]);
	else
		buf_addf(out, "%" PRIu64 "%c", bytes / unit, names[i]);
}

void human_put_time(struct buf *out, int64_t wall_ms)
{
	time_t seconds = (time_t)(wall_ms / 1000);
	struct tm parts;
	char text[64];

	if (localtime_r(&seconds, &parts) &&
	    strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &parts) > 0)
		buf_adds(out, text);
}
