/* SPDX-License-Identifier: MIT */
/* bash.c - the tool: from a call to a task, and from its end to an answer. */
#include "run/bash.h"

#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "run/bash_internal.h"

static const char description[] =
	"Run a command with `bash -c` (sh where there is no bash) on the user's machine. It "
	"runs as the user does, outside the client's own sandbox and permission rules. stdout "
	"and stderr come back as one stream; stdin is empty. Check the [exit code: N] marker "
	"of each result. Every command is a task: one that takes long goes on in the "
	"background by itself, and with run_in_background: true you get its id at once, go "
	"on with other work, and are told when it ends; read it with task_output, stop it "
	"with task_kill. Do not poll, and do not end a command with &. Long output is cut to "
	"its newest part; what was left out stays in the log that the reply names.";

static const char params_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"command\":{\"type\":\"string\",\"description\":\"The command line, for bash -c.\"},"
	"\"description\":{\"type\":\"string\",\"description\":\"What it does, in five to ten "
	"words.\"},"
	"\"workdir\":{\"type\":\"string\",\"description\":\"Directory to run it in; the "
	"session's own if absent.\"},"
	"\"timeoutMs\":{\"type\":\"number\",\"description\":\"End it after so many "
	"milliseconds (1 to 86400000); you cannot change it later. No limit if absent.\"},"
	"\"run_in_background\":{\"type\":\"boolean\",\"description\":\"True: answer with a "
	"task id at once, and tell me when it ends.\"}},"
	"\"required\":[\"command\",\"description\"]}";

static const char output_schema[] =
	"{\"type\":\"object\",\"properties\":{"
	"\"kind\":{\"type\":\"string\",\"enum\":[\"background\",\"foreground\"]},"
	"\"taskId\":{\"type\":\"string\"},"
	"\"text\":{\"type\":\"string\"},"
	"\"task\":{\"type\":\"object\"}},"
	"\"required\":[\"kind\",\"taskId\"],\"additionalProperties\":false}";

/* ---- answers ---- */

static void fail_with(errand_host *h, errand_frame f, errand_error *e)
{
	(void)errand_fail(h, f, e);
	errand_error_free(e);
}

static void fail(errand_host *h, errand_frame f, const struct buf *text)
{
	fail_with(h, f, errand_error_new(NULL, NULL, buf_text(text), text->len));
}

static void answer_background(errand_host *h, errand_frame f, const char *id, size_t len)
{
	struct buf value = BUF_INIT(KIB(1));

	buf_adds(&value, "{\"kind\":\"background\"");
	js_put_member(&value, "taskId", id, len);
	buf_addc(&value, '}');
	(void)errand_answer(h, f, buf_text(&value), value.len);
	buf_release(&value);
}

/* ---- the foreground ---- */

/* A call that waits for its task. */
struct waiting {
	errand_frame frame;
	errand_agent agent;
	char *id;
};

static void waiting_free(void *ud)
{
	struct waiting *w = ud;

	mem_free(NULL, w->id);
	mem_free(NULL, w);
}

/* Nothing counts as read before the call's own result is delivered. */
static void bind_lease(errand_host *h, errand_frame f, errand_lease l)
{
	if (l && errand_frame_lease(h, f, l) < 0)
		(void)errand_lease_return(h, l);
}

/* Of @snapshot, what a public task has; the rest is the registry's (spec 4.2). */
static void put_public(struct buf *out, struct js_span snapshot)
{
	static const char *const keys[] = {"id",     "kind",      "label",     "status",
					   "detail", "startedAt", "finishedAt"};
	struct js_span members[sizeof(keys) / sizeof(keys[0])];

	js_members(snapshot, keys, members, sizeof(keys) / sizeof(keys[0]));
	buf_addc(out, '{');
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		if (!members[i].ptr)
			continue;
		js_put_key(out, keys[i]);
		buf_add(out, members[i].ptr, members[i].len);
	}
	buf_addc(out, '}');
}

/* @read is {"text":...,"task":<snapshot>}. */
static void answer_foreground(errand_host *h, const struct waiting *w,
			      const errand_text *read)
{
	struct buf value = BUF_INIT(MAX_RESULT * 8);
	struct js_span json, text;

	json.ptr = errand_text_data(read, &json.len);
	text = js_member(json, "text");
	buf_adds(&value, "{\"kind\":\"foreground\"");
	js_put_member(&value, "taskId", w->id, strlen(w->id));
	buf_adds(&value, ",\"text\":");
	buf_add(&value, text.ptr, text.len);
	buf_adds(&value, ",\"task\":");
	put_public(&value, js_member(json, "task"));
	buf_addc(&value, '}');
	(void)errand_answer(h, w->frame, buf_text(&value), value.len);
	buf_release(&value);
}

/* The task has ended, or it takes too long to wait for it any more. */
static void on_waited(void *ud, errand_host *h, errand_lease l, const char *snapshot_json,
		      size_t len, const errand_error *e)
{
	struct waiting *w = ud;
	errand_error *read_error = NULL;
	errand_text *read = NULL;
	errand_lease read_lease = 0;

	(void)snapshot_json, (void)len;
	if (e) {
		(void)errand_fail(h, w->frame, e);
		return;
	}
	bind_lease(h, w->frame, l);
	if (errand_read(h, w->id, ERRAND_NUL, w->agent, &read_lease, &read, &read_error) <
	    0) {
		fail_with(h, w->frame, read_error);
		return;
	}
	bind_lease(h, w->frame, read_lease);
	answer_foreground(h, w, read);
	errand_text_free(read);
}

static void wait_for(struct bash *b, const struct errand_frame_view *v, errand_frame f,
		     const char *id, size_t len)
{
	struct waiting *w = mem_new(NULL, sizeof(*w));
	errand_error *e = NULL;

	w->frame = f;
	w->agent = v->agent;
	w->id = mem_dup(NULL, id, len);
	if (errand_wait(b->host, id, len, v->agent, b->foreground, ERRAND_NUL, v->signal,
			on_waited, w, waiting_free, &e) < 0)
		fail_with(b->host, f, e);
}

/* ---- a call ---- */

static void respond(struct bash *b, const struct errand_frame_view *v, errand_frame f,
		    bool is_background, const char *id, size_t len)
{
	if (is_background)
		answer_background(b->host, f, id, len);
	else
		wait_for(b, v, f, id, len);
}

static void start_checked(struct bash *b, const struct errand_frame_view *v, errand_frame f,
			  const struct bash_request *request)
{
	const struct run_context *client = b->config.context(b->config.ud, v->call);
	errand_error *e = NULL;
	errand_text *id = NULL;
	const char *text;
	size_t len;

	if (!client) {
		fail_with(b->host, f,
			  errand_error_new(NULL, NULL, "whoever asked for it is gone",
					   ERRAND_NUL));
		return;
	}
	if (bash_start(b, v->agent, client, request, &id, &e) < 0) {
		fail_with(b->host, f, e);
		return;
	}
	text = errand_text_data(id, &len);
	if (b->config.promised)
		b->config.promised(b->config.ud, v->call, v->agent, text);
	respond(b, v, f, request->is_background, text, len);
	errand_text_free(id);
}

/* The request has come to a host that died before it began. False: it cannot begin, and that has
 * been said. */
static bool begin_again(struct bash *b, const struct errand_frame_view *v, errand_frame f,
			const struct bash_request *request, const char *id)
{
	const struct run_context *client = b->config.context(b->config.ud, v->call);
	struct err err = {0};

	if (!client || bash_resume(b, id, strlen(id), client, request, &err) == 0)
		return true;
	fail_with(b->host, f, errand_error_new(NULL, NULL, err.msg, ERRAND_NUL));
	return false;
}

static void run_checked(struct bash *b, const struct errand_frame_view *v, errand_frame f,
			const struct bash_request *request)
{
	const char *id = b->config.known ? b->config.known(b->config.ud, v->call) : NULL;

	if (id && !begin_again(b, v, f, request, id))
		return;
	if (id)
		respond(b, v, f, request->is_background, id, strlen(id));
	else
		start_checked(b, v, f, request);
}

static void bash_exec(void *ud, errand_host *h, errand_frame f,
		      const struct errand_frame_view *v)
{
	struct buf trouble = BUF_INIT(MAX_ERROR_TEXT);
	struct bash_request request;
	struct js *args = NULL;

	if (js_parse(v->args_json.ptr, v->args_json.len, &args, NULL) != 0)
		buf_adds(&trouble, "the arguments are not JSON");
	else if (bash_check(args, &request, &trouble))
		run_checked(ud, v, f, &request);
	if (trouble.len)
		fail(h, f, &trouble);
	buf_release(&trouble);
	js_free(args);
}

/* ---- the tool ---- */

static char **copy_names(const char *const *names)
{
	size_t n = 0;
	char **copy;

	while (names && names[n])
		n++;
	copy = mem_new(NULL, (n + 1) * sizeof(*copy));
	for (size_t i = 0; i < n; i++)
		copy[i] = mem_dup(NULL, names[i], strlen(names[i]));
	return copy;
}

void bash_free(struct bash *b)
{
	if (!b)
		return;
	for (char **name = b->withheld; *name; name++)
		mem_free(NULL, *name);
	mem_free(NULL, b->withheld);
	map_release(&b->by_number);
	mem_free(NULL, b->found_in);
	mem_free(NULL, b->limit_json);
	mem_free(NULL, b);
}

struct bash *bash_new(errand_host *h, struct run *r, const struct bash_config *c)
{
	struct bash *b = mem_new(NULL, sizeof(*b));
	char text[24];
	int len;

	b->host = h;
	b->run = r;
	b->config = *c;
	list_init(&b->live);
	list_init(&b->ended);
	map_init(&b->by_number, NULL);
	b->withheld = copy_names(c->withheld);
	b->config.withheld = NULL;
	(void)snprintf(b->foreground, sizeof(b->foreground), "%lld",
		       (long long)c->foreground_ms);
	len = snprintf(text, sizeof(text), "%llu", (unsigned long long)c->output_limit);
	if (c->output_limit)
		b->limit_json = mem_dup(NULL, text, (size_t)len);
	return b;
}

int bash_offer(struct bash *b, errand_error **ret_err)
{
	struct errand_tool tool = {
		.size = sizeof(tool),
		.name = {"bash", 4},
		.description = {description, ERRAND_NUL},
		.params_schema = {params_schema, ERRAND_NUL},
		.output_schema = {output_schema, ERRAND_NUL},
		.exec = bash_exec,
		.render = bash_render,
		.ud = b,
	};
	errand_reg reg;

	return errand_tool_add(b->host, 0, &tool, &reg, ret_err);
}

int bash_install(errand_host *h, struct run *r, const struct bash_config *c,
		 struct bash **ret, errand_error **ret_err)
{
	struct bash *b = bash_new(h, r, c);
	int rc = bash_offer(b, ret_err);

	if (rc < 0)
		bash_free(b);
	else
		*ret = b;
	return rc;
}
