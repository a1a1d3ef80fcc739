/* SPDX-License-Identifier: MIT */
#include "host/history.h"

#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/json.h"
#include "base/limits.h"
#include "host/state.h"
#include "store/store.h"

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

int history_put(const char *state, bool has_listed, struct buf *out, struct err *err)
{
	struct store_filter filter = {.limit = HISTORY_TASKS};
	struct rows rows = {.has_listed = has_listed};
	autofree char *path = NULL;
	autoclose int folder = -1;
	struct store *s = NULL;
	int rc = state_folder(state, &path, &folder, err);

	buf_init(&rows.text, MAX_JSON_TEXT);
	if (rc == 0)
		rc = store_open(path, STORE_READ, &s, NULL, err);
	if (rc == 0)
		rc = store_history(s, &filter, take_row, &rows, err);
	store_close(s);
	buf_addc(out, '[');
	put_backwards(out, &rows.text);
	buf_addc(out, ']');
	buf_release(&rows.text);
	return rc == -ERR_NOT_FOUND ? 0 : rc;
}
