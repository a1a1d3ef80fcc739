/* SPDX-License-Identifier: MIT */
/*
 * methods.c - the methods of both eras, one row each.
 *
 * A method that is in no row of the request's era is unknown in it: so those that the modern
 * era removed (ping, initialize, ...) are answered there as if they had never been.
 */
#include "mcp/internal.h"

/* The lists are static for the life of a process; an hour is as good as for ever. */
#define TTL_MS "3600000"

static const char *const legacy_versions[] = {"2024-11-05", MCP_BATCHES, "2025-06-18",
					      MCP_NEWEST_LEGACY};

static void initialize(const struct request *r)
{
	const struct js *asked = js_get(r->params, "protocolVersion");
	struct mcp_server *s = r->mcp->server;
	const char *version = MCP_NEWEST_LEGACY;
	struct buf body = BUF_INIT(KIB(64));

	if (js_type(asked) != JS_STRING) {
		request_fail(r, RPC_BAD_PARAMS,
			     "invalid params: protocolVersion must be a string");
		return;
	}
	for (size_t i = 0; i < sizeof(legacy_versions) / sizeof(legacy_versions[0]); i++)
		if (js_string_is(asked, legacy_versions[i]))
			version = legacy_versions[i];
	r->mcp->is_initialized = true;
	r->mcp->has_batches = strcmp(version, MCP_BATCHES) == 0;
	buf_addf(&body, "\"protocolVersion\":\"%s\",\"capabilities\":{\"tools\":{}},",
		 version);
	buf_addf(&body, "\"serverInfo\":%s,\"instructions\":%s", buf_text(&s->info),
		 buf_text(&s->instructions));
	if (s->start_meta)
		buf_addf(&body, ",\"_meta\":{%s}", s->start_meta);
	request_result(r, &body);
	buf_release(&body);
}

static void ping(const struct request *r)
{
	struct buf nothing = BUF_INIT(0);

	request_result(r, &nothing);
}

static void discover(const struct request *r)
{
	struct mcp_server *s = r->mcp->server;
	struct buf body = BUF_INIT(KIB(64));

	put_result_type(&body, r->era);
	buf_adds(&body, "\"supportedVersions\":[\"" MCP_MODERN "\"],"
			"\"capabilities\":{\"tools\":{}},");
	buf_addf(&body, "\"instructions\":%s,", buf_text(&s->instructions));
	buf_adds(&body, "\"ttlMs\":" TTL_MS ",\"cacheScope\":\"private\",\"_meta\":{");
	put_server_meta(&body, s, r->era);
	if (s->start_meta)
		buf_addf(&body, ",%s", s->start_meta);
	buf_addc(&body, '}');
	request_result(r, &body);
	buf_release(&body);
}

static void discover_without_meta(const struct request *r)
{
	request_fail(r, RPC_BAD_PARAMS,
		     "invalid params: server/discover needs _meta[\"%s\"]", META_VERSION);
}

static void tools_list(const struct request *r)
{
	const struct js *cursor = js_get(r->params, "cursor");
	struct mcp_server *s = r->mcp->server;
	struct buf body = BUF_INIT(MAX_REPLY_LINE);

	if (cursor && js_type(cursor) != JS_NULL) {
		request_fail(r, RPC_BAD_PARAMS, "invalid params: unknown cursor");
		return;
	}
	put_result_type(&body, r->era);
	buf_adds(&body, "\"tools\":");
	buf_add(&body, s->tools.data, s->tools.len);
	if (r->era == ERA_MODERN) {
		buf_adds(&body,
			 ",\"ttlMs\":" TTL_MS ",\"cacheScope\":\"private\",\"_meta\":{");
		put_server_meta(&body, s, r->era);
		buf_addc(&body, '}');
	}
	request_result(r, &body);
	buf_release(&body);
}

/*
 * We announce no changes, so nothing that a client asks for is honoured. The request stays
 * open all the same, until it is cancelled: that is what the client waits for.
 */
static void listen(const struct request *r)
{
	const struct js *wanted = js_get(r->params, "notifications");
	struct buf line = BUF_INIT(MAX_REQUEST_LINE + KIB(1));
	struct call *c;

	if (wanted && js_type(wanted) != JS_OBJECT) {
		request_fail(r, RPC_BAD_PARAMS,
			     "invalid params: notifications must be an object");
		return;
	}
	if (r->batch) {
		/* It would hold back the answers of all others in the batch. */
		request_fail(r, RPC_NO_REQUEST, "invalid request: listen must stand alone");
		return;
	}
	c = call_open(r);
	if (!c)
		return;
	buf_adds(&line,
		 "{\"jsonrpc\":\"2.0\",\"method\":"
		 "\"notifications/subscriptions/acknowledged\",\"params\":{\"_meta\":{"
		 "\"" META_SUBSCRIPTION "\":");
	buf_add(&line, c->id.data, c->id.len);
	buf_adds(&line, "},\"notifications\":{}}}");
	r->mcp->ops.send(r->mcp->ud, &line, 0, 0);
}

struct method {
	const char *name;
	unsigned eras;
	bool is_early; /* legacy: also before initialize */
	void (*handle)(const struct request *r);
};

static const struct method methods[] = {
	{"initialize", ERA_LEGACY, true, initialize},
	{"ping", ERA_LEGACY, true, ping},
	{"server/discover", ERA_MODERN, false, discover},
	{"server/discover", ERA_LEGACY, true, discover_without_meta},
	{"subscriptions/listen", ERA_MODERN, false, listen},
	{"tools/call", ERA_LEGACY | ERA_MODERN, false, tools_call},
	{"tools/list", ERA_LEGACY | ERA_MODERN, false, tools_list},
};

static const struct method *find_method(const struct request *r)
{
	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++)
		if ((methods[i].eras & r->era) &&
		    js_string_is(r->message->method, methods[i].name))
			return &methods[i];
	return NULL;
}

void method_dispatch(const struct request *r)
{
	const struct method *m = find_method(r);

	/* To a client that probes for the modern era, an old server must look old. */
	if (m && m->handle == discover_without_meta && r->mcp->is_legacy_only)
		m = NULL;
	if (r->era == ERA_LEGACY && !r->mcp->is_initialized && !(m && m->is_early) &&
	    !js_string_is(r->message->method, "server/discover")) {
		request_fail(r, RPC_NO_REQUEST, "invalid request: initialize first");
		return;
	}
	if (!m) {
		request_fail(r, RPC_NO_METHOD, "method not found: %s",
			     js_string(r->message->method, NULL));
		return;
	}
	m->handle(r);
}
