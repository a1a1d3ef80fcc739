/* SPDX-License-Identifier: MIT */
/* volume.c - much output: what it costs, and that nothing of it is miscounted. */
#include "measure.h"

#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <math.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define FLOOD_BYTES (INT64_C(1) << 30)
#define LINES 100000

/* ---- 1 GiB ---- */

struct cost {
	double wall_s, cpu_s;
};

static void wait_for_flood(const struct note *n)
{
	while (!__atomic_load_n(&n->end_ns, __ATOMIC_SEQ_CST))
		pause_ms(1);
	pause_ms(5); /* its reader may be writing the last bytes */
}

static struct cost cost_of(struct note *n, pid_t reader)
{
	struct cost c = {
		.wall_s = (double)(n->end_ns - n->begin_ns) / 1e9,
		.cpu_s = (double)cpu_ns(reader) / 1e9,
	};

	__atomic_store_n(&n->go, 1, __ATOMIC_SEQ_CST);
	return c;
}

static pid_t run_piece(const struct bench *b, const char *const args[], int in, int out)
{
	const char *argv[5] = {b->work, args[0], args[1], args[2], NULL};
	pid_t pid = fork();

	if (pid != 0)
		return pid;
	if ((in >= 0 && dup2(in, 0) < 0) || (out >= 0 && dup2(out, 1) < 0))
		_exit(1);
	(void)execv(b->work, (char **)(uintptr_t)argv);
	_exit(127);
}

/* The same flood through a pipe into a process that only reads and writes. */
static struct cost plain_flood(const struct bench *b, struct note *note)
{
	char bytes[32], copy[4200];
	int fds[2];
	pid_t reader, writer;
	struct cost c;

	(void)snprintf(bytes, sizeof(bytes), "%" PRId64, FLOOD_BYTES);
	(void)snprintf(copy, sizeof(copy), "%s/copy", b->folder);
	if (pipe2(fds, O_CLOEXEC) != 0)
		die("no pipe");
	reader = run_piece(b, (const char *[]){"copy", copy, NULL}, fds[0], -1);
	writer = run_piece(b, (const char *[]){"flood", bytes, b->note}, -1, fds[1]);
	(void)close(fds[0]);
	(void)close(fds[1]);
	wait_for_flood(note);
	c = cost_of(note, reader);
	(void)waitpid(writer, NULL, 0);
	(void)waitpid(reader, NULL, 0);
	(void)unlink(copy);
	return c;
}

static int64_t logged;

static int add_log(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	if (type == FTW_F && strncmp(path + ftw->base, "out", 3) == 0)
		logged += st->st_size;
	return 0;
}

static int64_t bytes_logged(const char *state)
{
	logged = 0;
	(void)nftw(state, add_log, 16, FTW_PHYS);
	return logged;
}

/* What is on disk and what is said to be gone must be all that was printed. */
static void check_dropped(const char *text, const char *state)
{
	const char *end = strstr(text, " bytes were dropped]"), *at = end;
	int64_t dropped, kept = bytes_logged(state);

	while (at && at > text && at[-1] != '[')
		at--;
	dropped = at ? strtoll(at, NULL, 10) : 0;
	if (dropped + kept != FLOOD_BYTES)
		die("%" PRId64 " bytes dropped and %" PRId64 " kept of %" PRId64, dropped,
		    kept, FLOOD_BYTES);
}

static struct cost errand_flood(const struct bench *b, struct note *note, double *ret_kib)
{
	char state[4096];
	struct peer *p = errand_server(b, NULL, NULL, state);
	struct cost c;
	const char *text;
	double before;
	int task;

	peer_wait_ok(p, peer_start(p, "true"));
	before = kib_of(peer_pid(p), "Private_Dirty:");
	task = peer_start(p,
			  work_command(b, "flood %" PRId64 " '%s'", FLOOD_BYTES, b->note));
	wait_for_flood(note);
	c = cost_of(note, note->parent);
	text = peer_wait(p, task);
	if (!strstr(text, "exit code: 0"))
		die("the flood has not ended well");
	check_dropped(text, state);
	*ret_kib = kib_of(peer_pid(p), "Private_Dirty:") - before;
	peer_close(p);
	return c;
}

void measure_flood(struct bench *b)
{
	struct row wall = {.name = "1 GiB of lines, wall; floor: plain copy",
			   .unit = "s",
			   .digits = 3,
			   .cell = NO_CELLS,
			   .aims = {{FLOOR, false, 1.25, ERRAND}}};
	struct row cpu = {.name = "  its reader's processor time",
			  .unit = "s",
			  .digits = 3,
			  .cell = NO_CELLS,
			  .aims = {{FLOOR, false, 1.25, ERRAND}}};
	struct row growth = {.name = "  the host's growth",
			     .unit = "KiB",
			     .cell = NO_CELLS,
			     .aims = {{ERRAND, false, 1024, ERRAND}}};
	struct note *note = note_map(b->note);
	struct cost plain, ours;

	note_reset(note);
	plain = plain_flood(b, note);
	note_reset(note);
	ours = errand_flood(b, note, &growth.cell[ERRAND]);
	wall.cell[FLOOR] = plain.wall_s;
	wall.cell[ERRAND] = ours.wall_s;
	cpu.cell[FLOOR] = plain.cpu_s;
	cpu.cell[ERRAND] = ours.cpu_s;
	table_row(&wall);
	table_row(&cpu);
	table_row(&growth);
}

/* ---- 100,000 lines, read as they come ---- */

#define LINE_LEN 12 /* "line 0000001" */

/* Where the reading stands: the last whole line, and the beginning of the next one. */
struct reading {
	long last;
	char part[LINE_LEN + 1];
	size_t len;
};

static void take_line(struct reading *r)
{
	char want[32];

	(void)snprintf(want, sizeof(want), "line %07ld", ++r->last);
	if (strncmp(r->part, want, LINE_LEN) != 0)
		die("read '%.*s' instead of '%s'", LINE_LEN, r->part, want);
	r->len = 0;
}

/*
 * A reply's text, as it stands in JSON. It may end within a line; then the newline before its
 * status is not the task's, and of a line that is whole the task's own comes next.
 */
static void take_text(struct reading *r, const char *text)
{
	const char *at = strstr(text, "\"text\":\""),
		   *end = at ? strstr(at, "[status: ") : NULL;

	if (!end)
		die("no output and status: %.500s", text);
	for (at += strlen("\"text\":\""); at < end && *at != '('; at++) {
		bool is_newline = at[0] == '\\' && at[1] == 'n';

		if (!is_newline && r->len == LINE_LEN)
			die("a line is too long after line %ld", r->last);
		if (!is_newline)
			r->part[r->len++] = *at;
		else if (r->len == LINE_LEN)
			take_line(r);
		else if (r->len && at + 2 != end)
			die("a line is too short after line %ld", r->last);
		at += is_newline;
	}
}

static double read_lines(const struct bench *b, struct peer *p)
{
	struct reading r = {0};
	bool is_running = true;
	int64_t t0 = now_ns();
	long before;
	int task;

	task = peer_start(p, work_command(b, "lines %d", LINES));
	do {
		const char *text = peer_read(p, task);

		before = r.last;
		is_running = strstr(text, "[status: running]") != NULL;
		take_text(&r, text);
	} while (r.last < LINES && (is_running || r.last > before));
	if (r.last != LINES)
		die("%d lines were written, %ld read", LINES, r.last);
	return (double)(now_ns() - t0) / 1e9;
}

void measure_lines(struct bench *b)
{
	struct row r = {.name = "100,000 lines, read as they come",
			.unit = "s",
			.digits = 3,
			.cell = NO_CELLS,
			.aims = {{FLOOR, false, 3, ERRAND}}};
	struct peer *p = errand_server(b, "ERRAND_BASH_OUTPUT_LIMIT", "0", NULL);

	r.cell[FLOOR] = read_lines(b, b->peers[FLOOR]);
	r.cell[ERRAND] = read_lines(b, p);
	peer_close(p);
	table_row(&r);
}
