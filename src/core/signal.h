/* SPDX-License-Identifier: MIT */
/* signal.h - abort signals: raised once. */
#pragma once

#include "core/object.h"

struct signal {
	struct object obj;
	bool raised, is_of_call;
	struct list waiters;
	struct list watches;             /* who is to be told */
	struct list children, in_parent; /* the signals of calls */
	struct signal *next;             /* to be raised, while one above is */
};

void signal_init(errand_host *h, struct signal *s);
void signal_raise(errand_host *h, struct signal *s);
void signal_release(errand_host *h, struct signal *s);
void signal_free(errand_host *h, struct signal *s);
