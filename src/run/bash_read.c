/* SPDX-License-Identifier: MIT */
/*
 * bash_read.c - what a reader gets of a command's output (design: text for the model).
 *
 * With a limit: the newest part. If more is unread than fits, the beginning is left out,
 * and two last lines say how many raw bytes that were and where they are. Without one:
 * from the oldest on, as much as fits into a page, and the rest stays unread.
 */
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "run/bash_internal.h"
#include "run/decode.h"

#define TRUNCATED "[output truncated]"
/* Room for what the reply puts behind the text: a status line, a marker. */
#define RESERVE 192
/* At least as long as the line about what was dropped, with a reason. */
#define DROPPED_LINE 128
#define REASON_MAX 64
/* Below it the cutting is the controller's, which sees the whole reply. */
#define LIMIT_MIN 512
/* Looked at to find the newest part: much of it may be escapes and progress. */
#define WINDOW_MIN MIB(1)
#define WINDOW_MAX MIB(64)
#define WINDOW_PER_LIMIT 8
/* A longer path costs more of a small reply than it is worth. */
#define SHOWN_PATH_MAX 160
/* One step of a reader that gets everything. */
#define CHUNK KIB(256)
/* A raw byte becomes at most so many of text. */
#define GROWTH 3

/* The part of the log that is looked at: contiguous, up to the last byte that is kept. */
struct window {
	struct buf raw;
	uint64_t start, end; /* offsets in the log */
	uint64_t lost;       /* behind it: counted, but never kept */
	int error;           /* why the log has stopped, or 0 */
	bool is_final;
};

static int read_failed(errand_error *e, const struct err *err)
{
	errand_error_set(e, NULL, NULL, err->msg, ERRAND_NUL);
	return ERRAND_ECALLBACK;
}

static void begin_line(struct buf *out)
{
	if (out->len && out->data[out->len - 1] != '\n')
		buf_addc(out, '\n');
}

/* @errnum: why, or 0. */
static void put_dropped(struct buf *out, uint64_t bytes, int errnum)
{
	begin_line(out);
	buf_addf(out, "[%llu bytes were dropped", (unsigned long long)bytes);
	if (errnum)
		buf_addf(out, ": %.*s", REASON_MAX, strerror(errnum));
	buf_adds(out, "]\n");
}

/* While the task lives, nobody knows how many these are. */
static void put_stopped(struct buf *out, int errnum)
{
	begin_line(out);
	buf_addf(out, "[no more output is kept: %.*s]\n", REASON_MAX, strerror(errnum));
}

/* Of a living task only its shim's record knows. */
static int log_error(const struct bash_task *t)
{
	return t->is_ended ? t->end.log_errno : run_log_error(t->run);
}

/* What stands behind the last byte that is kept: the log may have stopped before its task. */
static void put_lost(struct buf *out, const struct bash_task *t, const struct window *w)
{
	if (w->lost)
		put_dropped(out, w->lost, w->error);
	else if (w->error && !t->is_ended)
		put_stopped(out, w->error);
}

/* ---- with a limit ---- */

/* Of what has a gap, only the part after it. */
static int fill(const struct bash_task *t, struct window *w, uint64_t end, struct err *err)
{
	for (uint64_t at = w->start; at < end;) {
		size_t before = w->raw.len;
		uint64_t from;
		int rc = run_log_read(t->run, at, (size_t)(end - at), &w->raw, &from, err);

		if (rc != 0)
			return rc;
		if (w->raw.len == before)
			break;
		if (from > at) {
			buf_drop(&w->raw, before);
			before = 0;
			w->start = from;
		}
		at = from + w->raw.len - before;
	}
	w->end = w->start + w->raw.len;
	return 0;
}

/*
 * A window that begins in the middle may begin in the middle of anything. A line's
 * beginning is a safe place; else at least no character is to be split.
 */
static void begin_cleanly(struct window *w)
{
	const char *line = w->raw.len ? memchr(w->raw.data, '\n', w->raw.len / 2) : NULL;
	size_t n = 0;

	if (line)
		n = (size_t)(line - w->raw.data) + 1;
	else
		while (n < w->raw.len && n < 3 && (w->raw.data[n] & 0xc0) == 0x80)
			n++;
	buf_drop(&w->raw, n);
	w->start += n;
}

static int open_window(const struct bash_task *t, uint64_t from, uint64_t limit,
		       struct window *w, struct err *err)
{
	uint64_t kept, end = run_log_ends(t->run, &kept), most = limit * WINDOW_PER_LIMIT;
	int rc;

	if (most < WINDOW_MIN)
		most = WINDOW_MIN;
	if (most > WINDOW_MAX)
		most = WINDOW_MAX;
	buf_init(&w->raw, (size_t)most);
	w->start = from;
	if (kept > from && kept - from > most)
		w->start = kept - most;
	rc = fill(t, w, kept, err);
	if (end > w->end)
		w->lost = end - w->end;
	w->is_final = t->is_ended || w->lost;
	w->error = log_error(t);
	if (rc == 0 && w->start > from)
		begin_cleanly(w);
	return rc;
}

static void put_where(struct buf *out, const struct bash_task *t, uint64_t left_out)
{
	const char *path = run_log_path(t->run);

	buf_addf(out, "[%llu bytes left out; whole output: ", (unsigned long long)left_out);
	if (path && strlen(path) <= SHOWN_PATH_MAX)
		buf_adds(out, path);
	else
		buf_addf(out, "errand logs %s", t->id);
	buf_adds(out, "]\n" TRUNCATED);
}

/* A quarter of the room is not too much for beginning with a whole line. */
static void choose_cut(const struct decode_cut *cut, size_t text_len, size_t room,
		       size_t *ret_raw, size_t *ret_text)
{
	bool is_line = cut->line_text < text_len && cut->line_text - cut->text <= room / 4;

	*ret_raw = is_line ? cut->line_raw : cut->raw;
	*ret_text = is_line ? cut->line_text : cut->text;
}

/* The last lines first, with the largest number that they can hold: they are to fit. */
static size_t room_for_text(const struct bash_task *t, uint64_t from,
			    const struct window *w, size_t limit)
{
	autobuf struct buf lines = BUF_INIT(KIB(1));

	put_where(&lines, t, w->end - from);
	put_dropped(&lines, w->end + w->lost - from, 0);
	put_lost(&lines, t, w);
	return limit - RESERVE > lines.len ? limit - RESERVE - lines.len : 0;
}

/* @text is the whole window's, and too long, or there is more before it. */
static void put_newest(const struct bash_task *t, uint64_t from, const struct window *w,
		       const struct buf *text, size_t limit, struct buf *out)
{
	size_t room = room_for_text(t, from, w, limit), raw = 0, at = 0;
	uint64_t missing, cut_at;
	bool is_in_front;

	if (text->len > room) {
		autobuf struct buf again = BUF_INIT(text->max);
		struct decode_cut cut = {.want = text->len - room};

		(void)decode(&again, buf_text(&w->raw), w->raw.len, w->is_final, &cut);
		choose_cut(&cut, text->len, room, &raw, &at);
	}
	cut_at = w->start + raw;
	missing = run_log_missing(t->run, from, cut_at);
	/* Each where it belongs, if nothing else is left out or there are two of them. */
	is_in_front = missing && (w->lost || missing == cut_at - from);
	if (is_in_front)
		put_dropped(out, missing, 0);
	buf_add(out, buf_text(text) + at, text->len - at);
	put_lost(out, t, w);
	if (missing == cut_at - from)
		return;
	if (missing && !is_in_front)
		put_dropped(out, missing, 0);
	else
		begin_line(out);
	put_where(out, t, cut_at - from - missing);
}

/* As much as a controller can show of it, and not the window's megabyte. */
static void put_tail(struct buf *out, const struct buf *text)
{
	size_t n = utf8_tail(buf_text(text), text->len, LIMIT_MIN * 4);

	buf_add(out, buf_text(text) + text->len - n, n);
}

static void put_limited(const struct bash_task *t, uint64_t from, const struct window *w,
			const struct buf *text, size_t limit, struct buf *out)
{
	size_t behind = RESERVE + (w->lost || w->error ? DROPPED_LINE : 0);

	if (limit >= LIMIT_MIN && (w->start > from || text->len > limit - behind)) {
		put_newest(t, from, w, text, limit, out);
		return;
	}
	if (limit < LIMIT_MIN)
		put_tail(out, text);
	else
		buf_add(out, buf_text(text), text->len);
	put_lost(out, t, w);
}

static int read_limited(const struct bash_task *t, uint64_t from, size_t limit,
			errand_sink *sink, uint64_t *ret_next, errand_error *e)
{
	autobuf struct buf text = BUF_INIT(WINDOW_MAX * GROWTH), out = BUF_INIT(MAX_RESULT);
	struct window w = {0};
	struct err err = {0};
	int rc = open_window(t, from, limit, &w, &err);
	size_t used;

	if (rc == 0) {
		used = decode(&text, buf_text(&w.raw), w.raw.len, w.is_final, NULL);
		put_limited(t, from, &w, &text, limit, &out);
		(void)errand_sink_write(sink, buf_text(&out), out.len);
		*ret_next = w.lost ? w.end + w.lost : w.start + used;
	}
	buf_release(&w.raw);
	return rc == 0 ? 0 : read_failed(e, &err);
}

/* ---- without a limit ---- */

/* A reader of everything: where it stands, and how its last line ended. */
struct page {
	const struct bash_task *task;
	errand_sink *sink;
	uint64_t at;
	size_t room;
	bool is_in_line;
};

static void page_write(struct page *p, const struct buf *text)
{
	(void)errand_sink_write(p->sink, buf_text(text), text->len);
	p->room -= text->len < p->room ? text->len : p->room;
	if (text->len)
		p->is_in_line = text->data[text->len - 1] != '\n';
}

static void page_dropped(struct page *p, uint64_t bytes, int errnum)
{
	autobuf struct buf line = BUF_INIT(KIB(1));

	if (p->is_in_line)
		buf_addc(&line, '\n');
	put_dropped(&line, bytes, errnum);
	page_write(p, &line);
}

/* One step. 1: there is more, 0: that is all for now. */
static int page_step(struct page *p, struct err *err)
{
	size_t max = p->room / GROWTH, used;
	autobuf struct buf raw = BUF_INIT(CHUNK), text = BUF_INIT(CHUNK * GROWTH + 16);
	uint64_t end = run_log_end(p->task->run), from;
	bool is_all;
	int rc;

	if (max > CHUNK)
		max = CHUNK;
	if (p->at >= end || max < RESERVE)
		return 0;
	rc = run_log_read(p->task->run, p->at, max, &raw, &from, err);
	if (rc != 0)
		return rc;
	if (from > p->at) {
		page_dropped(p, from - p->at, from == end ? p->task->end.log_errno : 0);
		p->at = from;
		return 1;
	}
	is_all = from + raw.len >= end;
	/* What still waits after a full step, or in front of a gap, waits for nothing. */
	used = decode(&text, buf_text(&raw), raw.len, is_all && p->task->is_ended, NULL);
	if (used == 0 && !is_all)
		used = decode(&text, buf_text(&raw), raw.len, true, NULL);
	page_write(p, &text);
	p->at += used;
	return used > 0;
}

static void page_stopped(struct page *p)
{
	autobuf struct buf line = BUF_INIT(KIB(1));
	int errnum = p->task->is_ended ? 0 : log_error(p->task);

	if (!errnum || p->at < run_log_end(p->task->run))
		return;
	if (p->is_in_line)
		buf_addc(&line, '\n');
	put_stopped(&line, errnum);
	page_write(p, &line);
}

static int read_page(const struct bash_task *t, uint64_t from, errand_sink *sink,
		     uint64_t *ret_next, errand_error *e)
{
	struct page p = {.task = t, .sink = sink, .at = from};
	struct err err = {0};
	int rc;

	p.room = errand_sink_room(sink);
	if (p.room > MAX_PAGE)
		p.room = MAX_PAGE;
	while ((rc = page_step(&p, &err)) > 0)
		;
	*ret_next = p.at;
	if (rc == 0)
		page_stopped(&p);
	/* What has been written stands; the fault will show again at once. */
	return rc == 0 || p.at > from ? 0 : read_failed(e, &err);
}

int bash_read(void *ud, errand_task task, uint64_t from, errand_sink *out,
	      uint64_t *ret_next, errand_error *e)
{
	const struct bash_task *t = ud;
	uint64_t limit = t->bash->config.output_limit;

	(void)task;
	if (limit == 0)
		return read_page(t, from, out, ret_next, e);
	if (limit > MAX_PAGE)
		limit = MAX_PAGE;
	return read_limited(t, from, (size_t)limit, out, ret_next, e);
}
