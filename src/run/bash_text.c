/* SPDX-License-Identifier: MIT */
/* bash_text.c - the words of `bash`: what is wrong with a call, how it ended (spec D11). */
#include <inttypes.h>
#include <math.h>

#include "base/limits.h"
#include "base/utf8.h"
#include "run/bash_internal.h"

#define MAX_TIMEOUT_MS 86400000.0
#define NO_OUTPUT "(no output)"
#define TRUNCATED "[output truncated]"

/* ---- a call ---- */

static bool is_blank(const char *s, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!strchr(" \t\n\v\f\r", s[i]))
			return false;
	return true;
}

/* Also of a string that the schema let through because it is optional. */
static bool check_string(const struct js *args, const char *key, const char **ret,
			 size_t *ret_len, struct buf *err)
{
	size_t len = 0;
	const char *s = js_string(js_get(args, key), &len);

	if (s && strlen(s) != len) {
		buf_addf(err, "invalid %s: it contains a NUL character", key);
		return false;
	}
	*ret = s;
	*ret_len = len;
	return true;
}

static bool check_filled(const struct js *args, const char *key, const char **ret,
			 size_t *ret_len, struct buf *err)
{
	if (!check_string(args, key, ret, ret_len, err))
		return false;
	if (*ret && !is_blank(*ret, *ret_len))
		return true;
	buf_addf(err, "invalid %s: expected a non-empty string", key);
	return false;
}

static bool check_timeout(const struct js *j, int64_t *ret, struct buf *err)
{
	double ms = js_number(j);

	if (js_type(j) == JS_NONE)
		return true;
	if (ms >= 1 && ms <= MAX_TIMEOUT_MS) {
		*ret = (int64_t)ceil(ms);
		return true;
	}
	buf_adds(err, "invalid timeoutMs: expected a number from 1 to 86400000, got ");
	js_put_value(err, j);
	return false;
}

bool bash_check(const struct js *args, struct bash_request *ret, struct buf *err)
{
	struct bash_request r = {0};
	const char *description;
	size_t len;

	if (!check_filled(args, "command", &r.command, &r.command_len, err) ||
	    !check_filled(args, "description", &description, &len, err) ||
	    !check_timeout(js_get(args, "timeoutMs"), &r.timeout_ms, err) ||
	    !check_string(args, "workdir", &r.workdir, &len, err))
		return false;
	if (len == 0)
		r.workdir = NULL; /* "" is how some models leave a parameter out */
	r.is_background = js_is_true(js_get(args, "run_in_background"));
	*ret = r;
	return true;
}

/* ---- an end ---- */

/* What the main process came to. */
static int put_process(struct buf *out, const struct run_end *end)
{
	int64_t timed_out_ms = end->cause == RUN_DEADLINE ? end->deadline_ms : 0;
	errand_text *detail;
	int status;

	if (errand_process_outcome(end->wait_status, end->cause == RUN_KILL, timed_out_ms,
				   &status, &detail) != 0) {
		buf_addf(out, "lost: wait status %d is no end", end->wait_status);
		return ERRAND_FAILED;
	}
	buf_adds(out, errand_text_data(detail, NULL));
	errand_text_free(detail);
	return status;
}

/* In the largest unit in which it is whole. */
static void put_bytes(struct buf *out, uint64_t bytes)
{
	static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
	size_t i = 0;

	for (; bytes % 1024 == 0 && i + 1 < sizeof(units) / sizeof(units[0]); i++)
		bytes /= 1024;
	buf_addf(out, "%" PRIu64 " %s", bytes, units[i]);
}

/* Behind what the main process came to: what it ran into, and who has outlived it. */
static void put_more(struct buf *out, const struct run_end *end)
{
	if (end->cause == RUN_OOM)
		buf_adds(out, ", out of memory");
	if (end->cause == RUN_OOM && end->memory_hit) {
		buf_adds(out, ": limit ");
		put_bytes(out, end->memory_hit);
	}
	if (end->processes_hit)
		buf_addf(out, ", process limit %" PRIu64 " reached", end->processes_hit);
	if (end->processes_left)
		buf_addf(out, ", %u process%s left", end->processes_left,
			 end->processes_left == 1 ? "" : "es");
}

bool bash_is_incomplete(const struct run_end *end)
{
	return end->processes_left || end->is_unproved;
}

static void put_incomplete(struct buf *out, const struct run_end *end)
{
	if (end->processes_left)
		buf_addf(out, "kill incomplete: %u left (pid %d, uid %d)",
			 end->processes_left, end->left_pid, end->left_uid);
	else
		buf_adds(out, "kill not proved: /proc cannot be read");
}

static int put_killed(struct buf *out, const struct run_end *end)
{
	if (!bash_is_incomplete(end))
		return put_process(out, end);
	put_incomplete(out, end);
	return ERRAND_KILLED;
}

static int put_timed_out(struct buf *out, const struct run_end *end)
{
	int status = put_process(out, end);

	if (bash_is_incomplete(end)) {
		buf_adds(out, ", ");
		put_incomplete(out, end);
	}
	return status;
}

/* A path in a reason may hold anything. */
static void put_one_line(struct buf *out, const char *text)
{
	size_t at = out->len;

	utf8_clean(out, text, strlen(text));
	for (; at < out->len; at++)
		if ((unsigned char)out->data[at] < 0x20 || out->data[at] == 0x7f)
			out->data[at] = ' ';
}

int bash_outcome(const struct run_end *end, struct buf *ret_detail)
{
	int status;

	switch (end->cause) {
	case RUN_EXIT:
	case RUN_SIGNAL:
	case RUN_OOM:
		status = put_process(ret_detail, end);
		put_more(ret_detail, end);
		return status;
	case RUN_KILL:
		return put_killed(ret_detail, end);
	case RUN_DEADLINE:
		return put_timed_out(ret_detail, end);
	case RUN_NOT_STARTED:
		put_one_line(ret_detail, end->why);
		return ERRAND_FAILED;
	case RUN_LOST:
		buf_adds(ret_detail, "lost: ");
		put_one_line(ret_detail, end->why);
		return ERRAND_FAILED;
	}
	return ERRAND_FAILED;
}

/* ---- a result ---- */

static bool begins_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

static void put_marker(struct buf *out, const struct js *value)
{
	const struct js *task = js_get(value, "task"), *status = js_get(task, "status");
	const char *detail = js_string(js_get(task, "detail"), NULL);

	if (!detail)
		buf_addf(
			out,
			"[still running as background task %s; you will be notified when it "
			"finishes]",
			js_string(js_get(value, "taskId"), NULL));
	else if (js_string_is(status, "failed"))
		buf_addf(out, "[failed: %s]", detail);
	else if (begins_with(detail, "signal: "))
		buf_addf(out, "[killed by %s]", detail);
	else if (begins_with(detail, "timed out after "))
		buf_addf(out, "[%s]", detail);
	else if (js_string_is(status, "killed"))
		buf_addf(out, "[killed, %s]", detail);
	else if (strcmp(detail, "exit code: 0") != 0)
		buf_addf(out, "[%s]", detail);
}

static int put_block(errand_sink *out, const char *text, size_t len)
{
	struct buf json = BUF_INIT(MAX_RESULT * 8);

	buf_adds(&json, "[{\"type\":\"text\",\"text\":");
	js_put_string(&json, text, len);
	buf_adds(&json, "}]");
	(void)errand_sink_write(out, buf_text(&json), json.len);
	buf_release(&json);
	return 0;
}

static int render_foreground(const struct js *value, uint64_t limit, errand_sink *out)
{
	struct buf suffix = BUF_INIT(MAX_DETAIL + 256);
	errand_text *fitted = NULL;
	size_t len = 0;
	const char *body = js_string(js_get(value, "text"), &len);
	int rc;

	if (len == 0) {
		body = NO_OUTPUT;
		len = strlen(body);
	}
	buf_addc(&suffix, '\n');
	put_marker(&suffix, value);
	if (suffix.len == 1)
		buf_cut(&suffix, 0);
	else if (body[len - 1] == '\n')
		len--;
	rc = errand_fit(body, len, buf_text(&suffix), TRUNCATED, (size_t)limit, &fitted);
	buf_release(&suffix);
	if (rc < 0)
		return rc;
	body = errand_text_data(fitted, &len);
	rc = put_block(out, body, len);
	errand_text_free(fitted);
	return rc;
}

static int render_background(const struct js *value, errand_sink *out)
{
	struct buf text = BUF_INIT(256);
	int rc;

	buf_addf(&text, "started background task %s",
		 js_string(js_get(value, "taskId"), NULL));
	rc = put_block(out, buf_text(&text), text.len);
	buf_release(&text);
	return rc;
}

int bash_render(void *ud, const char *in_json, size_t len, errand_sink *out,
		errand_error *e)
{
	const struct bash *b = ud;
	struct js *value = NULL;
	int rc = js_parse(in_json, len, &value, NULL);

	if (rc != 0 || !js_string(js_get(value, "taskId"), NULL)) {
		errand_error_set(e, NULL, NULL, "the value is not the tool's", ERRAND_NUL);
		js_free(value);
		return ERRAND_EARG;
	}
	if (js_string_is(js_get(value, "kind"), "foreground"))
		rc = render_foreground(value, b->config.output_limit, out);
	else
		rc = render_background(value, out);
	js_free(value);
	return rc;
}
