/* SPDX-License-Identifier: MIT */
/*
 * journal.h - what a host must not forget, on its way to the store and back.
 *
 * What the core says in a turn, and what the host adds, is one batch; a worker commits it. While
 * it does, the core does not run, and nothing that was decided leaves: no reply, no start.
 *
 * Two things nobody waits for, since the host that dies before they are kept loses nothing: an
 * end that a shim has recorded, which the next host finds in the run folder, and that a client
 * has an answer. They are committed with what comes next, or a little later.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "errand.h"

struct err;
struct host;
struct journal;
struct store_audit;

/* Open the store in the host's state folder, and load it. */
int journal_new(struct host *h, struct journal **ret, struct err *err)
	__attribute__((warn_unused_result));
/* After the loop has ended: what is left is committed here. NULL is fine. */
void journal_free(struct journal *j);

/* Put back what was loaded, right after errand_host_new(). A failure moves the store aside: the
 * next host begins with a new one. */
int journal_restore(struct journal *j, struct err *err) __attribute__((warn_unused_result));
/* Remove the run folders of tasks that were dropped, and whose rows went or stay as history; take
 * over those that nobody knows (import.h). */
void journal_sweep(struct journal *j);
/* Make agents of the owners that were loaded, when the tools are there. */
void journal_enter_owners(struct journal *j);

/* [callback of bash] Not while the disk takes nothing, or could not take much more. */
int journal_may_start(void *ud, struct err *err);
/* Why what happens cannot be kept; NULL: it can. It is told from memory then. */
const char *journal_trouble(const struct journal *j);
/* [callback of the core] */
void journal_fact(void *ud, const char *json, size_t len);
/* [callbacks of bash; @ud: the host] */
void journal_started(void *ud, errand_task task, const char *uid);
void journal_kill_reason(void *ud, errand_task task, const char *reason);
void journal_ended(void *ud, errand_task task, const char *uid, int64_t bytes,
		   bool is_recorded);
void journal_promised(void *ud, errand_call call, errand_agent owner, const char *id);
const char *journal_known(void *ud, errand_call call);
/* The result of a person's request, so that it is answered and not carried out again. */
void journal_done(struct journal *j, const char *nonce, uint64_t number, const char *result,
		  size_t len);
/* What a host before this one has answered to it; NULL: it is new. */
const char *journal_was_done(const struct journal *j, const char *nonce, uint64_t number);
/* A person's client has its answers, and will not ask again. */
void journal_forget(struct journal *j, const char *nonce);
/* A task has become history: that is tidied from time to time. */
void journal_dropped(struct journal *j);
/* Who did what (audit.h). */
void journal_audit(struct journal *j, const struct store_audit *a);
/* A client has the answer to its line @number. */
void journal_answered(struct journal *j, const char *nonce, uint64_t number);
/* [callbacks of owners; @ud: the host] */
void journal_seen(void *ud, const char *name, size_t len, bool is_connected);
void journal_session_gone(void *ud, const char *name, size_t len);
/* A client has gone. */
void journal_client_gone(struct journal *j, const char *nonce);

/* Is all that has happened durable, or cannot be? If not, a commit is under way, or begun here; host_durable()
 * is called after it. */
bool journal_sync(struct journal *j);
/* Has something happened since then? */
bool journal_has_more(const struct journal *j);
/* Somebody has removed something in the state folder: see to it that the store is there. */
void journal_look(struct journal *j);
/* A commit is under way. */
bool journal_is_busy(const struct journal *j);
/* When a commit that failed is tried again, or what nobody waits for is committed. */
int64_t journal_deadline(const struct journal *j);
void journal_tick(struct journal *j, int64_t mono_ms);
