/* SPDX-License-Identifier: MIT */
/* progress.h - one line on stderr that says how long something is waited for; only on a terminal. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct progress {
	const char *what; /* "1 task" */
	int64_t since_ms; /* monotonic */
	bool is_shown;
};

/* From now on. */
void progress_begin(struct progress *p, const char *what);
/* Write it again, with the time that has gone by; after how many milliseconds next, below 0: never. */
int progress_show(struct progress *p);
/* Room for another line, until it is shown again. */
void progress_erase(const struct progress *p);
