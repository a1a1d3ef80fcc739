/* SPDX-License-Identifier: MIT */
/* Tests of scopes: keys and chains, what is seen along them, who is told (spec 3, D1). */
#include "scopes.h"

static const char no_surface[] =
	"background tasks unavailable: no control surface serves this agent (mount "
	"tool-tasks in its composition)";

/* ---- keys and links ---- */

TEST(a_key_is_bound_once)
{
	errand_error *e = NULL;
	errand_scope a, b;
	errand_reg r;

	bare(NULL);
	a = preset();
	b = preset_in(a);
	CHECK_INT(refused(errand_scope_bind(core.host, b, a, &r, &e), &e), ERRAND_EREFUSED);
	CHECK_STR(core.message, "dsh-scope: scope key is already bound to a parent; "
				"re-linking requires the binding returned by the original "
				"bind");
}

TEST(an_agent_that_was_made_with_a_scope_is_bound)
{
	errand_scope a, b;
	errand_agent x;
	errand_reg r;

	bare(NULL);
	a = preset();
	b = preset();
	x = agent_in("x", a);
	CHECK_INT(errand_scope_bind(core.host, x, b, &r, NULL), ERRAND_EREFUSED);
	x = agent("y");
	CHECK_INT(errand_scope_bind(core.host, x, b, &r, NULL), 0);
}

TEST(a_cycle_is_refused_and_nothing_changes)
{
	errand_error *e = NULL;
	errand_scope top, middle, low;
	errand_reg r, upper;

	bare(NULL);
	top = preset();
	middle = preset();
	upper = bind(middle, top);
	low = preset_in(middle);
	CHECK_INT(refused(errand_scope_bind(core.host, top, low, &r, &e), &e),
		  ERRAND_EREFUSED);
	CHECK_STR(core.message, "dsh-scope: scope parent link would form a cycle");
	CHECK_INT(errand_scope_bind(core.host, top, top, &r, NULL), ERRAND_EREFUSED);
	CHECK_INT(errand_scope_relink(core.host, upper, low, NULL), ERRAND_EREFUSED);
	CHECK_INT(errand_scope_relink(core.host, upper, middle, NULL), ERRAND_EREFUSED);
	(void)mount_in(top);
	CHECK_STR(tools_of(agent_in("x", low)), three);
}

TEST(only_a_binding_moves_a_key)
{
	errand_scope a, b, child;
	errand_reg binding, mount;
	errand_agent x;

	bare(NULL);
	a = preset();
	b = preset();
	child = preset();
	binding = bind(child, a);
	mount = mount_in(b);
	x = agent_in("x", child);
	CHECK_STR(tools_of(x), "");
	CHECK_INT(errand_scope_relink(core.host, mount, b, NULL), ERRAND_EARG);
	CHECK_INT(errand_scope_relink(core.host, 4711, b, NULL), ERRAND_EGONE);
	CHECK_INT(errand_scope_relink(core.host, binding, b, NULL), 0);
	CHECK_STR(tools_of(x), three);
	CHECK_INT(errand_scope_relink(core.host, binding, 0, NULL), 0);
	CHECK_STR(tools_of(x), "");
}

TEST(a_binding_that_is_undone_frees_the_key)
{
	errand_scope a, child;
	errand_reg binding;

	bare(NULL);
	a = preset();
	child = preset();
	binding = bind(child, a);
	CHECK_INT(unregister(binding), 0);
	CHECK_INT(unregister(binding), ERRAND_EGONE);
	CHECK_INT(errand_scope_relink(core.host, binding, a, NULL), ERRAND_EGONE);
	(void)bind(child, a);
}

TEST(stale_scopes_are_gone)
{
	struct errand_agent_options o = {
		.size = sizeof(o), .session = str("x"), .scope = 4711};
	errand_scope s;
	errand_agent a;
	errand_reg r;

	bare(NULL);
	s = preset();
	CHECK_INT(errand_scope_dispose(core.host, s, NULL), 0);
	CHECK_INT(errand_scope_dispose(core.host, s, NULL), ERRAND_EGONE);
	CHECK_INT(errand_scope_bind(core.host, s, 0, &r, NULL), ERRAND_EGONE);
	CHECK_INT(errand_mount(core.host, s, "{}", 2, &r, NULL), ERRAND_EGONE);
	CHECK_INT(errand_surface(core.host, s, "x", &r, NULL), ERRAND_EGONE);
	CHECK_INT(errand_on(core.host, s, ERRAND_ON_DONE, on_event, NULL, NULL, &r, NULL),
		  ERRAND_EGONE);
	CHECK_INT(errand_section_add(core.host, s, "n", 1, "t", 1, &r, NULL), ERRAND_EGONE);
	CHECK_INT(errand_restrict(core.host, s, "{\"deny\":[]}", ERRAND_NUL, &r, NULL),
		  ERRAND_EGONE);
	CHECK_INT(errand_agent_new(core.host, &o, &a, NULL), ERRAND_EGONE);
	s = preset();
	CHECK_INT(errand_scope_bind(core.host, s, 4711, &r, NULL), ERRAND_EGONE);
}

TEST(an_agent_is_a_scope_of_its_own)
{
	errand_agent x, y;

	bare(NULL);
	x = agent("x");
	y = agent("y");
	CHECK_INT(errand_agent_scope(core.host, x), x);
	CHECK_INT(errand_agent_scope(core.host, 4711), 0);
	(void)mount_in(errand_agent_scope(core.host, x));
	CHECK_STR(tools_of(x), three);
	CHECK_STR(tools_of(y), "");
	CHECK_INT(errand_scope_dispose(core.host, x, NULL), ERRAND_EARG);
}

TEST(what_an_agent_had_in_its_scope_goes_with_it)
{
	errand_agent x;
	errand_reg r;

	bare(NULL);
	x = agent("x");
	r = mount_in(x);
	CHECK_INT(errand_agent_dispose(core.host, x, NULL, NULL, NULL, NULL), 0);
	run();
	CHECK_INT(errand_agent_scope(core.host, x), 0);
	CHECK_INT(unregister(r), ERRAND_EGONE);
}

TEST(a_chain_may_be_a_hundred_thousand_long)
{
	errand_scope top, s;
	errand_agent x;
	struct work *w;

	bare(NULL);
	top = s = preset();
	for (int i = 0; i < 100000; i++)
		s = preset_in(s);
	x = agent_in("alice", s);
	(void)mount_in(top);
	(void)listen_in(top, ERRAND_ON_DONE, "top");
	CHECK_STR(tools_of(x), three);
	w = start(x, FINAL);
	end(w);
	CHECK_STR(logged(), "top(bash-1 completed);");
	CHECK_INT(notices(x), 1);
	CHECK_INT(errand_scope_dispose(core.host, top, NULL), 0);
	CHECK_STR(tools_of(x), "");
}

/* ---- layers ---- */

TEST(a_preset_is_seen_from_below_only)
{
	errand_scope above, middle, below, beside;

	bare(NULL);
	above = preset();
	middle = preset_in(above);
	below = preset_in(middle);
	beside = preset_in(above);
	(void)mount_in(middle);
	CHECK_STR(tools_of(agent_in("a", below)), three);
	CHECK_STR(tools_of(agent_in("b", middle)), three);
	CHECK_STR(tools_of(agent_in("c", above)), "");
	CHECK_STR(tools_of(agent_in("d", beside)), "");
	CHECK_STR(tools_of(agent("e")), "");
	CHECK_STR(tools_of(0), "");
}

TEST(an_agent_that_is_moved_sees_what_is_there)
{
	errand_scope a, b;
	errand_agent x;

	bare(NULL);
	a = preset();
	b = preset();
	(void)mount_in(b);
	x = agent_in("x", a);
	CHECK_STR(tools_of(x), "");
	CHECK_INT(errand_agent_rebind(core.host, x, b, NULL), 0);
	CHECK_STR(tools_of(x), three);
	CHECK_INT(errand_agent_rebind(core.host, x, 0, NULL), 0);
	CHECK_STR(tools_of(x), "");
	CHECK_INT(errand_agent_rebind(core.host, x, x, NULL), ERRAND_EREFUSED);
	CHECK_INT(errand_agent_rebind(core.host, x, 4711, NULL), ERRAND_EGONE);
	CHECK_INT(errand_agent_rebind(core.host, 4711, a, NULL), ERRAND_EGONE);
}

static size_t alive;

static void *counted_alloc(void *ud, size_t n)
{
	(void)ud;
	alive++;
	return malloc(n);
}

static void *counted_resize(void *ud, void *p, size_t n)
{
	(void)ud;
	alive += p == NULL;
	return realloc(p, n);
}

static void counted_free(void *ud, void *p)
{
	(void)ud;
	alive -= p != NULL;
	free(p);
}

/* Also after a registration in it that failed. */
TEST(a_layer_that_is_empty_is_dropped)
{
	struct errand_host_options o = {.size = sizeof(o),
					.abi = ERRAND_ABI,
					.alloc = counted_alloc,
					.resize = counted_resize,
					.dealloc = counted_free};
	errand_scope s;
	errand_reg r;
	size_t before;

	bare(NULL);
	errand_host_free(core.host);
	CHECK_INT(errand_host_new(&o, &core.host, NULL), 0);
	s = preset();
	CHECK_INT(unregister(mount_in(s)), 0);
	before = alive;
	CHECK_INT(unregister(mount_in(s)), 0);
	CHECK_INT(unregister(listen_in(s, ERRAND_ON_DONE, "x")), 0);
	CHECK_INT(errand_surface(core.host, s, "x", &r, NULL), 0);
	CHECK_INT(unregister(r), 0);
	CHECK_INT(errand_section_add(core.host, s, "n", 1, "t", 1, &r, NULL), 0);
	CHECK_INT(unregister(r), 0);
	CHECK_INT(errand_mount(core.host, s, "{\"waitTimeoutMs\":0}", ERRAND_NUL, &r, NULL),
		  ERRAND_EREFUSED);
	CHECK_INT(errand_restrict(core.host, s, "{}", 2, &r, NULL), ERRAND_EREFUSED);
	CHECK_INT(alive, before);
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_INT(alive, 0);
}

/* ---- disposal ---- */

static void say_gone(void *ud)
{
	logf_("gone(%s);", (const char *)ud);
}

static void add_named(errand_scope s, const char *name)
{
	union {
		const char *in;
		void *out;
	} ud = {.in = name};

	CHECK_INT(errand_on(core.host, s, ERRAND_ON_DONE, on_event, ud.out, say_gone, NULL,
			    NULL),
		  0);
}

TEST(a_scope_is_unwound_in_reverse)
{
	errand_scope s;

	bare(NULL);
	s = preset();
	add_named(s, "first");
	add_named(s, "second");
	add_named(0, "global");
	CHECK_INT(errand_scope_dispose(core.host, s, NULL), 0);
	CHECK_STR(logged(), "gone(second);gone(first);");
	errand_host_free(core.host);
	core.host = NULL;
	CHECK_STR(logged(), "gone(global);");
}

TEST(work_outlives_the_scope_of_its_owner)
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
	CHECK_INT(errand_scope_dispose(core.host, s, NULL), 0);
	CHECK_STR(status_of(w), "running");
	CHECK_INT(try_start_for(x), ERRAND_EREFUSED);
	CHECK_STR(core.message, no_surface);
	end(w);
	CHECK_INT(notices(x), 0);
	CHECK(!is_reported(w));
	CHECK_STR(tools_of(x), "");
}

TEST(what_was_behind_a_disposed_scope_is_still_seen)
{
	errand_scope top, middle;
	errand_agent x;

	bare(NULL);
	top = preset();
	middle = preset_in(top);
	x = agent_in("x", middle);
	(void)mount_in(top);
	CHECK_INT(errand_scope_dispose(core.host, middle, NULL), 0);
	CHECK_STR(tools_of(x), three);
}

TEST(an_agent_may_go_after_its_scope)
{
	errand_scope s;
	errand_agent x;

	bare(NULL);
	s = preset();
	x = agent_in("x", s);
	CHECK_INT(errand_scope_dispose(core.host, s, NULL), 0);
	CHECK_INT(errand_agent_dispose(core.host, x, NULL, NULL, NULL, NULL), 0);
	run();
	s = preset();
	x = agent_in("x", s);
	CHECK_INT(errand_agent_dispose(core.host, x, NULL, NULL, NULL, NULL), 0);
	run();
	CHECK_INT(errand_scope_dispose(core.host, s, NULL), 0);
}

/* ---- the start gate ---- */

TEST(a_surface_serves_whoever_sees_it)
{
	errand_scope a, b;

	bare(NULL);
	a = preset();
	b = preset();
	(void)mount_in(a);
	CHECK_INT(try_start_for(agent_in("a", a)), 0);
	CHECK_INT(try_start_for(agent_in("b", b)), ERRAND_EREFUSED);
	CHECK_STR(core.message, no_surface);
	CHECK_INT(try_start_for(agent("c")), ERRAND_EREFUSED);
	CHECK_INT(try_start_for(0), ERRAND_EREFUSED);
}

TEST(equal_surfaces_are_independent)
{
	errand_scope s;
	errand_agent x;
	errand_reg one, two;

	bare(NULL);
	s = preset();
	x = agent_in("x", preset_in(s));
	CHECK_INT(errand_surface(core.host, s, "same", &one, NULL), 0);
	CHECK_INT(errand_surface(core.host, s, "same", &two, NULL), 0);
	CHECK_INT(unregister(one), 0);
	CHECK_INT(try_start_for(x), 0);
	CHECK_INT(unregister(two), 0);
	CHECK_INT(unregister(two), ERRAND_EGONE);
	CHECK_INT(try_start_for(x), ERRAND_EREFUSED);
}

/* ---- who is told ---- */

TEST(listeners_are_told_from_far_to_near)
{
	errand_scope top, low;
	errand_agent x;
	struct work *w;

	fresh();
	top = preset();
	low = preset_in(top);
	x = agent_in("x", low);
	(void)listen_in(x, ERRAND_ON_DONE, "own");
	(void)listen_in(low, ERRAND_ON_DONE, "low1");
	(void)listen_in(top, ERRAND_ON_DONE, "top");
	(void)listen_in(0, ERRAND_ON_DONE, "global");
	(void)listen_in(low, ERRAND_ON_DONE, "low2");
	w = start(x, FINAL);
	end(w);
	CHECK_STR(logged(), "global(bash-1 completed);top(bash-1 completed);"
			    "low1(bash-1 completed);low2(bash-1 completed);"
			    "own(bash-1 completed);");
}

TEST(listeners_hear_of_those_below_them_only)
{
	errand_scope a, b;
	errand_agent x;

	fresh();
	a = preset();
	b = preset();
	x = agent_in("x", a);
	(void)listen_in(a, ERRAND_ON_DONE, "a");
	(void)listen_in(b, ERRAND_ON_DONE, "b");
	(void)listen_in(a, ERRAND_ON_CHANGED, "changed");
	end(start(x, FINAL));
	CHECK_STR(logged(), "changed;changed;a(bash-1 completed);");
	end(start(0, FINAL));
	end(start(core.alice, FINAL));
	CHECK_STR(logged(), "");
}

TEST(the_inbox_of_an_agent_is_heard_along_its_chain)
{
	errand_scope a;
	errand_agent x;

	fresh();
	a = preset();
	x = agent_in("x", a);
	(void)listen_in(a, ERRAND_ON_INBOX, "inbox");
	CHECK_INT(errand_insert(core.host, x, ERRAND_NEXT_STEP,
				"{\"role\":\"user\",\"content\":[]}", ERRAND_NUL, NULL,
				NULL),
		  0);
	CHECK_INT(errand_insert(core.host, core.bob, ERRAND_NEXT_STEP,
				"{\"role\":\"user\",\"content\":[]}", ERRAND_NUL, NULL,
				NULL),
		  0);
	run();
	CHECK_STR(logged(), "inbox(inserted);");
}

/* The chain of the moment of the settlement decides, not that of the start. */
TEST(an_end_goes_where_its_owner_is)
{
	errand_scope a, b;
	errand_agent x;
	struct work *w;

	bare(NULL);
	a = preset();
	b = preset();
	(void)mount_in(a);
	(void)listen_in(a, ERRAND_ON_DONE, "a");
	(void)listen_in(b, ERRAND_ON_DONE, "b");
	x = agent_in("x", a);
	w = start(x, FINAL);
	CHECK_INT(errand_agent_rebind(core.host, x, b, NULL), 0);
	end(w);
	CHECK_STR(logged(), "b(bash-1 completed);");
	CHECK_INT(notices(x), 0);
}

TEST(a_move_after_the_settlement_does_not_change_who_is_told)
{
	errand_scope a, b;
	errand_agent x;
	struct work *w;

	fresh();
	a = preset();
	b = preset();
	(void)listen_in(a, ERRAND_ON_DONE, "a");
	(void)listen_in(b, ERRAND_ON_DONE, "b");
	x = agent_in("x", a);
	w = start(x, FINAL);
	run();
	do_on_change(x, b, 0);
	end(w);
	CHECK_STR(logged(), "a(bash-1 completed);");
}

TEST(a_listener_that_is_removed_after_the_settlement_is_skipped)
{
	errand_reg r;
	struct work *w;

	fresh();
	r = listen_in(0, ERRAND_ON_DONE, "gone");
	(void)listen_in(0, ERRAND_ON_DONE, "stays");
	w = start(core.alice, FINAL);
	run();
	do_on_change(0, 0, r);
	end(w);
	CHECK_STR(logged(), "stays(bash-1 completed);");
}

static int leave(void *ud, errand_host *h, errand_reg self, errand_agent owner,
		 const char *json, size_t len, errand_error *e)
{
	(void)owner, (void)json, (void)len, (void)e;
	CHECK_INT(errand_unregister(h, self), 0);
	logf_("left(%s);", (const char *)ud);
	return 0;
}

TEST(a_listener_that_removes_itself_keeps_its_data_until_it_returns)
{
	static char name[] = "me";
	errand_scope s;

	fresh();
	s = preset();
	CHECK_INT(
		errand_on(core.host, s, ERRAND_ON_DONE, leave, name, say_gone, NULL, NULL),
		0);
	end(start(agent_in("x", s), FINAL));
	CHECK_STR(logged(), "left(me);gone(me);");
}

TEST(work_that_a_listener_began_may_fail_later)
{
	errand_error *why = errand_error_new(NULL, NULL, "late boom", ERRAND_NUL);
	errand_reg r;
	struct work *w;

	fresh();
	r = listen(ERRAND_ON_DONE, "done");
	w = start(core.alice, FINAL);
	end(w);
	(void)logged();
	CHECK_INT(errand_event_failed(core.host, r, w->task, why), 0);
	CHECK_STR(logged(), "warn(tasks: onTaskDone listener rejected for bash-1: "
			    "Error: late boom);");
	CHECK_INT(errand_event_failed(core.host, r, 0, why), 0);
	CHECK_STR(logged(), "warn(tasks: onTasksChanged listener rejected: "
			    "Error: late boom);");
	CHECK_INT(errand_event_failed(core.host, r, 4711, why), ERRAND_EGONE);
	CHECK_INT(errand_event_failed(core.host, r, w->task, NULL), ERRAND_EARG);
	CHECK_INT(unregister(r), 0);
	CHECK_INT(errand_event_failed(core.host, r, w->task, why), ERRAND_EGONE);
	errand_error_free(why);
}
