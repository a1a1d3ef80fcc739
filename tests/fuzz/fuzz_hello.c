/* SPDX-License-Identifier: MIT */
/* fuzz_hello.c - a first line and its context, whatever they hold; and a host's answer. */
#include <assert.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "host/hello.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What was taken can be said again, and is taken again. */
static void again(const struct hello *h)
{
	autobuf struct buf out = BUF_INIT(MAX_CONTEXT + HELLO_MAX_LINE * 8);
	struct hello second;
	const char *end;

	hello_put(&out, h);
	end = memchr(buf_text(&out), '\n', out.len);
	assert(end);
	assert(hello_read(out.data, (size_t)(end - out.data), &second, NULL) == 0);
	assert(second.role == h->role && strcmp(second.nonce, h->nonce) == 0);
	hello_release(&second);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	const char *end = size ? memchr(text, '\n', size) : NULL;
	size_t line = end ? (size_t)(end - text) : size;
	struct welcome w;
	struct hello h;
	struct err err;

	if (welcome_read(text, line, &w, &err) < 0)
		assert(*err.msg);
	if (hello_read(text, line, &h, &err) < 0) {
		assert(*err.msg);
		return 0;
	}
	if (end && context_read(&h.context, end + 1, size - line - 1, &err) == 0)
		again(&h);
	hello_release(&h);
	return 0;
}
