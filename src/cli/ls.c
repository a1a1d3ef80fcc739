/* SPDX-License-Identifier: MIT */
/* ls.c - `errand ls`: the tasks of a host, for people and for programs. */
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/human.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/people.h"
#include "cli/table.h"
#include "host/gc.h"
#include "host/history.h"

/* A task that is silent for so long is said to be. */
#define QUIET_MS 10000

enum {
	STATE,
	ALL,
	JSON,
	WATCH,
};

static const struct option_spec options[] = {
	[STATE] = STATE_OPTION,
	[ALL] = {"--all", NULL, "also those of the past"},
	[JSON] = {"--json", NULL, "one JSON object, as errand(1) describes it"},
	[WATCH] = {"--watch", NULL, "show it again each second"},
	END_OF_OPTIONS,
};

static const struct column columns[] = {
	{"ID", false, 0, 0},
	{"KIND", false, 0, 5},
	{"STATUS", false, 0, 0},
	{"AGE", true, 0, 1},
	{"CPU", true, 0, 3},
	{"MEMORY", true, 0, 4},
	{"UNREAD", true, 0, 2},
	{"LABEL", false, 16, 0},
	{"LAST LINE", false, sizeof("exit code: 127, took 9m59s") - 1, 0},
};

/* ---- cells ---- */

typedef void (*human_fn)(struct buf *out, int64_t n);

static void put_size(struct buf *out, int64_t n)
{
	human_put_bytes(out, (uint64_t)n);
}

static void add_number(struct table *t, double n, human_fn put)
{
	autobuf struct buf text = BUF_INIT(64);

	if (isnan(n))
		buf_addc(&text, '-');
	else
		put(&text, (int64_t)n);
	table_add(t, buf_text(&text), text.len);
}

static void add_string(struct table *t, const struct js *s)
{
	size_t len = 0;
	const char *text = js_string(s, &len);

	table_add(t, text ? text : "", len);
}

static double first_of(const struct js *a, const char *a_key, const struct js *b,
		       const char *b_key)
{
	double n = js_number(js_get(a, a_key));

	return isnan(n) ? js_number(js_get(b, b_key)) : n;
}

static void add_last_line(struct table *t, const struct js *task)
{
	autobuf struct buf text = BUF_INIT(KIB(64));
	const struct js *now = js_get(task, "now");
	double quiet = js_number(js_get(now, "quietMs"));
	double took = js_number(js_get(js_get(task, "facts"), "durationMs"));
	size_t len = 0;
	const char *line = js_string(js_get(now, "lastLine"), &len);
	const char *detail = js_string(js_get(task, "detail"), NULL);

	if (quiet >= QUIET_MS) {
		buf_adds(&text, "no output for ");
		human_put_ms(&text, (int64_t)quiet);
		buf_adds(&text, line ? ": " : "");
	}
	if (line)
		buf_add(&text, line, len);
	if (detail)
		buf_adds(&text, detail);
	if (!isnan(took)) {
		buf_adds(&text, detail ? ", took " : "took ");
		human_put_ms(&text, (int64_t)took);
	}
	table_add(t, buf_text(&text), text.len);
}

static void add_task(struct table *t, const struct js *task, int64_t wall_ms)
{
	const struct js *facts = js_get(task, "facts"), *now = js_get(task, "now");

	add_string(t, js_get(task, "id"));
	add_string(t, js_get(task, "kind"));
	add_string(t, js_get(task, "status"));
	add_number(t, (double)wall_ms - js_number(js_get(task, "startedAt")), human_put_ms);
	add_number(t, first_of(now, "cpuMs", facts, "cpuMs"), human_put_ms);
	add_number(t, first_of(now, "memoryKiB", facts, "peakKiB") * 1024, put_size);
	add_number(t, js_number(js_get(facts, "unreadBytes")), put_size);
	add_string(t, js_get(task, "label"));
	add_last_line(t, task);
}

/* ---- the whole ---- */

static void put_table(const struct js *lists, bool is_bounded, struct buf *out)
{
	static const char *const keys[] = {"history", "tasks"};
	size_t width, height;
	struct table t;

	table_init(&t, columns, sizeof(columns) / sizeof(columns[0]));
	for (size_t k = 0; k < 2; k++) {
		const struct js *tasks = js_get(lists, keys[k]);

		for (size_t i = 0; i < js_count(tasks); i++)
			add_task(&t, js_at(tasks, i), clock_wall_ms());
	}
	people_screen(&width, &height);
	/* With the title, and an empty line at the end. */
	if (t.n_cells)
		table_put(&t, width, is_bounded && height > 2 ? height - 2 : SIZE_MAX, out);
	else
		buf_adds(out, "no tasks\n");
	table_release(&t);
}

/* ---- what there is ---- */

/* `{"tasks":[...]}` of the host, if there is one; in front of it, if wanted, the history. */
static int take_lists(struct asking *a, const char *const *values, struct buf *out)
{
	autobuf struct buf tasks = BUF_INIT(MAX_JSON_TEXT);
	struct err err = {0};
	int rc = EXIT_DONE;

	if (a->link)
		rc = people_ask_text(a, "errand/list", "{}", &tasks);
	else
		buf_adds(&tasks, "{\"tasks\":[]}");
	if (rc != EXIT_DONE)
		return rc;
	if (values[ALL]) {
		buf_adds(out, "{\"history\":");
		if (history_put(values[STATE], !a->link, out, &err) < 0)
			return people_failed(a, &err);
		buf_addc(out, ',');
	}
	buf_adds(out, buf_text(&tasks) + (out->len > 0));
	return EXIT_DONE;
}

static int show(struct asking *a, const char *const *values, const char *before)
{
	autobuf struct buf text = BUF_INIT(2 * MAX_JSON_TEXT), out = BUF_INIT(TABLE_MAX);
	struct js *lists = NULL;
	struct err err = {0};
	int rc = take_lists(a, values, &text);

	if (rc != EXIT_DONE)
		return rc;
	if (values[JSON]) {
		printf("%s\n", buf_text(&text));
		return EXIT_DONE;
	}
	if (js_parse(buf_text(&text), text.len, &lists, &err) < 0)
		return people_failed(a, &err);
	buf_adds(&out, before);
	put_table(lists, values[WATCH] != NULL, &out);
	js_free(lists);
	(void)fwrite(out.data, 1, out.len, stdout);
	return fflush(stdout) == 0 ? EXIT_DONE : EXIT_FAILED; /* main says what is wrong */
}

/* What is not in the list, and why. */
static void tell_others(const char *state)
{
	struct err err;
	struct gc g;

	if (gc_look(state, &g, &err) < 0)
		return;
	if (g.tasks_of_live)
		fprintf(stderr,
			"%zu more tasks belong to %zu hosts inside `errand mcp`; only their "
			"agents see them\n",
			g.tasks_of_live, g.live);
	if (g.crashed)
		fprintf(stderr,
			"%zu hosts inside `errand mcp` have crashed: the next daemon takes "
			"over what they left; `errand run` starts one\n",
			g.crashed);
}

static int show_again(struct asking *a, const char *const *values)
{
	static const struct timespec second = {.tv_sec = 1};
	int rc;

	/* From the top, on an empty screen. */
	while ((rc = show(a, values, "\033[H\033[2J")) == EXIT_DONE)
		(void)nanosleep(&second, NULL);
	return rc;
}

static int run(const char *const *values, char *const *args)
{
	struct asking a = {.command = "ls"};
	int rc;

	(void)args;
	if (values[WATCH] && (values[JSON] || !isatty(STDOUT_FILENO))) {
		fprintf(stderr, "errand ls: --watch needs a terminal, and shows no JSON\n");
		return EXIT_USAGE;
	}
	rc = people_folder(&a, values[STATE]);
	if (rc != EXIT_DONE)
		return rc;
	rc = people_connect(&a, values[STATE], NULL);
	if (rc == EXIT_NO_HOST && values[ALL])
		rc = EXIT_DONE; /* what has been is known without one */
	if (!values[JSON] && !values[WATCH])
		tell_others(values[STATE]);
	if (rc == EXIT_DONE)
		rc = values[WATCH] ? show_again(&a, values) : show(&a, values, "");
	people_leave(&a);
	return rc;
}

const struct command command_ls = {
	.name = "ls",
	.summary = "list tasks",
	.details =
		"Lists the tasks of all sessions, the oldest first. Looking changes nothing.",
	.options = options,
	.run = run,
};
