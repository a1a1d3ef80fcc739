/* SPDX-License-Identifier: MIT */
/*
 * sweep.h - deletes the folders of embedded hosts that have left in good order.
 *
 * Takes time and may meet anything, so it runs on a worker, is bounded, and says nothing.
 */
#pragma once

#include <stdatomic.h>

/* @parent: <state>/embedded. Ends soon after *@stop is set. */
void sweep(const char *parent, const atomic_bool *stop);
