/* SPDX-License-Identifier: MIT */
/* process.c - how a process ended, as a task's end. It looks at numbers only. */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/limits.h"
#include "core/text.h"
#include "errand.h"

static void put_signal(struct buf *out, int sig)
{
	const char *name = sigabbrev_np(sig);

	if (name)
		(void)buf_addf(out, "signal: SIG%s", name);
	else
		(void)buf_addf(out, "signal: %d", sig);
}

int errand_process_outcome(int wait_status, int kill_requested, int64_t timed_out_ms,
			   int *ret_status, errand_text **ret_detail)
{
	bool exited = WIFEXITED(wait_status);
	struct buf b;
	int rc;

	if (!ret_status || !ret_detail || timed_out_ms < 0)
		return ERRAND_EARG;
	if (!exited && !WIFSIGNALED(wait_status))
		return ERRAND_EARG;
	buf_init_try(&b, MAX_DETAIL, NULL);
	if (timed_out_ms > 0)
		(void)buf_addf(&b, "timed out after %lldms", (long long)timed_out_ms);
	else if (exited)
		(void)buf_addf(&b, "exit code: %d", WEXITSTATUS(wait_status));
	else
		put_signal(&b, WTERMSIG(wait_status));
	rc = text_take(&b, ret_detail, NULL);
	if (rc == 0)
		*ret_status = exited && !kill_requested && timed_out_ms == 0
				      ? ERRAND_COMPLETED
				      : ERRAND_KILLED;
	return rc;
}
