/* SPDX-License-Identifier: MIT */
/* echo.h - a tool of ours for unit tests: it does as it is told, and counts. After core.h. */
#pragma once

#include "core.h"

/* What the tool under test does; reset by fresh_tool(). */
static struct {
	errand_frame frame;
	errand_call call;
	errand_agent agent;
	errand_signal signal;
	errand_reg reg;
	char args[256];
	const char *answer;          /* at once; NULL: later */
	const char *render_answer;   /* NULL: fails */
	const char *finalize_answer; /* NULL: writes nothing */
	const char *finalize_error;
	int entered, rendered, finalized, destroyed;
	char finalize_in[1024];
} tool;

static UNUSED void exec(void *ud, errand_host *h, errand_frame f,
			const struct errand_frame_view *v)
{
	(void)ud;
	tool.frame = f;
	tool.call = v->call;
	tool.agent = v->agent;
	tool.signal = v->signal;
	(void)snprintf(tool.args, sizeof(tool.args), "%.*s", (int)v->args_json.len,
		       v->args_json.ptr);
	CHECK_INT(v->stage, ERRAND_STAGE_BODY);
	CHECK_BYTES(v->tool.ptr, v->tool.len, "echo");
	tool.entered++;
	if (tool.answer)
		CHECK_INT(errand_answer(h, f, tool.answer, ERRAND_NUL), 0);
}

static UNUSED int render(void *ud, const char *in_json, size_t len, errand_sink *out,
			 errand_error *e)
{
	(void)ud;
	(void)in_json;
	(void)len;
	tool.rendered++;
	if (tool.render_answer)
		return errand_sink_write(out, tool.render_answer,
					 strlen(tool.render_answer));
	errand_error_set(e, NULL, NULL, "cannot render", ERRAND_NUL);
	return ERRAND_ECALLBACK;
}

static UNUSED int finalize(void *ud, const char *in_json, size_t len, errand_sink *out,
			   errand_error *e)
{
	(void)ud;
	tool.finalized++;
	(void)snprintf(tool.finalize_in, sizeof(tool.finalize_in), "%.*s", (int)len,
		       in_json);
	if (tool.finalize_error) {
		errand_error_set(e, NULL, NULL, tool.finalize_error, ERRAND_NUL);
		return ERRAND_ECALLBACK;
	}
	if (tool.finalize_answer)
		return errand_sink_write(out, tool.finalize_answer,
					 strlen(tool.finalize_answer));
	return 0;
}

static UNUSED void on_destroy(void *ud)
{
	(void)ud;
	tool.destroyed++;
}

static UNUSED struct errand_tool echo(void)
{
	return (struct errand_tool){
		.size = sizeof(struct errand_tool),
		.name = str("echo"),
		.description = str("Says it again."),
		.params_schema = str("{\"type\":\"object\",\"properties\":{\"n\":{\"type\":"
				     "\"number\"}}}"),
		.output_schema = str("{\"type\":\"object\",\"properties\":{\"s\":{\"type\":"
				     "\"string\"}},\"required\":[\"s\"]}"),
		.exec = exec,
		.destroy = on_destroy,
	};
}

static UNUSED int add(const struct errand_tool *t)
{
	errand_error *e = NULL;
	int rc = errand_tool_add(core.host, 0, t, &tool.reg, &e);

	(void)message(e);
	return rc;
}

static UNUSED void fresh_tool(void)
{
	struct errand_tool t = echo();

	fresh();
	memset(&tool, 0, sizeof(tool));
	tool.answer = "{\"s\":\"hi\"}";
	CHECK_INT(add(&t), 0);
}

/* With a renderer and a finaliser. */
static UNUSED void fresh_full_tool(void)
{
	struct errand_tool t = echo();

	fresh();
	memset(&tool, 0, sizeof(tool));
	tool.answer = "{\"s\":\"hi\"}";
	tool.render_answer = "[{\"type\":\"text\",\"text\":\"rendered\"}]";
	t.render = render;
	t.finalize = finalize;
	CHECK_INT(add(&t), 0);
}

static UNUSED errand_call begin(const char *args)
{
	return call_begin(core.alice, "echo", args);
}
