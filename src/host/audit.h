/* SPDX-License-Identifier: MIT */
/*
 * audit.h - who started, killed and ended what, through which door: for people (errand-history).
 *
 * Nothing of it is needed to go on; it is kept with what it tells of, in one commit.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "errand.h"

struct ask;
struct host;

/* By the request of a person, or of a task's own process: @id may be NULL, @detail, too. */
void audit_ask(const struct ask *a, const char *act, const char *id, size_t len,
	       const char *detail, size_t detail_len);
/* [callback of bash; @host] The task's end is asked for. */
void audit_kill(void *host, errand_agent owner, const char *id, const char *reason,
		size_t len);
/* [callback of bash; @host] The task leaves its owner's list, and its output goes. */
void audit_drop(void *host, errand_agent owner, const char *id, bool is_for_room);
/* An agent's call has started @id. */
void audit_start(struct host *h, errand_agent owner, const char *id);
/* A task of a crashed host is ours from now on. */
void audit_import(struct host *h, errand_agent owner, const char *id);
/* A session is over by itself. */
void audit_session(struct host *h, const char *name, size_t len);
