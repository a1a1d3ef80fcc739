/* SPDX-License-Identifier: MIT */
#include "transport/framing.h"

#include <string.h>

#include "base/limits.h"

/* A carry buffer that once held a huge line is not kept for small ones. */
#define KEEP KIB(64)

void framing_init(struct framing *f, size_t max_line)
{
	*f = (struct framing){0};
	buf_init(&f->carry, max_line);
}

void framing_release(struct framing *f)
{
	buf_release(&f->carry);
}

static void take_back(struct framing *f)
{
	if (f->carry.cap > KEEP)
		buf_release(&f->carry);
	else
		buf_clear(&f->carry);
	f->is_handed_out = false;
}

void framing_block(struct framing *f, size_t n)
{
	f->wanted = n;
}

static enum frame next_of_block(struct framing *f, const char **data, size_t *len,
				const char **ret, size_t *ret_len)
{
	size_t n = *len < f->wanted ? *len : f->wanted;

	(void)buf_add(&f->carry, *data, n);
	*data += n;
	*len -= n;
	f->wanted -= n;
	if (f->wanted > 0)
		return FRAME_NONE;
	f->is_handed_out = true;
	*ret = buf_text(&f->carry);
	*ret_len = f->carry.len;
	return FRAME_LINE;
}

enum frame framing_next(struct framing *f, const char **data, size_t *len, const char **ret,
			size_t *ret_len)
{
	const char *start = *data, *end = *len ? memchr(start, '\n', *len) : NULL;
	size_t n = end ? (size_t)(end - start) : *len;

	if (f->is_handed_out)
		take_back(f);
	if (f->wanted > 0)
		return next_of_block(f, data, len, ret, ret_len);
	*data += end ? n + 1 : n;
	*len -= end ? n + 1 : n;
	if (!f->is_skipping && n > buf_room(&f->carry)) {
		f->is_skipping = true;
		buf_release(&f->carry);
	}
	if (!end) {
		if (!f->is_skipping && buf_add(&f->carry, start, n) < 0)
			f->is_skipping = true;
		return FRAME_NONE;
	}
	if (f->is_skipping) {
		f->is_skipping = false;
		buf_release(&f->carry);
		return FRAME_TOO_LONG;
	}
	*ret = start;
	*ret_len = n;
	if (f->carry.len == 0)
		return FRAME_LINE;
	f->is_handed_out = true;
	if (buf_add(&f->carry, start, n) < 0)
		return FRAME_TOO_LONG;
	*ret = f->carry.data;
	*ret_len = f->carry.len;
	return FRAME_LINE;
}
