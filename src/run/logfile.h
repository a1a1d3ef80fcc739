/* SPDX-License-Identifier: MIT */
/*
 * logfile.h - the files of a task's log, read while its shim writes them.
 *
 * Nothing is kept open between calls: a host may have thousands of tasks. Files may vanish
 * under the reader (the oldest segment goes, a person deletes them): what is not there any
 * more is a gap, which the caller is told. Offsets count every byte the task ever printed.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct buf;
struct err;

struct logfile {
	int dir_fd;         /* borrowed */
	const char *folder; /* the run folder's name in it */
	uint64_t head;      /* where the front is full; 0: not known */
};

/* Behind the last byte that is there; 0: none is. */
uint64_t logfile_kept_end(const struct logfile *l);
/* The same, of what begins before @at. */
uint64_t logfile_kept_before(const struct logfile *l, uint64_t at);
/*
 * Append up to @max bytes of [@from, @end) to @out, up to the next gap. *@ret_from is where
 * they begin: later than @from if what stood there is gone, and @end if nothing is left.
 */
int logfile_read(const struct logfile *l, uint64_t from, uint64_t end, size_t max,
		 struct buf *out, uint64_t *ret_from, struct err *err);
/* Are all bytes up to @end in `out`? */
bool logfile_is_whole(const struct logfile *l, uint64_t end);
/* How many bytes of [@from, @to) are not there. */
uint64_t logfile_missing(const struct logfile *l, uint64_t from, uint64_t to);
