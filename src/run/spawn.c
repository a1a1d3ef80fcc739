/* SPDX-License-Identifier: MIT */
/* spawn.c - the run folder and the shim that is born into it. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "run/internal.h"

/* ---- the folder ---- */

static int write_all(int fd, const struct buf *b)
{
	for (size_t done = 0; done < b->len;) {
		ssize_t n = write(fd, b->data + done, b->len - done);

		if (n < 0)
			return -1;
		done += (size_t)n;
	}
	return 0;
}

static int cannot_make(const struct run *r, struct err *err)
{
	if (errno == ENOENT)
		return err_set(err, ERR_STATE,
			       "the folder '%s' is gone; restart what serves this tool",
			       r->tasks_path);
	return err_sys(err, errno, "cannot make a run folder in '%s'", r->tasks_path);
}

static int make_folder(const struct run_task *t, int *ret_fd, struct err *err)
{
	autoclose int folder = -1, spec = -1;

	if (mkdirat(t->run->tasks_fd, t->uid, 0700) != 0)
		return cannot_make(t->run, err);
	folder = openat(t->run->tasks_fd, t->uid,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (folder < 0)
		return err_sys(err, errno, "cannot open the run folder");
	spec = openat(folder, PROTO_SPEC,
		      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (spec < 0 || write_all(spec, &t->spec) != 0)
		return err_sys(err, errno, "cannot write the spec");
	*ret_fd = take_fd(&folder);
	return 0;
}

static void remove_all_in(const struct run *r, const char *uid)
{
	int fd = openat(r->tasks_fd, uid, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	const struct dirent *e;
	DIR *dir;

	if (fd < 0)
		return;
	dir = fdopendir(fd);
	if (!dir) {
		(void)close(fd);
		return;
	}
	while ((e = readdir(dir)))
		(void)unlinkat(fd, e->d_name, 0); /* not "." and ".." */
	(void)closedir(dir);
}

void run_remove_folder(const struct run *r, const char *uid)
{
	static const char *const usual[] = {PROTO_OUT, PROTO_STATUS, PROTO_LOCK,
					    PROTO_SOCK};
	char path[PROTO_UID_LEN + 16];

	run_remove_group(r, uid);
	/* Nearly always these are all, and no listing is needed. */
	for (size_t i = 0; i < sizeof(usual) / sizeof(usual[0]); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", uid, usual[i]);
		(void)unlinkat(r->tasks_fd, path, 0);
	}
	if (unlinkat(r->tasks_fd, uid, AT_REMOVEDIR) == 0 || errno != ENOTEMPTY)
		return;
	remove_all_in(r, uid);
	(void)unlinkat(r->tasks_fd, uid, AT_REMOVEDIR);
}

/* ---- the process ---- */

int run_lift(int fd)
{
	int high;

	if (fd < 0 || fd >= PROTO_FIRST_FREE_FD)
		return fd;
	high = fcntl(fd, F_DUPFD_CLOEXEC, PROTO_FIRST_FREE_FD);
	(void)close(fd);
	return high;
}

static void set_attributes(posix_spawnattr_t *attr)
{
	sigset_t set;

	(void)posix_spawnattr_init(attr);
	sigemptyset(&set);
	(void)posix_spawnattr_setsigmask(attr, &set);
	sigfillset(&set);
	(void)posix_spawnattr_setsigdefault(attr, &set);
	(void)posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSID | POSIX_SPAWN_SETSIGMASK |
						     POSIX_SPAWN_SETSIGDEF);
}

/*
 * No argument and no variable: whatever is known about the task stays in its folder, and
 * a search for ERRAND_TASK never finds a shim.
 */
static int start_shim(const struct run *r, int folder, int sock)
{
	static char name[] = "errand-shim";
	char *argv[] = {name, NULL}, *env[] = {NULL};
	posix_spawn_file_actions_t fds;
	posix_spawnattr_t attr;
	pid_t pid;
	int rc;

	set_attributes(&attr);
	(void)posix_spawn_file_actions_init(&fds);
	for (int fd = 0; fd < 3; fd++)
		(void)posix_spawn_file_actions_adddup2(&fds, r->null_fd, fd);
	(void)posix_spawn_file_actions_adddup2(&fds, folder, PROTO_FOLDER_FD);
	(void)posix_spawn_file_actions_adddup2(&fds, sock, PROTO_HOST_FD);
	if (r->groups_fd >= 0)
		(void)posix_spawn_file_actions_adddup2(&fds, r->groups_fd, PROTO_GROUPS_FD);
	rc = posix_spawn(&pid, r->shim, &fds, &attr, argv, env);
	(void)posix_spawn_file_actions_destroy(&fds);
	(void)posix_spawnattr_destroy(&attr);
	return rc;
}

int run_spawn(struct run_task *t, struct err *err)
{
	int pair[2], rc;
	autoclose int folder = -1, theirs = -1;

	rc = make_folder(t, &folder, err);
	if (rc == 0)
		rc = run_make_group(t->run, t->uid, err);
	if (rc != 0)
		return rc;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) !=
	    0)
		return err_sys(err, errno, "cannot make a socket");
	t->sock = pair[0];
	theirs = run_lift(pair[1]);
	folder = run_lift(folder);
	if (theirs < 0 || folder < 0)
		return err_sys(err, errno, "cannot make a descriptor");
	rc = start_shim(t->run, folder, theirs);
	return rc ? err_sys(err, rc, "cannot start '%s'", t->run->shim) : 0;
}
