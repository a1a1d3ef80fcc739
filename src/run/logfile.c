/* SPDX-License-Identifier: MIT */
/*
 * logfile.c - reading a task's log while its shim writes it.
 *
 * Nothing is kept open between calls: a host may have thousands of tasks. Files may vanish
 * under the reader (the oldest segment goes, a person deletes them): what is not there any
 * more is a gap, which the caller is told.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "run/internal.h"

/* One file of the log: the bytes from @start to @end. */
struct piece {
	uint64_t start, end;
	char path[PROTO_UID_LEN + 32];
};

static bool look_at(const struct run_task *t, const char *name, uint64_t start,
		    struct piece *ret)
{
	struct stat st;

	ret->start = start;
	(void)snprintf(ret->path, sizeof(ret->path), "%s/%s", t->uid, name);
	if (fstatat(t->run->tasks_fd, ret->path, &st, AT_SYMLINK_NOFOLLOW) != 0 ||
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

/*
 * The segment that holds offset @at, else the next one after it. With @at UINT64_MAX,
 * the last one.
 */
static bool find_segment(const struct run_task *t, uint64_t at, struct piece *ret)
{
	int fd = openat(t->run->tasks_fd, t->uid,
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
		if (!segment_start(e->d_name, &start) || !look_at(t, e->d_name, start, &p))
			continue;
		if (at == UINT64_MAX ? is_found && p.start < ret->start
				     : p.end <= at || (is_found && p.start > ret->start))
			continue;
		*ret = p;
		is_found = true;
	}
	(void)closedir(dir);
	return is_found;
}

static bool find_piece(const struct run_task *t, uint64_t at, struct piece *ret)
{
	bool is_head = look_at(t, PROTO_OUT, 0, ret);

	if (is_head && ret->end > at)
		return true;
	/* There is a tail only behind a full front. */
	if (is_head && ret->end < t->log_head)
		return false;
	return find_segment(t, at, ret);
}

uint64_t run_log_kept_end(const struct run_task *t)
{
	uint64_t end = 0;
	struct piece p;

	if (t->phase == RUN_PLANNED)
		return 0;
	if (look_at(t, PROTO_OUT, 0, &p))
		end = p.end;
	/* Without its front there may still be a tail. */
	if ((end == 0 || end >= t->log_head) && find_segment(t, UINT64_MAX, &p) &&
	    p.end > end)
		end = p.end;
	return end;
}

uint64_t run_log_end(struct run_task *t)
{
	uint64_t end = run_log_kept_end(t);

	if (t->phase == RUN_ENDED && t->seen > end)
		end = t->seen;
	if (end > t->log_known)
		t->log_known = end;
	return t->log_known;
}

/* Returns the bytes appended, 0 at the end of the file, -1 with errno. */
static ssize_t read_piece(const struct run_task *t, const struct piece *p, uint64_t at,
			  size_t max, struct buf *out)
{
	autoclose int fd = openat(t->run->tasks_fd, p->path,
				  O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
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

int run_log_read(struct run_task *t, uint64_t from, size_t max, struct buf *out,
		 uint64_t *ret_from, struct err *err)
{
	/* Asked first: what comes meanwhile must not look like a gap. */
	uint64_t at = from, end = run_log_end(t);
	int vanished = 0;
	bool is_begun = false;
	struct piece p;

	*ret_from = from;
	while (max && t->phase != RUN_PLANNED && find_piece(t, at, &p)) {
		uint64_t start = p.start > at ? p.start : at;
		ssize_t n;

		if (start > at && is_begun)
			return 0; /* a gap: the next call tells of it */
		n = read_piece(t, &p, start, max, out);
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

uint64_t run_log_missing(struct run_task *t, uint64_t from, uint64_t to)
{
	uint64_t missing = 0;
	struct piece p;

	while (from < to && t->phase != RUN_PLANNED && find_piece(t, from, &p) &&
	       p.start < to) {
		if (p.start > from)
			missing += p.start - from;
		from = p.end;
	}
	return from < to ? missing + (to - from) : missing;
}

const char *run_log_path(struct run_task *t)
{
	struct buf path = BUF_INIT(KIB(64));
	struct piece p;

	if (t->phase == RUN_PLANNED || !look_at(t, PROTO_OUT, 0, &p) ||
	    p.end != run_log_end(t))
		return NULL;
	if (!t->log_path) {
		buf_addf(&path, "%s/%s/%s", t->run->tasks_path, t->uid, PROTO_OUT);
		t->log_path = buf_take(&path, NULL);
	}
	return t->log_path;
}
