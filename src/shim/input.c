/* SPDX-License-Identifier: MIT */
/*
 * input.c - from hosts to the task's stdin, if that is a pipe.
 *
 * What the pipe does not take waits here, up to a maximum. A host that has more than fits
 * gets its reply when there is room again: so one that waits for each reply is never faster
 * than the task, and nobody has to ask in turns.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "shim/shim.h"

static uint8_t held[64 << 10];
static size_t n_held;

bool shim_input_open(struct shim *s, int *ret_theirs)
{
	int fds[2];

	*ret_theirs = -1;
	if (!(s->spec.flags & PROTO_SPEC_STDIN))
		return true;
	if (pipe2(fds, O_CLOEXEC) != 0)
		return false;
	(void)fcntl(fds[1], F_SETFL, O_NONBLOCK);
	*ret_theirs = fds[0];
	s->stdin_fd = fds[1];
	return true;
}

static void answer(struct shim *s, unsigned slot, enum proto_result result)
{
	struct shim_host *h = &s->hosts[slot];
	struct proto_reply r = {
		.serial = h->input_serial, .result = result, .taken = h->input_taken};

	h->is_filling = false;
	shim_hosts_reply(s, slot, &r);
}

static void answer_all(struct shim *s, enum proto_result result)
{
	for (unsigned i = 0; i < SHIM_HOSTS; i++)
		if (s->hosts[i].is_filling)
			answer(s, i, result);
}

void shim_input_close(struct shim *s)
{
	if (s->stdin_fd >= 0)
		(void)close(s->stdin_fd); /* its watch goes along */
	s->stdin_fd = -1;
	s->is_stdin_watched = false;
	n_held = 0;
	answer_all(s, PROTO_STDIN_CLOSED);
}

static bool watch(struct shim *s, bool is_wanted)
{
	if (is_wanted == s->is_stdin_watched)
		return true;
	s->is_stdin_watched = is_wanted;
	if (is_wanted)
		return shim_watch(s, s->stdin_fd, EPOLLOUT, SOURCE_STDIN, 0) == 0;
	return epoll_ctl(s->epoll_fd, EPOLL_CTL_DEL, s->stdin_fd, NULL) == 0;
}

/* SIGPIPE is blocked: a task that has closed its stdin is an EPIPE. */
void shim_input_flush(struct shim *s)
{
	while (s->stdin_fd >= 0 && n_held) {
		ssize_t n = write(s->stdin_fd, held, n_held);

		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			break;
		if (n < 0) {
			shim_input_close(s);
			return;
		}
		n_held -= (size_t)n;
		memmove(held, held + n, n_held);
	}
	if (s->stdin_fd < 0)
		return;
	if ((s->is_stdin_closing && !n_held) || !watch(s, n_held > 0)) {
		shim_input_close(s);
		return;
	}
	if (n_held <= sizeof(held) / 2)
		answer_all(s, PROTO_STDIN_FULL);
}

static enum proto_result why_not(const struct shim *s, unsigned slot)
{
	if (!(s->spec.flags & PROTO_SPEC_STDIN))
		return PROTO_NO_STDIN;
	if (s->is_main_gone)
		return PROTO_HAS_ENDED;
	if (s->stdin_fd < 0 || s->is_stdin_closing)
		return PROTO_STDIN_CLOSED;
	return s->hosts[slot].is_filling ? PROTO_BUSY : PROTO_DONE;
}

static uint32_t take(const struct proto_request *q)
{
	size_t room = sizeof(held) - n_held;
	uint32_t taken = q->len < room ? q->len : (uint32_t)room;

	if (taken)
		memcpy(held + n_held, q->bytes, taken);
	n_held += taken;
	return taken;
}

void shim_input(struct shim *s, unsigned slot, const struct proto_request *q)
{
	struct shim_host *h = &s->hosts[slot];
	enum proto_result refusal = why_not(s, slot);

	if (refusal != PROTO_DONE) {
		struct proto_reply r = {.serial = q->serial, .result = refusal};

		shim_hosts_reply(s, slot, &r);
		return;
	}
	h->input_serial = q->serial;
	h->input_taken = take(q);
	h->is_filling = h->input_taken < q->len;
	if (!h->is_filling) {
		s->is_stdin_closing = q->flags & PROTO_INPUT_CLOSE;
		answer(s, slot, PROTO_DONE);
	}
	shim_input_flush(s);
}
