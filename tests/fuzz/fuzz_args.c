/* SPDX-License-Identifier: MIT */
/*
 * Arguments of the three tools, and messages for the inbox: any bytes give one result that
 * is JSON, and the task is still there afterwards.
 */
#include <stdint.h>

#include "base/json.h"
#include "errand.h"
#include "strict.h"

static errand_str str(const char *s)
{
	return (errand_str){s, ERRAND_NUL};
}

static int results;

static int work_start(void *ud, errand_host *h, errand_task t, errand_error *e)
{
	(void)ud;
	(void)h;
	(void)t;
	(void)e;
	return 0;
}

static int work_cancel(void *ud, errand_host *h, errand_task t, const char *reason,
		       size_t len, errand_error *e)
{
	(void)ud;
	(void)h;
	(void)t;
	(void)e;
	assert(reason || len == 0);
	return 0;
}

static int work_read(void *ud, errand_task t, uint64_t from, errand_sink *out,
		     uint64_t *ret_next, errand_error *e)
{
	(void)ud;
	(void)t;
	(void)e;
	(void)errand_sink_write(out, "some output\n", 12);
	*ret_next = from + 12;
	return 0;
}

static int on_result(void *ud, errand_host *h, errand_call c, errand_lease l,
		     const char *result_json, size_t len)
{
	struct js *j = NULL;

	(void)ud;
	(void)h;
	(void)c;
	(void)l;
	assert_strict(result_json, len);
	assert(js_parse(result_json, len, &j, NULL) == 0);
	assert(js_type(js_get(j, "content")) == JS_ARRAY);
	js_free(j);
	results++;
	return ERRAND_DELIVERED;
}

static errand_host *host_new(errand_agent *ret_agent)
{
	struct errand_host_options o = {.size = sizeof(o), .abi = ERRAND_ABI};
	struct errand_agent_options a = {.size = sizeof(a), .session = str("a")};
	struct errand_task_spec s = {.size = sizeof(s),
				     .kind = str("bash"),
				     .label = str("sleep 60"),
				     .limit_json = str("40"),
				     .producer = {.size = sizeof(s.producer),
						  .start = work_start,
						  .cancel = work_cancel,
						  .read = work_read}};
	errand_host *h = NULL;
	errand_reg r;
	errand_task t;
	int rc = errand_host_new(&o, &h, NULL);

	assert(rc == 0);
	rc = errand_mount(h, 0, "{}", 2, &r, NULL);
	assert(rc == 0);
	rc = errand_agent_new(h, &a, ret_agent, NULL);
	assert(rc == 0);
	s.owner = *ret_agent;
	rc = errand_task_start(h, &s, &t, NULL, NULL);
	assert(rc == 0);
	return h;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const tools[] = {"task_output", "task_list", "task_kill"};
	struct errand_call_options o = {.size = sizeof(o),
					.args = {(const char *)data, size},
					.on_result = on_result};
	errand_text *t = NULL;
	errand_host *h = host_new(&o.agent);
	const char *json;
	size_t len;
	int rc;

	results = 0;
	for (size_t i = 0; i < 3; i++) {
		o.tool = str(tools[i]);
		rc = errand_call_new(h, &o, NULL, NULL);
		assert(rc == 0);
	}
	rc = errand_insert(h, o.agent, ERRAND_NEXT_STEP, (const char *)data, size, NULL,
			   NULL);
	assert(rc <= 0);
	rc = errand_inbox(h, o.agent, &t, NULL);
	assert(rc == 0);
	json = errand_text_data(t, &len);
	assert_strict(json, len);
	errand_text_free(t);
	for (int64_t now = 0; results < 3; now += 1000000)
		while (errand_run(h, now, now, 0) > 0)
			;
	rc = errand_get(h, "bash-1", 6, o.agent, &t, NULL);
	assert(rc == 0);
	errand_text_free(t);
	errand_host_free(h);
	return 0;
}
