/* SPDX-License-Identifier: MIT */
/*
 * launch.c - start a daemon that outlives us, and wait until it listens.
 *
 * Where there is a systemd for the user, it is asked to: the daemon then is in no session's
 * control group. Else it is forked off twice, into a session of its own.
 */
#include "host/launch.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "host/peer.h"
#include "host/state.h"

/* A daemon listens after some milliseconds; recovery of many tasks may take longer. */
#define PATIENCE_MS 5000
#define MAX_PAUSE_MS 50
#define LOG "host.log"
#define MAX_VARIABLES 1000

/* ---- where we are ---- */

static bool is_shim(pid_t pid)
{
	char path[64], name[32] = "";
	autoclose int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%ld/comm", (long)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd < 0 ? 0 : read(fd, name, sizeof(name) - 1);
	return n > 0 && strncmp(name, "errand-shim\n", (size_t)n) == 0;
}

/* A shim is the subreaper of its tree: whoever is forked off here stays in it. */
static bool is_in_a_task(void)
{
	pid_t pid = getppid();

	for (int i = 0; i < 4096 && pid > 1; i++, pid = peer_parent(pid))
		if (is_shim(pid))
			return true;
	return false;
}

/* ---- what it is started with ---- */

/* Settings, and what programs cannot do without. Not the client's credentials, and nothing that
 * says whose client or task it is. */
static bool is_handed_on(const char *variable)
{
	static const char *const names[] = {
		"HOME=", "PATH=",        "LANG=", "TMPDIR=", "TZ=", "XDG_RUNTIME_DIR=",
		"USER=", "ASAN_OPTIONS="};
	static const char *const own[] = {
		"ERRAND_TASK=", "ERRAND_SESSION=", "ERRAND_STATE="};

	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		if (strncmp(variable, own[i], strlen(own[i])) == 0)
			return false;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strncmp(variable, names[i], strlen(names[i])) == 0)
			return true;
	return strncmp(variable, "ERRAND_", strlen("ERRAND_")) == 0;
}

struct launch {
	char self[PATH_MAX];
	char *env[MAX_VARIABLES + 1];
	char *state;
	int folder_fd;
};

static int prepare(struct launch *l, const char *state, struct err *err)
{
	ssize_t len = readlink("/proc/self/exe", l->self, sizeof(l->self) - 1);
	size_t n = 0;

	if (len < 0)
		return err_sys(err, errno, "cannot find our own program");
	l->self[len] = 0;
	for (char **v = environ; *v && n < MAX_VARIABLES; v++)
		if (is_handed_on(*v))
			l->env[n++] = *v;
	l->env[n] = NULL;
	return state_folder(state, &l->state, &l->folder_fd, err);
}

static void release(struct launch *l)
{
	if (l->folder_fd >= 0)
		close(l->folder_fd);
	mem_free(NULL, l->state);
}

/* ---- systemd ---- */

static bool has_user_manager(void)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	char path[PATH_MAX];

	if (folder && *folder == '/')
		(void)snprintf(path, sizeof(path), "%s/systemd/private", folder);
	else
		(void)snprintf(path, sizeof(path), "/run/user/%u/systemd/private",
			       (unsigned)geteuid());
	return access(path, F_OK) == 0;
}

/* True: it has been started. */
static bool run_quietly(char *const *argv)
{
	posix_spawn_file_actions_t fds;
	int status, rc;
	pid_t pid;

	(void)posix_spawn_file_actions_init(&fds);
	(void)posix_spawn_file_actions_addopen(&fds, STDIN_FILENO, "/dev/null", O_RDWR, 0);
	(void)posix_spawn_file_actions_adddup2(&fds, STDIN_FILENO, STDOUT_FILENO);
	(void)posix_spawn_file_actions_adddup2(&fds, STDIN_FILENO, STDERR_FILENO);
	rc = posix_spawnp(&pid, argv[0], &fds, NULL, argv, environ);
	(void)posix_spawn_file_actions_destroy(&fds);
	while (rc == 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return false;
	return rc == 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Its tasks are in the same control group, and are to outlive it. */
static bool start_by_systemd(struct launch *l)
{
	static char program[] = "systemd-run", user[] = "--user", collect[] = "--collect",
		    quiet[] = "--quiet", stop[] = "--property=KillMode=process",
		    oom[] = "--property=OOMPolicy=continue", end[] = "--",
		    command[] = "daemon", option[] = "--state";
	char *argv[MAX_VARIABLES + 16] = {program, user, collect, quiet, stop, oom};
	size_t n = 6, first = n;
	struct buf setting = BUF_INIT(MAX_CONTEXT);
	bool is_started;

	for (char **v = l->env; *v; v++) {
		buf_addf(&setting, "--setenv=%s", *v);
		argv[n++] = buf_take(&setting, NULL);
	}
	argv[n] = end;
	argv[n + 1] = l->self;
	argv[n + 2] = command;
	argv[n + 3] = option;
	argv[n + 4] = l->state;
	is_started = run_quietly(argv);
	while (n-- > first)
		mem_free(NULL, argv[n]);
	return is_started;
}

/* ---- by ourselves ---- */

/* Between fork and exec: nothing that allocates. */
_Noreturn static void become_daemon(struct launch *l)
{
	static char name[] = "errand", command[] = "daemon", option[] = "--state";
	char *argv[] = {name, command, option, l->state, NULL};
	sigset_t none;
	int null_fd = open("/dev/null", O_RDWR);
	int log_fd = openat(l->folder_fd, LOG, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW,
			    0600);

	(void)setsid();
	if (fork() != 0)
		_exit(0);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)dup2(null_fd, STDIN_FILENO);
	(void)dup2(null_fd, STDOUT_FILENO);
	(void)dup2(log_fd >= 0 ? log_fd : null_fd, STDERR_FILENO);
	(void)syscall(SYS_close_range, 3, ~0U, 0);
	execve(l->self, argv, l->env);
	_exit(1);
}

static int fork_off(struct launch *l, struct err *err)
{
	pid_t pid = fork();

	if (pid < 0)
		return err_sys(err, errno, "cannot start a daemon");
	if (pid == 0)
		become_daemon(l);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	return 0;
}

static int start_daemon(const char *state, struct err *err)
{
	struct launch l = {.folder_fd = -1};
	int rc = prepare(&l, state, err);

	if (rc == 0 && !(has_user_manager() && start_by_systemd(&l)))
		rc = fork_off(&l, err);
	release(&l);
	return rc;
}

/* ---- waiting ---- */

static bool is_absent(enum link_state s)
{
	return s == LINK_NO_SOCKET || s == LINK_STALE;
}

static void pause_ms(int64_t ms)
{
	struct timespec t = {.tv_nsec = (long)ms * 1000000};

	(void)nanosleep(&t, NULL);
}

enum link_state launch_link(const struct link_options *o, struct link **ret,
			    struct err *err)
{
	int64_t until = clock_mono_ms() + PATIENCE_MS, pause = 2;
	enum link_state s = link_open(o, ret, err);

	if (is_absent(s) && !is_in_a_task() && start_daemon(o->state, err) < 0)
		return LINK_BROKEN;
	while (is_absent(s) && clock_mono_ms() < until) {
		pause_ms(pause);
		pause = pause * 2 < MAX_PAUSE_MS ? pause * 2 : MAX_PAUSE_MS;
		s = link_open(o, ret, err);
	}
	return s;
}
