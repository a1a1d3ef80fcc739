/* SPDX-License-Identifier: MIT */
#include "host/history.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "host/config.h"
#include "host/state.h"
#include "store/store.h"

#define DAY_S INT64_C(86400)

struct store_limits history_limits(const struct config *c)
{
	return (struct store_limits){
		.history_age_ms = c->history_keep_s * 1000,
		.history_tasks = c->history_tasks,
		.history_bytes = (int64_t)MIB(1024),
		.requests_age_ms = 7 * DAY_S * 1000,
		.requests = 10000,
		.audit = 100000,
	};
}

struct rows {
	bool has_listed;
	struct buf text; /* the newest first, a newline behind each */
};

static void take_row(void *ud, const char *json, size_t len)
{
	struct rows *r = ud;
	struct js_span listed = js_member((struct js_span){json, len}, "listed");
	bool is_listed = listed.len == 4; /* true */

	if (is_listed && !r->has_listed)
		return;
	buf_add(&r->text, json, len);
	buf_addc(&r->text, '\n');
}

static void put_backwards(struct buf *out, const struct buf *rows)
{
	size_t end = rows->len;

	while (end > 0) {
		const char *before = memrchr(rows->data, '\n', end - 1);
		size_t begin = before ? (size_t)(before - rows->data) + 1 : 0;

		buf_add(out, rows->data + begin, end - 1 - begin);
		if (begin > 0)
			buf_addc(out, ',');
		end = begin;
	}
}

/* -ERR_NOT_FOUND: nothing has been kept here yet. */
static int open_store(const char *state, struct store **ret, struct err *err)
{
	autofree char *path = NULL;
	autoclose int folder = -1;
	int rc = state_find(state, &path, &folder, err);

	return rc < 0 ? rc : store_open(path, STORE_READ, ret, NULL, err);
}

typedef int (*look_fn)(struct store *s, const struct store_filter *f, store_row_fn row,
		       void *ud, struct err *err);

static int put_array(const char *state, look_fn look, const struct store_filter *f,
		     struct rows *rows, struct buf *out, struct err *err)
{
	struct store *s = NULL;
	int rc = open_store(state, &s, err);

	buf_init(&rows->text, MAX_JSON_TEXT);
	if (rc == 0)
		rc = look(s, f, take_row, rows, err);
	store_close(s);
	buf_addc(out, '[');
	put_backwards(out, &rows->text);
	buf_addc(out, ']');
	buf_release(&rows->text);
	return rc == -ERR_NOT_FOUND ? 0 : rc;
}

int history_put(const char *state, bool has_listed, struct buf *out, struct err *err)
{
	struct store_filter filter = {.limit = HISTORY_TASKS};
	struct rows rows = {.has_listed = has_listed};

	return put_array(state, store_history, &filter, &rows, out, err);
}

static errand_str id_text(const char *id)
{
	return (errand_str){id, id ? strlen(id) : 0};
}

int history_put_trail(const char *state, const char *id, struct buf *out, struct err *err)
{
	struct store_filter filter = {.limit = HISTORY_TASKS, .id = id_text(id)};
	struct rows rows = {0};

	return put_array(state, store_audit_trail, &filter, &rows, out, err);
}

/* ---- one task of the past ---- */

static void take_first(void *ud, const char *json, size_t len)
{
	struct buf *out = ud;

	if (!out->len)
		buf_add(out, json, len);
}

static void take_drop(void *ud, const char *json, size_t len)
{
	struct js_span act = js_member((struct js_span){json, len}, "act");

	if (act.len == strlen("\"drop\"") && memcmp(act.ptr, "\"drop\"", act.len) == 0)
		take_first(ud, json, len);
}

int history_find(const char *state, const char *id, struct buf *ret_task,
		 struct buf *ret_drop, struct err *err)
{
	struct store_filter filter = {.limit = HISTORY_TASKS, .id = id_text(id)};
	struct store *s = NULL;
	int rc = open_store(state, &s, err);

	if (rc == 0)
		rc = store_history(s, &filter, take_first, ret_task, err);
	if (rc == 0)
		rc = store_audit_trail(s, &filter, take_drop, ret_drop, err);
	store_close(s);
	return rc == -ERR_NOT_FOUND ? 0 : rc;
}
