/* SPDX-License-Identifier: MIT */
/*
 * transport.h - lines to and from one client, whatever lies between.
 *
 * A transport knows bytes and lines, no JSON and no tool. It never blocks: lines to send are
 * queued, and written as the client takes them. While more than MAX_REPLY_QUEUE bytes wait,
 * nothing is read.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

struct transport;

/* What the transport tells its user; made from the loop, or from inside flush(). */
struct transport_events {
	void (*line)(void *ud, const char *line,
		     size_t len);   /* without its end; borrowed */
	void (*too_long)(void *ud); /* a line above MAX_REQUEST_LINE was skipped */
	/* Some lines were handed over: do the work, then flush. */
	void (*turn)(void *ud);
	/* The line with this token was taken by the client's pipe as a whole. */
	void (*sent)(void *ud, uint64_t token);
	/* No more lines will come; some can still be sent. NULL: that is as good as closed. */
	void (*ended)(void *ud);
	/* No more lines will come, or none can be sent. The user has to close. Once. */
	void (*closed)(void *ud);
};

struct transport_type {
	/* Queue a line; a newline is added. The memory of @line is taken. */
	void (*send)(struct transport *t, struct buf *line, uint64_t token);
	/* Take a line back. False: it is written, or has been begun. */
	bool (*unsend)(struct transport *t, uint64_t token);
	size_t (*waiting)(
		const struct transport *t); /* bytes of lines that are not written */
	void (*flush)(struct transport *t); /* write what the client takes now */
	void (*hold)(struct transport *t, bool on); /* hand over no more lines; go on */
	/* [in line()] The next @n bytes, at least 1, come as one line, whatever is in them. */
	void (*block)(struct transport *t, size_t n);
	/* Stop and free; the memory goes when the loop has run once more. */
	void (*close)(struct transport *t);
};

struct transport {
	const struct transport_type *type;
	const struct transport_events *events;
	void *ud;
};
