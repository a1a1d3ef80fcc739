/* SPDX-License-Identifier: MIT */
#include "core/text.h"

#include <string.h>

#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/surrogate.h"
#include "base/utf8.h"

struct errand_text {
	struct mem mem; /* a copy: a text may outlive its host */
	struct str s;
};

size_t str_length(const char *ptr, size_t len)
{
	return ptr && len == ERRAND_NUL ? strlen(ptr) : len;
}

struct str str_dup(const struct mem *m, const char *ptr, size_t len)
{
	return (struct str){mem_dup(m, ptr, len), len};
}

static int clean_copy(const struct mem *m, const char *ptr, size_t len, struct str *ret)
{
	struct buf b;

	buf_init_try(&b, len * 3, m);
	if (utf8_clean(&b, ptr, len) != 0) {
		buf_release(&b);
		return ERRAND_ENOMEM;
	}
	*ret = str_of_buf(&b);
	return 0;
}

static int str_raw(const struct mem *m, const char *ptr, size_t len, size_t max,
		   struct str *ret)
{
	struct str s = {NULL, 0};

	if (!ptr) {
		*ret = s;
		return 0;
	}
	s.len = str_length(ptr, len);
	if (s.len > max)
		return ERRAND_ELIMIT;
	s.ptr = mem_try(m, s.len + 1);
	if (!s.ptr)
		return ERRAND_ENOMEM;
	memcpy(s.ptr, ptr, s.len);
	s.ptr[s.len] = 0;
	*ret = s;
	return 0;
}

int str_in(const struct mem *m, const char *ptr, size_t len, size_t max, struct str *ret)
{
	size_t n = ptr ? str_length(ptr, len) : 0;

	if (ptr && n <= max && !utf8_valid(ptr, n))
		return clean_copy(m, ptr, n, ret);
	return str_raw(m, ptr, n, max, ret);
}

int str_json(const struct mem *m, const char *ptr, size_t len, size_t max, struct str *ret)
{
	int rc = str_raw(m, ptr, len, max, ret);

	if (rc == 0 && ret->ptr)
		(void)surrogate_replace_halves(ret->ptr, ret->len);
	return rc;
}

int put_json(struct buf *out, const char *text, size_t len)
{
	size_t before = out->len;
	int rc = buf_add(out, text, len);

	if (rc == 0 && len > 0)
		(void)surrogate_replace_halves(out->data + before, len);
	return rc;
}

void clean_json(struct buf *b)
{
	if (b->len > 0)
		(void)surrogate_replace_halves(b->data, b->len);
}

void str_free(const struct mem *m, struct str *s)
{
	mem_free(m, s->ptr);
	*s = (struct str){NULL, 0};
}

struct str str_take(struct str *s)
{
	struct str taken = *s;

	*s = (struct str){NULL, 0};
	return taken;
}

struct str str_of_buf(struct buf *b)
{
	struct str s;

	if (buf_error(b) == -ERR_NOMEM)
		mem_fail(b->mem, b->len);
	s.ptr = buf_take(b, &s.len);
	return s;
}

errand_str str_view(const struct str *s)
{
	return (errand_str){s->ptr, s->len};
}

int rc_of_base(int base_rc)
{
	static const int rc[] = {
		[ERR_NONE] = ERRAND_OK,         [ERR_ARG] = ERRAND_EARG,
		[ERR_SYS] = ERRAND_EARG,        [ERR_LIMIT] = ERRAND_ELIMIT,
		[ERR_NOT_FOUND] = ERRAND_EGONE, [ERR_STATE] = ERRAND_ESTATE,
		[ERR_FORMAT] = ERRAND_EJSON,    [ERR_LOSSY] = ERRAND_EJSON,
		[ERR_NOMEM] = ERRAND_ENOMEM,
	};

	return rc[-base_rc];
}

int parse_here(const struct mem *m, size_t levels, const char *text, size_t len,
	       struct js **ret)
{
	int rc = js_parse_within(text, len, levels, ret, NULL);

	if (rc == -ERR_NOMEM)
		mem_fail(m, len);
	return rc;
}

static errand_text *text_fill(errand_text *t, struct buf *b)
{
	*t = (errand_text){.s = str_of_buf(b)};
	if (b->mem)
		t->mem = *b->mem;
	return t;
}

errand_text *text_of_buf(struct buf *b)
{
	return text_fill(mem_new(b->mem, sizeof(errand_text)), b);
}

int text_take(struct buf *b, errand_text **ret, errand_error **ret_err)
{
	int rc = rc_of_base(buf_reserve(b, 0)); /* also an empty one has its NUL */
	errand_text *t = rc == 0 ? mem_try(b->mem, sizeof(*t)) : NULL;

	if (t) {
		*ret = text_fill(t, b);
		return 0;
	}
	buf_release(b);
	if (rc == ERRAND_ELIMIT)
		return error_make(ret_err, b->mem, rc, "the answer is too large");
	return error_no_memory(ret_err, b->mem);
}

const char *errand_text_data(const errand_text *t, size_t *ret_len)
{
	if (ret_len)
		*ret_len = t ? t->s.len : 0;
	return t ? t->s.ptr : "";
}

void errand_text_free(errand_text *t)
{
	struct mem mem;

	if (!t)
		return;
	mem = t->mem;
	mem_free(&mem, t->s.ptr);
	mem_free(&mem, t);
}

int errand_sink_write(errand_sink *s, const void *bytes, size_t len)
{
	size_t room;

	if (!s || (len && !bytes))
		return ERRAND_EARG;
	room = buf_room(&s->buf);
	if (buf_add(&s->buf, bytes, len < room ? len : room) != 0)
		return 1;
	return len > room;
}

size_t errand_sink_room(const errand_sink *s)
{
	return s ? buf_room(&s->buf) : 0;
}

uint32_t errand_abi(void)
{
	return ERRAND_ABI;
}

const char *errand_version(void)
{
	return ERRAND_VERSION;
}

int errand_has(const char *feature)
{
	static const char *const features[] = {
		"consumed", "cursor",          "journal", "limits", "mailbox", "on-abort",
		"policies", "process-outcome", "scopes",  "turns",  "wake",
	};

	for (size_t i = 0; feature && i < sizeof(features) / sizeof(features[0]); i++)
		if (strcmp(features[i], feature) == 0)
			return 1;
	return 0;
}
