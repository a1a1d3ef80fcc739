/* SPDX-License-Identifier: MIT */
/* human.h - durations and sizes as people write and read them. */
#pragma once

#include <stdint.h>

#include "base/buf.h"

struct err;

/* "90s", "15m", "2h", "1h30m", "2d", "500ms": whole numbers with units, the largest first. *@ret
 * is above 0. ERR_ARG: a text that says what is allowed. */
int human_read_ms(const char *text, int64_t *ret, struct err *err)
	__attribute__((warn_unused_result));
/* The two largest units: "1h30m", "12s", "3d4h". */
void human_put_ms(struct buf *out, int64_t ms);
/* A wall time as local date and time: "2026-01-31 09:15:00". */
void human_put_time(struct buf *out, int64_t wall_ms);
/* At most four digits or one behind the point: "512", "1.5K", "12M"; a K is 1024. */
void human_put_bytes(struct buf *out, uint64_t bytes);
