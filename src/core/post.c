/* SPDX-License-Identifier: MIT */
/* post.c - what post-execute may do to an outcome: accept, replace, block (spec 9.7). */
#include "base/json.h"
#include "core/call.h"
#include "core/decide.h"
#include "core/host.h"
#include "core/outcome.h"

static void replace_content(errand_host *h, struct call *c, struct js_span content)
{
	str_free(&h->mem, &c->content);
	c->content = str_dup(&h->mem, content.ptr, content.len);
}

/* The answer becomes the new value's; on a failed result there is nothing to replace. */
static void replace_value(errand_host *h, struct call *c)
{
	if (c->error)
		outcome_fail_text(h, c,
				  "tools/post-execute cannot replace the value of a failed "
				  "result",
				  NULL, NULL);
	else if (outcome_take_value(h, c, outcome_parse(h, c, true), true))
		(void)outcome_render(h, c);
}

static void accept(errand_host *h, struct call *c, const struct js *j, struct js_span text)
{
	const struct js *content = js_get(j, "content");
	bool has_content = js_type(content) != JS_NONE && js_type(content) != JS_NULL;
	bool has_value = js_type(js_get(j, "value")) != JS_NONE;

	if (has_content && has_value)
		outcome_fail_text(h, c,
				  "tools/post-execute accept decision cannot replace both "
				  "value and content",
				  NULL, NULL);
	else if (has_content && js_type(content) != JS_ARRAY)
		outcome_fail_text(h, c, "tools/post-execute gave content that is no array",
				  NULL, NULL);
	else if (has_content)
		replace_content(h, c, js_member(text, "content"));
	else if (has_value)
		replace_value(h, c);
}

static void put_block_text(struct buf *out, const struct js *block)
{
	size_t len;
	const char *text = js_string(js_get(block, "text"), &len);
	const char *type;

	if (js_string_is(js_get(block, "type"), "text") && text) {
		(void)buf_add(out, text, len);
		return;
	}
	type = js_string(js_get(block, "type"), &len);
	(void)buf_addc(out, '[');
	(void)buf_add(out, type, type ? len : 0);
	(void)buf_adds(out, " content]");
}

static void block(errand_host *h, struct call *c, const struct js *j, struct js_span text)
{
	const struct js *feedback = js_get(j, "feedback");
	struct js_span blocks = js_member(text, "feedback");
	errand_error *e = NULL;
	struct buf message;

	if (js_type(feedback) != JS_ARRAY)
		blocks = (struct js_span){"[]", 2};
	buf_init_mem(&message, h->max.json, &h->mem);
	for (size_t i = 0; i < js_count(feedback); i++) {
		(void)buf_adds(&message, i ? "\n" : "");
		put_block_text(&message, js_at(feedback, i));
	}
	if (js_count(feedback) == 0)
		(void)buf_adds(&message, "tool result blocked by post-execute policy");
	(void)error_take(&e, ERRAND_EREFUSED, &message);
	outcome_fail(h, c, e);
	replace_content(h, c, blocks);
}

void post_apply(errand_host *h, struct call *c)
{
	struct js_span text = {c->answer.ptr, c->answer.len};
	struct js *j;

	if (is_default_answer(c, DEFAULT_POST))
		return;
	j = outcome_parse(h, c, true);
	if (js_string_is(js_get(j, "kind"), "accept"))
		accept(h, c, j, text);
	else if (js_string_is(js_get(j, "kind"), "block"))
		block(h, c, j, text);
	else
		outcome_fail_text(h, c, "tools/post-execute answered with no decision",
				  NULL, NULL);
	js_free(j);
}
