/* SPDX-License-Identifier: MIT */
#include "host/gc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "host/state.h"
#include "host/sweep.h"

/* One sweep is bounded; so are they. */
#define MAX_SWEEPS 1000

static void look_at(int parent, const char *name, struct gc *ret)
{
	autoclose int folder = openat(parent, name,
				      O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
	autoclose int lock = -1;

	if (folder < 0)
		return;
	lock = openat(folder, "host.lock", O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (lock < 0)
		ret->busy++;
	else if (flock(lock, LOCK_SH | LOCK_NB) < 0)
		ret->live++;
	else
		ret->crashed++;
}

static void look(int fd, struct gc *ret)
{
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	DIR *dir = own >= 0 ? fdopendir(own) : NULL;
	const struct dirent *e;

	*ret = (struct gc){0};
	if (!dir && own >= 0)
		close(own);
	if (!dir)
		return;
	rewinddir(dir);
	while ((e = readdir(dir)))
		if (e->d_name[0] != '.') /* one that is just being made has a dot */
			look_at(fd, e->d_name, ret);
	closedir(dir);
}

static size_t all(const struct gc *g)
{
	return g->live + g->crashed + g->busy;
}

/* -1 in *@ret_fd: no embedded host has ever been there. */
static int open_parent(const char *state, char **ret_path, int *ret_fd, struct err *err)
{
	autoclose int folder = -1;
	autofree char *path = NULL;
	struct buf parent = BUF_INIT(PATH_MAX);
	int rc = state_folder(state, &path, &folder, err);

	if (rc < 0)
		return rc;
	buf_addf(&parent, "%s/embedded", path);
	*ret_path = buf_take(&parent, NULL);
	*ret_fd = open(*ret_path, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
	if (*ret_fd < 0 && errno != ENOENT)
		return err_sys(err, errno, "cannot look into '%s'", *ret_path);
	return 0;
}

static int run(const char *state, bool removes, struct gc *ret, struct err *err)
{
	atomic_bool never = false;
	autofree char *path = NULL;
	autoclose int fd = -1;
	size_t first, before;
	int rc = open_parent(state, &path, &fd, err);

	*ret = (struct gc){0};
	if (rc < 0 || fd < 0)
		return rc;
	look(fd, ret);
	first = all(ret);
	for (int i = 0; removes && i < MAX_SWEEPS && ret->busy > 0; i++) {
		before = all(ret);
		sweep(path, &never);
		look(fd, ret);
		if (all(ret) >= before)
			break;
	}
	ret->removed = first > all(ret) ? first - all(ret) : 0;
	return 0;
}

int gc_run(const char *state, struct gc *ret, struct err *err)
{
	return run(state, true, ret, err);
}

int gc_look(const char *state, struct gc *ret, struct err *err)
{
	return run(state, false, ret, err);
}
