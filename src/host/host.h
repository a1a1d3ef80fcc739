/* SPDX-License-Identifier: MIT */
/*
 * host.h - a host, inside a client or as a process of its own. What it is made of: internal.h.
 */
#pragma once

#include <stdbool.h>

struct host;

/* In the state folder: where a daemon listens. */
#define HOST_SOCKET "host.sock"

struct host_options {
	const char *state;   /* --state; NULL: ERRAND_STATE, else the default */
	const char *session; /* --session; NULL: ERRAND_SESSION ... */
	bool is_legacy_only; /* --era legacy */
	bool is_embedded;    /* --embedded */
};

/* Serve one MCP client on stdin and stdout until it leaves; through the daemon, or by ourselves.
 * Returns the exit code. */
int host_serve_stdio(const struct host_options *o);
int host_serve_embedded(const struct host_options *o);
/* Serve the clients that come through the socket of @state's folder. Returns the exit code. */
int host_serve_daemon(const char *state);
