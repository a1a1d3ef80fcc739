/* SPDX-License-Identifier: MIT */
/* request.c - what hosts ask for. Each gets one reply: most at once, some when it is done. */
#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "shim/shim.h"
#include "shim/tree.h"

/* Beyond this a clock that counts milliseconds in 64 bits could overflow. */
#define FOREVER_MS (INT64_MAX / 4)

/* At once. */
typedef enum proto_result request_fn(struct shim *s, const struct proto_request *q,
				     struct proto_reply *r);

static enum proto_result kill_tree(struct shim *s, const struct proto_request *q,
				   struct proto_reply *r)
{
	(void)r;
	if (q->flags & PROTO_KILL_DISCARD)
		s->is_discarded = true;
	shim_handle(s, EV_KILL);
	return PROTO_DONE;
}

/* The main process is a child and unreaped: its number is nobody else's. */
static enum proto_result send_signal(struct shim *s, const struct proto_request *q,
				     struct proto_reply *r)
{
	struct tree_scope tree = {.group = s->record.pid, .pipe_fd = -1};

	(void)r;
	if (q->value < 1 || q->value > 64)
		return PROTO_BAD_VALUE;
	if (s->is_main_gone)
		return PROTO_HAS_ENDED;
	if (q->flags & PROTO_SIGNAL_TREE)
		tree_signal(&tree, (int)q->value);
	else if (kill(s->record.pid, (int)q->value) != 0)
		return errno == EPERM ? PROTO_NOT_ALLOWED : PROTO_BAD_VALUE;
	s->record.signals |= 1ull << (q->value - 1);
	(void)shim_record_write(s);
	return PROTO_DONE;
}

static enum proto_result resize(struct shim *s, const struct proto_request *q,
				struct proto_reply *r)
{
	(void)s, (void)q, (void)r;
	return PROTO_NO_TERMINAL;
}

static enum proto_result extend(struct shim *s, const struct proto_request *q,
				struct proto_reply *r)
{
	(void)r;
	if (q->value < 0 || q->value > FOREVER_MS)
		return PROTO_BAD_VALUE;
	if (s->is_main_gone)
		return PROTO_HAS_ENDED;
	if (s->is_kill_asked)
		return PROTO_IS_ENDING;
	s->deadline_ms = q->value ? clock_mono_ms() + q->value : INT64_MAX;
	s->record.deadline_ms = q->value ? s->deadline_ms - s->started_mono_ms : 0;
	(void)shim_record_write(s);
	return PROTO_DONE;
}

static enum proto_result list(struct shim *s, const struct proto_request *q,
			      struct proto_reply *r)
{
	(void)q;
	shim_list(s, r);
	return (enum proto_result)r->result;
}

static void answer(struct shim *s, unsigned slot, const struct proto_request *q,
		   request_fn *fn)
{
	struct proto_reply r = {.serial = q->serial};

	r.result = fn(s, q, &r);
	shim_hosts_reply(s, slot, &r);
}

/* Answered when it is over (leftovers.c). */
static void sweep(struct shim *s, unsigned slot, const struct proto_request *q)
{
	bool is_all = q->flags & PROTO_SWEEP_ALL;
	struct proto_reply refusal = {.serial = q->serial, .result = PROTO_STILL_RUNS};
	struct shim_host *h = &s->hosts[slot];

	if (h->is_sweeping)
		refusal.result = PROTO_BUSY;
	if (h->is_sweeping || (s->record.state != PROTO_ENDED && s->state != DRAINING)) {
		shim_hosts_reply(s, slot, &refusal);
		return;
	}
	h->is_sweeping = true;
	h->sweep_serial = q->serial;
	h->sweep_found = shim_count_for_sweep(s, is_all);
	shim_handle(s, is_all ? EV_SWEEP_ALL : EV_KILL);
}

void shim_request(struct shim *s, unsigned slot, const struct proto_packet *p)
{
	static request_fn *const at_once[] = {
		[PROTO_MSG_KILL] = kill_tree, [PROTO_MSG_SIGNAL] = send_signal,
		[PROTO_MSG_RESIZE] = resize,  [PROTO_MSG_EXTEND] = extend,
		[PROTO_MSG_LIST] = list,
	};

	if (!proto_is_request(p->type))
		return; /* what a newer host has to say */
	if (p->type == PROTO_MSG_INPUT)
		shim_input(s, slot, &p->request);
	else if (p->type == PROTO_MSG_SWEEP)
		sweep(s, slot, &p->request);
	else
		answer(s, slot, &p->request, at_once[p->type]);
}
