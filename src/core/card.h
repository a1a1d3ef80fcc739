/* SPDX-License-Identifier: MIT */
/* card.h - what a user interface shows of a call of the three tools (spec 4.8). Pure. */
#pragma once

#include "errand.h"

int card_output(void *ud, const char *in_json, size_t len, errand_sink *out,
		errand_error *e);
int card_list(void *ud, const char *in_json, size_t len, errand_sink *out, errand_error *e);
int card_kill(void *ud, const char *in_json, size_t len, errand_sink *out, errand_error *e);
