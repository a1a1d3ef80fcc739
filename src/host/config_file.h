/* SPDX-License-Identifier: MIT */
/* config_file.h - one errand.conf: whether it may be trusted, and what stands in it. */
#pragma once

#include <stdbool.h>

struct err;

/* A line `name = value` below [@section]. With @goes_on, an indented line that continues the one
 * before. 0, or an error that ends the reading; @err then holds what is wrong with the line. */
typedef int (*config_line_fn)(void *ud, const char *section, const char *name,
			      const char *value, unsigned line, bool goes_on,
			      struct err *err);

/*
 * Read @path; no such file is as good as an empty one. It must be a regular file that belongs to
 * root or to us and that nobody else may write. Links are followed. @is_system: not being
 * allowed to look whether there is one is an error, too. Errors begin with the path and, where
 * there is one, the line.
 */
int config_file(const char *path, bool is_system, config_line_fn fn, void *ud,
		struct err *err) __attribute__((warn_unused_result));
