/* SPDX-License-Identifier: MIT */
/* shell.h - for tests of the `bash` tool: on the real core, with real processes. */
#pragma once

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

static inline const struct run_context *context_of(void *ud, errand_call call)
{
	struct shell *s = ud;

	(void)call;
	return &s->w->context;
}

static inline int ended(void *ud, errand_host *h, errand_reg self, errand_agent owner,
			const char *json, size_t len, errand_error *e)
{
	struct shell *s = ud;

	(void)h, (void)self, (void)owner, (void)json, (void)len, (void)e;
	s->ended++;
	return 0;
}

static inline void must(int rc)
{
	assert_true(rc >= 0);
}

static inline struct bash_config config_of(struct shell *s, uint64_t limit)
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

static inline void shell_open(struct shell *s, const struct bash_config *c)
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

static inline void shell_close(struct shell *s)
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

static inline void shell_turn(struct shell *s, int wait_ms)
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

static inline char *copy_of(const char *s, size_t len)
{
	char *copy = malloc(len + 1);

	assert_non_null(copy);
	memcpy(copy, s, len);
	copy[len] = 0;
	return copy;
}

static inline int on_result(void *ud, errand_host *h, errand_call c, errand_lease l,
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

static inline errand_call call(struct shell *s, const char *tool, const char *args)
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
static inline const char *result_of(struct shell *s, const char *tool, const char *args)
{
	(void)call(s, tool, args);
	shell_until(s, s->has_result);
	if (s->lease)
		(void)errand_lease_commit(s->host, s->lease);
	return s->text;
}

/* Arguments of bash with @command, and @more members. */
static inline const char *args_of(const char *command, const char *more)
{
	static struct buf args = BUF_INIT(1 << 20);

	buf_clear(&args);
	buf_adds(&args, "{\"description\":\"d\"");
	js_put_member(&args, "command", command, strlen(command));
	buf_adds(&args, more);
	buf_addc(&args, '}');
	return buf_text(&args);
}

static inline const char *foreground(struct shell *s, const char *command)
{
	return result_of(s, "bash", args_of(command, ""));
}

static inline void background(struct shell *s, const char *command)
{
	(void)result_of(s, "bash", args_of(command, ",\"run_in_background\":true"));
	assert_false(s->is_error);
}

static inline const char *output(struct shell *s, const char *id, bool is_waiting)
{
	char args[128];

	(void)snprintf(args, sizeof(args), "{\"task_id\":\"%s\",\"wait\":%s}", id,
		       is_waiting ? "true" : "false");
	return result_of(s, "task_output", args);
}

static inline bool ends_with(const char *s, const char *tail)
{
	return strlen(s) >= strlen(tail) && strcmp(s + strlen(s) - strlen(tail), tail) == 0;
}

static inline bool begins_with(const char *s, const char *head)
{
	return strncmp(s, head, strlen(head)) == 0;
}
