/* SPDX-License-Identifier: MIT */
/*
 * stdinout.h - the transport of a client that started us: requests on stdin, replies on stdout.
 */
#pragma once

#include <uv.h>

#include "transport/transport.h"

struct err;

/* Are stdin, stdout and stderr open? A file that is opened while one of them is closed would take
 * its place. */
bool stdinout_is_open(void);
/* Begins to read when the loop runs. @events must outlive it. */
int stdinout_new(uv_loop_t *loop, const struct transport_events *events, void *ud,
		 struct transport **ret, struct err *err)
	__attribute__((warn_unused_result));
