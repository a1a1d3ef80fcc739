/* SPDX-License-Identifier: MIT */
/*
 * What the program's own callbacks say, by the first byte: a body's answer, a policy's around it
 * and behind it, a renderer, a finaliser, an error. Any bytes give one result, which is strict
 * JSON.
 */
#include <stdint.h>
#include <string.h>

#include "errand.h"
#include "strict.h"

enum door {
	DOOR_BODY,
	DOOR_AROUND,
	DOOR_POST,
	DOOR_RENDER,
	DOOR_FINALIZE,
	DOOR_ERROR,
	N_DOORS,
};

static enum door door;
static errand_str said;
static int results;

static errand_str str(const char *s)
{
	return (errand_str){s, ERRAND_NUL};
}

static void answer(errand_host *h, errand_frame f, enum door at, const char *otherwise)
{
	errand_str text = door == at ? said : str(otherwise);

	(void)errand_answer(h, f, text.ptr, text.len);
}

static void body(void *ud, errand_host *h, errand_frame f,
		 const struct errand_frame_view *v)
{
	errand_error *e;

	(void)ud;
	assert_strict(v->args_json.ptr, v->args_json.len);
	if (door != DOOR_ERROR) {
		answer(h, f, DOOR_BODY, "{}");
		return;
	}
	e = errand_error_new(NULL, NULL, said.ptr, said.len);
	(void)errand_fail(h, f, e);
	errand_error_free(e);
}

static void policy(void *ud, errand_host *h, errand_frame f,
		   const struct errand_frame_view *v)
{
	(void)ud;
	if (v->stage == ERRAND_STAGE_AROUND)
		answer(h, f, DOOR_AROUND, "{}");
	else
		answer(h, f, DOOR_POST, "{\"kind\":\"accept\"}");
}

static int write_said(errand_sink *out, enum door at, const char *otherwise)
{
	errand_str text = door == at ? said : (errand_str){otherwise, strlen(otherwise)};

	return errand_sink_write(out, text.ptr, text.len) < 0 ? ERRAND_ECALLBACK : 0;
}

static int render(void *ud, const char *in_json, size_t len, errand_sink *out,
		  errand_error *e)
{
	(void)ud;
	(void)e;
	assert_strict(in_json, len);
	return write_said(out, DOOR_RENDER, "[]");
}

static int finalize(void *ud, const char *in_json, size_t len, errand_sink *out,
		    errand_error *e)
{
	(void)ud;
	(void)e;
	assert_strict(in_json, len);
	return write_said(out, DOOR_FINALIZE, "");
}

static int on_result(void *ud, errand_host *h, errand_call c, errand_lease l,
		     const char *result_json, size_t len)
{
	(void)ud;
	(void)h;
	(void)c;
	(void)l;
	assert_strict(result_json, len);
	results++;
	return ERRAND_DELIVERED;
}

static void listen_at(errand_host *h, int stage)
{
	struct errand_listener l = {.size = sizeof(l), .stage = stage, .enter = policy};
	int rc = errand_listen(h, 0, &l, NULL, NULL);

	assert(rc == 0);
}

static errand_host *host_new(void)
{
	struct errand_host_options o = {.size = sizeof(o), .abi = ERRAND_ABI};
	struct errand_tool t = {.size = sizeof(t),
				.name = str("t"),
				.description = str("t"),
				.params_schema = str("{\"type\":\"object\"}"),
				.output_schema = str("{}"),
				.exec = body,
				.render = render,
				.finalize = finalize};
	errand_host *h = NULL;
	errand_reg r;
	int rc = errand_host_new(&o, &h, NULL);

	assert(rc == 0);
	rc = errand_tool_add(h, 0, &t, &r, NULL);
	assert(rc == 0);
	if (door == DOOR_AROUND)
		listen_at(h, ERRAND_STAGE_AROUND);
	if (door == DOOR_POST)
		listen_at(h, ERRAND_STAGE_POST);
	return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct errand_call_options o = {
		.size = sizeof(o), .tool = str("t"), .on_result = on_result};
	errand_host *h;
	int rc;

	if (size == 0)
		return 0;
	door = (enum door)(data[0] % N_DOORS);
	said = (errand_str){(const char *)data + 1, size - 1};
	results = 0;
	h = host_new();
	rc = errand_call_new(h, &o, NULL, NULL);
	assert(rc == 0);
	while (errand_run(h, 0, 0, 0) > 0)
		;
	assert(results == 1);
	errand_host_free(h);
	return 0;
}
