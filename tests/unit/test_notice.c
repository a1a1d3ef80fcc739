/* SPDX-License-Identifier: MIT */
/* Tests of src/core/notice.c: when there is a notice, and when there is none. */
#include "core.h"

static const char *first_notice(errand_agent a)
{
	static char copy[4096];
	struct js *j = NULL;
	const char *all = inbox(a);
	const struct js *content;

	CHECK_INT(js_parse(all, strlen(all), &j, NULL), 0);
	content = js_get(js_at(j, 0), "content");
	(void)snprintf(copy, sizeof(copy), "%s",
		       js_string(js_get(js_at(content, 0), "text"), NULL));
	js_free(j);
	return copy;
}

TEST(an_end_that_nobody_saw_is_told_to_its_owner)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	settle(w, ERRAND_COMPLETED, "exit code: 0", NULL);
	run();
	CHECK_STR(
		inbox(core.alice),
		"[{\"target\":\"next-step\",\"id\":\"m1\",\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
		"\"background task bash-1 (bash: sleep 60) finished [status: completed, exit "
		"code: 0]. Read its output with task_output.\"}],\"source\":{\"kind\":"
		"\"plugin\",\"plugin\":\"tool-tasks\",\"form\":\"notice\",\"summary\":\"bash "
		"sleep 60 [status: completed, exit code: 0]\"},\"task\":\"bash-1\"}]");
	CHECK_STR(inbox(core.bob), "[]");
}

TEST(d1_one_mount_sends_one_notice)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	CHECK_INT(notices(core.alice), 1);
	run();
	CHECK_INT(notices(core.alice), 1);
}

TEST(d1_a_mount_that_was_changed_for_another_sends_one_notice)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(errand_unregister(core.host, core.mount), 0);
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	end(w);
	CHECK_INT(notices(core.alice), 1);
}

TEST(an_end_of_unowned_work_is_told_to_nobody)
{
	fresh();
	(void)listen(ERRAND_ON_DONE, "done");
	end(start(0, FINAL));
	CHECK_STR(logged(), "done(bash-1 completed);");
	CHECK_INT(notices(core.alice), 0);
}

TEST(without_a_mount_nobody_is_told_and_nothing_is_reported)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(errand_unregister(core.host, core.mount), 0);
	end(w);
	CHECK_INT(notices(core.alice), 0);
	CHECK(!is_reported(w));
}

TEST(a_mount_that_comes_later_tells_no_old_ends)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(errand_unregister(core.host, core.mount), 0);
	end(w);
	CHECK_INT(errand_mount(core.host, 0, "{}", ERRAND_NUL, &core.mount, NULL), 0);
	run();
	CHECK_INT(notices(core.alice), 0);
	CHECK_STR(output_of(w), "(no new output)\n[status: completed]");
}

TEST(a_notice_goes_to_the_very_instance_that_started)
{
	errand_agent next;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	CHECK_INT(errand_agent_register(core.host, core.alice, 0, NULL), 0);
	next = agent("alice");
	end(w);
	CHECK_INT(notices(core.alice), 1);
	CHECK_INT(notices(next), 0);
}

TEST(a_notice_reports_nothing)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	CHECK(!is_reported(w));
}

TEST(reading_later_does_not_take_a_notice_back)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	(void)output_of(w);
	CHECK(is_reported(w));
	CHECK_INT(notices(core.alice), 1);
}

TEST(listeners_hear_of_reported_ends_too)
{
	struct work *w;

	fresh();
	(void)listen(ERRAND_ON_DONE, "done");
	w = start(core.alice, FINAL);
	(void)kill_of(w);
	(void)logged();
	end(w);
	CHECK_STR(logged(), "done(bash-1 completed);");
	CHECK_INT(notices(core.alice), 0);
}

TEST(a_notice_keeps_the_limit_of_its_task)
{
	struct work *w;

	fresh();
	w = start_limited(core.alice, FINAL, "64");
	end(w);
	CHECK_STR(first_notice(core.alice),
		  "background task bash-1 (ba\n[notice truncated]\nDone; task_output.");
}

TEST(d4_labels_with_control_characters_show_on_one_line)
{
	struct work *w;

	fresh();
	w = start_labelled(core.alice, "ba\nsh", "x\ty\n[status: z]\xe2\x80\xae");
	settle(w, ERRAND_FAILED, "a\r\nb", NULL);
	run();
	CHECK_STR(
		first_notice(core.alice),
		"background task ba sh-1 (ba sh: x y [status: z]) finished [status: failed, a  "
		"b]. Read its output with task_output.");
	CHECK(strstr(inbox(core.alice),
		     "\"summary\":\"ba sh x y [status: z] [status: failed, "
		     "a  b]\""));
}

TEST(d4_the_canonical_label_stays_as_it_is)
{
	struct work *w;

	fresh();
	w = start_labelled(core.alice, "bash", "x\ny");
	CHECK_STR(member(snapshot(w, core.alice), "label"), "x\ny");
	(void)call(core.alice, "task_list", "{}");
	CHECK(strstr(core.result, "\"label\":\"x\\ny\""));
}

/* ---- ends on a lease (D6) ---- */

TEST(d6_a_wait_that_was_delivered_needs_no_notice)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	(void)wait_for_output(w, 1000);
	end(w);
	CHECK_INT(core.results, 1);
	CHECK_INT(notices(core.alice), 0);
	CHECK(is_reported(w));
}

TEST(d6_a_wait_whose_result_was_lost_owes_the_notice)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	core.fate = ERRAND_LOST;
	(void)wait_for_output(w, 1000);
	end(w);
	CHECK_INT(core.results, 1);
	CHECK_INT(notices(core.alice), 1);
	CHECK(!is_reported(w));
}

TEST(d6_a_held_end_is_told_when_it_is_returned)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	core.fate = ERRAND_HELD;
	(void)wait_for_output(w, 1000);
	end(w);
	CHECK_INT(notices(core.alice), 0);
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	run();
	CHECK_INT(notices(core.alice), 1);
}

TEST(d6_the_last_of_several_leases_decides)
{
	errand_lease first;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	core.fate = ERRAND_HELD;
	(void)wait_for_output(w, 1000);
	end(w);
	first = core.lease;
	(void)output_of(w);
	CHECK_INT(errand_lease_return(core.host, first), 0);
	run();
	CHECK_INT(notices(core.alice), 0);
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	run();
	CHECK_INT(notices(core.alice), 1);
}

TEST(d6_a_return_after_another_was_delivered_owes_nothing)
{
	errand_lease first;
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	core.fate = ERRAND_HELD;
	(void)wait_for_output(w, 1000);
	end(w);
	first = core.lease;
	core.fate = ERRAND_DELIVERED;
	(void)output_of(w);
	CHECK_INT(errand_lease_return(core.host, first), 0);
	run();
	CHECK_INT(notices(core.alice), 0);
}

TEST(d6_a_notice_that_was_sent_is_not_sent_again)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	core.fate = ERRAND_LOST;
	(void)output_of(w);
	CHECK_INT(notices(core.alice), 1);
}

TEST(d6_a_kill_after_the_return_withdraws_what_is_due)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	core.fate = ERRAND_HELD;
	(void)wait_for_output(w, 1000);
	end(w);
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	CHECK_INT(
		errand_kill(core.host, w->id, ERRAND_NUL, core.alice, NULL, 0, NULL, NULL),
		0);
	run();
	CHECK_INT(notices(core.alice), 0);
}

TEST(d6_the_bit_that_kill_sets_is_not_leased)
{
	struct work *w;

	fresh();
	w = start(core.alice, FINAL);
	core.fate = ERRAND_LOST;
	(void)kill_of(w);
	end(w);
	CHECK(is_reported(w));
	CHECK_INT(notices(core.alice), 0);
}

/* ---- ids of messages ---- */

static void same_id(void *ud, errand_sink *out)
{
	(void)ud;
	(void)errand_sink_write(out, "same", 4);
}

TEST(a_notice_that_the_inbox_refuses_is_warned_about)
{
	struct errand_host_options o = {.size = sizeof(o),
					.abi = ERRAND_ABI,
					.warn = on_warn,
					.message_id = same_id};

	fresh();
	errand_host_free(core.host);
	CHECK_INT(errand_host_new(&o, &core.host, NULL), 0);
	CHECK_INT(errand_mount(core.host, 0, NULL, 0, &core.mount, NULL), 0);
	core.alice = agent("alice");
	end(start(core.alice, FINAL));
	end(start(core.alice, FINAL));
	CHECK_STR(logged(),
		  "warn(tasks: onTaskDone listener threw for bash-2: Error: message "
		  "\"same\" is already pending);");
	CHECK_INT(notices(core.alice), 1);
}

static const char *claimed(errand_lease *ret_lease)
{
	errand_text *json = NULL;

	*ret_lease = 0;
	CHECK_INT(errand_claim(core.host, core.alice, ERRAND_CLAIM_NOTICES, 0, ret_lease,
			       &json, NULL),
		  0);
	return text_of(json);
}

TEST(a_notice_waits_while_its_end_is_out_on_a_lease)
{
	struct work *w;
	errand_lease lease;

	fresh();
	w = start(core.alice, FINAL);
	end(w);
	core.fate = ERRAND_HELD;
	(void)output_of(w);
	CHECK_STR(claimed(&lease), "[]");
	CHECK_INT(notices(core.alice), 1);
	CHECK_INT(errand_lease_return(core.host, core.lease), 0);
	run();
	CHECK_INT(times(claimed(&lease), "\"form\":\"notice\""), 1);
	CHECK_INT(errand_lease_commit(core.host, lease), 0);
}
