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
#include "base/clock.h"
#include "base/err.h"
#include "host/config.h"
#include "host/history.h"
#include "host/state.h"
#include "host/sweep.h"
#include "store/store.h"

/* One sweep is bounded; so are they. */
#define MAX_SWEEPS 1000

/* It keeps the folders of those that have ended, too. */
static void look_at_live(int folder, struct gc *ret)
{
	int tasks = openat(folder, "tasks",
			   O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
	DIR *dir = tasks >= 0 ? fdopendir(tasks) : NULL;
	const struct dirent *e;

	ret->live++;
	if (!dir && tasks >= 0)
		close(tasks);
	if (!dir)
		return;
	while ((e = readdir(dir)))
		ret->tasks_of_live += e->d_name[0] != '.';
	closedir(dir);
}

static void look_at(int parent, const char *name, struct gc *ret)
{
	autoclose int folder = openat(parent, name,
				      O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
	autoclose int lock = -1;

	if (folder < 0)
		return;
	lock = openat(folder, "host.lock", O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (lock < 0)
		ret->busy++;
	else if (flock(lock, LOCK_SH | LOCK_NB) < 0)
		look_at_live(folder, ret);
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
	int rc = state_find(state, &path, &folder, err);

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

/* ---- the store ---- */

static void on_gone(void *ud, const char *uid)
{
	const int *tasks_fd = ud;

	sweep_task(*tasks_fd, uid);
}

static int tidy(struct store *s, int folder, struct err *err)
{
	autoclose int fd = openat(folder, "tasks",
				  O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
	struct config c = {0};
	bool is_more = true;
	int rc = config_read(&c, environ, err);
	const struct store_limits limits = history_limits(&c);

	for (int i = 0; rc == 0 && is_more && i < MAX_SWEEPS; i++)
		rc = store_tidy(s, &limits, clock_wall_ms(), on_gone, &fd, &is_more, err);
	config_release(&c);
	return rc < 0 ? rc : store_shrink(s, err);
}

/* A damaged one is left to the host, which moves it aside. */
static int look_first(const char *path, struct store_health *ret, struct err *err)
{
	struct store *s = NULL;
	int rc = store_open(path, STORE_READ, &s, NULL, err);

	if (rc == 0)
		rc = store_check(s, ret, err);
	store_close(s);
	if (rc == 0 && ret->problem[0])
		return err_set(err, ERR_FORMAT, "the store of '%.200s' is damaged (%s)",
			       path, ret->problem);
	return rc;
}

static int tidy_store(const char *state, struct gc *ret, struct err *err)
{
	autofree char *path = NULL;
	autoclose int folder = -1;
	struct store_health before = {0}, after = {0};
	struct store *s = NULL;
	int rc = state_find(state, &path, &folder, err);

	if (rc == 0)
		rc = look_first(path, &before, err);
	if (rc < 0)
		return rc == -ERR_NOT_FOUND ? 0 : rc;
	rc = store_open(path, STORE_WRITE, &s, NULL, err);
	if (rc == 0)
		rc = tidy(s, folder, err);
	if (rc == 0)
		rc = store_check(s, &after, err);
	store_close(s);
	ret->has_store = rc == 0;
	ret->tasks = before.history - after.history;
	ret->requests = before.requests - after.requests;
	ret->entries = before.audit - after.audit;
	ret->bytes = before.bytes + before.log_bytes - after.bytes - after.log_bytes;
	return rc;
}

int gc_run(const char *state, struct gc *ret, struct err *err)
{
	int rc = run(state, true, ret, err);

	return rc < 0 ? rc : tidy_store(state, ret, err);
}

int gc_look(const char *state, struct gc *ret, struct err *err)
{
	return run(state, false, ret, err);
}
