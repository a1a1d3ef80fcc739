/* SPDX-License-Identifier: MIT */
/*
 * request.c - what a host asks a task's shim for, and what comes back.
 *
 * A request is a packet with a serial; its reply repeats that. They are remembered until
 * then, so that each is answered once whatever becomes of the shim.
 */
#include <signal.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/mem.h"
#include "run/internal.h"

/* A host that waits for answers has few on their way; a shim's socket takes 278. */
#define REQUESTS_MAX 64

struct request {
	struct list node;
	uint32_t serial, type;
	run_answer_fn fn;
	void *ud;
};

/* ---- to the shim ---- */

bool run_tell(const struct run_task *t, const struct proto_packet *p)
{
	uint8_t bytes[PROTO_PACKET_MAX];
	size_t len = proto_put_packet(bytes, p);
	bool is_taken;

	if (t->sock < 0)
		return false;
	is_taken = send(t->sock, bytes, len, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
	run_signal_shim(t, SIGCONT); /* its own task may have stopped it */
	return is_taken;
}

/* Nobody waits for its reply: the end is the answer. */
bool run_tell_kill(struct run_task *t, uint32_t flags)
{
	struct proto_packet p = {.type = PROTO_MSG_KILL, .request = {.flags = flags}};

	if (t->phase == RUN_LIVE)
		run_set_due(t, clock_mono_ms() + REMIND_MS);
	return run_tell(t, &p);
}

static int who_is_there(const struct run_task *t, struct err *err)
{
	if (t->phase == RUN_PLANNED)
		return err_set(err, ERR_STATE, "the task has not started yet");
	if (t->phase == RUN_SILENT)
		return err_set(err, ERR_STATE, "the task's supervisor does not answer");
	if (t->sock < 0)
		return err_set(err, ERR_NOT_FOUND, "the task has ended");
	if (t->n_requests >= REQUESTS_MAX)
		return err_set(
			err, ERR_LIMIT,
			"%d requests to this task wait for their answers: wait for one",
			REQUESTS_MAX);
	return 0;
}

static int ask(struct run_task *t, uint32_t type, struct proto_request q, run_answer_fn fn,
	       void *ud, struct err *err)
{
	struct proto_packet p = {.type = type, .request = q};
	struct request *r;
	int rc = who_is_there(t, err);

	if (rc != 0)
		return rc;
	/* 0 is for what nobody waits for. */
	if (++t->last_serial == 0)
		t->last_serial = 1;
	p.request.serial = t->last_serial;
	if (!run_tell(t, &p))
		return err_set(err, ERR_STATE, "the task's supervisor takes nothing now");
	r = mem_new(NULL, sizeof(*r));
	*r = (struct request){.serial = p.request.serial, .type = type, .fn = fn, .ud = ud};
	list_add(&t->requests, &r->node);
	t->n_requests++;
	return 0;
}

int run_signal(struct run_task *t, int sig, bool is_for_tree, run_answer_fn fn, void *ud,
	       struct err *err)
{
	struct proto_request q = {.flags = is_for_tree ? PROTO_SIGNAL_TREE : 0,
				  .value = sig};

	return ask(t, PROTO_MSG_SIGNAL, q, fn, ud, err);
}

int run_input(struct run_task *t, const void *bytes, size_t len, run_answer_fn fn, void *ud,
	      struct err *err)
{
	struct proto_request q = {.bytes = bytes};

	q.len = len < PROTO_INPUT_MAX ? (uint32_t)len : PROTO_INPUT_MAX;
	return ask(t, PROTO_MSG_INPUT, q, fn, ud, err);
}

int run_close_input(struct run_task *t, run_answer_fn fn, void *ud, struct err *err)
{
	struct proto_request q = {.flags = PROTO_INPUT_CLOSE};

	return ask(t, PROTO_MSG_INPUT, q, fn, ud, err);
}

int run_extend(struct run_task *t, int64_t in_ms, run_answer_fn fn, void *ud,
	       struct err *err)
{
	return ask(t, PROTO_MSG_EXTEND, (struct proto_request){.value = in_ms}, fn, ud,
		   err);
}

int run_sweep(struct run_task *t, bool detached, run_answer_fn fn, void *ud,
	      struct err *err)
{
	struct proto_request q = {.flags = detached ? PROTO_SWEEP_ALL : 0};

	return ask(t, PROTO_MSG_SWEEP, q, fn, ud, err);
}

int run_leftovers(struct run_task *t, run_answer_fn fn, void *ud, struct err *err)
{
	return ask(t, PROTO_MSG_LIST, (struct proto_request){0}, fn, ud, err);
}

/* ---- from the shim ---- */

static const char *const reasons[] = {
	[PROTO_HAS_ENDED] = "the task has ended",
	[PROTO_STILL_RUNS] = "the task has not ended: kill it instead",
	[PROTO_IS_ENDING] = "the task is being ended already",
	[PROTO_NO_STDIN] = "the task was started without an input",
	[PROTO_STDIN_CLOSED] = "the task's input is closed",
	[PROTO_NO_TERMINAL] = "the task has no terminal",
	[PROTO_BUSY] = "the last request of this kind has not been answered yet",
	[PROTO_BAD_VALUE] = "there is no such signal or time",
	[PROTO_NOT_ALLOWED] = "the task has become another user's: the system refuses",
	[PROTO_NOT_COUNTED] =
		"nobody can tell what is left: the supervisor cannot read /proc",
};

static const char *reason_of(uint32_t result)
{
	const char *why = result < sizeof(reasons) / sizeof(reasons[0]) ? reasons[result]
									: NULL;

	return why ? why : "the task's supervisor refuses, for a reason of a later version";
}

static bool is_refused(uint32_t result)
{
	return result != PROTO_DONE && result != PROTO_STDIN_FULL;
}

static void finish(struct run_task *t, struct request *r, const struct run_answer *a)
{
	struct request done = *r;

	list_del(&r->node);
	t->n_requests--;
	mem_free(NULL, r);
	if (done.fn)
		done.fn(done.ud, t, a);
}

static struct request *request_of(struct run_task *t, uint32_t serial)
{
	for (struct list *n = t->requests.next; n != &t->requests; n = n->next) {
		struct request *r = list_entry(n, struct request, node);

		if (r->serial == serial)
			return r;
	}
	return NULL;
}

void run_take_reply(struct run_task *t, const struct proto_reply *reply)
{
	struct request *r = request_of(t, reply->serial);
	struct run_process list[PROTO_LIST_MAX];
	struct run_answer a = {
		.taken = reply->taken,
		.found = reply->found,
		.attached = reply->attached,
		.detached = reply->detached,
		.processes = list,
		.n_processes = reply->n_listed,
	};

	if (!r)
		return;
	if (r->type == PROTO_MSG_EXTEND)
		run_note_due(t);
	if (is_refused(reply->result)) {
		a.rc = -ERR_STATE;
		a.why = reason_of(reply->result);
	}
	for (size_t i = 0; i < a.n_processes; i++)
		list[i] = (struct run_process){
			.pid = reply->listed[i].pid,
			.ticks = reply->listed[i].ticks,
			.is_detached = reply->listed[i].is_detached != 0,
		};
	finish(t, r, &a);
}

static struct request *oldest(struct run_task *t)
{
	return list_is_empty(&t->requests)
		       ? NULL
		       : list_entry(t->requests.next, struct request, node);
}

void run_forget_requests(struct run_task *t)
{
	struct request *r;

	while ((r = oldest(t))) {
		list_del(&r->node);
		mem_free(NULL, r);
	}
	t->n_requests = 0;
}

/* A callback may drop the task. */
void run_fail_requests(struct run *run, uint64_t id, const char *why)
{
	const struct run_answer a = {.rc = -ERR_SYS, .why = why};
	struct run_task *t;
	struct request *r;

	while ((t = map_get(&run->by_id, id)) && (r = oldest(t)))
		finish(t, r, &a);
}

/* ---- shims that are late ---- */

void run_set_due(struct run_task *t, int64_t due_ms)
{
	t->run->n_due -= t->due_ms != INT64_MAX;
	t->due_ms = due_ms;
	t->run->n_due += t->due_ms != INT64_MAX;
}

void run_note_due(struct run_task *t)
{
	struct proto_record record;
	int64_t left;

	if (t->phase != RUN_LIVE || t->is_kill_asked || !run_read_status(t, &record))
		return;
	left = record.started_ms + record.deadline_ms - clock_wall_ms();
	if (record.deadline_ms)
		run_set_due(t, clock_mono_ms() + (left > 0 ? left : 0) + REMIND_MS);
	else
		run_set_due(t, INT64_MAX);
}

/* A running shim does not notice. SIGTERM is a kill, too: one that its task has left no
 * descriptors cannot take this host in, and never hears what it sends. */
void run_remind(struct run_task *t, int64_t mono_ms)
{
	if (t->is_kill_asked)
		run_signal_shim(t, SIGTERM);
	run_signal_shim(t, SIGCONT);
	run_set_due(t, mono_ms + REMIND_MS);
}
