/* SPDX-License-Identifier: MIT */
/*
 * bash.h - the `bash` tool: each call is a task from its first moment (spec D11).
 *
 * In the background it answers with the id at once. In the foreground it answers with output
 * and markers when the command is done, and is promoted when that takes too long.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "errand.h"
#include "run/run.h"

struct bash;
struct buf;

struct bash_config {
	uint64_t output_limit; /* bytes, 0: none */
	int64_t foreground_ms;
	int64_t grace_ms;
	uint64_t log_head, log_tail;
	uint64_t kept, kept_per_owner; /* bytes of logs of ended tasks; 0: any number */
	/* Names that a task's environment does not get; NULL-terminated. */
	const char *const *withheld;
	/* What the client that made @call hands on. Valid until the next call; NULL: it is gone. */
	const struct run_context *(*context)(void *ud, errand_call call);
	/* May a task be started now? If not, a sentence for whoever asked. NULL: always. */
	int (*may_start)(void *ud, struct err *err);
	/* For a host that remembers; each may be NULL. A task is to run in the run folder @uid; */
	void (*started)(void *ud, errand_task task, const char *uid);
	/* it has ended, and its folder holds so many bytes, and perhaps a record of the end; */
	void (*ended)(void *ud, errand_task task, const char *uid, int64_t bytes,
		      bool is_recorded);
	/* it was @call of @owner that has started task @id; */
	void (*promised)(void *ud, errand_call call, errand_agent owner, const char *id);
	/* the id of a task that this same request has started before a host died; NULL: none.
	 * Then it is not started again. */
	const char *(*known)(void *ud, errand_call call);
	/* The end of a task is asked for, first for this reason, which bash_adopt() is to be told;
	 * it is asked for whenever; its record is dropped. */
	void (*kill_reason)(void *ud, errand_task task, const char *reason);
	void (*cancelled)(void *ud, errand_agent owner, const char *id, const char *reason,
			  size_t len);
	void (*dropped)(void *ud, errand_agent owner, const char *id, bool is_for_room);
	void *ud;
};

/* Of a label: a list of many long ones has to fit a reply. */
#define BASH_LABEL_MAX KIB(4)

/* Made, and offered as a tool of @h; what is between the two is for bash_adopt(). */
struct bash *bash_new(errand_host *h, struct run *r, const struct bash_config *c);
int bash_offer(struct bash *b, errand_error **ret_err);
/* [in errand_restore] Take over task @task of a dead host, which ran in @uid; @record is what
 * errand_restore() says about it, @kill_reason (NULL: none) what that host was told. */
int bash_adopt(struct bash *b, errand_task task, const char *record, size_t len,
	       const char *uid, const char *kill_reason, struct errand_producer *ret,
	       errand_error *e);
/* Make a task of @owner of what is, or was, at work in the run folder @uid, which no host knows. The
 * folder may come to its place until the next run_turn(). */
int bash_import(struct bash *b, errand_agent owner, const char *uid, const char *label,
		errand_text **ret_id, errand_error **ret_err);
/* What a host had promised and died before it began waits for the same request to come again;
 * it has not, and will not. */
void bash_give_up(struct bash *b);
/* bash_new() and bash_offer(). */
int bash_install(errand_host *h, struct run *r, const struct bash_config *c,
		 struct bash **ret, errand_error **ret_err);
/* A command to be run, checked. Strings are borrowed. */
struct bash_request {
	const char *command;
	size_t command_len;
	const char *label; /* NULL: the command, or its beginning */
	size_t label_len;
	const char *workdir; /* NULL: the client's */
	int64_t timeout_ms;  /* 0: none */
	bool is_background;
};

/* Start @request as a task of @owner, with what @client hands on. */
int bash_start(struct bash *b, errand_agent owner, const struct run_context *client,
	       const struct bash_request *request, errand_text **ret_id,
	       errand_error **ret_err);
/* Begin task @id, which a dead host has taken on as @request and did not come to; any other id,
 * and one that runs, is nothing to it. */
int bash_resume(struct bash *b, const char *id, size_t len,
		const struct run_context *client, const struct bash_request *request,
		struct err *err) __attribute__((warn_unused_result));
/* Drop ended tasks, the oldest first, until the logs of the others are within the limits, or
 * nothing may go. How many went. */
size_t bash_make_room(struct bash *b);
/* The process of task @id; NULL: there is no such task. Borrowed. */
struct run_task *bash_process(const struct bash *b, const char *id, size_t len);
/* End what the ended task @id has left running; any other id is nothing to it. */
void bash_sweep(struct bash *b, const char *id, size_t len);
/* Whose the task is that has this shim, or this name (either may be 0 or NULL); 0: nobody's. */
errand_agent bash_owner(const struct bash *b, pid_t shim, const char *uid);
/* Append what is known of task @id beside the contract, as one JSON object (errand-mcp(1));
 * nothing of any other id. */
void bash_facts(const struct bash *b, const char *id, size_t len, struct buf *out);
/* What can be seen of the live task @id: {"cpuMs","memoryKiB","processes","quietMs","lastLine"},
 * what is known of these; nothing of any other id. */
void bash_now(const struct bash *b, const char *id, size_t len, struct buf *out);
/* After errand_host_free(). NULL is fine. */
void bash_free(struct bash *b);
