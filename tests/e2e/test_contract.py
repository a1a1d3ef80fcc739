# SPDX-License-Identifier: MIT
"""The main job, end to end: what an agent reads, byte for byte, from real commands."""
import os
import re
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from mcpclient import (Client, alive, notices_of, run_tests, text_of,  # noqa: E402
                       wait_for)


def client(**env):
    c = Client.errand(env={**os.environ, **env})
    c.initialize()
    return c


def start(c, command, **more):
    text = c.text("bash", command=command, description="d", run_in_background=True, **more)
    match = re.fullmatch(r"started background task (bash-\d+)", text)
    assert match, text
    return match.group(1)


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def error_of(c, tool, **arguments):
    reply = c.tool(tool, **arguments)
    assert reply.get("isError") is True, reply
    return text_of(reply)


def test_ids_count_up():
    with client() as c:
        equal([start(c, "true") for _ in range(3)], ["bash-1", "bash-2", "bash-3"])


def test_d11_a_wait_gives_both_streams_as_one_and_the_status():
    with client() as c:
        task = start(c, "echo one; echo two >&2")
        equal(c.text("task_output", task_id=task, wait=True),
              "one\ntwo\n[status: completed, exit code: 0]")


def test_a_read_gives_only_what_is_new():
    with client() as c, GoFile() as go:
        task = start(c, "echo first; %s; echo second" % go.waiting)
        equal(wait_for(lambda: unless_empty(c, task)), "first\n[status: running]")
        equal(c.text("task_output", task_id=task), "(no new output)\n[status: running]")
        go.go()
        equal(c.text("task_output", task_id=task, wait=True),
              "second\n[status: completed, exit code: 0]")
        equal(c.text("task_output", task_id=task),
              "(no new output)\n[status: completed, exit code: 0]")


def test_a_wait_that_ends_early_leaves_the_task_running():
    with client() as c:
        task = start(c, "exec sleep 600")
        equal(c.text("task_output", task_id=task, wait=True, timeout_ms=50),
              "(no new output)\n[status: running]")
        equal(c.text("task_list"), task + " [bash] running — exec sleep 600")


def test_an_exit_code_is_completed():
    with client() as c:
        task = start(c, "echo no; exit 3")
        equal(c.text("task_output", task_id=task, wait=True),
              "no\n[status: completed, exit code: 3]")


def test_a_signal_from_outside_is_killed():
    with client() as c:
        task = start(c, "kill -SEGV $$")
        equal(c.text("task_output", task_id=task, wait=True),
              "(no new output)\n[status: killed, signal: SIGSEGV]")


def test_a_kill_answers_at_once_and_ends_the_task():
    with client() as c:
        task = start(c, "exec sleep 600")
        equal(c.text("task_kill", task_id=task), "requested cancellation of task " + task)
        equal(c.text("task_output", task_id=task, wait=True),
              "(no new output)\n[status: killed, signal: SIGTERM]")
        equal(c.text("task_kill", task_id=task),
              "task %s had already finished [status: killed, signal: SIGTERM]" % task)


def test_a_kill_takes_the_whole_tree():
    with client(ERRAND_BASH_GRACE_MS="200") as c:
        task = start(c, "setsid sleep 600 & a=$!; (trap '' TERM; while :; do sleep 600; done) &"
                        " echo $a $! $$; wait")
        text = wait_for(lambda: unless_empty(c, task))
        pids = [int(word) for word in text.splitlines()[0].split()]
        c.tool("task_kill", task_id=task)
        text = c.text("task_output", task_id=task, wait=True)
        assert "[status: killed" in text, text
        wait_for(lambda: not any(alive(pid) for pid in pids), 5, "the end of the tree")


def test_a_grandchild_with_the_pipe_keeps_no_task_alive():
    with client() as c:
        task = start(c, "sleep 600 & echo done")
        text = c.text("task_output", task_id=task, wait=True, timeout_ms=10000)
        assert text.startswith("done\n[status: completed, exit code: 0"), text


def test_d11_what_outlives_a_command_is_counted_and_goes_with_a_kill():
    with client(ERRAND_BASH_GRACE_MS="200") as c:
        task = start(c, "sleep 600 & echo $!")
        text = c.text("task_output", task_id=task, wait=True, timeout_ms=10000)
        pid = int(text.splitlines()[0])
        end = "[status: completed, exit code: 0, 1 process left]"
        equal(text.splitlines()[1], end)
        assert alive(pid)
        equal(c.text("task_kill", task_id=task),
              "task %s had already finished %s" % (task, end))
        wait_for(lambda: not alive(pid), 5, "the end of what was left")


def test_an_end_nobody_asked_about_is_announced_once():
    with client() as c:
        task = start(c, "echo hi")
        reply = wait_for(lambda: with_notice(c))
        equal(notices_of(reply), [
            "background task %s (bash: echo hi) finished [status: completed, exit code: 0]. "
            "Read its output with task_output." % task])
        equal(notices_of(c.tool("task_list")), [])
        equal(c.text("task_output", task_id=task), "hi\n[status: completed, exit code: 0]")


def test_an_end_that_was_waited_for_is_not_announced():
    with client() as c:
        task = start(c, "true")
        equal(notices_of(c.tool("task_output", task_id=task, wait=True)), [])
        equal(notices_of(c.tool("task_list")), [])


def test_an_end_that_was_asked_for_is_not_announced():
    with client() as c:
        task = start(c, "exec sleep 600")
        c.tool("task_kill", task_id=task)
        wait_for(lambda: " killed " in c.text("task_list"))
        equal(notices_of(c.tool("task_list")), [])


def test_the_list_is_empty_at_first():
    with client() as c:
        equal(c.text("task_list"), "(no background tasks)")


def test_a_list_shows_a_label_on_one_line():
    with client() as c:
        task = start(c, "exec sleep 600\n# second line")
        equal(c.text("task_list"), task + " [bash] running — exec sleep 600 # second line")


def test_d11_foreground_answers_with_the_output():
    with client() as c:
        equal(c.text("bash", command="echo hi", description="d").rstrip("\n"), "hi")
        equal(c.text("bash", command="true", description="d"), "(no output)")
        equal(c.text("bash", command="printf x; exit 2", description="d"), "x\n[exit code: 2]")
        equal(c.text("bash", command="kill -KILL $$", description="d"),
              "(no output)\n[killed by signal: SIGKILL]")


def test_d11_foreground_has_a_deadline():
    with client() as c:
        equal(c.text("bash", command="echo a; sleep 600", description="d", timeoutMs=300),
              "a\n[timed out after 300ms]")


def test_d11_background_has_a_deadline_too():
    with client() as c:
        task = start(c, "exec sleep 600", timeoutMs=200)
        equal(c.text("task_output", task_id=task, wait=True),
              "(no new output)\n[status: killed, timed out after 200ms]")


def test_d11_a_slow_foreground_call_becomes_a_background_task():
    with client(ERRAND_BASH_FOREGROUND_MS="200") as c, GoFile() as go:
        text = c.text("bash", command="echo a; %s; echo b" % go.waiting, description="d")
        equal(text, "a\n[still running as background task bash-1; you will be notified "
                    "when it finishes]")
        go.go()
        reply = wait_for(lambda: with_notice(c))
        assert notices_of(reply)[0].startswith("background task bash-1 (bash: "), reply
        equal(c.text("task_output", task_id="bash-1"),
              "b\n[status: completed, exit code: 0]")


def test_a_foreground_call_runs_in_its_workdir():
    with client() as c:
        equal(c.text("bash", command="pwd", description="d", workdir="/usr").strip(), "/usr")


def test_a_workdir_that_does_not_exist_is_an_error():
    with client() as c:
        text = error_of(c, "bash", command="pwd", description="d", workdir="/no/such")
        assert "/no/such" in text, text


def test_a_task_reads_nothing_from_stdin_and_runs_in_its_own_session():
    with client() as c:
        text = c.text("bash", description="d", command="cat; ps -o sid= -p $$; echo $$")
        sid, pid = text.split()[:2]
        equal(sid, pid)


def test_d11_a_task_has_the_servers_environment_and_a_plain_terminal():
    with client(MARK="yes") as c:
        equal(c.text("bash", description="d",
                     command="echo $MARK $TERM $NO_COLOR $PAGER $GIT_PAGER").strip(),
              "yes dumb 1 cat cat")


def test_a_task_inherits_no_descriptor():
    with client() as c:
        text = c.text("bash", description="d", command="exec ls /proc/self/fd")
        equal(text.split(), ["0", "1", "2", "3"])  # 3 is the folder that ls reads


def test_a_task_inherits_no_ignored_or_blocked_signal():
    with client() as c:
        text = c.text("bash", description="d", command="grep -E '^Sig(Blk|Ign)' /proc/self/status")
        equal(re.findall(r":\s*([0-9a-f]+)", text), ["0" * 16, "0" * 16])


def test_d11_a_long_output_shows_its_newest_part():
    with client() as c:
        task = start(c, "seq 1 20000")
        text = c.text("task_output", task_id=task, wait=True)
        assert len(text.encode()) <= 10000, len(text)
        lines = text.splitlines()
        equal(lines[-1], "[status: completed, exit code: 0]")
        equal(lines[-2], "[output truncated]")
        assert re.match(r"\[\d+ bytes left out; whole output: .+\]$", lines[-3]), lines[-3]
        equal(lines[-4], "20000")


def test_the_whole_of_a_long_output_is_in_the_named_file():
    with client() as c:
        task = start(c, "seq 1 20000")
        text = c.text("task_output", task_id=task, wait=True)
        path = re.search(r"whole output: (/.+)\]", text)
        assert path, text[-300:]
        with open(path.group(1), encoding="utf-8") as f:
            equal(f.read().split(), [str(n) for n in range(1, 20001)])


def test_what_the_model_reads_is_utf_8():
    with client() as c:
        text = c.text("bash", command=r"printf 'a\xffb\xc3\xa9\n'", description="d")
        equal(text.rstrip("\n"), "a\N{REPLACEMENT CHARACTER}bé")


def test_unknown_ids_and_bad_arguments_are_errors_to_read():
    with client() as c:
        equal(error_of(c, "task_output", task_id="bash-9"), "Error: unknown task bash-9")
        equal(error_of(c, "task_kill", task_id=""),
              'Error: invalid task_id: expected a non-empty string, got ""')
        equal(error_of(c, "task_output", task_id=42),
              'Error: invalid arguments: "task_id" must be a string')
        equal(error_of(c, "bash", command="", description="d"),
              "Error: invalid command: expected a non-empty string")
        equal(error_of(c, "bash", command="true", description=" "),
              "Error: invalid description: expected a non-empty string")
        equal(error_of(c, "bash", command="true", description="d", timeoutMs=0),
              "Error: invalid timeoutMs: expected a number from 1 to 86400000, got 0")


def test_two_calls_in_flight_are_answered_apart():
    with client() as c:
        slow = c.post_tool("bash", command="exec sleep 600", description="d",
                           timeoutMs=400)
        fast = c.post_tool("bash", command="echo fast", description="d")
        equal(text_of(c.join(fast)).strip(), "fast")
        assert not c.has(slow)
        assert "[timed out after 400ms]" in text_of(c.join(slow))


def test_the_tasks_end_with_their_client():
    with client(ERRAND_BASH_GRACE_MS="200") as c:
        task = start(c, "echo $$; exec sleep 600")
        pid = int(wait_for(lambda: unless_empty(c, task)).splitlines()[0])
        assert alive(pid)
    wait_for(lambda: not alive(pid), 5, "the task's end")


def test_the_modern_era_needs_no_handshake():
    with Client.errand() as c:
        c.use_modern()
        found = c.request("server/discover")
        equal(found["supportedVersions"], ["2026-07-28"])
        task = start(c, "echo hi")
        reply = c.tool("task_output", task_id=task, wait=True)
        equal(reply["resultType"], "complete")
        equal(text_of(reply), "hi\n[status: completed, exit code: 0]")


class GoFile:
    """A file that a task waits for, so that a test decides when it goes on."""

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="errand-go-")
        self.path = os.path.join(self.folder.name, "go")
        self.waiting = "until [ -e %s ]; do sleep 0.02; done" % self.path
        return self

    def go(self):
        with open(self.path, "w", encoding="utf-8"):
            pass

    def __exit__(self, *_):
        self.folder.cleanup()


def unless_empty(c, task):
    text = c.text("task_output", task_id=task)
    return None if text.startswith("(no new output)") else text


def with_notice(c):
    reply = c.tool("task_list")
    return reply if notices_of(reply) else None


if __name__ == "__main__":
    run_tests(globals())
