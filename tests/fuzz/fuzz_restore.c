/* SPDX-License-Identifier: MIT */
/*
 * fuzz_restore.c - a journal, whatever became of it: restored and worked with, or refused.
 *
 * The input is one fact a line. What is restored must show well-formed JSON, and every task
 * and message of it must come to an end.
 */
#include <stdlib.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "errand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static errand_host *host;

static void must(bool is_true)
{
	if (!is_true)
		abort();
}

static errand_str str(const char *s)
{
	return (errand_str){s, ERRAND_NUL};
}

/* ---- a producer that keeps every second task ---- */

static int cancel(void *ud, errand_host *h, errand_task t, const char *reason, size_t len,
		  errand_error *e)
{
	(void)ud;
	(void)reason;
	(void)len;
	(void)e;
	return errand_settle(h, t, ERRAND_KILLED, NULL, 0, NULL, 0);
}

static int read_text(void *ud, errand_task t, uint64_t from, errand_sink *out,
		     uint64_t *ret_next, errand_error *e)
{
	(void)ud;
	(void)t;
	(void)e;
	(void)errand_sink_write(out, "more\n", 5);
	*ret_next = from + 5;
	return 0;
}

static void is_json(const char *p, size_t len)
{
	struct js *j = NULL;

	must(js_parse(p, len, &j, NULL) == 0);
	js_free(j);
}

static int adopt(void *ud, errand_host *h, errand_task t, const char *record, size_t len,
		 struct errand_producer *ret, errand_error *e)
{
	(void)ud;
	(void)h;
	is_json(record, len);
	if (t % 2) {
		errand_error_set(e, NULL, NULL, "gone", ERRAND_NUL);
		return ERRAND_ECALLBACK;
	}
	*ret = (struct errand_producer){
		.size = sizeof(*ret), .cancel = cancel, .read = t % 4 ? read_text : NULL};
	return 0;
}

/* ---- what is done with what came back ---- */

static void run(void)
{
	static int64_t now;

	now += 20000;
	while (errand_run(host, now, now, 0) > 0)
		;
}

static void look(errand_text *t)
{
	size_t len;
	const char *p = errand_text_data(t, &len);

	is_json(p, len);
	errand_text_free(t);
}

static errand_agent agent(const char *session, uint32_t flags)
{
	struct errand_agent_options o = {
		.size = sizeof(o), .flags = flags, .session = str(session)};
	errand_agent a = 0;

	must(errand_agent_new(host, &o, &a, NULL) == 0);
	return a;
}

static void claim(errand_agent a)
{
	errand_lease l = 0;
	errand_text *t = NULL;

	must(errand_inbox(host, a, &t, NULL) == 0);
	look(t);
	must(errand_claim(host, a, ERRAND_CLAIM_TURN, 1, &l, &t, NULL) == 0);
	look(t);
	if (l)
		(void)(a % 2 ? errand_lease_commit(host, l) : errand_lease_return(host, l));
}

static void read_all(errand_agent caller, const struct js *list)
{
	for (size_t i = 0; i < js_count(list); i++) {
		size_t len;
		const char *id = js_string(js_get(js_at(list, i), "id"), &len);
		errand_lease l = 0;
		errand_text *t = NULL;

		must(id != NULL);
		if (errand_read(host, id, len, caller, &l, &t, NULL) == 0)
			look(t);
		if (l)
			(void)errand_lease_commit(host, l);
	}
}

static size_t listed(errand_agent caller, bool reads)
{
	errand_text *t = NULL;
	struct js *list = NULL;
	const char *p;
	size_t len;

	must(errand_list(host, caller, &t, NULL) == 0);
	p = errand_text_data(t, &len);
	must(js_parse(p, len, &list, NULL) == 0);
	if (reads)
		read_all(caller, list);
	len = js_count(list);
	js_free(list);
	errand_text_free(t);
	return len;
}

static void use(void)
{
	errand_agent op = agent("the operator", ERRAND_AGENT_OPERATOR), alice, bob;
	errand_reg r;

	must(errand_mount(host, 0, "{}", 2, &r, NULL) == 0);
	alice = agent("alice", 0);
	bob = agent("bob", 0);
	run();
	(void)listed(op, true);
	(void)listed(alice, true);
	claim(alice);
	claim(bob);
	must(errand_agent_dispose(host, alice, NULL, NULL, NULL, NULL) == 0);
	must(errand_service_dispose(host, NULL, NULL, NULL, NULL) == 0);
	run();
	run(); /* past the deadline of a teardown */
	must(listed(op, false) == 0);
}

static char *array_of(const uint8_t *data, size_t size, size_t *ret_len)
{
	struct buf b = BUF_INIT(MIB(4));

	(void)buf_addc(&b, '[');
	for (size_t i = 0; i < size; i++)
		(void)buf_addc(&b, data[i] == '\n' && i + 1 < size ? ',' : (char)data[i]);
	(void)buf_addc(&b, ']');
	return buf_take(&b, ret_len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct errand_host_options o = {
		.size = sizeof(o),
		.abi = ERRAND_ABI,
		.config_json = str("{\"maxFinishedTasksPerOwner\":2}")};
	errand_error *e = NULL;
	size_t len = 0;
	char *json = array_of(data, size, &len);
	int rc;

	must(errand_host_new(&o, &host, NULL) == 0);
	rc = errand_restore(host, json, len, adopt, NULL, &e);
	must(rc == 0 || rc == ERRAND_EJSON || rc == ERRAND_EREFUSED || rc == ERRAND_ELIMIT);
	must(rc == 0 || errand_error_message(e, NULL)[0]);
	errand_error_free(e);
	if (rc == 0)
		use();
	errand_host_free(host);
	free(json);
	return 0;
}
