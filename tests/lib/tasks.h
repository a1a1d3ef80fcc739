/* SPDX-License-Identifier: MIT */
/*
 * tasks.h - for tests that run real processes: a host's side in a temporary folder.
 *
 * Nothing here sleeps for luck: every wait is for a condition, with a deadline that only
 * a broken program reaches.
 */
#pragma once

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "run/run.h"
#include "shim/proto.h"

#define PATIENCE_MS 20000

/* Expressions that must come true while the host's side turns. */
#define wait_until(w, condition)                                                           \
	do {                                                                               \
		int64_t until_ = clock_mono_ms() + PATIENCE_MS;                            \
		bool is_true_;                                                             \
		while (!(is_true_ = (condition)) && clock_mono_ms() < until_)              \
			world_turn(w, 5);                                                  \
		if (!is_true_)                                                             \
			fail_msg("never came true: %s", #condition);                       \
	} while (0)

struct world {
	char folder[64];
	struct run *run;
	struct run_context context;
};

/* One task, and how it ended. */
struct job {
	struct run_task *task;
	struct run_end end;
	unsigned ends; /* how often it was told */
};

extern char **environ;

static inline const char *shim_path(void)
{
	static char path[4096];
	const char *build = getenv("ERRAND_BUILD");

	assert_non_null(build);
	(void)snprintf(path, sizeof(path), "%s/errand-shim", build);
	return path;
}

static inline void world_open(struct world *w)
{
	const char *tmp = getenv("TMPDIR");
	struct err err = {0};

	(void)snprintf(w->folder, sizeof(w->folder), "%s/errand-test-XXXXXX",
		       tmp && strlen(tmp) < 40 ? tmp : "/tmp");
	assert_non_null(mkdtemp(w->folder));
	if (run_new(w->folder, shim_path(), &w->run, &err) != 0)
		fail_msg("%s", err.msg);
	w->context = (struct run_context){.cwd = "/tmp", .umask = 022};
	memcpy(&w->context.env, &environ, sizeof(environ));
}

static inline int remove_one(const char *path, const struct stat *st, int type,
			     struct FTW *f)
{
	(void)st, (void)type, (void)f;
	return remove(path);
}

/* Whatever a failed test has left running goes with its world. */
static inline void world_close(struct world *w)
{
	if (!w->run)
		return;
	run_leave(w->run);
	run_free(w->run);
	w->run = NULL;
	(void)nftw(w->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The world of the test that runs. A failure leaves it open: the next test closes it. */
static struct world the_world;

static inline void close_the_world(void)
{
	world_close(&the_world);
}

static inline struct world *fresh_world(void)
{
	static bool is_registered;

	if (!is_registered)
		(void)atexit(close_the_world);
	is_registered = true;
	world_close(&the_world);
	world_open(&the_world);
	return &the_world;
}

/* A test in a world of its own, which is @w. */
#define TASK_TEST(what)                                                                    \
	static void with_world_##what(struct world *w);                                    \
	TEST(what)                                                                         \
	{                                                                                  \
		with_world_##what(fresh_world());                                          \
		world_close(&the_world);                                                   \
	}                                                                                  \
	static void with_world_##what(struct world *w)

static inline void world_turn(struct world *w, int wait_ms)
{
	struct pollfd p = {.fd = run_fd(w->run), .events = POLLIN};

	(void)poll(&p, 1, wait_ms);
	run_turn(w->run, clock_mono_ms());
}

static inline void job_ended(void *ud, struct run_task *t, const struct run_end *end)
{
	struct job *j = ud;

	assert_ptr_equal(t, j->task);
	j->end = *end;
	j->ends++;
}

static inline struct run_spec spec_of(struct world *w, const char *const *argv)
{
	return (struct run_spec){
		.argv = argv,
		.context = &w->context,
		.grace_ms = 300,
		.log_head = 1 << 20,
		.log_tail = 1 << 20,
	};
}

static inline void job_start_spec(struct world *w, struct job *j,
				  const struct run_spec *spec)
{
	struct err err = {0};

	*j = (struct job){0};
	if (run_start(w->run, spec, job_ended, j, &j->task, &err) != 0)
		fail_msg("%s", err.msg);
	run_flush(w->run);
}

static inline void job_start(struct world *w, struct job *j, const char *command)
{
	const char *argv[] = {"bash", "-c", command, NULL};
	struct run_spec spec = spec_of(w, argv);

	job_start_spec(w, j, &spec);
}

static inline void job_wait(struct world *w, struct job *j)
{
	wait_until(w, j->ends > 0);
	assert_int_equal(j->ends, 1);
}

static inline void job_run(struct world *w, struct job *j, const char *command)
{
	job_start(w, j, command);
	job_wait(w, j);
}

/* The whole log, up to 1 MiB; borrowed until the next call. */
static inline const char *job_log(struct job *j)
{
	static struct buf text = BUF_INIT(1 << 20);
	struct err err = {0};
	uint64_t from;

	buf_clear(&text);
	assert_int_equal(run_log_read(j->task, 0, 1 << 20, &text, &from, &err), 0);
	return buf_text(&text);
}

static inline bool log_has(struct job *j, const char *text)
{
	return strstr(job_log(j), text) != NULL;
}

/* Wait until the task has printed @text. */
static inline void job_says(struct world *w, struct job *j, const char *text)
{
	wait_until(w, log_has(j, text));
}

/*
 * A gate for commands: gate_shut() gives the words that wait in front of it, gate_open()
 * lets them pass. So a test decides what comes first, not the clock.
 */
static inline const char *gate_shut(const struct world *w)
{
	static char words[256];
	char path[128];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/gate", w->folder);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	(void)snprintf(words, sizeof(words), "while [ -e %s ]; do sleep 0.02; done", path);
	return words;
}

static inline void gate_open(const struct world *w)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/gate", w->folder);
	assert_int_equal(unlink(path), 0);
}

/* The name of the only run folder. */
static inline const char *only_folder(const struct world *w)
{
	static char name[4096];
	char tasks[128];
	struct dirent *e;
	DIR *dir;

	(void)snprintf(tasks, sizeof(tasks), "%s/tasks", w->folder);
	dir = opendir(tasks);
	assert_non_null(dir);
	name[0] = 0;
	while ((e = readdir(dir))) {
		if (e->d_name[0] == '.')
			continue;
		assert_string_equal(name, "");
		(void)snprintf(name, sizeof(name), "%s/%s", tasks, e->d_name);
	}
	(void)closedir(dir);
	return name;
}

static inline size_t read_text(const char *path, char *text, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n;

	while (fd >= 0 && len < size - 1 && (n = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)n;
	if (fd >= 0)
		(void)close(fd);
	text[len] = 0;
	return len;
}

/* A zombie counts as dead. */
/* As /proc has it; 'X' for one that is gone. */
static inline char process_state(long pid)
{
	char path[64], line[512];
	const char *at;

	(void)snprintf(path, sizeof(path), "/proc/%ld/stat", pid);
	if (!read_text(path, line, sizeof(line)))
		return 'X';
	at = strrchr(line, ')');
	return at ? at[2] : 'X';
}

static inline bool is_alive(long pid)
{
	return !strchr("ZX", process_state(pid));
}

/* A command that starts headless.c after @before, and prints its number when its first thread
 * is over. */
static inline const char *headless(const char *before)
{
	static char text[4352];

	(void)snprintf(text, sizeof(text),
		       "%s %s/tests/unit/headless </dev/null & "
		       "until grep -q '^State:.Z' /proc/$!/status; do :; done; echo $!;",
		       before, getenv("ERRAND_BUILD"));
	return text;
}

/* A zombie may be one without its first thread: here everybody who has a number counts. */
static inline bool has_process(long pid)
{
	return kill((pid_t)pid, 0) == 0;
}

typedef void (*found_fn)(pid_t pid);

/* Living processes whose command line, its NULs as spaces, is @text, or holds it. */
static inline int each_line(const char *text, bool is_whole, found_fn fn)
{
	DIR *dir = opendir("/proc");
	struct dirent *e;
	int count = 0;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		char path[300], line[4096];
		pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
		size_t n;

		if (pid <= 0)
			continue;
		(void)snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)pid);
		n = read_text(path, line, sizeof(line));
		for (size_t i = 0; i + 1 < n; i++)
			line[i] = line[i] ? line[i] : ' ';
		if (!n || !is_alive(pid) ||
		    !(is_whole ? strcmp(line, text) == 0 : strstr(line, text) != NULL))
			continue;
		count++;
		if (fn)
			fn(pid);
	}
	(void)closedir(dir);
	return count;
}

static inline int count_lines(const char *text, bool is_whole)
{
	return each_line(text, is_whole, NULL);
}

static inline void end_one(pid_t pid)
{
	(void)kill(pid, SIGKILL);
}

/* What a task was right to leave behind, a test has to end. */
static inline void end_all(const char *command_line)
{
	(void)each_line(command_line, true, end_one);
}

static inline int count_alive(const char *command_line)
{
	return count_lines(command_line, true);
}

/* "sleep <seconds>" that no other test and no other run of this one uses. */
static inline const char *own_sleep(void)
{
	static unsigned serial;
	static char texts[4][64];
	char *text = texts[++serial % 4];

	(void)snprintf(text, sizeof(texts[0]), "sleep 3%03u.%d", serial, (int)getpid());
	return text;
}

static inline void read_status(const char *folder, struct proto_record *ret)
{
	char path[4200];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, PROTO_STATUS);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(proto_read_status(fd, ret), 0);
	(void)close(fd);
}
