/* SPDX-License-Identifier: MIT */
/*
 * relay.h - `errand mcp` as a pipe between a client and the daemon.
 *
 *      client -- stdin, stdout -- relay -- socket -- daemon
 *
 * It numbers the lines, keeps each until it is answered, and when the daemon dies connects to
 * the next one and sends again what has no answer. It knows no JSON.
 */
#pragma once

#include "host/link.h"

/* Serve stdin and stdout through @l, which is taken; @o is how to get another one. Returns the
 * exit code. */
int relay_serve(struct link *l, const struct link_options *o);
