/* SPDX-License-Identifier: MIT */
/*
 * state.h - the state folder, and what a host has of it: all, or a folder of its own in it.
 *
 *      <state>/host.lock                       flock: a daemon lives; holds its pid
 *              host.sock                       its socket
 *              tasks/<uid>/                    run folders
 *      <state>/embedded/<random>/host.lock     flock: its host lives
 *                                tasks/<uid>/  run folders
 *
 * An embedded host that leaves in good order removes host.lock first. So a folder without one is done
 * with, and a later host may delete it; a folder whose host.lock nobody holds is what a
 * crashed host left: a daemon takes over what is in it (import.h).
 */
#pragma once

#include <stdbool.h>

struct err;

/* In a host's folder: locked as long as it lives. */
#define STATE_LOCK "host.lock"

struct state {
	char *path;      /* where the host works: <state>, or <state>/embedded/<random> */
	char *parent;    /* <state>/embedded; NULL: a daemon's */
	char *temporary; /* a private folder that is used because the default one cannot be */
	int lock_fd, folder_fd; /* -1: not open */
};

#define STATE_NONE                                                                         \
	{                                                                                  \
		.lock_fd = -1, .folder_fd = -1                                             \
	}

/* The state folder: @given by --state, else ERRAND_STATE, else state.folder, else the default. Made if need be, and
 * checked: private, and ours. */
int state_folder(const char *given, char **ret_path, int *ret_fd, struct err *err)
	__attribute__((warn_unused_result));
/* The same for whoever only looks: one that is not there is not made. Then @err's errno is ENOENT, and its
 * text names the folder and the next step. */
int state_find(const char *given, char **ret_path, int *ret_fd, struct err *err)
	__attribute__((warn_unused_result));
/* All of it, for a daemon. ERR_STATE: another one has it; the text names its pid. */
int state_open(struct state *ret, const char *given, struct err *err)
	__attribute__((warn_unused_result));
/* Was the folder of a daemon moved away, or another one put in its place? One that was removed was
 * not. What is kept by its path would be kept elsewhere. */
bool state_is_elsewhere(const struct state *s);
/*
 * A folder of its own in it. An explicit state folder that cannot be used is an error with its
 * path; the default one is replaced by a temporary folder.
 */
int state_open_embedded(struct state *ret, const char *given, struct err *err)
	__attribute__((warn_unused_result));
/* Are there folders of other hosts beside ours? */
bool state_has_others(const struct state *s);
/* The host leaves: its folder is free to be deleted from now on. */
void state_disown(struct state *s);
/* Remove what is empty; then release. */
void state_close(struct state *s);
