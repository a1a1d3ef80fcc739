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

/* ---- the end, and after it ---- */

/* What is to go and has not gone is tried on; what only stays is waited for. */
static enum state look_again(struct shim *s)
{
	bool is_released = shim_is_released(s);

	if (shim_is_swept(s))
		s->is_sweep_asked = s->is_sweep_all = false;
	if (!is_released) {
		set_timer(s, s->is_kill_asked || s->is_sweep_asked
				     ? next_pause(s, LOOK_MAX_MS)
				     : -1);
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
	struct tree_scope scope = shim_victims(s);

	tree_kill(&scope);
	return look_again(s);
}

static enum state begin_ended(struct shim *s)
{
	s->pause_ms = LOOK_MS;
	shim_answer_sweeps(s);
	return look_again(s);
}

static enum state begin_stop(struct shim *s)
{
	struct tree_scope scope = shim_victims(s);

	tree_terminate(&scope);
	set_timer(s, s->spec.grace_ms);
	return STOPPING;
}

static enum state sweep_asked(struct shim *s)
{
	s->is_sweep_asked = true;
	return shim_is_swept(s) ? begin_ended(s) : begin_stop(s);
}

/* Those who were not meant until now have their grace as well. */
static enum state sweep_all_asked(struct shim *s)
{
	bool was_meant = s->is_kill_asked || s->is_sweep_all;

	if (s->state != ENDED && was_meant)
		return s->state;
	s->is_sweep_all = true;
	return sweep_asked(s);
}

static enum state finish(struct shim *s)
{
	shim_note_left(s);
	shim_group_note(s);
	shim_announce(s);
	return s->is_sweep_due ? sweep_asked(s) : begin_ended(s);
}

static enum state drain(struct shim *s)
{
	shim_input_close(s); /* a reader that outlives the task sees an end */
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

/* The end that a signal made is whose who had it sent; any other is the task's own. */
static enum proto_cause cause_of_signal(const struct shim *s)
{
	uint64_t bit = 1ull << (WTERMSIG(s->record.wait_status) - 1);

	return s->record.signals & bit ? PROTO_CAUSE_KILL : PROTO_CAUSE_SIGNAL;
}

/* No kill and no deadline: the cause is what the kernel says. */
static enum state main_ended(struct shim *s)
{
	if (child_failed(s->report_fd, &s->names, s->record.why, sizeof(s->record.why)))
		s->record.cause = PROTO_CAUSE_NOT_STARTED;
	else if (WIFSIGNALED(s->record.wait_status))
		s->record.cause = cause_of_signal(s);
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

static enum state sweep_all_asked_late(struct shim *s)
{
	s->is_sweep_all = true;
	return kill_asked_late(s);
}

/* A tree that is being killed is gone; for the first time, or after its record. */
static enum state all_gone(struct shim *s)
{
	if (s->record.state == PROTO_ENDED)
		return begin_ended(s);
	return drain(s);
}

static enum state less_is_left(struct shim *s)
{
	return shim_is_swept(s) ? begin_ended(s) : STOPPING;
}

static enum state kill_incomplete(struct shim *s)
{
	return s->record.state == PROTO_ENDED ? begin_ended(s) : drain(s);
}

static enum state kill_round(struct shim *s)
{
	struct tree_scope scope = shim_victims(s);

	if (shim_is_swept(s))
		return begin_ended(s);
	if (clock_mono_ms() >= s->kill_until_ms)
		return kill_incomplete(s);
	tree_kill_children(&scope);
	set_timer(s, next_pause(s, ROUND_MAX_MS));
	return KILLING;
}

static enum state grace_is_over(struct shim *s)
{
	struct tree_scope scope = shim_victims(s);

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
			[EV_SWEEP_ALL] = stay, /* its request is refused */
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
			[EV_SWEEP_ALL] = sweep_all_asked,
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
			[EV_SWEEP_ALL] = sweep_all_asked,
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
			[EV_SWEEP_ALL] = sweep_all_asked_late,
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
			[EV_SWEEP_ALL] = sweep_all_asked,
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
