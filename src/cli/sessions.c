/* SPDX-License-Identifier: MIT */
/* sessions.c - `errand sessions`: under which names tasks are kept, and the end of one. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/human.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/people.h"
#include "cli/table.h"

static const struct option_spec options[] = {
	STATE_OPTION,
	END_OF_OPTIONS,
};

static const struct column columns[] = {
	{"SESSION", false, 1, 0}, {"CLIENTS", true, 0, 1}, {"TASKS", true, 0, 2},
	{"LIVE", true, 0, 0},     {"ENDS IN", true, 0, 0},
};

static void add_count(struct table *t, const struct js *n)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%.0f", js_number(n));

	table_add(t, text, (size_t)len);
}

static void add_session(struct table *t, const struct js *s)
{
	autobuf struct buf ends = BUF_INIT(64);
	double ms = js_number(js_get(s, "endsInMs"));
	size_t len = 0;
	const char *name = js_string(js_get(s, "name"), &len);

	table_add(t, name ? name : "", len);
	add_count(t, js_get(s, "clients"));
	add_count(t, js_get(s, "tasks"));
	add_count(t, js_get(s, "live"));
	if (isnan(ms))
		buf_addc(&ends, '-');
	else
		human_put_ms(&ends, (int64_t)ms);
	table_add(t, buf_text(&ends), ends.len);
}

static int list(struct asking *a)
{
	autobuf struct buf out = BUF_INIT(TABLE_MAX);
	struct js *answer = NULL;
	const struct js *all;
	size_t width, height;
	struct table t;
	int rc = people_ask(a, "errand/sessions", NULL, &answer);

	if (rc != EXIT_DONE)
		return rc;
	all = js_get(answer, "sessions");
	table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < js_count(all); i++)
		add_session(&t, js_at(all, i));
	people_screen(&width, &height);
	table_put(&t, width, SIZE_MAX, &out);
	printf("%s", buf_text(&out));
	table_release(&t);
	js_free(answer);
	return EXIT_DONE;
}

static int end(struct asking *a, const char *name)
{
	autobuf struct buf params = BUF_INIT(MAX_REQUEST_LINE);
	struct js *answer = NULL;
	double live;
	int rc;

	buf_addc(&params, '{');
	js_put_member(&params, "name", name, strlen(name));
	buf_addc(&params, '}');
	rc = people_ask(a, "errand/end-session", &params, &answer);
	live = js_number(js_get(answer, "live"));
	if (rc == EXIT_DONE)
		printf("%.0f live task%s ended with it\n", live,
		       live == 1 ? " is" : "s are");
	js_free(answer);
	return rc;
}

static int run(const char *const *values, char *const *args)
{
	struct asking a = {.command = "sessions"};
	bool is_end = args[0] && strcmp(args[0], "end") == 0 && args[1];
	int rc;

	if (args[0] && !is_end) {
		fprintf(stderr, "errand sessions: only `end NAME` may follow\n");
		return EXIT_USAGE;
	}
	rc = people_connect(&a, values[0], NULL);
	if (rc == EXIT_DONE)
		rc = is_end ? end(&a, args[1]) : list(&a);
	people_leave(&a);
	return rc;
}

const struct command command_sessions = {
	.name = "sessions",
	.summary = "list sessions, or end one",
	.details =
		"Lists the names under which tasks are kept. `end NAME` ends one, and its "
		"tasks.",
	.options = options,
	.args = "[end NAME]",
	.words = "end",
	.max_args = 2,
	.run = run,
};
