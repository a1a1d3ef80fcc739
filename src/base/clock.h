/* SPDX-License-Identifier: MIT */
/* clock.h - the two clocks. Never included by the core: it is told the time. */
#pragma once

#include <stdint.h>

int64_t clock_mono_ms(void); /* never goes back; for deadlines */
int64_t clock_wall_ms(void); /* since the epoch; for display */
