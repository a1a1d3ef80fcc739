/* SPDX-License-Identifier: MIT */
/*
 * stdinout.h - the transport of a client that started us: requests on stdin, replies on stdout.
 */
#pragma once

#include <uv.h>

#include "transport/transport.h"

struct err;

/* Begins to read when the loop runs. @events must outlive it. */
int stdinout_new(uv_loop_t *loop, const struct transport_events *events, void *ud,
		 struct transport **ret, struct err *err)
	__attribute__((warn_unused_result));
