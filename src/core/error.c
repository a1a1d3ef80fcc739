/* SPDX-License-Identifier: MIT */
/* error.c - errand_error: a code of ours, and a message of the contract's or the caller's. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "core/text.h"

struct errand_error {
	struct mem mem;
	int rc;
	struct str name, code, message;
};

static errand_error *error_alloc(const struct mem *m, int rc)
{
	errand_error *e = mem_new(m, sizeof(*e));

	if (m)
		e->mem = *m;
	e->rc = rc;
	e->name = str_dup(m, "Error", 5);
	return e;
}

/* Cut what is too long: half a message beats none. */
static void set_text(const struct mem *m, struct str *s, const char *text, size_t len)
{
	struct str copy;

	len = utf8_head(text, len, MAX_ERROR_TEXT);
	if (str_in(m, text, len, MAX_ERROR_TEXT, &copy) != 0)
		mem_fail(m, len);
	str_free(m, s);
	*s = copy;
}

void error_fill_take(errand_error **ret, int rc, struct buf *message)
{
	errand_error *e;

	if (ret) {
		e = error_alloc(message->mem, rc);
		set_text(&e->mem, &e->message, buf_text(message), message->len);
		*ret = e;
	}
	buf_release(message);
}

void error_fill(errand_error **ret, const struct mem *m, int rc, const char *fmt, ...)
{
	char text[512];
	errand_error *e;
	va_list ap;

	if (!ret)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	e = error_alloc(m, rc);
	set_text(&e->mem, &e->message, text, strlen(text));
	*ret = e;
}

void error_fill_about(errand_error **ret, const struct mem *m, int rc, const char *before,
		      const char *id, size_t len, const char *after)
{
	struct buf b;

	buf_init_mem(&b, MAX_ERROR_TEXT, m);
	(void)buf_adds(&b, before);
	(void)buf_add(&b, id, utf8_head(id, len, buf_room(&b)));
	(void)buf_adds(&b, after);
	error_fill_take(ret, rc, &b);
}

void error_coded(errand_error *e, const char *name, const char *code)
{
	set_text(&e->mem, &e->name, name, strlen(name));
	set_text(&e->mem, &e->code, code, strlen(code));
}

errand_error *error_copy(const struct mem *m, const errand_error *e)
{
	errand_error *c = error_alloc(m, e ? e->rc : ERRAND_ECALLBACK);

	if (!e)
		return c;
	set_text(m, &c->name, e->name.ptr, e->name.len);
	if (e->code.ptr)
		set_text(m, &c->code, e->code.ptr, e->code.len);
	if (e->message.ptr)
		set_text(m, &c->message, e->message.ptr, e->message.len);
	return c;
}

errand_error *error_lend(const struct mem *m)
{
	return error_alloc(m, ERRAND_ECALLBACK);
}

void error_put_string(struct buf *out, const errand_error *e)
{
	(void)buf_add(out, e->name.ptr, e->name.len);
	if (e->name.len && e->message.len)
		(void)buf_adds(out, ": ");
	if (e->message.len)
		(void)buf_add(out, e->message.ptr, e->message.len);
}

errand_error *errand_error_new(const char *name, const char *code, const char *message,
			       size_t len)
{
	errand_error *e = error_alloc(NULL, ERRAND_ECALLBACK);

	errand_error_set(e, name, code, message, len);
	return e;
}

void errand_error_set(errand_error *e, const char *name, const char *code,
		      const char *message, size_t len)
{
	if (!e)
		return;
	set_text(&e->mem, &e->name, name ? name : "Error", name ? strlen(name) : 5);
	str_free(&e->mem, &e->code);
	if (code)
		set_text(&e->mem, &e->code, code, strlen(code));
	str_free(&e->mem, &e->message);
	if (message)
		set_text(&e->mem, &e->message, message, str_length(message, len));
}

int errand_error_rc(const errand_error *e)
{
	return e ? e->rc : 0;
}

const char *errand_error_message(const errand_error *e, size_t *ret_len)
{
	if (ret_len)
		*ret_len = e ? e->message.len : 0;
	return e && e->message.ptr ? e->message.ptr : "";
}

const char *errand_error_name(const errand_error *e)
{
	return e ? e->name.ptr : "";
}

const char *errand_error_code(const errand_error *e)
{
	return e ? e->code.ptr : NULL;
}

void errand_error_free(errand_error *e)
{
	struct mem mem;

	if (!e)
		return;
	mem = e->mem;
	str_free(&mem, &e->name);
	str_free(&mem, &e->code);
	str_free(&mem, &e->message);
	mem_free(&mem, e);
}
