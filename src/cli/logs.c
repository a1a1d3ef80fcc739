/* SPDX-License-Identifier: MIT */
/* logs.c - `errand logs`: a task's log, or a part of it, now or as it grows. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "cli/command.h"
#include "cli/people.h"
#include "run/follow.h"

enum {
	STATE,
	FOLLOW,
	RAW,
	TAIL,
	RANGE,
	LINES,
};

static const struct option_spec options[] = {
	[STATE] = STATE_OPTION,
	[FOLLOW] = {"-f", NULL, "go on until the task has ended"},
	[RAW] = {"--raw", NULL, "the bytes as they are, terminal escapes and all"},
	[TAIL] = {"--tail", "N", "the last N lines"},
	[RANGE] = {"--range", "A-B", "bytes A to B, from 0 on"},
	[LINES] = {"--lines", "A-B", "lines A to B, from 1 on"},
	END_OF_OPTIONS,
};

/* A number at *@at, which is moved behind it. */
static bool take_number(const char **at, uint64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)**at))
		return false;
	errno = 0;
	*ret = strtoull(*at, &end, 10);
	*at = end;
	return errno == 0 && *ret < UINT64_MAX;
}

static int read_number(const char *option, const char *text, uint64_t *ret, struct err *err)
{
	const char *at = text;

	if (take_number(&at, ret) && !*at)
		return 0;
	return err_set(err, ERR_ARG, "%s is a number, not '%.40s'", option, text);
}

static int read_pair(const char *option, const char *text, uint64_t *a, uint64_t *b,
		     struct err *err)
{
	const char *at = text;

	if (take_number(&at, a) && *at++ == '-' && take_number(&at, b) && !*at && *a <= *b)
		return 0;
	return err_set(err, ERR_ARG, "%s is two numbers such as 500-549, not '%.40s'",
		       option, text);
}

struct part {
	uint64_t tail, from, to; /* UINT64_MAX: not given */
	struct follow f;
};

static int read_part(const char *const *values, struct part *p, struct err *err)
{
	int rc = 0,
	    n = (values[TAIL] != NULL) + (values[RANGE] != NULL) + (values[LINES] != NULL);

	if (n > 1)
		return err_set(err, ERR_ARG,
			       "only one of --tail, --range and --lines may be given");
	if (values[TAIL])
		rc = read_number("--tail", values[TAIL], &p->tail, err);
	if (values[RANGE])
		rc = read_pair("--range", values[RANGE], &p->from, &p->to, err);
	if (values[LINES])
		rc = read_pair("--lines", values[LINES], &p->f.first_line, &p->f.last_line,
			       err);
	if (rc == 0 && values[LINES] && !p->f.first_line)
		rc = err_set(err, ERR_ARG, "lines are counted from 1 on");
	return rc;
}

static int print(struct asking *a, struct reader *r, const struct part *p)
{
	struct err err = {0};
	int rc = 0;

	if (p->tail != UINT64_MAX)
		rc = reader_tail(r, p->tail, &err);
	else if (p->from != UINT64_MAX)
		reader_range(r, p->from, p->to + 1);
	if (rc == 0)
		rc = follow(r, &p->f, &err);
	return rc < 0 ? people_failed(a, &err) : EXIT_DONE;
}

static int run(const char *const *values, char *const *args)
{
	struct asking a = {.command = "logs"};
	struct part p = {
		.tail = UINT64_MAX,
		.from = UINT64_MAX,
		.f = {.out_fd = STDOUT_FILENO, .is_following = values[FOLLOW] != NULL},
	};
	struct err err = {0};
	struct reader r;
	int rc;

	if (read_part(values, &p, &err) < 0)
		return people_wrong(&a, &err);
	rc = people_connect(&a, values[STATE], NULL);
	if (rc == EXIT_DONE)
		rc = people_open_log(&a, args[0], values[RAW] ? READER_RAW : people_mode(),
				     &r);
	people_leave(&a); /* the log needs no host any more */
	if (rc == EXIT_NO_TASK || rc == EXIT_NO_HOST)
		return people_tell_past(&a, args[0], rc);
	if (rc != EXIT_DONE)
		return rc;
	p.f.is_screen = !values[RAW] && isatty(STDOUT_FILENO);
	rc = print(&a, &r, &p);
	reader_close(&r);
	return rc;
}

const struct command command_logs = {
	.name = "logs",
	.summary = "print a task's log, or follow it",
	.details =
		"Prints what the task has printed. Terminal escapes are taken out, unless "
		"the\nbytes are wanted as they are. Reading takes nothing away from an "
		"agent's own.",
	.options = options,
	.args = "ID",
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
