/* SPDX-License-Identifier: MIT */
#include "host/task_limits.h"

#include "base/buf.h"
#include "host/config.h"

void task_limits(const struct config *c, int64_t ret[RUN_LIMITS])
{
	ret[RUN_MEMORY] = c->task_memory_bytes;
	ret[RUN_PROCESSES] = c->task_processes;
	ret[RUN_CPU] = c->task_cpu_percent;
}

void task_limits_put(const struct config *c, unsigned held, bool is_held, struct buf *out)
{
	static const char *const names[RUN_LIMITS] = {
		[RUN_MEMORY] = "limits.task_memory_bytes",
		[RUN_PROCESSES] = "limits.task_processes",
		[RUN_CPU] = "limits.task_cpu_percent",
	};
	int64_t limits[RUN_LIMITS];

	task_limits(c, limits);
	for (int i = 0; i < RUN_LIMITS; i++)
		if (limits[i] && (held >> i & 1) == is_held)
			buf_addf(out, "%s%s", out->len ? ", " : "", names[i]);
}
