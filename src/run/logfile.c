/* SPDX-License-Identifier: MIT */
#include "run/logfile.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "shim/proto.h"

/* One file of the log: the bytes from @start to @end. */
struct piece {
	uint64_t start, end;
	char path[PROTO_UID_LEN + 32];
};

static bool look_at(const struct logfile *l, const char *name, uint64_t start,
		    struct piece *ret)
{
	struct stat st;

	ret->start = start;
	(void)snprintf(ret->path, sizeof(ret->path), "%s/%s", l->folder, name);
	if (fstatat(l->dir_fd, ret->path, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
	    !S_ISREG(st.st_mode))
		return false;
	ret->end = start + (uint64_t)st.st_size;
	return true;
}

/* The offset in a segment's name; false for any other name. */
static bool segment_start(const char *name, uint64_t *ret)
{
	size_t prefix = strlen(PROTO_OUT_TAIL);
	char *end;

	if (strncmp(name, PROTO_OUT_TAIL, prefix) != 0 || name[prefix] < '0' ||
	    name[prefix] > '9')
		return false;
	*ret = strtoull(name + prefix, &end, 10);
	return *end == 0;
}

/* Is @p nearer to what is looked for than @best, which may be NULL? */
typedef bool (*nearer_fn)(const struct piece *p, const struct piece *best, uint64_t at);

static bool find_segment(const struct logfile *l, nearer_fn is_nearer, uint64_t at,
			 struct piece *ret)
{
	int fd = openat(l->dir_fd, l->folder,
			O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	bool is_found = false;
	const struct dirent *e;
	struct piece p;
	uint64_t start;

	if (!dir) {
		if (fd >= 0)
			(void)close(fd);
		return false;
	}
	while ((e = readdir(dir))) {
		if (!segment_start(e->d_name, &start) || !look_at(l, e->d_name, start, &p))
			continue;
		if (!is_nearer(&p, is_found ? ret : NULL, at))
			continue;
		*ret = p;
		is_found = true;
	}
	(void)closedir(dir);
	return is_found;
}

/* The one that holds @at, else the next one after it. */
static bool is_next(const struct piece *p, const struct piece *best, uint64_t at)
{
	return p->end > at && (!best || p->start < best->start);
}

/* The last one that begins before @at. */
static bool is_last_before(const struct piece *p, const struct piece *best, uint64_t at)
{
	return p->start < at && (!best || p->start > best->start);
}

static bool find_piece(const struct logfile *l, uint64_t at, struct piece *ret)
{
	bool is_head = look_at(l, PROTO_OUT, 0, ret);

	if (is_head && ret->end > at)
		return true;
	/* There is a tail only behind a full front. */
	if (is_head && ret->end < l->head)
		return false;
	return find_segment(l, is_next, at, ret);
}

uint64_t logfile_kept_before(const struct logfile *l, uint64_t at)
{
	struct piece p;
	bool is_head = look_at(l, PROTO_OUT, 0, &p);
	uint64_t end = is_head ? p.end : 0;

	/* A tail lies behind a full front only, or where the front has been removed. */
	if ((!is_head || end >= l->head) && find_segment(l, is_last_before, at, &p) &&
	    p.end > end)
		end = p.end;
	return end;
}

uint64_t logfile_kept_end(const struct logfile *l)
{
	return logfile_kept_before(l, UINT64_MAX);
}

bool logfile_is_whole(const struct logfile *l, uint64_t end)
{
	struct piece p;

	return look_at(l, PROTO_OUT, 0, &p) && p.end >= end;
}

/* Returns the bytes appended, 0 at the end of the file, -1 with errno. */
static ssize_t read_piece(const struct logfile *l, const struct piece *p, uint64_t at,
			  size_t max, struct buf *out)
{
	autoclose int fd = openat(l->dir_fd, p->path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint64_t there = p->end - at;
	ssize_t n;

	if (fd < 0)
		return -1;
	if (max > there)
		max = (size_t)there;
	if (buf_reserve(out, max) != 0) {
		errno = ENOMEM;
		return -1;
	}
	n = pread(fd, out->data + out->len, max, (off_t)(at - p->start));
	if (n > 0)
		out->data[out->len += (size_t)n] = 0;
	return n;
}

/* The shim deletes old segments: one that has just gone is no failure, but a gap. */
#define VANISHED_MAX 16

int logfile_read(const struct logfile *l, uint64_t from, uint64_t end, size_t max,
		 struct buf *out, uint64_t *ret_from, struct err *err)
{
	uint64_t at = from;
	int vanished = 0;
	bool is_begun = false;
	struct piece p;

	*ret_from = from;
	while (max && at < end && find_piece(l, at, &p)) {
		uint64_t start = p.start > at ? p.start : at;
		ssize_t n;

		if (start > at && is_begun)
			return 0; /* a gap: the next call tells of it */
		if (start >= end)
			break;
		if (max > end - start)
			max = (size_t)(end - start);
		n = read_piece(l, &p, start, max, out);
		if (n < 0 && (errno != ENOENT || ++vanished > VANISHED_MAX))
			return err_sys(err, errno, "cannot read the log");
		if (n == 0)
			break;
		if (n < 0)
			continue;
		if (!is_begun)
			*ret_from = start;
		is_begun = true;
		at = start + (uint64_t)n;
		max -= (size_t)n;
	}
	if (!is_begun && max && end > from)
		*ret_from = end;
	return 0;
}

uint64_t logfile_missing(const struct logfile *l, uint64_t from, uint64_t to)
{
	uint64_t missing = 0;
	struct piece p;

	while (from < to && find_piece(l, from, &p) && p.start < to) {
		if (p.start > from)
			missing += p.start - from;
		from = p.end;
	}
	return from < to ? missing + (to - from) : missing;
}
