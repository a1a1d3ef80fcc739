/* SPDX-License-Identifier: MIT */
#include "shim/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shim/proto.h"

enum step {
	STEP_GROUP,
	STEP_INPUT,
	STEP_OUTPUT,
	STEP_CHDIR,
	STEP_EXEC,
};

struct report {
	enum step step;
	int errnum;
};

/* A task is a better victim of the out-of-memory killer than its agent. */
static void raise_oom_score(int score)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	char text[16];
	int len = snprintf(text, sizeof(text), "%d", score);

	if (fd < 0)
		return;
	if (write(fd, text, (size_t)len) < 0)
		errno = 0; /* not allowed here: no reason not to run */
	(void)close(fd);
}

/*
 * The host may have raised its own. One limit at a time, and what the system refuses (a hard
 * limit that has been lowered since) is no reason not to run.
 */
static void take_limits(const struct proto_spec *spec)
{
	for (size_t i = 0; i < spec->n_limits; i++) {
		const struct proto_limit *l = &spec->limits[i];
		struct rlimit r = {.rlim_cur = l->soft, .rlim_max = l->hard};

		(void)syscall(SYS_prlimit64, 0, l->resource, &r, NULL);
	}
}

static void close_all_but(int fd)
{
	(void)syscall(SYS_close_range, 3, fd - 1, 0);
	(void)syscall(SYS_close_range, fd + 1, ~0U, 0);
}

/* The shim's dispositions are the default ones already; only its mask is its own. */
static enum step become(const struct proto_spec *spec, const struct child_fds *fds,
			int report_fd)
{
	sigset_t none;

	(void)setsid();
	if (fds->group >= 0 && write(fds->group, "0", 1) < 0) /* this process */
		return STEP_GROUP;
	if (fds->input >= 0 && dup2(fds->input, STDIN_FILENO) < 0)
		return STEP_INPUT;
	if (dup2(fds->output, STDOUT_FILENO) < 0 || dup2(fds->output, STDERR_FILENO) < 0)
		return STEP_OUTPUT;
	raise_oom_score(spec->oom_score_adj);
	close_all_but(report_fd);
	if (chdir(spec->cwd) != 0)
		return STEP_CHDIR;
	(void)umask((mode_t)spec->umask);
	take_limits(spec);
	sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	environ = spec->env; /* execvp looks for PATH in there */
	(void)execvp(spec->argv[0], spec->argv);
	return STEP_EXEC;
}

pid_t child_start(const struct proto_spec *spec, const struct child_fds *fds,
		  int *ret_report_fd)
{
	struct report report;
	int pair[2];
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) != 0)
		return -1;
	pid = fork();
	if (pid == 0) {
		report.step = become(spec, fds, pair[1]);
		report.errnum = errno;
		(void)!write(pair[1], &report, sizeof(report));
		_exit(127);
	}
	(void)close(pair[1]);
	if (pid < 0)
		(void)close(pair[0]);
	else
		*ret_report_fd = pair[0];
	return pid;
}

bool child_failed(int report_fd, const struct child_names *names, char *why, size_t size)
{
	static const char *const verbs[] = {
		[STEP_GROUP] = "limit",
		[STEP_INPUT] = "connect the input of",
		[STEP_OUTPUT] = "connect the output of",
		[STEP_CHDIR] = "change to",
		[STEP_EXEC] = "run",
	};
	struct report report;

	if (read(report_fd, &report, sizeof(report)) != (ssize_t)sizeof(report))
		return false;
	(void)snprintf(why, size, "cannot %s '%s': %s", verbs[report.step],
		       report.step == STEP_CHDIR ? names->cwd : names->program,
		       strerror(report.errnum));
	return true;
}
