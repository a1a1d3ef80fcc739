/* SPDX-License-Identifier: MIT */
/* Tests of the tasks of the past, as people ask for them: without a host, beside one. */
#include "store.h"

#include "base/json.h"
#include "host/history.h"

static struct buf text;
static struct err trouble;

static int ask(const char *folder, bool has_listed)
{
	buf_release(&text);
	buf_init(&text, MAX_JSON_TEXT);
	trouble = (struct err){0};
	return history_put(folder, has_listed, &text, &trouble);
}

/* The ids that were put, each with a space behind it. */
static const char *ids(bool has_listed)
{
	static char out[256];
	struct js *all = NULL;

	CHECK_INT(ask(st.folder, has_listed), 0);
	CHECK_INT(js_parse(buf_text(&text), text.len, &all, NULL), 0);
	CHECK_INT(js_type(all), JS_ARRAY);
	out[0] = 0;
	for (size_t i = 0; i < js_count(all); i++)
		(void)snprintf(out + strlen(out), sizeof(out) - strlen(out), "%s ",
			       js_string(js_get(js_at(all, i), "id"), NULL));
	js_free(all);
	return out;
}

static void three_tasks_and_one_dropped(void)
{
	fresh_store();
	put_agent(1, "alice");
	put_task(3, 1, "completed", 90);
	put_task(4, 1, "running", 0);
	put_task(5, 1, "killed", 80);
	put_about("drop", 3);
	must_commit();
}

TEST(without_a_store_there_is_no_history)
{
	fresh_folder();
	CHECK_STR(ids(true), "");
	CHECK(!exists(STORE_FILE));
}

TEST(the_past_is_what_no_list_has_any_more)
{
	three_tasks_and_one_dropped();
	CHECK_STR(ids(false), "bash-3 ");
}

TEST(or_all_of_it_the_oldest_first)
{
	three_tasks_and_one_dropped();
	CHECK_STR(ids(true), "bash-3 bash-4 bash-5 ");
}

TEST(looking_does_not_need_the_store_to_be_closed)
{
	three_tasks_and_one_dropped();
	CHECK(st.store != NULL);
	CHECK_STR(ids(true), "bash-3 bash-4 bash-5 ");
	put_about("drop", 5);
	must_commit();
	CHECK_STR(ids(false), "bash-3 bash-5 ");
}

TEST(a_store_that_is_damaged_is_an_error)
{
	fresh_folder();
	write_whole(STORE_FILE, "no database at all, but long enough", 35);
	CHECK_INT(chmod(in_folder(STORE_FILE), 0600), 0);
	CHECK_INT(ask(st.folder, true), -ERR_FORMAT);
	CHECK(trouble.msg[0] != 0);
}
