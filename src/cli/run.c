/* SPDX-License-Identifier: MIT */
/* run.c - `errand run`: start a command as a task. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/human.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/people.h"
#include "run/follow.h"

enum {
	STATE,
	SESSION,
	LABEL,
	TIMEOUT,
	WAIT,
};

static const struct option_spec options[] = {
	[STATE] = STATE_OPTION,
	[SESSION] = {"--session", "S", "who owns it; else ERRAND_SESSION, else 'people'"},
	[LABEL] = {"--label", "L", "what lists show; else the command"},
	[TIMEOUT] = {"--timeout", "D", "end it after 90s, 15m, 1h30m ..."},
	[WAIT] = {"--wait", NULL, "print its output, and end with its exit code"},
	END_OF_OPTIONS,
};

static void put_params(struct buf *out, const char *label, int64_t timeout_ms,
		       char *const *argv)
{
	buf_adds(out, "{\"argv\":[");
	for (size_t i = 0; argv[i]; i++) {
		buf_adds(out, i ? "," : "");
		js_put_string(out, argv[i], strlen(argv[i]));
	}
	buf_addc(out, ']');
	if (label)
		js_put_member(out, "label", label, strlen(label));
	if (timeout_ms)
		buf_addf(out, ",\"timeoutMs\":%" PRId64, timeout_ms);
	buf_addc(out, '}');
}

static int print_output(struct asking *a, const char *id)
{
	struct follow f = {
		.out_fd = STDOUT_FILENO,
		.is_following = true,
		.is_screen = isatty(STDOUT_FILENO),
	};
	struct err err = {0};
	struct reader r;
	int rc = people_open_log(a, id, people_mode(), &r);

	if (rc != EXIT_DONE)
		return rc;
	if (follow(&r, &f, &err) < 0)
		rc = people_failed(a, &err);
	reader_close(&r);
	return rc;
}

static int await(struct asking *a, const char *id)
{
	autobuf struct buf status = BUF_INIT(MAX_DETAIL);
	struct js *answer = NULL;
	const struct js *task;
	int rc;

	fprintf(stderr, "%s\n", id);
	rc = print_output(a, id);
	if (rc == EXIT_DONE)
		rc = people_ask_id(a, "errand/wait", id, &answer);
	if (rc == EXIT_DONE) {
		task = js_get(answer, "task");
		rc = people_exit_code(task);
		people_put_status(&status, task);
	}
	if (status.len && rc != EXIT_DONE)
		fprintf(stderr, "%s: %s\n", id, buf_text(&status));
	js_free(answer);
	return rc;
}

static int start(struct asking *a, const struct buf *params, bool waits)
{
	struct js *answer = NULL;
	int rc = people_ask(a, "errand/run", params, &answer);
	const char *id = js_string(js_get(answer, "id"), NULL);

	if (id && waits)
		rc = await(a, id);
	else if (id)
		printf("%s\n", id);
	js_free(answer);
	return rc;
}

static int run(const char *const *values, char *const *args)
{
	autobuf struct buf params = BUF_INIT(MAX_REQUEST_LINE);
	struct asking a = {.command = "run", .may_start = true};
	const char *session = values[SESSION] ? values[SESSION] : getenv("ERRAND_SESSION");
	struct err err = {0};
	int64_t timeout_ms = 0;
	int rc;

	if (values[TIMEOUT] && human_read_ms(values[TIMEOUT], &timeout_ms, &err) < 0)
		return people_wrong(&a, &err);
	put_params(&params, values[LABEL], timeout_ms, args);
	rc = people_connect(&a, values[STATE], session && *session ? session : NULL);
	if (rc == EXIT_DONE)
		rc = start(&a, &params, values[WAIT] != NULL);
	people_leave(&a);
	return rc;
}

const struct command command_run = {
	.name = "run",
	.summary = "start a command as a task",
	.details =
		"Starts the command with this folder, environment, umask and limits, and "
		"prints\nthe task's id. One word is a line for the shell; several are a "
		"program and its\narguments. The task is kept until its session ends.",
	.options = options,
	.args = "[--] COMMAND...",
	.min_args = 1,
	.max_args = ANY_NUMBER,
	.takes_command = true,
	.run = run,
};
