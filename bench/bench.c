/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <unistd.h>

int64_t now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void pause_ms(int ms)
{
	struct timespec ts = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	(void)nanosleep(&ts, NULL);
}

void die(const char *format, ...)
{
	va_list args;

	(void)fflush(stdout);
	va_start(args, format);
	(void)fprintf(stderr, "bench: ");
	(void)vfprintf(stderr, format, args);
	(void)fprintf(stderr, "\n");
	va_end(args);
	exit(1);
}

/* ---- samples ---- */

void samples_add(struct samples *s, int64_t ns)
{
	if (s->count < SAMPLES_MAX)
		s->ns[s->count++] = ns;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

double samples_ms(struct samples *s, int percent)
{
	int at = (s->count - 1) * percent / 100;

	if (!s->count)
		return NAN;
	qsort(s->ns, (size_t)s->count, sizeof(s->ns[0]), by_size);
	return (double)s->ns[at] / 1e6;
}

/* ---- the table ---- */

#define NAME_WIDTH 46

static void put_cell(double value, int digits)
{
	if (isnan(value))
		printf("%10s", "-");
	else
		printf("%10.*f", digits, value);
}

void table_head(const char *const names[COLUMNS])
{
	printf("\n%-*s", NAME_WIDTH, "");
	for (int i = 0; i < COLUMNS; i++)
		printf("%10s", names[i] ? names[i] : "-");
	for (int i = FLOOR; i < COLUMNS; i++)
		printf("%10s", names[i] ? "ratio" : "-");
	printf("   aim\n");
}

static bool is_met(const struct row *r, const struct aim *a)
{
	double bound = a->of == a->on ? a->bound : a->bound * r->cell[a->of];

	return a->is_least ? r->cell[a->on] >= bound : r->cell[a->on] <= bound;
}

static void put_aim(const struct row *r, const struct aim *a)
{
	static const char *const names[COLUMNS] = {" errand", " daemon", " floor", " tsp",
						   " other"};

	if (a->bound <= 0 || isnan(r->cell[a->of]))
		return;
	printf("  %s %s %g%s: %s", a->on == ERRAND ? "" : names[a->on],
	       a->is_least ? ">=" : "<=", a->bound, a->of == a->on ? "" : names[a->of],
	       is_met(r, a) ? "yes" : "NO");
}

void table_row(const struct row *r)
{
	char name[NAME_WIDTH + 1];

	(void)snprintf(name, sizeof(name), "%s%s%s", r->name, *r->unit ? ", " : "",
		       r->unit);
	printf("%-*s", NAME_WIDTH, name);
	for (int i = 0; i < COLUMNS; i++)
		put_cell(r->cell[i], r->digits);
	for (int i = FLOOR; i < COLUMNS; i++)
		put_cell(r->cell[i] > 0 ? r->cell[ERRAND] / r->cell[i] : NAN, 2);
	for (int i = 0; i < AIMS; i++)
		put_aim(r, &r->aims[i]);
	printf("\n");
	(void)fflush(stdout);
}

/* ---- processes ---- */

static size_t read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	(void)snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		n = read(fd, text, size - 1);
		(void)close(fd);
	}
	text[n > 0 ? n : 0] = 0;
	return n > 0 ? (size_t)n : 0;
}

double kib_of(pid_t pid, const char *key)
{
	char text[4096], *at;

	(void)read_proc(pid, "smaps_rollup", text, sizeof(text));
	at = strstr(text, key);
	if (!at)
		die("/proc/%d/smaps_rollup has no %s", (int)pid, key);
	return strtod(at + strlen(key), NULL);
}

int64_t cpu_ns(pid_t pid)
{
	char text[128];

	if (!read_proc(pid, "schedstat", text, sizeof(text)))
		die("/proc/%d/schedstat cannot be read", (int)pid);
	return strtoll(text, NULL, 10);
}

static int64_t sleeps_of_thread(pid_t pid, const char *thread)
{
	static const char key[] = "\nvoluntary_ctxt_switches:";
	char name[64], text[4096];
	const char *at;

	(void)snprintf(name, sizeof(name), "task/%.32s/status", thread);
	(void)read_proc(pid, name, text, sizeof(text));
	at = strstr(text, key);
	return at ? strtoll(at + strlen(key), NULL, 10) : 0;
}

int64_t sleeps_of(pid_t pid)
{
	char path[64];
	const struct dirent *e;
	int64_t sum = 0;
	DIR *dir;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir)
		die("%s cannot be read", path);
	while ((e = readdir(dir)))
		sum += *e->d_name == '.' ? 0 : sleeps_of_thread(pid, e->d_name);
	(void)closedir(dir);
	return sum;
}

/* State and parent: what follows the name, which may hold anything but a second line. */
static const char *state_of(pid_t pid, char *text, size_t size)
{
	const char *end;

	(void)read_proc(pid, "stat", text, size);
	end = strrchr(text, ')');
	return end && end[1] ? end + 2 : "";
}

bool is_alive(pid_t pid)
{
	char text[512];
	const char *state = state_of(pid, text, sizeof(text));

	return *state && !strchr("ZX", *state);
}

int children_of(pid_t pid, pid_t *list, int max)
{
	DIR *dir = opendir("/proc");
	const struct dirent *e;
	char text[512];
	int n = 0;

	while (dir && n < max && (e = readdir(dir))) {
		pid_t child = (pid_t)strtol(e->d_name, NULL, 10);
		const char *state = child ? state_of(child, text, sizeof(text)) : "";

		if (*state && *state != 'Z' && strtol(state + 1, NULL, 10) == pid)
			list[n++] = child;
	}
	if (dir)
		(void)closedir(dir);
	return n;
}

/* ---- notes ---- */

struct note *note_map(const char *path)
{
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	void *map = MAP_FAILED;

	if (fd >= 0 && ftruncate(fd, sizeof(struct note)) == 0)
		map = mmap(NULL, sizeof(struct note), PROT_READ | PROT_WRITE, MAP_SHARED,
			   fd, 0);
	if (map == MAP_FAILED)
		die("cannot map %s", path);
	(void)close(fd);
	return map;
}

void note_reset(struct note *n)
{
	memset(n, 0, sizeof(*n));
}
