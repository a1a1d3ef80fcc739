/* SPDX-License-Identifier: MIT */
/* wait.c - `errand wait`: until tasks have ended; its exit code is theirs. */
#include <inttypes.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/human.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/people.h"
#include "host/link.h"

/* A host answers so many open requests of one client. */
#define MAX_WAITS 1000

enum {
	STATE,
	ANY,
	TIMEOUT,
};

static const struct option_spec options[] = {
	[STATE] = STATE_OPTION,
	[ANY] = {"--any", NULL, "until the first of them has ended"},
	[TIMEOUT] = {"--timeout", "D", "wait no longer than 90s, 15m, 1h30m ..."},
	END_OF_OPTIONS,
};

static size_t count(char *const *args)
{
	size_t n = 0;

	while (args[n])
		n++;
	return n;
}

static int ask_all(struct asking *a, char *const *ids, int64_t timeout_ms)
{
	struct err err = {0};
	int rc = 0;

	for (; *ids && rc == 0; ids++) {
		autobuf struct buf params = BUF_INIT(MAX_REQUEST_LINE);

		people_put_id(&params, *ids);
		if (timeout_ms)
			buf_addf(&params, ",\"timeoutMs\":%" PRId64, timeout_ms);
		buf_addc(&params, '}');
		rc = link_post(a->link, "errand/wait", buf_text(&params), &err);
	}
	return rc < 0 ? people_failed(a, &err) : EXIT_DONE;
}

static int take_end(const struct js *task, const char *id)
{
	autobuf struct buf status = BUF_INIT(MAX_DETAIL);

	if (js_type(js_get(task, "finishedAt")) == JS_NONE)
		return EXIT_TIMED_OUT;
	if (isatty(STDERR_FILENO)) {
		people_put_status(&status, task);
		fprintf(stderr, "%s: %s\n", id, buf_text(&status));
	}
	return people_exit_code(task);
}

/* The next answer, whichever that is: the code of its task, or why there is none. */
static int take_answer(struct asking *a, char *const *ids, size_t n, size_t *ret_which)
{
	autobuf struct buf result = BUF_INIT(MAX_JSON_TEXT);
	struct js *answer = NULL;
	struct err err = {0};
	uint64_t number = 0;
	int rc = link_answer(a->link, &number, &result, &err);

	if (rc == 0)
		rc = js_parse(buf_text(&result), result.len, &answer, &err);
	*ret_which = number >= 1 && number <= n ? (size_t)number - 1 : n;
	if (rc == 0 && *ret_which < n)
		rc = take_end(js_get(answer, "task"), ids[*ret_which]);
	else
		rc = people_failed(a, &err);
	js_free(answer);
	return rc;
}

/* Of all: the first code that is not 0, in the order of the arguments. */
static int await(struct asking *a, char *const *ids, bool any)
{
	size_t n = count(ids), which, first = n;
	int code = EXIT_DONE;

	if (isatty(STDERR_FILENO))
		fprintf(stderr, "waiting for %zu task%s\n", n, n == 1 ? "" : "s");
	for (size_t i = 0; i < n; i++) {
		int rc = take_answer(a, ids, n, &which);

		if (any || which == n)
			return rc;
		if (rc != EXIT_DONE && which < first) {
			first = which;
			code = rc;
		}
	}
	return code;
}

static int run(const char *const *values, char *const *args)
{
	struct asking a = {.command = "wait"};
	struct err err = {0};
	int64_t timeout_ms = 0;
	int rc;

	if (values[TIMEOUT] && human_read_ms(values[TIMEOUT], &timeout_ms, &err) < 0)
		return people_wrong(&a, &err);
	rc = people_connect(&a, values[STATE], NULL);
	if (rc == EXIT_DONE)
		rc = ask_all(&a, args, timeout_ms);
	if (rc == EXIT_DONE)
		rc = await(&a, args, values[ANY] != NULL);
	people_leave(&a);
	return rc;
}

const struct command command_wait = {
	.name = "wait",
	.summary = "wait for tasks to end",
	.details =
		"Ends with the exit code of the task, or with 128 and the number of the "
		"signal that\nended it; of several, with the first that is not 0. 124: the "
		"time was over. 125:\nit has ended without an exit code that anybody knows.",
	.options = options,
	.args = "ID...",
	.min_args = 1,
	.max_args = MAX_WAITS,
	.run = run,
};
