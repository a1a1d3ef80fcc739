/* SPDX-License-Identifier: MIT */
/*
 * hello.h - the first line of a connection, and its answer (docs/daemon.md).
 *
 * The line is followed by context_bytes raw bytes: the client's context. Nothing here touches
 * a descriptor.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "host/context.h"

struct buf;
struct err;

#define HELLO_PROTOCOL 1
#define HELLO_NONCE 32 /* hex digits */
#define HELLO_MAX_LINE KIB(64)

enum hello_role {
	HELLO_MCP,      /* an agent's client: numbered lines of MCP */
	HELLO_OPERATOR, /* a person's: requests of src/host/operator.c */
	HELLO_HANDOVER, /* a newer daemon: whoever is there is to make way for it */
};

struct hello {
	enum hello_role role;
	char version[32];
	char nonce[HELLO_NONCE + 1];
	bool is_legacy_only;    /* MCP of the first era only */
	bool is_again;          /* the same client was connected before */
	char *session;          /* NULL: nobody named an owner */
	struct context context; /* umask and limits; the rest by context_read() */
	size_t context_bytes;
};

/* ERR_FORMAT, ERR_ARG: a text for whoever wrote the client. */
int hello_read(const char *line, size_t len, struct hello *ret, struct err *err)
	__attribute__((warn_unused_result));
void hello_release(struct hello *h);
/* The line, its newline, and the context. */
void hello_put(struct buf *out, const struct hello *h);

/* What a host says to it. */
struct welcome {
	char version[32];
	pid_t pid;
	int protocol;
};

void welcome_put(struct buf *out);
void welcome_put_refusal(struct buf *out, const char *why);
/* ERR_STATE: refused, with the host's reason; @ret is set all the same, as far as it is told.
 * ERR_FORMAT: nothing that a host says. */
int welcome_read(const char *line, size_t len, struct welcome *ret, struct err *err)
	__attribute__((warn_unused_result));
