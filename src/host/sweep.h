/* SPDX-License-Identifier: MIT */
/*
 * sweep.h - deletes the folders of embedded hosts that have left in good order.
 *
 * Takes time and may meet anything, so it runs on a worker, is bounded, and says nothing.
 */
#pragma once

#include <stdatomic.h>

/* The run folder @uid in @tasks_fd, unless a shim is there. */
void sweep_task(int tasks_fd, const char *uid);
/* @parent: <state>/embedded. Ends soon after *@stop is set. */
void sweep(const char *parent, const atomic_bool *stop);
