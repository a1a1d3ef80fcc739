/* SPDX-License-Identifier: MIT */
/* What programs are told of a command's task beside the contract's words. */
#include "shell.h"

/* The facts of @id; borrowed until the next call. */
static const struct js *facts(struct shell *s, const char *id)
{
	static struct js *facts;
	autobuf struct buf json = BUF_INIT(1 << 16);

	js_free(facts);
	facts = NULL;
	bash_facts(s->bash, id, strlen(id), &json);
	if (json.len)
		assert_int_equal(js_parse(json.data, json.len, &facts, NULL), 0);
	return facts;
}

static double number(const struct js *f, const char *key)
{
	double n = js_number(js_get(f, key));

	if (n != n)
		fail_msg("no number %s", key);
	return n;
}

static bool is(const struct js *f, const char *key, const char *text)
{
	return js_string_is(js_get(f, key), text);
}

SHELL_TEST(an_exit_code_is_a_number, 10000)
{
	const struct js *f;

	(void)foreground(s, "printf hello; exit 7");
	f = facts(s, "bash-1");
	assert_true(is(f, "cause", "exit"));
	assert_true(number(f, "exitCode") == 7);
	assert_null(js_get(f, "signal"));
	assert_true(number(f, "outputBytes") == 5);
	assert_true(number(f, "durationMs") >= 0 && number(f, "peakKiB") > 0);
	assert_null(js_get(f, "ageMs"));
	assert_null(js_get(f, "processesLeft"));
	assert_null(js_get(f, "droppedBytes"));
	assert_null(js_get(f, "logError"));
}

SHELL_TEST(the_time_of_a_processor_is_counted, 10000)
{
	(void)foreground(s, "i=0; while [ $((i+=1)) -lt 200000 ]; do :; done");
	assert_true(number(facts(s, "bash-1"), "cpuMs") > 0);
}

SHELL_TEST(a_signal_has_its_name_and_no_exit_code, 10000)
{
	(void)foreground(s, "kill -SEGV $$");
	assert_true(is(facts(s, "bash-1"), "cause", "signal"));
	assert_true(is(facts(s, "bash-1"), "signal", "SIGSEGV"));
	assert_null(js_get(facts(s, "bash-1"), "exitCode"));
}

SHELL_TEST(a_kill_and_a_deadline_are_causes_of_their_own, 10000)
{
	background(s, "trap 'exit 5' TERM; echo up; while :; do sleep 0.02; done");
	shell_until(s, begins_with(output(s, "bash-1", false), "up"));
	(void)result_of(s, "task_kill", "{\"task_id\":\"bash-1\"}");
	shell_until(s, s->ended == 1);
	assert_true(is(facts(s, "bash-1"), "cause", "kill"));
	assert_true(number(facts(s, "bash-1"), "exitCode") == 5);
	(void)result_of(s, "bash", args_of("exec sleep 60", ",\"timeoutMs\":1"));
	assert_true(is(facts(s, "bash-2"), "cause", "deadline"));
	assert_true(is(facts(s, "bash-2"), "signal", "SIGTERM"));
}

SHELL_TEST(of_what_nobody_saw_nothing_is_made_up, 10000)
{
	struct proto_record record;
	const struct js *f;

	background(s, "echo up; exec sleep 60");
	shell_until(s, begins_with(output(s, "bash-1", false), "up"));
	read_status(only_folder(s->w), &record);
	assert_int_equal(kill(record.shim_pid, SIGKILL), 0);
	shell_until(s, s->ended == 1);
	f = facts(s, "bash-1");
	assert_true(is(f, "cause", "lost"));
	assert_null(js_get(f, "exitCode"));
	assert_null(js_get(f, "signal"));
	assert_null(js_get(f, "durationMs"));
	assert_null(js_get(f, "cpuMs"));
}

SHELL_TEST(a_command_that_could_not_be_started_has_no_end_of_its_own, 10000)
{
	char folder[128];

	(void)call(s, "bash", args_of("true", ",\"run_in_background\":true"));
	/* There is no place for its run folder. */
	(void)snprintf(folder, sizeof(folder), "%s/tasks", s->w->folder);
	assert_int_equal(rmdir(folder), 0);
	shell_until(s, s->ended == 1);
	assert_true(is(facts(s, "bash-1"), "cause", "not-started"));
	assert_null(js_get(facts(s, "bash-1"), "exitCode"));
	assert_null(js_get(facts(s, "bash-1"), "durationMs"));
}

SHELL_TEST(a_live_task_has_an_age_and_no_cause, 10000)
{
	background(s, "exec sleep 60");
	assert_true(number(facts(s, "bash-1"), "ageMs") >= 0);
	assert_null(js_get(facts(s, "bash-1"), "cause"));
	assert_null(js_get(facts(s, "bash-1"), "durationMs"));
}

/* Read, but not delivered: whoever gets that reply has it behind it. */
SHELL_TEST(unread_is_what_no_reply_has_shown, 10000)
{
	background(s, "seq 1 1000"); /* 3893 bytes */
	shell_until(s, s->ended == 1);
	assert_true(number(facts(s, "bash-1"), "unreadBytes") == 3893);
	(void)call(s, "task_output", "{\"task_id\":\"bash-1\"}");
	shell_until(s, s->has_result);
	assert_true(number(facts(s, "bash-1"), "unreadBytes") == 0);
	must(errand_lease_return(s->host, s->lease));
	assert_true(number(facts(s, "bash-1"), "unreadBytes") == 3893);
	assert_true(number(facts(s, "bash-1"), "outputBytes") == 3893);
}

SHELL_TEST(what_a_flood_has_lost_is_counted, 10000)
{
	const struct js *f;

	background(s, "head -c 10000000 /dev/zero | tr '\\0' x");
	shell_until(s, s->ended == 1);
	f = facts(s, "bash-1");
	assert_true(number(f, "outputBytes") == 10000000);
	assert_in_range((unsigned)number(f, "droppedBytes"), 10000000 - (2 << 20),
			10000000 - (1 << 20));
}

SHELL_TEST(who_outlived_its_command_is_counted, 10000)
{
	const char *sleeper = own_sleep();
	char command[128];

	(void)snprintf(command, sizeof(command), "%s & echo up", sleeper);
	(void)foreground(s, command);
	assert_true(number(facts(s, "bash-1"), "processesLeft") == 1);
	assert_true(number(facts(s, "bash-1"), "exitCode") == 0);
	bash_sweep(s->bash, "bash-1", 6);
	wait_until(s->w, count_alive(sleeper) == 0);
}

SHELL_TEST(who_has_left_its_command_is_counted_apart, 10000)
{
	const char *sleeper = own_sleep();
	char command[128];

	/* The substitution ends when both ties are cut. */
	(void)snprintf(command, sizeof(command),
		       "echo $(setsid -f sh -c 'echo up; exec %s 2>/dev/null >&2')",
		       sleeper);
	assert_string_equal(foreground(s, command), "up\n");
	assert_true(number(facts(s, "bash-1"), "detachedLeft") == 1);
	assert_null(js_get(facts(s, "bash-1"), "processesLeft"));
	end_all(sleeper);
}

/* ---- the same again ---- */

static bool equals(struct shell *s, const char *id, const char *other)
{
	const struct js *equal = js_get(facts(s, id), "equalTask");

	return other ? js_string_is(equal, other) : !equal;
}

SHELL_TEST(that_the_same_command_runs_already_is_told, 10000)
{
	background(s, "exec sleep 61");
	background(s, "exec sleep 61");
	background(s, "exec sleep 62");
	background(s, "exec sleep 61");
	assert_true(equals(s, "bash-1", NULL));
	assert_true(equals(s, "bash-2", "bash-1"));
	assert_true(equals(s, "bash-3", NULL));
	assert_true(equals(s, "bash-4", "bash-1"));
	(void)result_of(s, "task_kill", "{\"task_id\":\"bash-1\"}");
	shell_until(s, s->ended == 1);
	assert_true(equals(s, "bash-2", NULL));
	background(s, "exec sleep 61");
	assert_true(equals(s, "bash-5", "bash-2"));
}

SHELL_TEST(the_same_command_elsewhere_or_of_another_is_another, 10000)
{
	struct errand_agent_options a = {.size = sizeof(a), .session = {"s2", 2}};

	background(s, "exec sleep 61");
	(void)result_of(s, "bash",
			args_of("exec sleep 61",
				",\"run_in_background\":true,\"workdir\":\"/usr\""));
	assert_true(equals(s, "bash-2", NULL));
	(void)result_of(s, "bash",
			args_of("exec sleep 61",
				",\"run_in_background\":true,\"workdir\":\"/usr\""));
	assert_true(equals(s, "bash-3", "bash-2"));
	must(errand_agent_new(s->host, &a, &s->agent, NULL));
	must(errand_agent_register(s->host, s->agent, 1, NULL));
	background(s, "exec sleep 61");
	assert_true(equals(s, "bash-4", NULL));
}

SHELL_TEST(of_other_ids_nothing_is_known, 10000)
{
	static const char *const ids[] = {"",       "bash-",   "bash-2",
					  "bash-x", "bash-1x", "terminal-1",
					  "bash-0", "bash--1", "bash-99999999999999999999"};

	(void)foreground(s, "true");
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++)
		assert_null(facts(s, ids[i]));
	assert_non_null(facts(s, "bash-1"));
}
