/* SPDX-License-Identifier: MIT */
/*
 * work.h - two kinds of tasks for a program with a poll() loop: a shell command, whose output
 * can be read while it runs, and a timer, which has a result when it is over. To be copied.
 */
#pragma once

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "errand.h"

#define MAX_WORK 8

struct work {
	errand_host *host;
	errand_task task;
	int fd;    /* to poll: the command's output, or the timer */
	pid_t pid; /* of the command; 0: a timer */
	int killed;
	char command[256];
	uint64_t first; /* offset of text[0] in all that the command has written */
	char text[65536];
	size_t len;
};

static struct work *works[MAX_WORK]; /* that are not over */

static int refuse(errand_error *e, const char *message)
{
	errand_error_set(e, NULL, NULL, message, ERRAND_NUL);
	return ERRAND_ECALLBACK;
}

static int is_full(void)
{
	int i = 0;

	while (i < MAX_WORK && works[i])
		i++;
	return i == MAX_WORK;
}

static int work_begin(struct work *w, errand_host *h, errand_task t, int fd)
{
	int i = 0;

	while (works[i])
		i++;
	works[i] = w;
	w->host = h;
	w->task = t;
	w->fd = fd;
	return 0;
}

/* The library keeps a copy of the end; the work stays until it calls destroy(). */
static void work_end(struct work *w, int status, const char *detail, const char *output)
{
	for (int i = 0; i < MAX_WORK; i++)
		if (works[i] == w)
			works[i] = NULL;
	close(w->fd);
	errand_settle(w->host, w->task, status, detail, ERRAND_NUL, output, ERRAND_NUL);
}

/* ---- a command ---- */

static int command_start(void *ud, errand_host *h, errand_task t, errand_error *e)
{
	struct work *w = ud;
	int p[2];

	if (is_full())
		return refuse(e, "too much to do");
	if (pipe2(p, O_CLOEXEC) < 0)
		return refuse(e, strerror(errno));
	w->pid = fork();
	if (w->pid == 0) {
		setpgid(0, 0); /* so that it can be killed with its children */
		dup2(p[1], STDOUT_FILENO);
		execl("/bin/sh", "sh", "-c", w->command, (char *)NULL);
		_exit(127);
	}
	close(p[1]);
	if (w->pid > 0) {
		setpgid(w->pid, w->pid); /* whoever of the two comes first */
		return work_begin(w, h, t, p[0]);
	}
	close(p[0]);
	return refuse(e, strerror(errno));
}

/* It ends when it has closed its output. */
static int command_cancel(void *ud, errand_host *h, errand_task t, const char *reason,
			  size_t len, errand_error *e)
{
	struct work *w = ud;

	w->killed = 1;
	kill(-w->pid, SIGTERM);
	return 0;
}

/* The cursor is the library's: the same bytes may be asked for again ... */
static int command_read(void *ud, errand_task t, uint64_t from, errand_sink *out,
			uint64_t *ret_next, errand_error *e)
{
	const struct work *w = ud;

	errand_sink_write(out, w->text + (from - w->first), w->len - (from - w->first));
	*ret_next = w->first + w->len;
	return 0;
}

/* ... until the model has them. */
static void command_consumed(void *ud, errand_task t, uint64_t upto)
{
	struct work *w = ud;
	size_t gone = upto - w->first;

	w->len -= gone;
	memmove(w->text, w->text + gone, w->len);
	w->first = upto;
}

static void command_ready(struct work *w)
{
	ssize_t n = read(w->fd, w->text + w->len, sizeof(w->text) - w->len);
	int wait_status, status;
	errand_text *detail;

	if (n > 0) {
		w->len += (size_t)n;
		return;
	}
	waitpid(w->pid, &wait_status, 0);
	if (errand_process_outcome(wait_status, w->killed, 0, &status, &detail) < 0)
		abort();
	work_end(w, status, errand_text_data(detail, NULL), NULL);
	errand_text_free(detail);
}

static const struct errand_producer command_producer = {
	.size = sizeof(struct errand_producer),
	.start = command_start,
	.cancel = command_cancel,
	.read = command_read,
	.consumed = command_consumed,
	.destroy = free,
};

/* ---- a timer ---- */

static int timer_start(void *ud, errand_host *h, errand_task t, errand_error *e)
{
	struct itimerspec soon = {.it_value = {.tv_nsec = 50 * 1000 * 1000}};
	int fd;

	if (is_full())
		return refuse(e, "too much to do");
	fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
	if (fd < 0)
		return refuse(e, strerror(errno));
	timerfd_settime(fd, 0, &soon, NULL);
	return work_begin(ud, h, t, fd);
}

static int timer_cancel(void *ud, errand_host *h, errand_task t, const char *reason,
			size_t len, errand_error *e)
{
	work_end(ud, ERRAND_KILLED, NULL, NULL);
	return 0;
}

static const struct errand_producer timer_producer = {
	.size = sizeof(struct errand_producer),
	.start = timer_start,
	.cancel = timer_cancel,
	.destroy = free,
};

/* ---- for the loop ---- */

/* What to poll: @p has room for MAX_WORK. A command with much unread has to wait. */
static void work_watch(struct pollfd *p)
{
	for (int i = 0; i < MAX_WORK; i++) {
		const struct work *w = works[i];

		p[i] = (struct pollfd){w && w->len < sizeof(w->text) ? w->fd : -1, POLLIN,
				       0};
	}
}

static void work_ready(const struct pollfd *p)
{
	for (int i = 0; i < MAX_WORK; i++) {
		if (!p[i].revents)
			continue;
		if (works[i]->pid)
			command_ready(works[i]);
		else
			work_end(works[i], ERRAND_COMPLETED, NULL, "time is up");
	}
}
