/* SPDX-License-Identifier: MIT */
/*
 * floor_server.c - the least that a program behind MCP can do, as a measure for others: it
 * spawns with the task's output straight into a file, hears of the end from a pidfd, and
 * keeps nothing: no bound, no record, no end that outlives it, no process but the first.
 *
 * Not an example: its JSON is searched, not read, and only the bench's own requests fit.
 */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bench.h"

extern char **environ;

enum {
	MAX_TASKS = 20000,
	MAX_LINE = 1 << 16,
	READ_MAX = 1 << 16
};

struct task {
	pid_t pid;
	int pid_fd, log_fd;
	off_t cursor;
	bool is_ended;
	int wait_status;
	long long waiter; /* id of the request that waits; 0: none */
};

static struct task tasks[MAX_TASKS + 1]; /* from 1 */
static int n_tasks, epoll_fd, null_fd;
static char reply[READ_MAX * 6 + 1024];
static size_t reply_len;

/* ---- replies ---- */

static void put(const char *text)
{
	size_t len = strlen(text);

	memcpy(reply + reply_len, text, len);
	reply_len += len;
}

static void put_escaped(const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		char c = bytes[i];

		if (c == '\n')
			put("\\n");
		else if (c == '"' || c == '\\')
			reply[reply_len++] = '\\', reply[reply_len++] = c;
		else if ((unsigned char)c >= ' ')
			reply[reply_len++] = c;
	}
}

static void begin(long long id)
{
	reply_len =
		(size_t)snprintf(reply, sizeof(reply),
				 "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"result\":{\"content\":"
				 "[{\"type\":\"text\",\"text\":\"",
				 id);
}

static void end(void)
{
	put("\"}],\"isError\":false}}\n");
	for (size_t done = 0; done < reply_len;) {
		ssize_t n = write(STDOUT_FILENO, reply + done, reply_len - done);

		if (n <= 0)
			_exit(1);
		done += (size_t)n;
	}
}

static void put_status(const struct task *t)
{
	char text[64] = "[status: running]";

	if (t->is_ended && WIFEXITED(t->wait_status))
		(void)snprintf(text, sizeof(text), "[status: completed, exit code: %d]",
			       WEXITSTATUS(t->wait_status));
	else if (t->is_ended)
		(void)snprintf(text, sizeof(text), "[status: killed, signal: %d]",
			       WTERMSIG(t->wait_status));
	put(text);
}

static void tell_output(struct task *t, long long id)
{
	static char bytes[READ_MAX];
	ssize_t n = pread(t->log_fd, bytes, sizeof(bytes), t->cursor);

	begin(id);
	if (n > 0) {
		put_escaped(bytes, (size_t)n);
		t->cursor += n;
	} else {
		put("(no new output)\\n");
	}
	put_status(t);
	end();
}

/* ---- tasks ---- */

static bool spawn(struct task *t, char *command)
{
	char *argv[] = {(char[]){"bash"}, (char[]){"-c"}, command, NULL};
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int rc;

	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawnattr_init(&attr);
	(void)posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID);
	(void)posix_spawn_file_actions_adddup2(&actions, null_fd, 0);
	(void)posix_spawn_file_actions_adddup2(&actions, t->log_fd, 1);
	(void)posix_spawn_file_actions_adddup2(&actions, t->log_fd, 2);
	rc = posix_spawnp(&t->pid, "bash", &actions, &attr, argv, environ);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&actions);
	return rc == 0;
}

static void start(long long id, char *command)
{
	struct task *t = &tasks[++n_tasks];
	struct epoll_event ev = {.events = EPOLLIN, .data.u32 = (uint32_t)n_tasks};
	char name[32];

	(void)snprintf(name, sizeof(name), "%d.out", n_tasks);
	t->log_fd = open(name, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
	if (t->log_fd < 0 || !spawn(t, command))
		die("cannot start a task");
	t->pid_fd = (int)syscall(SYS_pidfd_open, t->pid, 0);
	if (t->pid_fd < 0 || epoll_ctl(epoll_fd, EPOLL_CTL_ADD, t->pid_fd, &ev) != 0)
		die("cannot watch a task");
	(void)snprintf(name, sizeof(name), "bash-%d", n_tasks);
	begin(id);
	put("started background task ");
	put(name);
	end();
}

static void on_end(struct task *t)
{
	if (waitpid(t->pid, &t->wait_status, 0) != t->pid)
		die("no status of a task");
	/* A child that is just being executed may hold it a little longer. */
	(void)epoll_ctl(epoll_fd, EPOLL_CTL_DEL, t->pid_fd, NULL);
	(void)close(t->pid_fd);
	t->is_ended = true;
	if (t->waiter)
		tell_output(t, t->waiter);
	t->waiter = 0;
}

static void kill_task(const struct task *t, long long id)
{
	if (!t->is_ended)
		(void)kill(-t->pid, SIGKILL);
	begin(id);
	put("requested cancellation");
	end();
}

/* ---- requests ---- */

/* What follows @key in @line; NULL if it is not there. */
static char *after(char *line, const char *key)
{
	char *at = strstr(line, key);

	return at ? at + strlen(key) : NULL;
}

static void on_call(char *line, long long id)
{
	char *command = after(line, "\"command\":\""), *number = after(line, "\"bash-");
	struct task *t;

	if (command) {
		command[strcspn(command, "\"")] = 0;
		if (n_tasks == MAX_TASKS)
			die("too many tasks");
		start(id, command);
		return;
	}
	t = &tasks[number ? strtol(number, NULL, 10) % (MAX_TASKS + 1) : 0];
	if (strstr(line, "\"task_kill\""))
		kill_task(t, id);
	else if (strstr(line, "\"wait\":true") && !t->is_ended)
		t->waiter = id;
	else
		tell_output(t, id);
}

static void on_line(char *line)
{
	char *id = after(line, "\"id\":");

	if (!id)
		return;
	if (strstr(line, "\"tools/call\"")) {
		on_call(line, strtoll(id, NULL, 10));
		return;
	}
	begin(strtoll(id, NULL, 10)); /* an initialize: whatever it says */
	end();
}

static bool on_input(void)
{
	static char bytes[MAX_LINE];
	static size_t have;
	char *newline;
	ssize_t n = read(STDIN_FILENO, bytes + have, sizeof(bytes) - have);

	if (n <= 0)
		return false;
	have += (size_t)n;
	while ((newline = memchr(bytes, '\n', have))) {
		size_t len = (size_t)(newline + 1 - bytes);

		*newline = 0;
		on_line(bytes);
		memmove(bytes, bytes + len, have -= len);
	}
	return true;
}

int main(int argc, char **argv)
{
	struct rlimit limit;
	struct epoll_event ev = {.events = EPOLLIN};

	if (argc != 2 || chdir(argv[1]) != 0)
		die("usage: floor_server FOLDER");
	(void)getrlimit(RLIMIT_NOFILE, &limit);
	limit.rlim_cur = limit.rlim_max;
	(void)setrlimit(RLIMIT_NOFILE, &limit);
	null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	(void)epoll_ctl(epoll_fd, EPOLL_CTL_ADD, STDIN_FILENO, &ev);
	while (epoll_wait(epoll_fd, &ev, 1, -1) == 1) {
		if (ev.data.u32)
			on_end(&tasks[ev.data.u32]);
		else if (!on_input())
			break;
	}
	for (int i = 1; i <= n_tasks; i++)
		if (!tasks[i].is_ended)
			(void)kill(-tasks[i].pid, SIGKILL);
	return 0;
}
