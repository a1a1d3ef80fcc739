/* SPDX-License-Identifier: MIT */
/*
 * Every allocation of the library fails once.
 *
 * A scenario that calls all there is to call runs in a process of its own for each n, in which
 * the n-th allocation fails: malloc() of the library, the host's own allocator, and that of the
 * JSON library. Either options.oom is called, which ends the process, or a call says ENOMEM.
 * Then the call is made again, the scenario goes on, and what it was told, the journal and the
 * session's log must be those of a run in which nothing failed; and nothing may have leaked.
 */
#include <jansson.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "world.h"

/* ---- the scenario ---- */

static void build(void)
{
	DO(open_host(&world.host));
	run();
	DO(errand_scope_new(world.host, &world.preset, &err));
	DO(new_agent("alice", 0, world.preset, &world.alice));
	DO(new_agent("bob", ERRAND_AGENT_UNREGISTERED, 0, &world.bob));
	DO(new_agent("op", ERRAND_AGENT_OPERATOR, 0, &world.op));
	DO(new_agent("alice", 0, 0, &world.bob));
	DO(errand_mount(world.host, 0, "{\"waitTimeoutMs\":50}", ERRAND_NUL, &world.reg,
			&err));
	DO(errand_mount(world.host, world.preset, "{}", 2, &world.reg, &err));
	DO(errand_mount(world.host, world.preset, "{\"waitTimeoutMs\":0}", ERRAND_NUL,
			&world.reg, &err));
	DO(errand_section_add(world.host, world.preset, "who", -100, "I am {{name}}.",
			      ERRAND_NUL, &world.reg, &err));
	DO(add_tool(0));
	DO(add_tool(0));
	DO(add_listener(ERRAND_ON_DONE, "done"));
	DO(add_listener(ERRAND_ON_CHANGED, "changed"));
	DO(add_listener(ERRAND_ON_INBOX, "inbox"));
	DO(add_listener(ERRAND_ON_RESULT, "result"));
	DO(errand_mailbox_new(world.host, work_destroy, &world.work[15], NULL, &world.box,
			      &err));
}

static void look(void)
{
	DO(errand_prompt(world.host, world.alice, "{\"name\":\"alice\"}", ERRAND_NUL, &text,
			 &err));
	DO(errand_prompt(world.host, world.alice, NULL, 0, &text, &err));
	DO(errand_sections(world.host, world.alice, &text, &err));
	DO(errand_tools(world.host, world.alice, 0, &text, &err));
	DO(errand_list(world.host, world.alice, &text, &err));
	DO(errand_get(world.host, "bash-1", ERRAND_NUL, world.alice, &text, &err));
	DO(errand_get(world.host, "bash-9", ERRAND_NUL, world.alice, &text, &err));
	DO(errand_card(world.host, world.alice, "task_kill", "{\"task_id\":\"bash-1\"}",
		       ERRAND_NUL, &text, &err));
	DO(errand_card(world.host, world.alice, "echo", "{\"word\":\"w\"}", ERRAND_NUL,
		       &text, &err));
	DO(errand_fit("a long text", ERRAND_NUL, "!", "[cut]", 9, &text));
	DO(errand_fit("\xff text", ERRAND_NUL, "!", "[cut]", 0, &text));
	DO(errand_summary("one\nline", ERRAND_NUL, &text));
}

static void work(void)
{
	static char stream[] = "line one\nline two\n";
	errand_signal s = 0;

	DO(start(world.alice, stream, NULL));
	DO(start(world.alice, NULL, "60"));
	DO(start(world.alice, NULL, "0.5"));
	DO(start(world.alice, "refuses", NULL));
	DO(start(0, NULL, NULL));
	look();
	DO(errand_read(world.host, "bash-1", ERRAND_NUL, world.alice, &world.lease, &text,
		       &err));
	DO(errand_lease_return(world.host, world.lease));
	DO(errand_signal_new(world.host, &s));
	DO(errand_wait(world.host, "bash-1", ERRAND_NUL, world.alice, "5000", 4, s,
		       on_waited, NULL, NULL, &err));
	DO(errand_wait(world.host, "bash-2", ERRAND_NUL, world.alice, "\"x\"", 3, 0,
		       on_waited, NULL, NULL, &err));
	DO(errand_wait(world.host, "bash-2", ERRAND_NUL, world.alice, "1e999", 5, 0,
		       on_waited, NULL, NULL, &err));
	DO(errand_wait(world.host, "bash-2", ERRAND_NUL, world.alice, "5", 1, 0, on_waited,
		       NULL, NULL, &err));
	DO(errand_abort(world.host, s));
	run();
	DO(settle(1, "exit code: 0",
		  "the output of it, which is more than its limit lets "
		  "through to the model"));
	run();
	DO(errand_kill(world.host, "bash-3", ERRAND_NUL, world.op, "enough", ERRAND_NUL,
		       NULL, &err));
	run();
	DO(settle(0, NULL, NULL));
	run();
	DO(errand_signal_free(world.host, s));
}

static void talk(void)
{
	call(world.alice, "task_output", "{\"task_id\":\"bash-2\"}");
	call(world.alice, "task_output", "{\"task_id\":\"bash-1\",\"wait\":true}");
	call(world.alice, "task_list", "{}");
	call(world.alice, "task_kill", "{\"task_id\":\"bash-2\",\"reason\":\"hold back\"}");
	call(world.alice, "task_kill", "{\"task_id\":7}");
	call(world.alice, "task_kill", "no \xff JSON");
	call(world.alice, "echo",
	     "{\"word\":\"a long word, that takes its room\",\"n\":-0}");
	call(world.alice, "echo", "{\"word\":\"a long word, that takes its room\"}");
	call(world.alice, "nothing", "{\"word\":1e999}");
}

static void ask(void)
{
	DO(add_policy(ERRAND_STAGE_PRE, "{\"kind\":\"ask\",\"reason\":\"why\"}", NULL));
	DO(add_policy(ERRAND_STAGE_APPROVAL, "{\"kind\":\"allowed-once\"}", NULL));
	DO(add_policy(ERRAND_STAGE_GUARD, "{}", NULL));
	DO(add_policy(ERRAND_STAGE_AROUND, NULL, back));
	DO(add_policy(ERRAND_STAGE_POST, NULL, back));
	DO(add_policy(ERRAND_STAGE_POST, "{\"kind\":\"accept\",\"value\":{\"said\":\"b\"}}",
		      NULL));
	call(world.alice, "echo", "{\"word\":\"w\"}");
	DO(errand_unregister(world.host, world.reg));
	call(world.alice, "task_output", "{\"task_id\":\"bash-2\"}");
	DO(add_policy(ERRAND_STAGE_POST,
		      "{\"kind\":\"block\",\"feedback\":[{\"type\":"
		      "\"text\",\"text\":\"no\"}]}",
		      NULL));
	call(world.alice, "echo", "{\"word\":\"w\"}");
	DO(errand_unregister(world.host, world.reg));
	call(world.alice, "echo", "{\"word\":7}");
}

static void post(void *ud, errand_host *h)
{
	(void)ud;
	(void)h;
	note("posted\n");
}

static void mail(void)
{
	call(world.alice, "echo", "{\"word\":\"later\"}"); /* whose result comes below */
	DO(start(world.alice, NULL, NULL));
	DO(errand_post(world.box, post, NULL, NULL));
	DO(errand_post_answer(world.box, world.parked, "{\"said\":\"c\"}", ERRAND_NUL));
	DO(errand_post_settle(world.box, world.work[3].task, ERRAND_FAILED, "detail",
			      ERRAND_NUL, "output", ERRAND_NUL));
	run();
	if (world.ran_out) {
		world.now -= 20;
		call(world.alice, "echo", "{\"word\":\"later\"}");
		(void)!errand_answer(world.host, world.parked, "{\"said\":\"c\"}",
				     ERRAND_NUL);
		run();
	}
}

static const char prompt[] =
	"{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":\"a prompt of the "
	"user's\"}],\"source\":{\"kind\":\"user\"},\"id\":\"u1\"}";

static void turn(void)
{
	DO(errand_insert(world.host, world.alice, ERRAND_NEXT_TURN, prompt, ERRAND_NUL,
			 &text, &err));
	DO(errand_insert(world.host, world.alice, ERRAND_NEXT_STEP, prompt, ERRAND_NUL,
			 &text, &err));
	DO(errand_inbox(world.host, world.alice, &text, &err));
	DO(errand_turn_open(world.host, world.alice, &world.turn, &err));
	DO(errand_claim(world.host, world.alice, ERRAND_CLAIM_TURN, 1, &world.lease, &text,
			&err));
	DO(errand_step_reject(world.host, world.alice, world.lease, &err));
	DO(errand_claim(world.host, world.alice, ERRAND_CLAIM_TURN, 1, &world.lease, &text,
			&err));
	DO(errand_step_begin(world.host, world.alice, world.lease, &err));
	DO(errand_log(world.host, world.alice, "{\"type\":\"mine\",\"data\":{\"a\":1}}",
		      ERRAND_NUL, &err));
	DO(errand_step_end(world.host, world.alice, NULL, &err));
	DO(errand_turn_close(world.host, world.alice, "{\"kind\":\"aborted\"}", ERRAND_NUL,
			     &err));
	DO(errand_claim(world.host, world.alice, ERRAND_CLAIM_NOTICES, 1, &world.lease,
			&text, &err));
	DO(errand_lease_commit(world.host, world.lease));
	DO(errand_insert(world.host, world.alice, ERRAND_NEXT_STEP,
			 "{\"role\":\"user\",\"content\":[],\"id\":\"u2\"}", ERRAND_NUL,
			 NULL, &err));
	run();
}

static int adopt(void *ud, errand_host *h, errand_task t, const char *record, size_t len,
		 struct errand_producer *ret, errand_error *e)
{
	(void)ud;
	(void)h;
	(void)t;
	(void)ret;
	note("adopt ");
	note_text(record, len);
	errand_error_set(e, NULL, NULL, "its process is gone", ERRAND_NUL);
	return -1;
}

/* A journal that could not be read to its end leaves a host that is of no use (errand.h). */
static int restore(void)
{
	int rc;

	errand_host_free(world.second);
	world.second = NULL;
	rc = open_host(&world.second);
	if (rc == 0)
		rc = errand_restore(world.second, world.journal, ERRAND_NUL, adopt, NULL,
				    &err);
	return rc;
}

static void close_array(char *all)
{
	size_t len = strlen(all);

	all[len] = ']';
	all[len + 1] = 0;
	note_text(all, len);
}

static void again(void)
{
	close_array(world.journal);
	close_array(world.log);
	world.is_restoring = true;
	DO(restore());
	while (errand_run(world.second, world.now, world.now, 0) > 0)
		;
	DO(errand_list(world.second, 0, &text, &err));
	DO(errand_inbox(world.second, world.alice, &text, &err));
	DO(errand_replay(world.host, world.alice, world.log, ERRAND_NUL, &err));
	DO(errand_inbox(world.host, world.alice, &text, &err));
}

static void on_done(void *ud, errand_host *h)
{
	(void)ud;
	(void)h;
	note("over\n");
}

static void end(void)
{
	DO(start(world.alice, NULL, NULL));
	DO(errand_discard(world.host, world.alice, "u2", 2, &err));
	DO(errand_restrict(world.host, world.preset, "{\"deny\":[\"echo\"]}", ERRAND_NUL,
			   &world.reg, &err));
	DO(errand_restrict(world.host, world.preset, "{\"deny\":[\"none\"]}", ERRAND_NUL,
			   &world.reg, &err));
	call(world.alice, "echo", "{\"word\":\"w\"}");
	DO(errand_agent_dispose(world.host, world.alice, on_done, NULL, NULL, &err));
	run();
	DO(start(0, NULL, NULL));
	DO(errand_service_dispose(world.host, on_done, NULL, NULL, &err));
	run();
	DO(errand_scope_dispose(world.host, world.preset, &err));
	errand_mailbox_free(world.box);
	errand_host_free(world.host);
	errand_host_free(world.second);
	for (size_t i = 0; i < world.works; i++)
		note("not destroyed: %d ", world.work[i].offered - world.work[i].destroyed);
	note("live %ld\n", memory.live);
}

static void scenario(void)
{
	build();
	work();
	talk();
	ask();
	mail();
	turn();
	again();
	end();
}

/* ---- what is large because the caller made it so ---- */

#define LARGE 200000

static const char *large(const char *before, const char *after)
{
	static char all[LARGE + 200];
	size_t n = strlen(before);

	memcpy(all, before, n);
	memset(all + n, 'x', LARGE);
	(void)snprintf(all + n + LARGE, 100, "%s", after);
	return all;
}

static int log_large(void)
{
	return errand_log(world.host, world.alice,
			  large("{\"type\":\"mine\",\"data\":\"", "\"}"), ERRAND_NUL, &err);
}

static int insert_large(void)
{
	return errand_insert(world.host, world.alice, ERRAND_NEXT_STEP,
			     large("{\"content\":[\"", "\"],\"id\":\"u1\"}"), ERRAND_NUL,
			     &text, &err);
}

static int start_large(void)
{
	struct errand_task_spec s = {
		.size = sizeof(s),
		.kind = str("bash"),
		.label = str(large("", "")),
		.producer = {.size = sizeof(s.producer),
			     .start = work_start,
			     .cancel = work_cancel,
			     .ud = &world.work[0]},
	};

	return errand_task_start(world.host, &s, NULL, &text, &err);
}

static int add_large_tool(void)
{
	struct errand_tool t = {.size = sizeof(t),
				.name = str("echo"),
				.description = str(large("", "")),
				.params_schema = str("{\"type\":\"object\"}"),
				.output_schema = str("{}"),
				.exec = echo_exec};

	return errand_tool_add(world.host, 0, &t, &world.reg, &err);
}

static int replay_large(void)
{
	return errand_replay(
		world.host, world.bob,
		large("[{\"seq\":0,\"type\":\"agent/inbox/spliced\",\"data\":{\"target\":"
		      "\"next-step\",\"start\":0,\"inserted\":[{\"id\":\"r1\",\"content\":[\"",
		      "\"]}]}}]"),
		ERRAND_NUL, &err);
}

/* No journal, log or listener: what they are told of it is a copy more. */
static void large_scenario(void)
{
	static const char id[] = "bash-1";

	DO(open_plain_host(&world.host));
	run();
	DO(errand_mount(world.host, 0, "{}", 2, &world.reg, &err));
	DO(new_agent("alice", ERRAND_AGENT_OPERATOR, 0, &world.alice));
	DO(new_agent(large("", ""), ERRAND_AGENT_UNREGISTERED, 0, &world.bob));
	DO(errand_section_add(world.host, 0, "a", 1, large("", ""), ERRAND_NUL, &world.reg,
			      &err));
	DO(add_large_tool());
	DO(errand_prompt(world.host, 0, large("{\"name\":\"", "\"}"), ERRAND_NUL, &text,
			 &err));
	DO(errand_sections(world.host, 0, &text, &err));
	DO(errand_tools(world.host, 0, 0, &text, &err));
	DO(errand_restrict(world.host, 0, large("{\"deny\":[\"echo\"],\"x\":\"", "\"}"),
			   ERRAND_NUL, &world.reg, &err));
	DO(start_large());
	DO(errand_get(world.host, id, ERRAND_NUL, 0, &text, &err));
	DO(errand_list(world.host, 0, &text, &err));
	DO(errand_card(world.host, 0, "task_kill", large("{\"task_id\":\"", "\"}"),
		       ERRAND_NUL, &text, &err));
	DO(errand_kill(world.host, id, ERRAND_NUL, 0, large("", ""), ERRAND_NUL, NULL,
		       &err));
	DO(settle(0, NULL, large("", "")));
	run();
	DO(errand_read(world.host, id, ERRAND_NUL, 0, &world.lease, &text, &err));
	DO(insert_large());
	DO(errand_inbox(world.host, world.alice, &text, &err));
	DO(errand_claim(world.host, world.alice, ERRAND_CLAIM_STEP, 0, &world.lease, &text,
			&err));
	DO(replay_large());
	DO(log_large());
	DO(begin_call(0, "echo", large("{\"word\":\"", "\"}")));
	errand_host_free(world.host);
	note("live %ld\n", memory.live);
}

/* ---- one process for each ---- */

static int run_with(size_t fail_at, size_t min_size, void (*what)(void))
{
	int status;
	pid_t pid;

	report->allocations = report->refused_calls = report->len = 0;
	(void)fflush(stdout);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		json_set_alloc_funcs(__wrap_malloc, __wrap_free);
		memory.min_size = min_size;
		memory.fail_at = fail_at;
		memory.is_on = true;
		what();
		memory.is_on = false;
		_exit(0);
	}
	CHECK_INT(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

static struct report *new_report(void)
{
	void *p = mmap(NULL, sizeof(struct report), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	CHECK(p != MAP_FAILED);
	return p;
}

struct tally {
	size_t tried, refused, stopped, unheard, broken;
};

static void show_difference(const struct report *a, const struct report *b, size_t n,
			    int rc)
{
	size_t at = 0, from;

	while (at < a->len && at < b->len && a->told[at] == b->told[at])
		at++;
	from = at > 200 ? at - 200 : 0;
	print_message("allocation %zu: ended with %d\n  should: %.300s\n  is:     %.300s\n",
		      n, rc, a->told + from, b->told + from);
}

/* Fail each allocation of at least @min_size bytes that @what makes. */
static struct tally fail_each(size_t min_size, void (*what)(void))
{
	struct report *good = new_report();
	struct tally t = {0};
	size_t all;

	report = new_report();
	CHECK_INT(run_with(0, min_size, what), 0);
	memcpy(good, report, sizeof(*good));
	all = good->allocations;
	for (size_t n = 1; n <= all; n++) {
		int rc = run_with(n, min_size, what);
		bool is_same = report->len == good->len &&
			       memcmp(report->told, good->told, good->len) == 0;

		t.tried++;
		t.stopped += rc == EXIT_OOM;
		t.refused += rc == 0 && is_same && report->refused_calls == 1;
		t.unheard += rc == 0 && is_same && report->refused_calls == 0;
		if (rc == EXIT_OOM || (rc == 0 && is_same))
			continue;
		if (t.broken++ < 5)
			show_difference(good, report, n, rc);
	}
	print_message("# %zu allocations failed: %zu refused with ENOMEM, %zu by oom(), "
		      "%zu made no difference, %zu otherwise\n",
		      t.tried, t.refused, t.stopped, t.unheard, t.broken);
	(void)munmap(good, sizeof(*good));
	(void)munmap(report, sizeof(*report));
	return t;
}

TEST(an_allocation_that_fails_is_refused_or_ends_the_program)
{
	struct tally t = fail_each(0, scenario);

	CHECK_INT(t.broken, 0);
	CHECK(t.unheard < 5);
	CHECK(t.tried > 1000 && t.refused > 300 && t.stopped > 500);
}

TEST(what_a_caller_made_large_never_ends_the_program)
{
	struct tally t = fail_each(LARGE / 2, large_scenario);

	CHECK_INT(t.broken, 0);
	CHECK_INT(t.stopped, 0);
	CHECK(t.refused > 30);
}

static void other_user(void)
{
	json_t *j;
	long live;

	build();
	live = memory.live;
	j = json_integer(5);
	note("%ld ", memory.live - live);
	json_decref(j);
	note("%ld", memory.live - live);
}

TEST(others_keep_the_allocator_that_they_gave_to_the_json_library)
{
	report = new_report();
	CHECK_INT(run_with(0, 0, other_user), 0);
	CHECK(report->len > 3);
	CHECK(memcmp(report->told + report->len - 3, "1 0", 3) == 0);
	(void)munmap(report, sizeof(*report));
}
