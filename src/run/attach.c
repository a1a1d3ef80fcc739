/* SPDX-License-Identifier: MIT */
/* attach.c - tasks that another host has started, and shims that have let go of this one. */
#include <errno.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "run/internal.h"

/* Through the descriptor of the folder, since a socket's path has room for 107 bytes only;
 * without a /proc by its own path, if that fits. */
static bool connect_to(int fd, const struct run_task *t)
{
	struct sockaddr_un name = {.sun_family = AF_UNIX};
	size_t room = sizeof(name.sun_path);
	int n;

	(void)snprintf(name.sun_path, room, "/proc/self/fd/%d/%s/%s", t->run->tasks_fd,
		       t->uid, PROTO_SOCK);
	if (connect(fd, (const struct sockaddr *)&name, sizeof(name)) == 0)
		return true;
	if (errno != ENOENT)
		return false;
	n = snprintf(name.sun_path, room, "%s/%s/%s", t->run->tasks_path, t->uid,
		     PROTO_SOCK);
	return n < (int)room &&
	       connect(fd, (const struct sockaddr *)&name, sizeof(name)) == 0;
}

bool run_connect(struct run_task *t)
{
	t->sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (t->sock < 0)
		return false;
	if (!connect_to(t->sock, t) || run_watch(t, NULL) != 0) {
		run_disconnect(t);
		return false;
	}
	t->is_tried = true;
	run_move(t, RUN_LIVE);
	if (t->is_kill_asked)
		(void)run_tell_kill(t, 0);
	return true;
}

bool run_is_uid(const char *s)
{
	return strspn(s, "0123456789abcdef") == PROTO_UID_LEN && s[PROTO_UID_LEN] == 0;
}

int run_attach(struct run *r, const char *uid, run_end_fn fn, void *ud,
	       struct run_task **ret, struct err *err)
{
	struct run_task *t;

	if (!run_is_uid(uid))
		return err_set(err, ERR_ARG, "'%.64s' is not the name of a run folder",
			       uid);
	t = run_task_new(r, fn, ud);
	memcpy(t->uid, uid, sizeof(t->uid));
	run_move(t, RUN_SILENT);
	t->retry_ms = clock_mono_ms();
	*ret = t;
	return 0;
}

void run_discard(struct run *r, const char *uid)
{
	char path[PROTO_UID_LEN + 16];
	autoclose int lock = -1;

	if (!run_is_uid(uid))
		return;
	(void)snprintf(path, sizeof(path), "%s/" PROTO_LOCK, uid);
	lock = openat(r->tasks_fd, path, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0)
		return; /* its shim is there, for what the task has left */
	run_remove_folder(r, uid);
}
