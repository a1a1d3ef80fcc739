/* SPDX-License-Identifier: MIT */
/*
 * command.h - what `errand <name>` is: one file and one descriptor for each.
 *
 * A command reads its options and calls something else; it holds no logic. Exit codes: 0
 * done, 1 the request failed, 2 wrong usage or configuration.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,
};

struct option_spec {
	const char *name;  /* "--state" */
	const char *value; /* "DIR"; NULL: takes none */
	const char *help;
};

struct command {
	const char *name;
	const char *summary;
	const char *details;               /* for `errand <name> --help` */
	const struct option_spec *options; /* up to one with a NULL name */
	/* @values: one for each option, NULL where it was not given. */
	int (*run)(const char *const *values);
};

#define MAX_OPTIONS 16

extern const struct command command_daemon;
extern const struct command command_mcp;
extern const struct command *const commands[]; /* up to NULL */

/* `errand [--help | --version | <command> ...]`. */
int errand_main(int argc, char **argv);
