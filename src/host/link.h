/* SPDX-License-Identifier: MIT */
/*
 * link.h - a client's side of a host's socket: find the host of a state folder, say hello.
 *
 *      struct link *l = NULL;
 *      link_open(&(struct link_options){.role = HELLO_OPERATOR}, &l, &err);
 *      link_ask(l, "errand/list", "{}", &result, &err);
 *      link_free(l);
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host/hello.h"

struct buf;
struct err;
struct link;

struct link_options {
	const char *state; /* --state; NULL: ERRAND_STATE, else the default */
	enum hello_role role;
	const char *session; /* NULL: none */
	const char *nonce;   /* NULL: a fresh one */
	bool is_legacy_only;
	bool is_again; /* whoever has @nonce was connected before */
	uint64_t
		asked; /* and has so many answers: an operator's requests go on from there */
	/* While the host is silent, since @silent_ms of one read or write: after how many
	 * milliseconds it wants to be asked again; below 0: no longer, which is an error with the
	 * errno ETIMEDOUT. NULL: for ever. */
	int (*on_silence)(void *ud, int64_t silent_ms);
	void *ud;
};

/* What there is at the other end. */
enum link_state {
	LINK_OPEN,
	LINK_NO_SOCKET,
	LINK_STALE,   /* a socket that nobody listens on */
	LINK_REFUSED, /* a host, but it does not want us: another user, another namespace */
	LINK_OLDER,   /* one of an older version, which speaks another protocol */
	LINK_NEWER,   /* the same, of a newer version */
	LINK_BROKEN,  /* the folder cannot be used, or whatever is there does not answer */
};

/* LINK_OPEN: *@ret is set. Otherwise @err says why, in words for the user. */
enum link_state link_open(const struct link_options *o, struct link **ret, struct err *err);
void link_free(struct link *l); /* NULL is fine */
int link_fd(const struct link *l);
/* Give the descriptor away; then free the link. */
int link_take_fd(struct link *l);
/* What the host said about itself. */
const struct welcome *link_welcome(const struct link *l);

/* One request of an operator, and its result: the text of the result object. ERR_ARG: refused,
 * with the host's text. ERR_NOT_FOUND: refused, since there is no such task. ERR_SYS: the host
 * is gone. */
int link_ask(struct link *l, const char *method, const char *params_json,
	     struct buf *ret_result, struct err *err) __attribute__((warn_unused_result));
/* The same in two steps, for several at once: answers come in any order. Requests are numbered
 * from 1 on, or from what has been asked before; *@ret_number is 0 when the answer was none. */
int link_post(struct link *l, const char *method, const char *params_json, struct err *err)
	__attribute__((warn_unused_result));
int link_answer(struct link *l, uint64_t *ret_number, struct buf *ret_result,
		struct err *err) __attribute__((warn_unused_result));
/* An operator has all its answers, and will not ask any of it again. */
void link_bye(struct link *l);
/* 32 fresh hex digits and a NUL. */
void link_nonce(char ret[HELLO_NONCE + 1]);
