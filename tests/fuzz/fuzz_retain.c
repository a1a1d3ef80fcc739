/* SPDX-License-Identifier: MIT */
/*
 * What is kept of a text: within its limit, well-formed where the text was, a piece of it.
 * The first four bytes of the input are the limit and the length of the suffix.
 */
#include <assert.h>
#include <stdint.h>

#include "base/utf8.h"
#include "errand.h"

static void check_well_formed(const char *start, size_t kept, size_t len, size_t max)
{
	assert(utf8_valid(start, kept));
	assert(kept == len || kept + 3 >= max);
}

static void check_retain(const char *text, size_t len, size_t max, int tail)
{
	const char *start = NULL;
	size_t kept = 0;
	int rc = errand_retain(tail, max, text, len, &start, &kept);

	assert(rc == 0);
	assert(kept <= max || kept == len);
	assert(start >= text && start + kept <= text + len);
	assert(tail ? start + kept == text + len : start == text);
	if (utf8_valid(text, len))
		check_well_formed(start, kept, len, max);
}

static void check_fit(const char *text, size_t len, size_t limit, const char *suffix)
{
	errand_text *t = NULL;
	const char *p;
	size_t n;
	int rc = errand_fit(text, len, suffix, "[output truncated]", limit, &t);

	assert(rc == 0);
	p = errand_text_data(t, &n);
	assert(limit == 0 || n <= limit);
	assert(!utf8_valid(suffix, strlen(suffix)) || utf8_valid(p, n));
	errand_text_free(t);
}

static void check_summary(const char *text, size_t len)
{
	errand_text *t = NULL;
	const char *p;
	size_t n;
	int rc = errand_summary(text, len, &t);

	assert(rc == 0);
	p = errand_text_data(t, &n);
	assert(utf8_valid(p, n));
	assert(utf8_units(p, n) <= 120);
	for (size_t i = 0; i < n; i++)
		assert((unsigned char)p[i] >= 0x20 && p[i] != 0x7f);
	errand_text_free(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text;
	char suffix[256];
	size_t limit, suffix_len;

	if (size < 4)
		return 0;
	limit = (size_t)data[0] | (size_t)data[1] << 8;
	suffix_len = data[2];
	text = (const char *)data + 4;
	size -= 4;
	if (suffix_len > size)
		suffix_len = size;
	memcpy(suffix, text, suffix_len);
	suffix[suffix_len] = 0;
	check_retain(text, size, limit, 0);
	check_retain(text, size, limit, 1);
	check_fit(text, size, limit, "\n[status: running]");
	check_fit(text, size, limit, suffix);
	check_summary(text, size);
	return 0;
}
