/* SPDX-License-Identifier: MIT */
/*
 * surrogate.h - half a surrogate pair in JSON. JavaScript has such strings and writes the half
 * as an escape; there is no UTF-8 for it.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Put \ufffd in place of each, which is as long. False: there was none. */
bool surrogate_replace_halves(char *json, size_t len);
