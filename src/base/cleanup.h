/* SPDX-License-Identifier: MIT */
/* cleanup.h - locals that free themselves: autofree, autoclose, autobuf. */
#pragma once

#include <stdlib.h>
#include <unistd.h>

#include "base/buf.h"

static inline void cleanup_free(void *p)
{
	free(*(void **)p);
}
static inline void cleanup_close(const int *fd)
{
	if (*fd >= 0)
		(void)close(*fd);
}
static inline int take_fd(int *fd)
{
	int n = *fd;

	*fd = -1;
	return n;
}
#define autofree __attribute__((cleanup(cleanup_free)))
#define autoclose __attribute__((cleanup(cleanup_close)))
#define autobuf __attribute__((cleanup(buf_release)))
/* Hand a pointer on: the local no longer owns it. */
#define take_ptr(pp)                                                                       \
	({                                                                                 \
		__typeof__(*(pp)) taken_ = *(pp);                                          \
		*(pp) = NULL;                                                              \
		taken_;                                                                    \
	})
