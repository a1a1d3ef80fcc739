/* SPDX-License-Identifier: MIT */
/*
 * bash_facts.c - what programs want to know of a task beside the contract's words: numbers
 * where the model reads a line of text. Nothing is said that was not recorded.
 */
#include <errno.h>
#include <string.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/limits.h"
#include "run/bash_internal.h"

static void put_number(struct buf *out, const char *key, uint64_t n)
{
	js_put_key(out, key);
	js_put_int(out, (int64_t)n);
}

static void put_text(struct buf *out, const char *key, const char *text)
{
	js_put_member(out, key, text, strlen(text));
}

/* ---- the output ---- */

static void put_output(struct buf *out, const struct bash_task *t)
{
	uint64_t end = run_log_end(t->run), dropped = run_log_missing(t->run, 0, end), at;
	int error;

	put_number(out, "outputBytes", end);
	if (errand_cursor(t->bash->host, t->task, &at) == 0)
		put_number(out, "unreadBytes", end > at ? end - at : 0);
	if (dropped)
		put_number(out, "droppedBytes", dropped);
	error = t->is_ended ? t->end.log_errno : run_log_error(t->run);
	if (error)
		put_text(out, "logError", strerror(error));
}

/* ---- the end ---- */

static void put_wait_status(struct buf *out, int wait_status)
{
	const char *name = sigabbrev_np(WTERMSIG(wait_status));
	char text[32];

	if (!WIFSIGNALED(wait_status)) {
		put_number(out, "exitCode", (uint64_t)WEXITSTATUS(wait_status));
		return;
	}
	if (name)
		(void)snprintf(text, sizeof(text), "SIG%s", name);
	else
		(void)snprintf(text, sizeof(text), "%d", WTERMSIG(wait_status));
	put_text(out, "signal", text);
}

/* Of a kill that is not complete the main process may be what is left. */
static bool has_wait_status(const struct run_end *end)
{
	return end->cause == RUN_EXIT || end->cause == RUN_SIGNAL ||
	       end->cause == RUN_OOM ||
	       ((end->cause == RUN_KILL || end->cause == RUN_DEADLINE) &&
		!bash_is_incomplete(end));
}

static void put_end(struct buf *out, const struct run_end *end)
{
	static const char *const causes[] = {
		[RUN_EXIT] = "exit",         [RUN_SIGNAL] = "signal",
		[RUN_OOM] = "oom",           [RUN_KILL] = "kill",
		[RUN_DEADLINE] = "deadline", [RUN_NOT_STARTED] = "not-started",
		[RUN_LOST] = "lost",
	};

	put_text(out, "cause", causes[end->cause]);
	if (has_wait_status(end))
		put_wait_status(out, end->wait_status);
	if (end->cause == RUN_NOT_STARTED || end->cause == RUN_LOST)
		return;
	put_number(out, "durationMs", (uint64_t)end->took_ms);
	put_number(out, "cpuMs", end->cpu_us / 1000);
	put_number(out, "peakKiB", end->peak_kib);
	if (end->memory_hit)
		put_number(out, "memoryLimitHit", end->memory_hit);
	if (end->processes_hit)
		put_number(out, "processLimitHit", end->processes_hit);
	if (end->processes_left)
		put_number(out, "processesLeft", end->processes_left);
	if (end->detached_left)
		put_number(out, "detachedLeft", end->detached_left);
}

void bash_facts(const struct bash *b, const char *id, size_t len, struct buf *out)
{
	const struct bash_task *t = bash_find(b, id, len), *equal;

	if (!t)
		return;
	buf_addc(out, '{');
	if (t->is_ended)
		put_end(out, &t->end);
	else
		put_number(out, "ageMs", (uint64_t)(clock_mono_ms() - t->began_ms));
	if (t->reason)
		put_text(out, "killReason", t->reason);
	put_output(out, t);
	equal = t->equal ? map_get(&b->by_number, t->equal) : NULL;
	if (equal && !equal->is_ended)
		put_text(out, "equalTask", equal->id);
	buf_addc(out, '}');
}
