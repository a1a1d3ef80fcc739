/* SPDX-License-Identifier: MIT */
#include "host/version.h"

#include <ctype.h>
#include <stdlib.h>

/* The next number of *@s; *@s is then behind it and its dot. */
static unsigned long long next_number(const char **s)
{
	char *end;
	unsigned long long n;

	if (!isdigit((unsigned char)**s)) {
		*s = "";
		return 0;
	}
	n = strtoull(*s, &end, 10); /* what is too large is the largest */
	*s = *end == '.' ? end + 1 : "";
	return n;
}

int version_compare(const char *a, const char *b)
{
	while (*a || *b) {
		unsigned long long x = next_number(&a), y = next_number(&b);

		if (x != y)
			return x < y ? -1 : 1;
	}
	return 0;
}
