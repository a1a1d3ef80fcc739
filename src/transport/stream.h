/* SPDX-License-Identifier: MIT */
/*
 * stream.h - the transport over two descriptors of whatever kind: pipes, sockets, terminals,
 * files, /dev/null. What stdin and stdout, and a connection of a socket, have in common.
 */
#pragma once

#include <uv.h>

#include "transport/transport.h"

struct err;

/* One direction. */
struct stream_end {
	int fd;
	int flags; /* to put back at the end, or -1 */
	const char *name;
};

/*
 * Begins to read when the loop runs. @events must outlive it. The descriptors are taken, also
 * on failure, and must be two, since each is watched by itself.
 */
int stream_new(uv_loop_t *loop, const struct stream_end *in, const struct stream_end *out,
	       size_t max_line, const struct transport_events *events, void *ud,
	       struct transport **ret, struct err *err) __attribute__((warn_unused_result));
