/* SPDX-License-Identifier: MIT */
/*
 * judge.h - an operator's program that is asked before each tool call ([policy] in errand.conf).
 *
 * Each question is a process of its own: one JSON object on its stdin, one on its stdout. What is
 * not a clear answer refuses the call. Nothing waits for it but the call.
 */
#pragma once

struct err;
struct host;
struct judge;

/* Listen before the tool calls of @h, as its configuration says; *@ret is NULL if it names no
 * program. ERR_ARG: the program is not there. */
int judge_new(struct host *h, struct judge **ret, struct err *err)
	__attribute__((warn_unused_result));
/* The loop is about to end: kill what runs, answer nothing any more. NULL is fine. */
void judge_leave(struct judge *j);
/* After loop and core. NULL is fine. */
void judge_free(struct judge *j);
