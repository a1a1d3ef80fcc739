/* SPDX-License-Identifier: MIT */
/* maxima.h - the maxima of one host: those of limits.h, unless options.limits_json says else. */
#pragma once

#include <stddef.h>

#include "core/text.h"

struct maxima {
	size_t args;       /* a call's arguments; a message; a reason */
	size_t label;      /* of a task, and its kind */
	size_t definition; /* a name, a description, a schema, a session id, a filter */
	size_t detail, result;
	size_t json;    /* any other JSON text: holds what is made of args and result */
	size_t nesting; /* levels, in JSON from outside */
	size_t tasks;
};

/* Absent text is the defaults. EJSON; EREFUSED names the limit and its range. */
int maxima_read(const struct mem *m, errand_str limits_json, struct maxima *ret,
		errand_error **ret_err);
