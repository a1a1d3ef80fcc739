/* SPDX-License-Identifier: MIT */
/* wait.c - `errand wait`: until tasks have ended; its exit code is theirs. */
#include <inttypes.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/human.h"
#include "base/limits.h"
#include "cli/command.h"
#include "cli/people.h"
#include "host/link.h"

/* A host answers so many open requests of one client. */
#define MAX_WAITS 1000
/* It waits no longer than that, from its last turn on, which may be a little earlier. */
#define MAX_ONE_WAIT_MS INT32_MAX
#define EARLY_MS 1000
/* Its own answer that the time is over is given so long to come. */
#define LATE_MS 500

enum {
	STATE,
	ANY,
	TIMEOUT,
};

static const struct option_spec options[] = {
	[STATE] = STATE_OPTION,
	[ANY] = {"--any", NULL, "until one of them has ended; print its id"},
	[TIMEOUT] = {"--timeout", "D", "wait no longer than 90s, 15m, 1h30m ..."},
	END_OF_OPTIONS,
};

struct waits {
	char *const *ids;
	size_t n;
	bool is_answered[MAX_WAITS];
	size_t asked[MAX_WAITS]; /* the request's number less 1 -> which id */
	int64_t until_ms;        /* monotonic; 0: for ever */
	char what[32];           /* "2 tasks" */
};

static void count(struct waits *w, char *const *args)
{
	w->ids = args;
	while (args[w->n])
		w->n++;
}

static int64_t left_ms(const struct waits *w)
{
	return w->until_ms ? w->until_ms - clock_mono_ms() : INT64_MAX;
}

static int ask_one(struct asking *a, const struct waits *w, const char *id, struct err *err)
{
	autobuf struct buf params = BUF_INIT(MAX_REQUEST_LINE);
	int64_t left = left_ms(w);

	people_put_id(&params, id);
	if (left < MAX_ONE_WAIT_MS)
		buf_addf(&params, ",\"timeoutMs\":%" PRId64, left > 0 ? left : 1);
	buf_addc(&params, '}');
	return link_post(a->link, "errand/wait", buf_text(&params), err);
}

static int post_all(struct asking *a, struct waits *w, struct err *err)
{
	size_t n_asked = 0;
	int rc = 0;

	for (size_t i = 0; i < w->n && rc == 0; i++) {
		if (w->is_answered[i])
			continue;
		w->asked[n_asked++] = i;
		rc = ask_one(a, w, w->ids[i], err);
	}
	return rc;
}

/* For all that have no answer yet; of the next host, if this one goes meanwhile. */
static int ask_all(struct asking *a, struct waits *w)
{
	struct err err = {0};
	int code, rc;

	while ((rc = post_all(a, w, &err)) == -ERR_SYS) {
		code = people_reconnect(a);
		if (code != EXIT_DONE)
			return code;
	}
	return rc < 0 ? people_failed(a, &err) : EXIT_DONE;
}

/* One answer: of which of the ids, and what it comes to. */
struct answer {
	size_t which;
	bool has_ended;
	int code;
};

static void take_task(struct asking *a, struct answer *ret, const struct js *task,
		      const char *id)
{
	autobuf struct buf status = BUF_INIT(MAX_DETAIL);

	ret->has_ended = js_type(js_get(task, "finishedAt")) != JS_NONE;
	ret->code = ret->has_ended ? people_exit_code(task) : EXIT_TIMED_OUT;
	if (!ret->has_ended || !isatty(STDERR_FILENO))
		return;
	progress_erase(&a->progress);
	people_put_status(&status, task);
	fprintf(stderr, "%s: %s\n", id, buf_text(&status));
}

/* One answer, whichever comes next: of a task that has ended, or of one that lives when our
 * time is over. */
static int read_answer(struct asking *a, const struct waits *w, uint64_t *ret_number,
		       struct js **ret, struct err *err)
{
	autobuf struct buf result = BUF_INIT(MAX_JSON_TEXT);
	int rc = link_answer(a->link, ret_number, &result, err);
	const struct js *task;

	if (rc == 0)
		rc = js_parse(buf_text(&result), result.len, ret, err);
	task = js_get(*ret, "task");
	if (rc == 0 && (*ret_number < 1 || *ret_number > w->n || !task))
		return err_set(err, ERR_FORMAT, "the host answers what was not asked");
	if (rc == 0 && js_type(js_get(task, "finishedAt")) == JS_NONE &&
	    left_ms(w) > EARLY_MS)
		return err_set(err, ERR_SYS, "the host waits no longer");
	return rc;
}

/* The next one. .which is w->n where there will be none. */
static struct answer take_answer(struct asking *a, struct waits *w)
{
	struct answer ret = {.which = w->n};
	struct js *json = NULL;
	struct err err = {0};
	uint64_t number = 0;
	int rc;

	while ((rc = read_answer(a, w, &number, &json, &err)) == -ERR_SYS) {
		js_free(json);
		json = NULL;
		ret.code = people_reconnect(a);
		if (ret.code == EXIT_DONE)
			ret.code = ask_all(a, w);
		if (ret.code != EXIT_DONE)
			return ret;
	}
	if (number >= 1 && number <= w->n)
		ret.which = w->asked[number - 1];
	if (rc < 0)
		ret.code = people_failed(a, &err);
	else
		take_task(a, &ret, js_get(json, "task"), w->ids[ret.which]);
	js_free(json);
	return ret;
}

/* Of all: the first code that is not 0, in the order of the arguments. */
static int await(struct asking *a, struct waits *w, bool any)
{
	size_t first = w->n;
	int code = EXIT_DONE;

	for (size_t i = 0; i < w->n; i++) {
		struct answer next = take_answer(a, w);

		if (any && next.has_ended)
			printf("%s\n", w->ids[next.which]);
		if (any || next.which == w->n)
			return next.code;
		w->is_answered[next.which] = true;
		if (next.code != EXIT_DONE && next.which < first) {
			first = next.which;
			code = next.code;
		}
	}
	return code;
}

static int run(const char *const *values, char *const *args)
{
	struct asking a = {.command = "wait"};
	struct waits w = {0};
	struct err err = {0};
	int64_t timeout_ms = 0;
	int rc;

	if (values[TIMEOUT] && human_read_ms(values[TIMEOUT], &timeout_ms, &err) < 0)
		return people_wrong(&a, &err);
	if (timeout_ms)
		w.until_ms = clock_mono_ms() + timeout_ms;
	a.until_ms = timeout_ms ? w.until_ms + LATE_MS : 0;
	count(&w, args);
	(void)snprintf(w.what, sizeof(w.what), "%zu task%s", w.n, w.n == 1 ? "" : "s");
	people_await(&a, w.what);
	rc = people_connect(&a, values[STATE], NULL);
	if (rc == EXIT_DONE)
		rc = ask_all(&a, &w);
	if (rc == EXIT_DONE)
		rc = await(&a, &w, values[ANY] != NULL);
	people_has_come(&a);
	people_leave(&a);
	return rc;
}

const struct command command_wait = {
	.name = "wait",
	.summary = "wait for tasks to end",
	.details =
		"Ends with the exit code of the task, or with 128 and the number of the "
		"signal\nthat ended it; of several, with the first that is not 0. 124: the "
		"time was over.\n125: it has ended without an exit code that anybody knows.",
	.options = options,
	.args = "ID...",
	.min_args = 1,
	.max_args = MAX_WAITS,
	.run = run,
};
