/* SPDX-License-Identifier: MIT */
/*
 * journal.h - on top of core.h: a host that keeps a journal, the host that comes back from it,
 * and random schedules that fill it.
 */
#pragma once

#include "core.h"

#define MAX_FACTS 1024

static struct {
	char *facts[MAX_FACTS];
	size_t count;
	const char *refusal; /* adopt refuses with this */
	errand_lease leases[64];
	size_t open;
} j;

static UNUSED void on_fact(void *ud, const char *json, size_t len)
{
	(void)ud;
	CHECK(j.count < MAX_FACTS);
	j.facts[j.count++] = strndup(json, len);
}

static UNUSED void forget_journal(void)
{
	while (j.count > 0)
		free(j.facts[--j.count]);
	memset(&j, 0, sizeof(j));
}

/* A host that keeps a journal, from its first fact on. */
static UNUSED void fresh_journal(void)
{
	forget_journal();
	fixture_journal = on_fact;
	fresh();
	fixture_journal = NULL;
}

static UNUSED char *prefix(size_t n)
{
	struct buf b = BUF_INIT(MIB(1));
	size_t len;

	(void)buf_addc(&b, '[');
	for (size_t i = 0; i < n; i++) {
		(void)buf_adds(&b, i ? "," : "");
		(void)buf_adds(&b, j.facts[i]);
	}
	(void)buf_addc(&b, ']');
	return buf_take(&b, &len);
}

/* ---- the other host ---- */

static UNUSED int adopt(void *ud, errand_host *h, errand_task t, const char *record,
			size_t len, struct errand_producer *ret, errand_error *e)
{
	(void)ud;
	(void)h;
	(void)len;
	for (size_t i = 0; !j.refusal && i < core.works; i++) {
		struct errand_task_spec s;

		if (core.work[i].task != t)
			continue;
		s = spec(0, strstr(record, "\"stream\":true") ? STREAM : FINAL);
		*ret = s.producer;
		ret->ud = &core.work[i];
		return 0;
	}
	errand_error_set(e, NULL, NULL, j.refusal ? j.refusal : "unknown", ERRAND_NUL);
	return ERRAND_ECALLBACK;
}

static UNUSED int restore(const char *json)
{
	errand_error *e = NULL;
	int rc = errand_restore(core.host, json, ERRAND_NUL, adopt, NULL, &e);

	(void)message(e);
	return rc;
}

/* A new host in the place of the old, with @n facts of its journal. */
static UNUSED void reborn(size_t n)
{
	struct errand_host_options o = {
		.size = sizeof(o), .abi = ERRAND_ABI, .warn = on_warn};
	char *json = prefix(n);

	errand_host_free(core.host);
	CHECK_INT(errand_host_new(&o, &core.host, NULL), 0);
	CHECK_INT(restore(json), 0);
	free(json);
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
	core.bob = agent("bob");
	run();
}

static UNUSED void reborn_whole(void)
{
	reborn(j.count);
}

/* All that can be seen of a host: records, bits, cursors, messages, counters. */
static UNUSED char *dump(void)
{
	errand_agent op = operator_agent();
	struct buf b = BUF_INIT(MIB(1));
	errand_text *t = NULL;
	size_t len;

	CHECK_INT(errand_list(core.host, op, &t, NULL), 0);
	(void)buf_adds(&b, text_of(t));
	for (size_t i = 0; i < core.works; i++) {
		errand_lease l = 0;

		if (errand_read(core.host, core.work[i].id, ERRAND_NUL, op, &l, &t, NULL) !=
		    0)
			continue;
		(void)buf_adds(&b, text_of(t));
	}
	(void)buf_adds(&b, inbox(core.alice));
	(void)buf_adds(&b, inbox(core.bob));
	CHECK_INT(errand_agent_dispose(core.host, op, NULL, NULL, NULL, NULL), 0);
	run();
	return buf_take(&b, &len);
}

/* ---- any schedule ---- */

static uint32_t seed;
/* How many tasks a schedule starts at most, with those that are there. */
static UNUSED size_t most_works = 8;
/* Called after each of its steps; may be NULL. */
static UNUSED void (*after_step)(void);

static UNUSED unsigned roll(unsigned n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 16) % n;
}

static UNUSED errand_agent someone(void)
{
	return roll(2) ? core.alice : core.bob;
}

static struct work *some_work(void)
{
	return core.works ? &core.work[roll((unsigned)core.works)] : NULL;
}

static UNUSED void keep_lease(errand_lease l)
{
	if (l != 0)
		j.leases[j.open++] = l;
}

static UNUSED void end_lease(void)
{
	errand_lease l;
	size_t i;

	if (j.open == 0)
		return;
	i = roll((unsigned)j.open);
	l = j.leases[i];
	j.leases[i] = j.leases[--j.open];
	(void)(roll(2) ? errand_lease_commit(core.host, l)
		       : errand_lease_return(core.host, l));
}

static UNUSED void do_start(void)
{
	if (core.works < most_works)
		(void)start(roll(5) ? someone() : 0, roll(2) ? STREAM : FINAL);
}

static UNUSED void do_settle(void)
{
	const struct work *w = some_work();

	if (w)
		(void)errand_settle(core.host, w->task, ERRAND_COMPLETED, "d", 1, "out", 3);
}

static UNUSED void do_emit(void)
{
	struct work *w = some_work();

	if (w && w->len < 400)
		emit(w, "line\n");
}

static UNUSED void do_kill(void)
{
	const struct work *w = some_work();

	if (!w || roll(3))
		return;
	if (errand_kill(core.host, w->id, ERRAND_NUL, someone(), NULL, 0, NULL, NULL) != 0)
		return;
}

static UNUSED void do_read(void)
{
	const struct work *w = some_work();
	errand_text *t = NULL;
	errand_lease l = 0;

	if (!w || j.open >= 60)
		return;
	if (errand_read(core.host, w->id, ERRAND_NUL, someone(), &l, &t, NULL) == 0)
		keep_lease(l);
	errand_text_free(t);
}

static UNUSED void do_claim(void)
{
	errand_text *t = NULL;
	errand_lease l = 0;

	if (j.open >= 60)
		return;
	CHECK_INT(errand_claim(core.host, someone(), 1 + (int)roll(3), 0, &l, &t, NULL), 0);
	errand_text_free(t);
	keep_lease(l);
}

static UNUSED void do_insert(void)
{
	static const char json[] = "{\"role\":\"user\",\"content\":[],\"source\":{\"kind\":"
				   "\"user\"}}";

	CHECK_INT(errand_insert(core.host, someone(), 1 + (int)roll(2), json, ERRAND_NUL,
				NULL, NULL),
		  0);
}

static UNUSED void do_cancel(void)
{
	if (roll(4) == 0)
		CHECK_INT(errand_agent_cancel(core.host, someone(), 0, NULL), 0);
}

static UNUSED void do_drop(void)
{
	const struct work *w = some_work();

	if (w && roll(3) == 0 && errand_task_drop(core.host, w->task, NULL) != 0)
		return;
}

static UNUSED void schedule(void)
{
	static void (*const steps[])(void) = {
		do_start, do_start,  do_settle, do_emit,   do_kill, do_read, do_read,
		do_claim, do_insert, do_cancel, end_lease, do_drop, run,
	};

	for (int i = 0; i < 60; i++) {
		steps[roll(sizeof(steps) / sizeof(steps[0]))]();
		if (after_step)
			after_step();
	}
	while (j.open > 0)
		end_lease();
	run();
}
