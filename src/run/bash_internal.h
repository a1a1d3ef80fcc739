/* SPDX-License-Identifier: MIT */
/*
 * bash_internal.h - what the files of the `bash` tool share. bash.c takes calls,
 * bash_task.c is the producer of a task, bash_read.c what a reader gets of its output,
 * bash_text.c the words, bash_facts.c what the words leave out.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/list.h"
#include "base/map.h"
#include "run/bash.h"

struct bash {
	errand_host *host;
	struct run *run;
	struct bash_config config;
	char **withheld;      /* a copy; NULL-terminated */
	char *found_in;       /* the PATH in which bash has been found */
	char *limit_json;     /* NULL: no limit */
	char foreground[24];  /* foreground_ms as JSON */
	struct map by_number; /* bash_task: the 3 of bash-3 */
	struct list live;     /* bash_task.node, the oldest first */
	struct list ended;    /* the same, in the order of their ends */
	uint64_t kept;        /* bytes of their logs */
	bool is_making_room;
};

/* One command; owned by its record in the core, which destroys it. */
struct bash_task {
	struct list node; /* in bash.live or bash.ended */
	struct bash *bash;
	errand_task task;
	errand_agent owner;
	struct run_task *run;
	char *id; /* "bash-1", for the model */
	uint64_t number;
	int64_t began_ms; /* monotonic */
	/* While it lives: workdir, NUL, command. */
	struct buf what;
	uint64_t
		equal; /* the number of one with the same, older and live when it began; or 0 */
	char *reason; /* why its end was asked for first; NULL: no reason was given */
	bool is_ended;
	bool is_adopted; /* of a dead host */
	bool is_unborn;  /* which had promised it, and did not come to it */
	struct run_end end;
	uint64_t kept; /* bytes of its log, of an ended one */
	/* Only during the start. */
	const struct run_spec *spec; /* or: */
	const char *imported;        /* the folder that is there already */
};

/* bash_task.c: NULL: there is no such task. */
struct bash_task *bash_find(const struct bash *b, const char *id, size_t len);

/* bash_text.c: false with a text for the model in @err. */
bool bash_check(const struct js *args, struct bash_request *ret, struct buf *err);
/* Outcome and detail as in design: what happened, in one line. Returns ERRAND_*. */
int bash_outcome(const struct run_end *end, struct buf *ret_detail);
/* Nothing certain is known of its main process, or of its tree. */
bool bash_is_incomplete(const struct run_end *end);
int bash_render(void *ud, const char *in_json, size_t len, errand_sink *out,
		errand_error *e);

/* bash_keep.c: @t has ended, and takes its place among those; it goes. */
void bash_keep(struct bash_task *t);
void bash_unkeep(struct bash_task *t);

/* bash_read.c */
int bash_read(void *ud, errand_task task, uint64_t from, errand_sink *out,
	      uint64_t *ret_next, errand_error *e);
