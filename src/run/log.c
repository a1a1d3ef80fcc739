/* SPDX-License-Identifier: MIT */
/* log.c - the log of a task, as its host knows it. */
#include "base/err.h"
#include "base/limits.h"
#include "run/internal.h"
#include "run/logfile.h"
#include "run/reader.h"

static struct logfile files_of(const struct run_task *t)
{
	return (struct logfile){t->run->tasks_fd, t->uid, t->log_head};
}

static void look_at_end(struct run_task *t)
{
	struct logfile l = files_of(t);
	uint64_t end = t->phase == RUN_PLANNED ? 0 : logfile_kept_end(&l);

	t->log_kept = end;
	if (t->phase == RUN_ENDED && t->seen > end)
		end = t->seen;
	if (end > t->log_known)
		t->log_known = end;
	t->is_log_final = t->phase == RUN_ENDED && t->is_log_closed;
}

uint64_t run_log_ends(struct run_task *t, uint64_t *ret_kept)
{
	if (!t->is_log_final)
		look_at_end(t);
	*ret_kept = t->log_kept;
	return t->log_known;
}

uint64_t run_log_end(struct run_task *t)
{
	uint64_t kept;

	return run_log_ends(t, &kept);
}

int run_log_read(struct run_task *t, uint64_t from, size_t max, struct buf *out,
		 uint64_t *ret_from, struct err *err)
{
	struct logfile l = files_of(t);
	/* Asked first: what comes meanwhile must not look like a gap. */
	uint64_t end = run_log_end(t);

	*ret_from = from;
	if (t->phase == RUN_PLANNED)
		return 0;
	return logfile_read(&l, from, end, max, out, ret_from, err);
}

uint64_t run_log_missing(struct run_task *t, uint64_t from, uint64_t to)
{
	struct logfile l = files_of(t);

	return logfile_missing(&l, from, to);
}

int run_log_error(const struct run_task *t)
{
	struct proto_record record;

	if (t->phase == RUN_PLANNED || !run_read_status(t, &record))
		return 0;
	return (int)record.log_errno;
}

const char *run_log_path(struct run_task *t)
{
	struct logfile l = files_of(t);
	struct buf path = BUF_INIT(KIB(64));
	uint64_t end = run_log_end(t);

	if (t->phase == RUN_PLANNED || !logfile_is_whole(&l, end))
		return NULL;
	if (!t->log_path) {
		buf_addf(&path, "%s/%s/%s", t->run->tasks_path, t->uid, PROTO_OUT);
		t->log_path = buf_take(&path, NULL);
	}
	return t->log_path;
}

int run_reader(const struct run_task *t, struct reader *r, enum reader_mode mode,
	       struct err *err)
{
	if (t->phase == RUN_PLANNED)
		return err_set(err, ERR_STATE, "the task has not been started yet");
	return reader_open(r, t->run->tasks_fd, t->uid, mode, err);
}
