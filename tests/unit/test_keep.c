/* SPDX-License-Identifier: MIT */
/* Tests of src/core/task.c: which ended records of an owner are kept (D15). */
#include "check.h"
#include "core.h"

/* Each owner keeps @n of what it was told of. */
static void keeping(const char *n)
{
	char config[80];

	(void)snprintf(config, sizeof(config), "{\"maxFinishedTasksPerOwner\":%s}", n);
	bare(config);
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	core.alice = agent("alice");
	core.bob = agent("bob");
}

static struct work *ended(errand_agent owner)
{
	struct work *w = start(owner, FINAL);

	end(w);
	return w;
}

/* Read the end and deliver it; what follows from that is queued. */
static void deliver_to(errand_agent owner, const struct work *w)
{
	errand_lease lease = 0;
	errand_text *json = NULL;

	CHECK_INT(errand_read(core.host, w->id, ERRAND_NUL, owner, &lease, &json, NULL), 0);
	errand_text_free(json);
	CHECK_INT(errand_lease_commit(core.host, lease), 0);
}

static void read_by(errand_agent owner, const struct work *w)
{
	deliver_to(owner, w);
	run();
}

static bool is_kept(const struct work *w)
{
	return w->destroyed == 0;
}

TEST(d15_of_what_an_owner_was_told_the_newest_stay)
{
	struct work *a, *b, *c;

	keeping("2");
	a = ended(core.alice);
	b = ended(core.alice);
	c = ended(core.alice);
	read_by(core.alice, b);
	read_by(core.alice, a);
	CHECK(is_kept(a) && is_kept(b) && is_kept(c));
	read_by(core.alice, c);
	CHECK(is_kept(a) && !is_kept(b) && is_kept(c));
}

TEST(d15_the_living_and_the_untold_stay_however_many_they_are)
{
	struct work *untold, *live, *told;

	keeping("1");
	untold = ended(core.alice);
	live = start(core.alice, FINAL);
	told = ended(core.alice);
	read_by(core.alice, told);
	read_by(core.alice, ended(core.alice));
	CHECK(is_kept(untold) && is_kept(live) && !is_kept(told));
}

TEST(d15_one_owner_does_not_push_out_another_ones)
{
	struct work *a, *b;

	keeping("1");
	a = ended(core.alice);
	b = ended(core.bob);
	read_by(core.alice, a);
	read_by(core.bob, b);
	read_by(core.bob, ended(core.bob));
	CHECK(is_kept(a) && !is_kept(b));
}

TEST(d15_a_kill_before_the_end_counts_as_told)
{
	struct work *w;
	int requested;

	keeping("1");
	w = start(core.alice, FINAL);
	CHECK_INT(errand_kill(core.host, w->id, ERRAND_NUL, core.alice, NULL, 0, &requested,
			      NULL),
		  0);
	end(w);
	read_by(core.alice, ended(core.alice));
	CHECK(!is_kept(w));
}

TEST(d15_a_delivered_notice_counts_as_told_a_returned_one_does_not)
{
	struct work *w;
	errand_lease lease = 0;
	errand_text *json = NULL;

	keeping("1");
	w = ended(core.alice);
	CHECK_INT(errand_claim(core.host, core.alice, ERRAND_CLAIM_NOTICES, 0, &lease,
			       &json, NULL),
		  0);
	errand_text_free(json);
	CHECK_INT(errand_lease_return(core.host, lease), 0);
	read_by(core.alice, ended(core.alice));
	CHECK(is_kept(w));
	CHECK_INT(errand_claim(core.host, core.alice, ERRAND_CLAIM_NOTICES, 0, &lease,
			       &json, NULL),
		  0);
	errand_text_free(json);
	CHECK_INT(errand_lease_commit(core.host, lease), 0);
	run();
	read_by(core.alice, ended(core.alice));
	CHECK(!is_kept(w));
}

TEST(d15_what_a_lease_holds_goes_with_a_later_one)
{
	struct work *w;

	keeping("1");
	w = ended(core.alice);
	read_by(core.alice, w);
	core.fate = ERRAND_HELD;
	(void)output_of(w);
	read_by(core.alice, ended(core.alice));
	CHECK(is_kept(w));
	CHECK_INT(errand_lease_commit(core.host, core.lease), 0);
	read_by(core.alice, ended(core.alice));
	CHECK(!is_kept(w));
}

TEST(d15_without_a_number_everything_stays)
{
	struct work *first;

	fresh();
	first = ended(core.alice);
	read_by(core.alice, first);
	for (int i = 0; i < 20; i++)
		read_by(core.alice, ended(core.alice));
	CHECK(is_kept(first));
}

TEST(d15_an_owner_may_go_while_its_records_wait_to_be_dropped)
{
	struct work *w;

	keeping("1");
	w = ended(core.alice);
	read_by(core.alice, w);
	deliver_to(core.alice, ended(core.alice));
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	run();
	CHECK(!is_kept(w));
}

TEST(what_is_to_be_dropped_goes_with_its_owner_at_the_latest)
{
	errand_lease lease = 0;
	errand_text *json = NULL;
	struct work *w;

	keeping("1");
	deliver_to(core.alice, ended(core.alice));
	w = ended(core.alice);
	CHECK_INT(
		errand_read(core.host, w->id, ERRAND_NUL, core.alice, &lease, &json, NULL),
		0);
	errand_text_free(json);
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	CHECK_INT(errand_lease_commit(core.host, lease),
		  0); /* one too many, while she goes */
	run();
	CHECK_INT(errand_agent_state(core.host, core.alice), ERRAND_DISPOSED);
	CHECK(!is_kept(w));
}
