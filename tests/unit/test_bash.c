/* SPDX-License-Identifier: MIT */
/* The `bash` tool on the real core and real processes: calls, answers, what is shown. */
#include <ctype.h>

#include "base/json.h"
#include "errand.h"
#include "run/bash.h"
#include "tasks.h"

struct shell {
	struct world *w;
	errand_host *host;
	struct bash *bash;
	errand_agent agent;
	const char *withheld[2];
	unsigned ended;
	int64_t ahead_ms; /* of the real clock */
	/* Of the last call. */
	bool has_result, is_error;
	char *text;
	char *value;
	errand_lease lease;
};

static const struct run_context *context_of(void *ud, errand_agent agent)
{
	struct shell *s = ud;

	(void)agent;
	return &s->w->context;
}

static int ended(void *ud, errand_host *h, errand_reg self, errand_agent owner,
		 const char *json, size_t len, errand_error *e)
{
	struct shell *s = ud;

	(void)h, (void)self, (void)owner, (void)json, (void)len, (void)e;
	s->ended++;
	return 0;
}

static void must(int rc)
{
	assert_true(rc >= 0);
}

static struct bash_config config_of(struct shell *s, uint64_t limit)
{
	s->withheld[0] = "AGENT_SECRET";
	return (struct bash_config){
		.output_limit = limit,
		.foreground_ms = 10000,
		.grace_ms = 300,
		.log_head = 1 << 20,
		.log_tail = 1 << 20,
		.withheld = s->withheld,
		.context = context_of,
		.ud = s,
	};
}

static void shell_open(struct shell *s, const struct bash_config *c)
{
	struct errand_host_options o = {.size = sizeof(o), .abi = ERRAND_ABI};
	struct errand_agent_options a = {.size = sizeof(a), .session = {"s1", 2}};
	errand_reg reg;

	must(errand_host_new(&o, &s->host, NULL));
	must(errand_mount(s->host, 0, "{}", 2, &reg, NULL));
	must(errand_agent_new(s->host, &a, &s->agent, NULL));
	must(errand_agent_register(s->host, s->agent, 1, NULL));
	must(errand_on(s->host, 0, ERRAND_ON_DONE, ended, s, NULL, &reg, NULL));
	must(bash_install(s->host, s->w->run, c, &s->bash, NULL));
}

static void shell_close(struct shell *s)
{
	run_leave(s->w->run);
	errand_host_free(s->host);
	bash_free(s->bash);
	free(s->text);
	free(s->value);
	world_close(s->w);
}

/* A test in a shell @s with an output limit of @bytes. */
#define SHELL_TEST(what, bytes)                                                            \
	static void with_shell_##what(struct shell *s);                                    \
	TEST(what)                                                                         \
	{                                                                                  \
		struct shell shell = {0};                                                  \
		struct bash_config c = config_of(&shell, bytes);                           \
		shell.w = fresh_world();                                                   \
		shell_open(&shell, &c);                                                    \
		with_shell_##what(&shell);                                                 \
		shell_close(&shell);                                                       \
	}                                                                                  \
	static void with_shell_##what(struct shell *s)

static void shell_turn(struct shell *s, int wait_ms)
{
	while (errand_run(s->host, clock_mono_ms() + s->ahead_ms, clock_wall_ms(), 0))
		;
	run_flush(s->w->run);
	if (errand_next_deadline(s->host) != INT64_MIN)
		world_turn(s->w, wait_ms);
}

#define shell_until(s, condition)                                                          \
	do {                                                                               \
		int64_t until_ = clock_mono_ms() + PATIENCE_MS;                            \
		bool is_true_;                                                             \
		while (!(is_true_ = (condition)) && clock_mono_ms() < until_)              \
			shell_turn(s, 5);                                                  \
		if (!is_true_)                                                             \
			fail_msg("never came true: %s", #condition);                       \
	} while (0)

static char *copy_of(const char *s, size_t len)
{
	char *copy = malloc(len + 1);

	assert_non_null(copy);
	memcpy(copy, s, len);
	copy[len] = 0;
	return copy;
}

static int on_result(void *ud, errand_host *h, errand_call c, errand_lease l,
		     const char *json, size_t len)
{
	struct shell *s = ud;
	struct js *result = NULL;
	struct buf value = BUF_INIT(64 << 20);
	const char *text;
	size_t n = 0;

	(void)h, (void)c;
	assert_int_equal(js_parse(json, len, &result, NULL), 0);
	text = js_string(js_get(js_at(js_get(result, "content"), 0), "text"), &n);
	free(s->text);
	free(s->value);
	s->text = copy_of(text, n);
	js_put_value(&value, js_get(result, "value"));
	s->value = copy_of(buf_text(&value), value.len);
	buf_release(&value);
	s->is_error = js_is_true(js_get(result, "isError"));
	s->has_result = true;
	s->lease = l;
	js_free(result);
	return ERRAND_HELD;
}

static errand_call call(struct shell *s, const char *tool, const char *args)
{
	struct errand_call_options o = {
		.size = sizeof(o),
		.agent = s->agent,
		.tool = {tool, strlen(tool)},
		.args = {args, strlen(args)},
		.on_result = on_result,
		.ud = s,
	};
	errand_call c;

	s->has_result = false;
	must(errand_call_new(s->host, &o, &c, NULL));
	return c;
}

/* The text of a call's result, which counts as delivered. */
static const char *result_of(struct shell *s, const char *tool, const char *args)
{
	(void)call(s, tool, args);
	shell_until(s, s->has_result);
	if (s->lease)
		(void)errand_lease_commit(s->host, s->lease);
	return s->text;
}

/* Arguments of bash with @command, and @more members. */
static const char *args_of(const char *command, const char *more)
{
	static struct buf args = BUF_INIT(1 << 20);

	buf_clear(&args);
	buf_adds(&args, "{\"description\":\"d\"");
	js_put_member(&args, "command", command, strlen(command));
	buf_adds(&args, more);
	buf_addc(&args, '}');
	return buf_text(&args);
}

static const char *foreground(struct shell *s, const char *command)
{
	return result_of(s, "bash", args_of(command, ""));
}

static void background(struct shell *s, const char *command)
{
	(void)result_of(s, "bash", args_of(command, ",\"run_in_background\":true"));
	assert_false(s->is_error);
}

static const char *output(struct shell *s, const char *id, bool is_waiting)
{
	char args[128];

	(void)snprintf(args, sizeof(args), "{\"task_id\":\"%s\",\"wait\":%s}", id,
		       is_waiting ? "true" : "false");
	return result_of(s, "task_output", args);
}

static bool ends_with(const char *s, const char *tail)
{
	return strlen(s) >= strlen(tail) && strcmp(s + strlen(s) - strlen(tail), tail) == 0;
}

static bool begins_with(const char *s, const char *head)
{
	return strncmp(s, head, strlen(head)) == 0;
}

/* ---- foreground ---- */

SHELL_TEST(a_foreground_call_shows_output_and_marker, 10000)
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

SHELL_TEST(a_timeout_ends_the_task, 10000)
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

SHELL_TEST(a_call_that_takes_long_is_promoted, 10000)
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

SHELL_TEST(a_kill_tells_how_it_went, 10000)
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

SHELL_TEST(bad_arguments_have_their_texts, 10000)
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

SHELL_TEST(the_environment_is_the_clients_less_secrets_plus_a_plain_terminal, 10000)
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

SHELL_TEST(sh_serves_where_there_is_no_bash, 10000)
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

/* ---- what is shown ---- */

/* "...[<N> bytes left out; whole output: <where>]\n[output truncated]..." */
static unsigned long left_out(const char *text, const char **ret_where)
{
	const char *at = strstr(text, " bytes left out; whole output: ");
	const char *number = at;

	assert_non_null(at);
	while (number > text && isdigit((unsigned char)number[-1]))
		number--;
	*ret_where = at + strlen(" bytes left out; whole output: ");
	return strtoul(number, NULL, 10);
}

SHELL_TEST(a_long_output_shows_its_newest_part_and_counts_the_rest, 10000)
{
	const char *text, *where, *first;
	char folder[4096];
	unsigned long n;

	background(s, "seq 1 20000"); /* 108894 bytes */
	text = output(s, "bash-1", true);
	assert_true(strlen(text) <= 10000);
	assert_true(strlen(text) > 9000);
	assert_true(ends_with(text,
			      "]\n[output truncated]\n[status: completed, exit code: 0]"));
	assert_non_null(strstr(text, "\n20000\n["));
	n = left_out(text, &where);
	first = text + strcspn(text, "\n") + 1;
	/* What is shown and what is left out are the whole. */
	assert_int_equal(n + (size_t)(strstr(text, "\n[") + 1 - text), 108894);
	assert_true(strtoul(first, NULL, 10) == strtoul(text, NULL, 10) + 1);
	(void)snprintf(folder, sizeof(folder), "%s/out]", only_folder(s->w));
	assert_true(begins_with(where, folder));
	assert_string_equal(output(s, "bash-1", false),
			    "(no new output)\n[status: completed, exit code: 0]");
}

SHELL_TEST(what_fits_is_shown_whole, 10000)
{
	background(s, "seq 1 2000"); /* 8893 bytes */
	assert_true(begins_with(output(s, "bash-1", true), "1\n2\n3\n"));
	assert_null(strstr(s->text, "truncated"));
}

SHELL_TEST(a_long_line_is_cut_at_a_character, 4096)
{
	const char *where;
	unsigned long n;

	background(s, "python3 -c \"import sys; sys.stdout.write('\xe4\xbd\xa0'*50000)\"");
	(void)output(s, "bash-1", true);
	n = left_out(s->text, &where);
	assert_int_equal(n % 3, 0);
	assert_true(strlen(s->text) <= 4096);
	assert_true(begins_with(s->text, "\xe4\xbd\xa0"));
	assert_int_equal(n + (size_t)(strstr(s->text, "\n[") - s->text), 150000);
}

SHELL_TEST(a_long_foreground_output_keeps_its_marker, 2000)
{
	(void)foreground(s, "seq 1 20000; exit 4");
	assert_true(strlen(s->text) <= 2000);
	assert_true(ends_with(s->text, "]\n[output truncated]\n[exit code: 4]"));
}

SHELL_TEST(a_tiny_limit_keeps_the_status, 100)
{
	background(s, "python3 -c \"print('\xf0\x9f\x8e\x89'*200)\"");
	(void)output(s, "bash-1", true);
	assert_true(strlen(s->text) <= 100);
	assert_true(ends_with(
		s->text, "\xf0\x9f\x8e\x89\n[output truncated]\n[status: completed, exit "
			 "code: 0]"));
}

SHELL_TEST(a_flood_says_what_was_dropped, 10000)
{
	const char *where;
	unsigned long n, dropped;

	background(s, "head -c 10000000 /dev/zero | tr '\\0' x | fold -w 99");
	(void)output(s, "bash-1", true);
	n = left_out(s->text, &where);
	assert_true(begins_with(where, "errand logs bash-1]"));
	assert_non_null(strstr(s->text, " bytes were dropped]\n["));
	dropped = strtoul(strstr(s->text, "\n[") + 2, NULL, 10);
	assert_true(dropped > 7500000);
	assert_int_equal(n + dropped + (size_t)(strstr(s->text, "\n[") - s->text),
			 10000000 + 10000000 / 99);
}

/* In a shell whose logs are capped: what the model sees of "seq 1 200000". */
static const char *read_capped(struct shell *s, uint64_t limit, uint64_t head,
			       uint64_t tail)
{
	struct bash_config c;

	*s = (struct shell){0};
	c = config_of(s, limit);
	c.log_head = head;
	c.log_tail = tail;
	s->w = fresh_world();
	shell_open(s, &c);
	background(s, "seq 1 200000"); /* 1288895 bytes */
	return output(s, "bash-1", true);
}

TEST(of_a_log_without_a_tail_the_newest_kept_part_is_shown)
{
	struct shell s;
	const char *where, *text = read_capped(&s, 10000, 50000, 0), *dropped;
	unsigned long n;

	n = left_out(text, &where);
	dropped = strstr(text, "\n[1238895 bytes were dropped]\n[");
	assert_non_null(dropped);
	assert_int_equal(n + (size_t)(dropped - text), 50000);
	assert_true(begins_with(where, "errand logs bash-1]\n[output truncated]\n[status"));
	assert_true(strlen(text) > 9000 && strlen(text) <= 10000);
	assert_string_equal(output(&s, "bash-1", false),
			    "(no new output)\n[status: completed, exit code: 0]");
	shell_close(&s);
}

TEST(a_kept_part_that_fits_is_followed_by_what_was_dropped)
{
	struct shell s;

	assert_string_equal(read_capped(&s, 10000, 8, 0),
			    "1\n2\n3\n4\n[1288887 bytes were dropped]\n"
			    "[status: completed, exit code: 0]");
	shell_close(&s);
	assert_string_equal(read_capped(&s, 10000, 0, 0),
			    "[1288895 bytes were dropped]\n"
			    "[status: completed, exit code: 0]");
	shell_close(&s);
}

TEST(a_kept_part_as_large_as_the_reply_is_cut_and_counted)
{
	const char *where, *text, *dropped;

	for (uint64_t head = 9700; head < 10000; head += 7) {
		struct shell s;
		unsigned long n = 0;

		text = read_capped(&s, 10000, head, 0);
		assert_true(strlen(text) <= 10000);
		dropped = strstr(text, " bytes were dropped]\n");
		assert_non_null(dropped);
		while (dropped[-1] != '[')
			dropped--;
		assert_int_equal(strtoul(dropped, NULL, 10), 1288895 - head);
		if (strstr(text, "left out"))
			n = left_out(text, &where);
		/* In front of the line stands a newline of the text, or one of its own. */
		assert_in_range(n + (size_t)(dropped - 1 - text), head, head + 1);
		shell_close(&s);
	}
}

/* Its end is cut off from outside, as a full disk does it; its front has a gap as well. */
SHELL_TEST(a_gap_in_front_and_one_behind_have_a_line_each, 10000)
{
	const char *text, *second, *where;
	uint64_t first = UINT64_MAX, start;
	unsigned long front, behind, n;
	struct dirent *e;
	DIR *dir;

	background(s, "seq 1 2000000; head -c 5000000 /dev/zero | tr '\\0' x");
	shell_until(s, s->ended == 1);
	dir = opendir(only_folder(s->w));
	assert_non_null(dir);
	while ((e = readdir(dir))) {
		if (strncmp(e->d_name, PROTO_OUT_TAIL, 4) != 0)
			continue;
		start = strtoull(e->d_name + 4, NULL, 10);
		first = start < first ? start : first;
	}
	rewinddir(dir);
	while ((e = readdir(dir)))
		if (strncmp(e->d_name, PROTO_OUT_TAIL, 4) == 0 &&
		    strtoull(e->d_name + 4, NULL, 10) != first)
			assert_int_equal(unlinkat(dirfd(dir), e->d_name, 0), 0);
	(void)closedir(dir);
	text = output(s, "bash-1", true);
	n = left_out(text, &where);
	front = strtoul(text + 1, NULL, 10);
	assert_true(begins_with(strchr(text, ' '), " bytes were dropped]\n"));
	assert_int_equal(front, first - (1 << 20));
	second = strstr(text, "\n[");
	behind = strtoul(second + 2, NULL, 10);
	assert_true(begins_with(strchr(second, ' '), " bytes were dropped]\n["));
	assert_int_equal(front + behind + n + (size_t)(second - strchr(text, '\n') - 1),
			 14888896 + 5000000);
	assert_true(strlen(text) > 9000 && strlen(text) <= 10000);
}

SHELL_TEST(a_character_is_never_split_between_two_reads, 10000)
{
	autobuf struct buf all = BUF_INIT(10000);
	const char *want = "\xe4\xbd\xa0\xe5\xa5\xbd\xf0\x9f\x8e\x89\xc3\xa9";
	bool is_running = true;

	background(s, "for i in 1 2; do for b in e4 bd a0 e5 a5 bd f0 9f 8e 89 c3 a9; do "
		      "printf \"\\x$b\"; sleep 0.01; done; done");
	while (is_running) {
		const char *text = output(s, "bash-1", false);
		const char *status = strstr(text, "\n[status: ");

		assert_non_null(status);
		is_running = begins_with(status, "\n[status: running");
		if (!begins_with(text, "(no new output)"))
			buf_add(&all, text, (size_t)(status - text));
		shell_turn(s, 5);
	}
	assert_int_equal(all.len, 2 * strlen(want));
	assert_true(begins_with(all.data, want) && ends_with(all.data, want));
}

SHELL_TEST(without_a_limit_every_line_comes_once, 0)
{
	autobuf struct buf all = BUF_INIT(4 << 20);
	char want[16];
	const char *at;

	background(s, "seq 1 100000");
	for (;;) {
		const char *text = output(s, "bash-1", true);
		size_t len = (size_t)(strstr(text, "[status: ") - text);

		if (begins_with(text, "(no new output)"))
			break;
		buf_add(&all, text, len);
	}
	at = buf_text(&all);
	for (int i = 1; i <= 100000; i++) {
		(void)snprintf(want, sizeof(want), "%d\n", i);
		assert_true(begins_with(at, want));
		at += strlen(want);
	}
	assert_string_equal(at, "");
}

SHELL_TEST(without_a_limit_a_gap_is_told_where_it_is, 0)
{
	const char *gap;
	size_t before;

	background(s, "head -c 10000000 /dev/zero | tr '\\0' x | fold -w 99");
	(void)output(s, "bash-1", true);
	gap = strstr(s->text, " bytes were dropped]\n");
	assert_non_null(gap);
	before = (size_t)(strstr(s->text, "\n[") - s->text);
	assert_in_range(before, (1 << 20) - 100, (1 << 20) + 1);
}

SHELL_TEST(escapes_and_progress_never_reach_a_model, 10000)
{
	assert_string_equal(
		foreground(s, "printf '\\033]0;owned\\007\\033[31mred\\033[0m\\n'; "
			      "printf '\\r10%%\\r20%%\\r100%%\\n'; printf 'a\\0b\\n'"),
		"red\n100%\na\xe2\x90\x80"
		"b\n");
}

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

/* ---- what outlives a command ---- */

SHELL_TEST(what_outlives_a_command_is_counted_and_goes_when_asked, 10000)
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

SHELL_TEST(a_foreground_marker_tells_what_is_left, 10000)
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
