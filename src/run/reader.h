/* SPDX-License-Identifier: MIT */
/*
 * reader.h - reading a task's log at one's own pace, beside the model's own cursor.
 *
 * A reader is a place in one log and nothing more: no lock and no copy, so neither the shim
 * nor another reader notices it. All it needs is the run folder; shim and host may be gone.
 * reader_read() gives what is there, in parts of bounded size; call it again when the log
 * has grown.
 *
 * However it is split into parts, the raw bytes together are those of the log, and the text
 * is that of one read. For that, text goes line by line: of a line that is not finished,
 * nothing is given before more is there than READER_LINE_MAX, or nothing can follow.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;
struct run_task;

enum reader_mode {
	READER_RAW,      /* the bytes as they are */
	READER_TEXT,     /* for a model or a file: as decode() has it, in whole lines */
	READER_TERMINAL, /* for a person: as decode_terminal() has it, and at once */
};

#define READER_LINE_MAX ((size_t)64 << 10)
/* What a part may need of room in the buffer. */
#define READER_PART_MAX ((size_t)768 << 10)

struct reader {
	int folder_fd;
	enum reader_mode mode;
	uint64_t at;      /* the next byte of the log */
	uint64_t to;      /* UINT64_MAX: the log's end */
	bool is_ended;    /* the task has been seen to be; then */
	uint64_t seen;    /* so many bytes it had printed */
	int log_errno;    /* why its log has stopped; 0: it has not */
	bool is_in_zeros; /* TERMINAL: the last byte was a NUL, and more of them add nothing */
};

/* Bytes [@from, @to) of the log. */
struct reader_part {
	uint64_t from, to;
	uint64_t dropped; /* so many before @from are not there: dropped, or never kept */
	bool is_last;     /* the range ends here, or the log of a task that has ended */
};

/* On the run folder @uid in the folder @dir_fd; from the first byte on. */
int reader_open(struct reader *r, int dir_fd, const char *uid, enum reader_mode mode,
		struct err *err);
/* On the log of @t, which may go before the reader. ERR_STATE: it has not been begun. */
int run_reader(const struct run_task *t, struct reader *r, enum reader_mode mode,
	       struct err *err);
void reader_close(struct reader *r);

/* Go to the last @lines lines of what is there now, or of its part after a gap. */
int reader_tail(struct reader *r, uint64_t lines, struct err *err);
/* Go to @from, and no further than @to. */
void reader_range(struct reader *r, uint64_t from, uint64_t to);

/*
 * Append the next part to @out, which must have room for READER_PART_MAX. 1: there may be
 * more at once. 0: that is all for now, or, if *@ret says so, for good. -ERR_NOT_FOUND: the
 * run folder has been deleted.
 */
int reader_read(struct reader *r, struct buf *out, struct reader_part *ret,
		struct err *err);
/* Append the text of the unfinished line, which stays unread. */
int reader_rest(struct reader *r, struct buf *out, struct err *err);
