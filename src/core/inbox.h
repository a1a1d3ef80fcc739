/* SPDX-License-Identifier: MIT */
/* inbox.h - the messages of an agent that are pending, or claimed (spec 7). */
#pragma once

#include "base/json.h"
#include "core/agent.h"

struct message {
	struct name name; /* its id */
	struct str id;
	struct list node;
	int target;        /* ERRAND_NEXT_* */
	uint64_t seq;      /* order of arrival */
	bool is_claimed;   /* on a lease, not in the inbox */
	bool was_returned; /* by a lease, to the front */
	bool is_logged;    /* as taken by the step that is about to begin */
	bool is_user;      /* written by a user: refills the budget of wakes */
	bool is_notice;
	errand_task task; /* of a notice */
	struct str json;  /* as errand_inbox() shows it */
};

/* To the end of list m->target; @m is taken only if the answer is 0. EREFUSED, or the log's ECALLBACK. */
int inbox_add(errand_host *h, struct agent *a, struct message *m, errand_error **ret_err);
/* Discard both lists. ECALLBACK: the log refused; what it had taken is discarded. */
int inbox_cancel(errand_host *h, struct agent *a, errand_error **ret_err);
void inbox_cancel_anyway(errand_host *h,
			 struct agent *a);           /* a log that refuses: a warning */
void inbox_release(errand_host *h, struct agent *a); /* unlogged and silent: it goes */
void inbox_give_back(errand_host *h, struct agent *a, struct list *messages);
void message_free(errand_host *h, struct message *m);
struct str message_new_id(errand_host *h, const struct agent *a);
int message_parse(errand_host *h, const struct agent *a, struct js_span text,
		  struct message **ret, errand_error **ret_err);
/* One that we have written, so that it may be the notice of a task: @text, parsed as @j. What
 * was taken once is not measured again. EREFUSED: it is none, or is pending already. */
int message_read(errand_host *h, struct agent *a, const struct js *j, struct js_span text,
		 struct message **ret);
void message_id_seen(errand_host *h, const struct message *m); /* not to be made again */
void message_named(struct message *m); /* its id is set: fill its name */
/* To the end of its list, and no more than that. */
void inbox_put(struct agent *a, struct message *m);
void inbox_forget(errand_host *h, struct agent *a, struct message *m); /* frees it */
/* Before @before, or to the end. */
void inbox_move(struct agent *a, struct message *m, struct message *before);
size_t inbox_index(const struct inbox *box, const struct list *node);
void messages_put(struct buf *out, const struct list *messages); /* with commas between */
/* @more: further members, each with a comma before it; NULL: none. */
void inbox_announce(errand_host *h, const struct agent *a, const char *word,
		    const struct message *m, const struct buf *more, bool at_once);
static inline struct inbox *inbox_of(struct agent *a, int target)
{
	return &a->inbox[target - ERRAND_NEXT_STEP];
}
