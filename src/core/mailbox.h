/* SPDX-License-Identifier: MIT */
/* mailbox.h - where other threads put what is to be done here. */
#pragma once

#include "core/host.h"

struct post;

/* Other threads see @newest and @is_awake only. */
struct errand_mailbox {
	struct list in_host;
	struct post *newest;
	bool is_awake; /* wake() was called since the last look */
	void (*wake)(void *ud);
	void *ud;
	errand_destroy_fn destroy;
	struct mem mem; /* the mailbox outlives the host */
	struct maxima max;
};

void mailboxes_collect(errand_host *h); /* into the queue */
bool mailboxes_have(const errand_host *h);
void mailboxes_close(errand_host *h);
