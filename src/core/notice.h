/* SPDX-License-Identifier: MIT */
/* notice.h - what a notice of an end says (spec 6.3-6.6), and when it is due. */
#pragma once

#include <stdint.h>

#include "base/buf.h"
#include "core/oneline.h"
#include "core/reg.h"

struct settings;
struct task;

void notice_put_text(struct buf *out, const struct task_line *t, uint64_t limit);
/* One line of at most 120 UTF-16 units. @out is empty before. */
void notice_put_summary(struct buf *out, const struct task_line *t);

void notice_on_done(errand_host *h, const struct listener *l, const struct dispatch *d);
/* completionDelivery and maxConsecutiveWakes (spec 10.6); 0: quiet. */
int notice_config(errand_host *h, const struct settings *config, int64_t *ret_max_wakes,
		  errand_error **ret_err);
/* It was owed when the journal ended. */
void notice_again(errand_host *h, const struct task *t);
/* A lease on an end was returned: a notice that it held back is due now. */
void notice_due(errand_host *h, const struct task *t);
