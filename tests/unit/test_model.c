/* SPDX-License-Identifier: MIT */
/*
 * Random schedules against a model of the leases and of who is told of an end.
 *
 * Streams write bytes of which none is like another. After each schedule everything is settled and returned, and
 * what was delivered must hold: each byte was delivered, in order within a delivery, and
 * twice only if something was returned; each end was reported, or told by a notice that is
 * pending or was taken; and no end got two notices.
 */
#include "core.h"

#define MAX_TASKS_HERE 4
#define MAX_HELD 16
#define STEPS 60
#define MAX_BYTES 90 /* each of its own, so that a piece of text has one place */

static uint32_t seed;

static uint32_t roll(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static struct held {
	errand_lease lease;
	char text[512];
	struct work *work;
} held[MAX_HELD];
static size_t held_count;

static struct fate {
	struct work *work;
	bool is_over;
	bool delivered[MAX_BYTES];
	bool returned_once; /* some lease of it came back */
	bool was_notified, was_killed;
} fates[MAX_TASKS_HERE];
static size_t fate_count;

static struct fate *fate_of(const struct work *w)
{
	for (size_t i = 0; i < fate_count; i++)
		if (fates[i].work == w)
			return &fates[i];
	fail();
	return fates;
}

static void new_task(void)
{
	if (fate_count == MAX_TASKS_HERE)
		return;
	memset(&fates[fate_count], 0, sizeof(fates[0]));
	fates[fate_count++].work = start(core.alice, STREAM);
}

static struct fate *any(void)
{
	return fate_count ? &fates[roll((uint32_t)fate_count)] : NULL;
}

static void write_some(struct fate *f)
{
	char byte[2] = {0};

	for (uint32_t n = roll(5); n > 0 && f->work->len < MAX_BYTES && !f->is_over; n--) {
		byte[0] = (char)('!' + f->work->len);
		emit(f->work, byte);
	}
}

/* Every byte is named by its place: find where @text begins. */
static void deliver(struct fate *f, const char *text)
{
	const char *at = text[0] ? strstr(f->work->text, text) : NULL;
	size_t from;

	if (!text[0])
		return;
	CHECK(at != NULL);
	from = (size_t)(at - f->work->text);
	for (size_t i = 0; text[i]; i++) {
		CHECK(!f->delivered[from + i] || f->returned_once);
		f->delivered[from + i] = true;
	}
}

static void read_some(struct fate *f)
{
	struct held *h = &held[held_count];
	errand_text *t = NULL;

	if (held_count == MAX_HELD)
		return;
	CHECK_INT(errand_read(core.host, f->work->id, ERRAND_NUL, core.alice, &h->lease, &t,
			      NULL),
		  0);
	(void)snprintf(h->text, sizeof(h->text), "%s", member(text_of(t), "text"));
	h->work = f->work;
	held_count += h->lease != 0;
}

static void on_waited(void *ud, errand_host *host, errand_lease l,
		      const char *snapshot_json, size_t len, const errand_error *e)
{
	struct held *h = &held[held_count];

	(void)host;
	(void)snapshot_json;
	(void)len;
	(void)e;
	if (l == 0)
		return;
	if (held_count == MAX_HELD) {
		fate_of(ud)->returned_once = true;
		CHECK_INT(errand_lease_return(core.host, l), 0);
		return;
	}
	*h = (struct held){.lease = l, .work = ud};
	held_count++;
}

static void wait_some(struct fate *f, errand_signal s)
{
	(void)!errand_wait(core.host, f->work->id, ERRAND_NUL, core.alice, "5", 1, s,
			   on_waited, f->work, NULL, NULL);
}

static void end_lease(bool is_delivered)
{
	struct held h;
	uint32_t i;

	if (held_count == 0)
		return;
	i = roll((uint32_t)held_count);
	h = held[i];
	held[i] = held[--held_count];
	if (is_delivered) {
		deliver(fate_of(h.work), h.text);
		CHECK_INT(errand_lease_commit(core.host, h.lease), 0);
	} else {
		fate_of(h.work)->returned_once = true;
		CHECK_INT(errand_lease_return(core.host, h.lease), 0);
	}
}

static void finish(struct fate *f)
{
	if (f->is_over)
		return;
	f->is_over = true;
	settle(f->work, ERRAND_COMPLETED, NULL, NULL);
}

static void kill_some(struct fate *f)
{
	f->was_killed = true;
	CHECK_INT(errand_kill(core.host, f->work->id, ERRAND_NUL, core.alice, NULL, 0, NULL,
			      NULL),
		  0);
}

static void step(errand_signal *s)
{
	struct fate *f = any();

	switch (f ? roll(11) : 0) {
	case 0:
		new_task();
		break;
	case 1:
	case 2:
		write_some(f);
		break;
	case 3:
		read_some(f);
		break;
	case 4:
		wait_some(f, *s);
		break;
	case 5:
		CHECK_INT(errand_abort(core.host, *s), 0);
		CHECK_INT(errand_signal_new(core.host, s), 0);
		break;
	case 6:
		finish(f);
		break;
	case 7:
		if (roll(4) == 0)
			kill_some(f);
		break;
	case 8:
		end_lease(true);
		break;
	case 9:
		end_lease(false);
		break;
	default:
		pass(roll(4));
	}
}

/* Read to the end, with every lease given back or delivered before. */
static void drain(struct fate *f)
{
	errand_lease l = 0;
	errand_text *t = NULL;

	CHECK_INT(errand_read(core.host, f->work->id, ERRAND_NUL, core.alice, &l, &t, NULL),
		  0);
	deliver(f, member(text_of(t), "text"));
	for (size_t i = 0; i < f->work->len; i++)
		CHECK(f->delivered[i]);
	CHECK_INT(errand_lease_commit(core.host, l), 0);
}

static void check_told(const struct fate *f, const char *pending)
{
	char mark[96];
	int told;

	(void)snprintf(mark, sizeof(mark), "\"task\":\"%s\"", f->work->id);
	told = times(pending, mark);
	CHECK(told <= 1);
	CHECK(told == 1 || is_reported(f->work));
	if (f->was_killed)
		CHECK(is_reported(f->work));
}

static void schedule(void)
{
	static char pending[sizeof(core.shown)];
	errand_signal s = 0;

	core.works = 0;
	fate_count = held_count = 0;
	CHECK_INT(errand_signal_new(core.host, &s), 0);
	for (int i = 0; i < STEPS; i++)
		step(&s);
	for (size_t i = 0; i < fate_count; i++)
		finish(&fates[i]);
	run();
	while (held_count > 0)
		end_lease(roll(2) == 0);
	run();
	(void)snprintf(pending, sizeof(pending), "%s", inbox(core.alice));
	for (size_t i = 0; i < fate_count; i++)
		check_told(&fates[i], pending);
	for (size_t i = 0; i < fate_count; i++)
		drain(&fates[i]);
}

TEST(d6_no_schedule_loses_a_byte_or_an_end_or_tells_one_twice)
{
	const char *wanted = getenv("SCHEDULES");
	int schedules = wanted ? (int)strtol(wanted, NULL, 10) : 3000;

	for (int n = 0; n < schedules; n++) {
		fresh();
		seed = (uint32_t)n + 1;
		schedule();
	}
}
