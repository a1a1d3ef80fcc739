/* SPDX-License-Identifier: MIT */
/* faulty.h - worlds whose shims live in a system with a fault (faults.c). */
#pragma once

#include "tasks.h"

static inline void put_file(const char *path, const char *text, mode_t mode)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	assert_int_equal(close(fd), 0);
}

/* From now on @fault happens to the shims of @w. */
static inline void world_fault(struct world *w, const char *fault)
{
	char path[128], text[8192];
	struct err err = {0};

	(void)snprintf(path, sizeof(path), "%s/shim", w->folder);
	(void)snprintf(text, sizeof(text),
		       "#!/bin/sh\nERRAND_FAULT='%s' ERRAND_FAULT_MARK=%s/mark exec "
		       "%s/tests/fault/errand-shim-faults\n",
		       fault, w->folder, getenv("ERRAND_BUILD"));
	(void)unlink(path); /* a script that is still being started keeps its text */
	put_file(path, text, 0700);
	run_free(w->run);
	if (run_new(w->folder, path, &w->run, &err) != 0)
		fail_msg("%s", err.msg);
}

/* Has the fault happened? Asking takes the mark away. */
static inline bool has_happened(const struct world *w)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/mark", w->folder);
	return unlink(path) == 0;
}

/* True if nobody holds the lock of the only run folder, or there is no folder. */
static inline bool is_folder_free(const struct world *w)
{
	const char *folder = only_folder(w);
	struct proto_record r;
	char path[4200];
	int fd;

	if (!folder[0])
		return true;
	(void)snprintf(path, sizeof(path), "%s/%s", folder, PROTO_STATUS);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return true;
	if (proto_read_status(fd, &r) != 0)
		r.shim_pid = 0;
	(void)close(fd);
	return !r.shim_pid || !is_alive(r.shim_pid);
}
