/* SPDX-License-Identifier: MIT */
/* section.h - the sections of the prompt as one agent sees them. */
#pragma once

#include <string.h>

#include "core/internal.h"

/* In order of assembly (spec 8.3); an array to free. @a NULL: nobody. */
const struct section **sections_of(const errand_host *h, const struct agent *a,
				   size_t *ret_count);
