/* SPDX-License-Identifier: MIT */
/* hosts.h - hosts that die, and others that find their tasks. */
#pragma once

#include <sys/socket.h>
#include <sys/un.h>

#include "tasks.h"

/* Another process that starts @command and is gone; returns the status it left with. */
static inline int host_that_dies(const char *folder, const char *command,
				 void (*last)(struct run *))
{
	pid_t pid;
	int status;

	(void)signal(SIGCHLD, SIG_DFL);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const char *argv[] = {"bash", "-c", command, NULL};
		const char *env[] = {"PATH=/bin:/usr/bin", NULL};
		struct run_context context = {.cwd = "/tmp", .env = env, .umask = 022};
		struct run_spec spec = {.argv = argv,
					.context = &context,
					.grace_ms = 300,
					.log_head = 1 << 20,
					.log_tail = 1 << 20};
		struct job j = {0};
		struct run *r;

		if (run_new(folder, shim_path(), &r, NULL) != 0 ||
		    run_start(r, &spec, job_ended, &j, &j.task, NULL) != 0)
			_exit(1);
		run_flush(r);
		last(r);
		_exit(2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)signal(SIGCHLD, SIG_IGN);
	return status;
}

static inline void kill_self(struct run *r)
{
	(void)r;
	(void)kill(getpid(), SIGKILL);
}

static inline void leave(struct run *r)
{
	run_leave(r);
	run_free(r);
	_exit(0);
}

static inline bool has_ended(const char *folder, struct proto_record *ret)
{
	char path[4200];
	int fd, rc;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, PROTO_STATUS);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	rc = proto_read_status(fd, ret);
	(void)close(fd);
	return rc == 0 && ret->state == PROTO_ENDED;
}

static inline int connect_to(const char *folder)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	(void)snprintf(name.sun_path, sizeof(name.sun_path), "%.90s/%s", folder,
		       PROTO_SOCK);
	if (connect(fd, (const struct sockaddr *)&name, sizeof(name)) == 0)
		return fd;
	(void)close(fd);
	return -1;
}

static inline bool get_packet(int fd, struct proto_packet *ret)
{
	uint8_t bytes[PROTO_PACKET_MAX];
	ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	return n > 0 && proto_get_packet(bytes, (size_t)n, ret) == 0;
}

/* A shim that comes into the only folder by hand; its exit status. */
static inline int late_shim(const struct world *w)
{
	int status = 0, pair[2], folder = open(only_folder(w), O_RDONLY | O_DIRECTORY);
	pid_t pid;

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
	(void)signal(SIGCHLD, SIG_DFL);
	pid = fork();
	if (pid == 0) {
		int high = fcntl(folder, F_DUPFD, 20), sock = fcntl(pair[1], F_DUPFD, 20);

		(void)dup2(high, PROTO_FOLDER_FD);
		(void)dup2(sock, PROTO_HOST_FD);
		(void)execl(shim_path(), "errand-shim", (char *)NULL);
		_exit(99);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)signal(SIGCHLD, SIG_IGN);
	(void)close(folder);
	(void)close(pair[0]);
	(void)close(pair[1]);
	return status;
}
