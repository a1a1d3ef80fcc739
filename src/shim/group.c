/* SPDX-License-Identifier: MIT */
/*
 * group.c - the control group that holds a task within its limits, if its host has made one.
 *
 * The shim stays outside: what ends the task for its memory is not to end who records that.
 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "shim/shim.h"

bool shim_group_open(struct shim *s, int *ret_procs)
{
	*ret_procs = -1;
	if (s->groups_fd < 0)
		return true;
	s->group_fd = openat(s->groups_fd, s->spec.uid,
			     O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->group_fd < 0)
		return true;
	*ret_procs = openat(s->group_fd, "cgroup.procs", O_WRONLY | O_CLOEXEC);
	return *ret_procs >= 0;
}

/* The number behind @key at the beginning of a line of @file; 0: there is none. */
static uint64_t number_in(const struct shim *s, const char *file, const char *key)
{
	int fd = openat(s->group_fd, file, O_RDONLY | O_CLOEXEC);
	char text[1024];
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	size_t len = strlen(key);

	if (fd >= 0)
		(void)close(fd);
	text[n > 0 ? n : 0] = 0;
	for (char *at = text; *at; at = strchr(at, '\n') + 1) {
		if (strncmp(at, key, len) == 0)
			return strtoull(at + len, NULL, 10);
		if (!strchr(at, '\n'))
			break;
	}
	return 0;
}

void shim_group_note(struct shim *s)
{
	if (s->group_fd < 0)
		return;
	/* Its own limit is met in its own group; the machine's end of memory only kills there. */
	if (number_in(s, "memory.events", "oom_kill "))
		s->record.memory_hit = number_in(s, "memory.events.local", "oom ")
					       ? number_in(s, "memory.max", "")
					       : PROTO_MACHINE;
	if (number_in(s, "pids.events", "max "))
		s->record.processes_hit = number_in(s, "pids.max", "");
}

/* Whom it has left behind keeps it: then it goes with the run folder. */
void shim_group_remove(const struct shim *s)
{
	if (s->group_fd >= 0)
		(void)unlinkat(s->groups_fd, s->spec.uid, AT_REMOVEDIR);
}
