/* SPDX-License-Identifier: MIT */
/* version.h - which of two programs is the newer one. */
#pragma once

/* Below 0, 0, above 0: @a is older than @b, the same, newer. By numbers between dots, a missing one
 * is 0; what stands behind the numbers does not count. */
int version_compare(const char *a, const char *b);
