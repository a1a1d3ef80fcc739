/* SPDX-License-Identifier: MIT */
/*
 * host.h - the wiring: one loop that ties core, processes and a client together.
 *
 *      client -- transport -- mcp --.
 *                                  core -- bash -- run -- errand-shim
 *      timer, signals --- turn -----'
 *
 * All of it is driven by turn(): the core runs until it has nothing to do, replies leave,
 * and only then are new processes spawned. So an id is on its way before its process is.
 */
#pragma once

#include <stdbool.h>

struct host_options {
	const char *state;   /* --state; NULL: ERRAND_STATE, else the default */
	const char *session; /* --session; NULL: ERRAND_SESSION ... */
	bool is_legacy_only; /* --era legacy */
};

/* Serve one MCP client on stdin and stdout until it leaves. Returns the exit code. */
int host_serve_stdio(const struct host_options *o);
