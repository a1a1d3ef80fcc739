/* SPDX-License-Identifier: MIT */
/* lease.h - what was handed out and is not yet delivered (D6). */
#pragma once

#include "core/object.h"

struct agent;
struct task;

enum hold_kind {
	HOLD_BYTES,
	HOLD_END,
	HOLD_MESSAGES,
};

/* One thing on a lease: it hangs on the lease and on what it is of. */
struct hold {
	struct list in_lease, in_thing;
	enum hold_kind kind;
	struct task *task;
	struct agent *agent;
	uint64_t from;        /* HOLD_BYTES: unread again from here */
	struct list messages; /* HOLD_MESSAGES */
};

struct lease {
	struct object obj;
	struct list holds;
};

struct lease *lease_new(errand_host *h); /* nobody can name it before it is handed out */
errand_lease lease_hand_out(errand_host *h, struct lease *l);
void lease_hold_bytes(errand_host *h, struct lease *l, struct task *t, uint64_t from);
void lease_hold_end(errand_host *h, struct lease *l, struct task *t);
struct hold *lease_hold_messages(errand_host *h, struct lease *l, struct agent *a);
bool lease_is_empty(const struct lease *l);
void lease_commit(errand_host *h, struct lease *l); /* both free it */
void lease_return(errand_host *h, struct lease *l);
void lease_drop(errand_host *h, struct lease *l); /* neither: the host goes */
void lease_merge(errand_host *h, struct lease *into, struct lease *from); /* frees @from */
void hold_free(errand_host *h, struct hold *hd); /* what it held is gone */
