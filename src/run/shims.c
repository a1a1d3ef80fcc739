/* SPDX-License-Identifier: MIT */
#include "run/shims.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"

/* What the kernel puts behind the name of a folder that is gone. */
#define DELETED " (deleted)"

/* All in the folder /proc/<pid>, which is @fd: its number may become another's meanwhile. */
static bool read_first(int fd, const char *file, char *text, size_t size)
{
	autoclose int in = openat(fd, file, O_RDONLY | O_CLOEXEC);
	ssize_t n = in < 0 ? -1 : read(in, text, size - 1);

	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

static bool is_shim(int fd)
{
	struct stat st;
	char name[32];

	return fstat(fd, &st) == 0 && st.st_uid == geteuid() &&
	       read_first(fd, "comm", name, sizeof(name)) &&
	       strcmp(name, "errand-shim\n") == 0;
}

static pid_t child_of(int fd, pid_t pid)
{
	char file[64], text[32];

	(void)snprintf(file, sizeof(file), "task/%d/children", (int)pid);
	(void)read_first(fd, file, text, sizeof(text));
	return (pid_t)strtol(text, NULL, 10);
}

static bool take_off_deleted(char *path)
{
	size_t len = strlen(path), tail = strlen(DELETED);

	if (len < tail || strcmp(path + len - tail, DELETED) != 0)
		return false;
	path[len - tail] = 0;
	return true;
}

static void look_at(const char *name, run_shim_fn fn, void *ud)
{
	char path[PATH_MAX + sizeof(DELETED)];
	struct run_shim shim = {.pid = (pid_t)strtol(name, NULL, 10), .folder = path};
	autoclose int fd = -1;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "/proc/%.20s", name);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 || !is_shim(fd))
		return;
	n = readlinkat(fd, "cwd", path, sizeof(path) - 1);
	if (n < 0)
		return;
	path[n] = 0;
	shim.is_deleted = take_off_deleted(path);
	shim.task = child_of(fd, shim.pid);
	fn(ud, &shim);
}

void run_each_shim(run_shim_fn fn, void *ud)
{
	DIR *dir = opendir("/proc");
	const struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9')
			look_at(e->d_name, fn, ud);
	if (dir)
		(void)closedir(dir);
}
