/* SPDX-License-Identifier: MIT */
/* child.h - the step from the shim to the task's own program. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct proto_spec;

/* What a child is given. */
struct child_fds {
	int input;  /* -1: it has no input */
	int output; /* also for its errors */
	int group;  /* the file that takes it into its control group; -1: it has none */
};

/*
 * Fork and execute. *@ret_report_fd becomes readable with the reason if it could not get as far
 * as the program, and is empty at its end otherwise. Returns the pid, or -1 with errno.
 */
pid_t child_start(const struct proto_spec *spec, const struct child_fds *fds,
		  int *ret_report_fd);

/* What a failure is about, cut to what a text has room for. */
struct child_names {
	char cwd[121], program[121];
};

/* Read the report once the child is gone. True: it failed, and @why says how. */
bool child_failed(int report_fd, const struct child_names *names, char *why, size_t size);
