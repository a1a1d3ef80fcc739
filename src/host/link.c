/* SPDX-License-Identifier: MIT */
#include "host/link.h"

#include <errno.h>
#include <poll.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "host/host.h"
#include "host/state.h"
#include "host/version.h"
#include "mcp/rpc.h"
#include "transport/framing.h"
#include "transport/unixsocket.h"

#define MAX_ANSWER (MAX_JSON_TEXT + KIB(64))

struct link {
	int fd;
	struct framing framing;
	struct welcome welcome;
	const char *rest; /* of data: not looked at yet */
	size_t rest_len;
	uint64_t last_id;
	int (*on_silence)(void *ud, int64_t silent_ms);
	void *ud;
	char data[KIB(16)];
};

void link_nonce(char ret[HELLO_NONCE + 1])
{
	uint8_t raw[HELLO_NONCE / 2];

	/* Never fails for 16 bytes once the kernel has booted. */
	if (getrandom(raw, sizeof(raw), 0) != (ssize_t)sizeof(raw))
		abort();
	for (size_t i = 0; i < sizeof(raw); i++)
		(void)snprintf(ret + 2 * i, 3, "%02x", raw[i]);
}

/* ---- bytes ---- */

/* Until there is something to read, or room to write. */
static int await(const struct link *l, short events, struct err *err)
{
	struct pollfd p = {.fd = l->fd, .events = events};
	int64_t since = clock_mono_ms();
	int pause = 0;

	while (poll(&p, 1, pause) <= 0) {
		pause = l->on_silence ? l->on_silence(l->ud, clock_mono_ms() - since) : -1;
		if (l->on_silence && pause < 0) {
			(void)err_set(err, ERR_STATE,
				      "the host does not answer: see `errand doctor`");
			if (err)
				err->errnum = ETIMEDOUT;
			return -ERR_STATE;
		}
	}
	return 0;
}

/* A host that refuses us may have closed before it read all: its reason is there all the same. */
static int write_all(struct link *l, const struct buf *b, struct err *err)
{
	for (size_t done = 0; done < b->len;) {
		ssize_t n = send(l->fd, b->data + done, b->len - done,
				 MSG_NOSIGNAL | MSG_DONTWAIT);
		int rc = 0;

		if (n < 0 && errno == EAGAIN)
			rc = await(l, POLLOUT, err);
		else if (n < 0 && errno != EINTR)
			rc = err_sys(err, errno, "cannot write to the host");
		if (rc < 0)
			return rc;
		done += n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int read_more(struct link *l, struct err *err)
{
	bool was_reset = false;
	int rc = await(l, POLLIN, err);

	if (rc < 0)
		return rc;
	for (;;) {
		ssize_t n = read(l->fd, l->data, sizeof(l->data));

		if (n > 0) {
			l->rest = l->data;
			l->rest_len = (size_t)n;
			return 0;
		}
		/* What was said before the reset comes next. */
		if (n < 0 && errno == ECONNRESET && !was_reset)
			was_reset = true;
		else if (n == 0)
			return err_sys(err, ECONNRESET, "the host is gone");
		else if (errno != EINTR)
			return err_sys(err, errno, "cannot read from the host");
	}
}

/* Borrowed until the next one. */
static int read_line(struct link *l, const char **ret, size_t *ret_len, struct err *err)
{
	int rc = 0;

	for (;;) {
		switch (framing_next(&l->framing, &l->rest, &l->rest_len, ret, ret_len)) {
		case FRAME_LINE:
			return 0;
		case FRAME_TOO_LONG:
			return err_set(err, ERR_LIMIT, "the host's answer is too long");
		case FRAME_NONE:
			rc = read_more(l, err);
			if (rc < 0)
				return rc;
		}
	}
}

/* ---- the beginning ---- */

static int say_hello(struct link *l, const struct link_options *o, struct err *err)
{
	struct hello h = {
		.role = o->role,
		.is_legacy_only = o->is_legacy_only,
		.is_again = o->is_again,
	};
	autobuf struct buf line = BUF_INIT(MAX_CONTEXT + HELLO_MAX_LINE);
	int rc;

	context_take_own(&h.context);
	if (o->session)
		h.session = mem_dup(NULL, o->session, strlen(o->session));
	if (o->nonce)
		(void)snprintf(h.nonce, sizeof(h.nonce), "%s", o->nonce);
	else
		link_nonce(h.nonce);
	hello_put(&line, &h);
	hello_release(&h);
	rc = buf_error(&line);
	if (rc < 0)
		return err_set(
			err, ERR_LIMIT,
			"the environment is larger than the %zu bytes that a host takes",
			MAX_CONTEXT);
	/* If it is not taken, the answer says why. */
	rc = write_all(l, &line, err);
	return rc == -ERR_SYS ? 0 : rc;
}

static enum link_state other_protocol(const struct link *l, struct err *err)
{
	const struct welcome *w = &l->welcome;
	bool is_older = version_compare(w->version, ERRAND_VERSION) < 0;

	(void)err_set(err, ERR_STATE,
		      "the daemon is errand %s (pid %ld) and speaks version %d of the "
		      "protocol, this is errand %s and speaks version %d: %s",
		      w->version, (long)w->pid, w->protocol, ERRAND_VERSION, HELLO_PROTOCOL,
		      is_older ? "end the daemon, no task ends with it"
			       : "use the newer program");
	return is_older ? LINK_OLDER : LINK_NEWER;
}

static enum link_state greet(struct link *l, const struct link_options *o, struct err *err)
{
	const char *line;
	size_t len;

	if (say_hello(l, o, err) < 0)
		return LINK_BROKEN;
	/* A socket outlives its killed host for a moment, in a shim that is just being born. */
	if (read_line(l, &line, &len, err) < 0)
		return err->errnum == ECONNRESET ? LINK_STALE : LINK_BROKEN;
	switch (-welcome_read(line, len, &l->welcome, err)) {
	case 0:
		return LINK_OPEN;
	case ERR_STATE:
		return l->welcome.protocol && l->welcome.protocol != HELLO_PROTOCOL
			       ? other_protocol(l, err)
			       : LINK_REFUSED;
	default:
		return LINK_BROKEN;
	}
}

static enum link_state connect_to(const char *state, int *ret_fd, struct err *err)
{
	autofree char *path = NULL;
	autoclose int folder = -1;

	if (state_find(state, &path, &folder, err) < 0)
		return err->errnum == ENOENT ? LINK_NO_SOCKET : LINK_BROKEN;
	if (unix_connect(folder, path, HOST_SOCKET, ret_fd, err) == 0)
		return LINK_OPEN;
	if (err->errnum == ENOENT)
		return LINK_NO_SOCKET;
	return err->errnum == ECONNREFUSED ? LINK_STALE : LINK_BROKEN;
}

enum link_state link_open(const struct link_options *o, struct link **ret, struct err *err)
{
	int fd = -1;
	enum link_state state = connect_to(o->state, &fd, err);
	struct link *l;

	if (state != LINK_OPEN)
		return state;
	l = mem_new(NULL, sizeof(*l));
	l->fd = fd;
	l->last_id = o->asked;
	l->on_silence = o->on_silence;
	l->ud = o->ud;
	framing_init(&l->framing, MAX_ANSWER);
	state = greet(l, o, err);
	if (state == LINK_OPEN)
		*ret = l;
	else
		link_free(l);
	return state;
}

void link_free(struct link *l)
{
	if (!l)
		return;
	if (l->fd >= 0)
		close(l->fd);
	framing_release(&l->framing);
	mem_free(NULL, l);
}

int link_fd(const struct link *l)
{
	return l->fd;
}

int link_take_fd(struct link *l)
{
	return take_fd(&l->fd);
}

const struct welcome *link_welcome(const struct link *l)
{
	return &l->welcome;
}

/* ---- requests ---- */

static int refused(const struct js *error, struct err *err)
{
	const char *why = js_string(js_get(error, "message"), NULL);

	return err_set(err,
		       js_number(js_get(error, "code")) == RPC_NO_TASK ? ERR_NOT_FOUND
								       : ERR_ARG,
		       "%s", why ? why : "refused");
}

static int take_answer(const char *line, size_t len, uint64_t *ret_number,
		       struct buf *ret_result, struct err *err)
{
	struct js_span all = {line, len}, result;
	struct js *root = NULL;
	double number;
	int rc;

	if (js_parse(line, len, &root, NULL) < 0) {
		js_free(root);
		return err_set(err, ERR_FORMAT, "the host's answer is not JSON");
	}
	number = js_number(js_get(root, "id"));
	*ret_number = number >= 1 && number <= 1e9 ? (uint64_t)number : 0;
	result = js_member(all, "result");
	if (js_type(js_get(root, "error")) == JS_OBJECT)
		rc = refused(js_get(root, "error"), err);
	else if (!result.ptr)
		rc = err_set(err, ERR_FORMAT, "the host's answer has no result");
	else
		rc = buf_add(ret_result, result.ptr, result.len);
	js_free(root);
	return rc;
}

int link_post(struct link *l, const char *method, const char *params_json, struct err *err)
{
	autobuf struct buf line = BUF_INIT(MAX_REQUEST_LINE);

	buf_addf(&line, "{\"jsonrpc\":\"2.0\",\"id\":%llu,\"method\":\"%s\",\"params\":",
		 (unsigned long long)++l->last_id, method);
	buf_adds(&line, params_json);
	buf_adds(&line, "}\n");
	if (buf_error(&line))
		return err_set(err, ERR_LIMIT, "the request is too long");
	return write_all(l, &line, err);
}

int link_answer(struct link *l, uint64_t *ret_number, struct buf *ret_result,
		struct err *err)
{
	const char *answer = NULL;
	size_t len = 0;
	int rc = read_line(l, &answer, &len, err);

	*ret_number = 0;
	return rc < 0 ? rc : take_answer(answer, len, ret_number, ret_result, err);
}

void link_bye(struct link *l)
{
	autobuf struct buf line = BUF_INIT(KIB(1));
	struct err err = {0};

	buf_adds(&line, "{\"jsonrpc\":\"2.0\",\"method\":\"errand/bye\"}\n");
	(void)write_all(l, &line, &err); /* a host that has gone forgets by age */
}

int link_ask(struct link *l, const char *method, const char *params_json,
	     struct buf *ret_result, struct err *err)
{
	uint64_t number;
	int rc = link_post(l, method, params_json, err);

	return rc < 0 ? rc : link_answer(l, &number, ret_result, err);
}
