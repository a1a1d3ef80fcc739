/* SPDX-License-Identifier: MIT */
/* The disk is full after the first write of a log: the task goes on, and it is told. */
#include "faulty.h"
#include "shell.h"

/* A shell whose shims cannot write their second piece of a log. */
#define DISK_TEST(what, bytes)                                                             \
	static void with_full_##what(struct shell *s);                                     \
	TEST(what)                                                                         \
	{                                                                                  \
		struct shell shell = {0};                                                  \
		struct bash_config c = config_of(&shell, bytes);                           \
		shell.w = fresh_world();                                                   \
		world_fault(shell.w, "fail write 2 28");                                   \
		shell_open(&shell, &c);                                                    \
		with_full_##what(&shell);                                                  \
		shell_close(&shell);                                                       \
	}                                                                                  \
	static void with_full_##what(struct shell *s)

/* What the model reads of a task whose first line is in the log and whose rest is not. */
static const char *read_rest(struct shell *s)
{
	char command[512];

	(void)snprintf(command, sizeof(command), "echo one; %s; seq 1 1000; exit 3",
		       gate_shut(s->w));
	background(s, command);
	shell_until(s, begins_with(output(s, "bash-1", false), "one\n[status: running"));
	gate_open(s->w);
	return output(s, "bash-1", true);
}

DISK_TEST(a_full_disk_stops_the_log_and_the_model_is_told_why, 10000)
{
	assert_string_equal(read_rest(s),
			    "[3893 bytes were dropped: No space left on device]\n"
			    "[status: completed, exit code: 3]");
	assert_string_equal(output(s, "bash-1", false),
			    "(no new output)\n[status: completed, exit code: 3]");
}

DISK_TEST(it_is_told_without_a_limit_too, 0)
{
	assert_string_equal(read_rest(s),
			    "[3893 bytes were dropped: No space left on device]\n"
			    "[status: completed, exit code: 3]");
}

static bool has_log(struct shell *s)
{
	char path[4200], text[8];

	(void)snprintf(path, sizeof(path), "%s/%s", only_folder(s->w), PROTO_OUT);
	return read_text(path, text, sizeof(text)) > 0;
}

DISK_TEST(it_is_told_behind_what_was_kept, 10000)
{
	char command[512];

	(void)snprintf(command, sizeof(command), "printf one; %s; echo two; exit 3",
		       gate_shut(s->w));
	(void)call(s, "bash", args_of(command, ""));
	shell_until(s, has_log(s));
	gate_open(s->w);
	shell_until(s, s->has_result);
	assert_string_equal(s->text,
			    "one\n[4 bytes were dropped: No space left on device]\n"
			    "[exit code: 3]");
}

#define STOPPED "[no more output is kept: No space left on device]\n[status: running"

/* The rest is lost, and the task lives: each look says so, until the end can count. */
static void look_at_a_living_task(struct shell *s)
{
	char command[1024], end[128];

	(void)snprintf(end, sizeof(end), "%s/end", s->w->folder);
	(void)snprintf(command, sizeof(command),
		       "echo one; %s; seq 1 1000; until [ -e %s ]; do sleep 0.02; done",
		       gate_shut(s->w), end);
	background(s, command);
	shell_until(s, begins_with(output(s, "bash-1", false), "one\n[status: running"));
	gate_open(s->w);
	shell_until(s, begins_with(output(s, "bash-1", false), STOPPED));
	assert_true(begins_with(output(s, "bash-1", false), STOPPED));
	put_file(end, "", 0600);
	assert_string_equal(output(s, "bash-1", true),
			    "[3893 bytes were dropped: No space left on device]\n"
			    "[status: completed, exit code: 0]");
}

DISK_TEST(whoever_reads_a_living_task_is_told_that_its_log_has_stopped, 10000)
{
	look_at_a_living_task(s);
}

DISK_TEST(a_living_task_is_read_the_same_way_without_a_limit, 0)
{
	look_at_a_living_task(s);
}

static bool facts_say(struct shell *s, const char *what)
{
	autobuf struct buf facts = BUF_INIT(1 << 10);

	bash_facts(s->bash, "bash-1", 6, &facts);
	return strstr(buf_text(&facts), what) != NULL;
}

DISK_TEST(programs_are_told_the_reason_while_it_lives, 10000)
{
	background(s, "seq 1 100000; sleep 1000");
	shell_until(s, facts_say(s, "\"logError\":\"No space left on device\""));
	assert_true(facts_say(s, "\"ageMs\""));
}

DISK_TEST(programs_are_told_the_reason, 10000)
{
	autobuf struct buf facts = BUF_INIT(1 << 10);

	(void)read_rest(s);
	bash_facts(s->bash, "bash-1", 6, &facts);
	assert_non_null(strstr(buf_text(&facts), "\"droppedBytes\":3893"));
	assert_non_null(
		strstr(buf_text(&facts), "\"logError\":\"No space left on device\""));
}
