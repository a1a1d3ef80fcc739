/* SPDX-License-Identifier: MIT */
/*
 * recorder.h - every change that a process makes in a run folder, in its order, as a file:
 * a struct change and its bytes, again and again. ERRAND_RECORD in the environment names
 * that file, or recorder_begin(); host and shim may share one.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum change_kind {
	CHANGE_MKDIR = 1,
	CHANGE_CREATE,
	CHANGE_APPEND,
	CHANGE_PUT, /* at an offset */
	CHANGE_BIND,
	CHANGE_UNLINK,
	CHANGE_RMDIR,
};

struct change {
	uint32_t kind, len;
	uint64_t offset;
	char name[48]; /* of the file in its folder */
};

void recorder_begin(const char *path); /* NULL: no more */
/* After it has happened. A path with nothing of a run folder in it is not noted. */
void recorder_note(enum change_kind kind, const char *path);
void recorder_note_fd(enum change_kind kind, int fd, const void *bytes, size_t len,
		      uint64_t offset);
