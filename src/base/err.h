/* SPDX-License-Identifier: MIT */
/*
 * err.h - how errand's own code reports a failure.
 *
 * A fallible function returns 0 or -enum err_code. With a story to tell it takes a
 * struct err last, which may be NULL. The message is made once, where the cause is known,
 * lower case and without a full stop: cannot open 'out': Permission denied. One more layer
 * may put its context in front. Nothing is allocated; a long text is cut at a code point.
 */
#pragma once

#include <stdarg.h>

enum err_code {
	ERR_NONE,
	ERR_ARG,   /* the caller's fault: a bad value */
	ERR_SYS,   /* the system's fault: the text holds errno's */
	ERR_LIMIT, /* over a maximum */
	ERR_NOT_FOUND,
	ERR_STATE,  /* not now */
	ERR_FORMAT, /* bytes from outside that are not what they should be */
	ERR_LOSSY,  /* JSON that no double can carry: -0, or an overflow (D16) */
	ERR_NOMEM,
};

#define ERR_TEXT 240

struct err {
	int code;   /* enum err_code */
	int errnum; /* errno of the cause, or 0 */
	char msg[ERR_TEXT];
};

/* Each returns -code, so that a failure is one line: return err_set(err, ERR_ARG, ...). */
int err_set(struct err *e, enum err_code code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* "<text>: <strerror(errnum)>", code ERR_SYS. */
int err_sys(struct err *e, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Put "<text>: " in front of what is there. Returns -e->code, or -ERR_SYS without an @e. */
int err_wrap(struct err *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
