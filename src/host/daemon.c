/* SPDX-License-Identifier: MIT */
/*
 * daemon.c - the host as a process of its own.
 *
 * It lives as long as it holds the lock of its state folder. Its socket is bound again when
 * somebody removes it; without clients and live tasks it goes after an idle time.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "host/handover.h"
#include "host/host.h"
#include "host/internal.h"
#include "host/journal.h"
#include "run/run.h"
#include "transport/unixsocket.h"

/* Of a daemon that takes over. Each is waited for, for a second. */
#define MAX_PREDECESSORS 10

struct daemon {
	struct host host; /* first: a struct host of ours is one of these */
	struct unix_listener *listener;
	uv_poll_t watch; /* of the folder */
	int watch_fd;
	int64_t idle_since_ms; /* INT64_MAX: not idle */
};

static struct daemon *daemon_of(struct host *h)
{
	return (struct daemon *)(void *)h;
}

/* ---- clients ---- */

static void on_accepted(void *ud, int fd)
{
	struct host *h = ud;
	struct client *c = client_new(h);
	struct err err = {0};

	if (unix_transport(&h->loop, fd, MAX_REQUEST_LINE + KIB(1), &client_events, c,
			   &c->transport, &err) == 0)
		door_hello_enter(c, fd);
	else
		client_free(c);
	host_turn(h);
}

/* No descriptor is left for it. It has said nothing yet, so that one line always fits. */
static void on_turned_away(void *ud, int fd)
{
	struct buf line = BUF_INIT(KIB(1));

	(void)ud;
	welcome_put_refusal(&line,
			    "this host has as many clients and tasks as its limit of "
			    "open files allows: end some, and try again");
	buf_addc(&line, '\n');
	(void)send(fd, line.data, line.len, MSG_DONTWAIT | MSG_NOSIGNAL);
	buf_release(&line);
}

static void on_client_gone(struct host *h)
{
	host_turn(h);
}

/* ---- the socket ---- */

static int listen_again(struct daemon *d, struct err *err)
{
	struct host *h = &d->host;

	unix_listener_free(d->listener);
	d->listener = NULL;
	return unix_listen(&h->loop, h->state.folder_fd, h->state.path, HOST_SOCKET,
			   on_accepted, on_turned_away, h, &d->listener, err);
}

static bool has_socket(const struct daemon *d)
{
	struct stat st;

	return fstatat(d->host.state.folder_fd, HOST_SOCKET, &st, AT_SYMLINK_NOFOLLOW) ==
		       0 &&
	       S_ISSOCK(st.st_mode);
}

/* Something was removed, or the folder moved. Without its folder a host is nobody's, and so are its
 * tasks; with one that is elsewhere they run on, and are found there. */
static void on_watch(uv_poll_t *p, int status, int events)
{
	struct daemon *d = p->data;
	struct err err = {0};
	char bytes[KIB(4)];

	(void)status;
	(void)events;
	while (read(d->watch_fd, bytes, sizeof(bytes)) > 0)
		;
	if (state_is_elsewhere(&d->host.state)) {
		host_say("the state folder was moved or replaced: its tasks run on, and "
			 "the next daemon there finds them");
		host_fail(&d->host);
		return;
	}
	if (has_socket(d) || listen_again(d, &err) == 0) {
		journal_look(d->host.journal);
		host_turn(&d->host);
		return;
	}
	host_say(err.msg);
	run_leave(d->host.run);
	host_leave(&d->host);
}

static int watch_folder(struct daemon *d, struct err *err)
{
	char path[32];
	int rc;

	d->watch_fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", d->host.state.folder_fd);
	if (d->watch_fd < 0 || inotify_add_watch(d->watch_fd, path,
						 IN_DELETE | IN_MOVED_FROM |
							 IN_DELETE_SELF | IN_MOVE_SELF) < 0)
		return 0; /* nobody will be told, and clients start another host */
	rc = uv_poll_init(&d->host.loop, &d->watch, d->watch_fd);
	if (rc < 0)
		return err_sys(err, -rc, "cannot watch the state folder");
	d->watch.data = d;
	return uv_poll_start(&d->watch, UV_READABLE, on_watch);
}

/* ---- idle time ---- */

static int64_t idle_deadline(struct host *h)
{
	struct daemon *d = daemon_of(h);
	bool is_idle = list_is_empty(&h->clients) && !run_is_busy(h->run);

	if (!is_idle)
		d->idle_since_ms = INT64_MAX;
	else if (d->idle_since_ms == INT64_MAX)
		d->idle_since_ms = clock_mono_ms();
	if (!is_idle || h->config.idle_s == 0)
		return INT64_MAX;
	return d->idle_since_ms + h->config.idle_s * 1000;
}

static void idle_tick(struct host *h, int64_t mono_ms)
{
	if (idle_deadline(h) <= mono_ms)
		host_leave(h);
}

static const struct host_type daemon_type = {
	.client_gone = on_client_gone,
	.deadline = idle_deadline,
	.tick = idle_tick,
};

/* ---- start and end ---- */

/*
 * An older daemon that is there makes way, if ours is a newer version. Meanwhile a client of its own
 * version may have started another one, which makes way as well.
 */
static int take_folder(struct host *h, const char *state, struct err *err)
{
	bool is_expected = true;
	int rc = -ERR_STATE;

	for (int i = 0; i < MAX_PREDECESSORS && rc == -ERR_STATE && is_expected; i++) {
		is_expected = handover_ask(state);
		rc = state_open(&h->state, state, err);
	}
	return rc;
}

static int start(struct daemon *d, const char *state, struct err *err)
{
	struct host *h = &d->host;
	int rc = config_read(&h->config, environ, err);

	h->owners.grace_ms = h->config.grace_s * 1000;
	h->owners.keep_ms = h->config.keep_for_s * 1000;
	if (rc == 0)
		rc = take_folder(h, state, err);
	if (rc == 0)
		rc = journal_new(h, &h->journal, err);
	if (rc == 0)
		rc = host_start(h, err);
	if (rc < 0)
		return rc;
	rc = watch_folder(d, err);
	return rc < 0 ? rc : listen_again(d, err);
}

/* A client that comes now is to find nobody, and not somebody who does not answer. */
static void stop(struct daemon *d)
{
	struct host *h = &d->host;

	if (d->listener)
		(void)unlinkat(h->state.folder_fd, HOST_SOCKET, 0);
	unix_listener_free(d->listener);
	if (uv_handle_get_type((uv_handle_t *)&d->watch) == UV_POLL)
		uv_close((uv_handle_t *)&d->watch, NULL);
	host_finish(h);
	if (d->watch_fd >= 0)
		close(d->watch_fd);
	state_close(&h->state);
}

/* Whoever has started us may wait for the end of our output; it is all that comes. */
static void tell_ready(void)
{
	autoclose int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	if (fd >= 0)
		(void)dup2(fd, STDOUT_FILENO);
}

int host_serve_daemon(const char *state)
{
	struct daemon d = {.watch_fd = -1, .idle_since_ms = INT64_MAX};
	struct err err = {0};
	int rc = host_init(&d.host, &daemon_type, &err);

	if (rc < 0) {
		host_say(err.msg);
		return 1;
	}
	(void)setenv("UV_THREADPOOL_SIZE", "1",
		     0); /* one commit at a time is all it does */
	rc = start(&d, state, &err);
	if (rc == 0 && chdir("/") < 0)
		rc = err_sys(&err, errno, "cannot go to /");
	if (rc == 0) {
		tell_ready();
		host_turn(&d.host);
		(void)uv_run(&d.host.loop, UV_RUN_DEFAULT);
	} else {
		host_say(err.msg);
	}
	stop(&d);
	if (rc == 0)
		return d.host.exit_code;
	return rc == -ERR_ARG ? 2 : 1;
}
