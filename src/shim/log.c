/* SPDX-License-Identifier: MIT */
#include "shim/log.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "shim/proto.h"

#define SEGMENT_MIN ((uint64_t)64 << 10)
#define SEGMENTS 8

#define CREATE (O_WRONLY | O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC)

struct name {
	char text[sizeof(PROTO_OUT_TAIL) + 20];
};

static struct name segment_name(uint64_t offset)
{
	struct name n;

	(void)snprintf(n.text, sizeof(n.text), PROTO_OUT_TAIL "%" PRIu64, offset);
	return n;
}

/* At least two segments, so that there is always something in the tail. */
static uint64_t segment_size(uint64_t tail_cap)
{
	uint64_t size = tail_cap / SEGMENTS;

	if (size < SEGMENT_MIN)
		size = SEGMENT_MIN;
	if (size > tail_cap / 2)
		size = tail_cap / 2;
	return size;
}

void log_open(struct log *l, uint64_t head_cap, uint64_t tail_cap)
{
	*l = (struct log){.head_cap = head_cap, .tail_fd = -1};
	l->segment = segment_size(tail_cap);
	l->tail_cap = l->segment ? tail_cap : 0;
	l->tail_first = l->tail_open = head_cap;
	l->head_fd = open(PROTO_OUT, CREATE, 0600);
	if (l->head_fd < 0)
		l->error = errno;
}

static void drop_oldest(struct log *l)
{
	(void)unlink(segment_name(l->tail_first).text);
	l->kept -= l->segment;
	l->tail_first += l->segment;
}

/* False: no room for a segment could be made. */
static bool next_segment(struct log *l)
{
	if (l->tail_fd >= 0) {
		(void)close(l->tail_fd);
		l->tail_open += l->segment;
	}
	l->tail_len = 0;
	while (l->tail_open - l->tail_first + l->segment > l->tail_cap)
		drop_oldest(l);
	l->tail_fd = open(segment_name(l->tail_open).text, CREATE, 0600);
	if (l->tail_fd < 0)
		l->error = errno;
	return l->tail_fd >= 0;
}

/* One write to @fd, for at most @room bytes. Returns what was written. */
static size_t append(struct log *l, int fd, const char *bytes, size_t len, uint64_t room)
{
	ssize_t n = write(fd, bytes, len < room ? len : (size_t)room);

	if (n > 0) {
		l->kept += (uint64_t)n;
		return (size_t)n;
	}
	/* A file takes something or gives a reason: 0 would be asked for ever. */
	if (n == 0 || errno != EINTR)
		l->error = n < 0 ? errno : EIO;
	return 0;
}

static size_t append_tail(struct log *l, const char *bytes, size_t len)
{
	size_t n;

	if ((l->tail_fd < 0 || l->tail_len == l->segment) && !next_segment(l))
		return 0;
	n = append(l, l->tail_fd, bytes, len, l->segment - l->tail_len);
	l->tail_len += n;
	return n;
}

void log_write(struct log *l, const char *bytes, size_t len)
{
	size_t n;

	l->seen += len;
	while (len && !l->error) {
		if (l->head_len < l->head_cap) {
			n = append(l, l->head_fd, bytes, len, l->head_cap - l->head_len);
			l->head_len += n;
		} else if (l->tail_cap) {
			n = append_tail(l, bytes, len);
		} else {
			return;
		}
		bytes += n;
		len -= n;
	}
}

void log_remove(const struct log *l)
{
	(void)unlink(PROTO_OUT);
	if (!l->tail_cap)
		return;
	/* Not all of them need be there, nor one be open: a segment may have failed. */
	for (uint64_t at = l->tail_first; at <= l->tail_open; at += l->segment)
		(void)unlink(segment_name(at).text);
}
