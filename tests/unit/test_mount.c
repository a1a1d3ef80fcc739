/* SPDX-License-Identifier: MIT */
/* Tests of mounts in scopes: who sends the notice, what fails, what goes (spec 3.5-3.7, D1). */
#include "scopes.h"

TEST(one_mount_for_each_preset_sends_one_notice_each)
{
	errand_scope a, b;
	errand_agent x, y;

	bare(NULL);
	a = preset();
	b = preset();
	(void)mount_in(a);
	(void)mount_in(b);
	x = agent_in("x", a);
	y = agent_in("y", b);
	end(start(x, FINAL));
	end(start(y, FINAL));
	CHECK_INT(notices(x), 1);
	CHECK_INT(notices(y), 1);
}

TEST(d1_two_mounts_on_one_chain_send_one_notice)
{
	errand_scope top, low;
	errand_agent x;
	struct work *w;

	fresh();
	top = preset();
	low = preset_in(top);
	(void)mount_in(top);
	(void)mount_in(low);
	x = agent_in("x", low);
	w = start(x, FINAL);
	end(w);
	CHECK_INT(notices(x), 1);
	CHECK_INT(try_start_for(x), 0);
}

/* Which of them it was shows in the order: nearer than the far listeners. */
TEST(d1_the_nearest_mount_sends_it)
{
	errand_scope top, low;
	errand_agent x;

	fresh();
	top = preset();
	low = preset_in(top);
	(void)mount_in(top);
	(void)listen_in(top, ERRAND_ON_DONE, "top");
	(void)mount_in(low);
	(void)listen_in(low, ERRAND_ON_DONE, "low");
	(void)listen_in(0, ERRAND_ON_INBOX, "inbox");
	x = agent_in("x", low);
	end(start(x, FINAL));
	CHECK_STR(logged(), "top(bash-1 completed);inbox(inserted);low(bash-1 completed);");
}

TEST(d1_a_nearest_mount_that_goes_after_the_end_leaves_it_to_the_next)
{
	errand_scope low;
	errand_agent x;
	errand_reg near;
	struct work *w;

	fresh();
	low = preset();
	near = mount_in(low);
	x = agent_in("x", low);
	w = start(x, FINAL);
	run();
	do_on_change(0, 0, near);
	end(w);
	CHECK_INT(notices(x), 1);
}

TEST(d1_a_nearest_mount_that_goes_while_the_end_is_told_does_too)
{
	errand_scope low;
	errand_agent x;
	struct work *w;

	fresh();
	low = preset();
	memset(&later, 0, sizeof(later));
	CHECK_INT(
		errand_on(core.host, 0, ERRAND_ON_DONE, rebind_it, NULL, NULL, NULL, NULL),
		0);
	x = agent_in("x", low);
	w = start(x, FINAL);
	later.reg = mount_in(low);
	end(w);
	CHECK_INT(notices(x), 1);
}

TEST(mounting_twice_in_one_layer_fails_and_leaves_nothing)
{
	errand_error *e = NULL;
	errand_scope s;
	errand_agent x;
	errand_reg r, again = 0;

	bare(NULL);
	s = preset();
	r = mount_in(s);
	x = agent_in("x", s);
	CHECK_INT(refused(errand_mount(core.host, s, "{}", 2, &again, &e), &e),
		  ERRAND_EREFUSED);
	CHECK_STR(core.message,
		  "prompt section \"tool:tasks\" is already registered in this scope");
	CHECK_INT(again, 0);
	CHECK_STR(tools_of(x), three);
	CHECK_INT(unregister(r), 0);
	CHECK_STR(tools_of(x), "");
	CHECK_STR(sections_of(x), "");
	CHECK_INT(try_start_for(x), ERRAND_EREFUSED);
}

static void never(void *ud, errand_host *h, errand_frame f,
		  const struct errand_frame_view *v)
{
	(void)ud, (void)h, (void)f, (void)v;
}

/* The agent itself stays as long as the call does. */
TEST(what_an_agent_had_goes_although_a_call_of_it_is_under_way)
{
	struct errand_tool t = {.size = sizeof(t),
				.name = str("t"),
				.params_schema = str("{}"),
				.output_schema = str("{}"),
				.exec = never};
	errand_agent x;
	errand_reg tool, mount;

	bare(NULL);
	CHECK_INT(errand_tool_add(core.host, 0, &t, &tool, NULL), 0);
	x = agent("x");
	mount = mount_in(x);
	(void)call_begin(x, "t", "{}");
	run();
	CHECK_INT(errand_agent_dispose(core.host, x, NULL, NULL, NULL, NULL), 0);
	run();
	CHECK_INT(unregister(mount), ERRAND_EGONE);
}

/* The last of the three names is taken: section and two tools are there already. */
TEST(a_mount_that_fails_halfway_is_rolled_back)
{
	struct errand_tool t = {.size = sizeof(t),
				.name = str("task_kill"),
				.params_schema = str("{}"),
				.output_schema = str("{}"),
				.exec = never};
	errand_error *e = NULL;
	errand_reg r, tool;

	bare(NULL);
	CHECK_INT(errand_tool_add(core.host, 0, &t, &tool, NULL), 0);
	CHECK_INT(refused(errand_mount(core.host, 0, "{}", 2, &r, &e), &e),
		  ERRAND_EREFUSED);
	CHECK_STR(core.message, "tool \"task_kill\" is already registered");
	CHECK_STR(tools_of(0), "task_kill");
	CHECK_STR(sections_of(0), "");
	CHECK_INT(try_start_for(0), ERRAND_EREFUSED);
	CHECK_INT(unregister(tool), 0);
	(void)mount_in(0);
}

TEST(a_mount_that_is_gone_takes_its_tools_and_leaves_the_work)
{
	errand_scope s;
	errand_agent x;
	errand_reg r;
	struct work *w;

	bare(NULL);
	s = preset();
	r = mount_in(s);
	x = agent_in("alice", s);
	core.alice = x;
	w = start(x, FINAL);
	CHECK_INT(unregister(r), 0);
	CHECK_STR(call(x, "task_list", "{}"), "Error: unknown tool \"task_list\"");
	end(w);
	CHECK_INT(notices(x), 0);
	CHECK(!is_reported(w));
	(void)mount_in(s);
	CHECK_STR(call(x, "task_list", "{}"),
		  "bash-1 [bash] completed \xe2\x80\x94 sleep 60");
}

TEST(a_call_under_way_ends_with_the_tool_of_a_disposed_scope)
{
	errand_scope s;
	errand_agent x;
	struct work *w;

	bare(NULL);
	s = preset();
	(void)mount_in(s);
	x = agent_in("alice", s);
	core.alice = x;
	w = start(x, FINAL);
	(void)wait_for_output(w, 1000);
	CHECK_INT(errand_scope_dispose(core.host, s, NULL), 0);
	settle(w, ERRAND_COMPLETED, NULL, "late");
	run();
	CHECK_STR(result_text(), "late\n[status: completed]");
}
