/* SPDX-License-Identifier: MIT */
/* Tests of D13: tasks without an owner behind a fence, and the operator who sees over it. */
#include "core.h"

static errand_agent op;

static void fenced(const char *access)
{
	char config[64];

	(void)snprintf(config, sizeof(config), "{\"unownedAccess\":\"%s\"}", access);
	fresh_as(config);
	op = operator_agent();
}

/* 0, or the refusal in core.message. */
static int try_get(const struct work *w, errand_agent caller)
{
	errand_text *t = NULL;
	errand_error *e = NULL;
	int rc = errand_get(core.host, w->id, ERRAND_NUL, caller, &t, &e);

	errand_text_free(t);
	(void)message(e);
	return rc;
}

static int try_kill(const struct work *w, errand_agent caller)
{
	errand_error *e = NULL;
	int rc = errand_kill(core.host, w->id, ERRAND_NUL, caller, "enough", ERRAND_NUL,
			     NULL, &e);

	(void)message(e);
	return rc;
}

static const char *list_of(errand_agent caller)
{
	errand_text *t = NULL;

	CHECK_INT(errand_list(core.host, caller, &t, NULL), 0);
	return text_of(t);
}

static const char *read_as(const struct work *w, errand_agent caller, errand_lease *lease)
{
	static char copy[1024];
	errand_text *t = NULL;

	CHECK_INT(errand_read(core.host, w->id, ERRAND_NUL, caller, lease, &t, NULL), 0);
	(void)snprintf(copy, sizeof(copy), "%s", member(text_of(t), "text"));
	return copy;
}

/* ---- without an owner ---- */

TEST(d13_open_tasks_are_everybodys)
{
	struct work *w;

	fresh();
	op = operator_agent();
	w = start(0, FINAL);
	CHECK_INT(try_get(w, 0), 0);
	CHECK_INT(try_get(w, core.alice), 0);
	CHECK_INT(try_get(w, op), 0);
	CHECK_INT(times(list_of(core.bob), "bash-1"), 1);
}

TEST(d13_the_fence_lets_operators_in)
{
	struct work *w;

	fenced("operator");
	w = start(0, FINAL);
	CHECK_INT(try_get(w, core.alice), ERRAND_EREFUSED);
	CHECK_STR(core.message, "task bash-1 belongs to another session");
	CHECK_INT(try_get(w, 0), ERRAND_EREFUSED);
	CHECK_INT(try_kill(w, core.alice), ERRAND_EREFUSED);
	CHECK_STR(list_of(core.alice), "[]");
	CHECK_STR(call(core.alice, "task_list", "{}"), "(no background tasks)");
	CHECK_INT(try_get(w, op), 0);
	CHECK_INT(try_kill(w, op), 0);
}

TEST(d13_or_nobody)
{
	struct work *w;

	fenced("none");
	w = start(0, FINAL);
	CHECK_INT(try_get(w, core.alice), ERRAND_EREFUSED);
	CHECK_INT(try_get(w, op), ERRAND_EREFUSED);
	CHECK_STR(list_of(op), "[]");
	CHECK_INT(try_kill(w, op), ERRAND_EREFUSED);
}

TEST(d13_the_fence_does_not_touch_what_is_owned)
{
	struct work *w;

	fenced("none");
	w = start(core.alice, FINAL);
	CHECK_INT(try_get(w, core.alice), 0);
	CHECK_INT(try_get(w, op), 0);
	CHECK_INT(try_get(w, core.bob), ERRAND_EREFUSED);
}

TEST(d13_access_is_one_of_three)
{
	struct errand_host_options o = {.size = sizeof(o), .abi = ERRAND_ABI};
	errand_error *e = NULL;
	errand_host *h = NULL;

	o.config_json = str("{\"unownedAccess\":\"some\"}");
	CHECK_INT(errand_host_new(&o, &h, &e), ERRAND_EREFUSED);
	CHECK_STR(message(e),
		  "invalid config:\n  - $.unownedAccess expected \"open\" | "
		  "\"operator\" | \"none\" but got \"some\" (at unownedAccess)");
}

/* ---- the operator ---- */

TEST(d13_an_operator_sees_all_in_order_of_their_start)
{
	struct js *all = NULL;
	const char *json;

	fenced("operator");
	(void)start(core.bob, FINAL);
	(void)start(0, FINAL);
	(void)start(core.alice, FINAL);
	json = list_of(op);
	CHECK_INT(js_parse(json, strlen(json), &all, NULL), 0);
	CHECK_INT(js_count(all), 3);
	for (size_t i = 0; i < 3; i++)
		CHECK_STR(js_string(js_get(js_at(all, i), "id"), NULL), core.work[i].id);
	js_free(all);
}

TEST(d13_an_operator_owns_no_task)
{
	struct errand_task_spec s;

	fenced("operator");
	s = spec(op, FINAL);
	CHECK_INT(try_start(&s), ERRAND_EREFUSED);
	CHECK_STR(core.message, "an operator owns no tasks");
	CHECK_STR(logged(), "");
}

TEST(d13_its_reads_move_no_cursor)
{
	struct work *w;
	errand_lease lease = 9;

	fenced("operator");
	w = start(core.alice, STREAM);
	emit(w, "one\n");
	CHECK_STR(read_as(w, op, &lease), "one\n");
	CHECK_INT(lease, 0);
	CHECK_STR(read_as(w, op, &lease), "one\n");
	CHECK_STR(output_of(w), "one\n[status: running]");
	CHECK_STR(read_as(w, op, &lease), "");
}

TEST(d13_its_reads_report_nothing)
{
	struct work *w;

	fenced("operator");
	w = start(core.alice, FINAL);
	settle(w, ERRAND_COMPLETED, NULL, "done");
	run();
	CHECK_STR(call(op, "task_output", "{\"task_id\":\"bash-1\"}"),
		  "done\n[status: completed]");
	CHECK(!is_reported(w));
}

TEST(d13_its_waits_report_nothing)
{
	struct work *w;

	fenced("operator");
	w = start(core.alice, FINAL);
	(void)call_begin(op, "task_output", "{\"task_id\":\"bash-1\",\"wait\":true}");
	run();
	end(w);
	CHECK_STR(result_text(), "(no new output)\n[status: completed]");
	CHECK(!is_reported(w));
	CHECK_INT(notices(core.alice), 1);
}

static void on_waited(void *ud, errand_host *h, errand_lease l, const char *snapshot_json,
		      size_t len, const errand_error *e)
{
	(void)ud;
	(void)h;
	(void)len;
	(void)e;
	logf_("waited(%d %s);", (int)l, member(snapshot_json, "status"));
}

TEST(d13_nor_do_its_waits_in_the_registry)
{
	struct work *w;

	fenced("operator");
	w = start(core.alice, FINAL);
	CHECK_INT(errand_wait(core.host, w->id, ERRAND_NUL, op, "1000", ERRAND_NUL, 0,
			      on_waited, NULL, NULL, NULL),
		  0);
	end(w);
	CHECK_STR(logged(), "waited(0 completed);");
	CHECK_INT(notices(core.alice), 1);
}

TEST(d13_the_owner_is_told_of_an_end_that_the_operator_asked_for)
{
	struct work *w;

	fenced("operator");
	w = start(core.alice, FINAL);
	CHECK_STR(call(op, "task_kill", "{\"task_id\":\"bash-1\"}"),
		  "requested cancellation of task bash-1");
	CHECK_STR(status_of(w), "stopping");
	settle(w, ERRAND_KILLED, "signal: SIGTERM", NULL);
	run();
	CHECK_INT(notices(core.alice), 1);
	CHECK_INT(try_kill(w, op), 0);
	CHECK(!is_reported(w));
}

TEST(d13_an_owner_that_asked_too_is_not)
{
	struct work *w;

	fenced("operator");
	w = start(core.alice, FINAL);
	(void)kill_of(w);
	CHECK_INT(try_kill(w, op), 0);
	settle(w, ERRAND_KILLED, NULL, NULL);
	run();
	CHECK_INT(notices(core.alice), 0);
}
