/* SPDX-License-Identifier: MIT */
#include "base/surrogate.h"

#include <stdlib.h>
#include <string.h>

/* The UTF-16 unit that is written as \\uXXXX at @p, or 0. */
static unsigned long escaped_unit(const char *p, const char *end)
{
	char digits[5] = "";

	if (end - p < 6 || p[0] != '\\' || p[1] != 'u')
		return 0;
	memcpy(digits, p + 2, 4);
	return strspn(digits, "0123456789abcdefABCDEF") == 4 ? strtoul(digits, NULL, 16)
							     : 0;
}

/* Bytes of the escape at @p, 6 for half of a pair. */
static size_t escape_len(const char *p, const char *end, bool *ret_is_half)
{
	unsigned long unit = escaped_unit(p, end);
	unsigned long next = unit ? escaped_unit(p + 6, end) : 0;

	*ret_is_half = false;
	if (unit < 0xd800 || unit > 0xdfff)
		return 2;
	if (unit < 0xdc00 && next >= 0xdc00 && next <= 0xdfff)
		return 12;
	*ret_is_half = true;
	return 6;
}

bool surrogate_replace_halves(char *text, size_t len)
{
	bool is_half, any = false;
	char *end = text + len, *p = text;

	while (p < end && (p = memchr(p, '\\', (size_t)(end - p)))) {
		size_t n = escape_len(p, end, &is_half);

		if (is_half)
			memcpy(p, "\\ufffd", 6);
		any |= is_half;
		p += n;
	}
	return any;
}
