/* SPDX-License-Identifier: MIT */
/*
 * Properties of a restored host, over journals of random schedules: at each point it is what
 * the facts up to there say, and what is no journal is refused by the entry's number.
 */
#include "journal.h"

#define MAX_SEEN 256

/* ---- what the facts say, told apart from the library ---- */

struct seen_task {
	uint64_t number;
	const struct js *last; /* its newest "task" */
	bool is_reported, is_gone;
	size_t cursor;
};

struct seen_message {
	char id[64];
	uint64_t agent;
	bool is_of_turn;
};

static struct {
	struct js *facts[MAX_FACTS];
	size_t count;
	struct seen_task tasks[MAX_SEEN];
	size_t n_tasks;
	struct seen_message messages[MAX_SEEN]; /* of one list: in its order */
	size_t n_messages;
	uint64_t agents[MAX_SEEN]; /* 0: gone */
	size_t n_agents;
} seen;

static uint64_t number_in(const struct js *fact, const char *key)
{
	double v = js_number(js_get(fact, key));

	return v > 0 ? (uint64_t)v : 0;
}

static const char *word_in(const struct js *fact, const char *key)
{
	const char *s = js_string(js_get(fact, key), NULL);

	return s ? s : "";
}

static struct seen_task *seen_task(uint64_t number)
{
	for (size_t i = 0; i < seen.n_tasks; i++)
		if (seen.tasks[i].number == number)
			return &seen.tasks[i];
	CHECK(seen.n_tasks < MAX_SEEN);
	seen.tasks[seen.n_tasks].number = number;
	return &seen.tasks[seen.n_tasks++];
}

static size_t place_of(const char *id)
{
	size_t i = 0;

	while (i < seen.n_messages && strcmp(seen.messages[i].id, id) != 0)
		i++;
	return i;
}

static struct seen_message take_message(const char *id)
{
	size_t i = place_of(id);
	struct seen_message m = seen.messages[i];

	CHECK(i < seen.n_messages);
	memmove(&seen.messages[i], &seen.messages[i + 1],
		(--seen.n_messages - i) * sizeof(m));
	return m;
}

static void put_message(struct seen_message m, const char *before)
{
	size_t i = before[0] ? place_of(before) : seen.n_messages;

	CHECK(seen.n_messages < MAX_SEEN);
	memmove(&seen.messages[i + 1], &seen.messages[i],
		(seen.n_messages++ - i) * sizeof(m));
	seen.messages[i] = m;
}

static void see_message(const struct js *fact)
{
	struct seen_message m = {.agent = number_in(fact, "agent")};

	(void)snprintf(m.id, sizeof(m.id), "%s", word_in(js_get(fact, "message"), "id"));
	m.is_of_turn = strcmp(word_in(fact, "target"), "next-turn") == 0;
	put_message(m, "");
}

static void see_agent(const struct js *fact, bool is_gone)
{
	uint64_t a = number_in(fact, "agent");
	size_t i = 0;

	while (i < seen.n_agents && seen.agents[i] != a)
		i++;
	CHECK(i < MAX_SEEN);
	seen.agents[i] = is_gone ? 0 : a;
	seen.n_agents += i == seen.n_agents;
}

static void see_of_task(const struct js *fact, const char *word)
{
	struct seen_task *t = seen_task(number_in(fact, "task"));

	if (strcmp(word, "task") == 0) {
		t->last = fact;
		t->is_reported = js_is_true(js_get(fact, "reported"));
	}
	if (js_get(fact, "cursor"))
		t->cursor = number_in(fact, "cursor");
	t->is_reported = t->is_reported || strcmp(word, "reported") == 0;
	t->is_gone = strcmp(word, "drop") == 0;
}

static void see(const struct js *fact)
{
	const char *word = word_in(fact, "fact");

	if (strcmp(word, "message") == 0)
		see_message(fact);
	else if (strcmp(word, "message-moved") == 0)
		put_message(take_message(word_in(fact, "id")), word_in(fact, "before"));
	else if (strcmp(word, "message-gone") == 0)
		(void)take_message(word_in(fact, "id"));
	else if (js_get(fact, "task"))
		see_of_task(fact, word);
	else if (js_get(fact, "agent"))
		see_agent(fact, strcmp(word, "agent-gone") == 0);
}

static void forget_seen(void)
{
	while (seen.count > 0)
		js_free(seen.facts[--seen.count]);
	memset(&seen, 0, sizeof(seen));
}

/* ---- is it so? ---- */

/* A host with the first @n facts, on which nothing has run. */
static int unborn(const char *json)
{
	struct errand_host_options o = {
		.size = sizeof(o), .abi = ERRAND_ABI, .warn = on_warn};

	errand_host_free(core.host);
	CHECK_INT(errand_host_new(&o, &core.host, NULL), 0);
	return restore(json);
}

static void same_member(const char *snapshot, const struct js *fact, const char *key)
{
	struct buf b = BUF_INIT(MIB(1));

	if (!js_get(fact, key))
		(void)buf_adds(&b, "(none)");
	else if (js_string(js_get(fact, key), NULL))
		(void)buf_adds(&b, word_in(fact, key));
	else
		(void)js_put_value(&b, js_get(fact, key));
	CHECK_STR(member(snapshot, key), buf_text(&b));
	buf_release(&b);
}

static void check_unread(const struct seen_task *t, const char *id, errand_agent op)
{
	errand_lease l = 0;
	errand_text *text = NULL;
	size_t i = 0;

	if (!js_is_true(js_get(t->last, "stream")))
		return;
	while (core.work[i].task != t->number)
		CHECK(++i < core.works);
	CHECK_INT(errand_read(core.host, id, ERRAND_NUL, op, &l, &text, NULL), 0);
	CHECK_STR(member(text_of(text), "text"), core.work[i].text + t->cursor);
}

static void check_task(const struct seen_task *t, errand_agent op)
{
	static const char *const keys[] = {"kind",      "label",  "outputLimitBytes",
					   "status",    "detail", "startedAt",
					   "finishedAt"};
	static char snapshot[sizeof(core.shown)];
	errand_text *text = NULL;
	char id[64];

	(void)snprintf(id, sizeof(id), "%s-%d", word_in(t->last, "kind"),
		       (int)number_in(t->last, "ordinal"));
	CHECK_INT(errand_get(core.host, id, ERRAND_NUL, op, &text, NULL), 0);
	(void)snprintf(snapshot, sizeof(snapshot), "%s", text_of(text));
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		same_member(snapshot, t->last, keys[i]);
	CHECK_STR(member(snapshot, "reported"), t->is_reported ? "true" : "false");
	check_unread(t, id, op);
}

static void check_tasks(errand_agent op)
{
	errand_text *t = NULL;
	int there = 0;

	for (size_t i = 0; i < seen.n_tasks; i++) {
		if (seen.tasks[i].is_gone)
			continue;
		check_task(&seen.tasks[i], op);
		there++;
	}
	CHECK_INT(errand_list(core.host, op, &t, NULL), 0);
	CHECK_INT(times(text_of(t), "\"startedAt\""), there);
}

/* Their ids in order, next-step before next-turn. */
static void check_inbox(uint64_t a)
{
	const char *at = inbox(a);
	char mark[80];
	int there = 0;

	for (int turn = 0; turn < 2; turn++) {
		for (size_t i = 0; i < seen.n_messages; i++) {
			const struct seen_message *m = &seen.messages[i];

			if (m->agent != a || m->is_of_turn != turn)
				continue;
			(void)snprintf(mark, sizeof(mark), "\"id\":\"%s\"", m->id);
			at = strstr(at, mark);
			CHECK(at != NULL);
			there++;
		}
	}
	CHECK_INT(times(inbox(a), "\"target\""), there);
}

static void check_all(void)
{
	errand_agent op = operator_agent();

	check_tasks(op);
	for (size_t i = 0; i < seen.n_agents; i++)
		if (seen.agents[i])
			check_inbox(seen.agents[i]);
}

TEST(each_beginning_of_a_journal_is_restored_as_its_facts_say)
{
	for (uint32_t s = 1; s <= 40; s++) {
		seed = s;
		fresh_journal();
		schedule();
		forget_seen();
		for (size_t n = 0; n <= j.count; n++) {
			char *json = prefix(n);

			CHECK_INT(unborn(json), 0);
			check_all();
			free(json);
			if (n == j.count)
				break;
			CHECK_INT(js_parse(j.facts[n], strlen(j.facts[n]),
					   &seen.facts[seen.count++], NULL),
				  0);
			see(seen.facts[n]);
		}
	}
	forget_seen();
}

/* ---- journals that a store has made shorter, or damaged ---- */

static void drop_fact(size_t i)
{
	free(j.facts[i]);
	memmove(&j.facts[i], &j.facts[i + 1], (--j.count - i) * sizeof(j.facts[0]));
}

/* "fact" and the id, if of this thing the last fact is enough; else "". */
static const char *thing_of(const char *fact)
{
	static const char *const words[] = {"agent", "counter", "task", "cursor"};
	static char key[256];
	char word[32];

	(void)snprintf(word, sizeof(word), "%s", member(fact, "fact"));
	key[0] = 0;
	for (size_t i = 0; i < 4; i++)
		if (strcmp(word, words[i]) == 0)
			(void)snprintf(key, sizeof(key), "%s %.100s", word,
				       member(fact, i == 0   ? "agent"
						    : i == 1 ? "kind"
							     : "task"));
	return key;
}

/* Each thing has one row, where its first fact was and with what its last one says. */
static void shorten(void)
{
	char key[256];

	for (size_t i = 0; i < j.count; i++) {
		(void)snprintf(key, sizeof(key), "%s", thing_of(j.facts[i]));
		for (size_t k = i + 1; key[0] && k < j.count;) {
			if (strcmp(thing_of(j.facts[k]), key) != 0) {
				k++;
				continue;
			}
			free(j.facts[i]);
			j.facts[i] = strdup(j.facts[k]);
			drop_fact(k);
		}
	}
}

TEST(of_the_facts_about_a_thing_the_last_is_enough)
{
	for (uint32_t s = 1; s <= 60; s++) {
		size_t whole;
		char *before, *after;

		seed = s;
		fresh_journal();
		schedule();
		before = dump();
		whole = j.count;
		shorten();
		CHECK(j.count < whole);
		reborn_whole();
		after = dump();
		CHECK_STR(after, before);
		free(before);
		free(after);
	}
}

static void damage(void)
{
	size_t i = roll((unsigned)j.count), k = roll((unsigned)j.count);
	char *fact = j.facts[i];

	switch (roll(3)) {
	case 0:
		drop_fact(i);
		break;
	case 1:
		memmove(&j.facts[i + 1], &j.facts[i], (j.count++ - i) * sizeof(fact));
		j.facts[i] = strdup(fact);
		break;
	default:
		j.facts[i] = j.facts[k];
		j.facts[k] = fact;
	}
}

/* Whatever came back can be worked with, and ended. */
static void use(void)
{
	errand_text *t = NULL;
	errand_agent op;

	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
	core.bob = agent("bob");
	run();
	(void)start(core.alice, FINAL);
	free(dump());
	op = operator_agent();
	CHECK_INT(errand_service_dispose(core.host, NULL, NULL, NULL, NULL), 0);
	pass(20000);
	CHECK_INT(errand_list(core.host, op, &t, NULL), 0);
	CHECK_STR(text_of(t), "[]");
}

/* A refusal names the entry. */
static bool is_restored(void)
{
	char *json = prefix(j.count);
	int rc = unborn(json);
	unsigned entry = 0;

	free(json);
	if (rc == 0)
		return true;
	CHECK_INT(rc, ERRAND_EREFUSED);
	CHECK_INT(sscanf(core.message, "journal entry %u cannot be", &entry), 1);
	CHECK(entry < j.count);
	return false;
}

TEST(a_journal_with_entries_lost_doubled_or_swapped_is_refused_or_good)
{
	int good = 0, refused = 0;

	for (uint32_t s = 1; s <= 600; s++) {
		seed = s;
		fresh_journal();
		schedule();
		for (unsigned n = 1 + roll(3); n > 0; n--)
			damage();
		if (is_restored()) {
			use();
			good++;
		} else {
			refused++;
		}
	}
	CHECK(good > 50 && refused > 50);
}

TEST(a_live_task_has_no_end_yet_whatever_its_fact_says)
{
	errand_text *t = NULL;
	const char *json;

	CHECK_INT(unborn("[{\"fact\":\"task\",\"task\":1,\"kind\":\"k\",\"ordinal\":1,"
			 "\"label\":\"l\",\"status\":\"running\",\"detail\":\"d\","
			 "\"output\":\"o\"}]"),
		  0);
	CHECK_INT(errand_get(core.host, "k-1", ERRAND_NUL, 0, &t, NULL), 0);
	json = text_of(t);
	CHECK(strstr(json, "\"detail\"") == NULL);
	run(); /* nobody adopts it */
	CHECK_INT(errand_get(core.host, "k-1", ERRAND_NUL, 0, &t, NULL), 0);
	CHECK_STR(member(text_of(t), "detail"), "lost: unknown");
}

#define AGENT(session)                                                                     \
	"{\"fact\":\"agent\",\"agent\":1,\"session\":\"" session "\",\"wakes\":0}"
#define TASK(kind, ordinal, rest)                                                          \
	"{\"fact\":\"task\",\"task\":2,\"kind\":\"" kind "\",\"ordinal\":" ordinal         \
	"," rest "}"
#define MESSAGE(target)                                                                    \
	"{\"fact\":\"message\",\"agent\":1,\"target\":\"" target                           \
	"\",\"message\":{\"id\":\"a\",\"content\":[]}}"
#define DONE "\"label\":\"l\",\"status\":\"completed\""

TEST(a_fact_that_no_host_writes_is_refused)
{
	static const char *const facts[] = {
		AGENT("another"),
		TASK("", "1", DONE),
		TASK("k", "1", "\"label\":\"\",\"status\":\"completed\""),
		TASK("k", "1", "\"status\":\"completed\""),
		TASK("k", "1", "\"label\":\"l\",\"status\":\"failed\""),
		TASK("k", "1", "\"label\":\"l\",\"status\":\"running\""),
		TASK("other", "1", DONE),
		TASK("k", "2", DONE),
		TASK("k", "1", DONE ",\"agent\":1"),
		"{\"fact\":\"agent\",\"agent\":3,\"session\":\"\",\"wakes\":0}",
		MESSAGE("elsewhere"),
	};
	char journal[512];

	for (size_t i = 0; i < sizeof(facts) / sizeof(facts[0]); i++) {
		(void)snprintf(journal, sizeof(journal), "[%s,%s,%s]", AGENT("a"),
			       TASK("k", "1", DONE), facts[i]);
		CHECK_INT(unborn(journal), ERRAND_EREFUSED);
		CHECK_STR(core.message,
			  "journal entry 2 cannot be: damaged, or out of order");
	}
	(void)snprintf(journal, sizeof(journal), "[%s,%s,%s,%s]", AGENT("a"),
		       TASK("k", "1", DONE), AGENT("a"), TASK("k", "1", DONE));
	CHECK_INT(unborn(journal), 0);
}

TEST(an_end_is_not_before_its_beginning)
{
	errand_text *t = NULL;

	CHECK_INT(unborn("[" TASK("k", "1", DONE ",\"startedAt\":70,\"finishedAt\":5") "]"),
		  0);
	CHECK_INT(errand_get(core.host, "k-1", ERRAND_NUL, 0, &t, NULL), 0);
	CHECK_STR(member(text_of(t), "finishedAt"), "70");
}

TEST(an_id_belongs_to_one_thing)
{
	static const char *const journals[] = {
		"[{\"fact\":\"agent\",\"agent\":1,\"session\":\"a\",\"wakes\":0},"
		"{\"fact\":\"task\",\"task\":1,\"kind\":\"k\",\"ordinal\":1,\"label\":\"l\","
		"\"status\":\"running\"}]",
		"[{\"fact\":\"task\",\"task\":1,\"kind\":\"k\",\"ordinal\":1,\"label\":\"l\","
		"\"status\":\"running\"},"
		"{\"fact\":\"agent\",\"agent\":1,\"session\":\"a\",\"wakes\":0}]",
	};

	for (size_t i = 0; i < 2; i++) {
		CHECK_INT(unborn(journals[i]), ERRAND_EREFUSED);
		CHECK_STR(core.message,
			  "journal entry 1 cannot be: damaged, or out of order");
	}
}
