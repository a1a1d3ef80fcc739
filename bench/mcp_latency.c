/* SPDX-License-Identifier: MIT */
/*
 * mcp_latency.c - how long an agent waits for `errand mcp`, beside the bare floor.
 *
 * mcp_latency ERRAND: starts the server on pipes and measures
 *
 *	start	request sent -> reply with the task's id read
 *	read	the same for a task_output on a task that prints nothing
 *	exit	the task's last instruction -> reply to the waiting task_output read
 *
 * and, in the same run, what the system alone takes for the same: a posix_spawn with a
 * pipe, a line through a process that echoes it, a child's end seen through its pidfd.
 * Times depend on the machine; the ratios at the end are what can be compared.
 *
 * The program is its own helper: `mcp_latency stamp` prints the clock and exits,
 * `mcp_latency echo` echoes lines.
 */
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <fcntl.h>

extern char **environ;

enum {
	STARTS = 200,
	READS = 1000,
	EXITS = 100,
	MAX_SAMPLES = 1000,
	MAX_LINE = 1 << 20
};

struct samples {
	const char *name;
	int64_t ns[MAX_SAMPLES];
	int count;
};

/* A process with its stdin and stdout as our pipes. */
struct peer {
	pid_t pid;
	int in_fd;  /* we write */
	int out_fd; /* we read */
	char *line; /* the last one read, NUL-terminated */
	size_t have;
	size_t taken;
	int next_id;
};

static char self[4096];

static int64_t now_ns(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

static _Noreturn void die(const char *what)
{
	fprintf(stderr, "mcp_latency: %s: %s\n", what, strerror(errno));
	exit(1);
}

static void add(struct samples *s, int64_t ns)
{
	if (s->count < MAX_SAMPLES)
		s->ns[s->count++] = ns;
}

static int by_size(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double quantile_us(const struct samples *s, int percent)
{
	int at = (s->count - 1) * percent / 100;

	return s->count ? (double)s->ns[at] / 1000.0 : 0;
}

static void report(struct samples *s)
{
	qsort(s->ns, (size_t)s->count, sizeof(s->ns[0]), by_size);
	printf("%-14s n %4d   p50 %9.1f us   p90 %9.1f us   p99 %9.1f us\n", s->name,
	       s->count, quantile_us(s, 50), quantile_us(s, 90), quantile_us(s, 99));
}

/* Starts argv with a pipe as stdout and, if @in_fd, one as stdin. */
static pid_t spawn(char *const argv[], int *in_fd, int *out_fd)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	int in[2] = {-1, -1}, out[2], rc;
	pid_t pid;

	if (pipe2(out, O_CLOEXEC) != 0 || (in_fd && pipe2(in, O_CLOEXEC) != 0))
		die("pipe");
	posix_spawn_file_actions_init(&actions);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSID);
	posix_spawn_file_actions_adddup2(&actions, out[1], 1);
	if (in_fd)
		posix_spawn_file_actions_adddup2(&actions, in[0], 0);
	else
		posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	rc = posix_spawnp(&pid, argv[0], &actions, &attr, argv, environ);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	if (rc != 0) {
		errno = rc;
		die(argv[0]);
	}
	close(out[1]);
	*out_fd = out[0];
	if (in_fd) {
		close(in[0]);
		*in_fd = in[1];
	}
	return pid;
}

static void peer_start(struct peer *p, char *const argv[])
{
	*p = (struct peer){.next_id = 1};
	p->line = malloc(MAX_LINE + 1);
	if (!p->line)
		die("malloc");
	p->pid = spawn(argv, &p->in_fd, &p->out_fd);
}

static void peer_end(struct peer *p)
{
	close(p->in_fd);
	close(p->out_fd);
	while (waitpid(p->pid, NULL, 0) < 0 && errno == EINTR)
		;
	free(p->line);
}

static void peer_write(struct peer *p, const char *data, size_t len)
{
	while (len > 0) {
		ssize_t n = write(p->in_fd, data, len);

		if (n < 0)
			die("the server does not read");
		data += n;
		len -= (size_t)n;
	}
}

/* The next line, valid until the next call. */
static char *peer_line(struct peer *p)
{
	char *end;
	size_t len;

	memmove(p->line, p->line + p->taken, p->have - p->taken);
	p->have -= p->taken;
	p->taken = 0;
	for (;;) {
		end = memchr(p->line, '\n', p->have);
		if (end)
			break;
		if (p->have == MAX_LINE)
			die("a line is too long");
		ssize_t n = read(p->out_fd, p->line + p->have, MAX_LINE - p->have);

		if (n <= 0)
			die("the server is gone");
		p->have += (size_t)n;
	}
	*end = '\0';
	len = (size_t)(end - p->line);
	p->taken = len + 1;
	return p->line;
}

/* Sends one tools/call and returns the reply's line. */
static char *call(struct peer *p, const char *tool, const char *arguments)
{
	char request[8192], want[32];
	int id = p->next_id++;
	int len = snprintf(request, sizeof(request),
			   "{\"jsonrpc\":\"2.0\",\"id\":%d,\"method\":\"tools/call\","
			   "\"params\":{\"name\":\"%s\",\"arguments\":%s}}\n",
			   id, tool, arguments);
	char *line;

	if (len < 0 || (size_t)len >= sizeof(request))
		die("request too long");
	(void)snprintf(want, sizeof(want), "\"id\":%d", id);
	peer_write(p, request, (size_t)len);
	line = peer_line(p);
	if (!strstr(line, want)) {
		fprintf(stderr, "mcp_latency: expected %s in: %s\n", want, line);
		exit(1);
	}
	return line;
}

static void handshake(struct peer *p)
{
	static const char hello[] =
		"{\"jsonrpc\":\"2.0\",\"id\":0,\"method\":\"initialize\",\"params\":{"
		"\"protocolVersion\":\"2025-06-18\",\"capabilities\":{},"
		"\"clientInfo\":{\"name\":\"bench\",\"version\":\"1\"}}}\n";
	static const char ready[] =
		"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

	peer_write(p, hello, sizeof(hello) - 1);
	(void)peer_line(p);
	peer_write(p, ready, sizeof(ready) - 1);
}

/* Starts a background task; returns its number, the N of bash-N. */
static int start_task(struct peer *p, const char *command)
{
	static const char mark[] = "started background task bash-";
	char arguments[6000];
	char *at;

	(void)snprintf(arguments, sizeof(arguments),
		       "{\"command\":\"%s\",\"description\":\"bench\","
		       "\"run_in_background\":true}",
		       command);
	at = strstr(call(p, "bash", arguments), mark);
	if (!at) {
		fprintf(stderr, "mcp_latency: no task was started: %s\n", p->line);
		exit(1);
	}
	return (int)strtol(at + sizeof(mark) - 1, NULL, 10);
}

static char *output_of(struct peer *p, int task, bool wait)
{
	char arguments[128];

	(void)snprintf(arguments, sizeof(arguments), "{\"task_id\":\"bash-%d\"%s}", task,
		       wait ? ",\"wait\":true" : "");
	return call(p, "task_output", arguments);
}

static void measure_errand(char *errand, struct samples *start, struct samples *idle,
			   struct samples *end)
{
	char *argv[] = {errand, (char[]){"mcp"}, NULL};
	char command[5000], arguments[64];
	struct peer server;
	int task;

	peer_start(&server, argv);
	handshake(&server);
	for (int i = 0; i < STARTS + 10; i++) {
		int64_t t0 = now_ns();

		task = start_task(&server, "true");
		if (i >= 10) /* the first ones fault pages in */
			add(start, now_ns() - t0);
		(void)output_of(&server, task, true);
	}
	task = start_task(&server, "exec sleep 600");
	for (int i = 0; i < READS; i++) {
		int64_t t0 = now_ns();

		(void)output_of(&server, task, false);
		add(idle, now_ns() - t0);
	}
	(void)snprintf(arguments, sizeof(arguments), "{\"task_id\":\"bash-%d\"}", task);
	(void)call(&server, "task_kill", arguments);
	(void)snprintf(command, sizeof(command), "exec '%s' stamp", self);
	for (int i = 0; i < EXITS; i++) {
		char *at = strstr(output_of(&server, start_task(&server, command), true),
				  "stamp=");
		int64_t seen = now_ns();

		if (!at)
			die("no stamp in the output");
		add(end, seen - strtoll(at + 6, NULL, 10));
	}
	peer_end(&server);
}

static void drain(int fd, char *text, size_t size)
{
	size_t have = 0;
	ssize_t n;

	while ((n = read(fd, text + have, size - 1 - have)) > 0)
		have += (size_t)n;
	text[have] = '\0';
	close(fd);
}

/* A child's end as a plain program would see it: pidfd, wait, output to its end. */
static void floor_exit(struct samples *end)
{
	char *argv[] = {(char[]){"bash"}, (char[]){"-c"}, NULL, NULL};
	char command[5000], text[64], *at;

	(void)snprintf(command, sizeof(command), "exec '%s' stamp", self);
	argv[2] = command;
	for (int i = 0; i < EXITS; i++) {
		int fd;
		pid_t pid = spawn(argv, NULL, &fd);
		int pid_fd = (int)syscall(SYS_pidfd_open, pid, 0);
		struct pollfd poll_fd = {.fd = pid_fd, .events = POLLIN};

		if (pid_fd < 0 || poll(&poll_fd, 1, -1) != 1)
			die("pidfd");
		(void)waitpid(pid, NULL, 0);
		drain(fd, text, sizeof(text));
		close(pid_fd);
		at = strstr(text, "stamp=");
		if (at)
			add(end, now_ns() - strtoll(at + 6, NULL, 10));
	}
}

static void measure_floor(struct samples *start, struct samples *idle, struct samples *end)
{
	char *task[] = {(char[]){"bash"}, (char[]){"-c"}, (char[]){"true"}, NULL};
	char *echo[] = {self, (char[]){"echo"}, NULL};
	struct peer peer;
	char text[64];

	for (int i = 0; i < STARTS; i++) {
		int fd;
		int64_t t0 = now_ns();
		pid_t pid = spawn(task, NULL, &fd);

		add(start, now_ns() - t0);
		drain(fd, text, sizeof(text));
		(void)waitpid(pid, NULL, 0);
	}
	peer_start(&peer, echo);
	for (int i = 0; i < READS; i++) {
		int64_t t0 = now_ns();

		peer_write(&peer, "{\"jsonrpc\":\"2.0\"}\n", 18);
		(void)peer_line(&peer);
		add(idle, now_ns() - t0);
	}
	peer_end(&peer);
	floor_exit(end);
}

/* Long enough for the waiter to be waiting, then the clock as the last thing done. */
static int stamp(void)
{
	struct timespec pause = {.tv_nsec = 20000000};

	nanosleep(&pause, NULL);
	dprintf(1, "stamp=%" PRId64 "\n", now_ns());
	_exit(0);
}

static int echo_lines(void)
{
	char text[4096];
	ssize_t n;

	while ((n = read(0, text, sizeof(text))) > 0) {
		if (write(1, text, (size_t)n) != n)
			return 1;
	}
	return 0;
}

static double ratio(const struct samples *a, const struct samples *b)
{
	double floor = quantile_us(b, 50);

	return floor > 0 ? quantile_us(a, 50) / floor : 0;
}

int main(int argc, char **argv)
{
	static struct samples start = {.name = "start"}, idle = {.name = "read"},
			      end = {.name = "exit"};
	static struct samples floor_start = {.name = "floor start"},
			      floor_idle = {.name = "floor read"},
			      floor_end = {.name = "floor exit"};
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (argc != 2 || len < 0) {
		fprintf(stderr, "usage: mcp_latency ERRAND\n");
		return 2;
	}
	if (strcmp(argv[1], "stamp") == 0)
		return stamp();
	if (strcmp(argv[1], "echo") == 0)
		return echo_lines();
	signal(SIGPIPE, SIG_IGN);
	measure_floor(&floor_start, &floor_idle, &floor_end);
	measure_errand(argv[1], &start, &idle, &end);
	report(&floor_start);
	report(&start);
	report(&floor_idle);
	report(&idle);
	report(&floor_end);
	report(&end);
	printf("p50 over floor: start %.1f, read %.1f, exit %.1f\n",
	       ratio(&start, &floor_start), ratio(&idle, &floor_idle),
	       ratio(&end, &floor_end));
	return 0;
}
