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

static void put_entry(const char *act, const char *task, const char *detail)
{
	store_put_audit(&st.batch, &(struct store_audit){.who = s_("s"),
							 .door = s_("host"),
							 .act = s_(act),
							 .task = s_(task),
							 .detail = s_(detail),
							 .at = 7});
}

static void trail(const char *id, const char *want)
{
	struct buf out = BUF_INIT(MAX_JSON_TEXT);

	CHECK_INT(history_put_trail(st.folder, id, &out, &trouble), 0);
	CHECK_STR(buf_text(&out), want);
	buf_release(&out);
}

TEST(the_trail_is_told_from_the_oldest_entry_on_or_of_one_task)
{
	fresh_folder();
	trail(NULL, "[]");
	three_tasks_and_one_dropped();
	put_entry("drop", "bash-3", "why");
	put_entry("kill", "bash-5", "no");
	must_commit();
	trail(NULL,
	      "[{\"number\":1,\"at\":7,\"who\":\"s\",\"door\":\"host\",\"act\":\"drop\","
	      "\"task\":\"bash-3\",\"detail\":\"why\"},{\"number\":2,\"at\":7,\"who\":\"s\","
	      "\"door\":\"host\",\"act\":\"kill\",\"task\":\"bash-5\",\"detail\":\"no\"}]");
	trail("bash-5", "[{\"number\":2,\"at\":7,\"who\":\"s\",\"door\":\"host\",\"act\":"
			"\"kill\",\"task\":\"bash-5\",\"detail\":\"no\"}]");
	trail("bash-6", "[]");
}

static void found(const char *id, const char *task_part, const char *drop_part)
{
	struct buf task = BUF_INIT(MAX_JSON_TEXT), drop = BUF_INIT(MAX_JSON_TEXT);

	CHECK_INT(history_find(st.folder, id, &task, &drop, &trouble), 0);
	CHECK(strstr(buf_text(&task), task_part) != NULL);
	CHECK(strstr(buf_text(&drop), drop_part) != NULL);
	CHECK(task_part[0] || !task.len);
	CHECK(drop_part[0] || !drop.len);
	buf_release(&task);
	buf_release(&drop);
}

TEST(one_task_of_the_past_is_found_with_why_its_output_went)
{
	three_tasks_and_one_dropped();
	put_entry("start", "bash-3", "x");
	put_entry("drop", "bash-3", "why");
	put_entry("kill", "bash-3", "x");
	must_commit();
	found("bash-3", "\"listed\":false", "\"detail\":\"why\"");
	found("bash-5", "\"listed\":true", "");
	found("bash-6", "", "");
	fresh_folder();
	found("bash-3", "", "");
}
