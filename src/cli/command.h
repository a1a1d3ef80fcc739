/* SPDX-License-Identifier: MIT */
/*
 * command.h - what `errand <name>` is: one file and one descriptor for each.
 *
 * A command reads its options and calls something else; it holds no logic. Help texts and shell
 * completions are made from the descriptors.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* errand(1) lists them for people. */
enum {
	EXIT_DONE = 0,
	EXIT_FAILED = 1, /* the request was refused, or could not be carried out */
	EXIT_USAGE = 2,
	EXIT_NO_TASK = 3,
	EXIT_NO_HOST = 4,
	EXIT_TIMED_OUT = 124, /* of a wait */
	EXIT_NO_CODE = 125,   /* the task has ended, and nobody knows its exit code */
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
	const char *args;                  /* "ID..."; NULL: none */
	const char *words;                 /* that may stand there: "a b"; NULL: none */
	size_t min_args, max_args;
	bool takes_command;  /* the first argument ends the options */
	bool refuses_closed; /* it says itself that it needs stdin, stdout, stderr */
	/* @values: one for each option, NULL where it was not given. @args: up to NULL. */
	int (*run)(const char *const *values, char *const *args);
};

#define MAX_OPTIONS 16
#define ANY_NUMBER ((size_t)-1)

/* The first option of every command that speaks to a host. */
#define STATE_OPTION                                                                       \
	{                                                                                  \
		"--state", "DIR", "where task state is kept"                               \
	}
#define END_OF_OPTIONS                                                                     \
	{                                                                                  \
		NULL, NULL, NULL                                                           \
	}

extern const struct command command_completion;
extern const struct command command_config;
extern const struct command command_daemon;
extern const struct command command_doctor;
extern const struct command command_extend;
extern const struct command command_gc;
extern const struct command command_history;
extern const struct command command_kill;
extern const struct command command_logs;
extern const struct command command_ls;
extern const struct command command_mcp;
extern const struct command command_output;
extern const struct command command_run;
extern const struct command command_sessions;
extern const struct command command_wait;
extern const struct command *const commands[]; /* up to NULL */

/* A wrong argument of @c is said, and what is wrong with it; EXIT_USAGE. */
int command_wrong(const struct command *c, const char *what, const char *arg);
/* `errand [--help | --version | <command> ...]`. */
int errand_main(int argc, char **argv);
