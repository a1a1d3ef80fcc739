/* SPDX-License-Identifier: MIT */
/* record.c - the file `status`, which outlives the shim. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "shim/shim.h"

int shim_record_open(struct shim *s)
{
	static const uint8_t nothing[PROTO_RECORD_SIZE];
	struct proto_record old;

	s->status_fd = open(PROTO_STATUS, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (s->status_fd < 0)
		return -ERR_SYS;
	/* Whatever it says: somebody has decided about this folder before. */
	if (proto_read_status(s->status_fd, &old) == 0)
		return -ERR_STATE;
	/* Both pages get their blocks now, so that a full disk cannot eat the end. */
	if (pwrite(s->status_fd, nothing, sizeof(nothing), 0) < 0)
		return -ERR_SYS;
	return shim_record_write(s);
}

int shim_record_write(struct shim *s)
{
	s->record.log_errno = (uint32_t)s->log.error;
	return proto_write_status(s->status_fd, &s->record);
}

void shim_announce(struct shim *s)
{
	struct proto_record *r = &s->record;

	r->state = PROTO_ENDED;
	r->ended_ms = clock_wall_ms();
	r->took_ms = clock_mono_ms() - s->started_mono_ms;
	r->bytes_seen = s->log.seen;
	r->bytes_kept = s->log.kept;
	r->bytes_dropped = s->log.seen - s->log.kept;
	/* A disk that fails now must not hide the end from those who listen. */
	if (s->status_fd >= 0 && shim_record_write(s) == 0)
		(void)fdatasync(s->status_fd);
	shim_hosts_tell_end(s);
}
