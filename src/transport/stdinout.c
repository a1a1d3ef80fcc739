/* SPDX-License-Identifier: MIT */
/*
 * stdinout.c - ends of our own for stdin and stdout.
 *
 * Non-blocking mode belongs to an open file, not to a descriptor: switched on for our stdin
 * it would also hold for a shell that shares the terminal with us. So pipes and terminals are
 * opened anew, which gives an open file of our own. A socket cannot be opened again; there
 * the mode is put back at the end.
 */
#include "transport/stdinout.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/limits.h"
#include "transport/stream.h"

static int own_fd(int fd, int access)
{
	struct stat st;
	char path[32];
	int own;

	if (fstat(fd, &st) < 0)
		return -1;
	if (S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)) {
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
		own = open(path, access | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
		if (own >= 0)
			return own;
	}
	return fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

static int end_open(struct stream_end *e, int fd, int access, struct err *err)
{
	e->fd = own_fd(fd, access);
	if (e->fd < 0)
		return err_sys(err, errno, "cannot use %s", e->name);
	e->flags = fcntl(e->fd, F_GETFL);
	return 0;
}

bool stdinout_is_open(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
		if (fcntl(fd, F_GETFD) < 0)
			return false;
	return true;
}

int stdinout_new(uv_loop_t *loop, const struct transport_events *events, void *ud,
		 struct transport **ret, struct err *err)
{
	struct stream_end in = {.name = "stdin"}, out = {.name = "stdout"};
	int rc = end_open(&in, STDIN_FILENO, O_RDONLY, err);

	if (rc < 0)
		return rc;
	rc = end_open(&out, STDOUT_FILENO, O_WRONLY, err);
	if (rc < 0) {
		close(in.fd);
		return rc;
	}
	return stream_new(loop, &in, &out, MAX_REQUEST_LINE, events, ud, ret, err);
}
