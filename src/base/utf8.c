/* SPDX-License-Identifier: MIT */
#include "base/utf8.h"

#include <string.h>

#include "base/buf.h"

static bool is_cont(unsigned char c)
{
	return (c & 0xc0) == 0x80;
}

/* What a lead byte promises: bytes in all, and the range of the second. 0: no lead byte. */
static int lead(unsigned char c, unsigned char *lo, unsigned char *hi)
{
	*lo = 0x80;
	*hi = 0xbf;
	if (c < 0x80)
		return 1;
	if (c >= 0xc2 && c <= 0xdf)
		return 2;
	if (c >= 0xe0 && c <= 0xef) {
		if (c == 0xe0)
			*lo = 0xa0;
		if (c == 0xed)
			*hi = 0x9f;
		return 3;
	}
	if (c >= 0xf0 && c <= 0xf4) {
		if (c == 0xf0)
			*lo = 0x90;
		if (c == 0xf4)
			*hi = 0x8f;
		return 4;
	}
	return 0;
}

int utf8_decode(const char *s, size_t len, uint32_t *ret_cp, size_t *ret_bad)
{
	static const unsigned char first_bits[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
	const unsigned char *p = (const unsigned char *)s;
	unsigned char lo, hi;
	int need = lead(p[0], &lo, &hi);
	uint32_t cp;

	*ret_bad = 1;
	if (need == 0)
		return 0;
	cp = p[0] & first_bits[need];
	for (int i = 1; i < need; i++) {
		if ((size_t)i == len)
			return -1;
		if (p[i] < lo || p[i] > hi) {
			*ret_bad = (size_t)i;
			return 0;
		}
		cp = cp << 6 | (p[i] & 0x3f);
		lo = 0x80;
		hi = 0xbf;
	}
	*ret_cp = cp;
	return need;
}

/* Bytes of plain ASCII at the front, eight at a time. */
static size_t ascii_run(const char *s, size_t len)
{
	size_t i = 0;
	uint64_t w;

	for (; i + 8 <= len; i += 8) {
		memcpy(&w, s + i, 8);
		if (w & 0x8080808080808080u)
			break;
	}
	while (i < len && (unsigned char)s[i] < 0x80)
		i++;
	return i;
}

size_t utf8_valid_prefix(const char *s, size_t len)
{
	size_t i = 0, bad;
	uint32_t cp;
	int n;

	while ((i += ascii_run(s + i, len - i)) < len) {
		n = utf8_decode(s + i, len - i, &cp, &bad);
		if (n <= 0)
			break;
		i += (size_t)n;
	}
	return i;
}

bool utf8_valid(const char *s, size_t len)
{
	return utf8_valid_prefix(s, len) == len;
}

size_t utf8_unfinished(const char *s, size_t len)
{
	size_t bad;
	uint32_t cp;

	for (size_t n = 1; n <= 3 && n <= len; n++) {
		unsigned char c = (unsigned char)s[len - n];

		if (!is_cont(c))
			return utf8_decode(s + len - n, n, &cp, &bad) == -1 ? n : 0;
	}
	return 0;
}

int utf8_clean(struct buf *out, const char *s, size_t len)
{
	size_t i = 0, good, bad;
	uint32_t cp;

	for (;;) {
		good = utf8_valid_prefix(s + i, len - i);
		if (buf_add(out, s + i, good) != 0)
			return out->error;
		i += good;
		if (i == len)
			return 0;
		if (utf8_decode(s + i, len - i, &cp, &bad) == -1)
			bad = len - i;
		if (buf_add(out, "\xef\xbf\xbd", 3) != 0)
			return out->error;
		i += bad;
	}
}

int utf8_put(struct buf *out, uint32_t cp)
{
	char b[4];
	size_t n = cp < 0x80 ? 1 : cp < 0x800 ? 2 : cp < 0x10000 ? 3 : 4;
	static const unsigned char mark[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = n; i-- > 1; cp >>= 6)
		b[i] = (char)(0x80 | (cp & 0x3f));
	b[0] = (char)(mark[n == 1 ? 0 : n] | cp);
	return buf_add(out, b, n);
}

size_t utf8_head(const char *s, size_t len, size_t max)
{
	if (len <= max)
		return len;
	/* Back over the continuation bytes of a code point that does not fit. */
	for (size_t back = 0; back <= 3 && back < max; back++) {
		unsigned char c = (unsigned char)s[max - back];

		if (!is_cont(c))
			return max - back;
	}
	return max <= 3 && is_cont((unsigned char)s[max]) ? 0 : max;
}

size_t utf8_tail(const char *s, size_t len, size_t max)
{
	if (len <= max)
		return len;
	while (max > 0 && is_cont((unsigned char)s[len - max]))
		max--;
	return max;
}

size_t utf8_units(const char *s, size_t len)
{
	size_t n = 0;

	for (size_t i = 0; i < len; i++) {
		unsigned char c = (unsigned char)s[i];

		n += !is_cont(c);
		n += c >= 0xf0; /* a pair */
	}
	return n;
}

size_t utf8_head_units(const char *s, size_t len, size_t units)
{
	size_t i = 0;

	while (i < len) {
		unsigned char c = (unsigned char)s[i];
		size_t bytes = c < 0x80 ? 1 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : 4;
		size_t cost = bytes == 4 ? 2 : 1;

		if (cost > units || i + bytes > len)
			break;
		units -= cost;
		i += bytes;
	}
	return i;
}
