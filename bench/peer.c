/* SPDX-License-Identifier: MIT */
#include "peer.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

/* A reply without a limit on the output may be long. */
#define MAX_LINE (16 << 20)

struct peer {
	bool is_tsp;
	pid_t pid;
	int in_fd, out_fd; /* we write, we read */
	char *line;        /* the last one read, NUL-terminated */
	size_t have, taken;
	int last_id;
};

static const char ended_well[] = "[status: completed, exit code: 0]";
static const char started[] = "started background task bash-";

/* Starts argv with our pipes as its stdin (if @in_fd) and stdout. */
static pid_t spawn(char *const argv[], int *in_fd, int *out_fd)
{
	posix_spawn_file_actions_t actions;
	int in[2], out[2], rc;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) != 0 || (in_fd && pipe2(in, O_CLOEXEC) != 0))
		die("no pipe: %s", strerror(errno));
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	if (in_fd)
		(void)posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	else
		(void)posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY,
						       0);
	rc = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&actions);
	if (rc != 0)
		die("cannot run %s: %s", argv[0], strerror(rc));
	(void)close(out[1]);
	*out_fd = out[0];
	if (in_fd) {
		(void)close(in[0]);
		*in_fd = in[1];
	}
	return pid;
}

static int wait_for_exit(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			die("no status of a process: %s", strerror(errno));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static struct peer *new_peer(void)
{
	struct peer *p = calloc(1, sizeof(*p));

	if (!p)
		abort();
	p->line = malloc(MAX_LINE);
	if (!p->line)
		abort();
	return p;
}

/* ---- MCP ---- */

static void put_line(struct peer *p, const char *text, size_t len)
{
	while (len > 0) {
		ssize_t n = write(p->in_fd, text, len);

		if (n < 0)
			die("a server does not read: %s", strerror(errno));
		text += n;
		len -= (size_t)n;
	}
}

/* The next line, until the next call. */
static char *get_line(struct peer *p)
{
	size_t looked = 0;
	char *end;

	p->have -= p->taken;
	memmove(p->line, p->line + p->taken, p->have);
	while (!(end = memchr(p->line + looked, '\n', p->have - looked))) {
		ssize_t n = p->have < MAX_LINE
				    ? read(p->out_fd, p->line + p->have, MAX_LINE - p->have)
				    : 0;

		if (n <= 0)
			die("a server is gone, or a line is too long");
		looked = p->have;
		p->have += (size_t)n;
	}
	*end = 0;
	p->taken = (size_t)(end + 1 - p->line);
	return p->line;
}

static int ask(struct peer *p, const char *tool, const char *arguments)
{
	char line[8192];
	int len = snprintf(line, sizeof(line),
			   "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
			   "\"params\":{\"name\":\"%s\",\"arguments\":%s}}\n",
			   ++p->last_id, tool, arguments);

	if (len < 0 || (size_t)len >= sizeof(line))
		die("a request is too long");
	put_line(p, line, (size_t)len);
	return p->last_id;
}

/* The next reply; *@ret_id is whose it is. What is beside its content is cut off. */
static char *answer(struct peer *p, int *ret_id)
{
	char *line, *id, *end;

	do
		line = get_line(p);
	while (!(id = strstr(line, "\"id\":")) || !strstr(line, "\"result\""));
	*ret_id = (int)strtol(id + 5, NULL, 10);
	end = strstr(line, "],\"isError\":false");
	if (!end)
		die("a call failed: %.500s", line);
	*end = 0;
	return line;
}

const char *peer_call(struct peer *p, const char *tool, const char *arguments)
{
	int id = ask(p, tool, arguments), got;
	const char *line = answer(p, &got);

	if (got != id)
		die("expected the answer %d: %.500s", id, line);
	return line;
}

static int ask_start(struct peer *p, const char *command)
{
	char arguments[6000];

	(void)snprintf(arguments, sizeof(arguments),
		       "{\"command\":\"%s\",\"description\":\"bench\","
		       "\"run_in_background\":true}",
		       command);
	return ask(p, "bash", arguments);
}

static int ask_output(struct peer *p, int task, bool wait)
{
	char arguments[128];

	(void)snprintf(arguments, sizeof(arguments), "{\"task_id\":\"bash-%d\"%s}", task,
		       wait ? ",\"wait\":true" : "");
	return ask(p, "task_output", arguments);
}

static int started_task(const char *line)
{
	const char *at = strstr(line, started);

	if (!at)
		die("no task was started: %.500s", line);
	return (int)strtol(at + strlen(started), NULL, 10);
}

static const char *answer_to(struct peer *p, int id)
{
	int got;
	const char *line = answer(p, &got);

	if (got != id)
		die("expected the answer %d: %.500s", id, line);
	return line;
}

struct peer *peer_mcp(char *const argv[])
{
	static const char hello[] =
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
		"\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
		"\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n";
	static const char ready[] =
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";
	struct peer *p = new_peer();

	p->pid = spawn(argv, &p->in_fd, &p->out_fd);
	put_line(p, hello, sizeof(hello) - 1);
	(void)get_line(p);
	put_line(p, ready, sizeof(ready) - 1);
	return p;
}

/* Each slot in flight is a start, then a wait; what a reply is for, its id tells. */
static void run_many_mcp(struct peer *p, int count, int at_once)
{
	bool *is_start = calloc((size_t)count * 2 + 1, sizeof(*is_start));
	int first = p->last_id + 1, begun = 0, id;

	if (!is_start)
		die("no memory");
	for (; begun < count && begun < at_once; begun++)
		is_start[ask_start(p, "true") - first] = true;
	for (int done = 0; done < count;) {
		const char *line = answer(p, &id);

		if (is_start[id - first]) {
			(void)ask_output(p, started_task(line), true);
			continue;
		}
		if (!strstr(line, ended_well))
			die("`true` has not ended well: %.500s", line);
		done++;
		if (begun < count) {
			is_start[ask_start(p, "true") - first] = true;
			begun++;
		}
	}
	free(is_start);
}

/* ---- task-spooler ---- */

/* Runs it; what it prints is in p->line, its exit code is returned. */
static int run_tsp(struct peer *p, char *const argv[])
{
	pid_t pid = spawn(argv, NULL, &p->out_fd);
	ssize_t n;

	p->have = 0;
	while ((n = read(p->out_fd, p->line + p->have, 4095 - p->have)) > 0)
		p->have += (size_t)n;
	p->line[p->have] = 0;
	(void)close(p->out_fd);
	return wait_for_exit(pid);
}

static int run_tsp_option(struct peer *p, const char *option, int number)
{
	char name[] = "tsp", text[16], letter[8];
	char *argv[] = {name, letter, text, NULL};

	(void)snprintf(letter, sizeof(letter), "%s", option);
	(void)snprintf(text, sizeof(text), "%d", number);
	return run_tsp(p, argv);
}

static bool is_installed(const char *program)
{
	char path[4096];

	for (const char *at = getenv("PATH"); at && *at;) {
		size_t len = strcspn(at, ":");

		(void)snprintf(path, sizeof(path), "%.*s/%s", (int)len, at, program);
		if (access(path, X_OK) == 0)
			return true;
		at += len + (at[len] == ':');
	}
	return false;
}

static void stop_tsp(void)
{
	char *argv[] = {(char[]){"tsp"}, (char[]){"-K"}, NULL};
	int fd;
	pid_t pid = spawn(argv, NULL, &fd);

	(void)wait_for_exit(pid);
}

#define TSP_SLOTS 100

struct peer *peer_tsp(const char *folder)
{
	char path[64]; /* a socket's name is short */
	struct peer *p;

	if (!is_installed("tsp"))
		return NULL;
	p = new_peer();
	p->is_tsp = true;
	(void)snprintf(path, sizeof(path), "/tmp/errand-bench-%d.sock", (int)getpid());
	(void)setenv("TS_SOCKET", path, 1);
	(void)setenv("TMPDIR", folder, 1);
	if (run_tsp_option(p, "-S", TSP_SLOTS) != 0)
		die("tsp does not start");
	(void)atexit(stop_tsp); /* also when the bench dies */
	return p;
}

static int start_tsp(struct peer *p, const char *command)
{
	char name[] = "tsp", bash[] = "bash", option[] = "-c", text[4096];
	char *argv[] = {name, bash, option, text, NULL};

	(void)snprintf(text, sizeof(text), "%s", command);
	if (run_tsp(p, argv) != 0 || p->have == 0)
		die("tsp has not started a task");
	return (int)strtol(p->line, NULL, 10);
}

static void run_share_tsp(struct peer *p, int count)
{
	for (int i = 0; i < count; i++)
		peer_wait_ok(p, start_tsp(p, "true"));
	_exit(0);
}

static void run_many_tsp(struct peer *p, int count, int at_once)
{
	pid_t *pids = calloc((size_t)at_once, sizeof(*pids));

	if (!pids)
		die("no memory");
	for (int i = 0; i < at_once; i++) {
		pids[i] = fork();
		if (pids[i] == 0)
			run_share_tsp(p, count / at_once + (i < count % at_once));
	}
	for (int i = 0; i < at_once; i++)
		if (wait_for_exit(pids[i]) != 0)
			die("tsp has not run all tasks");
	free(pids);
}

/* ---- both ---- */

void peer_close(struct peer *p)
{
	if (!p)
		return;
	if (!p->is_tsp) {
		(void)close(p->in_fd);
		(void)close(p->out_fd);
		(void)wait_for_exit(p->pid);
	}
	free(p->line);
	free(p);
}

pid_t peer_pid(const struct peer *p)
{
	return p->pid;
}

int peer_start(struct peer *p, const char *command)
{
	if (p->is_tsp)
		return start_tsp(p, command);
	return started_task(answer_to(p, ask_start(p, command)));
}

const char *peer_wait(struct peer *p, int task)
{
	if (!p->is_tsp)
		return answer_to(p, ask_output(p, task, true));
	(void)snprintf(p->line, 4096, "[status: completed, exit code: %d]",
		       run_tsp_option(p, "-w", task));
	return p->line;
}

void peer_wait_ok(struct peer *p, int task)
{
	const char *text = peer_wait(p, task);

	if (!strstr(text, ended_well))
		die("a task has not ended well: %.500s", text);
}

void peer_ask_end(struct peer *p, int task)
{
	(void)ask_output(p, task, true);
}

void peer_take_end_ok(struct peer *p)
{
	int id;
	const char *text = answer(p, &id);

	if (!strstr(text, ended_well))
		die("a task has not ended well: %.500s", text);
}

const char *peer_read(struct peer *p, int task)
{
	return p->is_tsp ? NULL : answer_to(p, ask_output(p, task, false));
}

void peer_kill(struct peer *p, int task)
{
	char arguments[64];

	if (p->is_tsp) {
		(void)run_tsp_option(p, "-k", task);
		return;
	}
	(void)snprintf(arguments, sizeof(arguments), "{\"task_id\":\"bash-%d\"}", task);
	(void)peer_call(p, "task_kill", arguments);
}

void peer_run_many(struct peer *p, int count, int at_once)
{
	if (p->is_tsp)
		run_many_tsp(p, count, at_once);
	else
		run_many_mcp(p, count, at_once);
}
