/* SPDX-License-Identifier: MIT */
/* output.c - `errand output`: all that a task has printed, as text. */
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/people.h"
#include "run/follow.h"

enum {
	STATE,
	WAIT,
};

static const struct option_spec options[] = {
	[STATE] = STATE_OPTION,
	[WAIT] = {"--wait", NULL, "until the task has ended"},
	END_OF_OPTIONS,
};

static int print(struct asking *a, const char *id)
{
	struct follow f = {
		.out_fd = STDOUT_FILENO,
		.is_screen = isatty(STDOUT_FILENO),
	};
	struct err err = {0};
	struct reader r;
	int rc = people_open_log(a, id, READER_TEXT, &r);

	if (rc != EXIT_DONE)
		return rc;
	if (follow(&r, &f, &err) < 0)
		rc = people_failed(a, &err);
	reader_close(&r);
	return rc;
}

static int run(const char *const *values, char *const *args)
{
	struct asking a = {.command = "output"};
	autobuf struct buf status = BUF_INIT(MAX_DETAIL);
	struct js *answer = NULL;
	int rc = people_connect(&a, values[STATE], NULL);

	if (values[WAIT])
		people_await(&a, "1 task");
	if (rc == EXIT_DONE)
		rc = people_ask_id(&a, values[WAIT] ? "errand/wait" : "errand/get", args[0],
				   &answer);
	people_has_come(&a);
	if (rc == EXIT_DONE)
		rc = print(&a, args[0]);
	if (rc == EXIT_DONE) {
		people_put_status(&status, js_get(answer, "task"));
		fprintf(stderr, "[status: %s]\n", buf_text(&status));
	}
	js_free(answer);
	people_leave(&a);
	if (rc == EXIT_NO_TASK || rc == EXIT_NO_HOST)
		return people_tell_past(&a, args[0], rc);
	return rc;
}

const struct command command_output = {
	.name = "output",
	.summary = "print all of a task's output, as text",
	.details =
		"Prints the output as an agent reads it, but all of it, and takes nothing "
		"away\nfrom the agent's own reading. The status goes to stderr.",
	.options = options,
	.args = "ID",
	.min_args = 1,
	.max_args = 1,
	.run = run,
};
