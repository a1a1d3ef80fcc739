/* SPDX-License-Identifier: MIT */
/* follow.h - a task's log onto a descriptor, to its present end or to that of its task. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "run/reader.h"

struct err;

struct follow {
	int out_fd;
	bool is_following; /* until the task has ended */
	bool is_screen; /* bidi controls are made visible: a terminal reorders by them what stands there */
	uint64_t first_line, last_line; /* of what is read, from 1 on; 0, 0: all */
};

/*
 * Blocks. What was dropped is told in a line `[N bytes dropped]`: in the text, or, of raw bytes,
 * which are given as they are, on stderr. So is, if the log has stopped, why. -ERR_NOT_FOUND: the run folder has been deleted.
 */
int follow(struct reader *r, const struct follow *f, struct err *err);
