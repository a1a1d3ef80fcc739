/* SPDX-License-Identifier: MIT */
/* log.h - events into a session's log (spec 7.2). */
#pragma once

#include "core/agent.h"

/* One change of one of an agent's lists, as its log has it (spec 7.2). */
struct splice {
	int target;
	size_t start, removed;
	const struct list *inserted; /* NULL: none */
	bool is_canceled;
	bool may_fail; /* there is a caller to be told that memory is short */
};

/* `{"seq":N,"type":"<type>","data":{`; the caller adds members. Only if a->log is there. */
void log_begin(const struct agent *a, struct buf *event, const char *type);
/* Append it and release @event. ECALLBACK: the log refused. */
int log_end(errand_host *h, struct agent *a, struct buf *event, errand_error **ret_err);
int log_append(errand_host *h, struct agent *a, struct buf *event, errand_error **ret_err);
int log_splice(errand_host *h, struct agent *a, const struct splice *s,
	       errand_error **ret_err);
/* It refused what had to happen all the same: that the inbox was @what. Frees @e. */
void log_warn(errand_host *h, const struct agent *a, const char *what, errand_error *e);
const char *target_word(int target);
