/* SPDX-License-Identifier: MIT */
/*
 * requests.h - which task was started by which request, so that none is started twice.
 *
 * A request is the line of a client: the client's nonce and the line's number. It is known from
 * its first start until the client has its answer. A line that comes again, from a client whose
 * daemon has died, is answered from it: the tasks that it started then, one after the other.
 * Of a person's request the whole answer is kept.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/list.h"

struct requests {
	struct list all; /* struct request, the oldest first */
	size_t count;
};

struct request {
	struct list node;
	char nonce[40];
	uint64_t number;
	struct buf ids; /* "bash-1 bash-2"; of a person's, the answer */
	size_t used;    /* bytes of them that its present run has reached */
	char id[64];    /* the last one that was taken */
};

void requests_init(struct requests *r);
void requests_release(struct requests *r);
/* Line @number has started @id; the whole entry is in the result, for the store. */
const struct request *requests_note(struct requests *r, const char *nonce, uint64_t number,
				    const char *id);
/* As the store has it. */
void requests_put(struct requests *r, const char *nonce, uint64_t number, const char *ids,
		  size_t len);
/* The same for a request with one answer, which replaces what was kept of it. */
const struct request *requests_answer(struct requests *r, const char *nonce,
				      uint64_t number, const char *text, size_t len);
/* What request @number was answered with, by a host before this one; NULL: it was not. */
const char *requests_answered(const struct requests *r, const char *nonce, uint64_t number);
/* A client that will not come back leaves nothing. False: it had nothing. */
bool requests_forget(struct requests *r, const char *nonce);
/* What line @number has started, and not yet been told in this run of it; NULL: nothing. */
const char *requests_take(struct requests *r, const char *nonce, uint64_t number);
/* The client has gone; what it asked may be asked again. */
void requests_rewind(struct requests *r, const char *nonce);
/* The client has the answer to line @number. Below *@ret_seen nothing of it is open any more.
 * False: it has started nothing. */
bool requests_seen(struct requests *r, const char *nonce, uint64_t number,
		   uint64_t *ret_seen);
