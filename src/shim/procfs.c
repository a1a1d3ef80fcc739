/* SPDX-License-Identifier: MIT */
#include "shim/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- folders ---- */

/* As getdents64 fills it in; opendir() would allocate. */
struct entry {
	uint64_t ino;
	int64_t off;
	unsigned short len;
	unsigned char type;
	char name[];
};

struct folder {
	int fd;
	long at, len;
	_Alignas(struct entry) char bytes[2048];
};

static bool folder_open(struct folder *f, const char *path)
{
	f->fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	f->at = f->len = 0;
	return f->fd >= 0;
}

/* The next name that is a number; NULL at the end, when the folder is closed. */
static const char *folder_next(struct folder *f)
{
	for (;;) {
		const struct entry *e;

		if (f->at >= f->len) {
			f->len = syscall(SYS_getdents64, f->fd, f->bytes, sizeof(f->bytes));
			f->at = 0;
		}
		if (f->len <= 0) {
			(void)close(f->fd);
			return NULL;
		}
		e = (const struct entry *)(const void *)(f->bytes + f->at);
		f->at += e->len;
		if (e->name[0] >= '0' && e->name[0] <= '9')
			return e->name;
	}
}

static void folder_stop(struct folder *f)
{
	(void)close(f->fd);
}

/* ---- a process ---- */

static ssize_t read_file(const char *path, char *buf, size_t size)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -1;
	n = read(fd, buf, size - 1);
	(void)close(fd);
	if (n >= 0)
		buf[n] = 0;
	return n;
}

/* The name in the second field may hold anything: the last ')' ends it. The others are
 * numbers: 4 is the parent, 6 the session, 20 the threads, 22 the start time. */
bool procfs_stat(pid_t pid, struct procfs_stat *ret)
{
	char path[64], buf[512], *at, *end;
	uint64_t fields[23];

	(void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (read_file(path, buf, sizeof(buf)) <= 0)
		return false;
	at = strrchr(buf, ')');
	if (!at || at[1] != ' ' || !at[2])
		return false;
	ret->state = at[2];
	at += 3;
	for (int field = 4; field <= 22; field++) {
		fields[field] = strtoull(at, &end, 10);
		at = end;
	}
	ret->parent = (pid_t)fields[4];
	ret->session = (pid_t)fields[6];
	ret->threads = fields[20];
	ret->ticks = fields[22];
	return true;
}

uid_t procfs_uid(pid_t pid)
{
	char path[64];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d", (int)pid);
	return stat(path, &st) == 0 ? st.st_uid : 0;
}

enum has {
	HAS_NOT,
	HAS,
	HAS_NOTHING, /* it has ended */
};

static enum has thread_has_file(pid_t pid, const char *thread, dev_t dev, ino_t ino)
{
	enum has answer = HAS_NOTHING;
	struct folder f;
	const char *name;
	char path[96];
	struct stat st;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/fd", (int)pid, thread);
	if (!folder_open(&f, path))
		return HAS_NOTHING;
	while ((name = folder_next(&f))) {
		answer = HAS_NOT;
		if (fstatat(f.fd, name, &st, 0) == 0 && st.st_ino == ino &&
		    st.st_dev == dev) {
			folder_stop(&f);
			return HAS;
		}
	}
	return answer;
}

/* The first thread may have ended before the others; those share their descriptors. */
bool procfs_has_file(pid_t pid, dev_t dev, ino_t ino)
{
	struct folder threads;
	const char *name;
	char path[64];

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	if (!folder_open(&threads, path))
		return false;
	while ((name = folder_next(&threads))) {
		enum has answer = thread_has_file(pid, name, dev, ino);

		if (answer == HAS_NOTHING)
			continue;
		folder_stop(&threads);
		return answer == HAS;
	}
	return false;
}

/* ---- many ---- */

/* The numbers of a `children` file, which is read in pieces. */
static bool each_number(int fd, pid_t pid, procfs_fn fn)
{
	char buf[4096];
	pid_t number = 0;
	ssize_t n;

	while ((n = read(fd, buf, sizeof(buf))) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] >= '0' && buf[i] <= '9') {
				number = number * 10 + (buf[i] - '0');
			} else if (number) {
				fn(number, pid);
				number = 0;
			}
		}
	}
	return n == 0;
}

static int open_children(pid_t pid, const char *thread)
{
	char path[96];

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%s/children", (int)pid, thread);
	return open(path, O_RDONLY | O_CLOEXEC);
}

int procfs_open_own_children(void)
{
	char thread[16];

	(void)snprintf(thread, sizeof(thread), "%d", (int)getpid());
	return open_children(getpid(), thread);
}

bool procfs_own_children(int fd, procfs_fn fn)
{
	return lseek(fd, 0, SEEK_SET) == 0 && each_number(fd, getpid(), fn);
}

static bool children_of_thread(pid_t pid, const char *thread, procfs_fn fn)
{
	int fd = open_children(pid, thread);

	if (fd < 0)
		return false;
	(void)each_number(fd, pid, fn);
	(void)close(fd);
	return true;
}

bool procfs_children(pid_t pid, procfs_fn fn)
{
	struct folder f;
	const char *name;
	char path[64];
	bool is_any = false;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	if (!folder_open(&f, path))
		return false;
	while ((name = folder_next(&f)))
		is_any |= children_of_thread(pid, name, fn);
	return is_any;
}

bool procfs_all(procfs_fn fn)
{
	struct procfs_stat st;
	struct folder f;
	const char *name;

	if (!folder_open(&f, "/proc"))
		return false;
	while ((name = folder_next(&f))) {
		pid_t pid = (pid_t)strtol(name, NULL, 10);

		if (procfs_stat(pid, &st))
			fn(pid, st.parent);
	}
	return true;
}
