/* SPDX-License-Identifier: MIT */
/*
 * task_bench.c - tasks as processes: how fast, how much of them, what they cost.
 *
 * task_bench ERRAND FOLDER [NAME ...]: measures everything, or what begins with a NAME, with
 * all files under FOLDER (empty, and on the file system that counts). Errand stands beside
 * itself with a daemon, a floor (floor_server.c) and, where they are installed, task-spooler
 * and the command in $ERRAND_BENCH_PEER: an MCP server on its stdin and stdout that has the
 * tools bash, task_output and task_kill.
 */
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "measure.h"

static const struct {
	const char *name;
	void (*run)(struct bench *b);
} measurements[] = {
	{"start", measure_starts},
	{"exit", measure_exits},
	{"read", measure_reads},
	{"throughput", measure_throughput},
	{"flood", measure_flood},
	{"lines", measure_lines},
	{"finished", measure_finished},
	{"tree", measure_tree},
	{"memory", measure_memory},
	{"idle", measure_idle},
	{"ls", measure_ls},
	{"recovery", measure_recovery},
	{"crowd", measure_crowd},
};

#define MEASUREMENTS (sizeof(measurements) / sizeof(measurements[0]))

void fresh_state(const struct bench *b, char ret[4096])
{
	static int n_states;

	(void)snprintf(ret, 4096, "%s/state-%d", b->folder, ++n_states);
}

struct peer *errand_client(const struct bench *b, const char *state)
{
	char *argv[] = {b->errand, (char[]){"mcp"}, NULL};

	(void)setenv("ERRAND_STATE", state, 1);
	return peer_mcp(argv);
}

struct peer *errand_server(const struct bench *b, const char *setting, const char *value,
			   char ret_state[4096])
{
	char *argv[] = {b->errand, (char[]){"mcp"}, (char[]){"--embedded"}, NULL};
	char state[4096];
	struct peer *p;

	fresh_state(b, state);
	(void)setenv("ERRAND_STATE", state, 1);
	if (setting)
		(void)setenv(setting, value, 1);
	p = peer_mcp(argv);
	if (setting)
		(void)unsetenv(setting);
	if (ret_state)
		memcpy(ret_state, state, sizeof(state));
	return p;
}

const char *work_command(const struct bench *b, const char *format, ...)
{
	static char command[9000];
	int len = snprintf(command, sizeof(command), "exec '%s' ", b->work);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(command + len, sizeof(command) - (size_t)len, format, args);
	va_end(args);
	return command;
}

static void open_peers(struct bench *b)
{
	char folder[4096], state[4096], command[4200];
	char *floor_argv[] = {b->floor_server, folder, NULL};
	char *other_argv[] = {(char[]){"sh"}, (char[]){"-c"}, command, NULL};
	const char *other = getenv("ERRAND_BENCH_PEER");

	(void)snprintf(folder, sizeof(folder), "%s/floor", b->folder);
	if (mkdir(folder, 0700) != 0)
		die("cannot make %s", folder);
	b->peers[ERRAND] = errand_server(b, NULL, NULL, NULL);
	fresh_state(b, state);
	b->peers[DAEMON] = errand_client(b, state);
	b->peers[FLOOR] = peer_mcp(floor_argv);
	b->peers[TSP] = peer_tsp(b->folder);
	(void)snprintf(command, sizeof(command), "exec %s", other ? other : "");
	if (other && *other)
		b->peers[OTHER] = peer_mcp(other_argv);
}

static char *beside(const char *self, const char *name)
{
	char path[4096], *ret;

	(void)snprintf(path, sizeof(path), "%.*s/%s", (int)(strrchr(self, '/') - self),
		       self, name);
	ret = strdup(path);
	return ret ? ret : (die("no memory"), ret);
}

static bool is_wanted(const char *name, char **names)
{
	if (!*names)
		return true;
	for (; *names; names++)
		if (strncmp(name, *names, strlen(*names)) == 0)
			return true;
	return false;
}

static void open_bench(struct bench *b, char **args)
{
	char self[4096];
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len <= 0)
		die("no /proc");
	self[len] = 0;
	*b = (struct bench){.errand = args[0], .folder = args[1]};
	b->work = beside(self, "work");
	b->floor_server = beside(self, "floor_server");
	(void)snprintf(b->note, sizeof(b->note), "%s/note", b->folder);
	(void)signal(SIGPIPE, SIG_IGN);
	/* What a daemon does without a client, also if this ends early. */
	(void)setenv("ERRAND_DAEMON_IDLE_S", "1", 1);
	(void)setenv("ERRAND_SESSIONS_GRACE_S", "5", 1);
	open_peers(b);
}

int main(int argc, char **argv)
{
	static struct bench b;
	const char *names[COLUMNS] = {"errand", "daemon", "floor"};

	if (argc < 3)
		die("usage: task_bench ERRAND FOLDER [NAME ...]");
	open_bench(&b, argv + 1);
	names[TSP] = b.peers[TSP] ? "tsp" : NULL;
	names[OTHER] = b.peers[OTHER] ? "other" : NULL;
	table_head(names);
	for (size_t i = 0; i < MEASUREMENTS; i++)
		if (is_wanted(measurements[i].name, argv + 3))
			measurements[i].run(&b);
	for (int i = 0; i < COLUMNS; i++)
		peer_close(b.peers[i]);
	free(b.work);
	free(b.floor_server);
	return 0;
}
