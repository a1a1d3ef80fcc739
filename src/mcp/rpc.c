/* SPDX-License-Identifier: MIT */
#include "mcp/rpc.h"

#include <errno.h>

#include "base/err.h"
#include "base/limits.h"
#include "base/utf8.h"

/* An error's text names what was wrong with it; a megabyte of it helps nobody. */
#define MAX_MESSAGE 400

/* ---- in ---- */

static void refuse(struct rpc_message *m, enum rpc_code code, const char *why)
{
	m->kind = RPC_INVALID;
	m->code = code;
	m->why = why;
}

static bool may_be_id(const struct js *j)
{
	return js_type(j) == JS_STRING || js_type(j) == JS_NUMBER;
}

/* An object: request, notification, response, or none of them. */
static void classify(struct rpc_message *m)
{
	const struct js *id = js_get(m->root, "id");

	if (may_be_id(id)) {
		m->id_value = id;
		m->id = js_member(m->text, "id");
	}
	m->method = js_get(m->root, "method");
	if (!js_string_is(js_get(m->root, "jsonrpc"), "2.0")) {
		refuse(m, RPC_NO_REQUEST, "invalid request: jsonrpc must be \"2.0\"");
	} else if (m->method && js_type(m->method) != JS_STRING) {
		refuse(m, RPC_NO_REQUEST, "invalid request: method must be a string");
	} else if (!m->method) {
		m->kind = RPC_RESPONSE;
		if (!js_get(m->root, "result") && !js_get(m->root, "error"))
			refuse(m, RPC_NO_REQUEST, "invalid request: no method");
	} else if (m->id.len > MAX_TOKEN) {
		m->id = (struct js_span){NULL, 0};
		refuse(m, RPC_NO_REQUEST, "invalid request: id is longer than 65536 bytes");
	} else if (id && !m->id_value) {
		refuse(m, RPC_NO_REQUEST,
		       "invalid request: id must be a string or a number");
	} else {
		m->kind = id ? RPC_REQUEST : RPC_NOTIFICATION;
	}
}

static void find_params(struct rpc_message *m, bool is_lossy)
{
	m->params = js_get(m->root, "params");
	if (m->params)
		m->params_text = js_member(m->text, "params");
	if (js_get(m->params, "arguments"))
		m->arguments_text = js_member(m->params_text, "arguments");
	m->overflows = is_lossy && !js_overflows_only_in(m->text, m->arguments_text);
}

void rpc_read(const char *text, size_t len, struct rpc_message *ret)
{
	int rc;

	*ret = (struct rpc_message){.text = {text, len}};
	rc = js_parse(text, len, &ret->root, NULL);
	if (rc < 0 && rc != -ERR_LOSSY) {
		ret->root = NULL;
		refuse(ret, RPC_NOT_JSON,
		       rc == -ERR_ARG ? "parse error: a key holds a NUL"
				      : "parse error: the line is not JSON");
		return;
	}
	if (js_type(ret->root) == JS_ARRAY) {
		ret->kind = RPC_BATCH;
	} else if (js_type(ret->root) == JS_OBJECT) {
		classify(ret);
		find_params(ret, rc == -ERR_LOSSY);
	} else {
		refuse(ret, RPC_NO_REQUEST, "invalid request: not an object");
	}
}

void rpc_release(struct rpc_message *m)
{
	js_free(m->root);
	*m = (struct rpc_message){.kind = RPC_INVALID};
}

/* ---- ids ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/*
 * `n<sign><digits>e<exponent>`, digits without zeros at either end: exact for any length,
 * where a double would take two neighbours beyond 2^53 for one.
 */
static void put_number_key(struct buf *out, struct js_span t)
{
	const char *p = t.ptr, *end = t.ptr + t.len;
	size_t start, zeros = 0;
	long long exponent = 0;
	bool is_negative = *p == '-', in_fraction = false;

	buf_adds(out, is_negative ? "n-" : "n");
	start = out->len;
	for (p += is_negative; p < end && (is_digit(*p) || *p == '.'); p++) {
		if (*p == '.') {
			in_fraction = true;
			continue;
		}
		exponent -= in_fraction;
		if (*p == '0' && out->len == start)
			continue;
		buf_addc(out, *p);
	}
	if (p < end) {
		long long given;

		errno = 0;
		given = strtoll(p + 1, NULL, 10);
		if (errno || given > INT32_MAX || given < INT32_MIN) {
			/* Nobody counts that far: such an id equals only its own text. */
			buf_cut(out, 0);
			buf_addc(out, 'x');
			buf_add(out, t.ptr, t.len);
			return;
		}
		exponent += given;
	}
	while (out->len - zeros > start && out->data[out->len - 1 - zeros] == '0')
		zeros++;
	buf_cut(out, out->len - zeros);
	if (out->len == start) {
		buf_cut(out, 0);
		buf_adds(out, "n0");
		return;
	}
	buf_addf(out, "e%lld", exponent + (long long)zeros);
}

void rpc_id_key(struct buf *out, const struct js *value, struct js_span token)
{
	const char *s;
	size_t len;

	buf_clear(out);
	if (js_type(value) == JS_NUMBER && token.len > 0) {
		put_number_key(out, token);
	} else if ((s = js_string(value, &len))) {
		buf_addc(out, 's');
		buf_add(out, s, len);
	}
}

/* ---- out ---- */

static void put_head(struct buf *out, struct js_span id)
{
	buf_adds(out, "{\"jsonrpc\":\"2.0\",\"id\":");
	if (id.ptr)
		buf_add(out, id.ptr, id.len);
	else
		buf_adds(out, "null");
}

void rpc_put_error(struct buf *out, struct js_span id, enum rpc_code code,
		   const char *message, const char *data)
{
	put_head(out, id);
	buf_addf(out, ",\"error\":{\"code\":%d,\"message\":", code);
	js_put_string(out, message, utf8_head(message, strlen(message), MAX_MESSAGE));
	if (data) {
		buf_adds(out, ",\"data\":");
		buf_adds(out, data);
	}
	buf_adds(out, "}}");
}

void rpc_put_result(struct buf *out, struct js_span id)
{
	put_head(out, id);
	buf_adds(out, ",\"result\":{");
}
