/* SPDX-License-Identifier: MIT */
/*
 * handover.h - one daemon after another, of a newer version.
 *
 *      new: hello, role "handover" --> old: welcome, or why not
 *                                      old: ends its turn, lets go of tasks, socket, lock
 *      new: takes the lock, attaches the same tasks
 */
#pragma once

#include <stdbool.h>

struct client;
struct err;

/* Ask the daemon of @state to make way for us. True: it does. False: it does not, or there is
 * none. */
bool handover_ask(const char *state);
/* The other side. ERR_STATE: @c is none for whom we make way. Else we leave when the turn has ended. */
int handover_grant(struct client *c, struct err *err);
