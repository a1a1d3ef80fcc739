/* SPDX-License-Identifier: MIT */
#include "cli/people.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "cli/command.h"
#include "host/launch.h"
#include "run/screen.h"

/* How long a log that is just being begun is waited for at once. */
#define BIRTH_MS 100
/* One request that so many hosts have died of is not asked again. */
#define MAX_HOSTS 20

/* ---- a host ---- */

/* What is said may hold what somebody else has written. */
static int say(const struct asking *a, const char *text, int code)
{
	autobuf struct buf line = BUF_INIT(KIB(4));

	screen_put(&line, text, strlen(text), SIZE_MAX);
	fprintf(stderr, "errand %s: %s\n", a->command, buf_text(&line));
	return code;
}

int people_failed(const struct asking *a, const struct err *err)
{
	return say(a, err->msg, err->code == ERR_NOT_FOUND ? EXIT_NO_TASK : EXIT_FAILED);
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

int people_connect(struct asking *a, const char *state, const char *session)
{
	struct link_options o = {
		.state = state,
		.role = HELLO_OPERATOR,
		.session = session,
	};
	struct err err = {0};

	a->state = state;
	a->session = session;
	switch (a->may_start ? launch_link(&o, &a->link, &err)
			     : link_open(&o, &a->link, &err)) {
	case LINK_OPEN:
		return EXIT_DONE;
	case LINK_NO_SOCKET:
	case LINK_STALE:
		return no_host(a);
	case LINK_REFUSED:
	case LINK_BROKEN:
		break;
	}
	return say(a, err.msg, EXIT_FAILED);
}

void people_leave(struct asking *a)
{
	link_free(a->link);
	a->link = NULL;
}

int people_reconnect(struct asking *a)
{
	people_leave(a);
	a->may_start = true;
	return people_connect(a, a->state, a->session);
}

/* ---- one request ---- */

int people_ask(struct asking *a, const char *method, const struct buf *params,
	       struct js **ret)
{
	autobuf struct buf result = BUF_INIT(MAX_JSON_TEXT);
	const char *json = params ? buf_text(params) : "{}";
	struct err err = {0};
	int rc = link_ask(a->link, method, json, &result, &err);

	for (int i = 0; i < MAX_HOSTS && rc == -ERR_SYS && a->is_patient; i++) {
		int code = people_reconnect(a);

		if (code != EXIT_DONE)
			return code;
		buf_clear(&result);
		rc = link_ask(a->link, method, json, &result, &err);
	}
	if (rc == 0)
		rc = js_parse(buf_text(&result), result.len, ret, &err);
	return rc < 0 ? people_failed(a, &err) : EXIT_DONE;
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

/* False: it has ended, or cannot be asked for. */
static bool may_still_begin(struct asking *a, const char *id)
{
	autobuf struct buf params = BUF_INIT(MAX_REQUEST_LINE);
	struct js *answer = NULL;
	bool is_live;

	people_put_id(&params, id);
	buf_addf(&params, ",\"timeoutMs\":%d}", BIRTH_MS);
	if (people_ask(a, "errand/wait", &params, &answer) != EXIT_DONE)
		return false;
	is_live = js_type(js_get(js_get(answer, "task"), "finishedAt")) == JS_NONE;
	js_free(answer);
	return is_live;
}

int people_open_log(struct asking *a, const char *id, enum reader_mode mode,
		    struct reader *ret)
{
	struct err err = {0};
	int rc = open_once(a, id, mode, ret, &err);

	while (rc != EXIT_DONE && err.errnum == ENOENT && may_still_begin(a, id)) {
		err = (struct err){0};
		rc = open_once(a, id, mode, ret, &err);
	}
	if (rc != EXIT_DONE && err.code)
		return people_failed(a, &err);
	return rc;
}
