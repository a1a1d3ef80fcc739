/* SPDX-License-Identifier: MIT */
/* mcp.c - `errand mcp`: serve one MCP client on stdin and stdout. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "cli/command.h"
#include "host/host.h"

enum {
	OPTION_STATE,
	OPTION_SESSION,
	OPTION_ERA,
	OPTION_EMBEDDED,
};

static const struct option_spec options[] = {
	[OPTION_STATE] = {"--state", "DIR", "where task state is kept"},
	[OPTION_SESSION] = {"--session", "NAME", "who owns the client's tasks"},
	[OPTION_ERA] = {"--era", "ERA", "legacy: speak no protocol newer than 2025-11-25"},
	[OPTION_EMBEDDED] = {"--embedded", NULL, "keep the tasks here, without a daemon"},
	{NULL, NULL, NULL},
};

static int run(const char *const *values, char *const *args)
{
	const char *era = values[OPTION_ERA];
	struct host_options o = {
		.state = values[OPTION_STATE],
		.session = values[OPTION_SESSION],
		.is_legacy_only = era != NULL,
		.is_embedded = values[OPTION_EMBEDDED] != NULL,
	};

	(void)args;
	if (era && strcmp(era, "legacy") != 0)
		return command_wrong(&command_mcp, "--era is 'legacy' or left out, not",
				     era);
	if (isatty(STDIN_FILENO))
		fprintf(stderr,
			"errand mcp: waits for what an MCP client writes, not for a person; "
			"^D ends it. See `errand --help`\n");
	return host_serve_stdio(&o);
}

const struct command command_mcp = {
	.name = "mcp",
	.summary = "serve an MCP client on stdin and stdout",
	.details =
		"Gives an MCP client background tasks: bash, task_output, task_list, task_kill.\n"
		"They are kept by the daemon of the state folder, which is started if there is\n"
		"none. A session of a name finds its tasks again; those of a client without one\n"
		"end a minute after it.",
	.options = options,
	.refuses_closed = true,
	.run = run,
};
