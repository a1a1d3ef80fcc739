/* SPDX-License-Identifier: MIT */
/*
 * text.h - strings in, texts and errors out.
 *
 * A struct str is an owned string; an errand_text is one that was given to the caller; an
 * errand_sink is a buffer that a callback writes to.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/mem.h"
#include "errand.h"

struct str {
	char *ptr; /* NUL-terminated; NULL: absent */
	size_t len;
};

struct errand_sink {
	struct buf buf;
};

/* Copy with ill-formed parts replaced. ELIMIT over @max bytes, ENOMEM. Absent stays absent. */
int str_in(const struct mem *m, const char *ptr, size_t len, size_t max, struct str *ret);
/* The same of JSON, which stays as it is; only half a surrogate pair, of which strict readers
 * make no string, becomes U+FFFD. */
int str_json(const struct mem *m, const char *ptr, size_t len, size_t max, struct str *ret);
/* So does what is appended here, or stands in @b already. */
int put_json(struct buf *out, const char *text, size_t len);
void clean_json(struct buf *b);
struct str str_dup(const struct mem *m, const char *ptr, size_t len);
void str_free(const struct mem *m, struct str *s); /* leaves it absent */
struct str str_take(struct str *s);
struct str str_of_buf(
	struct buf *b); /* takes what is in it; stops the program if it is bad */
errand_str str_view(const struct str *s);
size_t str_length(const char *ptr, size_t len); /* resolves ERRAND_NUL */

int rc_of_base(int base_rc); /* -enum err_code -> ERRAND_E* */
/* The same for what js_parse() refuses: never 0. */
static inline int rc_of_parse(int base_rc)
{
	if (base_rc == -ERR_LIMIT)
		return ERRAND_ELIMIT;
	return base_rc == -ERR_NOMEM ? ERRAND_ENOMEM : ERRAND_EJSON;
}
/* js_parse_within() of what must be read here and now: lacking memory stops the program. */
struct js;
int parse_here(const struct mem *m, size_t levels, const char *text, size_t len,
	       struct js **ret) __attribute__((warn_unused_result));
/* Hand @b over as a text, where failing is no longer possible: stops the program instead. */
errand_text *text_of_buf(struct buf *b);
/* Hand @b over as a text: 0, ELIMIT or ENOMEM. @b is empty afterwards. */
int text_take(struct buf *b, errand_text **ret, errand_error **ret_err);

/*
 * Make an error, if the caller wants one, and return its code. The inline faces let the
 * compiler and the analyzer see that what is returned is never 0.
 */
void error_fill(errand_error **ret, const struct mem *m, int rc, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
#define error_make(ret, m, rc, ...) (error_fill(ret, m, rc, __VA_ARGS__), (rc))
/* The message is what @message holds, which is released. */
void error_fill_take(errand_error **ret, int rc, struct buf *message);
static inline int error_take(errand_error **ret, int rc, struct buf *message)
{
	error_fill_take(ret, rc, message);
	return rc;
}
/* `<before><id><after>`, for an id with anything in it. */
void error_fill_about(errand_error **ret, const struct mem *m, int rc, const char *before,
		      const char *id, size_t len, const char *after);
static inline int error_about(errand_error **ret, const struct mem *m, int rc,
			      const char *before, const char *id, size_t len,
			      const char *after)
{
	error_fill_about(ret, m, rc, before, id, len, after);
	return rc;
}
/* What str_in() refused of a @what of at most @max bytes. */
static inline int error_of_text(errand_error **ret, const struct mem *m, int rc,
				const char *what, size_t max)
{
	if (rc == ERRAND_ENOMEM)
		error_fill(ret, m, rc, "out of memory");
	else
		error_fill(ret, m, rc, "%s is over %zu bytes", what, max);
	return rc;
}
static inline int error_no_memory(errand_error **ret, const struct mem *m)
{
	return error_make(ret, m, ERRAND_ENOMEM, "out of memory");
}
void error_coded(errand_error *e, const char *name, const char *code);
errand_error *error_copy(const struct mem *m, const errand_error *e);
/* The empty one that a callback may fill; and what became of it: the error, never NULL. */
errand_error *error_lend(const struct mem *m);
/* "name: message", or what is there of the two. */
void error_put_string(struct buf *out, const errand_error *e);
