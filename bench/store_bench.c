/* SPDX-License-Identifier: MIT */
/*
 * store_bench.c - what the store costs on the disk under a folder.
 *
 * store_bench FOLDER [COMMITS]: COMMITS (2000) durable commits of two rows, a task and the
 * request that started it; then 1,000 live and 10,000 ended tasks are put in and loaded.
 * Wall time, one line each. FOLDER must be empty.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/err.h"
#include "store/store.h"

#define LIVE 1000
#define ENDED 10000

static double now(void)
{
	struct timespec t;

	(void)clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void must(int rc, const struct err *err)
{
	if (rc == 0)
		return;
	fprintf(stderr, "store_bench: %s\n", err->msg);
	exit(1);
}

static void put_task(struct store_batch *b, long task, const char *more)
{
	char fact[512];
	int n = snprintf(
		fact, sizeof(fact),
		"{\"fact\":\"task\",\"task\":%ld,\"kind\":\"bash\",\"ordinal\":%ld,"
		"\"label\":\"make -j8 check 2>&1 | tee log\",\"agent\":1,%s"
		"\"startedAt\":1767225600000,\"stream\":true,\"reported\":true,"
		"\"noticed\":true,\"told\":true,\"cursor\":4096}",
		task, task, more);

	store_put_fact(b, fact, (size_t)n);
}

static const char live[] = "\"status\":\"running\",";
static const char ended[] = "\"status\":\"completed\",\"detail\":\"exit code: 0\","
			    "\"finishedAt\":1767225600000,";

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void commits(struct store *s, struct store_batch *b, long n)
{
	double *took = calloc((size_t)n, sizeof(*took)), begun = now(), total;
	struct store_request r = {.nonce = {"b7e1", 4}, .reply = {"{\"id\":1}", 8}};
	struct err err = {0};

	if (!took)
		exit(1);
	for (long i = 0; i < n; i++) {
		double from = now();

		put_task(b, i + 2, live);
		r.sequence = i;
		store_put_request(b, &r);
		must(store_commit(s, b, &err), &err);
		store_batch_clear(b);
		took[i] = now() - from;
	}
	total = now() - begun;
	qsort(took, (size_t)n, sizeof(*took), by_size);
	printf("store: %ld durable commits of two rows: %.0f a second, p50 %.2f ms, "
	       "p99 %.2f ms\n",
	       n, (double)n / total, took[n / 2] * 1e3, took[n * 99 / 100] * 1e3);
	free(took);
}

static void many_tasks(struct store *s, struct store_batch *b)
{
	struct err err = {0};
	double begun = now();

	for (long i = 0; i < LIVE + ENDED; i++)
		put_task(b, i + 2, i < ENDED ? ended : live);
	must(store_commit(s, b, &err), &err);
	store_batch_clear(b);
	printf("store: %d tasks in one commit: %.0f ms\n", LIVE + ENDED,
	       (now() - begun) * 1e3);
}

static void count(void *ud, const char *json, size_t len)
{
	(void)json;
	*(size_t *)ud += len;
}

static void load(const char *folder)
{
	struct err err = {0};
	struct store *s = NULL;
	size_t bytes = 0;
	struct store_loader l = {.fact = count, .ud = &bytes};
	double begun = now(), opened;

	must(store_open(folder, STORE_WRITE, &s, NULL, &err), &err);
	opened = now();
	must(store_load(s, &l, &err), &err);
	printf("store: %d tasks: open %.1f ms, load %.1f ms (%.1f MB of facts)\n",
	       LIVE + ENDED, (opened - begun) * 1e3, (now() - opened) * 1e3,
	       (double)bytes / 1e6);
	store_close(s);
}

int main(int argc, char **argv)
{
	static const char agent[] =
		"{\"fact\":\"agent\",\"agent\":1,\"session\":\"s\",\"wakes\":0}";
	struct err err = {0};
	struct store *s = NULL;
	struct store_batch b;

	if (argc < 2) {
		fprintf(stderr, "usage: store_bench FOLDER [COMMITS]\n");
		return 2;
	}
	must(store_open(argv[1], STORE_WRITE, &s, NULL, &err), &err);
	store_batch_init(&b);
	store_put_fact(&b, agent, sizeof(agent) - 1);
	commits(s, &b, argc > 2 ? strtol(argv[2], NULL, 10) : 2000);
	many_tasks(s, &b);
	store_batch_release(&b);
	store_close(s);
	load(argv[1]);
	return 0;
}
