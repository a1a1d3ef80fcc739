/* SPDX-License-Identifier: MIT */
#include "run/screen.h"

#include <stdbool.h>
#include <stdint.h>

#include <utf8proc.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "core/oneline.h"

#define REPLACEMENT "\xef\xbf\xbd"
#define ELLIPSIS "\xe2\x80\xa6"

/* Cells of the code point at @text, its bytes in *@ret_len. */
static size_t cells_of(const char *text, size_t len, size_t *ret_len)
{
	uint32_t cp = 0;
	size_t bad = 1;
	int n = utf8_decode(text, len, &cp, &bad), cells;

	*ret_len = n > 0 ? (size_t)n : bad;
	cells = n > 0 ? utf8proc_charwidth((utf8proc_int32_t)cp) : 1;
	return cells > 0 ? (size_t)cells : 0;
}

/* Bytes of the head that fits into @columns. */
static size_t head_of(const char *text, size_t len, size_t columns)
{
	size_t at = 0, used = 0, n;

	while (at < len) {
		used += cells_of(text + at, len - at, &n);
		if (used > columns)
			break;
		at += n;
	}
	return at;
}

size_t screen_width(const char *text, size_t len)
{
	size_t used = 0, n;

	for (size_t at = 0; at < len; at += n)
		used += cells_of(text + at, len - at, &n);
	return used;
}

static bool is_bidi(const uint8_t *p, size_t len)
{
	if (len >= 2 && p[0] == 0xd8)
		return p[1] == 0x9c;
	if (len < 3 || p[0] != 0xe2)
		return false;
	if (p[1] == 0x80)
		return p[2] == 0x8e || p[2] == 0x8f || (p[2] >= 0xaa && p[2] <= 0xae);
	return p[1] == 0x81 && p[2] >= 0xa6 && p[2] <= 0xa9;
}

void screen_show_bidi(struct buf *out, const char *text, size_t len)
{
	const uint8_t *p = (const uint8_t *)text;
	size_t done = 0;

	for (size_t i = 0; i < len; i++) {
		if (p[i] < 0xd8 || !is_bidi(p + i, len - i))
			continue;
		buf_add(out, text + done, i - done);
		buf_adds(out, REPLACEMENT);
		done = i + (p[i] == 0xd8 ? 2 : 3);
	}
	buf_add(out, text + done, len - done);
}

void screen_put(struct buf *out, const char *text, size_t len, size_t columns)
{
	autobuf struct buf shown = BUF_INIT(MAX_LABEL * 2);
	autobuf struct buf line = BUF_INIT(MAX_LABEL * 6); /* a broken byte becomes three */

	screen_show_bidi(&shown, text, len < MAX_LABEL ? len : MAX_LABEL);
	oneline_put(&line, buf_text(&shown), shown.len);
	if (head_of(buf_text(&line), line.len, columns) == line.len) {
		buf_add(out, buf_text(&line), line.len);
		return;
	}
	if (columns == 0)
		return;
	buf_add(out, buf_text(&line), head_of(buf_text(&line), line.len, columns - 1));
	buf_adds(out, ELLIPSIS);
}
