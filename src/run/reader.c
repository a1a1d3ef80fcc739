/* SPDX-License-Identifier: MIT */
#include "run/reader.h"

#include <fcntl.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "run/decode.h"
#include "run/logfile.h"
#include "shim/proto.h"

/* What is read at once; of text, several lines. */
#define CHUNK ((size_t)256 << 10)
/* A raw byte becomes at most so many of text. */
#define GROWTH 3

_Static_assert(CHUNK *GROWTH <= READER_PART_MAX, "a part has room");
_Static_assert(CHUNK > READER_LINE_MAX && READER_LINE_MAX > DECODE_ESCAPE_MAX,
	       "what a line waits for is in the chunk");

static struct logfile files_of(const struct reader *r)
{
	return (struct logfile){r->folder_fd, ".", 0};
}

int reader_open(struct reader *r, int dir_fd, const char *uid, enum reader_mode mode,
		struct err *err)
{
	int fd = openat(dir_fd, uid, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0)
		return err_sys(err, errno, "cannot open the run folder '%.64s'", uid);
	*r = (struct reader){.folder_fd = fd, .mode = mode, .to = UINT64_MAX};
	return 0;
}

void reader_close(struct reader *r)
{
	if (r->folder_fd >= 0)
		(void)close(r->folder_fd);
	r->folder_fd = -1;
}

void reader_range(struct reader *r, uint64_t from, uint64_t to)
{
	r->at = from;
	r->to = to;
	r->is_in_zeros = false;
}

/* ---- where the log ends ---- */

static bool is_deleted(const struct reader *r)
{
	struct stat st;

	return fstat(r->folder_fd, &st) != 0 || st.st_nlink == 0;
}

static int look_for_end(struct reader *r, struct err *err)
{
	autoclose int fd = -1;
	struct proto_record record;

	if (r->is_ended)
		return 0;
	fd = openat(r->folder_fd, PROTO_STATUS,
		    O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0 && is_deleted(r))
		return err_set(err, ERR_NOT_FOUND, "the log has been deleted");
	if (fd < 0 || proto_read_status(fd, &record) != 0)
		return 0; /* its shim is just being born */
	r->log_errno = (int)record.log_errno;
	if (record.state != PROTO_ENDED && record.state != PROTO_VOID)
		return 0;
	r->is_ended = true;
	r->seen = record.bytes_seen;
	return 0;
}

/* Where to stop for now. In this order: what comes meanwhile must not look like a gap. */
static int find_end(struct reader *r, uint64_t *ret, struct err *err)
{
	struct logfile l = files_of(r);
	int rc = look_for_end(r, err);

	if (rc != 0)
		return rc;
	*ret = logfile_kept_end(&l);
	if (r->is_ended && *ret < r->seen)
		*ret = r->seen;
	if (*ret > r->to)
		*ret = r->to;
	return 0;
}

/* ---- one part ---- */

/*
 * A piece is a line, or what its first READER_LINE_MAX bytes come to: nothing in it depends
 * on where the reader happened to stop. Returns the bytes that are used.
 */
static size_t put_lines(struct buf *out, const char *raw, size_t len, bool is_final)
{
	size_t at = 0;

	while (at < len) {
		size_t left = len - at, n = left < READER_LINE_MAX ? left : READER_LINE_MAX;
		const char *end = memchr(raw + at, '\n', n);

		if (end)
			n = (size_t)(end - raw) - at + 1;
		else if (n < READER_LINE_MAX && !is_final)
			break;
		at += decode(out, raw + at, n, !end && n < READER_LINE_MAX, NULL);
	}
	return at;
}

/* A row of NULs is shown once, also if it comes in several parts. */
static size_t put_now(struct reader *r, struct buf *out, const char *raw, size_t len,
		      bool is_final)
{
	size_t at = 0;

	while (r->is_in_zeros && at < len && !raw[at])
		at++;
	at += decode_terminal(out, raw + at, len - at, is_final);
	if (at)
		r->is_in_zeros = !raw[at - 1];
	return at;
}

static size_t put_part(struct reader *r, struct buf *out, const struct buf *raw,
		       bool is_final)
{
	const char *bytes = buf_text(raw);

	switch (r->mode) {
	case READER_RAW:
		(void)buf_add(out, bytes, raw->len);
		return raw->len;
	case READER_TEXT:
		return put_lines(out, bytes, raw->len, is_final);
	case READER_TERMINAL:
		return put_now(r, out, bytes, raw->len, is_final);
	}
	return 0;
}

static bool is_at_end(const struct reader *r, uint64_t at, uint64_t end)
{
	return at >= r->to || (r->is_ended && at >= end);
}

int reader_read(struct reader *r, struct buf *out, struct reader_part *ret, struct err *err)
{
	autobuf struct buf raw = BUF_INIT(CHUNK);
	struct logfile l = files_of(r);
	uint64_t end = 0, from = r->at, there;
	size_t max = CHUNK, used;
	bool is_final;
	int rc = find_end(r, &end, err);

	*ret = (struct reader_part){.from = r->at, .to = r->at};
	if (rc == 0 && buf_room(out) < READER_PART_MAX)
		rc = err_set(err, ERR_LIMIT, "no room for a part of the log");
	if (rc != 0)
		return rc;
	there = end > r->at ? end - r->at : 0;
	if (max > there)
		max = (size_t)there;
	rc = logfile_read(&l, r->at, end, max, &raw, &from, err);
	if (rc != 0)
		return rc;
	/* Nothing can come to what is followed by an end or by a gap, or is all of a log that stopped. */
	is_final = raw.len < max || is_at_end(r, from + raw.len, end) ||
		   (r->log_errno && from + raw.len >= end);
	ret->dropped = from - r->at;
	if (ret->dropped)
		r->is_in_zeros = false;
	used = put_part(r, out, &raw, is_final);
	ret->from = from;
	ret->to = r->at = from + used;
	ret->is_last = is_at_end(r, r->at, end);
	return !ret->is_last && (used || ret->dropped);
}

int reader_rest(struct reader *r, struct buf *out, struct err *err)
{
	autobuf struct buf raw = BUF_INIT(READER_LINE_MAX);
	struct logfile l = files_of(r);
	uint64_t end = 0, from;
	int rc = find_end(r, &end, err);

	if (rc != 0 || r->mode != READER_TEXT || end <= r->at)
		return rc;
	rc = logfile_read(&l, r->at, end, READER_LINE_MAX, &raw, &from, err);
	if (rc == 0 && from == r->at)
		(void)decode(out, buf_text(&raw), raw.len, false, NULL);
	return rc;
}

/* ---- the last lines ---- */

/* Read all of [@from, @to), or less: what is behind the last gap in it. */
static int read_back(const struct logfile *l, uint64_t from, uint64_t to, struct buf *raw,
		     uint64_t *ret_from, struct err *err)
{
	buf_clear(raw);
	*ret_from = to;
	while (from < to) {
		size_t before = raw->len;
		uint64_t start;
		int rc = logfile_read(l, from, to, (size_t)(to - from), raw, &start, err);

		if (rc != 0)
			return rc;
		if (start > from || before == 0) {
			buf_drop(raw, before);
			before = 0;
			*ret_from = start;
		}
		from = start + raw->len - before;
		if (raw->len == before)
			break;
	}
	return 0;
}

/* The beginning of the last line but *@lines, which counts down. */
static bool find_line(const struct buf *raw, uint64_t from, uint64_t end, uint64_t *lines,
		      uint64_t *ret)
{
	for (size_t i = raw->len; i-- > 0;) {
		*ret = from + i + 1;
		/* The newline at the very end begins no line. */
		if (raw->data[i] == '\n' && *ret < end && --*lines == 0)
			return true;
	}
	return false;
}

int reader_tail(struct reader *r, uint64_t lines, struct err *err)
{
	autobuf struct buf raw = BUF_INIT(CHUNK);
	struct logfile l = files_of(r);
	uint64_t end = logfile_kept_end(&l), at = end, from, line;

	while (lines && at > 0) {
		uint64_t want = at > CHUNK ? at - CHUNK : 0;
		int rc = read_back(&l, want, at, &raw, &from, err);

		if (rc != 0)
			return rc;
		if (find_line(&raw, from, end, &lines, &line)) {
			reader_range(r, line, UINT64_MAX);
			return 0;
		}
		at = from;
		if (from > want)
			break;
	}
	/* In front of a gap, if there is one: it is told that less is there than was wanted. */
	reader_range(r, at ? logfile_kept_before(&l, at) : 0, UINT64_MAX);
	return 0;
}
