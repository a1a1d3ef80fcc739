/* SPDX-License-Identifier: MIT */
#include "core/card.h"

#include <string.h>

#include "base/json.h"
#include "base/limits.h"
#include "core/agent.h"
#include "core/host.h"
#include "core/outcome.h"
#include "core/schema.h"
#include "core/tool.h"

/* ---- the cards of the three tools ---- */

/* @title is followed by the id, if @has_id. */
static int put_card(const char *in_json, size_t len, errand_sink *out, const char *title,
		    const char *kind, bool has_id)
{
	struct js *args = NULL;
	const char *id;
	size_t id_len = 0;
	struct buf text;

	if (has_id && js_parse(in_json, len, &args, NULL) == -ERR_NOMEM)
		out->buf.error = -ERR_NOMEM;
	id = js_string(js_get(args, "task_id"), &id_len);
	buf_init_try(&text, MAX_JSON_TEXT, out->buf.mem);
	(void)buf_adds(&text, title);
	(void)buf_add(&text, id, id_len);
	(void)buf_adds(&out->buf, "{\"card\":\"generic\"");
	(void)js_put_member(&out->buf, "title", buf_text(&text), text.len);
	(void)js_put_member(&out->buf, "kind", kind, strlen(kind));
	if (id)
		(void)js_put_member(&out->buf, "rawInput", id, id_len);
	(void)buf_addc(&out->buf, '}');
	if (buf_error(&text))
		out->buf.error = buf_error(&text);
	buf_release(&text);
	js_free(args);
	return 0;
}

int card_output(void *ud, const char *in_json, size_t len, errand_sink *out,
		errand_error *e)
{
	(void)ud;
	(void)e;
	return put_card(in_json, len, out, "Read output from background task ", "read",
			true);
}

int card_list(void *ud, const char *in_json, size_t len, errand_sink *out, errand_error *e)
{
	(void)ud;
	(void)e;
	return put_card(in_json, len, out, "List background tasks", "read", false);
}

int card_kill(void *ud, const char *in_json, size_t len, errand_sink *out, errand_error *e)
{
	(void)ud;
	(void)e;
	return put_card(in_json, len, out, "Kill background task ", "execute", true);
}

/* ---- the card of any tool ---- */

static int are_valid(const errand_host *h, const struct tool *t, errand_str args, bool *ret,
		     errand_error **ret_err)
{
	struct js *j = NULL;
	struct buf why;
	int rc = js_parse_within(args.ptr, args.len, h->max.nesting, &j, NULL);

	if (rc == -ERR_NOMEM)
		return error_no_memory(ret_err, &h->mem);
	buf_init_mem(&why, MAX_ERROR_TEXT, &h->mem);
	*ret = rc == 0 && !js_has_negative_zero(j) &&
	       schema_check(t->params, j, "arguments", "", &why);
	buf_release(&why);
	js_free(j);
	return 0;
}

/* A card that throws, or is no JSON, is none: the call itself is not to suffer. */
static int make(errand_host *h, const struct tool *t, errand_str args, errand_text **ret,
		errand_error **ret_err)
{
	errand_error *e = NULL;
	struct js *j = NULL;
	struct buf out;
	int rc = run_maker(h, t->card, t->ud, args, &out, &e);

	errand_error_free(e);
	if (rc == ERRAND_ENOMEM)
		return error_no_memory(ret_err, &h->mem);
	if (rc != 0)
		return 0;
	rc = js_parse_within(buf_text(&out), out.len, h->max.nesting, &j, NULL);
	js_free(j);
	if (rc == 0)
		return text_take(&out, ret, ret_err);
	buf_release(&out);
	return rc == -ERR_NOMEM ? error_no_memory(ret_err, &h->mem) : 0;
}

int errand_card(errand_host *h, errand_agent agent, const char *tool, const char *args_json,
		size_t len, errand_text **ret_json_or_null, errand_error **ret_err)
{
	struct agent *a = NULL;
	errand_text *card = NULL;
	errand_str args = {args_json, str_length(args_json, len)};
	struct tool *t;
	bool fits = false;
	int rc = 0;

	if (!h || !tool || !ret_json_or_null)
		return error_make(ret_err, NULL, ERRAND_EARG,
				  "no host or tool, or nowhere to answer");
	if (agent != 0 && !(a = agent_get(h, agent, ret_err)))
		return ERRAND_EGONE;
	if (!args.ptr || args.len == 0)
		args = (errand_str){"{}", 2};
	if (args.len > h->max.args)
		return error_make(ret_err, &h->mem, ERRAND_ELIMIT,
				  "args are over %zu bytes", h->max.args);
	t = tool_find(h, a, tool, strlen(tool));
	if (t && t->card)
		rc = are_valid(h, t, args, &fits, ret_err);
	if (fits)
		rc = make(h, t, args, &card, ret_err);
	if (rc == 0)
		*ret_json_or_null = card;
	return rc;
}
