/* SPDX-License-Identifier: MIT */
/* state.c - what happens when: a table of steps, one for each state and event. */
#include <assert.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "shim/child.h"
#include "shim/shim.h"
#include "shim/tree.h"

/* Output that was written before the end has long reached the pipe; what a grandchild
 * writes later must not hold the end up. */
#define DRAIN_MS 250
/* SIGKILL needs no time: what is there after this has something against it. */
#define KILL_BOUND_MS 1500
/* Rounds come with each death anyway; the timer is for what slips between them. */
#define ROUND_MS 4
#define ROUND_MAX_MS 100
/* How often a process that cannot be killed is tried, and leftovers are looked at. */
#define LOOK_MS 1000
#define LOOK_MAX_MS 30000

typedef enum state step_fn(struct shim *s);

static void set_timer(struct shim *s, int64_t in_ms)
{
	s->timer_ms = in_ms < 0 ? INT64_MAX : clock_mono_ms() + in_ms;
}

/* Twice as long as the time before, up to @max. */
static int64_t next_pause(struct shim *s, int64_t max)
{
	int64_t pause = s->pause_ms;

	s->pause_ms = pause * 2 < max ? pause * 2 : max;
	return pause;
}

static enum state stay(struct shim *s)
{
	return s->state;
}

/* ---- who is meant ---- */

static struct tree_scope scope_of(const struct shim *s, bool only_attached)
{
	return (struct tree_scope){
		.only_attached = only_attached,
		.session = s->record.pid,
		.group = s->is_main_gone ? 0 : s->record.pid,
		.pipe_fd = s->output_fd,
	};
}

/* A kill takes the whole tree; a sweep after the end leaves alone what has cut all ties. */
static struct tree_scope victims(const struct shim *s)
{
	return scope_of(s, !s->is_kill_asked);
}

/* Something that uses the task's session or pipe is left: others go their own way. */
static bool is_attended(const struct shim *s)
{
	struct tree_scope attached = scope_of(s, true);

	if (s->is_tree_gone)
		return false;
	return s->output_fd >= 0 || tree_count(&attached).count > 0;
}

/* ---- the end, and after it ---- */

static enum state look_again(struct shim *s)
{
	if (!s->is_tree_gone && (s->is_kill_asked || is_attended(s))) {
		set_timer(s, next_pause(s, LOOK_MAX_MS));
		return ENDED;
	}
	/* The last words of the last one may have come after its death. */
	if (s->output_fd >= 0)
		(void)shim_pump(s);
	s->is_done = true;
	return ENDED;
}

static enum state ended_timeout(struct shim *s)
{
	struct tree_scope scope = victims(s);

	if (s->is_kill_asked || s->is_sweep_asked)
		tree_kill(&scope);
	return look_again(s);
}

static enum state begin_ended(struct shim *s)
{
	s->pause_ms = LOOK_MS;
	return look_again(s);
}

static enum state begin_stop(struct shim *s)
{
	struct tree_scope scope = victims(s);

	tree_terminate(&scope);
	set_timer(s, s->spec.grace_ms);
	return STOPPING;
}

static enum state sweep_asked(struct shim *s)
{
	s->is_sweep_asked = true;
	return s->is_kill_asked || is_attended(s) ? begin_stop(s) : begin_ended(s);
}

static void note_left(struct shim *s)
{
	struct tree_scope scope = victims(s);
	struct tree_left left;

	if (s->is_tree_gone)
		return;
	left = tree_count(&scope);
	s->record.processes_left = left.count;
	s->record.left_pid = left.pid;
	s->record.left_uid = (int32_t)left.uid;
	if (left.is_uncounted && s->is_kill_asked)
		s->record.flags |= PROTO_NOT_PROVED;
	if (left.count || s->output_fd >= 0)
		s->record.flags |= PROTO_ATTACHED_LEFT;
}

static enum state finish(struct shim *s)
{
	note_left(s);
	shim_announce(s);
	return s->is_sweep_due ? sweep_asked(s) : begin_ended(s);
}

static enum state drain(struct shim *s)
{
	set_timer(s, DRAIN_MS);
	if (s->output_fd < 0 || shim_pump(s))
		return finish(s);
	return DRAINING;
}

static enum state drain_is_over(struct shim *s)
{
	s->record.flags |= PROTO_LOG_CUT_SHORT;
	return finish(s);
}

/* ---- the end of the main process ---- */

/* Nobody asked for it: the cause is what the kernel says. */
static enum state main_ended(struct shim *s)
{
	if (child_failed(s->report_fd, &s->names, s->record.why, sizeof(s->record.why)))
		s->record.cause = PROTO_CAUSE_NOT_STARTED;
	else if (WIFSIGNALED(s->record.wait_status))
		s->record.cause = PROTO_CAUSE_SIGNAL;
	else
		s->record.cause = PROTO_CAUSE_EXIT;
	return drain(s);
}

/* ---- killing ---- */

static enum state kill_asked(struct shim *s)
{
	s->record.cause = PROTO_CAUSE_KILL;
	s->is_kill_asked = true;
	return begin_stop(s);
}

static enum state deadline_passed(struct shim *s)
{
	s->record.cause = PROTO_CAUSE_DEADLINE;
	s->is_kill_asked = true;
	return begin_stop(s);
}

/* Asked while the end is being recorded: it is for what outlives that. */
static enum state kill_asked_late(struct shim *s)
{
	s->is_sweep_due = true;
	return DRAINING;
}

/* A tree that is being killed is gone; for the first time, or after its record. */
static enum state all_gone(struct shim *s)
{
	if (s->record.state == PROTO_ENDED)
		return begin_ended(s);
	return drain(s);
}

/* A sweep is over when nothing is attached any more. */
static bool is_swept(const struct shim *s)
{
	return s->record.state == PROTO_ENDED && !s->is_kill_asked && !is_attended(s);
}

static enum state less_is_left(struct shim *s)
{
	return is_swept(s) ? begin_ended(s) : STOPPING;
}

static enum state kill_incomplete(struct shim *s)
{
	return s->record.state == PROTO_ENDED ? begin_ended(s) : drain(s);
}

static enum state kill_round(struct shim *s)
{
	struct tree_scope scope = victims(s);

	if (is_swept(s))
		return begin_ended(s);
	if (clock_mono_ms() >= s->kill_until_ms)
		return kill_incomplete(s);
	tree_kill_children(&scope);
	set_timer(s, next_pause(s, ROUND_MAX_MS));
	return KILLING;
}

static enum state grace_is_over(struct shim *s)
{
	struct tree_scope scope = victims(s);

	s->kill_until_ms = clock_mono_ms() + KILL_BOUND_MS;
	s->pause_ms = ROUND_MS;
	tree_kill(&scope);
	set_timer(s, ROUND_MS);
	return KILLING;
}

static enum state orphans_came_up(struct shim *s)
{
	s->pause_ms = ROUND_MS;
	return kill_round(s);
}

static step_fn *const table[N_STATES][N_EVENTS] = {
	[RUNNING] =
		{
			[EV_MAIN_GONE] = main_ended,
			[EV_REAPED] = stay,
			[EV_TREE_GONE] = stay,  /* the main process went first */
			[EV_OUTPUT_END] = stay, /* it closed its output and goes on */
			[EV_TIMEOUT] = stay,
			[EV_DEADLINE] = deadline_passed,
			[EV_KILL] = kill_asked,
		},
	[STOPPING] =
		{
			[EV_MAIN_GONE] = stay, /* the tree is to end, not only its root */
			[EV_REAPED] = less_is_left,
			[EV_TREE_GONE] = all_gone,
			[EV_OUTPUT_END] = less_is_left,
			[EV_TIMEOUT] = grace_is_over,
			[EV_DEADLINE] = stay,
			[EV_KILL] = stay,
		},
	[KILLING] =
		{
			[EV_MAIN_GONE] = stay,
			[EV_REAPED] = orphans_came_up,
			[EV_TREE_GONE] = all_gone,
			[EV_OUTPUT_END] = kill_round,
			[EV_TIMEOUT] = kill_round,
			[EV_DEADLINE] = stay,
			[EV_KILL] = stay,
		},
	[DRAINING] =
		{
			[EV_MAIN_GONE] = stay,
			[EV_REAPED] = stay,
			[EV_TREE_GONE] = stay, /* then the pipe has its end as well */
			[EV_OUTPUT_END] = finish,
			[EV_TIMEOUT] = drain_is_over,
			[EV_DEADLINE] = stay,
			[EV_KILL] = kill_asked_late,
		},
	[ENDED] =
		{
			[EV_MAIN_GONE] = stay,
			[EV_REAPED] = stay,
			[EV_TREE_GONE] = look_again,
			[EV_OUTPUT_END] = look_again,
			[EV_TIMEOUT] = ended_timeout,
			[EV_DEADLINE] = stay,
			[EV_KILL] = sweep_asked,
		},
};

bool shim_knows(enum state state, enum event ev)
{
	return table[state][ev] != NULL;
}

void shim_handle(struct shim *s, enum event ev)
{
	step_fn *step = table[s->state][ev];

	assert(step);
	s->state = step(s);
}
