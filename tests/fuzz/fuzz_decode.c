/* SPDX-License-Identifier: MIT */
/* fuzz_decode.c - any bytes give well-formed text, and the same one over any split. */
#include <assert.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/utf8.h"
#include "run/decode.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_text(const struct buf *out, size_t from)
{
	const char *text = buf_text(out) + from;
	size_t len = out->len - from;

	assert(utf8_valid(text, len));
	for (size_t i = 0; i < len; i++)
		assert((unsigned char)text[i] >= 0x20 || text[i] == '\t' ||
		       text[i] == '\n');
}

/* Bytes that mean the same wherever the reader happens to stop. */
static bool is_splittable(const char *raw, size_t len)
{
	return !memchr(raw, '\r', len) && !memchr(raw, '\b', len) && !memchr(raw, 0, len) &&
	       !memchr(raw, 'G', len);
}

static void check_split(const char *raw, size_t len, size_t at, const struct buf *whole)
{
	autobuf struct buf out = BUF_INIT(len * 3 + 16);
	size_t used = decode(&out, raw, at, false, NULL);

	assert(used <= at);
	used += decode(&out, raw + used, len - used, true, NULL);
	assert(used == len);
	check_text(&out, 0);
	if (is_splittable(raw, len)) {
		assert(out.len == whole->len);
		assert(memcmp(buf_text(&out), buf_text(whole), out.len) == 0);
	}
}

static void check_terminal_text(const struct buf *out)
{
	assert(utf8_valid(buf_text(out), out->len));
	for (size_t i = 0; i < out->len; i++)
		assert((unsigned char)out->data[i] >= 0x20 ||
		       memchr("\t\n\r\b", out->data[i], 4));
}

static void check_terminal(const char *raw, size_t len, size_t at)
{
	autobuf struct buf whole = BUF_INIT(len * 3 + 16), out = BUF_INIT(len * 3 + 16);
	size_t used = decode_terminal(&out, raw, at, false);

	assert(used <= at);
	used += decode_terminal(&out, raw + used, len - used, true);
	assert(used == len);
	check_terminal_text(&out);
	assert(decode_terminal(&whole, raw, len, true) == len);
	/* A row of NULs is the only thing that a split divides. */
	if (memchr(raw, 0, len))
		return;
	assert(out.len == whole.len);
	assert(memcmp(buf_text(&out), buf_text(&whole), out.len) == 0);
}

static void check_cut(const char *raw, size_t len, size_t want, const struct buf *whole)
{
	autobuf struct buf out = BUF_INIT(len * 3 + 16);
	struct decode_cut cut = {.want = want};

	(void)decode(&out, raw, len, true, &cut);
	assert(out.len == whole->len && cut.raw <= len && cut.line_raw <= len);
	assert(cut.text <= out.len && cut.line_text <= out.len);
	assert(cut.text >= want || cut.text == out.len);
	check_text(&out, cut.text);
	check_text(&out, cut.line_text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	autobuf struct buf whole = BUF_INIT(size * 3 + 16), small = BUF_INIT(size / 2 + 4);
	const char *raw = (const char *)data + 1;
	size_t len = size - 1;

	if (size < 2)
		return 0;
	assert(decode(&whole, raw, len, true, NULL) == len);
	check_text(&whole, 0);
	assert(decode(&small, raw, len, false, NULL) <= len);
	check_text(&small, 0);
	check_split(raw, len, data[0] % (len + 1), &whole);
	check_terminal(raw, len, data[0] % (len + 1));
	check_cut(raw, len, data[0] % (whole.len + 1), &whole);
	return 0;
}
