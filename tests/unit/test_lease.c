/* SPDX-License-Identifier: MIT */
/* Tests of src/core/read.c and lease.c: nothing is consumed before it is delivered (D6). */
#include "core.h"

static errand_lease lease;

/* Read as the registry shows it; the lease stays out. */
static const char *read_text(const struct work *w)
{
	static char copy[1024];
	errand_text *t = NULL;

	CHECK_INT(errand_read(core.host, w->id, ERRAND_NUL, core.alice, &lease, &t, NULL),
		  0);
	(void)snprintf(copy, sizeof(copy), "%s", member(text_of(t), "text"));
	return copy;
}

static void commit(errand_lease l)
{
	CHECK_INT(errand_lease_commit(core.host, l), 0);
	run();
}

static void give_back(errand_lease l)
{
	CHECK_INT(errand_lease_return(core.host, l), 0);
	run();
}

TEST(a_stream_gives_each_byte_once)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "one\n");
	CHECK_STR(read_text(w), "one\n");
	commit(lease);
	emit(w, "two\n");
	CHECK_STR(read_text(w), "two\n");
	commit(lease);
	CHECK_STR(read_text(w), "");
}

static uint64_t cursor_of(const struct work *w)
{
	uint64_t at = UINT64_MAX;

	CHECK_INT(errand_cursor(core.host, w->task, &at), 0);
	return at;
}

TEST(the_cursor_is_behind_what_was_handed_out)
{
	struct work *w;
	uint64_t at;

	fresh();
	w = start(core.alice, STREAM);
	CHECK_INT(cursor_of(w), 0);
	emit(w, "one\n");
	CHECK_STR(read_text(w), "one\n");
	CHECK_INT(cursor_of(w), 4);
	give_back(lease);
	CHECK_INT(cursor_of(w), 0);
	CHECK_STR(read_text(w), "one\n");
	commit(lease);
	CHECK_INT(cursor_of(w), 4);
	CHECK_INT(errand_cursor(core.host, 4711, &at), ERRAND_EGONE);
	CHECK_INT(errand_cursor(core.host, w->task, NULL), ERRAND_EARG);
	CHECK_INT(errand_cursor(NULL, w->task, &at), ERRAND_EARG);
}

TEST(a_read_that_finds_nothing_has_no_lease)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	CHECK_STR(read_text(w), "");
	CHECK(lease == 0);
}

TEST(d6_bytes_that_are_returned_are_unread)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "one\n");
	CHECK_STR(read_text(w), "one\n");
	give_back(lease);
	emit(w, "two\n");
	CHECK_STR(read_text(w), "one\ntwo\n");
}

TEST(d6_a_second_reader_starts_behind_the_first)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "one\n");
	CHECK_STR(read_text(w), "one\n");
	emit(w, "two\n");
	CHECK_STR(read_text(w), "two\n");
}

TEST(d6_a_return_may_repeat_what_a_later_reader_had)
{
	errand_lease first;
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "one\n");
	(void)read_text(w);
	first = lease;
	emit(w, "two\n");
	(void)read_text(w);
	commit(lease);
	give_back(first);
	CHECK_STR(read_text(w), "one\ntwo\n");
}

TEST(d6_returns_in_any_order_lose_nothing)
{
	errand_lease first, second;
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "one\n");
	(void)read_text(w);
	first = lease;
	emit(w, "two\n");
	(void)read_text(w);
	second = lease;
	give_back(first);
	give_back(second);
	CHECK_STR(read_text(w), "one\ntwo\n");
}

static void on_consumed(void *ud, errand_task t, uint64_t upto)
{
	const struct work *w = ud;

	CHECK_INT(t, w->task);
	CHECK_INT(errand_settle(core.host, t, ERRAND_KILLED, NULL, 0, NULL, 0),
		  ERRAND_EREENTER); /* PURE */
	logf_("consumed %d;", (int)upto);
}

static struct work *start_consuming(void)
{
	struct errand_task_spec s;

	fresh();
	s = spec(core.alice, STREAM);
	s.producer.consumed = on_consumed;
	CHECK_INT(try_start(&s), 0);
	(void)logged();
	return &core.work[0];
}

TEST(a_producer_hears_of_bytes_that_were_delivered)
{
	struct work *w = start_consuming();

	emit(w, "one\n");
	(void)read_text(w);
	CHECK_STR(logged(), "");
	commit(lease);
	CHECK_STR(logged(), "consumed 4;");
	emit(w, "two\n");
	(void)read_text(w);
	give_back(lease);
	CHECK_STR(logged(), "");
	CHECK_STR(read_text(w), "two\n");
	commit(lease);
	CHECK_STR(logged(), "consumed 8;");
	CHECK_STR(read_text(w), "");
}

TEST(what_an_earlier_lease_may_return_is_not_consumed)
{
	struct work *w = start_consuming();
	errand_lease first;

	emit(w, "one\n");
	(void)read_text(w);
	first = lease;
	emit(w, "two\n");
	(void)read_text(w);
	commit(lease);
	CHECK_STR(logged(), "");
	commit(first);
	CHECK_STR(logged(), "consumed 8;");
}

TEST(what_a_later_lease_may_return_is_not_consumed)
{
	struct work *w = start_consuming();
	errand_lease first, second;

	emit(w, "one\n");
	(void)read_text(w);
	first = lease;
	emit(w, "two\n");
	(void)read_text(w);
	second = lease;
	give_back(first);
	CHECK_STR(read_text(w), "one\ntwo\n");
	commit(lease);
	CHECK_STR(logged(), "consumed 4;");
	give_back(second);
	CHECK_STR(read_text(w), "two\n");
}

TEST(d6_a_terminal_read_reports_when_it_is_delivered)
{
	struct work *w;

	fresh();
	w = start(0, FINAL);
	settle(w, ERRAND_COMPLETED, NULL, "done");
	run();
	CHECK_STR(read_text(w), "done");
	CHECK(is_reported(w));
	give_back(lease);
	CHECK(!is_reported(w));
	CHECK_STR(read_text(w), "done");
	commit(lease);
	CHECK(is_reported(w));
}

TEST(an_end_is_reported_while_any_lease_holds_it)
{
	errand_lease first;
	struct work *w;

	fresh();
	w = start(0, FINAL);
	end(w);
	(void)read_text(w);
	first = lease;
	(void)read_text(w);
	give_back(first);
	CHECK(is_reported(w));
	give_back(lease);
	CHECK(!is_reported(w));
}

TEST(a_live_read_reports_nothing)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "x");
	(void)read_text(w);
	commit(lease);
	CHECK(!is_reported(w));
}

TEST(a_lease_ends_once)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "x");
	(void)read_text(w);
	commit(lease);
	CHECK_INT(errand_lease_commit(core.host, lease), ERRAND_EGONE);
	CHECK_INT(errand_lease_return(core.host, lease), ERRAND_EGONE);
	CHECK_INT(errand_lease_return(core.host, 0), ERRAND_EGONE);
}

TEST(a_lease_on_what_is_gone_is_gone)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "x");
	(void)read_text(w);
	CHECK_INT(errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL), 0);
	end(w);
	CHECK_INT(errand_lease_commit(core.host, lease), ERRAND_EGONE);
}

TEST(a_final_output_is_read_again_and_again)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_STR(read_text(w), "");
	settle(w, ERRAND_COMPLETED, NULL, "answer");
	run();
	CHECK_STR(read_text(w), "answer");
	commit(lease);
	CHECK_STR(read_text(w), "answer");
}

TEST(the_output_of_a_stream_is_never_shown)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	settle(w, ERRAND_COMPLETED, NULL, "answer");
	run();
	CHECK_STR(read_text(w), "");
}

TEST(a_stream_is_read_on_after_its_end)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "tail");
	end(w);
	CHECK_STR(read_text(w), "tail");
	CHECK(is_reported(w));
}

TEST(a_read_hook_that_throws_changes_nothing)
{
	errand_error *e = NULL;
	errand_text *t = NULL;
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "x");
	end(w);
	w->read_error = "disk on fire";
	CHECK_INT(errand_read(core.host, w->id, ERRAND_NUL, core.alice, &lease, &t, &e),
		  ERRAND_ECALLBACK);
	CHECK_STR(message(e), "disk on fire");
	CHECK(!is_reported(w));
	w->read_error = NULL;
	CHECK_STR(read_text(w), "x");
}

TEST(a_read_of_anothers_task_is_refused)
{
	errand_text *t = NULL;
	struct work *w;

	fresh();
	w = start(core.bob, STREAM);
	CHECK_INT(errand_read(core.host, w->id, ERRAND_NUL, core.alice, &lease, &t, NULL),
		  ERRAND_EREFUSED);
}

TEST(a_read_shows_the_record_after_it)
{
	errand_text *t = NULL;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	CHECK_INT(errand_read(core.host, w->id, ERRAND_NUL, core.alice, &lease, &t, NULL),
		  0);
	CHECK(strstr(text_of(t), "\"reported\":true"));
}

/* ---- D17: a producer that has more than fits ---- */

static uint64_t endless_end;

static int endless_read(void *ud, errand_task t, uint64_t from, errand_sink *out,
			uint64_t *ret_next, errand_error *e)
{
	char page[4096];
	size_t room;

	(void)ud;
	(void)t;
	(void)e;
	memset(page, 'x', sizeof(page));
	while (from < endless_end && (room = errand_sink_room(out)) > 0) {
		size_t n = room < sizeof(page) ? room : sizeof(page);

		if (n > endless_end - from)
			n = (size_t)(endless_end - from);
		CHECK_INT(errand_sink_write(out, page, n), 0);
		from += n;
	}
	*ret_next = from;
	return 0;
}

static size_t read_length(const struct work *w)
{
	errand_text *t = NULL;
	size_t len;

	CHECK_INT(errand_read(core.host, w->id, ERRAND_NUL, core.alice, &lease, &t, NULL),
		  0);
	(void)errand_text_data(t, &len);
	errand_text_free(t);
	return len;
}

TEST(d17_a_text_holds_no_more_than_the_maximum_and_the_rest_stays)
{
	struct errand_task_spec s;
	struct work *w;

	fresh();
	w = &core.work[0];
	s = spec(core.alice, STREAM);
	s.producer.read = endless_read;
	endless_end = MAX_RESULT + 100;
	CHECK_INT(try_start(&s), 0);
	CHECK(read_length(w) > MAX_RESULT);
	CHECK_INT(strlen(read_text(w)), 100);
	CHECK_STR(read_text(w), "");
}

TEST(d17_a_sink_that_is_full_says_so_and_keeps_what_fitted)
{
	struct errand_task_spec s;

	fresh();
	s = spec(core.alice, STREAM);
	s.producer.read = endless_read;
	endless_end = 3 * MAX_RESULT;
	CHECK_INT(try_start(&s), 0);
	for (int i = 0; i < 3; i++)
		CHECK(read_length(&core.work[0]) > MAX_RESULT);
	CHECK(read_length(&core.work[0]) < 1000);
}

static int greedy_read(void *ud, errand_task t, uint64_t from, errand_sink *out,
		       uint64_t *ret_next, errand_error *e)
{
	char *all = calloc(1, MAX_RESULT + 10);

	(void)ud;
	(void)t;
	(void)e;
	memset(all, 'y', MAX_RESULT + 10);
	CHECK_INT(errand_sink_write(out, all, MAX_RESULT + 10), 1);
	CHECK_INT(errand_sink_write(out, all, 1), 1);
	CHECK_INT(errand_sink_room(out), 0);
	*ret_next = from + MAX_RESULT;
	free(all);
	return 0;
}

TEST(d17_writing_beyond_the_room_keeps_the_room)
{
	struct errand_task_spec s;

	fresh();
	s = spec(core.alice, STREAM);
	s.producer.read = greedy_read;
	CHECK_INT(try_start(&s), 0);
	CHECK(read_length(&core.work[0]) > MAX_RESULT);
}

TEST(d17_an_output_over_the_maximum_is_cut_and_the_end_stands)
{
	char *big = calloc(1, MAX_RESULT + 2);
	struct work *w;

	fresh();
	memset(big, 'z', MAX_RESULT + 1);
	w = start(core.alice, FINAL);
	settle(w, ERRAND_COMPLETED, NULL, big);
	run();
	CHECK(read_length(w) < MAX_RESULT + 1000);
	CHECK_STR(status_of(w), "completed");
	free(big);
}

static int backwards_read(void *ud, errand_task t, uint64_t from, errand_sink *out,
			  uint64_t *ret_next, errand_error *e)
{
	(void)ud;
	(void)t;
	(void)e;
	(void)errand_sink_write(out, "x", 1);
	*ret_next = from ? from - 1 : 0;
	return 0;
}

TEST(a_cursor_never_goes_back_by_itself)
{
	struct errand_task_spec s;

	fresh();
	s = spec(core.alice, STREAM);
	s.producer.read = backwards_read;
	CHECK_INT(try_start(&s), 0);
	CHECK_STR(read_text(&core.work[0]), "x");
	CHECK(lease == 0);
}

/* ---- leases of calls ---- */

TEST(a_delivered_result_has_consumed_what_it_shows)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "x\n");
	CHECK_STR(output_of(w), "x\n[status: running]");
	CHECK_STR(output_of(w), "(no new output)\n[status: running]");
}

TEST(d6_a_lost_result_has_consumed_nothing)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "x\n");
	core.fate = ERRAND_LOST;
	CHECK_STR(output_of(w), "x\n[status: running]");
	core.fate = ERRAND_DELIVERED;
	CHECK_STR(output_of(w), "x\n[status: running]");
}

TEST(d6_a_held_result_waits_for_word)
{
	struct work *w;

	fresh();
	w = start(core.alice, STREAM);
	emit(w, "x\n");
	core.fate = ERRAND_HELD;
	(void)output_of(w);
	CHECK(core.lease != 0);
	give_back(core.lease);
	CHECK_STR(output_of(w), "x\n[status: running]");
	commit(core.lease);
	CHECK_STR(output_of(w), "(no new output)\n[status: running]");
}

TEST(a_result_that_consumed_nothing_has_no_lease)
{
	fresh();
	(void)call(core.alice, "task_list", "{}");
	CHECK(core.lease == 0);
}

TEST(d6_bytes_cut_by_a_limit_are_consumed_all_the_same)
{
	struct work *w;

	fresh();
	w = start_limited(core.alice, STREAM, "40");
	emit(w, "0123456789012345678901234567890123456789\n");
	CHECK_STR(output_of(w), "789\n[output truncated]\n[status: running]");
	CHECK_STR(output_of(w), "(no new output)\n[status: running]");
}
