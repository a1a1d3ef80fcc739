/* SPDX-License-Identifier: MIT */
/*
 * config.h - what an operator may set, and what holds when nothing is set.
 *
 * Every key "section.name" can be given as ERRAND_<SECTION>_<NAME> in the environment. A bad
 * value is an error that names the variable, the value and the range.
 */
#pragma once

#include <stdint.h>

struct err;

struct config {
	int64_t live_tasks;     /* of one owner; 0: no limit */
	int64_t finished_tasks; /* kept for one owner after their ends were told */
	int64_t output_limit;   /* bytes of a reply; 0: no limit */
	int64_t foreground_ms, grace_ms;
	int64_t log_head, log_tail;
	int64_t wait_default_ms, wait_max_ms;
	int64_t grace_s, keep_for_s; /* of sessions without and with a name */
	int64_t idle_s; /* of a daemon without clients and live tasks; 0: for ever */
	int64_t contained_clients; /* 1: from namespaces of their own, too */
	char **withheld; /* names that a task's environment does not get; NULL-terminated */
};

/* @env as environ. */
int config_read(struct config *ret, char *const *env, struct err *err)
	__attribute__((warn_unused_result));
void config_release(struct config *c);
