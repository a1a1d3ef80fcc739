/* SPDX-License-Identifier: MIT */
#include "transport/unixsocket.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "transport/stream.h"

#define BACKLOG 128
/* Connections taken between two looks at everything else. */
#define ACCEPTS_PER_TURN 16

struct unix_listener {
	uv_poll_t poll;
	int fd;
	int spare_fd; /* given up to turn a client away when there are no others left */
	void (*accepted)(void *ud, int fd);
	void (*turned_away)(void *ud, int fd);
	void *ud;
};

/* ---- names ---- */

/* False: no form of it fits. */
static bool put_name(struct sockaddr_un *to, int folder_fd, const char *path,
		     const char *name)
{
	size_t room = sizeof(to->sun_path);
	int n = snprintf(to->sun_path, room, "/proc/self/fd/%d/%s", folder_fd, name);

	to->sun_family = AF_UNIX;
	if (access("/proc/self/fd", F_OK) != 0)
		n = snprintf(to->sun_path, room, "%s/%s", path, name);
	return n > 0 && (size_t)n < room;
}

static int new_socket(int *ret, struct err *err)
{
	*ret = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return *ret < 0 ? err_sys(err, errno, "cannot make a socket") : 0;
}

int unix_connect(int folder_fd, const char *path, const char *name, int *ret_fd,
		 struct err *err)
{
	struct sockaddr_un to = {0};
	autoclose int fd = -1;
	int rc = new_socket(&fd, err);

	if (rc < 0)
		return rc;
	if (!put_name(&to, folder_fd, path, name))
		return err_sys(err, ENAMETOOLONG, "cannot reach '%s/%s'", path, name);
	if (connect(fd, (const struct sockaddr *)&to, sizeof(to)) < 0)
		return err_sys(err, errno, "cannot reach '%s/%s'", path, name);
	*ret_fd = take_fd(&fd);
	return 0;
}

/* ---- listening ---- */

/* Made under a name of its own and renamed when it listens: it is never there and deaf. */
static int bind_in(int fd, int folder_fd, const char *path, const char *name,
		   struct err *err)
{
	struct sockaddr_un at = {0};
	char early[64];
	int rc;

	(void)snprintf(early, sizeof(early), ".%s.new", name);
	if (!put_name(&at, folder_fd, path, early))
		return err_sys(err, ENAMETOOLONG, "cannot make '%s/%s'", path, name);
	(void)unlinkat(folder_fd, early, 0);
	rc = bind(fd, (const struct sockaddr *)&at, sizeof(at));
	if (rc == 0)
		rc = fchmodat(folder_fd, early, 0600, 0);
	if (rc == 0)
		rc = listen(fd, BACKLOG);
	if (rc == 0)
		rc = renameat(folder_fd, early, folder_fd, name);
	return rc < 0 ? err_sys(err, errno, "cannot make '%s/%s'", path, name) : 0;
}

/* The one that waits is told and let go, instead of waking us without end. */
static void turn_away(struct unix_listener *l)
{
	int fd;

	close(l->spare_fd);
	fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd >= 0) {
		l->turned_away(l->ud, fd);
		close(fd);
	}
	l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

/* unix_transport() needs a second one. */
static bool has_room(int fd)
{
	autoclose int second = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	return second >= 0;
}

static void on_acceptable(uv_poll_t *p, int status, int events)
{
	struct unix_listener *l = p->data;
	int fd;

	(void)status;
	(void)events;
	for (int i = 0; i < ACCEPTS_PER_TURN; i++) {
		fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0) {
			if ((errno == EMFILE || errno == ENFILE) && l->spare_fd >= 0)
				turn_away(l);
			return;
		}
		if (has_room(fd)) {
			l->accepted(l->ud, fd);
		} else {
			l->turned_away(l->ud, fd);
			close(fd);
		}
	}
}

static void free_closed(uv_handle_t *h)
{
	struct unix_listener *l = h->data;

	close(l->fd);
	if (l->spare_fd >= 0)
		close(l->spare_fd);
	mem_free(NULL, l);
}

void unix_listener_free(struct unix_listener *l)
{
	if (l)
		uv_close((uv_handle_t *)&l->poll, free_closed);
}

int unix_listen(uv_loop_t *loop, int folder_fd, const char *path, const char *name,
		void (*accepted)(void *ud, int fd), void (*turned_away)(void *ud, int fd),
		void *ud, struct unix_listener **ret, struct err *err)
{
	autoclose int fd = -1;
	struct unix_listener *l;
	int rc = new_socket(&fd, err);

	if (rc == 0)
		rc = bind_in(fd, folder_fd, path, name, err);
	if (rc < 0)
		return rc;
	l = mem_new(NULL, sizeof(*l));
	rc = uv_poll_init(loop, &l->poll, fd); /* and makes it non-blocking */
	if (rc < 0) {
		mem_free(NULL, l);
		return err_sys(err, -rc, "cannot watch '%s/%s'", path, name);
	}
	l->poll.data = l;
	l->fd = take_fd(&fd);
	l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	l->accepted = accepted;
	l->turned_away = turned_away;
	l->ud = ud;
	(void)uv_poll_start(&l->poll, UV_READABLE, on_acceptable);
	*ret = l;
	return 0;
}

/* ---- a connection ---- */

int unix_transport(uv_loop_t *loop, int fd, size_t max_line,
		   const struct transport_events *events, void *ud, struct transport **ret,
		   struct err *err)
{
	struct stream_end in = {fd, -1, "the connection"}, out = in;

	out.fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
	if (out.fd < 0) {
		close(fd);
		return err_sys(err, errno, "cannot use the connection");
	}
	return stream_new(loop, &in, &out, max_line, events, ud, ret, err);
}
