/* SPDX-License-Identifier: MIT */
/*
 * work.c - what the measured tasks do.
 *
 *	stamp NOTE	after 50 ms, the clock as the last thing done
 *	lines N		N numbered lines, one write each
 *	flood N NOTE	N bytes of lines; ends when it is told to
 *	tree NOTE	50 processes: every fifth in a session of its own, every tenth an orphan
 *	copy FILE	pipe, read, write, and nothing else: what a flood costs at least
 *	gate FILE	ends when nobody has FILE locked
 */
#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "bench.h"

static void write_all(const char *bytes, size_t len)
{
	while (len > 0) {
		ssize_t n = write(STDOUT_FILENO, bytes, len);

		if (n <= 0)
			die("nobody reads the output");
		bytes += n;
		len -= (size_t)n;
	}
}

/* Long enough for its waiter to be waiting. */
static int stamp(char **args)
{
	struct note *n = note_map(args[0]);

	pause_ms(50);
	n->end_ns = now_ns();
	_exit(0);
}

static int lines(char **args)
{
	long count = strtol(args[0], NULL, 10);
	char line[32];

	for (long i = 1; i <= count; i++) {
		int len = snprintf(line, sizeof(line), "line %07ld\n", i);

		write_all(line, (size_t)len);
	}
	return 0;
}

/* From the first byte until its reader has taken the last one. */
static int flood(char **args)
{
	static char chunk[640 * 100];
	int64_t left = strtoll(args[0], NULL, 10);
	struct note *n = note_map(args[1]);
	int unread = 1;

	memset(chunk, 'x', sizeof(chunk));
	for (size_t i = 99; i < sizeof(chunk); i += 100)
		chunk[i] = '\n';
	n->parent = getppid();
	n->begin_ns = now_ns();
	for (; left > 0; left -= (int64_t)sizeof(chunk))
		write_all(chunk,
			  left < (int64_t)sizeof(chunk) ? (size_t)left : sizeof(chunk));
	while (ioctl(STDOUT_FILENO, FIONREAD, &unread) == 0 && unread > 0)
		pause_ms(0);
	__atomic_store_n(&n->end_ns, now_ns(), __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&n->go, __ATOMIC_SEQ_CST))
		pause_ms(1);
	return 0;
}

/* ---- the tree ---- */

static _Noreturn void stay(struct note *n)
{
	n->pids[__atomic_fetch_add(&n->count, 1, __ATOMIC_SEQ_CST)] = getpid();
	pause_ms(60000);
	_exit(0);
}

static _Noreturn void leaf(struct note *n, int number)
{
	if (number % 5 == 0)
		(void)setsid();
	if (number % 10 == 0 && fork() != 0)
		_exit(0);
	stay(n);
}

static _Noreturn void branch(struct note *n, int number)
{
	if (number % 5 == 0)
		(void)setsid();
	for (int i = 1; i < 7; i++)
		if (fork() == 0)
			leaf(n, number + i);
	stay(n);
}

static int tree(char **args)
{
	struct note *n = note_map(args[0]);

	for (int i = 0; i < 7; i++)
		if (fork() == 0)
			branch(n, 1 + 7 * i);
	stay(n);
}

static int copy(char **args)
{
	static char chunk[64 << 10];
	int fd = open(args[0], O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	ssize_t n;

	while ((n = read(STDIN_FILENO, chunk, sizeof(chunk))) > 0)
		if (write(fd, chunk, (size_t)n) != n)
			die("cannot write %s", args[0]);
	return 0;
}

/* Until whoever has it locked lets go. */
static int gate(char **args)
{
	int fd = open(args[0], O_RDONLY | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH) == 0 ? 0 : 1;
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int n_args;
		int (*run)(char **args);
	} works[] = {
		{"stamp", 1, stamp}, {"lines", 1, lines}, {"flood", 2, flood},
		{"tree", 1, tree},   {"copy", 1, copy},   {"gate", 1, gate},
	};

	for (size_t i = 0; i < sizeof(works) / sizeof(works[0]); i++)
		if (argc == works[i].n_args + 2 && strcmp(argv[1], works[i].name) == 0)
			return works[i].run(argv + 2);
	die("usage: work stamp|lines|flood|tree|copy|gate ...");
}
