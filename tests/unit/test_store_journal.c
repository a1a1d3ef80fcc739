/* SPDX-License-Identifier: MIT */
/* Tests of src/store against the core: a host from the store is the host that was killed. */
#include "journal.h"
#include "store.h"

static void on_both(void *ud, const char *json, size_t len)
{
	on_fact(ud, json, len);
	store_put_fact(&st.batch, json, len);
}

static void on_stored(void *ud, const char *json, size_t len)
{
	(void)ud;
	store_put_fact(&st.batch, json, len);
}

static const char *config;

/* Another host, from @facts. */
static void live_again(const char *facts,
		       void (*journal)(void *ud, const char *json, size_t len))
{
	struct errand_host_options o = {
		.size = sizeof(o), .abi = ERRAND_ABI, .warn = on_warn, .journal = journal};

	if (config)
		o.config_json = str(config);
	errand_host_free(core.host);
	CHECK_INT(errand_host_new(&o, &core.host, NULL), 0);
	if (restore(facts) != 0)
		fail_msg("%s", core.message);
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
	core.bob = agent("bob");
	run();
}

static char *facts_of_reopened(void)
{
	reopen();
	return facts_of(st.store);
}

static void commit_now_and_then(void)
{
	if (roll(8) == 0)
		must_commit();
}

static void first_life(uint32_t s)
{
	fresh_store();
	forget_journal();
	fixture_journal = on_both;
	fresh_as(config);
	fixture_journal = NULL;
	seed = s;
	after_step = commit_now_and_then;
	most_works = 8;
	schedule();
	after_step = NULL;
	must_commit();
}

struct lives {
	char *at_once, *later;
};

/* What a host from @facts shows, at once and after more has happened to it. */
static struct lives lives_of(const char *facts, uint32_t s,
			     void (*journal)(void *ud, const char *json, size_t len))
{
	struct lives l;

	live_again(facts, journal);
	l.at_once = dump();
	seed = s;
	most_works = 10; /* the most that one owner may have */
	schedule();
	l.later = dump();
	return l;
}

/* Says where two dumps begin to differ: they are too long to be shown whole. */
static void check_same(const char *found, const char *measure, uint32_t s)
{
	size_t i = 0;

	while (found[i] && found[i] == measure[i])
		i++;
	if (found[i] || measure[i])
		fail_msg("seed %u: ...%.200s\nis not ...%.200s", s,
			 found + (i > 80 ? i - 80 : 0), measure + (i > 80 ? i - 80 : 0));
}

static void free_lives(struct lives *l)
{
	free(l->at_once);
	free(l->later);
}

/* The journal as a whole is the measure; the store may keep less, and must know as much. */
static void compare_lives(uint32_t s)
{
	static struct work works[MAX_WORK];
	char *whole, *stored;
	size_t n_works;
	struct lives measure, found;

	first_life(s);
	whole = prefix(j.count);
	stored = facts_of_reopened();
	memcpy(works, core.work, sizeof(works));
	n_works = core.works;
	measure = lives_of(whole, s + 1000, NULL);
	memcpy(core.work, works, sizeof(works));
	core.works = n_works;
	found = lives_of(stored, s + 1000, on_stored);
	check_same(found.at_once, measure.at_once, s);
	check_same(found.later, measure.later, s);
	free(whole);
	free(stored);
	must_commit();
	stored = facts_of_reopened();
	live_again(stored, NULL);
	free(stored);
	stored = dump();
	check_same(stored, found.later, s);
	free(stored);
	free_lives(&measure);
	free_lives(&found);
}

TEST(a_host_from_the_store_is_as_one_from_the_whole_journal_and_goes_on_like_it)
{
	config = NULL;
	for (uint32_t s = 1; s <= 60; s++)
		compare_lives(s);
}

TEST(what_was_told_first_is_dropped_first_after_a_restart_too)
{
	config = "{\"maxFinishedTasksPerOwner\":2}";
	for (uint32_t s = 100; s <= 130; s++)
		compare_lives(s);
}

TEST(ids_of_what_is_gone_are_not_given_again_in_a_later_life)
{
	errand_agent gone;
	char *facts;

	config = NULL;
	first_life(1);
	live_again("[]", NULL); /* forget the schedule's */
	fresh_store();
	facts = facts_of(st.store);
	live_again(facts, on_stored);
	free(facts);
	gone = agent("carol");
	CHECK_INT(errand_agent_dispose(core.host, gone, NULL, NULL, NULL, NULL), 0);
	run();
	must_commit();
	facts = facts_of_reopened();
	live_again(facts, NULL);
	free(facts);
	CHECK(agent("carol") > gone);
}
