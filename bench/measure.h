/* SPDX-License-Identifier: MIT */
/* measure.h - the measurements; each prints its rows. */
#pragma once

#include "bench.h"
#include "peer.h"

struct bench {
	char *errand, *work, *floor_server; /* absolute paths */
	const char *folder;                 /* for all files */
	char note[4096];                    /* what a task tells */
	struct peer *peers[COLUMNS];        /* NULL: not installed */
};

/* One more errand, on a state folder of its own, whose path goes to @ret_state if that is
 * not NULL. @setting: a variable for it alone; NULL: none. */
struct peer *errand_server(const struct bench *b, const char *setting, const char *value,
			   char ret_state[4096]);
/* A client of the daemon of @state, which is started if there is none. */
struct peer *errand_client(const struct bench *b, const char *state);
/* The path of a state folder that nobody uses yet. */
void fresh_state(const struct bench *b, char ret[4096]);

/* A shell command for work.c; until the next call. */
const char *work_command(const struct bench *b, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

/* latency.c */
void measure_starts(struct bench *b);
void measure_exits(struct bench *b);
void measure_reads(struct bench *b);
void measure_throughput(struct bench *b);

/* volume.c */
void measure_flood(struct bench *b);
void measure_lines(struct bench *b);

/* scale.c */
void measure_finished(struct bench *b);
void measure_tree(struct bench *b);
void measure_memory(struct bench *b);

/* daemon.c */
void measure_idle(struct bench *b);
void measure_ls(struct bench *b);
void measure_recovery(struct bench *b);
void measure_crowd(struct bench *b);
