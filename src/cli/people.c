/* SPDX-License-Identifier: MIT */
#include "cli/people.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/human.h"
#include "base/limits.h"
#include "cli/command.h"
#include "host/history.h"
#include "host/launch.h"
#include "host/state.h"
#include "run/screen.h"

/* How long a log that is just being begun is waited for at once. */
#define BIRTH_MS 100
/* After so many hosts in a row that lived no longer than that, no further one is asked. */
#define MAX_HOSTS 20
#define SHORT_LIFE_MS 1000
/* A host that is silent for longer is spoken of. */
#define SILENCE_MS 5000

/* ---- a host ---- */

/* What is said may hold what somebody else has written. */
static int say(const struct asking *a, const char *text, int code)
{
	autobuf struct buf line = BUF_INIT(KIB(4));

	screen_put(&line, text, strlen(text), SIZE_MAX);
	progress_erase(&a->progress);
	fprintf(stderr, "errand %s: %s\n", a->command, buf_text(&line));
	return code;
}

int people_failed(const struct asking *a, const struct err *err)
{
	int code = EXIT_FAILED;

	if (err->code == ERR_NOT_FOUND)
		code = EXIT_NO_TASK;
	else if (err->errnum == ETIMEDOUT)
		code = EXIT_TIMED_OUT;
	return say(a, err->msg, code);
}

int people_wrong(const struct asking *a, const struct err *err)
{
	return say(a, err->msg, EXIT_USAGE);
}

static int no_host(const struct asking *a)
{
	(void)say(a, "no host runs for this state folder, so there is no task to ask for.",
		  EXIT_NO_HOST);
	fprintf(stderr,
		"`errand run` starts one. Tasks of an `errand mcp` without a daemon "
		"are its own\nand end with it; only its agent sees them.\n");
	return EXIT_NO_HOST;
}

static void tell_silence(struct asking *a)
{
	if (!a->has_told_so)
		(void)say(a,
			  "still waiting for the host, which does not answer: see "
			  "`errand doctor`",
			  EXIT_DONE);
	a->has_told_so = true;
}

static int64_t sooner(int64_t a, int64_t b)
{
	return a < b ? a : b;
}

static int on_silence(void *ud, int64_t silent_ms)
{
	struct asking *a = ud;
	int64_t left = a->until_ms ? a->until_ms - clock_mono_ms() : INT_MAX;
	int64_t pause = SILENCE_MS - silent_ms;

	if (left <= 0)
		return -1;
	if (a->is_patient && a->link)
		pause = progress_show(&a->progress);
	else if (pause <= 0)
		tell_silence(a);
	return (int)sooner(left, pause > 0 ? pause : INT_MAX);
}

void people_await(struct asking *a, const char *what)
{
	a->is_patient = true;
	progress_begin(&a->progress, what);
}

void people_has_come(struct asking *a)
{
	a->is_patient = false;
	progress_erase(&a->progress);
	a->progress.is_shown = false;
}

/* One that goes during the hello is followed by the next, as later on. */
static enum link_state open_link(struct asking *a, struct err *err)
{
	struct link_options o = {
		.state = a->state,
		.role = HELLO_OPERATOR,
		.session = a->session,
		.nonce = a->nonce,
		.is_again = a->nonce[0],
		.asked = a->asked,
		.on_silence = on_silence,
		.ud = a,
	};
	enum link_state s = LINK_STALE;

	if (!a->nonce[0])
		link_nonce(a->nonce);
	if (!a->may_start)
		s = link_open(&o, &a->link, err);
	if (a->may_start || (s == LINK_STALE && err->errnum == ECONNRESET))
		s = launch_link(&o, &a->link, err);
	return s;
}

static int connect_link(struct asking *a)
{
	struct err err = {0};

	a->since_ms = clock_mono_ms();
	switch (open_link(a, &err)) {
	case LINK_OPEN:
		return EXIT_DONE;
	case LINK_NO_SOCKET:
	case LINK_STALE:
		return no_host(a);
	case LINK_REFUSED:
	case LINK_OLDER:
	case LINK_NEWER:
	case LINK_BROKEN:
		break;
	}
	return err.code == ERR_ARG ? people_wrong(a, &err) : people_failed(a, &err);
}

int people_folder(const struct asking *a, const char *state)
{
	autofree char *path = NULL;
	autoclose int fd = -1;
	struct err err = {0};

	if (state_find(state, &path, &fd, &err) == 0)
		return EXIT_DONE;
	return say(a, err.msg,
		   err.errnum == ENOENT  ? EXIT_NO_HOST
		   : err.code == ERR_ARG ? EXIT_USAGE
					 : EXIT_FAILED);
}

int people_connect(struct asking *a, const char *state, const char *session)
{
	int rc = a->may_start ? EXIT_DONE : people_folder(a, state);

	if (rc != EXIT_DONE)
		return rc;
	a->state = state;
	a->session = session;
	return connect_link(a);
}

void people_leave(struct asking *a)
{
	if (a->link && a->asked)
		link_bye(a->link);
	link_free(a->link);
	a->link = NULL;
}

int people_reconnect(struct asking *a)
{
	bool was_short = clock_mono_ms() - a->since_ms < SHORT_LIFE_MS;

	link_free(a->link);
	a->link = NULL;
	a->n_short = was_short ? a->n_short + 1 : 0;
	if (a->n_short == MAX_HOSTS)
		return say(a,
			   "one host after the other goes as soon as it is asked; see "
			   "`errand doctor`",
			   EXIT_FAILED);
	a->may_start = true;
	return connect_link(a);
}

/* ---- one request ---- */

int people_ask_text(struct asking *a, const char *method, const char *params,
		    struct buf *ret)
{
	struct err err = {0};
	uint64_t number;
	int code, rc;

	for (;;) {
		buf_clear(ret);
		rc = link_post(a->link, method, params, &err);
		if (rc == 0)
			rc = link_answer(a->link, &number, ret, &err);
		if (rc != -ERR_SYS)
			break;
		code = people_reconnect(a);
		if (code != EXIT_DONE)
			return code;
	}
	a->asked++;
	return rc < 0 ? people_failed(a, &err) : EXIT_DONE;
}

int people_ask(struct asking *a, const char *method, const struct buf *params,
	       struct js **ret)
{
	autobuf struct buf result = BUF_INIT(MAX_JSON_TEXT);
	struct err err = {0};
	int code;

	if (params && buf_error(params))
		return say(a, "that is more than a request may hold", EXIT_FAILED);
	code = people_ask_text(a, method, params ? buf_text(params) : "{}", &result);
	if (code == EXIT_DONE && js_parse(buf_text(&result), result.len, ret, &err) < 0)
		code = people_failed(a, &err);
	return code;
}

void people_put_id(struct buf *params, const char *id)
{
	buf_addc(params, '{');
	js_put_member(params, "id", id, strlen(id));
}

int people_ask_id(struct asking *a, const char *method, const char *id, struct js **ret)
{
	autobuf struct buf params = BUF_INIT(MAX_REQUEST_LINE);

	people_put_id(&params, id);
	buf_addc(&params, '}');
	return people_ask(a, method, &params, ret);
}

/* ---- a task ---- */

static int number_of_signal(const char *name)
{
	for (int i = 1; i < NSIG; i++) {
		const char *known = sigabbrev_np(i);

		if (known && strncmp(name, "SIG", 3) == 0 && strcmp(known, name + 3) == 0)
			return i;
	}
	return (int)strtol(name, NULL, 10); /* without a name it is the number */
}

int people_exit_code(const struct js *task)
{
	const struct js *facts = js_get(task, "facts");
	double code = js_number(js_get(facts, "exitCode"));
	const char *name = js_string(js_get(facts, "signal"), NULL);

	if (!isnan(code))
		return (int)code;
	return name ? 128 + number_of_signal(name) : EXIT_NO_CODE;
}

void people_put_status(struct buf *out, const struct js *task)
{
	size_t len;
	const char *text = js_string(js_get(task, "status"), &len);

	if (text)
		screen_put(out, text, len, SIZE_MAX);
	text = js_string(js_get(task, "detail"), &len);
	if (!text)
		return;
	buf_adds(out, ", ");
	screen_put(out, text, len, SIZE_MAX);
}

/* ---- the terminal ---- */

void people_screen(size_t *ret_columns, size_t *ret_rows)
{
	struct winsize size = {0};

	(void)ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	*ret_columns = size.ws_col;
	*ret_rows = size.ws_row;
}

/* ---- what has been ---- */

static void put_past(struct buf *out, const char *id, const struct js *task,
		     const struct js *drop)
{
	size_t len;
	const char *why = js_string(js_get(drop, "detail"), &len);

	buf_addf(out, "%s (", id);
	people_put_status(out, task);
	buf_addf(out, ") is history, and its output is gone");
	if (why) {
		buf_adds(out, " since ");
		human_put_time(out, (int64_t)js_number(js_get(drop, "at")));
		buf_adds(out, ": ");
		screen_put(out, why, len, SIZE_MAX);
	}
	buf_addf(out,
		 "\n`errand ls --all` and `errand history %s` still know of it; "
		 "limits.finished_tasks and\nsessions.keep_for_s keep output longer "
		 "(errand.conf(5)).\n",
		 id);
}

int people_tell_past(const struct asking *a, const char *id, int code)
{
	autobuf struct buf task = BUF_INIT(MAX_JSON_TEXT), drop = BUF_INIT(MAX_JSON_TEXT);
	autobuf struct buf text = BUF_INIT(KIB(64));
	struct js *task_json = NULL, *drop_json = NULL;
	struct err err = {0};

	if (history_find(a->state, id, &task, &drop, &err) < 0 || !task.len)
		return code;
	if (js_parse(buf_text(&task), task.len, &task_json, &err) == 0 &&
	    js_parse(drop.len ? buf_text(&drop) : "{}", drop.len ? drop.len : 2, &drop_json,
		     &err) == 0 &&
	    !js_is_true(js_get(task_json, "listed"))) {
		put_past(&text, id, task_json, drop_json);
		fprintf(stderr, "%s", buf_text(&text));
	}
	js_free(task_json);
	js_free(drop_json);
	return code;
}

/* ---- a log ---- */

enum reader_mode people_mode(void)
{
	return isatty(STDOUT_FILENO) ? READER_TERMINAL : READER_TEXT;
}

static int open_once(struct asking *a, const char *id, enum reader_mode mode,
		     struct reader *ret, struct err *err)
{
	struct js *where = NULL;
	const char *folder;
	int rc = people_ask_id(a, "errand/log", id, &where);

	if (rc != EXIT_DONE)
		return rc;
	folder = js_string(js_get(where, "folder"), NULL);
	if (!folder)
		rc = say(a, "the host does not say where the log is", EXIT_FAILED);
	else if (reader_open(ret, AT_FDCWD, folder, mode, err) < 0)
		rc = EXIT_FAILED;
	js_free(where);
	return rc;
}

/* Has the task of this log a chance to begin it yet? */
static int await_birth(struct asking *a, const char *id, bool *ret_is_live)
{
	autobuf struct buf params = BUF_INIT(MAX_REQUEST_LINE);
	struct js *answer = NULL;
	int rc;

	people_put_id(&params, id);
	buf_addf(&params, ",\"timeoutMs\":%d}", BIRTH_MS);
	rc = people_ask(a, "errand/wait", &params, &answer);
	*ret_is_live = js_type(js_get(js_get(answer, "task"), "finishedAt")) == JS_NONE;
	js_free(answer);
	return rc;
}

int people_open_log(struct asking *a, const char *id, enum reader_mode mode,
		    struct reader *ret)
{
	for (;;) {
		struct err err = {0};
		bool is_live = false;
		int rc = open_once(a, id, mode, ret, &err);

		if (!err.code) /* it is open, or what is wrong has been said */
			return rc;
		if (err.errnum == ENOENT) {
			rc = await_birth(a, id, &is_live);
			if (rc != EXIT_DONE)
				return rc;
		}
		if (!is_live)
			return people_failed(a, &err);
	}
}
