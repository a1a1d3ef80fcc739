/* SPDX-License-Identifier: MIT */
/*
 * import.h - tasks that no host looks after: what embedded hosts have left that crashed, and run
 * folders that no row names, since a database was moved aside. A daemon makes them tasks of its own.
 *
 * Each gets a new id; its owner is the session "embedded-<the folder's name>" or "recovered".
 * Its folder is moved before its row is durable: a daemon that dies in between leaves a folder
 * that no row names, and the next one finds it.
 */
#pragma once

struct buf;
struct host;

/* Once, before there are clients. @known: names of run folders that are no longer anybody's, each
 * ended by a NUL. */
void import_all(struct host *h, const struct buf *known);
/* What has crashed since then, as much as the limits on live tasks allow for now. */
void import_more(struct host *h);
