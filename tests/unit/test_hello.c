/* SPDX-License-Identifier: MIT */
/* Tests of src/host/hello.c and context.c: what a client says first, and what it hands on. */
#include <stdlib.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/limits.h"
#include "base/mem.h"
#include "check.h"
#include "host/hello.h"

#define GOOD                                                                               \
	"\"protocol\":1,\"version\":\"1.2\",\"role\":\"mcp\","                             \
	"\"nonce\":\"00112233445566778899aabbccddeeff\",\"umask\":18,\"pid\":7,"           \
	"\"context_bytes\":3"

static struct hello hello;
static struct err err;

static int take(const char *members)
{
	autobuf struct buf line = BUF_INIT(KIB(128));

	hello_release(&hello);
	err = (struct err){0};
	buf_addf(&line, "{\"errand\":{%s}}", members);
	return hello_read(buf_text(&line), line.len, &hello, &err);
}

/* The reason why a hello with @members behind the good ones, and in their place, is refused. */
static const char *refusal(const char *members)
{
	autobuf struct buf all = BUF_INIT(KIB(128));

	buf_adds(&all, GOOD ",\"limits\":[]");
	buf_adds(&all, members);
	CHECK(take(buf_text(&all)) < 0);
	return err.msg;
}

TEST(a_hello_is_taken_apart)
{
	CHECK_INT(
		take(GOOD ",\"limits\":[[0,5,null]],\"session\":\"me\",\"era\":\"legacy\""),
		0);
	CHECK_INT(hello.role, HELLO_MCP);
	CHECK_STR(hello.version, "1.2");
	CHECK_STR(hello.nonce, "00112233445566778899aabbccddeeff");
	CHECK_STR(hello.session, "me");
	CHECK(hello.is_legacy_only);
	CHECK_INT(hello.context.run.umask, 022);
	CHECK_INT(hello.context_bytes, 3);
	CHECK_INT(hello.context.run.n_limits, 1);
	CHECK_INT(hello.context.limits[0].rlim_cur, 5);
	hello_release(&hello);
}

TEST(a_newer_daemon_says_that_it_is_one)
{
	CHECK_INT(take("\"protocol\":1,\"version\":\"2\",\"role\":\"handover\","
		       "\"nonce\":\"00112233445566778899aabbccddeeff\",\"umask\":18,"
		       "\"pid\":7,\"context_bytes\":3,\"limits\":[]"),
		  0);
	CHECK_INT(hello.role, HELLO_HANDOVER);
	hello_release(&hello);
}

TEST(nobody_needs_a_session_or_an_era)
{
	CHECK_INT(take(GOOD ",\"limits\":[]"), 0);
	CHECK(hello.session == NULL);
	CHECK(!hello.is_legacy_only);
	hello_release(&hello);
}

TEST(each_member_is_checked_and_named)
{
	static const char *const cases[][2] = {
		{",\"role\":\"root\"",
		 "hello: role: expected \"mcp\", \"operator\" or \"handover\""},
		{",\"version\":1", "hello: version: expected a short string"},
		{",\"version\":\"a\\u0000b\"", "hello: version: expected a short string"},
		{",\"nonce\":\"0011\"", "hello: nonce: expected 32 hex digits"},
		{",\"nonce\":\"00112233445566778899AABBCCDDEEFF\"",
		 "hello: nonce: expected 32 hex digits"},
		{",\"umask\":512", "hello: umask: expected a number from 0 to 511"},
		{",\"umask\":1.5", "hello: umask: expected a number from 0 to 511"},
		{",\"session\":\"~x\"", "hello: session: expected a name of 1 to 256 bytes "
					"that does not begin with '~'"},
		{",\"session\":null", "hello: session: expected a name of 1 to 256 bytes "
				      "that does not begin with '~'"},
		{",\"limits\":{}", "hello: limits: expected an array of [resource, soft, "
				   "hard], resources from 0 on"},
		{",\"limits\":[[1,1,1]]", "hello: limits: expected an array of [resource, "
					  "soft, hard], resources from 0 on"},
		{",\"limits\":[[0,-1,1]]", "hello: limits: expected an array of [resource, "
					   "soft, hard], resources from 0 on"},
		{",\"context_bytes\":4194305",
		 "hello: context_bytes: expected 1 to 4194304, since folder and environment "
		 "of a client are bounded"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		CHECK_STR(refusal(cases[i][0]), cases[i][1]);
}

TEST(another_protocol_is_refused_with_the_hosts_own)
{
	CHECK(strstr(refusal(",\"protocol\":2"), "speaks version 1 of the protocol only"));
	CHECK_INT(err.code, ERR_STATE);
}

TEST(what_is_no_hello_at_all_is_refused)
{
	CHECK_INT(hello_read("", 0, &hello, &err), -ERR_FORMAT);
	CHECK_INT(hello_read("[]", 2, &hello, &err), -ERR_FORMAT);
	CHECK_INT(hello_read("{\"errand\":[]}", 13, &hello, &err), -ERR_FORMAT);
	CHECK_INT(hello_read("{\"errand\":", 10, &hello, &err), -ERR_FORMAT);
}

TEST(a_limit_is_cut_at_what_this_process_may_give)
{
	struct rlimit own, lower;

	CHECK_INT(getrlimit(RLIMIT_CORE, &own), 0);
	lower = (struct rlimit){0, 0};
	CHECK_INT(setrlimit(RLIMIT_CORE, &lower), 0);
	CHECK_INT(take(GOOD ",\"limits\":[[0,1,1],[1,1,1],[2,1,1],[3,1,1],[4,9,null]]"), 0);
	CHECK_INT(hello.context.limits[RLIMIT_CORE].rlim_cur, 0);
	CHECK_INT(hello.context.limits[RLIMIT_CORE].rlim_max, 0);
	CHECK_INT(hello.context.run.n_limits, 5);
	hello_release(&hello);
}

/* ---- the context ---- */

static int context(const char *bytes, size_t len)
{
	hello_release(&hello);
	return context_read(&hello.context, bytes, len, &err);
}

TEST(folder_and_variables_are_bytes)
{
	static const char bytes[] = "/a\xff\0A=1\0B=\xfe\n\0odd";

	CHECK_INT(context(bytes, sizeof(bytes)), 0);
	CHECK_STR(hello.context.run.cwd, "/a\xff");
	CHECK_STR(hello.context.run.env[0], "A=1");
	CHECK_STR(hello.context.run.env[1], "B=\xfe\n");
	CHECK_STR(hello.context.run.env[2], "odd");
	CHECK(hello.context.run.env[3] == NULL);
	hello_release(&hello);
}

TEST(a_folder_that_is_gone_is_no_folder)
{
	CHECK_INT(context("", 1), 0);
	CHECK(hello.context.run.cwd == NULL);
	CHECK(hello.context.run.env[0] == NULL);
	hello_release(&hello);
}

TEST(a_context_without_its_end_is_refused)
{
	CHECK_INT(context("/", 1), -ERR_FORMAT);
	CHECK_INT(context("", 0), -ERR_FORMAT);
	CHECK_INT(context("a", 2), -ERR_FORMAT);
}

/* ---- there and back ---- */

TEST(what_is_written_is_what_is_read)
{
	struct hello mine = {.role = HELLO_OPERATOR, .is_legacy_only = true}, theirs = {0};
	autobuf struct buf all = BUF_INIT(MIB(5));
	const char *end;

	context_take_own(&mine.context);
	mine.session = mem_dup(NULL, "s \"1\"", 5);
	memset(mine.nonce, 'a', HELLO_NONCE);
	hello_put(&all, &mine);
	CHECK_INT(buf_error(&all), 0);
	end = strchr(all.data, '\n');
	CHECK_INT(hello_read(all.data, (size_t)(end - all.data), &theirs, &err), 0);
	CHECK_INT(theirs.context_bytes, all.len - (size_t)(end + 1 - all.data));
	CHECK_INT(context_read(&theirs.context, end + 1, theirs.context_bytes, &err), 0);
	CHECK_INT(theirs.role, HELLO_OPERATOR);
	CHECK(theirs.is_legacy_only);
	CHECK_STR(theirs.session, "s \"1\"");
	CHECK_STR(theirs.nonce, mine.nonce);
	CHECK_STR(theirs.context.run.cwd, mine.context.run.cwd);
	CHECK_INT(theirs.context.run.umask, mine.context.run.umask);
	CHECK_INT(theirs.context.run.n_limits, mine.context.run.n_limits);
	CHECK_INT(memcmp(theirs.context.limits, mine.context.limits,
			 mine.context.run.n_limits * sizeof(struct rlimit)),
		  0);
	for (size_t i = 0; environ[i]; i++)
		CHECK_STR(theirs.context.run.env[i], environ[i]);
	hello_release(&mine);
	hello_release(&theirs);
}

TEST(an_environment_without_end_is_not_written)
{
	char *huge = malloc(MAX_CONTEXT + 1);
	const char *env[] = {huge, NULL};
	struct hello h = {.context = {.run = {.env = env}}};
	autobuf struct buf out = BUF_INIT(MIB(5));

	memset(huge, 'x', MAX_CONTEXT);
	huge[MAX_CONTEXT] = 0;
	hello_put(&out, &h);
	CHECK(buf_error(&out) < 0);
	free(huge);
}

/* ---- the answer ---- */

TEST(a_welcome_says_who_is_there)
{
	autobuf struct buf line = BUF_INIT(KIB(1));
	struct welcome w = {0};

	welcome_put(&line);
	CHECK_INT(welcome_read(line.data, line.len, &w, &err), 0);
	CHECK_STR(w.version, ERRAND_VERSION);
	CHECK_INT(w.pid, getpid());
	CHECK_INT(w.protocol, HELLO_PROTOCOL);
}

TEST(a_refusal_is_told_as_it_was_said)
{
	autobuf struct buf line = BUF_INIT(KIB(1));
	struct welcome w;

	welcome_put_refusal(&line, "not \"you\"");
	CHECK_INT(welcome_read(line.data, line.len, &w, &err), -ERR_STATE);
	CHECK_STR(err.msg, "not \"you\"");
	CHECK_STR(w.version, ERRAND_VERSION);
	CHECK_INT(w.protocol, HELLO_PROTOCOL);
}

TEST(a_refusal_by_who_speaks_another_protocol_says_which)
{
	static const char line[] = "{\"errand\":{\"protocol\":2,\"version\":\"9.1\","
				   "\"pid\":7,\"error\":\"no\"}}";
	struct welcome w;

	CHECK_INT(welcome_read(line, sizeof(line) - 1, &w, &err), -ERR_STATE);
	CHECK_STR(w.version, "9.1");
	CHECK_INT(w.protocol, 2);
	CHECK_INT(w.pid, 7);
}

TEST(a_stranger_is_no_host)
{
	struct welcome w;

	CHECK_INT(welcome_read("HTTP/1.1 400", 12, &w, &err), -ERR_FORMAT);
	CHECK_INT(welcome_read("{}", 2, &w, &err), -ERR_FORMAT);
	CHECK_INT(welcome_read("{\"errand\":{\"pid\":0}}", 20, &w, &err), -ERR_FORMAT);
}
