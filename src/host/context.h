/* SPDX-License-Identifier: MIT */
/* context.h - what a client hands on to its tasks: folder, environment, umask, limits. */
#pragma once

#include <stddef.h>
#include <sys/resource.h>

#include "base/limits.h"
#include "run/run.h"

struct buf;
struct err;

/* Of one client: an environment may be large, one above this is refused. */
#define MAX_CONTEXT MIB(4)

struct context {
	struct run_context
		run; /* points into what follows: not to be moved once it is read */
	struct rlimit limits[RLIM_NLIMITS];
	char *cwd;
	char *bytes; /* of the variables; NULL: they are this process's own */
	const char **env;
};

/* What this process was started with. */
void context_take_own(struct context *ret);
/* `cwd NUL variable NUL variable NUL ...`, as context_read() wants it. */
void context_put(struct buf *out, const struct context *c);
/* ERR_FORMAT: it is not of that form. Sets folder and variables only. */
int context_read(struct context *ret, const char *bytes, size_t len, struct err *err)
	__attribute__((warn_unused_result));
/* As far as this process may give it; a shim could not either. */
void context_set_limit(struct context *c, size_t which, struct rlimit limit);
void context_release(struct context *c);
