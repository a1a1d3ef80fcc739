/* SPDX-License-Identifier: MIT */
/* loop.c - wait, find out what has happened, hand it to the table. No decisions here. */
#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "shim/shim.h"

#define EVENTS_PER_TURN 16

int shim_watch(struct shim *s, int fd, uint32_t events, uint32_t source, uint32_t slot)
{
	struct epoll_event ev = {
		.events = events,
		.data.u64 = (uint64_t)source << 32 | slot,
	};

	return epoll_ctl(s->epoll_fd, EPOLL_CTL_ADD, fd, &ev);
}

int shim_watch_door(struct shim *s, int op)
{
	struct epoll_event ev = {
		.events = EPOLLIN | EPOLLET,
		.data.u64 = (uint64_t)SOURCE_LISTEN << 32,
	};

	return epoll_ctl(s->epoll_fd, op, s->listen_fd, &ev);
}

static void note_main(struct shim *s, int wait_status, const struct rusage *use)
{
	s->is_main_gone = true;
	s->record.wait_status = wait_status;
	s->record.cpu_us = (uint64_t)(use->ru_utime.tv_sec + use->ru_stime.tv_sec) *
				   1000000 +
			   (uint64_t)(use->ru_utime.tv_usec + use->ru_stime.tv_usec);
	s->record.peak_kib = (uint64_t)use->ru_maxrss;
}

static void reap(struct shim *s)
{
	bool was_main_gone = s->is_main_gone, is_any = false;
	struct rusage use;
	int wait_status;
	pid_t pid;

	while ((pid = wait4(-1, &wait_status, WNOHANG, &use)) > 0) {
		is_any = true;
		if (pid == s->record.pid && !s->is_main_gone)
			note_main(s, wait_status, &use);
	}
	s->is_tree_gone = pid < 0 && errno == ECHILD;
	if (s->is_main_gone && !was_main_gone)
		shim_handle(s, EV_MAIN_GONE);
	if (s->is_tree_gone)
		shim_handle(s, EV_TREE_GONE);
	else if (is_any)
		shim_handle(s, EV_REAPED);
}

static void on_signal(struct shim *s, uint32_t slot)
{
	struct signalfd_siginfo info;

	(void)slot;
	if (read(s->signal_fd, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return;
	if (info.ssi_signo == SIGCHLD)
		reap(s);
	else
		shim_handle(s,
			    EV_KILL); /* SIGTERM from outside: somebody asks for the end */
}

static void on_output(struct shim *s, uint32_t slot)
{
	(void)slot;
	if (s->output_fd >= 0 && shim_pump(s))
		shim_handle(s, EV_OUTPUT_END);
}

static void on_listen(struct shim *s, uint32_t slot)
{
	(void)slot;
	shim_hosts_accept(s);
}

static void on_host(struct shim *s, uint32_t slot)
{
	shim_hosts_receive(s, slot);
}

static void on_stdin(struct shim *s, uint32_t slot)
{
	(void)slot;
	shim_input_flush(s);
}

static void on_event(struct shim *s, const struct epoll_event *ev)
{
	static void (*const handlers[])(struct shim *, uint32_t) = {
		[SOURCE_OUTPUT] = on_output, [SOURCE_SIGNAL] = on_signal,
		[SOURCE_LISTEN] = on_listen, [SOURCE_HOST] = on_host,
		[SOURCE_STDIN] = on_stdin,
	};

	handlers[ev->data.u64 >> 32](s, (uint32_t)ev->data.u64);
}

static int time_to_wait(const struct shim *s)
{
	int64_t due = s->timer_ms < s->deadline_ms ? s->timer_ms : s->deadline_ms;
	int64_t ms;

	if (due == INT64_MAX)
		return -1;
	ms = due - clock_mono_ms();
	if (ms < 0)
		return 0;
	return ms < 3600000 ? (int)ms : 3600000;
}

static bool take_due(int64_t *at, int64_t now)
{
	if (now < *at)
		return false;
	*at = INT64_MAX;
	return true;
}

static void fire_timers(struct shim *s)
{
	int64_t now;

	if (s->timer_ms == INT64_MAX && s->deadline_ms == INT64_MAX)
		return;
	now = clock_mono_ms();
	if (take_due(&s->deadline_ms, now))
		shim_handle(s, EV_DEADLINE);
	if (take_due(&s->timer_ms, now))
		shim_handle(s, EV_TIMEOUT);
}

void shim_loop(struct shim *s)
{
	struct epoll_event events[EVENTS_PER_TURN];

	while (!s->is_done) {
		int n = epoll_wait(s->epoll_fd, events, EVENTS_PER_TURN, time_to_wait(s));

		/* A bad epoll descriptor is our own fault; going on would spin. */
		assert(n >= 0 || errno == EINTR);
		for (int i = 0; i < n && !s->is_done; i++)
			on_event(s, &events[i]);
		if (!s->is_done)
			fire_timers(s);
	}
}
