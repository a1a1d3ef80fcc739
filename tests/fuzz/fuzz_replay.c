/* SPDX-License-Identifier: MIT */
/*
 * fuzz_replay.c - an inbox put back from a session's log, whatever became of that: as a whole
 * or not at all, and of the same log always the same.
 *
 * The input is one event a line.
 */
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/json.h"
#include "base/limits.h"
#include "errand.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static errand_host *host;
static uint64_t next_seq;

static void must(bool is_true)
{
	if (!is_true)
		abort();
}

static int on_log(void *ud, errand_agent a, uint64_t seq, const char *json, size_t len,
		  errand_error *e)
{
	struct js *j = NULL;

	(void)ud;
	(void)a;
	(void)e;
	must(next_seq == UINT64_MAX || seq == next_seq);
	next_seq = seq + 1;
	must(js_parse(json, len, &j, NULL) == 0);
	js_free(j);
	return 0;
}

static errand_agent agent(const char *session)
{
	struct errand_agent_options o = {
		.size = sizeof(o), .session = {session, ERRAND_NUL}, .log = on_log};
	errand_agent a = 0;

	must(errand_agent_new(host, &o, &a, NULL) == 0);
	return a;
}

static void say(errand_agent a, int target, const char *json)
{
	must(errand_insert(host, a, target, json, ERRAND_NUL, NULL, NULL) == 0);
}

static errand_text *inbox(errand_agent a)
{
	errand_text *t = NULL;
	struct js *j = NULL;
	size_t len;
	const char *p;

	must(errand_inbox(host, a, &t, NULL) == 0);
	p = errand_text_data(t, &len);
	must(js_parse(p, len, &j, NULL) == 0);
	js_free(j);
	return t;
}

/* Frees both. */
static void same(errand_text *a, errand_text *b)
{
	size_t m, n;
	const char *x = errand_text_data(a, &m), *y = errand_text_data(b, &n);

	must(m == n && memcmp(x, y, n) == 0);
	errand_text_free(a);
	errand_text_free(b);
}

static int replay(errand_agent a, const char *json, size_t len)
{
	errand_error *e = NULL;
	int rc = errand_replay(host, a, json, len, &e);

	must(rc == 0 || rc == ERRAND_EJSON || rc == ERRAND_EREFUSED || rc == ERRAND_ELIMIT);
	must(rc == 0 || errand_error_message(e, NULL)[0]);
	errand_error_free(e);
	return rc;
}

/* Taken and given back, nothing is lost; taken for good, it ends. */
static void use(errand_agent a)
{
	errand_lease l = 0;
	errand_text *t = NULL, *before = inbox(a);
	int rounds = 0;

	must(errand_claim(host, a, ERRAND_CLAIM_STEP, 1, &l, &t, NULL) == 0);
	errand_text_free(t);
	if (l)
		must(errand_lease_return(host, l) == 0);
	same(before, inbox(a));
	do {
		must(errand_claim(host, a, ERRAND_CLAIM_TURN, 1, &l, &t, NULL) == 0);
		errand_text_free(t);
		if (l)
			must(errand_lease_commit(host, l) == 0);
	} while (l && rounds++ < 100000);
	t = inbox(a);
	must(strcmp(errand_text_data(t, NULL), "[]") == 0);
	errand_text_free(t);
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
	struct errand_host_options o = {.size = sizeof(o), .abi = ERRAND_ABI};
	errand_agent alice, bob;
	errand_text *before;
	size_t len = 0;
	char *json = array_of(data, size, &len);

	must(errand_host_new(&o, &host, NULL) == 0);
	next_seq = UINT64_MAX;
	alice = agent("alice");
	bob = agent("bob");
	say(alice, ERRAND_NEXT_STEP, "{\"id\":\"old\",\"content\":[]}");
	before = inbox(alice);
	next_seq = UINT64_MAX;
	if (replay(alice, json, len) != 0) {
		same(before, inbox(alice));
	} else {
		errand_text_free(before);
		must(replay(bob, json, len) == 0);
		same(inbox(alice), inbox(bob));
		use(alice);
	}
	errand_host_free(host);
	free(json);
	return 0;
}
