/* SPDX-License-Identifier: MIT */
/* output.c - from the task's pipe into the log. */
#include <errno.h>
#include <unistd.h>

#include "shim/shim.h"

/* The pipe's own size: more would not come at once. */
static char chunk[64 << 10];

/* Then the loop looks at kills and deadlines again. */
#define CHUNKS_PER_TURN 16

/* Whoever reads the log of the living task is told as well why it does not grow. */
static void keep(struct shim *s, size_t len)
{
	bool was_stopped = s->log.error != 0;

	log_write(&s->log, chunk, len);
	if (s->log.error && !was_stopped)
		(void)shim_record_write(s);
}

bool shim_pump(struct shim *s)
{
	for (int i = 0; i < CHUNKS_PER_TURN; i++) {
		ssize_t n = read(s->output_fd, chunk, sizeof(chunk));

		if (n > 0) {
			keep(s, (size_t)n);
			continue;
		}
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return false;
		(void)close(s->output_fd);
		s->output_fd = -1;
		return true;
	}
	return false;
}
