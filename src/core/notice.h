/* SPDX-License-Identifier: MIT */
/* notice.h - what a notice of an end says (spec 6.3-6.6). */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "core/oneline.h"

void notice_put_text(struct buf *out, const struct task_line *t, uint64_t limit);
/* One line of at most 120 UTF-16 units. @out is empty before. */
void notice_put_summary(struct buf *out, const struct task_line *t);
