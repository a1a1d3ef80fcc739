/* SPDX-License-Identifier: MIT */
/* Tests of the core's text: retain.c, oneline.c, notice.c, names.c, text.c, error.c. */
#include "core/names.h"
#include "core/notice.h"
#include "core/oneline.h"
#include "core/retain.h"
#include "core.h"

#define WIDE "\xe7\x95\x8c"     /* three bytes */
#define FACE "\xf0\x9f\x98\x80" /* four, two UTF-16 units */

static const char *fit(const char *text, const char *suffix, size_t limit)
{
	errand_text *t = NULL;

	CHECK_INT(errand_fit(text, ERRAND_NUL, suffix, "[output truncated]", limit, &t), 0);
	return text_of(t);
}

static const char *retain(int tail, size_t max, const char *text)
{
	const char *start = NULL;
	size_t len = 0;

	CHECK_INT(errand_retain(tail, max, text, ERRAND_NUL, &start, &len), 0);
	(void)snprintf(core.shown, sizeof(core.shown), "%.*s", (int)len, start);
	return core.shown;
}

static const char *summary(const char *text)
{
	errand_text *t = NULL;

	CHECK_INT(errand_summary(text, ERRAND_NUL, &t), 0);
	return text_of(t);
}

static const char *oneline(const char *text)
{
	struct buf b = BUF_INIT(1000);

	oneline_put(&b, text, strlen(text));
	(void)snprintf(core.shown, sizeof(core.shown), "%s", buf_text(&b));
	buf_release(&b);
	return core.shown;
}

static const char *notice(const char *id, const char *detail, size_t limit)
{
	struct task_line t = {.id = id,
			      .id_len = strlen(id),
			      .kind = "bash",
			      .kind_len = 4,
			      .label = "make",
			      .label_len = 4,
			      .status = "completed",
			      .detail = detail,
			      .detail_len = detail ? strlen(detail) : 0};
	struct buf b = BUF_INIT(1000);

	notice_put_text(&b, &t, limit);
	(void)snprintf(core.shown, sizeof(core.shown), "%s", buf_text(&b));
	buf_release(&b);
	return core.shown;
}

/* ---- head and tail ---- */

TEST(what_fits_is_kept_whole)
{
	CHECK_STR(retain(0, 3, "abc"), "abc");
	CHECK_STR(retain(1, 3, "abc"), "abc");
	CHECK_STR(retain(1, 100, ""), "");
}

TEST(the_head_never_ends_within_a_code_point)
{
	CHECK_STR(retain(0, 5, WIDE WIDE), WIDE);
	CHECK_STR(retain(0, 2, WIDE), "");
	CHECK_STR(retain(0, 3, FACE), "");
	CHECK_STR(retain(0, 5, "a" FACE "b"), "a" FACE);
}

TEST(the_tail_never_begins_within_a_code_point)
{
	CHECK_STR(retain(1, 5, WIDE WIDE), WIDE);
	CHECK_STR(retain(1, 2, WIDE), "");
	CHECK_STR(retain(1, 3, FACE), "");
	CHECK_STR(retain(1, 5, "a" FACE "b"), FACE "b");
}

TEST(nothing_is_kept_of_no_room)
{
	CHECK_STR(retain(0, 0, "abc"), "");
	CHECK_STR(retain(1, 0, WIDE), "");
}

TEST(d5_a_byte_order_mark_survives_a_cut)
{
	CHECK_STR(retain(0, 4,
			 "\xef\xbb\xbf"
			 "abc"),
		  "\xef\xbb\xbf"
		  "a");
	CHECK_STR(retain(1, 4,
			 "abc\xef\xbb\xbf"
			 "d"),
		  "\xef\xbb\xbf"
		  "d");
}

TEST(d5_a_byte_order_mark_survives_a_fit)
{
	CHECK_STR(fit("0123456789abcdefghij\xef\xbb\xbf"
		      "0123456789",
		      "", 19 + 13),
		  "\xef\xbb\xbf"
		  "0123456789\n[output truncated]");
}

TEST(retain_tells_the_length_of_text_with_a_nul)
{
	const char *start = NULL;
	size_t len = 0;

	CHECK_INT(errand_retain(1, 2, "a\0b", 3, &start, &len), 0);
	CHECK_BYTES(start, len, "\0b");
}

TEST(retain_refuses_what_is_absent)
{
	const char *start;
	size_t len;

	CHECK_INT(errand_retain(0, 1, NULL, 0, &start, &len), ERRAND_EARG);
	CHECK_INT(errand_retain(0, 1, "a", 1, NULL, &len), ERRAND_EARG);
}

/* ---- fit ---- */

TEST(a_text_that_fits_is_not_marked)
{
	CHECK_STR(fit("0123456789", "", 10), "0123456789");
	CHECK_STR(fit("01234", "56789", 10), "0123456789");
}

TEST(no_limit_is_zero)
{
	CHECK_STR(fit("0123456789", "", 0), "0123456789");
}

TEST(what_is_cut_goes_from_the_left_and_is_marked)
{
	CHECK_STR(fit("0123456789abcdefghijklmnop", "", 22), "nop\n[output truncated]");
}

TEST(the_suffix_matters_more_than_the_text)
{
	CHECK_STR(fit("0123456789abcdefghijklmnop", "\n[end]", 25),
		  "\n[output truncated]\n[end]");
	CHECK_STR(fit("0123456789abcdefghijklmnop", "\n[end]", 5), "[end]");
}

TEST(the_mark_is_cut_too_where_there_is_no_room)
{
	CHECK_STR(fit("0123456789abcdefghijklmnop", "", 19), "\n[output truncated]");
	CHECK_STR(fit("0123456789abcdefghijklmnop", "", 10), "truncated]");
	CHECK_STR(fit("0123456789abcdefghijklmnop", "", 1), "]");
}

TEST(a_mark_that_is_there_already_is_used_again)
{
	CHECK_STR(fit("0123456789\n[output truncated]", "\n[end]", 28),
		  "789\n[output truncated]\n[end]");
}

TEST(a_mark_that_is_there_may_be_cut_from_the_left)
{
	CHECK_STR(fit("0123456789\n[output truncated]", "\n[end]", 10), "ted]\n[end]");
}

TEST(a_fit_never_begins_within_a_code_point)
{
	CHECK_STR(fit("01234567890123456789" WIDE WIDE WIDE, "", 19 + 7),
		  WIDE WIDE "\n[output truncated]");
}

TEST(a_fit_cleans_ill_formed_text)
{
	CHECK_STR(fit("a\xff", "", 100), "a\xef\xbf\xbd");
}

TEST(a_fit_refuses_what_is_absent)
{
	errand_text *t;

	CHECK_INT(errand_fit(NULL, 0, "", "", 1, &t), ERRAND_EARG);
	CHECK_INT(errand_fit("", 0, NULL, "", 1, &t), ERRAND_EARG);
}

/* ---- one line ---- */

TEST(d4_each_control_character_is_one_space)
{
	CHECK_STR(oneline("a\nb\r\nc\td"), "a b  c d");
	CHECK_STR(oneline("\x1b[31m\x7f"), " [31m ");
	CHECK_STR(oneline("\xc2\x85\xc2\x9f"), "  ");
	CHECK_STR(oneline("\xe2\x80\xa8|\xe2\x80\xa9"), " | ");
}

TEST(d4_bidi_controls_are_left_out)
{
	CHECK_STR(oneline("a\xe2\x80\xae"
			  "b\xe2\x80\xaa"),
		  "ab");
	CHECK_STR(oneline("\xe2\x81\xa6x\xe2\x81\xa9"), "x");
}

TEST(d4_what_stands_beside_them_stays)
{
	CHECK_STR(oneline("\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa"),
		  "\xe2\x80\xa7\xe2\x80\xaf\xe2\x81\xa5\xe2\x81\xaa");
	CHECK_STR(oneline("\xc2\xa0" FACE WIDE "\xef\xbb\xbf"),
		  "\xc2\xa0" FACE WIDE "\xef\xbb\xbf");
}

TEST(one_line_shows_ill_formed_text_as_replaced)
{
	CHECK_STR(oneline("a\xff"
			  "b\xe7"),
		  "a\xef\xbf\xbd"
		  "b\xef\xbf\xbd");
}

/* ---- notices ---- */

TEST(a_notice_says_what_ended_how_and_what_to_do)
{
	CHECK_STR(
		notice("bash-1", "exit code: 0", 0),
		"background task bash-1 (bash: make) finished [status: completed, exit code: "
		"0]. Read its output with task_output.");
}

TEST(a_notice_of_just_its_limit_is_whole)
{
	size_t len = strlen(notice("bash-1", NULL, 0));

	CHECK_INT(strlen(notice("bash-1", NULL, len)), len);
	CHECK(strstr(notice("bash-1", NULL, len - 1), "[notice truncated]"));
}

TEST(a_notice_of_64_bytes_keeps_id_and_action)
{
	CHECK_STR(notice("bash-1", NULL, 64),
		  "background task bash-1 (ba\n[notice truncated]\nDone; task_output.");
}

TEST(a_long_id_matters_more_than_the_mark)
{
	CHECK_STR(notice("subagent-100", NULL, 64),
		  "background task subagent-100\nDone; task_output.");
}

TEST(a_notice_of_32_bytes_keeps_the_action)
{
	CHECK_STR(notice("bash-1", NULL, 32), "background ta\nDone; task_output.");
}

TEST(a_notice_of_8_bytes_is_the_end_of_the_action)
{
	CHECK_STR(notice("bash-1", NULL, 8), "_output.");
	CHECK_STR(notice("bash-1", NULL, 19), "\nDone; task_output.");
}

TEST(d18_an_empty_detail_is_shown)
{
	CHECK(strstr(notice("bash-1", "", 0), "[status: completed, ]"));
}

TEST(d4_a_detail_cannot_forge_a_second_line)
{
	CHECK_INT(times(notice("bash-1", "x]\n[status: running", 0), "\n"), 0);
}

/* ---- summaries ---- */

TEST(a_summary_of_120_units_is_whole)
{
	char text[200];

	memset(text, 'q', sizeof(text));
	text[120] = 0;
	CHECK_STR(summary(text), text);
}

TEST(a_longer_summary_is_119_units_and_an_ellipsis)
{
	char text[200], want[200];

	memset(text, 'q', 121);
	text[121] = 0;
	(void)snprintf(want, sizeof(want), "%.119s\xe2\x80\xa6", text);
	CHECK_STR(summary(text), want);
}

TEST(d5_a_summary_drops_half_a_pair)
{
	char text[200] = "", want[200];

	memset(text, 'q', 118);
	(void)snprintf(want, sizeof(want), "%s\xe2\x80\xa6", text);
	memcpy(text + 118, FACE "qq", 7);
	CHECK_STR(summary(text), want);
}

TEST(a_summary_counts_a_pair_as_two_units)
{
	char text[400] = "";

	for (int i = 0; i < 60; i++)
		memcpy(text + strlen(text), FACE, 5);
	CHECK_STR(summary(text), text);
	memcpy(text + strlen(text), "x", 2);
	CHECK(strstr(summary(text), "\xe2\x80\xa6"));
}

TEST(d4_a_summary_is_one_line)
{
	CHECK_STR(summary("a\nb"), "a b");
}

/* ---- names ---- */

TEST(a_name_is_found_and_gone_when_deleted)
{
	struct name a = {.text = "one", .len = 3}, b = {.text = "two", .len = 3};
	struct names s;

	names_init(&s, NULL);
	names_put(&s, &a);
	names_put(&s, &b);
	CHECK(names_get(&s, "one", 3) == &a);
	names_del(&s, &a);
	CHECK(names_get(&s, "one", 3) == NULL);
	CHECK(names_get(&s, "two", 3) == &b);
	names_release(&s);
}

TEST(names_differ_by_length_and_by_nul)
{
	struct name a = {.text = "x\0y", .len = 3};
	struct names s;

	names_init(&s, NULL);
	names_put(&s, &a);
	CHECK(names_get(&s, "x", 1) == NULL);
	CHECK(names_get(&s, "x\0y", 3) == &a);
	names_release(&s);
}

TEST(names_of_one_hash_live_in_one_chain)
{
	struct name a = {.text = "a", .len = 1}, b = {.text = "b", .len = 1};
	struct names s;

	names_init(&s, NULL);
	names_put(&s, &a);
	b.hash = a.hash; /* as if they collided */
	b.next = map_get(&s.map, a.hash);
	map_put(&s.map, a.hash, &b);
	names_del(&s, &a);
	CHECK(map_get(&s.map, b.hash) == &b);
	CHECK(b.next == NULL);
	names_del(&s, &b);
	CHECK_INT(s.map.count, 0);
	names_release(&s);
}

TEST(deleting_a_name_that_is_not_there_does_nothing)
{
	struct name a = {.text = "a", .len = 1}, b = {.text = "a", .len = 1};
	struct names s;

	names_init(&s, NULL);
	names_put(&s, &a);
	b.hash = a.hash;
	names_del(&s, &b);
	CHECK(names_get(&s, "a", 1) == &a);
	names_release(&s);
}

/* ---- errors and texts ---- */

TEST(an_error_has_a_name_a_code_and_a_message)
{
	errand_error *e = errand_error_new("AbortError", "ABORTED", "tool call aborted",
					   ERRAND_NUL);

	CHECK_STR(errand_error_name(e), "AbortError");
	CHECK_STR(errand_error_code(e), "ABORTED");
	CHECK_STR(errand_error_message(e, NULL), "tool call aborted");
	errand_error_free(e);
}

TEST(an_error_without_a_name_is_called_error)
{
	errand_error *e = errand_error_new(NULL, NULL, "x", 1);

	CHECK_STR(errand_error_name(e), "Error");
	CHECK(errand_error_code(e) == NULL);
	CHECK_INT(errand_error_rc(e), ERRAND_ECALLBACK);
	errand_error_free(e);
}

TEST(setting_an_error_again_forgets_what_it_was)
{
	errand_error *e = errand_error_new("A", "B", "c", 1);

	errand_error_set(e, NULL, NULL, NULL, 0);
	CHECK_STR(errand_error_name(e), "Error");
	CHECK(errand_error_code(e) == NULL);
	CHECK_STR(errand_error_message(e, NULL), "");
	errand_error_free(e);
}

TEST(an_error_keeps_a_nul_and_replaces_what_is_ill_formed)
{
	errand_error *e = errand_error_new(NULL, NULL, "a\0\xff", 3);
	size_t len;
	const char *p = errand_error_message(e, &len);

	CHECK_BYTES(p, len, "a\0\xef\xbf\xbd");
	errand_error_free(e);
}

TEST(a_message_over_its_maximum_is_cut_not_lost)
{
	size_t len = MAX_ERROR_TEXT + 100;
	char *big = malloc(len);
	errand_error *e;

	memset(big, 'x', len);
	e = errand_error_new(NULL, NULL, big, len);
	(void)errand_error_message(e, &len);
	CHECK_INT(len, MAX_ERROR_TEXT);
	errand_error_free(e);
	free(big);
}

TEST(no_error_and_no_text_are_fine)
{
	errand_error_free(NULL);
	errand_text_free(NULL);
	errand_error_set(NULL, "a", "b", "c", 1);
	CHECK_STR(errand_error_message(NULL, NULL), "");
	CHECK_STR(errand_text_data(NULL, NULL), "");
	CHECK_INT(errand_error_rc(NULL), 0);
}

TEST(the_library_tells_its_version)
{
	CHECK_INT(errand_abi(), ERRAND_ABI);
	CHECK(strchr(errand_version(), '.') != NULL);
}

TEST(the_library_tells_what_it_has)
{
	CHECK_INT(errand_has("consumed"), 1);
	CHECK_INT(errand_has("cursor"), 1);
	CHECK_INT(errand_has("wake"), 1);
	CHECK_INT(errand_has("telepathy"), 0);
	CHECK_INT(errand_has("wak"), 0);
	CHECK_INT(errand_has(""), 0);
	CHECK_INT(errand_has(NULL), 0);
}
