/* SPDX-License-Identifier: MIT */
/*
 * bench.h - what the measurements share: samples, and one table of results.
 *
 * Every measurement also looks whether the work was done right, and die()s if not: a fast
 * wrong answer is none. Slow is no failure: times depend on the machine, and whoever looks
 * at the table judges them.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* The columns. Of a peer that is not installed, every cell is empty. */
enum column {
	ERRAND, /* by itself */
	DAEMON, /* errand through its daemon */
	FLOOR, /* floor_server.c: no promise kept, nothing faster behind the same protocol */
	TSP,   /* task-spooler */
	OTHER, /* $ERRAND_BENCH_PEER */
	COLUMNS,
};

int64_t now_ns(void);
void pause_ms(int ms);
void die(const char *format, ...) __attribute__((noreturn, format(printf, 1, 2)));

#define SAMPLES_MAX 1000

struct samples {
	int64_t ns[SAMPLES_MAX];
	int count;
};

void samples_add(struct samples *s, int64_t ns);
/* NAN if there is none. */
double samples_ms(struct samples *s, int percent);

/* What the cell @on should be: @bound, or, if @of is another one, @bound times that. */
struct aim {
	enum column of;
	bool is_least; /* else: at most */
	double bound;
	enum column on;
};

#define AIMS 2

struct row {
	const char *name, *unit;
	int digits;
	double cell[COLUMNS];
	struct aim aims[AIMS]; /* a bound of 0: no aim */
};

#define NO_CELLS                                                                           \
	{                                                                                  \
		NAN, NAN, NAN, NAN, NAN                                                    \
	}

void table_head(const char *const names[COLUMNS]);
void table_row(const struct row *r);

/* ---- processes ---- */

/* The value of @key in smaps_rollup, KiB. */
double kib_of(pid_t pid, const char *key);
/* On the processor so far. */
int64_t cpu_ns(pid_t pid);
/* How often its threads have slept so far. */
int64_t sleeps_of(pid_t pid);
/* False: gone, or a zombie. */
bool is_alive(pid_t pid);
/* Its children; returns how many, at most @max. */
int children_of(pid_t pid, pid_t *list, int max);

/* ---- work.c, the program that the tasks run ---- */

/* What a running task tells the bench, in a file that both have mapped. */
struct note {
	int64_t begin_ns, end_ns;
	int32_t parent;
	int32_t count;
	int32_t go; /* set by the bench: it may end */
	int32_t pids[64];
};

struct note *note_map(const char *path);
void note_reset(struct note *n);
