/* SPDX-License-Identifier: MIT */
/*
 * embed.c - background tasks in an agent harness that has a poll() loop of its own.
 *
 * Two presets, coder and scout; three agents; two kinds of tasks: a command, whose output can
 * be read while it runs, and a timer, which has a result when it is over. The policy: a scout
 * stops nothing, a command is run after a person has agreed, calls of a coder are logged
 * around their bodies, and what looks like a password is not shown.
 *
 * The model is a script. What is printed is what a model, a person and an operator see.
 */
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "errand.h"

#define STR(s) ((errand_str){(s), ERRAND_NUL})
#define MAX_WORK 8
#define ANY_OBJECT "{\"type\":\"object\",\"properties\":{}}"

/* What a task is here: a descriptor to poll, and the text that has come from it. */
struct work {
	errand_task task;
	pid_t pid; /* of the command; 0: a timer */
	int fd;
	char command[256], text[65536]; /* a harness keeps a file */
	size_t len;
};

enum {
	ANN,
	BOB,
	CID
};

static const char *const names[] = {"ann", "bob", "cid"};
static errand_agent agents[3];
static errand_host *host;
static struct work *running[MAX_WORK];
static errand_frame question; /* to a person, not answered yet */
static errand_agent woken;    /* is told to have a turn */
static char *result;          /* of the call under way */
static errand_error *why;
static errand_reg reg; /* nothing here is undone but with the host */

static void check(int rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "embed: %s\n", why ? errand_error_message(why, NULL) : "failed");
	exit(1);
}

/* ---- two producers ---- */

static int refuse(errand_error *e)
{
	errand_error_set(e, NULL, NULL, "cannot start", ERRAND_NUL);
	return ERRAND_ECALLBACK;
}

static bool is_full(void)
{
	for (int i = 0; i < MAX_WORK; i++)
		if (!running[i])
			return false;
	return true;
}

static int watch(struct work *w, errand_task t, int fd)
{
	int i = 0;

	while (running[i])
		i++;
	running[i] = w;
	w->task = t;
	w->fd = fd;
	return 0;
}

static void finish(struct work *w, int status, const char *detail, const char *output)
{
	for (int i = 0; i < MAX_WORK; i++)
		if (running[i] == w)
			running[i] = NULL;
	close(w->fd);
	errand_settle(host, w->task, status, detail, ERRAND_NUL, output, ERRAND_NUL);
}

static int command_start(void *ud, errand_host *h, errand_task t, errand_error *e)
{
	struct work *w = ud;
	int p[2];

	(void)h;
	if (is_full() || pipe2(p, O_CLOEXEC) < 0)
		return refuse(e);
	w->pid = fork();
	if (w->pid == 0) {
		dup2(p[1], STDOUT_FILENO);
		execl("/bin/sh", "sh", "-c", w->command, (char *)NULL);
		_exit(127);
	}
	close(p[1]);
	if (w->pid > 0)
		return watch(w, t, p[0]);
	close(p[0]);
	return refuse(e);
}

/* The cursor is the library's: the same bytes may be asked for again. */
static int command_read(void *ud, errand_task t, uint64_t from, errand_sink *out,
			uint64_t *ret_next, errand_error *e)
{
	const struct work *w = ud;

	(void)t, (void)e;
	errand_sink_write(out, w->text + from, w->len - from);
	*ret_next = w->len;
	return 0;
}

static int timer_start(void *ud, errand_host *h, errand_task t, errand_error *e)
{
	struct itimerspec soon = {.it_value = {.tv_nsec = 50 * 1000 * 1000}};
	int fd = is_full() ? -1 : timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);

	(void)h;
	if (fd < 0 || timerfd_settime(fd, 0, &soon, NULL) < 0)
		return refuse(e);
	return watch(ud, t, fd);
}

/* A command ends when it has closed its output; a timer at once: queued, it counts when this
 * has returned. */
static int work_cancel(void *ud, errand_host *h, errand_task t, const char *reason,
		       size_t len, errand_error *e)
{
	struct work *w = ud;

	(void)h, (void)t, (void)reason, (void)len, (void)e;
	if (w->pid)
		kill(w->pid, SIGTERM);
	else
		finish(w, ERRAND_KILLED, NULL, NULL);
	return 0;
}

static void command_over(struct work *w)
{
	char detail[32];
	int status = 0;

	waitpid(w->pid, &status, 0);
	if (WIFEXITED(status))
		(void)snprintf(detail, sizeof(detail), "exit code: %d",
			       WEXITSTATUS(status));
	else
		(void)snprintf(detail, sizeof(detail), "signal: %d", WTERMSIG(status));
	finish(w, WIFEXITED(status) ? ERRAND_COMPLETED : ERRAND_KILLED, detail, NULL);
}

static void ready(struct work *w)
{
	ssize_t n = read(w->fd, w->text + w->len, sizeof(w->text) - w->len);

	if (!w->pid)
		finish(w, ERRAND_COMPLETED, NULL, "time is up");
	else if (n > 0)
		w->len += (size_t)n;
	else
		command_over(w);
}

static bool is(errand_str s, const char *word)
{
	return s.len == strlen(word) && memcmp(s.ptr, word, s.len) == 0;
}

/* The body of both tools: start the task, answer with its id. */
static void start_body(void *ud, errand_host *h, errand_frame f,
		       const struct errand_frame_view *v)
{
	bool is_command = is(v->tool, "command");
	struct work *w = calloc(1, sizeof(*w));
	struct errand_task_spec s = {.size = sizeof(s), .kind = v->tool, .owner = v->agent};
	errand_text *id = NULL;
	errand_task t;
	char answer[64];

	(void)ud;
	/* Enough for this script; a harness has a parser. */
	(void)sscanf(v->args_json.ptr, "{\"run\":\"%255[^\"]\"", w->command);
	s.label = is_command ? STR(w->command) : STR("a moment");
	s.producer = (struct errand_producer){.size = sizeof(s.producer),
					      .start = is_command ? command_start
								  : timer_start,
					      .cancel = work_cancel,
					      .read = is_command ? command_read : NULL,
					      .ud = w,
					      .destroy = free};
	if (errand_task_start(h, &s, &t, &id, &why) < 0) {
		errand_fail(h, f, why); /* the contract's own words reach the model */
		errand_error_free(why);
		why = NULL;
		return;
	}
	(void)snprintf(answer, sizeof(answer), "\"started %s\"",
		       errand_text_data(id, NULL));
	errand_answer(h, f, answer, ERRAND_NUL);
	errand_text_free(id);
}

/* ---- the policy ---- */

static void deny_kill(void *ud, errand_host *h, errand_frame f,
		      const struct errand_frame_view *v)
{
	static const char no[] = "{\"kind\":\"deny\",\"reason\":\"a scout stops nothing\"}";

	(void)ud;
	if (is(v->tool, "task_kill"))
		errand_answer(h, f, no, ERRAND_NUL);
	else
		errand_next(h, f);
}

static void ask_first(void *ud, errand_host *h, errand_frame f,
		      const struct errand_frame_view *v)
{
	(void)ud;
	if (is(v->tool, "command"))
		errand_answer(h, f, "{\"kind\":\"ask\"}", ERRAND_NUL);
	else
		errand_next(h, f);
}

/* The call stands still and the loop goes on, until the person has answered. */
static void approve(void *ud, errand_host *h, errand_frame f,
		    const struct errand_frame_view *v)
{
	(void)ud, (void)h, (void)v;
	question = f;
}

static void log_enter(void *ud, errand_host *h, errand_frame f,
		      const struct errand_frame_view *v)
{
	(void)ud;
	printf("log: %.*s begins\n", (int)v->tool.len, v->tool.ptr);
	errand_next(h, f);
}

static void log_back(void *ud, errand_host *h, errand_frame f,
		     const struct errand_frame_view *v)
{
	(void)ud;
	printf("log: %.*s %s\n", (int)v->tool.len, v->tool.ptr,
	       v->error ? "failed" : "ended");
	if (v->error)
		errand_fail(h, f, v->error);
	else
		errand_answer(h, f, v->answer_json.ptr, v->answer_json.len);
}

static void redact(void *ud, errand_host *h, errand_frame f,
		   const struct errand_frame_view *v)
{
	static const char gone[] = "{\"kind\":\"accept\",\"content\":[{\"type\":\"text\","
				   "\"text\":\"[a password was here]\"}]}";

	(void)ud;
	if (memmem(v->answer_json.ptr, v->answer_json.len, "password=", 9))
		errand_answer(h, f, gone, ERRAND_NUL);
	else
		errand_next(h, f);
}

static void listen_to(errand_scope s, int stage, errand_enter_fn enter,
		      errand_enter_fn back)
{
	struct errand_listener l = {.size = sizeof(l), .stage = stage};

	l.enter = enter;
	l.back = back;
	check(errand_listen(host, s, &l, &reg, &why));
}

/* ---- the loop ---- */

static int64_t clock_ms(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void run(void)
{
	check(errand_run(host, clock_ms(CLOCK_MONOTONIC), clock_ms(CLOCK_REALTIME), 0));
}

static void loop_once(void)
{
	int64_t due = errand_next_deadline(host), now = clock_ms(CLOCK_MONOTONIC);
	struct pollfd p[MAX_WORK];

	for (int i = 0; i < MAX_WORK; i++)
		p[i] = (struct pollfd){running[i] ? running[i]->fd : -1, POLLIN, 0};
	if (question) { /* the person clicks */
		printf("person: yes\n");
		errand_answer(host, question, "{\"kind\":\"allowed-once\"}", ERRAND_NUL);
		question = 0;
		due = now;
	}
	poll(p, MAX_WORK, due == ERRAND_NEVER ? -1 : due <= now ? 0 : (int)(due - now));
	for (int i = 0; i < MAX_WORK; i++)
		if (p[i].revents)
			ready(running[i]);
	run();
}

/* ---- the script ---- */

/* The first text of a result or a message, its escapes as they are. */
static void show(const char *who, const char *json)
{
	const char *text = strstr(json, "\"text\":\"") + 8, *end = text;

	while (*end != '"')
		end += *end == '\\' ? 2 : 1;
	printf("%s: %.*s\n", who, (int)(end - text), text);
}

static int on_result(void *ud, errand_host *h, errand_call c, errand_lease l,
		     const char *json, size_t len)
{
	(void)ud, (void)h, (void)c, (void)l;
	result = strndup(json, len);
	return ERRAND_DELIVERED;
}

static void call(int who, const char *tool, const char *args)
{
	struct errand_call_options o = {.size = sizeof(o), .agent = agents[who]};
	errand_call c;

	o.tool = STR(tool);
	o.args = STR(args);
	o.on_result = on_result;
	printf("%s: %s %s\n", names[who], tool, args);
	check(errand_call_new(host, &o, &c, &why));
	while (!result)
		loop_once();
	show("result", result);
	free(result);
	result = NULL;
}

static void on_wake(void *ud, errand_host *h, errand_agent agent)
{
	(void)ud, (void)h;
	woken = agent;
}

/* Sleep until the agent is woken, and give it a turn. In its first step it sees what is new,
 * and makes one call. */
static void woken_turn(int who, const char *tool, const char *args)
{
	errand_agent agent = agents[who];
	int again = 0, what = ERRAND_CLAIM_TURN;
	errand_text *messages = NULL;
	errand_lease lease;
	uint64_t turn;

	while (woken != agent)
		loop_once();
	check(errand_turn_open(host, agent, &turn, &why));
	do {
		check(errand_claim(host, agent, what, turn, &lease, &messages, &why));
		check(errand_step_begin(host, agent, lease, &why));
		if (lease)
			show("notice", errand_text_data(messages, NULL));
		errand_text_free(messages);
		if (what == ERRAND_CLAIM_TURN)
			call(who, tool, args);
		check(errand_step_end(host, agent, &again, &why));
		what = ERRAND_CLAIM_STEP;
	} while (again);
	check(errand_turn_close(host, agent, "{\"kind\":\"completed\"}", ERRAND_NUL, &why));
}

/* ---- what there is ---- */

static void add_tool(errand_scope s, const char *name, const char *params)
{
	struct errand_tool t = {.size = sizeof(t), .name = STR(name), .exec = start_body};

	t.description = STR("Start something in the background.");
	t.params_schema = STR(params);
	t.output_schema = STR("{\"type\":\"string\"}");
	check(errand_tool_add(host, s, &t, &reg, &why));
}

static errand_scope add_preset(const char *config)
{
	errand_scope s;

	check(errand_scope_new(host, &s, &why));
	check(errand_mount(host, s, config, ERRAND_NUL, &reg, &why));
	add_tool(s, "timer", ANY_OBJECT);
	return s;
}

static void add_agent(int who, errand_scope preset)
{
	struct errand_agent_options o = {.size = sizeof(o), .session = STR(names[who])};

	o.scope = preset;
	o.wake = on_wake;
	check(errand_agent_new(host, &o, &agents[who], &why));
}

int main(void)
{
	struct errand_host_options o = {.size = sizeof(o), .abi = ERRAND_ABI};
	errand_scope coder, scout;

	check(errand_host_new(&o, &host, &why));
	run();
	coder = add_preset("{}");
	scout = add_preset("{\"waitTimeoutMs\":1000}");
	add_tool(coder, "command",
		 "{\"type\":\"object\",\"properties\":{\"run\":{\"type\":\"string\"}}}");
	listen_to(scout, ERRAND_STAGE_PRE, deny_kill, NULL);
	listen_to(coder, ERRAND_STAGE_PRE, ask_first, NULL);
	listen_to(0, ERRAND_STAGE_APPROVAL, approve, NULL);
	listen_to(coder, ERRAND_STAGE_AROUND, log_enter, log_back);
	listen_to(0, ERRAND_STAGE_POST, redact, NULL);
	add_agent(ANN, coder);
	add_agent(BOB, coder);
	add_agent(CID, scout);

	call(ANN, "command", "{\"run\":\"echo password=1234\"}");
	woken_turn(ANN, "task_output", "{\"task_id\":\"command-1\"}");
	call(BOB, "task_output", "{\"task_id\":\"command-1\"}");
	call(CID, "command", "{\"run\":\"true\"}");
	call(CID, "timer", "{}");
	call(CID, "task_kill", "{\"task_id\":\"timer-1\"}");
	call(CID, "task_output", "{\"task_id\":\"timer-1\",\"wait\":true}");
	errand_host_free(host);
	return 0;
}
