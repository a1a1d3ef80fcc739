/* SPDX-License-Identifier: MIT */
/* bash_task.c - one command as a task: its start, its end, and what happens between. */
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "run/bash_internal.h"

/* ---- the environment ---- */

/* What makes programs print for a reader that is no terminal. */
static const char *const plain[] = {"NO_COLOR=1", "TERM=dumb", "PAGER=cat",
				    "GIT_PAGER=cat"};

#define PLAIN (sizeof(plain) / sizeof(plain[0]))

static bool has_name(const char *variable, const char *name, size_t len)
{
	return strncmp(variable, name, len) == 0 && variable[len] == '=';
}

static bool is_replaced(const char *variable)
{
	for (size_t i = 0; i < PLAIN; i++)
		if (has_name(variable, plain[i], strcspn(plain[i], "=")))
			return true;
	return false;
}

static bool is_withheld(const struct bash *b, const char *variable)
{
	for (char **name = b->withheld; *name; name++)
		if (has_name(variable, *name, strlen(*name)))
			return true;
	return false;
}

/* The client's, less what is withheld, plus ours. Only the array is new. */
static const char **make_env(const struct bash *b, const struct run_context *c)
{
	size_t n = 0, kept = 0;
	const char **env;

	while (c->env[n])
		n++;
	env = mem_new(NULL, (n + PLAIN + 1) * sizeof(*env));
	for (size_t i = 0; i < n; i++)
		if (!is_replaced(c->env[i]) && !is_withheld(b, c->env[i]))
			env[kept++] = c->env[i];
	for (size_t i = 0; i < PLAIN; i++)
		env[kept++] = plain[i];
	return env;
}

/* ---- the shell ---- */

static const char *path_of(const struct run_context *c)
{
	for (const char *const *v = c->env; *v; v++)
		if (has_name(*v, "PATH", 4))
			return *v + 5;
	return "/bin:/usr/bin";
}

static bool is_in_path(const char *path, const char *program)
{
	char file[4096];

	for (const char *p = path;; p++) {
		size_t len = strcspn(p, ":");
		int n = snprintf(file, sizeof(file), "%.*s/%s", (int)len, p, program);

		if (n < (int)sizeof(file) && access(file, X_OK) == 0)
			return true;
		p += len;
		if (!*p)
			return false;
	}
}

/* Where bash has been found once, it is not looked for again. A PATH without any shell is a
 * poor one, but what is missing in it the shell says best. */
static const char *shell_of(struct bash *b, const struct run_context *c)
{
	const char *path = path_of(c);

	if (b->found_in && strcmp(b->found_in, path) == 0)
		return "bash";
	if (!is_in_path(path, "bash"))
		return is_in_path(path, "sh") ? "sh" : "/bin/sh";
	mem_free(NULL, b->found_in);
	b->found_in = mem_dup(NULL, path, strlen(path));
	return "bash";
}

/* ---- the producer ---- */

/* Of a kill, for whoever asks what became of the task. */
#define REASON_MAX 1000

static void settle(struct bash_task *t, const struct run_end *end)
{
	struct bash *b = t->bash;
	struct buf detail = BUF_INIT(MAX_DETAIL);
	int status = bash_outcome(end, &detail);

	/* Of one that had ended before it was adopted, its record says what it said then. */
	if (!t->is_ended || end->cause != RUN_LOST)
		t->end = *end;
	if (b->config.ended && !t->is_ended)
		b->config.ended(b->config.ud, t->task, run_uid(t->run),
				(int64_t)(end->bytes_seen - end->bytes_dropped),
				end->cause != RUN_NOT_STARTED && end->cause != RUN_LOST);
	t->is_ended = true;
	bash_unkeep(t); /* it may have ended before */
	bash_keep(t);
	buf_release(&t->what);
	(void)errand_settle(b->host, t->task, status, buf_text(&detail), detail.len, NULL,
			    0);
	buf_release(&detail);
}

static void on_end(void *ud, struct run_task *run, const struct run_end *end)
{
	struct bash_task *t = ud;

	(void)run;
	if (t->is_adopted && !t->is_ended && end->never_ran) {
		t->is_unborn = true;
		t->end = *end;
		return;
	}
	settle(t, end);
}

static void lose(struct bash_task *t)
{
	struct run_end end = t->end;

	t->is_unborn = false;
	settle(t, &end);
}

void bash_give_up(struct bash *b)
{
	list_each(node, &b->live)
	{
		struct bash_task *t = list_entry(node, struct bash_task, node);

		if (t->is_unborn)
			lose(t);
	}
}

static int producer_start(void *ud, errand_host *h, errand_task task, errand_error *e)
{
	struct bash_task *t = ud;
	struct err err = {0};

	(void)h;
	t->task = task;
	if (t->imported &&
	    run_attach(t->bash->run, t->imported, on_end, t, &t->run, &err) == 0)
		return 0;
	if (t->spec && run_start(t->bash->run, t->spec, on_end, t, &t->run, &err) == 0)
		return 0;
	errand_error_set(e, NULL, NULL, err.msg, ERRAND_NUL);
	return ERRAND_EREFUSED;
}

static void note_reason(struct bash_task *t, const char *reason, size_t len)
{
	const struct bash_config *c = &t->bash->config;

	if (!reason || !len || t->reason)
		return;
	t->reason = mem_dup(NULL, reason, utf8_head(reason, len, REASON_MAX));
	if (c->kill_reason)
		c->kill_reason(c->ud, t->task, t->reason);
}

static int producer_cancel(void *ud, errand_host *h, errand_task task, const char *reason,
			   size_t len, errand_error *e)
{
	struct bash_task *t = ud;
	const struct bash *b = t->bash;

	(void)h, (void)task, (void)e;
	note_reason(t, reason, len);
	if (b->config.cancelled)
		b->config.cancelled(b->config.ud, t->owner, t->id, reason, len);
	if (t->is_unborn)
		lose(t);
	else
		run_kill(t->run);
	return 0;
}

static void producer_destroy(void *ud)
{
	struct bash_task *t = ud;
	const struct bash_config *c = &t->bash->config;

	bash_unkeep(t);
	if (t->id && c->dropped)
		c->dropped(c->ud, t->owner, t->id, t->bash->is_making_room);
	if (t->number)
		map_del(&t->bash->by_number, t->number);
	if (t->run)
		run_drop(t->run);
	buf_release(&t->what);
	mem_free(NULL, t->reason);
	mem_free(NULL, t->id);
	mem_free(NULL, t);
}

errand_agent bash_owner(const struct bash *b, pid_t shim, const char *uid)
{
	const struct bash_task *t = shim ? run_of_shim(b->run, shim) : NULL;

	if (!t && uid)
		t = run_of_uid(b->run, uid);
	return t ? t->owner : 0;
}

/* The number in "bash-<number>"; 0: it is none of ours. */
static uint64_t number_in(const char *id, size_t len)
{
	static const char prefix[] = "bash-";
	size_t at = sizeof(prefix) - 1;
	uint64_t n = 0;

	if (len <= at || len > at + 16 || memcmp(id, prefix, at) != 0)
		return 0;
	for (; at < len; at++) {
		if (id[at] < '0' || id[at] > '9')
			return 0;
		n = n * 10 + (uint64_t)(id[at] - '0');
	}
	return n;
}

struct bash_task *bash_find(const struct bash *b, const char *id, size_t len)
{
	uint64_t number = number_in(id, len);

	return number ? map_get(&b->by_number, number) : NULL;
}

struct run_task *bash_process(const struct bash *b, const char *id, size_t len)
{
	const struct bash_task *t = bash_find(b, id, len);

	return t ? t->run : NULL;
}

void bash_sweep(struct bash *b, const char *id, size_t len)
{
	const struct bash_task *t = bash_find(b, id, len);

	if (t && t->is_ended && (t->end.processes_left || t->end.is_unproved))
		run_kill(t->run);
}

/* ---- the same command twice ---- */

static void note_what(struct bash_task *t, const struct bash_request *request,
		      const char *cwd)
{
	const char *workdir = request->workdir;

	buf_init(&t->what, MAX_REQUEST_LINE);
	if (cwd && (!workdir || workdir[0] != '/')) {
		buf_adds(&t->what, cwd);
		buf_addc(&t->what, '/');
	}
	if (workdir)
		buf_adds(&t->what, workdir);
	buf_addc(&t->what, 0);
	buf_add(&t->what, request->command, request->command_len);
}

static bool is_equal(const struct bash_task *a, const struct bash_task *b)
{
	return a->owner == b->owner && a->what.len == b->what.len &&
	       memcmp(a->what.data, b->what.data, a->what.len) == 0;
}

static uint64_t find_equal(const struct bash_task *t)
{
	list_each(node, &t->bash->live)
	{
		const struct bash_task *other = list_entry(node, struct bash_task, node);

		if (is_equal(t, other))
			return other->number;
	}
	return 0;
}

/* A label is the command, or its beginning. */
static void put_label(struct buf *out, const struct bash_request *request)
{
	static const char ellipsis[] = "\xe2\x80\xa6";
	const char *text = request->label ? request->label : request->command;
	size_t all = request->label ? request->label_len : request->command_len, len = all;

	if (len > BASH_LABEL_MAX)
		len = utf8_head(text, len, BASH_LABEL_MAX - strlen(ellipsis));
	buf_add(out, text, len);
	if (len < all)
		buf_adds(out, ellipsis);
}

static struct errand_producer producer_of(struct bash_task *t)
{
	return (struct errand_producer){
		.size = sizeof(struct errand_producer),
		.start = producer_start,
		.cancel = producer_cancel,
		.read = bash_read,
		.ud = t,
		.destroy = producer_destroy,
	};
}

/* It has a name from here on. */
static void enter(struct bash_task *t, const char *id, size_t len)
{
	t->id = mem_dup(NULL, id, len);
	t->number = number_in(id, len);
	map_put(&t->bash->by_number, t->number, t);
	if (!t->is_ended)
		list_add(&t->bash->live, &t->node);
}

static void tell_started(const struct bash_task *t)
{
	const struct bash_config *c = &t->bash->config;

	if (c->started)
		c->started(c->ud, t->task, run_uid(t->run));
}

static int start_task(struct bash_task *t, const struct bash_request *request,
		      errand_text **ret_id, errand_error **ret_err)
{
	struct bash *b = t->bash;
	autobuf struct buf label = BUF_INIT(BASH_LABEL_MAX);
	struct errand_task_spec spec = {
		.size = sizeof(spec),
		.kind = {"bash", 4},
		.limit_json = {b->limit_json, ERRAND_NUL},
		.owner = t->owner,
		.producer = producer_of(t),
	};
	errand_task task;
	const char *id;
	size_t len;
	int rc;

	put_label(&label, request);
	spec.label.ptr = buf_text(&label);
	spec.label.len = label.len;
	rc = errand_task_start(b->host, &spec, &task, ret_id, ret_err);
	if (rc < 0)
		return rc; /* @t has been destroyed */
	id = errand_text_data(*ret_id, &len);
	t->equal = find_equal(t);
	enter(t, id, len);
	tell_started(t);
	t->spec = NULL;
	return 0;
}

/* All that a start needs; one after the other points into what stands before it. */
struct plan {
	const char **env;
	struct run_context context;
	const char *argv[5];
	struct run_spec spec;
};

static void plan_make(struct plan *p, struct bash *b, const struct run_context *client,
		      const struct bash_request *request)
{
	size_t n = 0;

	p->env = make_env(b, client);
	p->context = *client;
	p->context.env = p->env;
	p->argv[n++] = shell_of(b, client);
	p->argv[n++] = "-c";
	if (strchr("-+", request->command[0])) /* or it would be taken for options */
		p->argv[n++] = "--";
	p->argv[n++] = request->command;
	p->argv[n] = NULL;
	p->spec = (struct run_spec){
		.argv = p->argv,
		.context = &p->context,
		.workdir = request->workdir,
		.deadline_ms = request->timeout_ms,
		.grace_ms = b->config.grace_ms,
		.log_head = b->config.log_head,
		.log_tail = b->config.log_tail,
	};
}

static void plan_release(struct plan *p)
{
	mem_free(NULL, p->env);
}

int bash_resume(struct bash *b, const char *id, size_t len,
		const struct run_context *client, const struct bash_request *request,
		struct err *err)
{
	struct bash_task *t = bash_find(b, id, len);
	struct run_task *run = NULL;
	struct plan plan;
	int rc;

	if (!t || !t->is_unborn)
		return 0;
	plan_make(&plan, t->bash, client, request);
	rc = run_start(t->bash->run, &plan.spec, on_end, t, &run, err);
	plan_release(&plan);
	if (rc < 0)
		return rc;
	run_drop(t->run);
	t->run = run;
	t->is_unborn = t->is_adopted = false;
	tell_started(t);
	return 0;
}

int bash_start(struct bash *b, errand_agent owner, const struct run_context *client,
	       const struct bash_request *request, errand_text **ret_id,
	       errand_error **ret_err)
{
	struct bash_task *t;
	struct plan plan;
	struct err err = {0};
	int rc;

	if (b->config.may_start && b->config.may_start(b->config.ud, &err) < 0) {
		*ret_err = errand_error_new(NULL, NULL, err.msg, ERRAND_NUL);
		return ERRAND_EREFUSED;
	}
	t = mem_new(NULL, sizeof(*t));
	plan_make(&plan, b, client, request);
	list_init(&t->node);
	t->bash = b;
	t->owner = owner;
	t->began_ms = clock_mono_ms();
	note_what(t, request, client->cwd);
	t->spec = &plan.spec;
	rc = start_task(t, request, ret_id, ret_err);
	plan_release(&plan);
	return rc;
}

/* ---- the tasks of a dead host ---- */

int bash_import(struct bash *b, errand_agent owner, const char *uid, const char *label,
		errand_text **ret_id, errand_error **ret_err)
{
	struct bash_request request = {.label = label, .label_len = strlen(label)};
	struct bash_task *t = mem_new(NULL, sizeof(*t));
	int rc;

	list_init(&t->node);
	t->bash = b;
	t->owner = owner;
	t->began_ms = clock_mono_ms();
	buf_init(&t->what, KIB(1));
	buf_adds(&t->what, uid); /* equal to no other */
	t->imported = uid;
	rc = start_task(t, &request, ret_id, ret_err);
	if (rc == 0)
		t->imported = NULL;
	return rc;
}

static bool is_word(struct js_span s, const char *word)
{
	return s.len == strlen(word) + 2 && memcmp(s.ptr + 1, word, s.len - 2) == 0;
}

static uint64_t number_of(struct js_span s)
{
	return s.ptr ? strtoull(s.ptr, NULL, 10) : 0;
}

/* There may be many: none is parsed. */
static int adopt(struct bash *b, errand_task task, struct js_span record, const char *uid,
		 const char *kill_reason, struct errand_producer *ret, struct err *err)
{
	enum {
		KIND,
		AGENT,
		STARTED,
		STATUS,
		ORDINAL,
		MEMBERS,
	};
	static const char *const keys[MEMBERS] = {"kind", "agent", "startedAt", "status",
						  "ordinal"};
	struct js_span m[MEMBERS];
	struct bash_task *t;
	char id[32];
	int rc, n;

	js_members(record, keys, m, MEMBERS);
	if (!is_word(m[KIND], "bash"))
		return err_set(err, ERR_ARG, "it is no task of bash");
	t = mem_new(NULL, sizeof(*t));
	list_init(&t->node);
	buf_init(&t->what, 0);
	t->bash = b;
	t->task = task;
	t->owner = number_of(m[AGENT]);
	t->began_ms = clock_mono_ms() - (clock_wall_ms() - (int64_t)number_of(m[STARTED]));
	t->is_ended = !is_word(m[STATUS], "running") && !is_word(m[STATUS], "stopping");
	t->is_adopted = true;
	if (kill_reason)
		t->reason = mem_dup(NULL, kill_reason, strlen(kill_reason));
	*ret = producer_of(t);
	rc = run_attach(b->run, uid, on_end, t, &t->run, err);
	if (rc < 0) {
		producer_destroy(t);
		return rc;
	}
	n = snprintf(id, sizeof(id), "bash-%llu",
		     (unsigned long long)number_of(m[ORDINAL]));
	enter(t, id, (size_t)n);
	return 0;
}

int bash_adopt(struct bash *b, errand_task task, const char *record, size_t len,
	       const char *uid, const char *kill_reason, struct errand_producer *ret,
	       errand_error *e)
{
	struct err err = {0};
	int rc = adopt(b, task, (struct js_span){record, len}, uid, kill_reason, ret, &err);

	if (rc < 0)
		errand_error_set(e, NULL, NULL, err.msg, ERRAND_NUL);
	return rc < 0 ? ERRAND_EREFUSED : 0;
}
