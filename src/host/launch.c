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
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "host/peer.h"
#include "host/state.h"
#include "host/version.h"

/* A daemon listens after some milliseconds; recovery of many tasks may take longer. */
#define PATIENCE_MS 5000
#define MAX_PAUSE_MS 50
/* An older daemon that is to make way is asked no more often. */
#define FAREWELL_MS 200
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

/* A shim is the subreaper of its tree: whoever is forked off here stays in it. The variable is
 * for those who cannot see their ancestors, in a pid namespace. */
static bool is_in_a_task(void)
{
	pid_t pid = getppid();

	if (getenv("ERRAND_TASK"))
		return true;

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
	int ready_fd; /* ends when the daemon listens, or is no more; -1: nobody tells */
	off_t log_at; /* what it says comes behind that */
	bool is_started;
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
	if (l->ready_fd >= 0)
		close(l->ready_fd);
	mem_free(NULL, l->state);
}

/* ---- systemd ---- */

bool launch_has_systemd(void)
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

/* Its tasks are in the same control group, and are to outlive it; it makes one in that for each
 * task that it is to limit. */
static bool start_by_systemd(struct launch *l)
{
	static char program[] = "systemd-run", user[] = "--user", collect[] = "--collect",
		    quiet[] = "--quiet", stop[] = "--property=KillMode=process",
		    oom[] = "--property=OOMPolicy=continue",
		    group[] = "--property=Delegate=yes", end[] = "--", command[] = "daemon",
		    option[] = "--state";
	char *argv[MAX_VARIABLES + 16] = {program, user, collect, quiet, stop, oom, group};
	size_t n = 7, first = n;
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

static int open_log(struct launch *l, int *ret_fd, struct err *err)
{
	struct stat st;

	*ret_fd = openat(l->folder_fd, LOG,
			 O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (*ret_fd < 0 || fstat(*ret_fd, &st) < 0)
		return err_sys(err, errno, "cannot write '%.100s/%s'", l->state, LOG);
	l->log_at = st.st_size;
	return 0;
}

/* Between fork and exec: nothing that allocates. The exit status is the errno of a fork that
 * has failed. */
_Noreturn static void become_daemon(struct launch *l, int ready_fd, int log_fd)
{
	static char name[] = "errand", command[] = "daemon", option[] = "--state";
	static const char cannot_run[] = "errand: the daemon's program cannot be run\n";
	char *argv[] = {name, command, option, l->state, NULL};
	sigset_t none;
	pid_t pid;
	int null_fd = open("/dev/null", O_RDWR);

	(void)setsid();
	pid = fork();
	if (pid != 0)
		_exit(pid < 0 ? errno : 0);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	(void)dup2(null_fd, STDIN_FILENO);
	(void)dup2(ready_fd, STDOUT_FILENO);
	(void)dup2(log_fd, STDERR_FILENO);
	(void)syscall(SYS_close_range, 3, ~0U, 0);
	execve(l->self, argv, l->env);
	_exit(write(STDERR_FILENO, cannot_run, sizeof(cannot_run) - 1) < 0 ? 2 : 1);
}

static int fork_off(struct launch *l, struct err *err)
{
	autoclose int log_fd = -1, theirs = -1;
	int pair[2], status = 0, rc = open_log(l, &log_fd, err);
	pid_t pid;

	if (rc < 0)
		return rc;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_sys(err, errno, "cannot start a daemon");
	l->ready_fd = pair[0];
	theirs = pair[1];
	pid = fork();
	if (pid < 0)
		return err_sys(err, errno, "cannot start a daemon");
	if (pid == 0)
		become_daemon(l, theirs, log_fd);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFEXITED(status) && WEXITSTATUS(status) != 0)
		return err_sys(err, WEXITSTATUS(status), "cannot start a daemon");
	return 0;
}

/* A hard limit would be the daemon's, and what it keeps is a file. */
static bool may_write(void)
{
	struct rlimit r;

	return getrlimit(RLIMIT_FSIZE, &r) < 0 || r.rlim_max == RLIM_INFINITY;
}

static int start_daemon(struct launch *l, struct err *err)
{
	if (launch_has_systemd() && start_by_systemd(l))
		return 0;
	if (!may_write())
		return err_set(
			err, ERR_STATE,
			"no daemon runs for '%.100s', and one that is started from here "
			"could write no file beyond this client's limit (ulimit -f)",
			l->state);
	if (is_in_a_task())
		return err_set(err, ERR_STATE,
			       "no daemon runs for '%.100s', and from within a task none "
			       "is started but by systemd's user manager",
			       l->state);
	return fork_off(l, err);
}

/* ---- waiting ---- */

static bool is_absent(enum link_state s)
{
	return s == LINK_NO_SOCKET || s == LINK_STALE;
}

/* Also where one runs, if it is older than we are: ours takes its place. */
static bool wants_daemon(enum link_state s, const struct link *l)
{
	return is_absent(s) || s == LINK_OLDER ||
	       (s == LINK_OPEN &&
		version_compare(link_welcome(l)->version, ERRAND_VERSION) < 0);
}

static enum link_state open_again(const struct link_options *o, struct link **ret,
				  struct err *err)
{
	link_free(*ret);
	*ret = NULL;
	return link_open(o, ret, err);
}

/* A moment, and less if the daemon says that it listens, or is gone. True: it has said so. */
static bool await(struct launch *l, int ms)
{
	struct pollfd p = {.fd = l->ready_fd, .events = POLLIN};

	if (poll(&p, 1, ms) != 1)
		return false;
	close(l->ready_fd);
	l->ready_fd = -1;
	return true;
}

/* Somebody starts, or ends: another daemon than ours. */
static bool is_locked(const struct launch *l)
{
	autoclose int fd = openat(l->folder_fd, STATE_LOCK,
				  O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) < 0 && errno == EWOULDBLOCK;
}

/* The last line that the daemon has written before it ended. */
static int tell_why(const struct launch *l, struct err *err)
{
	autoclose int fd = openat(l->folder_fd, LOG, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	char text[1024];
	ssize_t n = fd < 0 ? 0 : pread(fd, text, sizeof(text) - 1, l->log_at);
	char *line;

	while (n > 0 && text[n - 1] == '\n')
		n--;
	if (n <= 0)
		return err_set(err, ERR_STATE, "it ended at its start, without a word");
	text[n] = 0;
	line = strrchr(text, '\n');
	line = line ? line + 1 : text;
	if (strncmp(line, "errand: ", strlen("errand: ")) == 0)
		line += strlen("errand: ");
	return err_set(err, ERR_STATE, "it ended at its start: %.300s", line);
}

/* Start one, unless another one is just starting or ending: then in a moment. Below 0: none can
 * be started, and nobody else is to be waited for. */
static int start_once(const struct link_options *o, struct launch *l, enum link_state s,
		      struct err *err)
{
	int rc;

	if (l->is_started || (is_absent(s) && is_locked(l)))
		return 0;
	l->is_started = true;
	rc = start_daemon(l, err);
	/* A client that was connected waits for the one that others start. */
	return o->is_again && is_absent(s) ? 0 : rc;
}

static enum link_state wait_for_daemon(const struct link_options *o, struct launch *l,
				       enum link_state s, struct link **ret,
				       struct err *err)
{
	int64_t until = clock_mono_ms() + PATIENCE_MS;
	bool has_ended = false;
	int pause = 2;

	while (wants_daemon(s, *ret) && !has_ended && clock_mono_ms() < until) {
		if (start_once(o, l, s, err) < 0)
			return is_absent(s) ? LINK_BROKEN : s;
		has_ended = await(l, is_absent(s) ? pause : FAREWELL_MS);
		pause = pause * 2 < MAX_PAUSE_MS ? pause * 2 : MAX_PAUSE_MS;
		s = open_again(o, ret, err);
		if (is_absent(s) && has_ended && is_locked(l))
			has_ended = false; /* another one was quicker */
	}
	if (!is_absent(s) || !has_ended)
		return s;
	(void)tell_why(l, err);
	return LINK_BROKEN;
}

enum link_state launch_link(const struct link_options *o, struct link **ret,
			    struct err *err)
{
	struct launch l = {.folder_fd = -1, .ready_fd = -1};
	enum link_state s = link_open(o, ret, err);

	if (!wants_daemon(s, *ret))
		return s;
	if (prepare(&l, o->state, err) == 0)
		s = wait_for_daemon(o, &l, s, ret, err);
	else if (is_absent(s))
		s = LINK_BROKEN;
	release(&l);
	return s;
}
