/* SPDX-License-Identifier: MIT */
/*
 * peer.h - the programs that are measured, all behind one face.
 *
 * MCP servers are asked through the tools bash, task_output and task_kill; task-spooler by
 * running its command, as a person would. A peer that answers wrongly ends the bench.
 */
#pragma once

#include "bench.h"

struct peer;

/* @argv on pipes, after its handshake. */
struct peer *peer_mcp(char *const argv[]);
/* NULL: it is not installed. Its files and its socket are in @folder. */
struct peer *peer_tsp(const char *folder);
/* NULL is fine. */
void peer_close(struct peer *p);
/* Of the server; 0: it is started by each command. */
pid_t peer_pid(const struct peer *p);

/* The task's number. @command without quotation marks and backslashes. */
int peer_start(struct peer *p, const char *command);
/* What it says when the task has ended; until the next call. */
const char *peer_wait(struct peer *p, int task);
/* Dies unless the task has ended with exit code 0. */
void peer_wait_ok(struct peer *p, int task);
/* Of an MCP server: ask as peer_wait_ok() does, and leave the answer for peer_take_end_ok(). */
void peer_ask_end(struct peer *p, int task);
void peer_take_end_ok(struct peer *p);
/* Without waiting. NULL: it cannot. */
const char *peer_read(struct peer *p, int task);
void peer_kill(struct peer *p, int task);
/* One call of any tool; only of an MCP server. */
const char *peer_call(struct peer *p, const char *tool, const char *arguments);
/* @count tasks that run `true`, @at_once of them in flight, each waited for. */
void peer_run_many(struct peer *p, int count, int at_once);
