/* SPDX-License-Identifier: MIT */
/* journal.h - durable facts, as they become true. */
#pragma once

#include "core/object.h"

struct agent;
struct kind;
struct message;
struct task;

/* Each tells one fact, if somebody keeps a journal. */
void journal_agent(errand_host *h, const struct agent *a);
void journal_agent_gone(errand_host *h, const struct agent *a);
void journal_counter(errand_host *h, const struct kind *k);
void journal_task(errand_host *h, const struct task *t);    /* all there is to know of it */
void journal_put_task(struct buf *b, const struct task *t); /* its members */
/* "drop", "reported", "noticed" or "told". */
void journal_of_task(errand_host *h, const struct task *t, const char *fact);
void journal_cursor(errand_host *h, const struct task *t);
void journal_message(errand_host *h, const struct agent *a, const struct message *m);
/* @before NULL: to the end of its list. */
void journal_message_moved(errand_host *h, const struct agent *a, const struct message *m,
			   const struct message *before);
void journal_message_gone(errand_host *h, const struct agent *a, const struct message *m);
