/* SPDX-License-Identifier: MIT */
/* scale.c - what grows with the number of tasks, and what must not. */
#include "measure.h"

#include <math.h>
#include <signal.h>
#include <sys/resource.h>

/* ---- finished tasks ---- */

enum {
	FEW = 100,
	MANY = 10000,
	CALLS = 100,
	LISTS = 20
};

struct calls {
	struct samples start, read, list;
};

static void time_calls(struct peer *p, struct calls *c)
{
	for (int i = 0; i < CALLS; i++) {
		int64_t t0 = now_ns();
		int task = peer_start(p, "true");

		samples_add(&c->start, now_ns() - t0);
		peer_wait_ok(p, task);
		t0 = now_ns();
		(void)peer_read(p, task);
		samples_add(&c->read, now_ns() - t0);
	}
	for (int i = 0; i < LISTS; i++) {
		int64_t t0 = now_ns();

		(void)peer_call(p, "task_list", "{}");
		samples_add(&c->list, now_ns() - t0);
	}
}

static void put_growth(const char *name, struct samples *few, struct samples *many,
		       double bound)
{
	struct row r = {.name = name,
			.unit = "times",
			.digits = 2,
			.cell = NO_CELLS,
			.aims = {{ERRAND, false, bound, ERRAND}}};

	r.cell[ERRAND] = samples_ms(many, 50) / samples_ms(few, 50);
	table_row(&r);
}

/* Every task must still be listed: else the list is short because something is lost. */
static void check_listed(struct peer *p, int count)
{
	const char *at = peer_call(p, "task_list", "{}");
	int listed = 0;

	while ((at = strstr(at, "[bash] completed"))) {
		at++;
		listed++;
	}
	if (listed != count)
		die("%d finished tasks, %d listed", count, listed);
}

void measure_finished(struct bench *b)
{
	static struct calls few, many;
	struct peer *p = errand_server(b, "ERRAND_LIMITS_FINISHED_TASKS", "1000000", NULL);

	peer_run_many(p, FEW, 16);
	time_calls(p, &few);
	peer_run_many(p, MANY - FEW - CALLS, 32);
	check_listed(p, MANY);
	time_calls(p, &many);
	put_growth("start, 10,000 finished against 100", &few.start, &many.start, 1.5);
	put_growth("read, the same", &few.read, &many.read, 1.5);
	put_growth("list of all, the same", &few.list, &many.list, 0);
	peer_close(p);
}

/* ---- a tree ---- */

enum {
	TREES = 5,
	TREE_SIZE = 50,
	PATIENCE_MS = 2000
};

static int count_alive(const struct note *n)
{
	int alive = 0;

	for (int i = 0; i < n->count; i++)
		alive += is_alive(n->pids[i]);
	return alive;
}

static int left_after(const struct note *n, int ms)
{
	while (count_alive(n) && ms-- > 0)
		pause_ms(1);
	return count_alive(n);
}

static int kill_tree(const struct bench *b, struct peer *p, struct note *n,
		     struct samples *s)
{
	int64_t t0;
	int task, left;

	note_reset(n);
	task = peer_start(p, work_command(b, "tree '%s'", b->note));
	while (__atomic_load_n(&n->count, __ATOMIC_SEQ_CST) < TREE_SIZE)
		pause_ms(1);
	t0 = now_ns();
	peer_kill(p, task);
	samples_add(s, now_ns() - t0);
	left = left_after(n, PATIENCE_MS);
	for (int i = 0; left && i < n->count; i++)
		(void)kill(n->pids[i], SIGKILL);
	(void)peer_wait(p, task);
	return left;
}

void measure_tree(struct bench *b)
{
	static struct samples s[COLUMNS];
	struct note *n = note_map(b->note);
	struct row left = {.name = "killed tree of 50, left",
			   .unit = "",
			   .cell = NO_CELLS,
			   .aims = {{ERRAND, false, 0.5, ERRAND}}};
	struct row time = {.name = "  the kill's reply, p50",
			   .unit = "ms",
			   .digits = 3,
			   .cell = NO_CELLS,
			   .aims = {{ERRAND, false, 6, ERRAND}}};

	for (int i = 0; i < COLUMNS; i++) {
		if (!b->peers[i])
			continue;
		left.cell[i] = 0;
		for (int k = 0; k < (i == ERRAND ? TREES : 1); k++)
			left.cell[i] += kill_tree(b, b->peers[i], n, &s[i]);
		time.cell[i] = samples_ms(&s[i], 50);
	}
	table_row(&left);
	table_row(&time);
	if (left.cell[ERRAND] > 0)
		die("%.0f processes have outlived the kill", left.cell[ERRAND]);
}

/* ---- memory ---- */

#define LIVE_MAX 2000

static double kib_of_shims(const struct peer *p, const char *key, int count)
{
	static pid_t shims[LIVE_MAX + 1];
	double sum = 0;

	if (children_of(peer_pid(p), shims, LIVE_MAX + 1) != count)
		die("errand has not %d shims", count);
	for (int i = 0; i < count; i++)
		sum += kib_of(shims[i], key);
	return sum;
}

static void put_memory(const struct peer *p, int count, double host_before)
{
	char name[64];
	struct row r = {.name = name, .unit = "KiB", .digits = 1, .cell = NO_CELLS};
	double host = kib_of(peer_pid(p), "Private_Dirty:") - host_before;
	double private = kib_of_shims(p, "Private_Dirty:", count);

	(void)snprintf(name, sizeof(name), "%d live tasks: one shim, private dirty", count);
	r.cell[ERRAND] = private / count;
	r.aims[0] = (struct aim){ERRAND, false, 100, ERRAND};
	table_row(&r);
	(void)snprintf(name, sizeof(name), "  the host's growth for each");
	r.cell[ERRAND] = host / count;
	r.aims[0] = (struct aim){0};
	table_row(&r);
	(void)snprintf(name, sizeof(name), "  all in, for each");
	r.cell[ERRAND] = (kib_of_shims(p, "Pss:", count) + host) / count;
	r.aims[0] = (struct aim){ERRAND, false, 250, ERRAND};
	table_row(&r);
}

/* Three processes a task, and some for whoever else is here. */
static bool may_have(int tasks)
{
	struct rlimit r;

	return getrlimit(RLIMIT_NPROC, &r) != 0 || r.rlim_cur > (rlim_t)tasks * 3;
}

void measure_memory(struct bench *b)
{
	static const int counts[] = {500, LIVE_MAX};
	struct peer *p = errand_server(b, "ERRAND_LIMITS_LIVE_TASKS", "0", NULL);
	double before;
	int live = 0;

	peer_wait_ok(p, peer_start(p, "true"));
	before = kib_of(peer_pid(p), "Private_Dirty:");
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		if (!may_have(counts[i])) {
			printf("%d live tasks: not measured, ulimit -u is too low\n",
			       counts[i]);
			break;
		}
		for (; live < counts[i]; live++)
			(void)peer_start(p, "exec sleep 600");
		pause_ms(200); /* the last ones become what they are to be */
		put_memory(p, live, before);
	}
	peer_close(p);
}
