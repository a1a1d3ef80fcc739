/* SPDX-License-Identifier: MIT */
/* task_limits.h - the limits of each task that are set, and those that a host cannot hold. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "run/run.h"

struct buf;
struct config;

void task_limits(const struct config *c, int64_t ret[RUN_LIMITS]);
/* Append the keys of those that are set, and are in @held (bits 1 << RUN_MEMORY ...) or are not,
 * as @is_held says, with commas between. */
void task_limits_put(const struct config *c, unsigned held, bool is_held, struct buf *out);
