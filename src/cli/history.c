/* SPDX-License-Identifier: MIT */
/* history.c - `errand history`: who started, killed and ended what. */
#include <math.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/human.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/people.h"
#include "cli/table.h"
#include "host/history.h"

enum {
	STATE,
	JSON,
};

static const struct option_spec options[] = {
	[STATE] = STATE_OPTION,
	[JSON] = {"--json", NULL, "one JSON object, as errand(1) describes it"},
	END_OF_OPTIONS,
};

static const struct column columns[] = {
	{"WHEN", false, false, 1}, {"WHO", false, true, 0},   {"THROUGH", false, false, 2},
	{"DID", false, false, 0},  {"TASK", false, false, 0}, {"DETAIL", false, true, 0},
};

static void add_string(struct table *t, const struct js *s)
{
	size_t len = 0;
	const char *text = js_string(s, &len);

	table_add(t, text ? text : "", len);
}

static void add_entry(struct table *t, const struct js *entry)
{
	autobuf struct buf when = BUF_INIT(64);

	human_put_time(&when, (int64_t)js_number(js_get(entry, "at")));
	table_add(t, buf_text(&when), when.len);
	add_string(t, js_get(entry, "who"));
	add_string(t, js_get(entry, "door"));
	add_string(t, js_get(entry, "act"));
	add_string(t, js_get(entry, "task"));
	add_string(t, js_get(entry, "detail"));
}

static int print(const struct asking *a, const struct buf *json)
{
	autobuf struct buf out = BUF_INIT(TABLE_MAX);
	struct js *all = NULL;
	struct err err = {0};
	size_t width, height;
	struct table t;

	if (js_parse(buf_text(json), json->len, &all, &err) < 0)
		return people_failed(a, &err);
	table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < js_count(all); i++)
		add_entry(&t, js_at(all, i));
	people_screen(&width, &height);
	if (t.n_cells)
		table_put(&t, width, SIZE_MAX, &out);
	else
		buf_adds(&out, "nothing is known\n");
	printf("%s", buf_text(&out));
	table_release(&t);
	js_free(all);
	return EXIT_DONE;
}

static int run(const char *const *values, char *const *args)
{
	autobuf struct buf json = BUF_INIT(MAX_JSON_TEXT);
	struct asking a = {.command = "history"};
	struct err err = {0};
	int rc = people_folder(&a, values[STATE]);

	if (rc != EXIT_DONE)
		return rc;
	if (history_put_trail(values[STATE], args[0], &json, &err) < 0)
		return people_failed(&a, &err);
	if (!values[JSON])
		return print(&a, &json);
	printf("{\"history\":%s}\n", buf_text(&json));
	return EXIT_DONE;
}

const struct command command_history = {
	.name = "history",
	.summary = "tell who started, killed and ended what",
	.details =
		"Lists starts, kills, new deadlines, ends of sessions and deletions of output,\n"
		"the oldest first: of one task, or the newest 10000 of all. Needs no host.",
	.options = options,
	.args = "[ID]",
	.max_args = 1,
	.run = run,
};
