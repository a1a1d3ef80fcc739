/* SPDX-License-Identifier: MIT */
/*
 * people.h - what the commands for people share: a host to ask, and words for its answers.
 *
 * Functions that return an exit code have printed what there is to say to stderr.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "base/json.h"
#include "cli/progress.h"
#include "host/hello.h"
#include "run/reader.h"

struct err;
struct link;
struct link_options;

/* A command on its way. */
struct asking {
	const char *command; /* "ls" */
	struct link *link;
	bool may_start;              /* a daemon, where none runs */
	const char *state, *session; /* of people_connect() */
	/* By these the next host knows what this one was asked, and does nothing twice. */
	char nonce[HELLO_NONCE + 1];
	uint64_t asked;
	int64_t since_ms; /* when this host was gone to, monotonic */
	int n_short;      /* so many in a row have gone at once */
	/* Monotonic: no answer is waited for any longer, EXIT_TIMED_OUT; 0: for ever. */
	int64_t until_ms;
	bool is_patient; /* an answer may take long: that is shown; else said of the host */
	bool has_told_so; /* this command has */
	struct progress progress;
};

/* EXIT_DONE, or there is no state folder that could be looked at: EXIT_NO_HOST. */
int people_folder(const struct asking *a, const char *state);
/* EXIT_DONE, or why there is nobody to ask. Then people_leave(), also after a failure. */
int people_connect(struct asking *a, const char *state, const char *session);
void people_leave(struct asking *a);
/* The host has gone: to the next one, which is started if need be, since it has tasks to look
 * after. */
int people_reconnect(struct asking *a);
/* What is asked until people_has_come() is answered when @what, "1 task", comes. */
void people_await(struct asking *a, const char *what);
void people_has_come(struct asking *a);
/* One request, asked again of the next host when one goes; its result as text. @params as
 * JSON. */
int people_ask_text(struct asking *a, const char *method, const char *params,
		    struct buf *ret);
/* The same, read; @params NULL: none. Free *@ret with js_free(). */
int people_ask(struct asking *a, const char *method, const struct buf *params,
	       struct js **ret);
/* Say what went wrong; its exit code. */
int people_failed(const struct asking *a, const struct err *err);
/* The same for a wrong argument. */
int people_wrong(const struct asking *a, const struct err *err);

/* `{"id":"bash-3"`, still open. */
void people_put_id(struct buf *params, const char *id);
/* `{"id":"bash-3","<key>":n}` of one request, and its result. */
int people_ask_id(struct asking *a, const char *method, const char *id, struct js **ret);

/* The task's own exit code, or what stands for it: 128 and the signal's number, EXIT_NO_CODE. */
int people_exit_code(const struct js *task);
/* "completed, exit code: 0", harmless for a terminal. */
void people_put_status(struct buf *out, const struct js *task);

/* The size of stdout's terminal; 0: it is none. */
void people_screen(size_t *ret_columns, size_t *ret_rows);

/* The log of task @id, from its first byte on. */
int people_open_log(struct asking *a, const char *id, enum reader_mode mode,
		    struct reader *ret);
/* Of a task that no host has any more, say on stderr what became of it and its output. @code. */
int people_tell_past(const struct asking *a, const char *id, int code);
/* READER_TERMINAL for a person, READER_TEXT for a file or a pipe. */
enum reader_mode people_mode(void);
