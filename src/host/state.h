/* SPDX-License-Identifier: MIT */
/*
 * state.h - the state folder, and the folder of its own that an embedded host works in.
 *
 *      <state>/embedded/<random>/host.lock     flock: its host lives
 *                                tasks/<uid>/  run folders
 *
 * A host that leaves in good order removes host.lock first. So a folder without one is done
 * with, and a later host may delete it; a folder whose host.lock nobody holds is what a
 * crashed host left: it is not touched here.
 */
#pragma once

#include <stdbool.h>

struct err;

struct state {
	char *path;      /* <state>/embedded/<random> */
	char *parent;    /* <state>/embedded */
	char *temporary; /* a private folder that is used because the default one cannot be */
	int lock_fd;
};

/*
 * Find, make and lock. @given: of --state or ERRAND_STATE, NULL for the default. An explicit
 * folder that cannot be used is an error with its path; the default one is replaced by a
 * temporary folder.
 */
int state_open(struct state *ret, const char *given, struct err *err)
	__attribute__((warn_unused_result));
/* Are there folders of other hosts beside ours? */
bool state_has_others(const struct state *s);
/* The host leaves: its folder is free to be deleted from now on. */
void state_disown(struct state *s);
/* Remove what is empty; then release. */
void state_close(struct state *s);
