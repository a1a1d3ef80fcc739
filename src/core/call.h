/* SPDX-License-Identifier: MIT */
/* call.h - one tool call, and the frames of the stage that it is in (spec 9). */
#pragma once

#include "core/agent.h"
#include "core/signal.h"

struct chain;
struct js;
struct lease;
struct policy;
struct tool;

enum frame_state {
	FRAME_OPEN, /* owes an answer, or next() */
	FRAME_NEXT, /* the rest of the chain runs */
	FRAME_BACK, /* has the rest's answer, owes its own */
};

struct frame {
	struct object obj;
	struct call *call;
	enum frame_state state;
	errand_reg reg;
	int64_t rank;
	struct policy *policy; /* from its entry to its answer; NULL of the body */
};

/* The listeners of one stage, as they stood when the call entered it. */
struct chain {
	void (*end)(errand_host *h, struct call *c);  /* all have said next() */
	void (*done)(errand_host *h, struct call *c); /* the answer is there */
	size_t count, entered;
	struct frame frames[];
};

struct call {
	struct object obj;
	struct event ev;
	void (*step)(errand_host *h, struct call *c); /* what ev does next */
	struct agent *agent;                          /* NULL: nobody's */
	struct tool *tool;                            /* as found at entry; NULL: unknown */
	struct list in_agent, in_tool;
	struct signal signal;
	struct timer timer; /* of the tool's own timeout */
	bool timed_out;
	int stage;        /* ERRAND_STAGE_*; 0: before the first */
	int64_t since_ms; /* when it came to where it stands */
	struct chain *chain;
	struct frame frame;  /* of the body */
	struct lease *lease; /* what it has consumed; NULL: nothing */
	struct str tool_name, args;
	struct js *tree; /* of args; NULL: not lossless */
	uint32_t flags;
	int64_t limit; /* captured before its policy; 0: none */
	/* What the stage has been given, later its answer; or what was thrown. */
	struct str answer;
	errand_error *thrown;
	bool is_raw;     /* the body's own answer or error, as yet seen by no back() */
	bool is_wrapped; /* the same in {"value":..}, as yet changed by none */
	/* The outcome. */
	errand_error *error; /* NULL: success */
	struct str content, value;
	struct js *value_tree;       /* value lies in it */
	const struct js *value_node; /* NULL: not parsed yet */
	int (*on_result)(void *ud, errand_host *h, errand_call c, errand_lease l,
			 const char *result_json, size_t len);
	void *ud;
	errand_destroy_fn destroy;
};

/* Run the listeners of @stage that are on the call's chain of scopes now, then @end, which
 * leaves an answer and calls chain_unwind(); when all have had their say, @done. */
void chain_run(errand_host *h, struct call *c, int stage,
	       void (*end)(errand_host *h, struct call *c),
	       void (*done)(errand_host *h, struct call *c));
void chain_unwind(errand_host *h, struct call *c);
void chain_unwrap(errand_host *h, struct call *c); /* makes what is wrapped raw again */
void chain_free(errand_host *h, struct call *c);
bool has_policies(const errand_host *h, const struct call *c, int stage);
void frame_open(errand_host *h, struct frame *f, struct call *c); /* gives it its id */

void call_queue(errand_host *h, struct call *c,
		void (*step)(errand_host *h, struct call *c));
void call_enter(errand_host *h, struct call *c); /* the first step */
void call_timeout(errand_host *h, struct timer *timer);

struct call *call_of_frame(const errand_host *h, errand_frame f);
void call_free(errand_host *h, struct call *c);
struct lease *call_lease(errand_host *h, struct call *c); /* made when first asked for */
void call_answer(errand_host *h, struct call *c, struct buf *json); /* takes @json */
void call_fail(errand_host *h, struct call *c, errand_error *e);    /* takes @e */
void put_text_block(struct buf *out, const char *text, size_t len);
