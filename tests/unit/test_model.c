/* SPDX-License-Identifier: MIT */
/*
 * Random schedules against a model of the leases, of who is told of an end, and of the turn.
 *
 * Streams write bytes of which none is like another. Alice lies under two scopes, of which one
 * has a mount that wakes; a twin reads in her session, an operator looks on; Bob has the
 * global mount, which is quiet. After each schedule everything is settled and returned, and
 * what was delivered must hold: each byte was delivered, in order within a delivery, and
 * twice only if something was returned; an end is reported if and only if its session killed
 * the task or was shown the end; else it has one notice, which is pending or was taken. Of
 * whom one is pending, that agent is in a turn, or was asked for one, or its user stopped it,
 * or the budget is spent.
 *
 * SCHEDULES says how many, FIRST the first one's number: that of one that failed repeats it.
 */
#include "core.h"

#define MAX_TASKS_HERE 5
#define MAX_HELD 16
#define STEPS 80
#define MAX_BYTES 90 /* each of its own, so that a piece of text has one place */
#define MAX_WAKES 2  /* without a user's message */

enum {
	ALICE,
	BOB,
	TWIN, /* unregistered, of Alice's session */
	OPERATOR,
	N_PEOPLE,
};

static uint32_t seed;
static int number; /* of the schedule that runs; 0: none */

__attribute__((destructor)) static void name_what_failed(void)
{
	if (number)
		print_message("# schedule %d failed\n", number);
}

static uint32_t roll(uint32_t n)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % n;
}

static struct person {
	errand_agent id;
	bool is_gone;
	bool is_asked; /* for a turn, which is not open yet */
	bool is_being_asked;
	bool is_paid;   /* and the wake is counted */
	bool may_sleep; /* the turn was aborted, and nothing has ended since */
	bool was_moved;
	int wakes; /* since a user's message was delivered */
} people[N_PEOPLE];

static errand_scope preset;
static errand_signal signal_;

static struct held {
	errand_lease lease;
	char text[512];
	struct work *work; /* NULL: messages */
	int owner;         /* of those */
	bool has_end, has_user, has_notice;
} held[MAX_HELD];
static size_t held_count;

static struct fate {
	struct work *work;
	int owner;
	bool is_over, is_gone;
	bool delivered[MAX_BYTES];
	bool returned_once; /* some lease of it came back */
	bool was_killed, was_shown;
	int notices; /* inserted ones */
	int taken;   /* and claimed: the next one that is inserted comes back */
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

static struct fate *any(void)
{
	return fate_count ? &fates[roll((uint32_t)fate_count)] : NULL;
}

/* Of the owner's session, or the operator. */
static int reader_of(const struct fate *f)
{
	if (roll(4) == 0)
		return OPERATOR;
	return f->owner == ALICE && roll(2) ? TWIN : f->owner;
}

/* ---- work ---- */

static void new_task(void)
{
	int owner = roll(3) ? ALICE : BOB;

	if (fate_count == MAX_TASKS_HERE || people[owner].is_gone)
		return;
	memset(&fates[fate_count], 0, sizeof(fates[0]));
	fates[fate_count].owner = owner;
	fates[fate_count++].work = start(people[owner].id, STREAM);
}

static void write_some(struct fate *f)
{
	char byte[2] = {0};

	for (uint32_t n = roll(5); n > 0 && f->work->len < MAX_BYTES && !f->is_over; n--) {
		byte[0] = (char)('!' + f->work->len);
		emit(f->work, byte);
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
	int who = reader_of(f);

	if (roll(4) || people[who].is_gone)
		return;
	f->was_killed = f->was_killed || who != OPERATOR;
	CHECK_INT(errand_kill(core.host, f->work->id, ERRAND_NUL, people[who].id, NULL, 0,
			      NULL, NULL),
		  0);
}

/* ---- bytes and ends ---- */

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
	int who = reader_of(f);
	errand_text *t = NULL;
	const char *json;

	if (held_count == MAX_HELD || people[who].is_gone)
		return;
	*h = (struct held){.work = f->work};
	CHECK_INT(errand_read(core.host, f->work->id, ERRAND_NUL, people[who].id, &h->lease,
			      &t, NULL),
		  0);
	json = text_of(t);
	h->has_end = strstr(json, "\"finishedAt\"") != NULL;
	(void)snprintf(h->text, sizeof(h->text), "%s", member(json, "text"));
	CHECK(who != OPERATOR || h->lease == 0);
	held_count += h->lease != 0;
}

static void on_waited(void *ud, errand_host *host, errand_lease l,
		      const char *snapshot_json, size_t len, const errand_error *e)
{
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
	held[held_count++] = (struct held){.lease = l, .work = ud, .has_end = true};
}

static void wait_some(struct fate *f)
{
	int who = reader_of(f);

	if (!people[who].is_gone)
		(void)!errand_wait(core.host, f->work->id, ERRAND_NUL, people[who].id, "5",
				   1, signal_, on_waited, f->work, NULL, NULL);
}

static void abort_waits(void)
{
	CHECK_INT(errand_abort(core.host, signal_), 0);
	CHECK_INT(errand_signal_new(core.host, &signal_), 0);
}

static void end_of_work(const struct held *h, bool is_delivered)
{
	struct fate *f = fate_of(h->work);

	if (is_delivered && !f->is_gone) {
		deliver(f, h->text);
		f->was_shown = f->was_shown || h->has_end;
	}
	f->returned_once = f->returned_once || !is_delivered;
}

static bool has_notice(const struct person *p)
{
	return strstr(inbox(p->id), "\"form\":\"notice\"") != NULL;
}

/* The next run asks for a turn; what comes due before that goes along. */
static void ask_again(struct person *p)
{
	if (!p->may_sleep && has_notice(p) &&
	    errand_agent_state(core.host, p->id) == ERRAND_IDLE)
		p->is_being_asked = true;
}

static void end_lease(bool is_delivered)
{
	struct held h;
	uint32_t i;
	int rc;

	if (held_count == 0)
		return;
	i = roll((uint32_t)held_count);
	h = held[i];
	held[i] = held[--held_count];
	if (h.work)
		end_of_work(&h, is_delivered);
	else if (h.has_user && is_delivered)
		people[h.owner].wakes = 0;
	rc = is_delivered ? errand_lease_commit(core.host, h.lease)
			  : errand_lease_return(core.host, h.lease);
	if (!h.work && !people[h.owner].is_gone && (h.has_notice || h.has_user))
		ask_again(&people[h.owner]);
	CHECK(rc == 0 || rc == ERRAND_EGONE);
	if (rc == ERRAND_EGONE) /* what it held went with its owner */
		CHECK(h.work ? fate_of(h.work)->is_gone : people[h.owner].is_gone);
}

/* ---- inbox and turn ---- */

static void on_wake(void *ud, errand_host *h, errand_agent a)
{
	struct person *p = ud;

	CHECK_INT(errand_agent_state(h, a), ERRAND_IDLE);
	CHECK(has_notice(p) && !p->may_sleep);
	if (!p->is_paid) /* again, for what no turn has taken */
		CHECK(++p->wakes <= MAX_WAKES);
	p->is_paid = false;
	p->is_asked = true;
	p->is_being_asked = false;
}

/* Would the next notice ask for a turn? Where an agent that was moved stood is not known. */
static bool may_wake(const struct person *p)
{
	return !p->was_moved && !p->is_being_asked && p->wakes < MAX_WAKES &&
	       errand_agent_state(core.host, p->id) == ERRAND_IDLE;
}

/* Is its end on a lease? */
static bool is_being_shown(const struct fate *f)
{
	for (size_t i = 0; i < held_count; i++)
		if (held[i].work == f->work && held[i].has_end)
			return true;
	return false;
}

/* Whose notice this is. */
static struct fate *fate_in(const char *json)
{
	char id[80];

	for (size_t i = 0; i < fate_count; i++) {
		(void)snprintf(id, sizeof(id), "\"task\":\"%s\"", fates[i].work->id);
		if (strstr(json, id))
			return &fates[i];
	}
	fail();
	return fates;
}

/* A notice on its way: one for each end, and what wakes has a budget. */
static int on_inbox(void *ud, errand_host *h, errand_reg self, errand_agent owner,
		    const char *json, size_t len, errand_error *e)
{
	struct fate *f;

	(void)ud;
	(void)self;
	(void)len;
	(void)e;
	if (!strstr(json, "\"form\":\"notice\""))
		return 0;
	f = fate_in(json);
	CHECK(people[f->owner].id == owner);
	if (strstr(json, "\"event\":\"claimed\""))
		f->taken++;
	if (!strstr(json, "\"event\":\"inserted\""))
		return 0;
	if (f->taken > 0) { /* given back */
		f->taken--;
		return 0;
	}
	CHECK_INT(++f->notices, 1);
	CHECK(f->is_over && !f->was_killed && !is_being_shown(f));
	if (errand_agent_state(h, owner) == ERRAND_IDLE)
		people[f->owner].may_sleep = false;
	if (!strstr(json, "\"target\":\"next-turn\"")) {
		CHECK(f->owner == BOB || !may_wake(&people[ALICE]));
		return 0;
	}
	CHECK_INT(f->owner, ALICE); /* Bob's mount is quiet */
	people[ALICE].is_being_asked = people[ALICE].is_paid = true;
	CHECK_INT(errand_agent_state(h, owner), ERRAND_IDLE);
	CHECK(++people[ALICE].wakes <= MAX_WAKES);
	return 0;
}

static void say_some(struct person *p)
{
	static const char text[] = "{\"content\":[],\"source\":{\"kind\":\"user\"}}";

	CHECK_INT(errand_insert(core.host, p->id, 1 + (int)roll(2), text, ERRAND_NUL, NULL,
				NULL),
		  0);
}

static errand_lease claim_some(const struct person *p, struct held *ret)
{
	errand_text *t = NULL;
	const char *json;

	CHECK_INT(
		errand_claim(core.host, p->id, 1 + (int)roll(3), 0, &ret->lease, &t, NULL),
		0);
	json = text_of(t);
	ret->has_user = strstr(json, "\"kind\":\"user\"") != NULL;
	ret->has_notice = strstr(json, "\"form\":\"notice\"") != NULL;
	return ret->lease;
}

static void take_some(int who)
{
	struct held *h = &held[held_count];

	if (held_count == MAX_HELD)
		return;
	*h = (struct held){.owner = who};
	held_count += claim_some(&people[who], h) != 0;
}

static void begin_step(struct person *p)
{
	struct held h = {.owner = 0};
	errand_lease l = claim_some(p, &h);
	int rc = errand_step_begin(core.host, p->id, l, NULL);

	if (rc == 0 && h.has_user)
		p->wakes = 0;
	if (rc == ERRAND_ESTATE && l) {
		CHECK_INT(errand_step_reject(core.host, p->id, l, NULL), ERRAND_ESTATE);
		CHECK_INT(errand_lease_return(core.host, l), 0);
		ask_again(p);
	}
	CHECK(rc == 0 || rc == ERRAND_ESTATE);
}

static void close_turn(struct person *p)
{
	static const char *const reasons[] = {"{\"kind\":\"aborted\"}",
					      "{\"kind\":\"completed\"}",
					      "{\"kind\":\"blocked\"}"};
	uint32_t which = roll(3);
	int rc = errand_turn_close(core.host, p->id, reasons[which], ERRAND_NUL, NULL);

	CHECK(rc == 0 || rc == ERRAND_ESTATE);
	if (rc != 0)
		return;
	p->may_sleep = which == 0;
	ask_again(p);
}

static void turn_some(int who)
{
	struct person *p = &people[who];
	int before = errand_agent_state(core.host, p->id), rc = 0;

	switch (roll(5)) {
	case 0:
		rc = errand_turn_open(core.host, p->id, NULL, NULL);
		CHECK_INT(rc, before == ERRAND_IDLE ? 0 : ERRAND_ESTATE);
		p->is_asked = p->is_asked && rc != 0;
		break;
	case 1:
		begin_step(p);
		break;
	case 2:
		rc = errand_step_end(core.host, p->id, NULL, NULL);
		CHECK(rc == 0 || rc == ERRAND_ESTATE);
		break;
	case 3:
		close_turn(p);
		break;
	default:
		say_some(p);
	}
}

/* ---- scopes, and the end of an owner ---- */

static void move(void)
{
	if (people[ALICE].is_gone || roll(4))
		return;
	people[ALICE].was_moved = true;
	CHECK_INT(errand_agent_rebind(core.host, people[ALICE].id, roll(3) ? preset : 0,
				      NULL),
		  0);
}

static void dispose(int who)
{
	if (roll(12))
		return;
	CHECK_INT(errand_agent_dispose(core.host, people[who].id, NULL, NULL, NULL, NULL),
		  0);
	people[who].is_gone = true;
	for (size_t i = 0; i < fate_count; i++) {
		if (fates[i].owner != who)
			continue;
		finish(&fates[i]);
		fates[i].is_gone = true;
	}
	run();
}

/* ---- one schedule ---- */

static void step_of_task(struct fate *f)
{
	switch (f->is_gone ? 99 : roll(7)) {
	case 0:
	case 1:
		write_some(f);
		break;
	case 2:
	case 3:
		read_some(f);
		break;
	case 4:
		wait_some(f);
		break;
	case 5:
		finish(f);
		break;
	case 6:
		kill_some(f);
		break;
	default:
		break;
	}
}

static void step_of_owner(int who)
{
	if (people[who].is_gone)
		return;
	switch (roll(4)) {
	case 0:
		take_some(who);
		break;
	case 1:
		dispose(who);
		break;
	default:
		turn_some(who);
	}
}

static void step(void)
{
	switch (roll(16)) {
	case 0:
		new_task();
		break;
	case 1:
		abort_waits();
		break;
	case 2:
	case 3:
		end_lease(true);
		break;
	case 4:
		end_lease(false);
		break;
	case 5:
	case 6:
		pass(roll(4));
		break;
	case 7:
		move();
		break;
	case 8:
	case 9:
	case 10:
		step_of_owner(roll(2) ? ALICE : BOB);
		break;
	default:
		if (any())
			step_of_task(any());
	}
}

/* Read to the end, with every lease given back or delivered before. */
static void drain(struct fate *f)
{
	errand_lease l = 0;
	errand_text *t = NULL;

	CHECK_INT(errand_read(core.host, f->work->id, ERRAND_NUL, people[f->owner].id, &l,
			      &t, NULL),
		  0);
	deliver(f, member(text_of(t), "text"));
	for (size_t i = 0; i < f->work->len; i++)
		CHECK(f->delivered[i]);
	CHECK_INT(errand_lease_commit(core.host, l), 0);
}

static void check_told(const struct fate *f)
{
	bool is_told = strcmp(member(snapshot(f->work, people[f->owner].id), "reported"),
			      "true") == 0;

	CHECK_INT(is_told, f->was_killed || f->was_shown);
	CHECK(is_told || f->notices == 1);
}

/* Who is idle with a notice was asked for a turn. */
static void check_asked(const struct person *p)
{
	if (p->is_gone || errand_agent_state(core.host, p->id) != ERRAND_IDLE ||
	    !has_notice(p))
		return;
	CHECK(p->is_asked || p->may_sleep || p->was_moved || p->wakes >= MAX_WAKES);
}

static void new_person(int who, const char *session, uint32_t flags, errand_scope s)
{
	struct errand_agent_options o = {.size = sizeof(o),
					 .flags = flags,
					 .session = str(session),
					 .scope = s,
					 .wake = on_wake,
					 .ud = &people[who]};

	CHECK_INT(errand_agent_new(core.host, &o, &people[who].id, NULL), 0);
}

static void new_world(void)
{
	errand_scope above = 0;
	errand_reg r;

	bare(NULL);
	memset(people, 0, sizeof(people));
	fate_count = held_count = 0;
	CHECK_INT(errand_scope_new(core.host, &above, NULL), 0);
	CHECK_INT(errand_scope_new(core.host, &preset, NULL), 0);
	CHECK_INT(errand_scope_bind(core.host, preset, above, &r, NULL), 0);
	CHECK_INT(errand_mount(core.host, 0, "{\"completionDelivery\":\"quiet\"}",
			       ERRAND_NUL, &r, NULL),
		  0);
	CHECK_INT(errand_mount(core.host, above, "{\"maxConsecutiveWakes\":2}", ERRAND_NUL,
			       &r, NULL),
		  0);
	new_person(ALICE, "alice", 0, preset);
	new_person(TWIN, "alice", ERRAND_AGENT_UNREGISTERED, 0);
	new_person(BOB, "bob", 0, 0);
	new_person(OPERATOR, "op", ERRAND_AGENT_OPERATOR, 0);
	CHECK_INT(errand_on(core.host, 0, ERRAND_ON_INBOX, on_inbox, NULL, NULL, &r, NULL),
		  0);
	CHECK_INT(errand_signal_new(core.host, &signal_), 0);
}

static void schedule(void)
{
	new_world();
	for (int i = 0; i < STEPS; i++)
		step();
	for (size_t i = 0; i < fate_count; i++)
		finish(&fates[i]);
	run();
	while (held_count > 0)
		end_lease(roll(2) == 0);
	run();
	check_asked(&people[ALICE]); /* Bob's mount is quiet */
	for (size_t i = 0; i < fate_count; i++)
		if (!fates[i].is_gone)
			check_told(&fates[i]);
	for (size_t i = 0; i < fate_count; i++)
		if (!fates[i].is_gone)
			drain(&fates[i]);
}

static int number_of(const char *name, int usual)
{
	const char *given = getenv(name);

	return given ? (int)strtol(given, NULL, 10) : usual;
}

TEST(d6_no_schedule_loses_a_byte_or_an_end_or_tells_one_twice)
{
	int first = number_of("FIRST", 1), count = number_of("SCHEDULES", 3000);

	for (int n = first; n < first + count; n++) {
		seed = (uint32_t)n;
		number = n;
		schedule();
	}
	number = 0;
	print_message("# %d schedules of %d steps\n", count, STEPS);
}
