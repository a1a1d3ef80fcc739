/* SPDX-License-Identifier: MIT */
/* The `bash` tool on the real core and real processes: calls, answers, ends. */
#include "shell.h"

/* ---- foreground ---- */

SHELL_TEST(d11_a_foreground_call_shows_output_and_marker, 10000)
{
	assert_string_equal(foreground(s, "echo hi"), "hi\n");
	assert_string_equal(foreground(s, "true"), "(no output)");
	assert_string_equal(foreground(s, "printf x; exit 2"), "x\n[exit code: 2]");
	assert_string_equal(foreground(s, "echo y; exit 3"), "y\n[exit code: 3]");
	assert_string_equal(foreground(s, "kill -9 $$"),
			    "(no output)\n[killed by signal: SIGKILL]");
	assert_int_equal(s->ended, 5);
}

SHELL_TEST(its_value_tells_the_task, 10000)
{
	(void)foreground(s, "echo hi");
	assert_true(begins_with(s->value,
				"{\"kind\":\"foreground\",\"taskId\":\"bash-1\","
				"\"text\":\"hi\\n\",\"task\":{\"id\":\"bash-1\""));
	assert_non_null(strstr(s->value, "\"detail\":\"exit code: 0\""));
}

SHELL_TEST(its_value_has_the_public_members_only, 10000)
{
	static const char *const names[] = {"id",     "kind",      "label",     "status",
					    "detail", "startedAt", "finishedAt"};
	struct js *value = NULL;
	const struct js *task;
	const char *key;
	size_t len, n = 0;
	void *it = NULL;
	const struct js *member;

	(void)foreground(s, "echo hi");
	assert_int_equal(js_parse(s->value, strlen(s->value), &value, NULL), 0);
	task = js_get(value, "task");
	while (js_next(task, &it, &key, &len, &member)) {
		assert_true(n < sizeof(names) / sizeof(names[0]));
		assert_string_equal(key, names[n++]);
	}
	assert_int_equal(n, sizeof(names) / sizeof(names[0]));
	js_free(value);
}

SHELL_TEST(d11_a_timeout_ends_the_task, 10000)
{
	const char *text = result_of(s, "bash",
				     args_of("echo a; sleep 60", ",\"timeoutMs\":1500"));

	assert_string_equal(text, "a\n[timed out after 1500ms]");
	assert_string_equal(output(s, "bash-1", false),
			    "(no new output)\n[status: killed, timed out after 1500ms]");
}

SHELL_TEST(what_cannot_start_says_why, 10000)
{
	assert_string_equal(result_of(s, "bash", args_of("true", ",\"workdir\":\"/x/y\"")),
			    "Error: cannot use workdir '/x/y': No such file or directory");
	assert_true(s->is_error);
	assert_string_equal(result_of(s, "task_list", "{}"), "(no background tasks)");
}

SHELL_TEST(a_workdir_that_is_empty_is_none, 10000)
{
	assert_string_equal(result_of(s, "bash", args_of("pwd", ",\"workdir\":\"\"")),
			    "/tmp\n");
	assert_string_equal(result_of(s, "bash", args_of("pwd", ",\"workdir\":\"/usr\"")),
			    "/usr\n");
}

/* Bytes in the log of the only task. */
static off_t logged(struct shell *s)
{
	char path[4200];
	struct stat st;

	(void)snprintf(path, sizeof(path), "%s/%s", only_folder(s->w), PROTO_OUT);
	return stat(path, &st) == 0 ? st.st_size : 0;
}

/* A command that prints @before, waits for the gate, and prints @after. */
static const char *gated(struct shell *s, const char *before, const char *after)
{
	static char command[512];

	(void)snprintf(command, sizeof(command), "%s; %s; %s", before, gate_shut(s->w),
		       after);
	return command;
}

static int64_t deadline_of(struct shell *s)
{
	struct proto_record r;
	char folder[4096];

	shell_until(s, logged(s) > 0);
	(void)snprintf(folder, sizeof(folder), "%s", only_folder(s->w));
	read_status(folder, &r);
	(void)result_of(s, "task_kill", "{\"task_id\":\"bash-1\"}");
	return r.deadline_ms;
}

SHELL_TEST(d11_without_timeout_ms_there_is_no_deadline_in_the_background, 10000)
{
	background(s, "echo up; exec sleep 60");
	assert_int_equal(deadline_of(s), 0);
}

SHELL_TEST(d11_without_timeout_ms_there_is_no_deadline_in_the_foreground, 10000)
{
	(void)call(s, "bash", args_of("echo up; exec sleep 60", ""));
	assert_int_equal(deadline_of(s), 0);
}

SHELL_TEST(d11_a_deadline_may_be_a_day, 10000)
{
	(void)call(s, "bash", args_of("echo up; exec sleep 60", ",\"timeoutMs\":86400000"));
	assert_int_equal(deadline_of(s), 86400000);
}

SHELL_TEST(d11_a_call_that_takes_long_is_promoted, 10000)
{
	(void)call(s, "bash", args_of(gated(s, "echo begun", "echo done"), ""));
	shell_until(s, logged(s) == 6);
	assert_false(s->has_result);
	s->ahead_ms = 10000;
	shell_until(s, s->has_result);
	assert_string_equal(s->text,
			    "begun\n[still running as background task bash-1; you will be "
			    "notified when it finishes]");
	assert_false(s->is_error);
	must(errand_lease_commit(s->host, s->lease));
	gate_open(s->w);
	assert_string_equal(output(s, "bash-1", true),
			    "done\n[status: completed, exit code: 0]");
}

SHELL_TEST(an_aborted_call_leaves_the_task_and_its_end_is_noticed, 10000)
{
	errand_call c = call(s, "bash", args_of(gated(s, "echo up", "true"), ""));
	errand_text *messages = NULL;
	errand_lease lease;

	shell_turn(s, 5);
	shell_turn(s, 5);
	assert_false(s->has_result);
	must(errand_call_abort(s->host, c));
	shell_until(s, s->has_result);
	assert_string_equal(s->text, "Error: wait aborted");
	gate_open(s->w);
	shell_until(s, s->ended == 1);
	shell_turn(s, 1);
	must(errand_claim(s->host, s->agent, ERRAND_CLAIM_NOTICES, 0, &lease, &messages,
			  NULL));
	assert_non_null(strstr(errand_text_data(messages, NULL), "bash-1"));
	errand_text_free(messages);
	assert_string_equal(output(s, "bash-1", false),
			    "up\n[status: completed, exit code: 0]");
}

SHELL_TEST(a_result_that_nobody_got_is_read_again, 10000)
{
	(void)call(s, "bash", args_of("echo once", ""));
	shell_until(s, s->has_result);
	assert_string_equal(s->text, "once\n");
	must(errand_lease_return(s->host, s->lease));
	assert_string_equal(output(s, "bash-1", false),
			    "once\n[status: completed, exit code: 0]");
}

/* ---- background ---- */

SHELL_TEST(a_background_call_answers_at_once, 10000)
{
	background(s, gated(s, "true", "echo later"));
	assert_string_equal(s->text, "started background task bash-1");
	assert_string_equal(s->value, "{\"kind\":\"background\",\"taskId\":\"bash-1\"}");
	assert_string_equal(output(s, "bash-1", false),
			    "(no new output)\n[status: running]");
	gate_open(s->w);
	assert_string_equal(output(s, "bash-1", true),
			    "later\n[status: completed, exit code: 0]");
}

SHELL_TEST(only_true_is_background, 10000)
{
	assert_string_equal(
		result_of(s, "bash", args_of("echo x", ",\"run_in_background\":false")),
		"x\n");
}

SHELL_TEST(d11_a_kill_tells_how_it_went, 10000)
{
	background(s, "exec sleep 60");
	(void)result_of(s, "task_kill", "{\"task_id\":\"bash-1\"}");
	assert_string_equal(output(s, "bash-1", true),
			    "(no new output)\n[status: killed, signal: SIGTERM]");
	background(s, "trap 'exit 0' TERM; echo up; while :; do sleep 0.05; done");
	shell_until(s, begins_with(output(s, "bash-2", false), "up"));
	(void)result_of(s, "task_kill", "{\"task_id\":\"bash-2\"}");
	assert_true(
		ends_with(output(s, "bash-2", true), "\n[status: killed, exit code: 0]"));
}

SHELL_TEST(a_shim_that_dies_is_told, 10000)
{
	assert_string_equal(foreground(s, "kill -9 $PPID; sleep 60"),
			    "(no output)\n[failed: lost: the supervisor was killed]");
}

SHELL_TEST(a_long_command_is_a_label_up_to_its_limit, 0)
{
	autobuf struct buf command = BUF_INIT(1 << 20);
	struct js *value = NULL;
	const char *label;
	size_t len;

	for (size_t at = 0; at < 4; at++) { /* the cut meets every byte of a character */
		buf_clear(&command);
		buf_adds(&command, "true ");
		buf_add(&command, "xxx", at);
		for (int i = 0; i < 1200; i++)
			buf_adds(&command, "\xf0\x9f\x8e\x89");
		(void)foreground(s, buf_text(&command));
		assert_int_equal(js_parse(s->value, strlen(s->value), &value, NULL), 0);
		label = js_string(js_get(js_get(value, "task"), "label"), &len);
		assert_in_range(len, 4093, 4096);
		assert_memory_equal(label, command.data, len - 3);
		assert_true(ends_with(label, "\xf0\x9f\x8e\x89\xe2\x80\xa6"));
		js_free(value);
	}
	buf_clear(&command);
	buf_adds(&command, "true ");
	while (command.len < 4096)
		buf_addc(&command, 'x');
	(void)foreground(s, buf_text(&command));
	assert_non_null(strstr(s->value, buf_text(&command)));
}

/* ---- bad calls ---- */

SHELL_TEST(d11_bad_arguments_have_their_texts, 10000)
{
	static const struct {
		const char *args, *want;
	} rows[] = {
		{"{\"command\":\"\",\"description\":\"d\"}",
		 "Error: invalid command: expected a non-empty string"},
		{"{\"command\":\"x\",\"description\":\" \\n\"}",
		 "Error: invalid description: expected a non-empty string"},
		{"{\"command\":\"x\",\"description\":\"d\",\"timeoutMs\":0}",
		 "Error: invalid timeoutMs: expected a number from 1 to 86400000, got 0"},
		{"{\"command\":\"x\",\"description\":\"d\",\"timeoutMs\":86400001}",
		 "Error: invalid timeoutMs: expected a number from 1 to 86400000, got 86400001"},
		{"{\"command\":\"x\",\"description\":\"d\",\"timeoutMs\":-1.5}",
		 "Error: invalid timeoutMs: expected a number from 1 to 86400000, got -1.5"},
		{"{\"command\":\"a\\u0000b\",\"description\":\"d\"}",
		 "Error: invalid command: it contains a NUL character"},
		{"{\"command\":\"a\",\"description\":\"d\",\"workdir\":\"/\\u0000\"}",
		 "Error: invalid workdir: it contains a NUL character"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_string_equal(result_of(s, "bash", rows[i].args), rows[i].want);
		assert_true(s->is_error);
	}
	assert_string_equal(result_of(s, "task_list", "{}"), "(no background tasks)");
}

/* ---- environment ---- */

SHELL_TEST(d11_the_environment_is_the_clients_less_secrets_plus_a_plain_terminal, 10000)
{
	const char *env[] = {
		"PATH=/usr/bin:/bin", "MARK=yes",        "TERM=xterm", "PAGER=less",
		"AGENT_SECRET=1",     "AGENT_SECRETS=2", NULL};

	s->w->context.env = env;
	assert_string_equal(foreground(s,
				       "echo $MARK $TERM $NO_COLOR $PAGER $GIT_PAGER"
				       " [$AGENT_SECRET] [$AGENT_SECRETS] ${#ERRAND_TASK}"),
			    "yes dumb 1 cat cat [] [2] 32\n");
}

SHELL_TEST(a_command_that_begins_like_an_option_is_a_command, 10000)
{
	assert_string_equal(foreground(s, "--help"),
			    "bash: line 1: --help: command not found\n[exit code: 127]");
	assert_string_equal(foreground(s, "-x"),
			    "bash: line 1: -x: command not found\n[exit code: 127]");
	assert_string_equal(foreground(s, "+x; echo $-"),
			    "bash: line 1: +x: command not found\nhBc\n");
	assert_string_equal(foreground(s, "-() { echo it is; }; -"), "it is\n");
}

SHELL_TEST(d11_sh_serves_where_there_is_no_bash, 10000)
{
	const char *env[] = {NULL, NULL};
	char path[128], file[160];

	(void)snprintf(path, sizeof(path), "PATH=%s/bin", s->w->folder);
	(void)snprintf(file, sizeof(file), "%s/sh", path + 5);
	assert_int_equal(mkdir(path + 5, 0700), 0);
	assert_int_equal(symlink("/bin/sh", file), 0);
	env[0] = path;
	s->w->context.env = env;
	assert_string_equal(foreground(s, "echo $0"), "sh\n");
}

SHELL_TEST(a_path_without_a_shell_does_not_keep_a_command_from_starting, 10000)
{
	const char *env[] = {"PATH=/nowhere:/nowhere/else", NULL};

	s->w->context.env = env;
	assert_string_equal(foreground(s, "echo $0 $PATH"),
			    "/bin/sh /nowhere:/nowhere/else\n");
	assert_non_null(strstr(foreground(s, "ls"), "not found"));
}

/* ---- what outlives a command ---- */

SHELL_TEST(a_disposed_owner_takes_its_tasks_along, 10000)
{
	const char *sleep = own_sleep();
	char command[128];

	(void)snprintf(command, sizeof(command), "exec %s", sleep);
	background(s, command);
	shell_until(s, count_alive(sleep) == 1);
	must(errand_agent_dispose(s->host, s->agent, NULL, NULL, NULL, NULL));
	shell_until(s, count_alive(sleep) == 0);
	shell_until(s, only_folder(s->w)[0] == 0);
}

SHELL_TEST(d11_what_outlives_a_command_is_counted_and_goes_when_asked, 10000)
{
	const char *sleep = own_sleep();
	char command[200];

	(void)snprintf(command, sizeof(command), "%s & %s & echo up", sleep, sleep);
	background(s, command);
	assert_string_equal(output(s, "bash-1", true),
			    "up\n[status: completed, exit code: 0, 2 processes left]");
	bash_sweep(s->bash, "bash-2", 6);
	bash_sweep(s->bash, "bash-1", 6);
	shell_until(s, count_alive(sleep) == 0);
}

SHELL_TEST(d11_a_foreground_marker_tells_what_is_left, 10000)
{
	const char *sleep = own_sleep();
	char command[200];

	(void)snprintf(command, sizeof(command), "%s & exit 3", sleep);
	assert_string_equal(foreground(s, command),
			    "(no output)\n[exit code: 3, 1 process left]");
	(void)snprintf(command, sizeof(command), "%s & kill -9 $$", sleep);
	assert_string_equal(foreground(s, command),
			    "(no output)\n[killed by signal: SIGKILL, 1 process left]");
	must(errand_agent_dispose(s->host, s->agent, NULL, NULL, NULL, NULL));
	shell_until(s, count_alive(sleep) == 0);
}
