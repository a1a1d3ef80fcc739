/* SPDX-License-Identifier: MIT */
/*
 * vectors.h - what the row functions of run-vectors share.
 *
 * Only the public API and jansson are used here: a row shows what an embedder would see. A
 * row function plays one row against a host of its own and calls want_*() for each thing
 * that the row expects.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include "errand.h"

#define WALL_START 1700000000000

/* ---- what a row says, and what became of it ---- */

struct row {
	const json_t *in;
	char *trouble; /* NULL: all as expected; one line for each difference */
};

typedef void (*row_fn)(struct row *r);

void row_trouble(struct row *r, const char *what, const json_t *want, const json_t *got);
void row_fail(struct row *r, const char *text);
/* Compare; @want NULL means that there must be nothing. Takes @got. */
void want_json(struct row *r, const char *what, const json_t *want, json_t *got);
void want_text(struct row *r, const char *what, const char *got, size_t len);
/* A copy of @got without the times that @want does not show: they are not compared. */
json_t *without_times(const json_t *want, const json_t *got);
/* A result's error as rows have it: {"message","info":{"name","code"}}. */
json_t *error_in_row(const json_t *error);
/* The member @key of the row: its text, or NULL where absent or null. */
const char *row_text(const json_t *object, const char *key, size_t *ret_len);
/* A row holds only members of @known (NULL-terminated), or it is of no kind we know. */
bool row_is_known(struct row *r, const char *const *known);

/* ---- a host to play on ---- */

struct world {
	errand_host *host;
	errand_agent agent;
	int64_t now;
	json_t *cancels; /* reasons seen by producers */
	bool cancel_settles;
	const char *cancel_throws, *read_throws;
	json_t *result; /* of the last call */
};

struct work {
	struct world *world;
	errand_task task;
	char *text; /* of a stream */
	size_t len;
};

void world_open(struct world *w, const char *mount_config);
void world_close(struct world *w);
void world_run(struct world *w);
/* Put the counter of @kind where the next task is @id. */
void world_advance_counter(struct world *w, const char *kind, const char *id);

struct task_in {
	const json_t *kind, *label, *limit, *text;
	bool is_stream, is_unowned;
};
/* Start; NULL with the error's text in @ret_error (may be NULL), or the id in @ret_id. */
struct work *world_start(struct world *w, const struct task_in *in, char **ret_id,
			 char **ret_error);
/* Bring the task to the state of the row: running, stopping, or an end. */
void world_bring(struct world *w, struct work *work, const char *id, const char *status,
		 const json_t *detail, const json_t *output);
/* Call a tool as the agent, run until it has its result. Borrowed until the next call. */
const json_t *world_call(struct world *w, const char *tool, const json_t *args);
/* The same, with what else a call may have; NULL while it has no result. */
struct call_in {
	errand_agent agent;
	const char *tool, *args; /* as the model wrote them */
	uint32_t flags;
	errand_signal signal;
};
const json_t *world_call_with(struct world *w, const struct call_in *in);
errand_agent world_agent(struct world *w, const char *session);
/* The text of a result that is one text block. */
json_t *result_text(const json_t *result);
json_t *world_get(struct world *w, const char *id);
json_t *take_json(errand_text *t);

/* ---- the kinds of rows ---- */

void row_scenario(struct row *r);
void row_later_scenario(struct row *r);
void row_retention(struct row *r);
void row_notice(struct row *r);
void row_summary(struct row *r);
void row_output_render(struct row *r);
void row_list_render(struct row *r);
void row_kill_render(struct row *r);
void row_surface(struct row *r);
void row_args(struct row *r);
void row_policy(struct row *r);
