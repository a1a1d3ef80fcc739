/* SPDX-License-Identifier: MIT */
#include "run/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "run/screen.h"

/* Where nothing can be watched, how often is looked. */
#define LOOK_MS 200
/* A folder that is gone by other ways than its files may not be told. */
#define LOOK_AGAIN_MS 2000

/* ---- out ---- */

static int write_all(int fd, const char *bytes, size_t len, struct err *err)
{
	while (len > 0) {
		ssize_t n = write(fd, bytes, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return err_sys(err, errno, "cannot write the output");
		bytes += n;
		len -= (size_t)n;
	}
	return 0;
}

struct copy {
	const struct follow *f;
	uint64_t line; /* the one that comes next, from 1 on */
	bool is_in_line;
	bool has_told_stop;
};

static int write_text(const struct copy *c, const char *text, size_t len, struct err *err)
{
	autobuf struct buf shown = BUF_INIT(2 * READER_PART_MAX);

	if (!c->f->is_screen)
		return write_all(c->f->out_fd, text, len, err);
	screen_show_bidi(&shown, text, len);
	return write_all(c->f->out_fd, buf_text(&shown), shown.len, err);
}

static bool wants_line(const struct copy *c)
{
	return !c->f->first_line ||
	       (c->line >= c->f->first_line && c->line <= c->f->last_line);
}

static bool is_past(const struct copy *c)
{
	return c->f->first_line && c->line > c->f->last_line;
}

static int put(struct copy *c, const char *text, size_t len, struct err *err)
{
	int rc = 0;

	if (!c->f->first_line) {
		if (len)
			c->is_in_line = text[len - 1] != '\n';
		return write_text(c, text, len, err);
	}
	while (len > 0 && rc == 0 && !is_past(c)) {
		const char *end = memchr(text, '\n', len);
		size_t n = end ? (size_t)(end - text) + 1 : len;

		if (wants_line(c)) {
			rc = write_text(c, text, n, err);
			c->is_in_line = !end;
		}
		c->line += end != NULL;
		text += n;
		len -= n;
	}
	return rc;
}

/* A line of our own, `[what: why]`. */
static int put_word(struct copy *c, const struct reader *r, const char *what, int errnum,
		    struct err *err)
{
	bool is_raw = r->mode == READER_RAW;
	autobuf struct buf text = BUF_INIT(KIB(1));

	buf_addf(&text, "%s[%s", c->is_in_line && !is_raw ? "\n" : "", what);
	if (errnum)
		buf_addf(&text, ": %s", strerror(errnum));
	buf_adds(&text, "]\n");
	c->is_in_line = c->is_in_line && is_raw;
	return write_all(is_raw ? STDERR_FILENO : c->f->out_fd, text.data, text.len, err);
}

/* What is missing at the end of a log that has stopped is missing for that reason. */
static int put_gap(struct copy *c, const struct reader *r, const struct reader_part *part,
		   struct err *err)
{
	bool is_end = part->is_last && part->from == part->to;
	char what[64];

	(void)snprintf(what, sizeof(what), "%" PRIu64 " bytes dropped", part->dropped);
	return put_word(c, r, what, is_end ? r->log_errno : 0, err);
}

/* While its task lives nobody knows how many these are. */
static int tell_stop(struct copy *c, const struct reader *r, struct err *err)
{
	if (!r->log_errno || c->has_told_stop)
		return 0;
	c->has_told_stop = true;
	return put_word(c, r, "no more output is kept", r->log_errno, err);
}

/* ---- in ---- */

/* 1: there may be more at once; 0: not now; *@ret_last: never. */
static int copy_part(struct copy *c, struct reader *r, struct buf *scratch, bool *ret_last,
		     struct err *err)
{
	struct reader_part part;
	int rc, more;

	buf_clear(scratch);
	more = reader_read(r, scratch, &part, err);
	if (more < 0)
		return more;
	rc = part.dropped ? put_gap(c, r, &part, err) : 0;
	if (rc == 0)
		rc = put(c, buf_text(scratch), scratch->len, err);
	*ret_last = part.is_last || is_past(c);
	return rc < 0 ? rc : more && !*ret_last;
}

static int watch(const struct reader *r)
{
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	char path[32];

	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d", r->folder_fd);
	if (fd >= 0 &&
	    inotify_add_watch(fd, path,
			      IN_MODIFY | IN_CREATE | IN_DELETE | IN_DELETE_SELF) < 0) {
		close(fd);
		fd = -1;
	}
	return fd;
}

/* Whoever reads may have gone: a task that is silent now would never let a write find out. */
static int wait_for_more(int watch_fd, int out_fd, struct err *err)
{
	struct pollfd p[] = {{.fd = watch_fd, .events = POLLIN}, {.fd = out_fd}};
	char events[KIB(4)];

	(void)poll(p, 2, watch_fd < 0 ? LOOK_MS : LOOK_AGAIN_MS);
	if (p[1].revents & POLLERR) { /* of a terminal the signal is only on its way */
		(void)raise(p[1].revents & POLLHUP ? SIGHUP : SIGPIPE);
		return err_sys(err, EPIPE, "cannot write the output");
	}
	while (watch_fd >= 0 && read(watch_fd, events, sizeof(events)) > 0)
		;
	return 0;
}

/* What stands there of a line that is not finished. */
static int copy_rest(struct copy *c, struct reader *r, struct buf *scratch, struct err *err)
{
	int rc;

	buf_clear(scratch);
	rc = reader_rest(r, scratch, err);
	return rc < 0 ? rc : put(c, buf_text(scratch), scratch->len, err);
}

int follow(struct reader *r, const struct follow *f, struct err *err)
{
	autobuf struct buf scratch = BUF_INIT(READER_PART_MAX);
	/* Before the first look: what comes in between is told. */
	autoclose int watch_fd = f->is_following ? watch(r) : -1;
	struct copy c = {.f = f, .line = 1};
	bool is_last = false;
	int rc;

	for (;;) {
		rc = copy_part(&c, r, &scratch, &is_last, err);
		if (rc < 0 || is_last)
			return rc < 0 ? rc : 0;
		if (rc > 0)
			continue;
		if (!f->is_following)
			rc = copy_rest(&c, r, &scratch, err);
		if (rc == 0)
			rc = tell_stop(&c, r, err);
		if (rc == 0 && f->is_following)
			rc = wait_for_more(watch_fd, f->out_fd, err);
		if (rc < 0 || !f->is_following)
			return rc;
	}
}
