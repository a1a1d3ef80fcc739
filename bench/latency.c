/* SPDX-License-Identifier: MIT */
/* latency.c - how long an agent waits. The peers take turns, so that each has the same luck. */
#include "measure.h"

#include <math.h>

enum {
	STARTS = 200,
	EXITS = 60,
	READS = 1000,
	TASKS = 1000,
	IN_FLIGHT = 16
};

#define EACH_PEER(b, i)                                                                    \
	for (int i = 0; i < COLUMNS; i++)                                                  \
		if ((b)->peers[i])

static void put_percentile(const char *name, struct samples *s, int percent,
			   const struct aim *aims)
{
	struct row r = {.name = name, .unit = "ms", .digits = 3};

	for (int i = 0; i < COLUMNS; i++)
		r.cell[i] = samples_ms(&s[i], percent);
	for (int i = 0; aims && i < AIMS; i++)
		r.aims[i] = aims[i];
	table_row(&r);
}

void measure_starts(struct bench *b)
{
	static struct samples s[COLUMNS];
	static const struct aim aims[AIMS] = {{FLOOR, false, 3, ERRAND},
					      {ERRAND, false, 1.5, DAEMON}};

	for (int n = 0; n < STARTS + 10; n++) {
		EACH_PEER(b, i)
		{
			int64_t t0 = now_ns();
			int task = peer_start(b->peers[i], "true");

			if (n >= 10) /* the first ones fault pages in */
				samples_add(&s[i], now_ns() - t0);
			peer_wait_ok(b->peers[i], task);
		}
	}
	put_percentile("start to id, p50", s, 50, aims);
	put_percentile("start to id, p99", s, 99, NULL);
}

void measure_exits(struct bench *b)
{
	static struct samples s[COLUMNS];
	struct note *note = note_map(b->note);
	const char *command = work_command(b, "stamp '%s'", b->note);

	for (int n = 0; n < EXITS; n++) {
		EACH_PEER(b, i)
		{
			int64_t told;

			note_reset(note);
			peer_wait_ok(b->peers[i], peer_start(b->peers[i], command));
			told = now_ns();
			if (!note->end_ns)
				die("a task has left no stamp");
			samples_add(&s[i], told - note->end_ns);
		}
	}
	put_percentile("exit to waiter told, p50", s, 50, NULL);
	put_percentile("exit to waiter told, p90", s, 90, NULL);
}

void measure_reads(struct bench *b)
{
	static struct samples s[COLUMNS];
	static const struct aim aims[AIMS] = {{FLOOR, false, 2, ERRAND}};
	int tasks[COLUMNS] = {0};

	EACH_PEER(b, i) tasks[i] = peer_start(b->peers[i], "exec sleep 600");
	for (int n = 0; n < READS; n++) {
		EACH_PEER(b, i)
		{
			int64_t t0 = now_ns();
			const char *text = peer_read(b->peers[i], tasks[i]);

			if (!text)
				continue;
			samples_add(&s[i], now_ns() - t0);
			if (!strstr(text, "[status: running]"))
				die("a task that sleeps does not run: %.500s", text);
		}
	}
	EACH_PEER(b, i)
	{
		peer_kill(b->peers[i], tasks[i]);
		(void)peer_wait(b->peers[i], tasks[i]);
	}
	put_percentile("read with nothing new, p50", s, 50, aims);
}

void measure_throughput(struct bench *b)
{
	struct row r = {.name = "1,000 x true, 16 in flight",
			.unit = "tasks/s",
			.cell = NO_CELLS,
			.aims = {{TSP, true, 1.3, ERRAND}, {TSP, true, 1.3, DAEMON}}};

	EACH_PEER(b, i)
	{
		int64_t t0 = now_ns();

		peer_run_many(b->peers[i], TASKS, IN_FLIGHT);
		r.cell[i] = TASKS / ((double)(now_ns() - t0) / 1e9);
	}
	table_row(&r);
}
