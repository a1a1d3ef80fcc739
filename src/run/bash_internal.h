/* SPDX-License-Identifier: MIT */
/*
 * bash_internal.h - what the files of the `bash` tool share. bash.c takes calls,
 * bash_task.c is the producer of a task, bash_read.c what a reader gets of its output,
 * bash_text.c the words.
 */
#pragma once

#include "base/buf.h"
#include "base/json.h"
#include "base/list.h"
#include "run/bash.h"

struct bash {
	errand_host *host;
	struct run *run;
	struct bash_config config;
	char **withheld;      /* a copy; NULL-terminated */
	char *found_in;       /* the PATH in which bash has been found */
	char *limit_json;     /* NULL: no limit */
	char foreground[24];  /* foreground_ms as JSON */
	struct list outlived; /* ended tasks of which something is left: bash_task.node */
};

/* One command; owned by its record in the core, which destroys it. */
struct bash_task {
	struct list node; /* in bash.outlived, or in none */
	struct bash *bash;
	errand_task task;
	errand_agent owner;
	struct run_task *run;
	char *id; /* "bash-1", for the model */
	bool is_ended;
	/* Only during the start. */
	const struct run_spec *spec;
};

/* What a call asks for, checked. Strings are those of the arguments. */
struct bash_request {
	const char *command;
	size_t command_len;
	const char *workdir; /* NULL: the client's */
	int64_t timeout_ms;  /* 0: none */
	bool is_background;
};

/* bash_text.c: false with a text for the model in @err. */
bool bash_check(const struct js *args, struct bash_request *ret, struct buf *err);
/* Outcome and detail as in design: what happened, in one line. Returns ERRAND_*. */
int bash_outcome(const struct run_end *end, struct buf *ret_detail);
int bash_render(void *ud, const char *in_json, size_t len, errand_sink *out,
		errand_error *e);

/* bash_task.c: start @request as a task of @owner, with what @client hands on. */
int bash_start(struct bash *b, errand_agent owner, const struct run_context *client,
	       const struct bash_request *request, errand_text **ret_id,
	       errand_error **ret_err);

/* bash_read.c */
int bash_read(void *ud, errand_task task, uint64_t from, errand_sink *out,
	      uint64_t *ret_next, errand_error *e);
