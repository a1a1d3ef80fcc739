/* SPDX-License-Identifier: MIT */
/* daemon.c - `errand daemon`: the host of a state folder, as a process of its own. */
#include "cli/command.h"
#include "host/host.h"

static const struct option_spec options[] = {
	{"--state", "DIR", "where task state is kept"},
	{NULL, NULL, NULL},
};

static int run(const char *const *values, char *const *args)
{
	(void)args;
	return host_serve_daemon(values[0]);
}

const struct command command_daemon = {
	.name = "daemon",
	.summary = "serve all clients of a state folder",
	.details =
		"Keeps the tasks of all clients that use the same state folder. It is started\n"
		"by the first of them, and goes when none is left and no task lives.",
	.options = options,
	.run = run,
};
