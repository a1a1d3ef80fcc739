/* SPDX-License-Identifier: MIT */
/*
 * hosts.c - the sockets to hosts. They come and go, several at once; a task does not care.
 *
 * Nothing waits for a host: one whose socket is full is let go, and finds the record in
 * the folder. SIGPIPE is blocked, and MSG_NOSIGNAL keeps it from being queued at all.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "shim/shim.h"

/* What is not for hosts: the shim's own descriptors, those of a walk over the tree, and one
 * more to refuse a host with. */
#define OWN_FDS 19

static void let_go(struct shim *s, unsigned slot)
{
	(void)close(s->hosts[slot].fd);
	s->hosts[slot] = (struct shim_host){.fd = -1};
}

static void tell(struct shim *s, unsigned slot, const struct proto_packet *p)
{
	uint8_t bytes[PROTO_PACKET_MAX];
	size_t len = proto_put_packet(bytes, p);

	/* A host that is gone may have said something before it went: its end comes after that. */
	if (send(s->hosts[slot].fd, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 &&
	    errno == EAGAIN)
		let_go(s, slot);
}

static void say_hello(struct shim *s, unsigned slot)
{
	struct proto_packet p = {
		.type = PROTO_MSG_HELLO,
		.hello =
			{
				.shim_pid = s->record.shim_pid,
				.pid = s->record.pid,
				.ticks = s->record.ticks,
				.state = s->record.state,
			},
	};

	tell(s, slot, &p);
}

static void tell_end(struct shim *s, unsigned slot)
{
	struct proto_packet p = {.type = PROTO_MSG_ENDED, .ended = s->record};

	tell(s, slot, &p);
}

/* Whom it lets in must not keep it from finding its tree. */
static unsigned count_slots(void)
{
	struct rlimit r = {.rlim_cur = 0};

	(void)getrlimit(RLIMIT_NOFILE, &r);
	if (r.rlim_cur <= OWN_FDS)
		return 1;
	return r.rlim_cur - OWN_FDS < SHIM_HOSTS ? (unsigned)r.rlim_cur - OWN_FDS
						 : SHIM_HOSTS;
}

void shim_hosts_init(struct shim *s)
{
	s->n_slots = count_slots();
	if (shim_watch(s, s->hosts[0].fd, EPOLLIN, SOURCE_HOST, 0) != 0)
		let_go(s, 0);
	else
		say_hello(s, 0);
}

static bool is_ours(int fd)
{
	struct ucred who;
	socklen_t len = sizeof(who);

	return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) == 0 &&
	       who.uid == geteuid();
}

static int free_slot(const struct shim *s)
{
	for (unsigned i = 0; i < s->n_slots; i++)
		if (s->hosts[i].fd < 0)
			return (int)i;
	return -1;
}

static void admit(struct shim *s, int fd)
{
	int slot = free_slot(s);

	if (slot < 0 || !is_ours(fd) ||
	    shim_watch(s, fd, EPOLLIN, SOURCE_HOST, (uint32_t)slot) != 0) {
		(void)close(fd);
		return;
	}
	s->hosts[slot].fd = fd;
	say_hello(s, (unsigned)slot);
	if (s->hosts[slot].fd >= 0 && s->record.state == PROTO_ENDED)
		tell_end(s, (unsigned)slot);
}

/* One at a time. Whoever cannot be taken in must not keep the loop busy: the door is edge-
 * triggered, and he waits until another one comes or goes. */
void shim_hosts_accept(struct shim *s)
{
	int fd = accept4(s->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	if (fd < 0)
		return;
	admit(s, fd);
	(void)shim_watch_door(s, EPOLL_CTL_MOD); /* others may wait behind it */
}

void shim_hosts_receive(struct shim *s, unsigned slot)
{
	uint8_t bytes[PROTO_PACKET_MAX + 1];
	struct proto_packet p;
	ssize_t n;

	if (s->hosts[slot].fd < 0)
		return;
	n = recv(s->hosts[slot].fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	/* A peer that closed without having read all resets; what it said comes next. */
	if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ECONNRESET))
		return;
	if (n <= 0 || proto_get_packet(bytes, (size_t)n, &p) != 0) {
		let_go(s, slot);
		shim_hosts_accept(s);
		return;
	}
	shim_request(s, slot, &p);
}

void shim_hosts_tell_end(struct shim *s)
{
	for (unsigned i = 0; i < SHIM_HOSTS; i++)
		if (s->hosts[i].fd >= 0)
			tell_end(s, i);
}

/* It may have been let go while its request waited. */
void shim_hosts_reply(struct shim *s, unsigned slot, const struct proto_reply *r)
{
	struct proto_packet p = {.type = PROTO_MSG_REPLY, .reply = *r};

	if (s->hosts[slot].fd >= 0)
		tell(s, slot, &p);
}
