# SPDX-License-Identifier: MIT
"""Who is told of which end, and when: notices, owners, reads that were given up."""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from mcpclient import Client, notices_of, run_tests, text_of, wait_for  # noqa: E402


def client(**env):
    c = Client.errand(env={**os.environ, **env})
    c.initialize()
    return c


def start(c, command, _meta=None):
    reply = c.tool("bash", _meta=_meta, command=command, description="d",
                   run_in_background=True)
    match = re.fullmatch(r"started background task (bash-\d+)", text_of(reply))
    assert match, reply
    return match.group(1)


def ended(c, task, _meta=None):
    """True once the list shows that @task has ended. Returns the reply that showed it."""
    reply = c.tool("task_list", _meta=_meta)
    line = [x for x in text_of(reply).splitlines() if x.startswith(task + " ")]
    assert line, reply
    return reply if " running " not in line[0] and " stopping " not in line[0] else None


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def test_the_script_of_a_real_agent():
    with client() as c:
        count = "for i in 1 2 3; do echo step $i; sleep 0.3; done; exit 3"
        equal(start(c, count), "bash-1")
        equal(start(c, "sleep 300"), "bash-2")
        listed = c.text("task_list")
        assert "bash-2 [bash] running" in listed, listed
        reply = c.tool("bash", command="sleep 2; echo foreground", description="work")
        equal(text_of(reply), "foreground\n")
        assert re.search(r"^background task bash-1 \(bash: .*\) finished "
                         r"\[status: completed, exit code: 3\]", notices_of(reply)[0]), reply
        equal(c.text("task_output", task_id="bash-1"),
              "step 1\nstep 2\nstep 3\n[status: completed, exit code: 3]")
        equal(c.text("task_kill", task_id="bash-2", reason="no longer needed"),
              "requested cancellation of task bash-2")
        equal(c.text("task_output", task_id="bash-2", wait=True, timeout_ms=5000),
              "(no new output)\n[status: killed, signal: SIGTERM]")


def test_a_notice_is_one_block_at_the_end_and_comes_once():
    with client() as c, tempfile.TemporaryDirectory() as folder:
        go = os.path.join(folder, "go")
        tasks = [start(c, "until [ -e %s ]; do sleep 0.01; done" % go) for _ in range(2)]
        with open(go, "w", encoding="utf-8"):
            pass
        seen = []

        def both():
            reply = c.tool("task_list")
            blocks = notices_of(reply)
            assert len(blocks) <= 1, reply
            seen.extend(line for block in blocks for line in block.splitlines())
            return len(seen) >= 2
        wait_for(both)
        equal(sorted(line.split()[2] for line in seen), tasks)
        equal(notices_of(c.tool("task_list")), [])


def test_d14_a_terminal_read_leaves_no_notice():
    with client() as c:
        task = start(c, "echo hi")
        read = wait_for(lambda: (lambda r: r if "completed" in text_of(r) else None)(
            c.tool("task_output", task_id=task)))
        equal(notices_of(read), [])
        equal(notices_of(c.tool("task_list")), [])


def touch(folder, name):
    return "touch " + os.path.join(folder, name)


def let_them_end(c, folder, names, other):
    """The tasks that touch @names have ended; no reply to their owner could tell it yet."""
    wait_for(lambda: all(os.path.exists(os.path.join(folder, n)) for n in names))
    marker = start(c, "sleep 0.5", _meta=other)
    c.tool("task_output", _meta=other, task_id=marker, wait=True)


def test_d14_the_reply_that_shows_an_end_withdraws_its_notice_and_no_other():
    with client() as c, tempfile.TemporaryDirectory(prefix="errand-test-") as folder:
        first, second = start(c, touch(folder, "a")), start(c, touch(folder, "b"))
        let_them_end(c, folder, "ab", {"threadId": "somebody else"})
        reply = c.tool("task_output", task_id=first)
        told = notices_of(reply)
        assert len(told) == 1 and second in told[0] and first not in told[0], reply
        equal(notices_of(c.tool("task_list")), [])


def test_a_wait_that_is_cancelled_gives_its_bytes_to_the_next_read():
    with client() as c:
        task = start(c, "echo kept; exec sleep 600")
        waiting = c.post_tool("task_output", task_id=task, wait=True, timeout_ms=20000)
        c.request("ping")
        c.cancel(waiting)
        wait_for(lambda: c.text("task_output", task_id=task) ==
                 "kept\n[status: running]")
        c.request("ping")
        assert not c.has(waiting), "a cancelled request was answered"


def test_a_foreground_call_that_is_cancelled_goes_on_as_a_task():
    with client() as c:
        with tempfile.TemporaryDirectory(prefix="errand-go-") as folder:
            go = os.path.join(folder, "go")
            command = "until [ -e %s ]; do sleep 0.02; done; echo done" % go
            call = c.post_tool("bash", command=command, description="d")
            wait_for(lambda: "bash-1 [bash] running" in c.text("task_list"))
            c.cancel(call)
            with open(go, "w", encoding="utf-8"):
                pass
            reply = wait_for(lambda: (lambda r: r if notices_of(r) else None)(
                c.tool("task_list")))
            assert "bash-1" in notices_of(reply)[0], reply
            equal(c.text("task_output", task_id="bash-1"),
                  "done\n[status: completed, exit code: 0]")
            assert not c.has(call)


def test_late_and_unknown_cancellations_are_nothing():
    with client() as c:
        done = c.post("ping")
        c.join(done)
        for request in (done, "never", 4711, None, {}):
            c.cancel(request)
        c.notify("notifications/cancelled")
        c.request("ping")
        equal(c.unread, [])


def test_a_thread_is_an_owner():
    with client() as c:
        a, b = {"threadId": "a"}, {"threadId": "b"}
        task = start(c, "echo secret", _meta=a)
        wait_for(lambda: ended(c, task, a))
        equal(text_of(c.tool("task_list", _meta=b)), "(no background tasks)")
        equal(text_of(c.tool("task_list")), "(no background tasks)")
        foreign = c.tool("task_output", _meta=b, task_id=task)
        equal(text_of(foreign), "Error: task %s belongs to another session" % task)
        equal(text_of(c.tool("task_kill", _meta=b, task_id=task)),
              "Error: task %s belongs to another session" % task)
        equal(text_of(c.tool("task_output", _meta=a, task_id=task)),
              "secret\n[status: completed, exit code: 0]")


def test_an_owner_key_names_an_owner_and_a_notice_finds_only_that_one():
    with client() as c, tempfile.TemporaryDirectory(prefix="errand-test-") as folder:
        a, b = {"errand/owner": "a"}, {"errand/owner": "b"}
        task = start(c, touch(folder, "x"), _meta=a)
        let_them_end(c, folder, "x", b)
        equal(notices_of(c.tool("task_list", _meta=b)), [])
        equal(notices_of(c.tool("task_list")), [])
        told = notices_of(c.tool("task_list", _meta=a))
        assert len(told) == 1 and task in told[0], told


def test_a_client_without_a_name_can_be_given_one():
    for env in ({"ERRAND_SESSION": "s"}, {"CLAUDE_CODE_SESSION_ID": "s"}):
        with client(**env) as c:
            task = start(c, "exec sleep 600", _meta={"errand/owner": "s"})
            assert task in c.text("task_list")
    with Client.errand("--session", "s", env={**os.environ, "ERRAND_SESSION": "t"}) as c:
        c.initialize()
        task = start(c, "exec sleep 600", _meta={"errand/owner": "s"})
        assert task in c.text("task_list")


def test_d9_live_tasks_are_limited_for_each_owner():
    with client(ERRAND_LIMITS_LIVE_TASKS="2") as c:
        start(c, "exec sleep 600")
        task = start(c, "exec sleep 600")
        refused = c.tool("bash", command="true", description="d", run_in_background=True)
        assert refused["isError"] and "limit" in text_of(refused), refused
        start(c, "exec sleep 600", _meta={"threadId": "another"})
        c.tool("task_kill", task_id=task)
        c.tool("task_output", task_id=task, wait=True)
        start(c, "exec sleep 600")


def test_d9_no_limit_on_live_tasks_is_a_setting():
    with client(ERRAND_LIMITS_LIVE_TASKS="0") as c:
        for _ in range(40):
            start(c, "exec sleep 600")


def test_d15_of_the_ended_and_told_only_the_newest_are_listed():
    with client(ERRAND_LIMITS_FINISHED_TASKS="3") as c:
        live = start(c, "exec sleep 600")
        by_notice = start(c, "true")
        other = {"threadId": "other"}
        kept = start(c, "true", _meta=other)
        told = []
        for _ in range(6):
            told.append(start(c, "true"))
            c.tool("task_output", task_id=told[-1], wait=True)
        c.tool("task_output", _meta=other, task_id=kept, wait=True)

        def trimmed():
            ids = [line.split()[0] for line in c.text("task_list").splitlines()]
            return ids == [live] + told[-3:]
        wait_for(trimmed)
        for task in by_notice, told[0]:
            equal(c.text("task_output", task_id=task), "Error: unknown task " + task)
        assert kept in text_of(c.tool("task_list", _meta=other))


if __name__ == "__main__":
    run_tests(globals())
