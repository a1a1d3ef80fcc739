/* SPDX-License-Identifier: MIT */
/*
 * failing.h - the n-th allocation fails, and what a process was told meanwhile.
 *
 * Linked with --wrap for malloc, realloc and free. One test file includes this, once.
 */
#pragma once

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "errand.h"

#define EXIT_OOM 77
#define MAX_TEXT (8 << 20)

/* What a process leaves behind. */
struct report {
	size_t allocations;   /* so many were asked for */
	size_t refused_calls; /* so often a call said ENOMEM */
	size_t len;
	char told[MAX_TEXT]; /* what the scenario was told, in order */
};

static struct report *report;

/* ---- memory ---- */

static struct {
	bool is_on;
	size_t fail_at, min_size;
	long live;
} memory;

void *__real_malloc(size_t n);
void *__real_realloc(void *p, size_t n);
void __real_free(void *p);
void *__wrap_malloc(size_t n);
void *__wrap_realloc(void *p, size_t n);
void __wrap_free(void *p);

static bool fails(size_t n)
{
	return memory.is_on && n >= memory.min_size &&
	       ++report->allocations == memory.fail_at;
}

void *__wrap_malloc(size_t n)
{
	void *p = fails(n) ? NULL : __real_malloc(n);

	memory.live += p != NULL;
	return p;
}

void *__wrap_realloc(void *p, size_t n)
{
	void *q = fails(n) ? NULL : __real_realloc(p, n);

	memory.live += q && !p;
	return q;
}

void __wrap_free(void *p)
{
	memory.live -= p != NULL;
	__real_free(p);
}

static void *host_alloc(void *ud, size_t n)
{
	(void)ud;
	return __wrap_malloc(n);
}

static void *host_resize(void *ud, void *p, size_t n)
{
	(void)ud;
	return __wrap_realloc(p, n);
}

static void host_dealloc(void *ud, void *p)
{
	(void)ud;
	__wrap_free(p);
}

static void on_oom(void *ud, size_t n)
{
	(void)ud;
	(void)n;
	_exit(EXIT_OOM);
}

/* ---- what is told ---- */

static void put(const char *text, size_t len)
{
	if (len >= MAX_TEXT - report->len)
		_exit(3);
	memcpy(report->told + report->len, text, len);
	report->len += len;
}

static void note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static void note(const char *fmt, ...)
{
	char line[256];
	va_list ap;

	va_start(ap, fmt);
	put(line, (size_t)vsnprintf(line, sizeof(line), fmt, ap));
	va_end(ap);
}

/* The how-manieth of the ids that were told: a refused call may have used some up. */
static size_t rank(unsigned long id)
{
	static unsigned long seen[256];
	size_t i = 0;

	while (seen[i] && seen[i] != id && i < 255)
		i++;
	seen[i] = id;
	return i;
}

static void note_text(const char *p, size_t len)
{
	static const char *const keys[] = {"\"task\":", "\"agent\":"};
	const char *end = p + len, *quote;
	char *rest;

	for (; (quote = memchr(p, '"', (size_t)(end - p))); p = quote + 1) {
		put(p, (size_t)(quote + 1 - p));
		for (size_t i = 0; i < 2; i++) {
			size_t n = strlen(keys[i]);

			if (strncmp(quote, keys[i], n) || quote[n] < '0' || quote[n] > '9')
				continue;
			note("%zu", rank(strtoul(quote + n, &rest, 10)));
			quote = rest - 1;
		}
	}
	put(p, (size_t)(end - p));
	put("\n", 1);
}

static errand_error *err;
static errand_text *text;

/* What the call left: its error, its text. */
static void note_outcome(int line, int rc)
{
	size_t len;
	const char *p = errand_text_data(text, &len);

	note("line %d: %d %s ", line, rc, errand_error_message(err, NULL));
	note_text(p, len);
	errand_error_free(err);
	errand_text_free(text);
	err = NULL;
	text = NULL;
}

static int last_rc;

/* Was that a refusal for want of memory, and a good one? */
static bool is_refusal(int rc)
{
	last_rc = rc;
	if (rc != ERRAND_ENOMEM)
		return false;
	report->refused_calls++;
	if ((err && !strstr(errand_error_message(err, NULL), "out of memory")) || text)
		note("a bad refusal: %s\n", errand_error_message(err, NULL));
	errand_error_free(err);
	err = NULL;
	return true;
}

/* Make a call; once more, if there was no memory for it. */
#define DO(call) note_outcome(__LINE__, is_refusal(call) ? (call) : last_rc)
