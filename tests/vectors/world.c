/* SPDX-License-Identifier: MIT */
/* world.c - a host, an agent and producers for rows to play with; and comparing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vectors.h"

static errand_str str(const char *s)
{
	return (errand_str){s, ERRAND_NUL};
}

static errand_str json_str(const json_t *j)
{
	return (errand_str){json_string_value(j), json_string_length(j)};
}

/* What the test itself does must not fail: there is nothing to compare then. */
static void must(int rc, errand_error *e, const char *what)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "run-vectors: %s: %d %s\n", what, rc,
		errand_error_message(e, NULL));
	exit(1);
}

json_t *take_json(errand_text *t)
{
	size_t len;
	const char *p = errand_text_data(t, &len);
	json_t *j = json_loadb(p, len, JSON_ALLOW_NUL | JSON_DECODE_ANY, NULL);

	errand_text_free(t);
	return j;
}

/* ---- the host ---- */

void world_open(struct world *w, const char *mount_config)
{
	struct errand_host_options o = {
		.size = sizeof(o),
		.abi = ERRAND_ABI,
		.config_json = str("{\"maxConcurrentTasksPerOwner\":null}"),
	};
	errand_error *e = NULL;
	errand_reg mount;

	*w = (struct world){.cancels = json_array()};
	must(errand_host_new(&o, &w->host, &e), e, "host");
	world_run(w);
	if (mount_config)
		must(errand_mount(w->host, 0, mount_config, ERRAND_NUL, &mount, &e), e,
		     "mount");
	w->agent = world_agent(w, "a");
}

errand_agent world_agent(struct world *w, const char *session)
{
	struct errand_agent_options a = {.size = sizeof(a), .session = str(session)};
	errand_error *e = NULL;
	errand_agent ret;

	must(errand_agent_new(w->host, &a, &ret, &e), e, "agent");
	return ret;
}

void world_close(struct world *w)
{
	errand_host_free(w->host);
	json_decref(w->cancels);
	json_decref(w->result);
}

void world_run(struct world *w)
{
	while (errand_run(w->host, w->now, WALL_START + w->now, 0) > 0)
		;
}

/* ---- producers ---- */

static int work_start(void *ud, errand_host *h, errand_task t, errand_error *e)
{
	(void)h;
	(void)e;
	((struct work *)ud)->task = t;
	return 0;
}

static int work_cancel(void *ud, errand_host *h, errand_task t, const char *reason,
		       size_t len, errand_error *e)
{
	struct world *w = ((struct work *)ud)->world;

	json_array_append_new(w->cancels, reason ? json_stringn(reason, len) : json_null());
	if (w->cancel_throws) {
		errand_error_set(e, NULL, NULL, w->cancel_throws, ERRAND_NUL);
		return ERRAND_ECALLBACK;
	}
	if (w->cancel_settles)
		(void)errand_settle(h, t, ERRAND_KILLED, NULL, 0, NULL, 0);
	return 0;
}

static int work_read(void *ud, errand_task t, uint64_t from, errand_sink *out,
		     uint64_t *ret_next, errand_error *e)
{
	const struct work *work = ud;

	(void)t;
	if (work->world->read_throws) {
		errand_error_set(e, NULL, NULL, work->world->read_throws, ERRAND_NUL);
		return ERRAND_ECALLBACK;
	}
	(void)errand_sink_write(out, work->text + from, work->len - from);
	*ret_next = work->len;
	return 0;
}

static void work_free(void *ud)
{
	struct work *work = ud;

	free(work->text);
	free(work);
}

static void fill_limit(struct errand_task_spec *s, const json_t *limit, char **text)
{
	*text = NULL;
	if (!limit || json_is_null(limit))
		return;
	/* A number without JSON is given as null (and so is null itself, which means none). */
	*text = json_is_object(limit) ? strdup("null") : json_dumps(limit, JSON_ENCODE_ANY);
	s->limit_json = str(*text);
}

struct work *world_start(struct world *w, const struct task_in *in, char **ret_id,
			 char **ret_error)
{
	struct work *work = calloc(1, sizeof(*work));
	struct errand_task_spec s = {
		.size = sizeof(s),
		.kind = in->kind ? json_str(in->kind) : str("bash"),
		.label = in->label ? json_str(in->label) : str("sleep 60"),
		.owner = in->is_unowned ? 0 : w->agent,
		.producer = {.size = sizeof(s.producer),
			     .start = work_start,
			     .cancel = work_cancel,
			     .read = in->is_stream ? work_read : NULL,
			     .ud = work,
			     .destroy = work_free},
	};
	errand_error *e = NULL;
	errand_text *id = NULL;
	errand_task t;
	char *limit;
	int rc;

	work->world = w;
	if (in->is_stream && in->text) {
		work->len = json_string_length(in->text);
		work->text = malloc(work->len + 1);
		memcpy(work->text, json_string_value(in->text), work->len);
	}
	fill_limit(&s, in->limit, &limit);
	rc = errand_task_start(w->host, &s, &t, &id, &e);
	free(limit);
	if (rc < 0 && !ret_error)
		must(rc, e, "start");
	if (rc < 0)
		*ret_error = strdup(errand_error_message(e, NULL));
	else if (ret_id)
		*ret_id = strdup(errand_text_data(id, NULL));
	errand_error_free(e);
	errand_text_free(id);
	return rc < 0 ? NULL : work;
}

static unsigned long ordinal_of(const char *id)
{
	const char *dash = strrchr(id, '-');

	return dash ? strtoul(dash + 1, NULL, 10) : 0;
}

void world_advance_counter(struct world *w, const char *kind, const char *id)
{
	json_t *k = json_string(kind);
	struct task_in in = {.kind = k, .is_unowned = true};

	for (unsigned long n = ordinal_of(id); n > 1; n--) {
		char *text;
		errand_task t = world_start(w, &in, &text, NULL)->task;
		int requested;

		must(errand_settle(w->host, t, ERRAND_COMPLETED, NULL, 0, NULL, 0), NULL,
		     "settle");
		world_run(w);
		must(errand_kill(w->host, text, ERRAND_NUL, 0, NULL, 0, &requested, NULL),
		     NULL, "report");
		must(errand_task_drop(w->host, t, NULL), NULL, "drop");
		free(text);
	}
	json_decref(k);
}

static int status_number(const char *status)
{
	static const char *const words[] = {"running", "stopping", "completed", "killed",
					    "failed"};

	for (int i = 0; i < 5; i++)
		if (status && strcmp(words[i], status) == 0)
			return i + ERRAND_RUNNING;
	must(-1, NULL, "a row without a status that we know");
	return 0;
}

void world_bring(struct world *w, struct work *work, const char *id, const char *status,
		 const json_t *detail, const json_t *output)
{
	int number = status_number(status);
	errand_error *e = NULL;
	int requested;

	if (number == ERRAND_STOPPING) {
		must(errand_kill(w->host, id, ERRAND_NUL, w->agent, NULL, 0, &requested,
				 &e),
		     e, "kill");
		json_array_clear(w->cancels);
	} else if (number >= ERRAND_COMPLETED) {
		must(errand_settle(w->host, work->task, number, json_string_value(detail),
				   json_string_length(detail), json_string_value(output),
				   json_string_length(output)),
		     NULL, "settle");
	}
	world_run(w);
}

/* ---- calls ---- */

static int on_result(void *ud, errand_host *h, errand_call c, errand_lease l,
		     const char *result_json, size_t len)
{
	struct world *w = ud;

	(void)h;
	(void)c;
	(void)l;
	json_decref(w->result);
	w->result = json_loadb(result_json, len, JSON_ALLOW_NUL, NULL);
	return ERRAND_DELIVERED;
}

const json_t *world_call(struct world *w, const char *tool, const json_t *args)
{
	char *text = json_dumps(args, JSON_ENCODE_ANY);
	struct call_in in = {.agent = w->agent, .tool = tool, .args = text};
	const json_t *result = world_call_with(w, &in);

	free(text);
	return result;
}

const json_t *world_call_with(struct world *w, const struct call_in *in)
{
	struct errand_call_options o = {
		.size = sizeof(o),
		.flags = in->flags,
		.agent = in->agent,
		.signal = in->signal,
		.tool = str(in->tool),
		.args = str(in->args),
		.on_result = on_result,
		.ud = w,
	};
	errand_error *e = NULL;
	errand_call c;

	json_decref(w->result);
	w->result = NULL;
	must(errand_call_new(w->host, &o, &c, &e), e, "call");
	world_run(w);
	return w->result;
}

json_t *result_text(const json_t *result)
{
	const json_t *content = json_object_get(result, "content");

	if (json_array_size(content) != 1)
		return NULL;
	return json_incref(json_object_get(json_array_get(content, 0), "text"));
}

json_t *world_get(struct world *w, const char *id)
{
	errand_text *t = NULL;
	errand_error *e = NULL;

	must(errand_get(w->host, id, ERRAND_NUL, w->agent, &t, &e), e, "get");
	return take_json(t);
}

/* ---- comparing ---- */

static char *show(const json_t *j)
{
	return j ? json_dumps(j, JSON_ENCODE_ANY) : strdup("(nothing)");
}

void row_fail(struct row *r, const char *text)
{
	char *all = NULL;

	if (asprintf(&all, "%s  %s\n", r->trouble ? r->trouble : "", text) < 0)
		exit(1);
	free(r->trouble);
	r->trouble = all;
}

void row_trouble(struct row *r, const char *what, const json_t *want, const json_t *got)
{
	char *a = show(want), *b = show(got), *line = NULL;

	if (asprintf(&line, "%s: expected %s\n  %*s  actual   %s", what, a,
		     (int)strlen(what), "", b) < 0)
		exit(1);
	row_fail(r, line);
	free(line);
	free(a);
	free(b);
}

void want_json(struct row *r, const char *what, const json_t *want, json_t *got)
{
	if (want && json_is_null(want))
		want = NULL;
	if (want ? !got || !json_equal(want, got) : got != NULL)
		row_trouble(r, what, want, got);
	json_decref(got);
}

/* Rows have {"message","info":{"name","code"}}, results {"message","name","code"}. */
json_t *error_in_row(const json_t *error)
{
	json_t *shaped;

	if (!error)
		return NULL;
	shaped = json_pack("{s:O}", "message", json_object_get(error, "message"));
	if (json_object_get(error, "code"))
		json_object_set_new(shaped, "info",
				    json_pack("{s:O,s:O}", "name",
					      json_object_get(error, "name"), "code",
					      json_object_get(error, "code")));
	return shaped;
}

static void drop_times(const json_t *want, json_t *got)
{
	static const char *const times[] = {"startedAt", "finishedAt"};
	const char *key;
	json_t *value;
	size_t i;

	json_array_foreach (got, i, value)
		drop_times(json_array_get(want, i), value);
	for (i = 0; json_is_object(want) && i < 2; i++)
		if (!json_object_get(want, times[i]))
			json_object_del(got, times[i]);
	json_object_foreach (got, key, value)
		drop_times(json_object_get(want, key), value);
}

json_t *without_times(const json_t *want, const json_t *got)
{
	json_t *copy = json_deep_copy(got);

	drop_times(want, copy);
	return copy;
}

void want_text(struct row *r, const char *what, const char *got, size_t len)
{
	want_json(r, what, json_object_get(r->in, what), json_stringn(got, len));
}

const char *row_text(const json_t *object, const char *key, size_t *ret_len)
{
	const json_t *j = json_object_get(object, key);

	if (ret_len)
		*ret_len = json_string_length(j);
	return json_string_value(j);
}

bool row_is_known(struct row *r, const char *const *known)
{
	const char *key;
	json_t *value, *in = json_copy((json_t *)(uintptr_t)r->in);

	for (size_t i = 0; known[i]; i++)
		json_object_del(in, known[i]);
	json_object_foreach (in, key, value) {
		char *line = NULL;

		if (asprintf(&line, "a member that no row of this kind has: %s", key) < 0)
			exit(1);
		row_fail(r, line);
		free(line);
	}
	json_decref(in);
	return r->trouble == NULL;
}
