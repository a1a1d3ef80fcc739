/* SPDX-License-Identifier: MIT */
#include "host/hello.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/mem.h"

/* The longest name that an owner may have, as in MCP's _meta. */
#define MAX_SESSION 256
/* A limit above it is none: no double carries it, and no system has it. */
#define MAX_LIMIT 9007199254740992.0

static const char *const roles[] = {
	[HELLO_MCP] = "mcp",
	[HELLO_OPERATOR] = "operator",
	[HELLO_HANDOVER] = "handover",
};
#define N_ROLES (sizeof(roles) / sizeof(roles[0]))

/* ---- members ---- */

static int wrong(struct err *err, const char *member, const char *expected)
{
	return err_set(err, ERR_FORMAT, "hello: %s: expected %s", member, expected);
}

/* A whole number from @min to @max. False: it is not. */
static bool get_number(const struct js *object, const char *key, double min, double max,
		       double *ret)
{
	double v = js_number(js_get(object, key));

	if (isnan(v) || v < min || v > max || v != floor(v))
		return false;
	*ret = v;
	return true;
}

/* At most @size - 1 bytes, none of them a NUL. */
static bool get_text(const struct js *object, const char *key, char *ret, size_t size)
{
	size_t len;
	const char *s = js_string(js_get(object, key), &len);

	if (!s || len >= size || strlen(s) != len)
		return false;
	memcpy(ret, s, len + 1);
	return true;
}

static int get_role(const struct js *h, struct hello *ret, struct err *err)
{
	for (size_t i = 0; i < N_ROLES; i++) {
		if (js_string_is(js_get(h, "role"), roles[i])) {
			ret->role = (enum hello_role)i;
			return 0;
		}
	}
	return wrong(err, "role", "\"mcp\", \"operator\" or \"handover\"");
}

static int get_session(const struct js *h, struct hello *ret, struct err *err)
{
	const struct js *given = js_get(h, "session");
	size_t len = 0;
	const char *s = js_string(given, &len);

	if (!given)
		return 0;
	/* What begins with a tilde is the host's own. */
	if (!s || len == 0 || len > MAX_SESSION || strlen(s) != len || *s == '~')
		return wrong(err, "session",
			     "a name of 1 to 256 bytes that does not begin with '~'");
	ret->session = mem_dup(NULL, s, len);
	return 0;
}

/* null is no limit. */
static bool get_limit(const struct js *value, rlim_t *ret)
{
	double v = js_number(value);

	*ret = RLIM_INFINITY;
	if (js_type(value) == JS_NULL)
		return true;
	if (isnan(v) || v < 0 || v != floor(v))
		return false;
	if (v < MAX_LIMIT)
		*ret = (rlim_t)v;
	return true;
}

static int get_limits(const struct js *h, struct hello *ret, struct err *err)
{
	static const char expected[] =
		"an array of [resource, soft, hard], resources from 0 on";
	const struct js *all = js_get(h, "limits");
	size_t n = js_count(all);

	if (js_type(all) != JS_ARRAY || n > RLIM_NLIMITS)
		return wrong(err, "limits", expected);
	for (size_t i = 0; i < n; i++) {
		const struct js *one = js_at(all, i);
		struct rlimit limit;

		if (js_count(one) != 3 || js_number(js_at(one, 0)) != (double)i ||
		    !get_limit(js_at(one, 1), &limit.rlim_cur) ||
		    !get_limit(js_at(one, 2), &limit.rlim_max))
			return wrong(err, "limits", expected);
		context_set_limit(&ret->context, i, limit);
	}
	return 0;
}

static int get_all(const struct js *h, struct hello *ret, struct err *err)
{
	double n;
	int rc;

	if (js_type(h) != JS_OBJECT)
		return err_set(err, ERR_FORMAT,
			       "hello: expected {\"errand\":{...}} as the first line");
	if (js_number(js_get(h, "protocol")) != HELLO_PROTOCOL)
		return err_set(err, ERR_STATE,
			       "this host (errand %s, pid %ld) speaks version %d of the "
			       "protocol only",
			       ERRAND_VERSION, (long)getpid(), HELLO_PROTOCOL);
	if (!get_text(h, "version", ret->version, sizeof(ret->version)))
		return wrong(err, "version", "a short string");
	if (!get_text(h, "nonce", ret->nonce, sizeof(ret->nonce)) ||
	    strspn(ret->nonce, "0123456789abcdef") != HELLO_NONCE)
		return wrong(err, "nonce", "32 hex digits");
	ret->is_legacy_only = js_string_is(js_get(h, "era"), "legacy");
	ret->is_again = js_is_true(js_get(h, "again"));
	if (!get_number(h, "umask", 0, 0777, &n))
		return wrong(err, "umask", "a number from 0 to 511");
	ret->context.run.umask = (mode_t)n;
	if (!get_number(h, "context_bytes", 1, (double)MAX_CONTEXT, &n))
		return err_set(err, ERR_LIMIT,
			       "hello: context_bytes: expected 1 to %zu, since folder and "
			       "environment of a client are bounded",
			       MAX_CONTEXT);
	ret->context_bytes = (size_t)n;
	rc = get_role(h, ret, err);
	if (rc == 0)
		rc = get_session(h, ret, err);
	return rc < 0 ? rc : get_limits(h, ret, err);
}

int hello_read(const char *line, size_t len, struct hello *ret, struct err *err)
{
	struct hello h = {0};
	struct js *root = NULL;
	int rc;

	if (len > HELLO_MAX_LINE)
		return err_set(err, ERR_LIMIT, "hello: longer than %zu bytes",
			       HELLO_MAX_LINE);
	rc = js_parse(line, len, &root, NULL);
	if (rc == 0)
		rc = get_all(js_get(root, "errand"), &h, err);
	else
		(void)err_set(err, ERR_FORMAT, "hello: not JSON");
	js_free(root);
	if (rc < 0)
		hello_release(&h);
	else
		*ret = h;
	return rc;
}

void hello_release(struct hello *h)
{
	mem_free(NULL, h->session);
	context_release(&h->context);
	*h = (struct hello){0};
}

/* ---- writing ---- */

static void put_limit(struct buf *out, rlim_t limit)
{
	if (limit == RLIM_INFINITY)
		buf_adds(out, ",null");
	else
		buf_addf(out, ",%llu", (unsigned long long)limit);
}

static void put_limits(struct buf *out, const struct run_context *c)
{
	js_put_key(out, "limits");
	for (size_t i = 0; i < c->n_limits; i++) {
		buf_addf(out, "%s[%zu", i ? "," : "[", i);
		put_limit(out, c->limits[i].rlim_cur);
		put_limit(out, c->limits[i].rlim_max);
		buf_addc(out, ']');
	}
	buf_adds(out, c->n_limits ? "]" : "[]");
}

static void put_frame(struct buf *out)
{
	buf_addf(out, "{\"errand\":{\"protocol\":%d", HELLO_PROTOCOL);
	js_put_member(out, "version", ERRAND_VERSION, strlen(ERRAND_VERSION));
	js_put_key(out, "pid");
	js_put_int(out, getpid());
}

void hello_put(struct buf *out, const struct hello *h)
{
	struct buf context = BUF_INIT(MAX_CONTEXT);

	context_put(&context, &h->context);
	put_frame(out);
	js_put_member(out, "role", roles[h->role], strlen(roles[h->role]));
	js_put_member(out, "nonce", h->nonce, strlen(h->nonce));
	if (h->session)
		js_put_member(out, "session", h->session, strlen(h->session));
	if (h->is_legacy_only)
		js_put_member(out, "era", "legacy", strlen("legacy"));
	if (h->is_again)
		buf_adds(out, ",\"again\":true");
	js_put_key(out, "umask");
	js_put_int(out, h->context.run.umask);
	put_limits(out, &h->context.run);
	js_put_key(out, "context_bytes");
	js_put_int(out, (int64_t)context.len);
	buf_adds(out, "}}\n");
	buf_add(out, context.data, context.len);
	if (buf_error(&context)) /* to be seen by the caller of ours */
		out->error = buf_error(&context);
	buf_release(&context);
}

/* ---- the host's answer ---- */

void welcome_put(struct buf *out)
{
	put_frame(out);
	buf_adds(out, "}}");
}

void welcome_put_refusal(struct buf *out, const char *why)
{
	put_frame(out);
	js_put_member(out, "error", why, strlen(why));
	buf_adds(out, "}}");
}

static int no_host(struct err *err)
{
	return err_set(err, ERR_FORMAT, "it does not speak as a host of errand");
}

static int read_welcome(const struct js *w, struct welcome *ret, struct err *err)
{
	const char *why = js_string(js_get(w, "error"), NULL);
	double pid = 0, protocol = 0;
	bool is_whole = get_number(w, "pid", 1, 1e9, &pid) &&
			get_number(w, "protocol", 1, 1e9, &protocol) &&
			get_text(w, "version", ret->version, sizeof(ret->version));

	ret->pid = (pid_t)pid;
	ret->protocol = (int)protocol;
	if (why)
		return err_set(err, ERR_STATE, "%s", why);
	return is_whole ? 0 : no_host(err);
}

int welcome_read(const char *line, size_t len, struct welcome *ret, struct err *err)
{
	struct js *root = NULL;
	int rc = js_parse(line, len, &root, NULL);

	*ret = (struct welcome){0};
	if (rc == 0)
		rc = read_welcome(js_get(root, "errand"), ret, err);
	else
		rc = no_host(err);
	js_free(root);
	return rc;
}
