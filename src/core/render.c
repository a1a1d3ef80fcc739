/* SPDX-License-Identifier: MIT */
#include "core/render.h"

#include <string.h>

#include "base/json.h"
#include "core/call.h"
#include "core/host.h"
#include "core/oneline.h"
#include "core/retain.h"

#define EM_DASH "\xe2\x80\x94"

static const char *member(const struct js *object, const char *key, size_t *ret_len)
{
	return js_string(js_get(object, key), ret_len);
}

static void line_of_value(const struct js *task, struct task_line *t)
{
	t->id = member(task, "id", &t->id_len);
	t->kind = member(task, "kind", &t->kind_len);
	t->label = member(task, "label", &t->label_len);
	t->status = member(task, "status", NULL);
	t->detail = member(task, "detail", &t->detail_len);
}

/* ---- task_output ---- */

/* What stands before the status line; @ret_len without one newline at its end. */
static const char *output_body(const struct js *value, size_t *ret_len)
{
	const char *body = member(value, "text", ret_len);

	if (*ret_len == 0) {
		body = "(no new output)";
		*ret_len = strlen(body);
	}
	if (body[*ret_len - 1] == '\n')
		(*ret_len)--;
	return body;
}

static void put_status_line(struct buf *text, const struct js *value)
{
	struct task_line t;

	line_of_value(js_get(value, "task"), &t);
	(void)buf_addc(text, '\n');
	oneline_put_status(text, &t);
}

void render_output(struct buf *text, const struct js *value)
{
	size_t len;
	const char *body = output_body(value, &len);

	(void)buf_add(text, body, len);
	put_status_line(text, value);
}

/* ---- task_list ---- */

static void put_row(struct buf *text, const struct js *task)
{
	struct task_line t;

	line_of_value(task, &t);
	oneline_put(text, t.id, t.id_len);
	(void)buf_adds(text, " [");
	oneline_put(text, t.kind, t.kind_len);
	(void)buf_addf(text, "] %s " EM_DASH " ", t.status);
	oneline_put(text, t.label, t.label_len);
}

void render_list(struct buf *text, const struct js *value)
{
	if (js_count(value) == 0)
		(void)buf_adds(text, "(no background tasks)");
	for (size_t i = 0; i < js_count(value); i++) {
		if (i)
			(void)buf_addc(text, '\n');
		put_row(text, js_at(value, i));
	}
}

/* ---- task_kill ---- */

void render_kill(struct buf *text, const struct js *value)
{
	struct task_line t;

	line_of_value(js_get(value, "task"), &t);
	if (js_string_is(js_get(value, "outcome"), "cancellation-requested")) {
		(void)buf_adds(text, "requested cancellation of task ");
		oneline_put(text, t.id, t.id_len);
		return;
	}
	(void)buf_adds(text, "task ");
	oneline_put(text, t.id, t.id_len);
	(void)buf_adds(text, " had already finished ");
	oneline_put_status(text, &t);
}

/* ---- the bound ---- */

/* The text of content that is exactly one text block; NULL otherwise (spec 5.6). */
static const char *single_text(const struct js *content, size_t *ret_len)
{
	const struct js *block = js_at(content, 0);

	if (js_count(content) != 1 || !js_string_is(js_get(block, "type"), "text"))
		return NULL;
	return member(block, "text", ret_len);
}

/* Body and status line apart, if @text is still the default rendering of @value. */
static bool split_output(const struct js *value, struct fit *f, struct buf *status)
{
	size_t len;
	const char *body = output_body(value, &len);

	put_status_line(status, value);
	if (f->len != len + status->len || memcmp(f->text, body, len) != 0 ||
	    memcmp(f->text + len, buf_text(status), status->len) != 0)
		return false;
	f->len = len;
	f->suffix = buf_text(status);
	f->suffix_len = status->len;
	f->word = "[output truncated]";
	return true;
}

static void bound_text(errand_host *h, struct call *c, struct fit *f, bool is_output)
{
	struct buf status, text, content;

	buf_init_mem(&status, h->max.json, &h->mem);
	buf_init_mem(&text, h->max.json, &h->mem);
	buf_init_mem(&content, h->max.json, &h->mem);
	if (is_output && !c->error)
		(void)split_output(c->value_node, f, &status);
	if (f->len + f->suffix_len > f->limit) {
		(void)fit_put(&text, f);
		put_text_block(&content, buf_text(&text), text.len);
		str_free(&h->mem, &c->content);
		c->content = str_of_buf(&content);
		buf_release(&text);
	}
	buf_release(&status);
}

void render_bound(errand_host *h, struct call *c, uint64_t limit, bool is_output)
{
	struct fit f = {.suffix = "", .word = "[result truncated]", .limit = limit};
	struct js *content = NULL;

	if (parse_here(&h->mem, h->max.nesting, c->content.ptr, c->content.len, &content) ==
	    0)
		f.text = single_text(content, &f.len);
	if (f.text)
		bound_text(h, c, &f, is_output);
	js_free(content);
}
