/* SPDX-License-Identifier: MIT */
/*
 * config.h - what an operator may set, and what holds when nothing is set.
 *
 * Later ones win: /etc/errand/errand.conf, ~/.config/errand/errand.conf, the environment, where
 * the key "section.name" is ERRAND_<SECTION>_<NAME>. A file or a variable with an unknown key or a
 * bad value is an error that says where it stands and what would be right, and then nothing is set.
 *
 *      config.c       the places, in their order; what holds between keys
 *      config_keys.c  the table of keys, and how a value is read and written
 *      config_file.c  one errand.conf
 */
#pragma once

#include <stdint.h>

struct buf;
struct err;

struct config {
	int64_t live_tasks;     /* of one owner; 0: no limit */
	int64_t finished_tasks; /* kept for one owner after their ends were told */
	int64_t kept_bytes, owner_kept_bytes; /* of logs of ended tasks; 0: no limit */
	int64_t task_memory_bytes, task_processes, task_cpu_percent; /* 0: no limit */
	int64_t history_keep_s, history_tasks;                       /* 0: no limit */
	int64_t output_limit; /* bytes of a reply; 0: no limit */
	int64_t foreground_ms, grace_ms;
	int64_t log_head, log_tail;
	int64_t wait_default_ms, wait_max_ms;
	int64_t grace_s, keep_for_s; /* of sessions without and with a name */
	int64_t idle_s; /* of a daemon without clients and live tasks; 0: for ever */
	int64_t contained_clients; /* 1: from namespaces of their own, too */
	char **withheld; /* names that a task's environment does not get; NULL-terminated */
	char *state_folder; /* absolute; NULL: the default */
	char **policy;      /* program and arguments; NULL: none */
	int64_t policy_timeout_ms;
};

/* The files and @env, which is as environ. */
int config_read(struct config *ret, char *const *env, struct err *err)
	__attribute__((warn_unused_result));
/* The same with other files: up to NULL; the first is the system's. */
int config_read_from(struct config *ret, const char *const *files, char *const *env,
		     struct err *err) __attribute__((warn_unused_result));
/* What would be read, for people: a line for each key, in the form of a file, and where it is
 * from. */
int config_describe(char *const *env, struct buf *out, struct err *err)
	__attribute__((warn_unused_result));
void config_release(struct config *c);
