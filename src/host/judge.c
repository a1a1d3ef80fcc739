/* SPDX-License-Identifier: MIT */
#include "host/judge.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/utf8.h"
#include "core/oneline.h"
#include "host/internal.h"
#include "run/run.h"

/* Processes at once; what is beyond waits. */
#define MAX_RUNNING 8
#define MAX_ANSWER KIB(68)
#define READ_SIZE KIB(4)
#define MAX_REASON KIB(4)
#define MAX_QUESTION (MAX_ARGS + MIB(1))

enum handle {
	IN,
	OUT,
	TIMER,
	PROCESS,
	N_HANDLES,
};

/* One question. It goes when it is answered and all of its handles are closed. */
struct trial {
	struct list node;
	struct judge *judge;
	errand_frame frame; /* 0: answered */
	errand_reg on_abort;
	struct buf question, answer;
	union {
		uv_handle_t any;
		uv_pipe_t pipe;
		uv_timer_t timer;
		uv_process_t process;
	} handles[N_HANDLES];
	size_t n_open;
	uv_write_t write;
	bool is_running, has_exited, is_eof;
	int64_t exit_code;
	int signal;
};

struct judge {
	struct host *host;
	char **env;
	struct list waiting, begun; /* struct trial */
	size_t running;
};

/* ---- the end of a question ---- */

static void trial_free(struct trial *t)
{
	list_del(&t->node);
	buf_release(&t->question);
	buf_release(&t->answer);
	mem_free(NULL, t);
}

static void on_closed(uv_handle_t *handle)
{
	struct trial *t = handle->data;

	if (--t->n_open == 0)
		trial_free(t);
}

static void close_handle(struct trial *t, enum handle which)
{
	uv_handle_t *handle = &t->handles[which].any;

	if (handle->data && !uv_is_closing(handle))
		uv_close(handle, on_closed);
}

/* It leads a group of its own, whose number is nobody else's until it has been reaped. */
static void kill_all(const struct trial *t)
{
	pid_t pid = t->handles[PROCESS].process.pid;
	siginfo_t info;

	if (t->is_running &&
	    waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0)
		(void)kill(-pid, SIGKILL);
}

/* The handle of a process that runs stays until that is reaped. Frees what never began. */
static void close_all(struct trial *t)
{
	for (enum handle i = IN; i < PROCESS; i++)
		close_handle(t, i);
	if (!t->is_running)
		close_handle(t, PROCESS);
	if (t->n_open == 0)
		trial_free(t);
}

static void answer(struct trial *t, const char *kind, const char *reason, size_t len)
{
	errand_host *core = t->judge->host->core;
	autobuf struct buf json = BUF_INIT(KIB(64));

	buf_addc(&json, '{');
	js_put_member(&json, "kind", kind, strlen(kind));
	if (reason)
		js_put_member(&json, "reason", reason, len);
	buf_addc(&json, '}');
	if (strcmp(kind, "allow") == 0)
		(void)errand_next(core, t->frame);
	else
		(void)errand_answer(core, t->frame, json.data, json.len);
	t->frame = 0;
	if (t->on_abort)
		(void)errand_unregister(core, t->on_abort);
	kill_all(t);
	close_all(t);
}

/* No clear answer is a refusal. */
__attribute__((format(printf, 2, 3))) static void refuse(struct trial *t, const char *fmt,
							 ...)
{
	char why[200];
	autobuf struct buf text = BUF_INIT(KIB(1));
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	buf_addf(&text,
		 "the operator's policy program %s, so this call is refused; the operator "
		 "has to mend it",
		 why);
	answer(t, "deny", text.data, text.len);
}

/* What the program may say: its decision, and what is said where it gives no reason. */
static const struct decision {
	const char *name, *reason;
} decisions[] = {
	{"allow", NULL},
	{"deny", "the operator's policy denies this call"},
	{"ask", NULL},
};

static void decide(struct trial *t, const struct js *said)
{
	const struct decision *d = decisions, *end = d + 3;
	const struct js *name = js_get(said, "decision");
	autobuf struct buf line = BUF_INIT(MAX_ANSWER);
	const char *reason;
	size_t len;

	while (d < end && !js_string_is(name, d->name))
		d++;
	if (d == end) {
		refuse(t, "did not answer {\"decision\":\"allow\"|\"deny\"|\"ask\"}");
		return;
	}
	reason = js_string(js_get(said, "reason"), &len);
	if (!reason && d->reason) {
		reason = d->reason;
		len = strlen(reason);
	}
	if (reason)
		oneline_put(&line, reason, utf8_head(reason, len, MAX_REASON));
	answer(t, d->name, reason ? buf_text(&line) : NULL, line.len);
}

static void judge_answer(struct trial *t)
{
	struct js *said = NULL;

	if (t->signal) {
		refuse(t, "was ended by signal %d", t->signal);
	} else if (t->exit_code) {
		refuse(t, "failed with exit code %d", (int)t->exit_code);
	} else {
		if (js_parse(buf_text(&t->answer), t->answer.len, &said, NULL) < 0) {
			js_free(said);
			said = NULL;
		}
		decide(t, said);
		js_free(said);
	}
}

/* ---- while it runs ---- */

static void begin_next(struct judge *j);

static void on_exit_of(uv_process_t *p, int64_t code, int number)
{
	struct trial *t = p->data;
	struct judge *j = t->judge;

	t->is_running = false;
	t->has_exited = true;
	t->exit_code = code;
	t->signal = number;
	j->running--;
	close_handle(t, PROCESS);
	if (t->frame && t->is_eof)
		judge_answer(t);
	begin_next(j);
	host_turn(j->host);
}

static void on_timeout(uv_timer_t *timer)
{
	struct trial *t = timer->data;
	struct host *h = t->judge->host;

	refuse(t, "did not answer within %lldms", (long long)h->config.policy_timeout_ms);
	host_turn(h);
}

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *ret)
{
	struct trial *t = handle->data;

	(void)suggested;
	if (buf_reserve(&t->answer, READ_SIZE) == 0)
		*ret = uv_buf_init(t->answer.data + t->answer.len, READ_SIZE);
	else
		*ret = uv_buf_init(NULL, 0);
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *bytes)
{
	struct trial *t = stream->data;

	(void)bytes;
	if (n >= 0) {
		t->answer.len += (size_t)n;
		return;
	}
	close_handle(t, OUT);
	t->is_eof = true;
	if (n == UV_ENOBUFS)
		refuse(t, "answered with more than %zu bytes", MAX_ANSWER - READ_SIZE);
	else if (t->has_exited)
		judge_answer(t);
	host_turn(t->judge->host);
}

/* A program may answer without having read it all. */
static void on_written(uv_write_t *w, int status)
{
	struct trial *t = w->data;

	(void)status;
	close_handle(t, IN);
}

static void on_abort(void *ud, errand_host *core)
{
	struct trial *t = ud;

	(void)core;
	t->on_abort = 0;
	refuse(t, "was not waited for");
}

/* ---- its beginning ---- */

static void init_handles(struct trial *t)
{
	uv_loop_t *loop = &t->judge->host->loop;

	(void)uv_pipe_init(loop, &t->handles[IN].pipe, 0);
	(void)uv_pipe_init(loop, &t->handles[OUT].pipe, 0);
	(void)uv_timer_init(loop, &t->handles[TIMER].timer);
	for (enum handle i = IN; i < PROCESS; i++)
		t->handles[i].any.data = t;
	t->n_open = PROCESS;
}

static int spawn(struct trial *t)
{
	struct host *h = t->judge->host;
	uv_stdio_container_t stdio[] = {
		{.flags = UV_CREATE_PIPE | UV_READABLE_PIPE,
		 .data.stream = (uv_stream_t *)&t->handles[IN].pipe},
		{.flags = UV_CREATE_PIPE | UV_WRITABLE_PIPE,
		 .data.stream = (uv_stream_t *)&t->handles[OUT].pipe},
		{.flags = UV_INHERIT_FD, .data.fd = STDERR_FILENO},
	};
	uv_process_options_t o = {
		.exit_cb = on_exit_of,
		.file = h->config.policy[0],
		.args = h->config.policy,
		.env = t->judge->env,
		.cwd = "/",
		.flags = UV_PROCESS_DETACHED,
		.stdio_count = 3,
		.stdio = stdio,
	};
	int rc = uv_spawn(&h->loop, &t->handles[PROCESS].process, &o);

	t->handles[PROCESS].any.data = t;
	t->n_open++;
	if (rc < 0)
		return rc;
	t->is_running = true;
	t->judge->running++;
	return 0;
}

static void begin(struct trial *t)
{
	struct judge *j = t->judge;
	uv_buf_t bytes = uv_buf_init(t->question.data, (unsigned)t->question.len);
	int rc;

	list_del(&t->node);
	list_add(&j->begun, &t->node);
	if (buf_error(&t->question)) {
		refuse(t, "cannot be asked about arguments of this length");
		return;
	}
	init_handles(t);
	rc = spawn(t);
	if (rc < 0) {
		refuse(t, "cannot be run (%s)", uv_strerror(rc));
		return;
	}
	t->write.data = t;
	(void)uv_timer_start(&t->handles[TIMER].timer, on_timeout,
			     (uint64_t)j->host->config.policy_timeout_ms, 0);
	(void)uv_read_start((uv_stream_t *)&t->handles[OUT].pipe, on_room, on_read);
	(void)uv_write(&t->write, (uv_stream_t *)&t->handles[IN].pipe, &bytes, 1,
		       on_written);
}

static void begin_next(struct judge *j)
{
	while (j->running < MAX_RUNNING && !list_is_empty(&j->waiting))
		begin(list_entry(j->waiting.next, struct trial, node));
}

static void put_question(struct trial *t, const struct errand_frame_view *v)
{
	const struct judge *j = t->judge;
	const struct run_context *c = client_context(j->host, v->call);
	size_t len;
	const char *owner = owners_name(&j->host->owners, v->agent, &len);

	buf_addc(&t->question, '{');
	js_put_member(&t->question, "tool", v->tool.ptr, v->tool.len);
	js_put_key(&t->question, "arguments");
	buf_add(&t->question, v->args_json.ptr, v->args_json.len);
	if (owner)
		js_put_member(&t->question, "owner", owner, len);
	if (c && c->cwd)
		js_put_member(&t->question, "folder", c->cwd, strlen(c->cwd));
	buf_adds(&t->question, "}\n");
}

static void on_call(void *ud, errand_host *core, errand_frame f,
		    const struct errand_frame_view *v)
{
	struct judge *j = ud;
	struct trial *t = mem_new(NULL, sizeof(*t));

	t->judge = j;
	t->frame = f;
	buf_init(&t->question, MAX_QUESTION);
	buf_init(&t->answer, MAX_ANSWER);
	put_question(t, v);
	list_add(&j->waiting, &t->node);
	if (errand_on_abort(core, v->signal, on_abort, t, NULL, &t->on_abort) < 0)
		t->on_abort = 0; /* then it is waited for */
	begin_next(j);
}

/* ---- the host's part ---- */

/* The same in a daemon and inside a client, and no secrets of either. */
static char **environment(void)
{
	static const char *const names[] = {
		"HOME=",    "PATH=", "LANG=",   "USER=",
		"LOGNAME=", "TZ=",   "TMPDIR=", "XDG_RUNTIME_DIR="};
	size_t n = sizeof(names) / sizeof(names[0]), used = 0;
	char **ret = mem_new(NULL, (n + 1) * sizeof(*ret));

	for (size_t i = 0; i < n; i++)
		for (char **v = environ; *v; v++)
			if (strncmp(*v, names[i], strlen(names[i])) == 0) {
				ret[used++] = *v;
				break;
			}
	return ret;
}

static int check_program(const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) < 0 || access(path, X_OK) < 0)
		(void)err_sys(err, errno, "cannot be run");
	else if (!S_ISREG(st.st_mode))
		(void)err_set(err, ERR_ARG, "is no file");
	else
		return 0;
	(void)err_wrap(err, "policy.command: '%.150s'", path);
	if (err)
		err->code = ERR_ARG;
	return -ERR_ARG;
}

/* The loop hears of ends by a signal, which whoever started us may have blocked. */
static void hear_of_ends(void)
{
	sigset_t ends;

	sigemptyset(&ends);
	sigaddset(&ends, SIGCHLD);
	(void)sigprocmask(SIG_UNBLOCK, &ends, NULL);
}

int judge_new(struct host *h, struct judge **ret, struct err *err)
{
	struct errand_listener l = {
		.size = sizeof(l),
		.stage = ERRAND_STAGE_PRE,
		.enter = on_call,
	};
	errand_reg reg;
	struct judge *j;
	int rc;

	if (!h->config.policy)
		return 0;
	rc = check_program(h->config.policy[0], err);
	if (rc < 0)
		return rc;
	j = mem_new(NULL, sizeof(*j));
	j->host = h;
	j->env = environment();
	list_init(&j->waiting);
	list_init(&j->begun);
	hear_of_ends();
	l.ud = j;
	*ret = j;
	if (errand_listen(h->core, 0, &l, &reg, NULL) < 0)
		return err_set(err, ERR_STATE, "cannot listen for the policy");
	return 0;
}

void judge_leave(struct judge *j)
{
	if (!j)
		return;
	list_each(node, &j->waiting) trial_free(list_entry(node, struct trial, node));
	list_each(node, &j->begun)
	{
		struct trial *t = list_entry(node, struct trial, node);

		t->frame = 0;
		kill_all(t);
		close_all(t);
		close_handle(t, PROCESS);
	}
}

void judge_free(struct judge *j)
{
	if (!j)
		return;
	mem_free(NULL, j->env);
	mem_free(NULL, j);
}
