/* SPDX-License-Identifier: MIT */
/* daemon.c - what only the daemon has: idle time, many clients, a death to recover from. */
#include "measure.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <spawn.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static pid_t pid_of_daemon(const char *state)
{
	char path[4200], text[16] = "";
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/host.lock", state);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (n <= 0)
		die("nobody holds %s", path);
	(void)close(fd);
	return (pid_t)strtol(text, NULL, 10);
}

static struct peer *new_daemon(const struct bench *b, char ret_state[4096])
{
	(void)setenv("ERRAND_LIMITS_LIVE_TASKS", "0", 1);
	(void)setenv("ERRAND_WAIT_DEFAULT_MS", "600000", 1);
	fresh_state(b, ret_state);
	return errand_client(b, ret_state);
}

static void put_row(const char *name, const char *unit, int digits, double value,
		    double bound)
{
	struct row r = {.name = name,
			.unit = unit,
			.digits = digits,
			.cell = NO_CELLS,
			.aims = {{DAEMON, false, bound, DAEMON}}};

	r.cell[DAEMON] = value;
	table_row(&r);
}

/* ---- tasks that live until they are let go ---- */

static const char *gate_of(const struct bench *b)
{
	static char path[4200];

	(void)snprintf(path, sizeof(path), "%s/gate", b->folder);
	return path;
}

/* Nobody is let through until this is closed, or the bench is gone. */
static int shut_gate(const struct bench *b)
{
	int fd = open(gate_of(b), O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	if (fd < 0 || flock(fd, LOCK_EX) != 0)
		die("cannot lock %s", gate_of(b));
	return fd;
}

static int start_waiting(const struct bench *b, struct peer *p)
{
	return peer_start(p, work_command(b, "gate '%s'", gate_of(b)));
}

/* ---- idle ---- */

#define IDLE_MS 3000

void measure_idle(struct bench *b)
{
	char state[4096];
	struct peer *p = new_daemon(b, state);
	pid_t pid = pid_of_daemon(state);
	int64_t before;

	peer_wait_ok(p, peer_start(p, "true"));
	pause_ms(200); /* the last commit */
	put_row("idle daemon, resident", "MiB", 1, kib_of(pid, "Rss:") / 1024, 8);
	put_row("  of it private and dirty", "MiB", 1, kib_of(pid, "Private_Dirty:") / 1024,
		0);
	before = sleeps_of(pid);
	pause_ms(IDLE_MS);
	put_row("  wakeups", "1/s", 1, (double)(sleeps_of(pid) - before) * 1000 / IDLE_MS,
		0.1);
	peer_close(p);
}

/* ---- `errand ls` ---- */

enum {
	FINISHED = 10000,
	LISTED = 100, /* of them, where nothing else is set */
	LISTINGS = 20
};

static void run_ls(const struct bench *b, const char *out)
{
	char *argv[] = {b->errand, (char[]){"ls"}, NULL};
	posix_spawn_file_actions_t actions;
	int status;
	pid_t pid;

	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, out,
					       O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (posix_spawn(&pid, b->errand, &actions, NULL, argv, environ) != 0 ||
	    waitpid(pid, &status, 0) != pid || status != 0)
		die("errand ls has failed");
	(void)posix_spawn_file_actions_destroy(&actions);
}

static int count_rows(const char *path)
{
	FILE *f = fopen(path, "re");
	int c, rows = -1; /* the head */

	while (f && (c = getc(f)) != EOF)
		rows += c == '\n';
	if (f)
		(void)fclose(f);
	return rows;
}

static double time_ls(const struct bench *b, int rows)
{
	struct samples s = {.count = 0};
	char out[4200];

	(void)snprintf(out, sizeof(out), "%s/listing", b->folder);
	for (int i = 0; i < LISTINGS; i++) {
		int64_t t0 = now_ns();

		run_ls(b, out);
		samples_add(&s, now_ns() - t0);
		if (count_rows(out) != rows)
			die("%d tasks to be listed, errand ls shows %d", rows,
			    count_rows(out));
	}
	return samples_ms(&s, 50);
}

void measure_ls(struct bench *b)
{
	char state[4096];
	struct peer *p = new_daemon(b, state);

	peer_run_many(p, FINISHED, 32);
	put_row("errand ls, 10,000 finished, p50", "ms", 1, time_ls(b, LISTED), 15);
	peer_close(p);
}

/* ---- a death ---- */

#define LIVE 1000

static int count_in(const char *text, const char *what)
{
	int n = 0;

	for (; (text = strstr(text, what)); text++)
		n++;
	return n;
}

static void check_recovered(struct peer *p)
{
	const char *list = peer_call(p, "task_list", "{}");
	int live = count_in(list, "[bash] running"),
	    finished = count_in(list, "[bash] completed");

	if (live != LIVE || finished != FINISHED)
		die("%d live and %d finished tasks are left of %d and %d", live, finished,
		    LIVE, FINISHED);
}

void measure_recovery(struct bench *b)
{
	static int tasks[LIVE];
	char state[4096];
	int gate = shut_gate(b);
	struct peer *p;
	double before;
	int64_t t0;

	(void)setenv("ERRAND_LIMITS_FINISHED_TASKS", "1000000", 1);
	p = new_daemon(b, state);
	(void)unsetenv("ERRAND_LIMITS_FINISHED_TASKS");
	peer_run_many(p, FINISHED, 32);
	put_row("errand ls, 10,000 listed, p50", "ms", 1, time_ls(b, FINISHED), 0);
	before = kib_of(pid_of_daemon(state), "Private_Dirty:");
	for (int i = 0; i < LIVE; i++)
		tasks[i] = start_waiting(b, p);
	put_row("1,000 live tasks, the daemon's growth for each", "KiB", 1,
		(kib_of(pid_of_daemon(state), "Private_Dirty:") - before) / LIVE, 0);
	(void)kill(pid_of_daemon(state), SIGKILL);
	t0 = now_ns();
	(void)peer_read(p, tasks[0]);
	put_row("killed; answers of the next one, with both", "s", 3,
		(double)(now_ns() - t0) / 1e9, 1);
	check_recovered(p);
	(void)close(gate);
	for (int i = 0; i < LIVE; i++)
		peer_ask_end(p, tasks[i]);
	for (int i = 0; i < LIVE; i++)
		peer_take_end_ok(p);
	put_row("  resident then", "MiB", 1, kib_of(pid_of_daemon(state), "Rss:") / 1024,
		0);
	peer_close(p);
}

/* ---- many clients ---- */

enum {
	CLIENTS = 200,
	WAITS = 5, /* of each */
	LISTS = 5
};

static void begin_waits(const struct bench *b, struct peer *p)
{
	int tasks[WAITS];

	for (int i = 0; i < WAITS; i++)
		tasks[i] = start_waiting(b, p);
	for (int i = 0; i < WAITS; i++)
		peer_ask_end(p, tasks[i]);
}

static void time_list(struct peer *p, struct samples *s)
{
	int64_t t0 = now_ns();
	const char *text = peer_call(p, "task_list", "{}");

	samples_add(s, now_ns() - t0);
	if (count_in(text, "[bash] running") != WAITS)
		die("a client has %d tasks, and sees: %.500s", WAITS, text);
}

void measure_crowd(struct bench *b)
{
	static struct peer *clients[CLIENTS];
	static struct samples s;
	char state[4096];
	int gate = shut_gate(b);

	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = i ? errand_client(b, state) : new_daemon(b, state);
		begin_waits(b, clients[i]);
	}
	for (int k = 0; k < LISTS; k++)
		for (int i = 0; i < CLIENTS; i++)
			time_list(clients[i], &s);
	put_row("200 clients, 1,000 waits: a task_list, p50", "ms", 3, samples_ms(&s, 50),
		0);
	put_row("  p99", "ms", 3, samples_ms(&s, 99), 20);
	(void)close(gate);
	for (int i = 0; i < CLIENTS; i++) {
		for (int k = 0; k < WAITS; k++)
			peer_take_end_ok(clients[i]);
		peer_close(clients[i]);
	}
}
