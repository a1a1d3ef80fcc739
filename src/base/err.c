/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <stdio.h>
#include <string.h>

#include "base/utf8.h"

/* Cut a full buffer back to a whole code point. */
static void trim(char *msg)
{
	size_t len = strlen(msg);

	if (len == ERR_TEXT - 1)
		msg[utf8_head(msg, len, len - 1)] = 0;
}

__attribute__((format(printf, 4, 0))) static void put(struct err *e, enum err_code code,
						      int errnum, const char *fmt,
						      va_list ap)
{
	e->code = code;
	e->errnum = errnum;
	(void)vsnprintf(e->msg, sizeof(e->msg), fmt, ap);
	trim(e->msg);
}

int err_set(struct err *e, enum err_code code, const char *fmt, ...)
{
	va_list ap;

	if (e) {
		va_start(ap, fmt);
		put(e, code, 0, fmt, ap);
		va_end(ap);
	}
	return -(int)code;
}

int err_sys(struct err *e, int errnum, const char *fmt, ...)
{
	va_list ap;
	size_t len;

	if (e) {
		va_start(ap, fmt);
		put(e, ERR_SYS, errnum, fmt, ap);
		va_end(ap);
		len = strlen(e->msg);
		(void)snprintf(e->msg + len, sizeof(e->msg) - len, ": %s",
			       strerror(errnum));
		trim(e->msg);
	}
	return -ERR_SYS;
}

int err_wrap(struct err *e, const char *fmt, ...)
{
	char old[ERR_TEXT];
	va_list ap;
	size_t len;

	if (!e)
		return -ERR_SYS;
	memcpy(old, e->msg, sizeof(old));
	va_start(ap, fmt);
	put(e, (enum err_code)e->code, e->errnum, fmt, ap);
	va_end(ap);
	len = strlen(e->msg);
	(void)snprintf(e->msg + len, sizeof(e->msg) - len, ": %s", old);
	trim(e->msg);
	return -e->code;
}
