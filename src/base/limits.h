/* SPDX-License-Identifier: MIT */
/*
 * limits.h - every maximum of errand, in one place.
 *
 * A buffer that can grow names one of these when it is made. Sizes that come from
 * outside are compared with them before anything is allocated.
 */
#pragma once

#define KIB(n) ((size_t)(n) << 10)
#define MIB(n) ((size_t)(n) << 20)

/* One request line. The official SDKs close at 10 MiB; we read more than they write. */
#define MAX_REQUEST_LINE MIB(16)
/* One reply line: below the 10 MiB at which official clients hang up. */
#define MAX_REPLY_LINE MIB(8)
/* A request's id, which its reply repeats; a progress token; a version. */
#define MAX_TOKEN KIB(64)
/* Replies that wait for a slow reader. Above it we stop reading requests. */
#define MAX_REPLY_QUEUE MIB(64)
/* Memory from this size on goes back to the system when it is freed: a host lives long, and its
 * largest reply ever is not to stay with it. */
#define LARGE_BLOCK KIB(256)
/* Arguments of one tool call, as JSON text. */
#define MAX_ARGS MIB(16)
/* Levels of arrays and objects; the JSON library's own limit is a little higher. */
#define MAX_JSON_NESTING 1024
/* Levels that we put around what came with so many: a message in an event in a log. */
#define MAX_JSON_ENVELOPE 8
/* `value.text` of a task_output (D17), and one rendered result. */
#define MAX_RESULT MIB(8)
/* One page of a task's output: in a reply it stands twice, and JSON may double each byte. */
#define MAX_PAGE (MAX_REPLY_LINE / 4 - KIB(64))
/* A value, result or message as JSON text: MAX_RESULT with six bytes for each, and what stands
 * around it. */
#define MAX_JSON_TEXT MIB(64)
/* A label, a kind, a detail. */
#define MAX_LABEL MIB(1)
#define MAX_DETAIL KIB(64)
/* What one errand_host will hold. */
#define MAX_TASKS 1000000u
/* A command and its environment, as the kernel bounds them anyway. */
#define MAX_SPEC MIB(8)
/* Text of an error that crosses a boundary. */
#define MAX_ERROR_TEXT MIB(1)
