/* SPDX-License-Identifier: MIT */
/*
 * rpc.h - one JSON-RPC message: taken apart on the way in, put together on the way out.
 *
 * What must come back exactly as it was sent (a request's id, a progress token) is kept as
 * the text that stood in the line. Ids are compared by kind and value: 1, 1.0 and 10e-1 are
 * one id, "1" is another.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/json.h"

enum rpc_code {
	RPC_NOT_JSON = -32700,
	RPC_NO_REQUEST = -32600,
	RPC_NO_METHOD = -32601,
	RPC_BAD_PARAMS = -32602,
	RPC_INTERNAL = -32603,
	RPC_NO_TASK = -32001,     /* to an operator: there is no such task */
	RPC_BAD_VERSION = -32022, /* of the modern era: an unknown protocol version */
};

enum rpc_kind {
	RPC_INVALID, /* answer it with .code and .why */
	RPC_REQUEST,
	RPC_NOTIFICATION,
	RPC_RESPONSE, /* nobody here asked for one */
	RPC_BATCH,
};

struct rpc_message {
	enum rpc_kind kind;
	enum rpc_code code;
	const char *why;
	struct js *root;
	struct js_span text;
	struct js_span id; /* the token; NULL: none that may be echoed */
	const struct js *id_value;
	const struct js *method; /* a string, for requests and notifications */
	const struct js *params; /* NULL: absent */
	struct js_span params_text;
	struct js_span arguments_text; /* params.arguments */
	/* A number that no double can carry stands somewhere else than in the arguments. */
	bool overflows;
};

/* Take @text apart. It is borrowed until rpc_release(), which always has to follow. */
void rpc_read(const char *text, size_t len, struct rpc_message *ret);
void rpc_release(struct rpc_message *m);

/* The form under which two tokens of one id are equal: 's' and the string, or 'n' and the
 * number. A value that is neither gives an empty @out. */
void rpc_id_key(struct buf *out, const struct js *value, struct js_span token);

/* `{"jsonrpc":"2.0","id":<id>,"error":{...}}`. A long @message is cut; @data is JSON or NULL;
 * an absent id is null. */
void rpc_put_error(struct buf *out, struct js_span id, enum rpc_code code,
		   const char *message, const char *data);
/* `{"jsonrpc":"2.0","id":<id>,"result":{`, to be closed with `}}`. */
void rpc_put_result(struct buf *out, struct js_span id);
