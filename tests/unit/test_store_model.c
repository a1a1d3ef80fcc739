/* SPDX-License-Identifier: MIT */
/*
 * The store against a model of a few arrays: whatever is put in, committed, thrown away with
 * its batch or with the process, the tables hold what the model holds.
 */
#include "store.h"

#define NAMES 5
#define SEQUENCES 30

static struct model {
	int seen[NAMES];                 /* sessions; 0: not there */
	bool requests[NAMES][SEQUENCES]; /* by nonce */
	int bytes[NAMES];                /* runs; 0: not there */
	int counter;                     /* of a kind */
	int audit;                       /* entries */
	char lists[2][64];               /* pending messages, a letter each */
} model, durable;

static uint32_t seed;

static int roll(int n)
{
	seed = seed * 1664525u + 1013904223u;
	return (int)((seed >> 16) % (uint32_t)n);
}

static errand_str named(char kind, int i)
{
	static char names[4][8];
	static int turn;
	char *name = names[turn++ % 4];

	(void)snprintf(name, sizeof(names[0]), "%c%d", kind, i);
	return s_(name);
}

/* ---- what may happen, to both ---- */

static void do_session(void)
{
	int i = roll(NAMES);

	model.seen[i] = 1 + roll(1000);
	store_put_session(&st.batch, &(struct store_session){.name = named('s', i),
							     .how = s_("flag"),
							     .seen = model.seen[i]});
}

static void do_drop_session(void)
{
	int i = roll(NAMES);

	model.seen[i] = 0;
	store_drop_session(&st.batch, named('s', i));
}

static void do_request(void)
{
	int i = roll(NAMES), sequence = roll(SEQUENCES);

	model.requests[i][sequence] = true;
	store_put_request(&st.batch, &(struct store_request){.nonce = named('n', i),
							     .sequence = sequence});
}

static void do_drop_requests(void)
{
	int i = roll(NAMES), up_to = roll(SEQUENCES);

	memset(model.requests[i], 0, (size_t)up_to + 1);
	store_drop_requests(&st.batch, named('n', i), up_to);
}

static void do_run(void)
{
	int i = roll(NAMES);

	model.bytes[i] = 1 + roll(1000);
	store_put_run(&st.batch, &(struct store_run){.task = (errand_task)i + 1,
						     .uid = named('u', i),
						     .boot = s_("b"),
						     .bytes = model.bytes[i]});
}

static void do_counter(void)
{
	char fact[96];

	model.counter++;
	(void)snprintf(fact, sizeof(fact),
		       "{\"fact\":\"counter\",\"kind\":\"bash\",\"counter\":%d}",
		       model.counter);
	put(fact);
}

static void do_audit(void)
{
	model.audit++;
	store_put_audit(
		&st.batch,
		&(struct store_audit){.who = s_("w"), .door = s_("d"), .act = s_("a")});
}

/* ---- messages ---- */

static const char *const targets[] = {"next-step", "next-turn"};

static void put_of(const char *name, const char *format, ...)
	__attribute__((format(printf, 2, 3)));

static void put_of(const char *name, const char *format, ...)
{
	struct buf fact = BUF_INIT(KIB(1));
	char rest[256];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(rest, sizeof(rest), format, args);
	va_end(args);
	(void)buf_addf(&fact, "{\"fact\":\"%s\",\"agent\":1,%s}", name, rest);
	put(buf_text(&fact));
	buf_release(&fact);
}

static void do_message(void)
{
	int target = roll(2);
	char *list = model.lists[target], id = (char)('a' + roll(26));
	size_t len = strlen(list);

	if (strchr(model.lists[0], id) || strchr(model.lists[1], id))
		return;
	list[len] = id;
	list[len + 1] = 0;
	put_of("message", "\"target\":\"%s\",\"message\":{\"id\":\"%c\",\"content\":[]}",
	       targets[target], id);
}

static void take_out(char *list, size_t at)
{
	memmove(list + at, list + at + 1, strlen(list + at));
}

static void do_message_gone(void)
{
	char *list = model.lists[roll(2)];
	size_t at;

	if (!*list)
		return;
	at = (size_t)roll((int)strlen(list));
	put_of("message-gone", "\"id\":\"%c\"", list[at]);
	take_out(list, at);
}

static void do_message_moved(void)
{
	char *list = model.lists[roll(2)], id;
	size_t from, to;

	if (strlen(list) < 2)
		return;
	from = (size_t)roll((int)strlen(list));
	id = list[from];
	take_out(list, from);
	to = (size_t)roll((int)strlen(list) + 1);
	if (list[to])
		put_of("message-moved", "\"id\":\"%c\",\"before\":\"%c\"", id, list[to]);
	else
		put_of("message-moved", "\"id\":\"%c\"", id);
	memmove(list + to + 1, list + to, strlen(list + to) + 1);
	list[to] = id;
}

/* ---- and what becomes of it ---- */

static void do_commit(void)
{
	must_commit();
	durable = model;
}

static void do_commit_in_a_later_batch(void)
{
	struct store_batch first;

	store_batch_init(&first);
	CHECK_INT(store_batch_move(&first, &st.batch), 0);
	do_audit();
	do_message();
	CHECK_INT(store_batch_move(&first, &st.batch), 0);
	CHECK_INT(store_batch_move(&st.batch, &first), 0);
	store_batch_release(&first);
	do_commit();
}

static void do_lose(void)
{
	store_batch_clear(&st.batch);
	model = durable;
	reopen();
	CHECK(!st.note);
}

/* A batch with a bad end is not taken at all, and can be taken without it. */
static void do_spoil(void)
{
	size_t len = st.batch.facts.len, count = st.batch.count;

	put("{\"fact\":\"agent\",\"agent\":9}");
	CHECK_INT(commit(), -ERR_ARG);
	buf_cut(&st.batch.facts, len);
	st.batch.count = count;
}

/* ---- do they agree? ---- */

static void check_messages(void)
{
	for (int i = 0; i < 2; i++) {
		char query[256];

		(void)snprintf(
			query, sizeof(query),
			"SELECT ifnull(group_concat(id, ''), '') FROM (SELECT id FROM"
			" message WHERE target = '%s' ORDER BY place)",
			targets[i]);
		CHECK_STR(text_from(query), durable.lists[i]);
	}
}

static void expect_line(const char *text, bool is_there, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static void expect_line(const char *text, bool is_there, const char *format, ...)
{
	char line[64];
	va_list args;

	va_start(args, format);
	(void)vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	if ((strstr(text, line) != NULL) != is_there)
		fail_msg("seed %u: '%s' is%s there", seed, line, is_there ? " not" : "");
}

static void check_agreement(void)
{
	const char *text = loaded();
	size_t requests = 0;

	for (int i = 0; i < NAMES; i++) {
		expect_line(text, durable.seen[i], "session s%d flag %d 0 0 -\n", i,
			    durable.seen[i]);
		expect_line(text, durable.bytes[i], "run %d u%d b %d past\n", i + 1, i,
			    durable.bytes[i]);
		for (int k = 0; k < SEQUENCES; k++) {
			requests += durable.requests[i][k];
			expect_line(text, durable.requests[i][k], "request n%d %d 0 -\n", i,
				    k);
		}
	}
	expect_line(text, durable.counter > 0, "\"counter\":%d}\n", durable.counter);
	CHECK_INT(health().requests, requests);
	CHECK_INT(health().audit, durable.audit);
	check_messages();
}

static void random_life(void)
{
	static void (*const steps[])(void) = {
		do_session, do_drop_session, do_request,       do_request,
		do_request, do_run,          do_drop_requests, do_counter,
		do_audit,   do_message,      do_message,       do_message,
		do_message, do_message_gone, do_message_moved, do_message_moved,
		do_commit,  do_spoil,
	};

	for (int i = 0; i < 150; i++)
		steps[roll(sizeof(steps) / sizeof(steps[0]))]();
	if (roll(3) == 0)
		do_lose();
	else
		do_commit_in_a_later_batch();
	check_agreement();
}

TEST(whatever_happens_the_tables_hold_what_the_model_holds)
{
	for (uint32_t life = 1; life <= 15; life++) {
		seed = life;
		fresh_store();
		put_agent(1, "alice");
		must_commit();
		memset(&model, 0, sizeof(model));
		durable = model;
		for (int i = 0; i < 8; i++)
			random_life();
	}
}
