/* SPDX-License-Identifier: MIT */
/*
 * stdinout.c - stdin and stdout of whatever kind: pipes, sockets, terminals, files, /dev/null.
 *
 * Non-blocking mode belongs to an open file, not to a descriptor: switched on for our stdin
 * it would also hold for a shell that shares the terminal with us. So pipes and terminals are
 * opened anew, which gives an open file of our own. A socket cannot be opened again; there
 * the mode is put back at the end.
 *
 * Files cannot be polled, and never block: they are read by an idle handle.
 */
#include "transport/stdinout.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/limits.h"
#include "transport/framing.h"
#include "transport/queue.h"

#define READ_SIZE KIB(64)
/* Requests between two turns: their replies are all that can overshoot the queue's limit. */
#define LINES_PER_TURN 32

struct end {
	int fd, flags; /* flags to put back, or -1 */
	bool can_poll;
	uv_poll_t poll;
};

struct stdio {
	struct transport base;
	struct end in, out;
	uv_idle_t idle; /* reads what cannot be polled */
	struct framing framing;
	struct queue queue;
	const char *rest; /* of what was read: not yet handed over */
	size_t rest_len;
	bool is_paused, is_dead;
	bool is_writing; /* waits for stdout to take more */
	int open_handles;
	char data[READ_SIZE];
};

static struct stdio *stdio_of(struct transport *t)
{
	return (struct stdio *)(void *)t;
}

/* ---- an end of ours ---- */

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

static int end_open(struct end *e, int fd, int access, const char *name, struct err *err)
{
	e->fd = own_fd(fd, access);
	if (e->fd < 0)
		return err_sys(err, errno, "cannot use %s", name);
	e->flags = fcntl(e->fd, F_GETFL);
	return 0;
}

/* Makes it non-blocking; the flags of both ends are known by then, which may be one file. */
static int end_watch(struct end *e, uv_loop_t *loop, const char *name, struct err *err)
{
	int rc = uv_poll_init(loop, &e->poll, e->fd);

	e->can_poll = rc == 0;
	/* EPERM: a file, or /dev/null. */
	if (rc == 0 || rc == UV_EPERM)
		return 0;
	return err_sys(err, -rc, "cannot watch %s", name);
}

static void end_close(struct end *e)
{
	if (e->fd < 0)
		return;
	if (e->flags >= 0)
		(void)fcntl(e->fd, F_SETFL, e->flags);
	close(e->fd);
	e->fd = -1;
}

/* ---- out ---- */

static void on_writable(uv_poll_t *p, int status, int events);

static void watch_out(struct stdio *s)
{
	/* Nothing urgent ever comes: this asks for errors and hang-ups alone. */
	int events = UV_PRIORITIZED | (s->is_writing ? UV_WRITABLE : 0);

	if (s->out.can_poll)
		(void)uv_poll_start(&s->out.poll, events, on_writable);
}

static void want_writing(struct stdio *s)
{
	const char *p;
	size_t len;
	bool wanted = s->is_paused || queue_next(&s->queue, &p, &len);

	if (wanted == s->is_writing)
		return;
	s->is_writing = wanted;
	watch_out(s);
}

static void stop(struct stdio *s)
{
	if (s->in.can_poll)
		(void)uv_poll_stop(&s->in.poll);
	if (s->out.can_poll)
		(void)uv_poll_stop(&s->out.poll);
	(void)uv_idle_stop(&s->idle);
}

static void dead(struct stdio *s)
{
	if (s->is_dead)
		return;
	s->is_dead = true;
	stop(s);
	s->base.events->closed(s->base.ud);
}

static void stdio_flush(struct transport *t)
{
	struct stdio *s = stdio_of(t);
	uint64_t token;
	const char *p;
	size_t len;
	ssize_t n;

	while (!s->is_dead && queue_next(&s->queue, &p, &len)) {
		n = write(s->out.fd, p, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n < 0) {
			dead(s);
			return;
		}
		if (queue_advance(&s->queue, (size_t)n, &token) && token)
			s->base.events->sent(s->base.ud, token);
	}
	if (!s->is_dead)
		want_writing(s);
}

static void stdio_send(struct transport *t, struct buf *line, uint64_t token)
{
	queue_push(&stdio_of(t)->queue, line, token);
}

static bool stdio_unsend(struct transport *t, uint64_t token)
{
	return queue_remove(&stdio_of(t)->queue, token);
}

static bool stdio_is_behind(const struct transport *t)
{
	const struct stdio *s = (const struct stdio *)(const void *)t;

	return s->queue.bytes > 0;
}

/* ---- in ---- */

static void on_readable(uv_poll_t *p, int status, int events);
static void on_idle(uv_idle_t *p);

static void watch_in(struct stdio *s)
{
	if (s->in.can_poll)
		(void)uv_poll_start(&s->in.poll, UV_READABLE, on_readable);
	else
		(void)uv_idle_start(&s->idle, on_idle);
}

static void pause_reading(struct stdio *s)
{
	s->is_paused = true;
	if (s->in.can_poll)
		(void)uv_poll_stop(&s->in.poll);
	else
		(void)uv_idle_stop(&s->idle);
	want_writing(s);
}

/* True: one line more went to the user. */
static bool hand_over(struct stdio *s)
{
	const char *line;
	size_t len;

	switch (framing_next(&s->framing, &s->rest, &s->rest_len, &line, &len)) {
	case FRAME_LINE:
		s->base.events->line(s->base.ud, line, len);
		return true;
	case FRAME_TOO_LONG:
		s->base.events->too_long(s->base.ud);
		return true;
	case FRAME_NONE:
		break;
	}
	return false;
}

/* Hand over what was read, in portions, until the client is too far behind with reading. */
static void pump(struct stdio *s)
{
	int lines = 0;

	while (!s->is_dead && s->rest_len > 0) {
		if (s->queue.bytes > MAX_REPLY_QUEUE) {
			pause_reading(s);
			return;
		}
		lines += hand_over(s);
		if (lines == LINES_PER_TURN || s->rest_len == 0) {
			s->base.events->turn(s->base.ud);
			lines = 0;
		}
	}
}

static void read_some(struct stdio *s)
{
	ssize_t n = read(s->in.fd, s->data, sizeof(s->data));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n <= 0) {
		dead(s);
		return;
	}
	s->rest = s->data;
	s->rest_len = (size_t)n;
	pump(s);
}

static void on_readable(uv_poll_t *p, int status, int events)
{
	/* After an error read() says what it was. */
	(void)status;
	(void)events;
	read_some(p->data);
}

static void on_idle(uv_idle_t *p)
{
	read_some(p->data);
}

static bool is_hung_up(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP | POLLNVAL));
}

static void on_writable(uv_poll_t *p, int status, int events)
{
	struct stdio *s = p->data;

	if (status < 0 || (!(events & UV_WRITABLE) && is_hung_up(s->out.fd))) {
		dead(s);
		return;
	}
	stdio_flush(&s->base);
	if (s->is_dead || !s->is_paused || s->queue.bytes > MAX_REPLY_QUEUE / 2)
		return;
	s->is_paused = false;
	want_writing(s);
	watch_in(s);
	pump(s);
}

/* ---- life ---- */

static void free_last(uv_handle_t *h)
{
	struct stdio *s = h->data;

	if (--s->open_handles > 0)
		return;
	end_close(&s->in);
	end_close(&s->out);
	framing_release(&s->framing);
	queue_release(&s->queue);
	mem_free(NULL, s);
}

static void close_handle(struct stdio *s, uv_handle_t *h)
{
	s->open_handles++;
	uv_close(h, free_last);
}

static void stdio_close(struct transport *t)
{
	struct stdio *s = stdio_of(t);

	s->is_dead = true;
	if (s->in.can_poll)
		close_handle(s, (uv_handle_t *)&s->in.poll);
	if (s->out.can_poll)
		close_handle(s, (uv_handle_t *)&s->out.poll);
	close_handle(s, (uv_handle_t *)&s->idle);
}

static const struct transport_type stdio_type = {
	.send = stdio_send,
	.unsend = stdio_unsend,
	.is_behind = stdio_is_behind,
	.flush = stdio_flush,
	.close = stdio_close,
};

int stdinout_new(uv_loop_t *loop, const struct transport_events *events, void *ud,
		 struct transport **ret, struct err *err)
{
	struct stdio *s = mem_new(NULL, sizeof(*s));
	int rc;

	s->base = (struct transport){.type = &stdio_type, .events = events, .ud = ud};
	s->in.fd = s->out.fd = -1;
	framing_init(&s->framing, MAX_REQUEST_LINE);
	queue_init(&s->queue);
	(void)uv_idle_init(loop, &s->idle);
	s->idle.data = s;
	rc = end_open(&s->in, STDIN_FILENO, O_RDONLY, "stdin", err);
	if (rc == 0)
		rc = end_open(&s->out, STDOUT_FILENO, O_WRONLY, "stdout", err);
	if (rc == 0)
		rc = end_watch(&s->in, loop, "stdin", err);
	if (rc == 0)
		rc = end_watch(&s->out, loop, "stdout", err);
	s->in.poll.data = s->out.poll.data = s;
	if (rc < 0) {
		stdio_close(&s->base);
		return rc;
	}
	watch_in(s);
	watch_out(s);
	*ret = &s->base;
	return 0;
}
