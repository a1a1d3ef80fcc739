/* SPDX-License-Identifier: MIT */
/*
 * log.h - the log of a task: its first bytes, its last bytes, and a count of the rest.
 *
 *	out            out.<a>   out.<b>   out.<c>
 *	|---- head ----|  (gone)  |--------|--------|---   -> end of output
 *
 * The files lie in the current folder. The tail is a row of segments of equal size, named
 * by the offset of their first byte; the oldest goes before the tail would pass its cap.
 * A write that fails stops the log for good, never the task: the rest is only counted.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct log {
	int head_fd, tail_fd;
	uint64_t head_cap, tail_cap, segment;
	uint64_t head_len;   /* bytes in `out` */
	uint64_t tail_first; /* offset of the oldest segment */
	uint64_t tail_open;  /* offset of the newest segment */
	uint64_t tail_len;   /* bytes in the newest segment */
	uint64_t seen, kept; /* kept: what is in the files now */
	int error;           /* errno that stopped it, or 0 */
};

/* Creates `out`; if that fails, the log only counts. */
void log_open(struct log *l, uint64_t head_cap, uint64_t tail_cap);
void log_write(struct log *l, const char *bytes, size_t len);
/* Deletes every file of the log. */
void log_remove(const struct log *l);
