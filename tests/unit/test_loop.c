/* SPDX-License-Identifier: MIT */
/*
 * Whole logs of an agent's loop, row by row (tests/vectors/traces). What came from outside is
 * fed in: prompts, model output, tool calls, ends, the loop's own steps. What the core does is
 * then in its log, which has to be the row's: each event, each member, in the same order.
 */
#include "session.h"

static struct {
	struct js *row;
	const struct js *log;
	size_t at; /* the next event of the row */
	bool is_open;
	struct work *task[8]; /* by the number in its id */
	char result[512];     /* of the last call */
} trace;

/* ---- rows ---- */

static const char *read_file(const char *name)
{
	static char text[262144];
	char path[512];
	FILE *f;
	size_t n;

	(void)snprintf(path, sizeof(path), "%s/%s", getenv("ERRAND_TRACES"), name);
	f = fopen(path, "re");
	CHECK(f != NULL);
	n = fread(text, 1, sizeof(text) - 1, f);
	(void)fclose(f);
	text[n] = 0;
	return text;
}

static void find_row(const char *file, const char *name)
{
	const char *line = read_file(file);

	js_free(trace.row);
	memset(&trace, 0, sizeof(trace));
	for (; *line; line = strchr(line, '\n') + 1) {
		size_t len = (size_t)(strchr(line, '\n') - line);

		CHECK_INT(js_parse(line, len, &trace.row, NULL), 0);
		if (js_string_is(js_get(trace.row, "name"), name))
			break;
		js_free(trace.row);
		trace.row = NULL;
	}
	CHECK(trace.row != NULL);
	trace.log = js_get(trace.row, "log");
}

/* ---- our log in the row's form ---- */

static void put_text_of(struct buf *b, const struct js *message)
{
	const struct js *block = js_at(js_get(message, "content"), 0);

	(void)buf_adds(b, "\"id\":");
	(void)js_put_value(b, js_get(message, "id"));
	(void)buf_adds(b, ",\"text\":");
	(void)js_put_value(b, js_get(block, "text"));
	(void)buf_adds(b, ",\"source\":");
	(void)js_put_value(b, js_get(message, "source"));
}

static void put_members(struct buf *b, const struct js *data)
{
	const char *key;
	const struct js *value;
	size_t len;
	void *it = NULL;

	while (js_next(data, &it, &key, &len, &value)) {
		(void)buf_addf(b, ",\"%.*s\":", (int)len, key);
		if (strncmp(key, "inserted", len) == 0) {
			(void)buf_addc(b, '[');
			for (size_t i = 0; i < js_count(value); i++) {
				(void)buf_adds(b, i ? ",{" : "{");
				put_text_of(b, js_at(value, i));
				(void)buf_addc(b, '}');
			}
			(void)buf_addc(b, ']');
		} else {
			(void)js_put_value(b, value);
		}
	}
}

static const char *in_rows_form(const struct js *event)
{
	static char line[8192];
	const struct js *data = js_get(event, "data");
	struct buf b = BUF_INIT(sizeof(line) - 1);

	(void)buf_adds(&b, "{\"type\":");
	(void)js_put_value(&b, js_get(event, "type"));
	if (js_get(data, "message")) {
		(void)buf_addc(&b, ',');
		put_text_of(&b, js_get(data, "message"));
	} else {
		put_members(&b, data);
	}
	(void)buf_addc(&b, '}');
	(void)snprintf(line, sizeof(line), "%s", buf_text(&b));
	buf_release(&b);
	return line;
}

static void check_log(void)
{
	struct js *ours = NULL;
	struct buf want = BUF_INIT(8192);

	CHECK_INT(js_parse(log_json(), strlen(log_json()), &ours, NULL), 0);
	for (size_t i = 0; i < js_count(trace.log) && i < js_count(ours); i++) {
		buf_clear(&want);
		(void)js_put_value(&want, js_at(trace.log, i));
		CHECK_STR(in_rows_form(js_at(ours, i)), buf_text(&want));
	}
	CHECK_INT(js_count(ours), js_count(trace.log));
	buf_release(&want);
	js_free(ours);
}

/* ---- what the model was sent ---- */

static bool is_of_type(const struct js *event, const char *type)
{
	return js_string_is(js_get(event, "type"), type);
}

static void put_for_the_model(struct buf *b, const struct js *event)
{
	const struct js *data = js_get(event, "data");
	const struct js *block = js_at(js_get(js_get(data, "message"), "content"), 0);

	if (!is_of_type(event, "user/message") && !is_of_type(event, "assistant/message") &&
	    !is_of_type(event, "tool/result"))
		return;
	(void)buf_addf(b, "%s{\"role\":\"%s\",\"text\":", b->len ? "," : "",
		       is_of_type(event, "assistant/message") ? "assistant" : "user");
	(void)js_put_value(b, block ? js_get(block, "text") : js_get(data, "text"));
	(void)buf_addc(b, '}');
}

static void check_request(const struct buf *sent, const struct js *request)
{
	struct buf got = BUF_INIT(16384), want = BUF_INIT(16384);

	(void)buf_addf(&got, "[%s]", buf_text(sent));
	(void)js_put_value(&want, request);
	CHECK_STR(buf_text(&got), buf_text(&want));
	buf_release(&got);
	buf_release(&want);
}

/* Our log up to each answer of the model's is what it was asked with. */
static void check_requests(void)
{
	const struct js *requests = js_get(trace.row, "requests");
	struct js *ours = NULL;
	struct buf sent = BUF_INIT(16384);
	size_t n = 0;

	CHECK_INT(js_parse(log_json(), strlen(log_json()), &ours, NULL), 0);
	for (size_t i = 0; i < js_count(ours); i++) {
		if (is_of_type(js_at(ours, i), "assistant/message"))
			check_request(&sent, js_at(requests, n++));
		put_for_the_model(&sent, js_at(ours, i));
	}
	CHECK_INT(n, js_count(requests));
	buf_release(&sent);
	js_free(ours);
}

/* ---- feeding ---- */

static const struct js *peek(void)
{
	return js_at(trace.log, trace.at);
}

static bool is_next(const char *type)
{
	return js_string_is(js_get(peek(), "type"), type);
}

static const char *text_in(const struct js *j, const char *key)
{
	const char *s = js_string(js_get(j, key), NULL);

	return s ? s : "";
}

static bool is_removal(void)
{
	return js_get(peek(), "removedCount") != NULL;
}

/* @id: "bash-1" to "bash-7". */
static struct work **task_slot(const char *id)
{
	return &trace.task[id[strlen("bash-")] - '0'];
}

static void insert_prompt(const struct js *m)
{
	int target = js_string_is(js_get(peek(), "target"), "next-turn") ? ERRAND_NEXT_TURN
									 : ERRAND_NEXT_STEP;
	struct buf b = BUF_INIT(1024);

	(void)buf_adds(&b, "{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":");
	(void)js_put_value(&b, js_get(m, "text"));
	(void)buf_adds(&b, "}],\"source\":");
	(void)js_put_value(&b, js_get(m, "source"));
	(void)buf_addc(&b, '}');
	CHECK_INT(errand_insert(core.host, core.alice, target, buf_text(&b), b.len, NULL,
				NULL),
		  0);
	buf_release(&b);
}

/* Which task ended, and how, stands in the notice that the row expects. */
static void settle_noticed(const char *text)
{
	const struct work *w = *task_slot(strstr(text, "bash-"));

	if (strstr(text, "status: completed"))
		settle(w, ERRAND_COMPLETED, "exit code: 0", NULL);
	else
		settle(w, ERRAND_FAILED, "x", NULL);
}

/* The loop hands its own line over, and does what the call asks for. */
static void log_line(const struct js *event)
{
	struct buf b = BUF_INIT(8192);
	const char *key;
	const struct js *value;
	size_t len, n = 0;
	void *it = NULL;

	(void)buf_adds(&b, "{\"type\":");
	(void)js_put_value(&b, js_get(event, "type"));
	(void)buf_adds(&b, ",\"data\":{");
	while (js_next(event, &it, &key, &len, &value)) {
		if (strncmp(key, "type", len) == 0)
			continue;
		(void)buf_addf(&b, "%s\"%.*s\":", n++ ? "," : "", (int)len, key);
		(void)js_put_value(&b, value);
	}
	(void)buf_adds(&b, "}}");
	CHECK_INT(errand_log(core.host, core.alice, buf_text(&b), b.len, NULL), 0);
	buf_release(&b);
}

static void start_background(const char *args)
{
	struct work *w = start_labelled(core.alice, "bash", member(args, "label"));

	w->cancel_settles = strstr(args, "\"settle\"") != NULL;
	*task_slot(w->id) = w;
	(void)snprintf(trace.result, sizeof(trace.result),
		       "<result>started background task %s</result>", w->id);
}

static void do_call(const struct js *event)
{
	const char *args = text_in(event, "arguments");

	if (js_string_is(js_get(event, "name"), "bg")) {
		start_background(args);
		return;
	}
	(void)call_begin(core.alice, text_in(event, "name"), args);
	run();
	if (strstr(args, "\"wait\"")) { /* what it waits for ends */
		settle(trace.task[1], ERRAND_COMPLETED, "exit code: 0", "all output");
		run();
	}
	CHECK_INT(core.results, 1);
	core.lease = 0; /* the call's own, delivered */
	(void)snprintf(trace.result, sizeof(trace.result), "<result>%.400s</result>",
		       result_text());
}

static void open_next(void)
{
	CHECK(!trace.is_open);
	turn_open();
	trace.is_open = true;
}

static void splice(void)
{
	const struct js *m = js_at(js_get(peek(), "inserted"), 0);

	if (js_get(peek(), "outcome"))
		CHECK_INT(errand_agent_cancel(core.host, core.alice, 0, NULL), 0);
	else if (is_removal())
		(void)claim(ERRAND_CLAIM_TURN);
	else if (js_string_is(js_get(js_get(m, "source"), "kind"), "user"))
		insert_prompt(m);
	else
		settle_noticed(text_in(m, "text"));
}

/* One claim may be two splices. */
static void skip_splices(void)
{
	bool was_removal = is_removal();

	do
		trace.at++;
	while (was_removal && is_next("agent/inbox/spliced") && is_removal());
}

static void feed_one(void)
{
	const struct js *event = peek();

	if (is_next("agent/inbox/spliced")) {
		splice();
		run();
		skip_splices();
		return;
	}
	trace.at++;
	if (is_of_type(event, "turn/start")) {
		open_next();
	} else if (is_of_type(event, "step/start")) {
		CHECK_INT(errand_step_begin(core.host, core.alice, core.lease, NULL), 0);
		core.lease = 0;
	} else if (is_of_type(event, "step/end")) {
		(void)step_end();
	} else if (is_of_type(event, "turn/end")) {
		CHECK_INT(try_close("completed"), 0);
		trace.is_open = false;
	} else if (!is_of_type(event, "user/message")) {
		log_line(event);
		if (is_of_type(event, "tool/call"))
			do_call(event);
		else if (is_of_type(event, "tool/result"))
			CHECK_STR(trace.result, text_in(event, "text"));
	}
	run();
}

static void feed(void)
{
	while (trace.at < js_count(trace.log))
		feed_one();
}

/* Of alice's, as a later agent of her session sees them. */
static int tasks_left(void)
{
	errand_text *t = NULL;

	CHECK_INT(errand_list(core.host, agent("alice"), &t, NULL), 0);
	return times(text_of(t), "\"id\"");
}

/* What is left when the row is over. */
static void check_rest(void)
{
	const struct js *left = js_get(trace.row, "pending");
	const struct js *tasks_after = js_get(trace.row, "tasks_after");

	CHECK_INT(js_count(js_get(left, "next_step")) + js_count(js_get(left, "next_turn")),
		  times(inbox(core.alice), "\"role\""));
	CHECK_STR(text_in(trace.row, "status"),
		  turn_state() == ERRAND_IDLE ? "idle" : "running");
	CHECK_INT(js_count(js_get(trace.row, "warnings")), times(core.log, "warn("));
	if (tasks_after) {
		(void)logged();
		CHECK_INT(
			errand_agent_dispose(core.host, core.alice, NULL, NULL, NULL, NULL),
			0);
		run();
		CHECK_INT(js_number(tasks_after), tasks_left());
	}
}

static void enact(const char *file, const char *name, const char *config)
{
	find_row(file, name);
	fresh_with(config, true);
	feed();
	check_log();
	check_requests();
	check_rest();
}

static void enact_quiet(const char *name)
{
	enact("loop.jsonl", name, "{\"completionDelivery\":\"quiet\"}");
	CHECK_INT(session.wakes, 0);
}

static void enact_waking(const char *name, int wakes)
{
	enact("later_loop.jsonl", name, "{}");
	CHECK_INT(session.wakes, wakes);
}

/* ---- the rows ---- */

TEST(cancel_while_idle_discards_the_parked_notice)
{
	enact_quiet("cancel while idle discards the parked notice");
}

TEST(cancel_keep_inbox_keeps_the_parked_notice)
{
	enact_quiet("cancel keepInbox keeps the parked notice");
	CHECK_INT(errand_agent_cancel(core.host, core.alice, 1, NULL), 0);
	check_log();
}

TEST(settles_during_the_closing_step_the_turn_runs_another_step)
{
	enact_quiet("settles during the closing step: the turn runs another step");
}

TEST(killed_by_the_model_no_notice)
{
	enact_quiet("killed by the model: no notice");
	settle(trace.task[1], ERRAND_KILLED, NULL, NULL);
	run();
	check_log();
}

TEST(later_settles_while_idle_then_cancel_keep_inbox_then_a_user_prompt)
{
	enact_waking(
		"[later] settles while idle, then cancel keepInbox, then a user prompt", 1);
}

TEST(later_settles_during_the_closing_step_the_turn_runs_another_step)
{
	enact_waking("[later] settles during the closing step: the turn runs another step",
		     0);
}

TEST(later_two_settlements_while_idle_then_a_user_prompt)
{
	enact_waking("[later] two settlements while idle, then a user prompt", 2);
}

TEST(later_owner_disposal_with_live_work)
{
	enact_waking("[later] owner disposal with live work", 0);
	CHECK_STR(logged(), "cancel(owner disposed);");
	check_log();
	CHECK_INT(turn_state(), ERRAND_DISPOSED);
}

TEST(later_blocking_wait_delivers_no_notice)
{
	enact_waking("[later] blocking wait delivers, no notice", 0);
}

TEST(later_killed_by_the_model_no_notice)
{
	enact_waking("[later] killed by the model: no notice", 0);
	settle(trace.task[1], ERRAND_KILLED, NULL, NULL);
	run();
	check_log();
}

TEST(later_notice_racing_a_steer)
{
	enact_waking("[later] notice racing a steer", 0);
}
