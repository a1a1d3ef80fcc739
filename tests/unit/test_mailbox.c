/* SPDX-License-Identifier: MIT */
/* Tests of src/core/mailbox.c: posts from other threads. */
#include <pthread.h>

#include "core.h"

#define THREADS 4
#define POSTS 2000

static errand_mailbox *mail;
static int wakes, ran, dropped;

static void on_wake(void *ud)
{
	(void)ud;
	__atomic_add_fetch(&wakes, 1, __ATOMIC_RELAXED);
}

static void on_destroy(void *ud)
{
	(void)ud;
	logf_("destroyed;");
}

static void on_post(void *ud, errand_host *h)
{
	(void)h;
	ran++;
	logf_("%s;", (const char *)ud);
}

static void on_drop(void *ud)
{
	(void)ud;
	dropped++;
}

static void fresh_mail(void)
{
	errand_mailbox_free(mail);
	mail = NULL;
	wakes = ran = dropped = 0;
	fresh();
	CHECK_INT(errand_mailbox_new(core.host, on_wake, NULL, on_destroy, &mail, NULL), 0);
}

static int post(const char *what)
{
	union {
		const char *in;
		void *out;
	} ud = {.in = what};

	return errand_post(mail, on_post, ud.out, on_drop);
}

TEST(posts_run_in_the_next_run_in_order)
{
	fresh_mail();
	CHECK_INT(post("a"), 0);
	CHECK_INT(post("b"), 0);
	CHECK_STR(logged(), "");
	CHECK(errand_next_deadline(core.host) == INT64_MIN);
	run();
	CHECK_STR(logged(), "a;b;");
	CHECK_INT(dropped, 0);
	CHECK(errand_next_deadline(core.host) == ERRAND_NEVER);
}

TEST(the_host_is_woken_once_between_two_runs)
{
	fresh_mail();
	CHECK_INT(post("a"), 0);
	CHECK_INT(post("b"), 0);
	CHECK_INT(wakes, 1);
	run();
	CHECK_INT(post("c"), 0);
	CHECK_INT(wakes, 2);
}

static void post_again(void *ud, errand_host *h)
{
	(void)ud;
	(void)h;
	CHECK_INT(post("inner"), 0);
}

TEST(a_post_may_post_again_and_wakes_for_it)
{
	fresh_mail();
	CHECK_INT(errand_post(mail, post_again, NULL, NULL), 0);
	run();
	CHECK_INT(wakes, 2);
	run();
	CHECK_STR(logged(), "inner;");
}

TEST(a_settlement_may_be_posted)
{
	struct work *w;

	fresh_mail();
	w = start(core.alice, FINAL);
	CHECK_INT(errand_post_settle(mail, w->task, ERRAND_COMPLETED, "exit code: 0",
				     ERRAND_NUL, "done", ERRAND_NUL),
		  0);
	CHECK_INT(errand_post_settle(mail, w->task, ERRAND_RUNNING, NULL, 0, NULL, 0),
		  ERRAND_EARG);
	run();
	CHECK_STR(output_of(w), "done\n[status: completed, exit code: 0]");
	CHECK_INT(errand_post_settle(mail, w->task, ERRAND_FAILED, NULL, 0, NULL, 0), 0);
	run();
	CHECK_STR(status_of(w), "completed");
}

static errand_frame frame;

static void exec_later(void *ud, errand_host *h, errand_frame f,
		       const struct errand_frame_view *v)
{
	(void)ud;
	(void)h;
	(void)v;
	frame = f;
}

TEST(an_answer_may_be_posted)
{
	struct errand_tool t = {
		.size = sizeof(t),
		.name = str("slow"),
		.description = str("Answers later."),
		.params_schema = str("{\"type\":\"object\",\"properties\":{}}"),
		.output_schema = str("{\"type\":\"string\"}"),
		.exec = exec_later};
	errand_reg r;

	fresh_mail();
	CHECK_INT(errand_tool_add(core.host, 0, &t, &r, NULL), 0);
	(void)call_begin(core.alice, "slow", "{}");
	run();
	CHECK_INT(errand_post_answer(mail, frame, "\"well\"", ERRAND_NUL), 0);
	run();
	CHECK_STR(result_text(), "\"well\"");
	CHECK_INT(errand_post_answer(mail, frame, NULL, 0), ERRAND_EARG);
	(void)call_begin(core.alice, "slow", "{}");
	run();
	CHECK_INT(errand_post_answer(mail, frame, "\"\xff\"", ERRAND_NUL), 0);
	run(); /* no more JSON than from here */
	CHECK_STR(result_text(),
		  "Error: tool \"slow\" returned invalid output: not lossless JSON");
}

TEST(what_the_host_did_not_take_is_dropped_with_it)
{
	fresh_mail();
	CHECK_INT(post("a"), 0);
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_INT(dropped, 1);
	CHECK_INT(post("b"), ERRAND_EGONE);
	CHECK_INT(errand_post_settle(mail, 1, ERRAND_FAILED, "x", 1, NULL, 0),
		  ERRAND_EGONE);
	CHECK_INT(dropped, 2);
	CHECK_INT(ran, 0);
	CHECK_STR(logged(), "");
	errand_mailbox_free(mail);
	mail = NULL;
	CHECK_STR(logged(), "destroyed;");
}

TEST(a_mailbox_may_go_before_its_host)
{
	fresh_mail();
	CHECK_INT(post("a"), 0);
	errand_mailbox_free(mail);
	mail = NULL;
	CHECK_INT(dropped, 1);
	run();
	CHECK_STR(logged(), "destroyed;");
}

TEST(a_mailbox_needs_a_wake)
{
	errand_mailbox *m = NULL;

	fresh_mail();
	CHECK_INT(errand_mailbox_new(core.host, NULL, NULL, on_destroy, &m, NULL),
		  ERRAND_EARG);
	CHECK_STR(logged(), "destroyed;");
	CHECK_INT(errand_post(NULL, on_post, NULL, on_drop), ERRAND_EARG);
	CHECK_INT(errand_post(mail, NULL, NULL, on_drop), ERRAND_EARG);
	CHECK_INT(dropped, 2);
}

/* ---- threads ---- */

struct poster {
	pthread_t thread;
	int sent, seen;
};

static struct poster posters[THREADS];

static void on_count(void *ud, errand_host *h)
{
	(void)h;
	((struct poster *)ud)->seen++;
	ran++;
}

static void *post_many(void *ud)
{
	struct poster *p = ud;

	for (; p->sent < POSTS; p->sent++)
		if (errand_post(mail, on_count, p, on_drop) != 0)
			break;
	return NULL;
}

TEST(four_threads_lose_no_post)
{
	fresh_mail();
	memset(posters, 0, sizeof(posters));
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_create(&posters[i].thread, NULL, post_many, &posters[i]),
			  0);
	while (ran < THREADS * POSTS / 2)
		run();
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_join(posters[i].thread, NULL), 0);
	run();
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(posters[i].seen, POSTS);
	CHECK(__atomic_load_n(&wakes, __ATOMIC_RELAXED) > 0);
	CHECK_INT(dropped, 0);
}

static void count_drop(void *ud)
{
	(void)ud;
	__atomic_add_fetch(&dropped, 1, __ATOMIC_RELAXED);
}

static void *post_until_gone(void *ud)
{
	struct poster *p = ud;

	while (errand_post(mail, on_count, p, count_drop) == 0)
		p->sent++;
	return NULL;
}

TEST(a_host_that_goes_while_they_post_drops_what_it_did_not_run)
{
	int sent = 0;

	fresh_mail();
	memset(posters, 0, sizeof(posters));
	for (int i = 0; i < THREADS; i++)
		CHECK_INT(pthread_create(&posters[i].thread, NULL, post_until_gone,
					 &posters[i]),
			  0);
	while (ran < POSTS) /* one at a time: they never stop by themselves */
		CHECK(errand_run(core.host, core.now, WALL, 0) >= 0);
	errand_host_free(core.host);
	core.host = NULL;
	for (int i = 0; i < THREADS; i++) {
		CHECK_INT(pthread_join(posters[i].thread, NULL), 0);
		sent += posters[i].sent;
	}
	/* The last of each thread was refused, and dropped too. */
	CHECK_INT(ran + __atomic_load_n(&dropped, __ATOMIC_RELAXED), sent + THREADS);
	errand_mailbox_free(mail);
	mail = NULL;
}
