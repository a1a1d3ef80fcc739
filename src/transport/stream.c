/* SPDX-License-Identifier: MIT */
/*
 * stream.c - lines in and out over two descriptors.
 *
 * Files cannot be polled, and never block: they are read by an idle handle, which also takes
 * up again what a pause has left unread.
 */
#include "transport/stream.h"

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
	struct stream_end own;
	bool can_poll;
	uv_poll_t poll;
};

struct stream {
	struct transport base;
	struct end in, out;
	uv_idle_t idle; /* reads what cannot be polled */
	struct framing framing;
	struct queue queue;
	const char *rest; /* of what was read: not yet handed over */
	size_t rest_len;
	bool is_paused, is_held, has_ended, is_dead;
	bool is_writing; /* waits for stdout to take more */
	bool is_socket;  /* one for both ends, so that both go together */
	int open_handles;
	char data[READ_SIZE];
};

static struct stream *stream_of(struct transport *t)
{
	return (struct stream *)(void *)t;
}

/* ---- an end of ours ---- */

/* Makes it non-blocking; the flags of both ends are known by then, which may be one file. */
static int end_watch(struct end *e, uv_loop_t *loop, struct err *err)
{
	int rc = uv_poll_init(loop, &e->poll, e->own.fd);

	e->can_poll = rc == 0;
	/* EPERM: a file, or /dev/null. */
	if (rc == 0 || rc == UV_EPERM)
		return 0;
	return err_sys(err, -rc, "cannot watch %s", e->own.name);
}

static bool is_one_socket(int in, int out)
{
	struct stat a, b;

	return fstat(in, &a) == 0 && fstat(out, &b) == 0 && S_ISSOCK(a.st_mode) &&
	       a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

static void end_close(struct end *e)
{
	if (e->own.flags >= 0)
		(void)fcntl(e->own.fd, F_SETFL, e->own.flags);
	close(e->own.fd);
}

/* ---- out ---- */

static void on_writable(uv_poll_t *p, int status, int events);

static void watch_out(struct stream *s)
{
	/* Nothing urgent ever comes: this asks for errors and hang-ups alone. */
	int events = UV_PRIORITIZED | (s->is_writing ? UV_WRITABLE : 0);

	if (s->out.can_poll)
		(void)uv_poll_start(&s->out.poll, events, on_writable);
}

static void want_writing(struct stream *s)
{
	const char *p;
	size_t len;
	bool wanted = s->is_paused || queue_next(&s->queue, &p, &len);

	if (wanted == s->is_writing)
		return;
	s->is_writing = wanted;
	watch_out(s);
}

static void stop(struct stream *s)
{
	if (s->in.can_poll)
		(void)uv_poll_stop(&s->in.poll);
	if (s->out.can_poll)
		(void)uv_poll_stop(&s->out.poll);
	(void)uv_idle_stop(&s->idle);
}

static void dead(struct stream *s)
{
	if (s->is_dead)
		return;
	s->is_dead = true;
	stop(s);
	s->base.events->closed(s->base.ud);
}

static void stream_flush(struct transport *t)
{
	struct stream *s = stream_of(t);
	uint64_t token;
	const char *p;
	size_t len;
	ssize_t n;

	while (!s->is_dead && queue_next(&s->queue, &p, &len)) {
		n = write(s->out.own.fd, p, len);
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

static void stream_send(struct transport *t, struct buf *line, uint64_t token)
{
	queue_push(&stream_of(t)->queue, line, token);
}

static bool stream_unsend(struct transport *t, uint64_t token)
{
	return queue_remove(&stream_of(t)->queue, token);
}

static size_t stream_waiting(const struct transport *t)
{
	const struct stream *s = (const struct stream *)(const void *)t;

	return s->queue.bytes;
}

/* ---- in ---- */

static void on_readable(uv_poll_t *p, int status, int events);
static void on_idle(uv_idle_t *p);

/* Read, or first hand over what a pause has left. */
static void watch_in(struct stream *s)
{
	bool may_read = !s->is_dead && !s->has_ended && !s->is_paused && !s->is_held;

	if (may_read && (s->rest_len > 0 || !s->in.can_poll))
		(void)uv_idle_start(&s->idle, on_idle);
	else
		(void)uv_idle_stop(&s->idle);
	if (!s->in.can_poll)
		return;
	if (may_read && s->rest_len == 0)
		(void)uv_poll_start(&s->in.poll, UV_READABLE, on_readable);
	else
		(void)uv_poll_stop(&s->in.poll);
}

static void pause_reading(struct stream *s)
{
	s->is_paused = true;
	watch_in(s);
	want_writing(s);
}

static void stream_hold(struct transport *t, bool on)
{
	struct stream *s = stream_of(t);

	if (s->is_held == on)
		return;
	s->is_held = on;
	watch_in(s);
}

static void stream_block(struct transport *t, size_t n)
{
	framing_block(&stream_of(t)->framing, n);
}

/* True: one line more went to the user. */
static bool hand_over(struct stream *s)
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
static void pump(struct stream *s)
{
	int lines = 0;

	while (!s->is_dead && !s->is_held && s->rest_len > 0) {
		if (s->queue.bytes > MAX_REPLY_QUEUE) {
			pause_reading(s);
			return;
		}
		lines += hand_over(s);
		if (lines == LINES_PER_TURN || s->rest_len == 0 || s->is_held) {
			s->base.events->turn(s->base.ud);
			lines = 0;
		}
	}
}

static void read_some(struct stream *s)
{
	ssize_t n = read(s->in.own.fd, s->data, sizeof(s->data));

	if (n < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	if (n == 0 && s->base.events->ended) {
		s->has_ended = true;
		watch_in(s);
		s->base.events->ended(s->base.ud);
		return;
	}
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
	struct stream *s = p->data;

	if (s->rest_len == 0) {
		read_some(s);
		return;
	}
	pump(s);
	watch_in(s);
}

static bool is_hung_up(int fd)
{
	struct pollfd p = {.fd = fd};

	return poll(&p, 1, 0) > 0 && (p.revents & (POLLERR | POLLHUP | POLLNVAL));
}

/* What was said before the other side went is there still, and behind it the end. */
static bool is_read_to_its_end(const struct stream *s)
{
	return s->is_socket && !s->base.events->ended && !s->is_paused && !s->is_held;
}

static void on_writable(uv_poll_t *p, int status, int events)
{
	struct stream *s = p->data;

	if (status < 0 || (!(events & UV_WRITABLE) && is_hung_up(s->out.own.fd))) {
		if (status < 0 || !is_read_to_its_end(s))
			dead(s);
		return;
	}
	stream_flush(&s->base);
	if (s->is_dead || !s->is_paused || s->queue.bytes > MAX_REPLY_QUEUE / 2)
		return;
	s->is_paused = false;
	want_writing(s);
	watch_in(s);
}

/* ---- life ---- */

static void free_last(uv_handle_t *h)
{
	struct stream *s = h->data;

	if (--s->open_handles > 0)
		return;
	end_close(&s->in);
	end_close(&s->out);
	framing_release(&s->framing);
	queue_release(&s->queue);
	mem_free(NULL, s);
}

static void close_handle(struct stream *s, uv_handle_t *h)
{
	s->open_handles++;
	uv_close(h, free_last);
}

static void stream_close(struct transport *t)
{
	struct stream *s = stream_of(t);

	s->is_dead = true;
	if (s->in.can_poll)
		close_handle(s, (uv_handle_t *)&s->in.poll);
	if (s->out.can_poll)
		close_handle(s, (uv_handle_t *)&s->out.poll);
	close_handle(s, (uv_handle_t *)&s->idle);
}

static const struct transport_type stream_type = {
	.send = stream_send,
	.unsend = stream_unsend,
	.waiting = stream_waiting,
	.flush = stream_flush,
	.hold = stream_hold,
	.block = stream_block,
	.close = stream_close,
};

int stream_new(uv_loop_t *loop, const struct stream_end *in, const struct stream_end *out,
	       size_t max_line, const struct transport_events *events, void *ud,
	       struct transport **ret, struct err *err)
{
	struct stream *s = mem_new(NULL, sizeof(*s));
	int rc;

	s->base = (struct transport){.type = &stream_type, .events = events, .ud = ud};
	s->in.own = *in;
	s->out.own = *out;
	s->is_socket = is_one_socket(in->fd, out->fd);
	framing_init(&s->framing, max_line);
	queue_init(&s->queue);
	(void)uv_idle_init(loop, &s->idle);
	s->idle.data = s;
	rc = end_watch(&s->in, loop, err);
	if (rc == 0)
		rc = end_watch(&s->out, loop, err);
	s->in.poll.data = s->out.poll.data = s;
	if (rc < 0) {
		stream_close(&s->base);
		return rc;
	}
	watch_in(s);
	watch_out(s);
	*ret = &s->base;
	return 0;
}
