/* SPDX-License-Identifier: MIT */
#include "host/sweep.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/cleanup.h"

/* One start-up need not clean everything; the next one goes on. */
#define MAX_FOLDERS 200
#define MAX_FILES 20000
/* A host makes its folder under a name with a dot, for a few milliseconds. */
#define UNBORN_S 60

struct sweep {
	const atomic_bool *stop;
	int folders, files; /* left to do */
};

typedef void (*entry_fn)(struct sweep *s, int fd, const char *name);

static bool is_over(struct sweep *s)
{
	return atomic_load(s->stop) || s->folders <= 0 || s->files <= 0;
}

static void each_entry(struct sweep *s, int fd, entry_fn fn)
{
	int own = openat(fd, ".", O_DIRECTORY | O_RDONLY | O_CLOEXEC);
	DIR *dir = own >= 0 ? fdopendir(own) : NULL;
	struct dirent *e;

	if (!dir && own >= 0)
		close(own);
	while (dir && !is_over(s) && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			fn(s, fd, e->d_name);
	if (dir)
		closedir(dir);
}

static int open_folder(int fd, const char *name)
{
	return openat(fd, name, O_DIRECTORY | O_NOFOLLOW | O_RDONLY | O_CLOEXEC);
}

static void remove_file(struct sweep *s, int fd, const char *name)
{
	s->files--;
	(void)unlinkat(fd, name, 0);
}

/* Nobody's, if its lock can be had: a shim that lives, or is being born, holds it. */
static void remove_task(struct sweep *s, int fd, const char *name)
{
	autoclose int folder = open_folder(fd, name), lock = -1;

	if (folder < 0)
		return;
	lock = openat(folder, "lock", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	if (lock < 0 && errno != ENOENT)
		return;
	if (lock >= 0 && flock(lock, LOCK_EX | LOCK_NB) < 0)
		return;
	each_entry(s, folder, remove_file);
	(void)unlinkat(fd, name, AT_REMOVEDIR);
}

static bool is_young(int folder)
{
	struct stat st;

	return fstat(folder, &st) < 0 || st.st_mtime > time(NULL) - UNBORN_S;
}

static void remove_host(struct sweep *s, int fd, const char *name)
{
	autoclose int folder = open_folder(fd, name), tasks = -1;
	bool is_unborn = *name == '.';

	s->folders--;
	if (folder < 0 || (is_unborn && is_young(folder)))
		return;
	if (is_unborn)
		(void)unlinkat(folder, "host.lock", 0);
	if (faccessat(folder, "host.lock", F_OK, AT_SYMLINK_NOFOLLOW) == 0 ||
	    errno != ENOENT)
		return;
	tasks = open_folder(folder, "tasks");
	if (tasks >= 0)
		each_entry(s, tasks, remove_task);
	(void)unlinkat(folder, "tasks", AT_REMOVEDIR);
	(void)unlinkat(fd, name, AT_REMOVEDIR);
}

void sweep(const char *parent, const atomic_bool *stop)
{
	struct sweep s = {.stop = stop, .folders = MAX_FOLDERS, .files = MAX_FILES};
	autoclose int fd = open(parent, O_DIRECTORY | O_RDONLY | O_CLOEXEC);

	if (fd >= 0)
		each_entry(&s, fd, remove_host);
}

void sweep_task(int tasks_fd, const char *uid)
{
	const atomic_bool never = false;
	struct sweep s = {.stop = &never, .folders = 1, .files = MAX_FILES};

	if (uid[0] != '.' && !strchr(uid, '/'))
		remove_task(&s, tasks_fd, uid);
}
