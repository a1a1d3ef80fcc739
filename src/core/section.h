/* SPDX-License-Identifier: MIT */
/* section.h - the sections of the prompt: of a layer, and as one agent sees them. */
#pragma once

#include "core/reg.h"

struct agent;

struct section {
	struct reg reg;
	struct layer *layer;
	struct list node;
	struct str name, text;
	double order;
};

int section_add(errand_host *h, struct layer *l, const char *name, double order,
		errand_str text, struct reg **ret, errand_error **ret_err);

/* In order of assembly (spec 8.3); an array to free. @a NULL: nobody. */
const struct section **sections_of(const errand_host *h, const struct agent *a,
				   size_t *ret_count);
