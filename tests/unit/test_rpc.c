/* SPDX-License-Identifier: MIT */
/* Tests of src/mcp/rpc.c: what is a request, and when two ids are one. */
#include <stdlib.h>

#include "base/limits.h"
#include "check.h"
#include "mcp/rpc.h"

static struct rpc_message msg;

static enum rpc_kind kind_of(const char *text)
{
	rpc_release(&msg);
	rpc_read(text, strlen(text), &msg);
	return msg.kind;
}

/* The code that @text is refused with; 0: it is not. */
static int refusal(const char *text)
{
	int code = kind_of(text) == RPC_INVALID ? (int)msg.code : 0;

	rpc_release(&msg);
	return code;
}

static const char *id_of(const char *text)
{
	static char id[100];

	(void)kind_of(text);
	if (!msg.id.ptr)
		return "(none)";
	memcpy(id, msg.id.ptr, msg.id.len);
	id[msg.id.len] = 0;
	rpc_release(&msg);
	return id;
}

/* The key of @token, which is JSON. */
static const char *key_of(const char *token)
{
	static char keys[4][100];
	static int at;
	struct buf key = BUF_INIT(99);
	struct js *value = NULL;
	/* As in a line, a token is followed by something. */
	char text[100];

	at = (at + 1) % 4;
	(void)snprintf(text, sizeof(text), "%s ", token);
	(void)!js_parse(text, strlen(text), &value, NULL);
	rpc_id_key(&key, value, (struct js_span){text, strlen(token)});
	(void)snprintf(keys[at], sizeof(keys[at]), "%s", buf_text(&key));
	js_free(value);
	buf_release(&key);
	return keys[at];
}

TEST(what_is_not_json_is_a_parse_error)
{
	CHECK_INT(refusal("{\"jsonrpc\":\"2.0\",\"id\":7"), RPC_NOT_JSON);
	CHECK_INT(refusal("not json"), RPC_NOT_JSON);
	CHECK_INT(refusal("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}"),
		  RPC_NOT_JSON);
}

TEST(a_nul_in_a_key_is_named)
{
	static const char text[] = "{\"jsonrpc\":\"2.0\",\"id\":7,\"\\u0000\":1}";

	CHECK_INT(kind_of(text), RPC_INVALID);
	CHECK_INT(msg.code, RPC_NOT_JSON);
	CHECK_STR(msg.why, "parse error: a key holds a NUL");
	rpc_release(&msg);
}

TEST(json_that_is_no_request_object_is_invalid)
{
	CHECK_INT(refusal("null"), RPC_NO_REQUEST);
	CHECK_INT(refusal("42"), RPC_NO_REQUEST);
	CHECK_INT(refusal("\"x\""), RPC_NO_REQUEST);
	CHECK_INT(refusal("{}"), RPC_NO_REQUEST);
	CHECK_INT(refusal("{\"jsonrpc\":\"2.0\"}"), RPC_NO_REQUEST);
	CHECK_INT(refusal("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"ping\"}"),
		  RPC_NO_REQUEST);
	CHECK_INT(refusal("{\"jsonrpc\":\"2.0\",\"id\":4,\"method\":5}"), RPC_NO_REQUEST);
}

TEST(an_id_that_is_no_id_is_invalid_and_not_echoed)
{
	CHECK_INT(refusal("{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}"),
		  RPC_NO_REQUEST);
	CHECK_INT(refusal("{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"ping\"}"),
		  RPC_NO_REQUEST);
	CHECK_STR(id_of("{\"jsonrpc\":\"2.0\",\"id\":[1],\"method\":\"ping\"}"), "(none)");
}

TEST(an_id_of_any_length_is_not_carried_around)
{
	static char text[MAX_TOKEN + 100];
	int len = snprintf(text, sizeof(text),
			   "{\"jsonrpc\":\"2.0\",\"method\":\"ping\",\"id\":\"%0*d\"}",
			   (int)MAX_TOKEN - 2, 0);

	CHECK_INT(kind_of(text), RPC_REQUEST);
	(void)snprintf(text + len - 2, 5, "0\"}");
	CHECK_INT(refusal(text), RPC_NO_REQUEST);
	CHECK_STR(id_of(text), "(none)");
}

TEST(d16_an_id_comes_back_as_it_was_written)
{
	CHECK_STR(id_of("{\"jsonrpc\":\"2.0\",\"id\": 1.50 ,\"method\":\"ping\"}"), "1.50");
	CHECK_STR(id_of("{\"id\":\"\\u0061\\n\",\"jsonrpc\":\"2.0\",\"method\":\"x\"}"),
		  "\"\\u0061\\n\"");
	CHECK_STR(
		id_of("{\"jsonrpc\":\"2.0\",\"id\":123456789012345678901234,\"method\":\"x\"}"),
		"123456789012345678901234");
	CHECK_STR(id_of("{\"id\":3,\"method\":\"ping\"}"), "3");
}

TEST(requests_notifications_responses_and_batches_are_told_apart)
{
	CHECK_INT(kind_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r"),
		  RPC_REQUEST);
	CHECK_INT(kind_of("{\"jsonrpc\":\"2.0\",\"method\":\"x\"}"), RPC_NOTIFICATION);
	CHECK_INT(kind_of("{\"jsonrpc\":\"2.0\",\"id\":9,\"result\":{}}"), RPC_RESPONSE);
	CHECK_INT(kind_of("{\"jsonrpc\":\"2.0\",\"id\":9,\"error\":{}}"), RPC_RESPONSE);
	CHECK_INT(kind_of("[]"), RPC_BATCH);
	rpc_release(&msg);
}

TEST(d16_an_overflow_is_fine_in_the_arguments_only)
{
	(void)kind_of("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\","
		      "\"params\":{\"name\":\"x\",\"arguments\":{\"t\":1e999}}}");
	CHECK_INT(msg.kind, RPC_REQUEST);
	CHECK(!msg.overflows);
	CHECK_BYTES(msg.arguments_text.ptr, msg.arguments_text.len, "{\"t\":1e999}");
	(void)kind_of("{\"jsonrpc\":\"2.0\",\"id\":1e999,\"method\":\"ping\"}");
	CHECK(msg.overflows);
	(void)kind_of(
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"x\":-1e999}}");
	CHECK(msg.overflows);
	rpc_release(&msg);
}

TEST(numbers_are_one_id_if_they_are_one_number)
{
	CHECK_STR(key_of("1"), key_of("1.0"));
	CHECK_STR(key_of("1"), key_of("10e-1"));
	CHECK_STR(key_of("1"), key_of("0.1E+1"));
	CHECK_STR(key_of("1200"), key_of("1.2e3"));
	CHECK_STR(key_of("0"), key_of("-0.00"));
	CHECK_STR(key_of("0"), key_of("0e7"));
}

TEST(neighbours_beyond_a_double_are_two_ids)
{
	CHECK(strcmp(key_of("9007199254740992"), key_of("9007199254740993")) != 0);
	CHECK(strcmp(key_of("1"), key_of("-1")) != 0);
	CHECK(strcmp(key_of("1"), key_of("10")) != 0);
	CHECK(strcmp(key_of("1e99999999999"), key_of("1e99999999998")) != 0);
}

TEST(a_string_is_never_a_number)
{
	CHECK(strcmp(key_of("1"), key_of("\"1\"")) != 0);
	CHECK_STR(key_of("\"a\""), key_of("\"\\u0061\""));
	CHECK_STR(key_of("null"), "");
	CHECK_STR(key_of("{}"), "");
}

static void count(void *ud, struct js_span element)
{
	struct buf *out = ud;

	buf_add(out, element.ptr, element.len);
	buf_addc(out, ';');
}

static const char *elements(const char *text)
{
	static char all[200];
	struct buf out = BUF_INIT(199);

	js_each((struct js_span){text, strlen(text)}, count, &out);
	(void)snprintf(all, sizeof(all), "%s", buf_text(&out));
	buf_release(&out);
	return all;
}

TEST(an_array_is_split_at_its_own_commas)
{
	CHECK_STR(elements("[]"), "");
	CHECK_STR(elements(" [ 1 , {\"a\":[2,3]},\"],\\\"[\" , [ ] ] "),
		  "1;{\"a\":[2,3]};\"],\\\"[\";[ ];");
}

TEST(an_error_has_an_id_or_null)
{
	struct buf out = BUF_INIT(KIB(1));

	rpc_put_error(&out, (struct js_span){"\"a\"", 3}, RPC_NO_METHOD, "no \"x\"", NULL);
	CHECK_STR(buf_text(&out),
		  "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"error\":{\"code\":-32601,"
		  "\"message\":\"no \\\"x\\\"\"}}");
	buf_clear(&out);
	rpc_put_error(&out, (struct js_span){NULL, 0}, RPC_NOT_JSON, "x", "{\"d\":1}");
	CHECK_STR(buf_text(&out),
		  "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,"
		  "\"message\":\"x\",\"data\":{\"d\":1}}}");
	buf_release(&out);
}

TEST(a_long_message_is_cut)
{
	struct buf out = BUF_INIT(KIB(4));
	char text[2000];

	memset(text, 'x', sizeof(text));
	text[sizeof(text) - 1] = 0;
	rpc_put_error(&out, (struct js_span){NULL, 0}, RPC_NO_METHOD, text, NULL);
	CHECK(out.len < 500);
	buf_release(&out);
}
