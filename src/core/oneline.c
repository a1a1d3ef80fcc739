/* SPDX-License-Identifier: MIT */
#include "core/oneline.h"

#include <stdint.h>

#include "base/utf8.h"

static bool is_control(uint32_t cp)
{
	return cp < 0x20 || (cp >= 0x7f && cp < 0xa0) || cp == 0x2028 || cp == 0x2029;
}

static bool is_bidi(uint32_t cp)
{
	return (cp >= 0x202a && cp <= 0x202e) || (cp >= 0x2066 && cp <= 0x2069);
}

/* Bytes at the front that show as they are. */
static size_t plain_run(const char *text, size_t len)
{
	size_t i = 0;

	while (i < len && (unsigned char)text[i] >= 0x20 && (unsigned char)text[i] < 0x7f)
		i++;
	return i;
}

void oneline_put(struct buf *out, const char *text, size_t len)
{
	size_t i = 0, run, bad;
	uint32_t cp;
	int n;

	while (i < len) {
		run = plain_run(text + i, len - i);
		(void)buf_add(out, text + i, run);
		i += run;
		if (i == len)
			return;
		n = utf8_decode(text + i, len - i, &cp, &bad);
		if (n <= 0) {
			(void)utf8_put(out, 0xfffd);
			i += n == 0 ? bad : len - i;
			continue;
		}
		if (is_control(cp))
			(void)buf_addc(out, ' ');
		else if (!is_bidi(cp))
			(void)buf_add(out, text + i, (size_t)n);
		i += (size_t)n;
	}
}

void oneline_put_status(struct buf *out, const struct task_line *t)
{
	(void)buf_addf(out, "[status: %s", t->status);
	if (t->detail) {
		(void)buf_adds(out, ", ");
		oneline_put(out, t->detail, t->detail_len);
	}
	(void)buf_addc(out, ']');
}
