/* SPDX-License-Identifier: MIT */
/*
 * unixsocket.h - the transport of clients that come through a socket in the state folder.
 *
 * Folder and name are given apart: a socket's path has room for 107 bytes, so both sides go
 * through a descriptor of the folder.
 */
#pragma once

#include <uv.h>

#include "transport/transport.h"

struct err;
struct unix_listener;

/* @folder_fd: an open folder; @path: the same, for where there is no /proc. The socket is
 * mode 0600 and takes the place of one that nobody listens on any more. accepted() gets each
 * connection, which it owns; turned_away() one for which no descriptors are left, to say so. */
int unix_listen(uv_loop_t *loop, int folder_fd, const char *path, const char *name,
		void (*accepted)(void *ud, int fd), void (*turned_away)(void *ud, int fd),
		void *ud, struct unix_listener **ret, struct err *err)
	__attribute__((warn_unused_result));
void unix_listener_free(struct unix_listener *l); /* NULL is fine; leaves the file */

/* A blocking connection. On failure err->errnum says what is there: ENOENT nothing,
 * ECONNREFUSED a socket that nobody listens on. */
int unix_connect(int folder_fd, const char *path, const char *name, int *ret_fd,
		 struct err *err) __attribute__((warn_unused_result));

/* A connection as a transport; @fd is taken, also on failure. */
int unix_transport(uv_loop_t *loop, int fd, size_t max_line,
		   const struct transport_events *events, void *ud, struct transport **ret,
		   struct err *err) __attribute__((warn_unused_result));
