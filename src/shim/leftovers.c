/* SPDX-License-Identifier: MIT */
/*
 * leftovers.c - who is meant by a kill or a sweep, and what outlives the main process.
 *
 * Attached is what is in the task's session or has its pipe; detached is the rest of the
 * tree. The shim stays for both. Nothing of it is ended unless somebody asks: a kill of the
 * living task takes all, a sweep the attached ones, and the detached ones only by name.
 */
#include "shim/shim.h"
#include "shim/tree.h"

static struct tree_scope scope_of(const struct shim *s, bool only_attached)
{
	return (struct tree_scope){
		.only_attached = only_attached,
		.session = s->record.pid,
		.group = s->is_main_gone ? 0 : s->record.pid,
		.pipe_fd = s->output_fd,
	};
}

struct tree_scope shim_victims(const struct shim *s)
{
	return scope_of(s, !s->is_kill_asked && !s->is_sweep_all);
}

/* Nobody who is meant is left. Without a /proc the pipe is all that tells of anybody. */
static bool is_gone(const struct shim *s, const struct tree_scope *scope)
{
	struct tree_left left;

	if (s->is_tree_gone)
		return true;
	left = tree_count(scope);
	return left.is_uncounted ? s->output_fd < 0 : left.count == 0;
}

bool shim_is_swept(const struct shim *s)
{
	struct tree_scope scope = shim_victims(s);

	return s->record.state == PROTO_ENDED && !s->is_kill_asked && is_gone(s, &scope);
}

bool shim_is_released(const struct shim *s)
{
	if (s->is_tree_gone)
		return true;
	return s->is_discarded && shim_is_swept(s);
}

void shim_note_left(struct shim *s)
{
	struct tree_scope scope = scope_of(s, !s->is_kill_asked);
	struct tree_left left;

	if (s->is_tree_gone)
		return;
	left = tree_count(&scope);
	s->record.processes_left = left.count;
	s->record.left_pid = left.pid;
	s->record.left_uid = (int32_t)left.uid;
	s->record.detached_left = left.others;
	s->record.detached_pid = left.other_pid;
	if (left.is_uncounted && s->is_kill_asked)
		s->record.flags |= PROTO_NOT_PROVED;
	if (left.count || s->output_fd >= 0)
		s->record.flags |= PROTO_ATTACHED_LEFT;
	if (left.others || left.is_uncounted)
		s->record.flags |= PROTO_OTHERS_LEFT;
}

/* ---- what hosts are told ---- */

static void put_counts(const struct tree_left *left, struct proto_reply *r)
{
	r->attached = left->count;
	r->detached = left->others;
	r->result = left->is_uncounted ? PROTO_NOT_COUNTED : PROTO_DONE;
}

void shim_list(const struct shim *s, struct proto_reply *r)
{
	struct tree_scope attached = scope_of(s, true);
	struct tree_process list[PROTO_LIST_MAX];
	struct tree_left left;

	if (s->is_tree_gone)
		return;
	left = tree_list(&attached, list, PROTO_LIST_MAX);
	put_counts(&left, r);
	for (; r->n_listed < left.count + left.others && r->n_listed < PROTO_LIST_MAX;
	     r->n_listed++) {
		const struct tree_process *p = &list[r->n_listed];

		r->listed[r->n_listed] = (struct proto_process){
			.pid = p->pid, .is_detached = !p->is_in, .ticks = p->ticks};
	}
}

uint32_t shim_count_for_sweep(const struct shim *s, bool is_all)
{
	struct tree_scope scope = scope_of(s, !is_all);

	return s->is_tree_gone ? 0 : tree_count(&scope).count;
}

void shim_answer_sweeps(struct shim *s)
{
	struct tree_scope attached = scope_of(s, true);
	struct proto_reply r = {.result = PROTO_DONE};

	for (unsigned i = 0; i < SHIM_HOSTS; i++) {
		struct shim_host *h = &s->hosts[i];

		if (!h->is_sweeping)
			continue;
		if (!s->is_tree_gone) {
			struct tree_left left = tree_count(&attached);

			put_counts(&left, &r);
		}
		h->is_sweeping = false;
		r.serial = h->sweep_serial;
		r.found = h->sweep_found;
		shim_hosts_reply(s, i, &r);
	}
}
