# SPDX-License-Identifier: MIT
"""What an embedded host leaves that crashed becomes the daemon's, and is seen by people."""
import glob
import json
import os
import signal
import sqlite3
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from daemon import ERRAND, Daemon  # noqa: E402
from mcpclient import (  # noqa: E402
    Client, Folder, alive, only_root, run_tests, text_of, wait_for)


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def command(state, *args, code=0, **env):
    done = subprocess.run([ERRAND, *args], env={**os.environ, "ERRAND_STATE": state, **env},
                          capture_output=True, timeout=60, check=False)
    equal(done.returncode, code)
    return done.stdout.decode(), done.stderr.decode()


def embedded(state):
    top = os.path.join(state, "embedded")
    return os.listdir(top) if os.path.isdir(top) else []


def host(state):
    c = Client.errand("--embedded", state=state)
    c.initialize()
    return c


def start(c, line):
    return text_of(c.tool("bash", command=line, description="d",
                          run_in_background=True)).split()[-1]


def crash(c):
    os.kill(c.proc.pid, signal.SIGKILL)
    c.proc.wait(10)


def crashed(state, *lines):
    """A crashed host that had started @lines; the pids that they print first."""
    with host(state) as c:
        pids = []
        for line in lines:
            task = start(c, "echo $$; " + line)
            pids.append(int(wait_for(lambda t=task: (lambda s: s if s[0].isdigit() else None)(
                text_of(c.tool("task_output", task_id=t))), 10).split()[0]))
        crash(c)
    return pids


def tasks(d):
    with d.operator() as op:
        return op.ask("errand/list")["tasks"]


def test_a_daemon_takes_over_what_lives_and_what_has_ended():
    with Folder() as state:
        live, ended = crashed(state, "exec sleep 600", "echo out; exit 3")
        wait_for(lambda: not alive(ended), 10)
        name, = embedded(state)
        with Daemon(state) as d:
            with d.operator() as op:
                wait_for(lambda: sum("finishedAt" in t for t in op.ask("errand/list")["tasks"]),
                         10)
                all_of_them = op.ask("errand/list")["tasks"]
                equal({t["ownerSession"] for t in all_of_them}, {"embedded-" + name})
                lives, = [t for t in all_of_them if t["status"] == "running"]
                over, = [t for t in all_of_them if t["status"] != "running"]
                equal((over["status"], over["detail"]), ("completed", "exit code: 3"))
            equal(command(state, "logs", over["id"])[0], "%d\nout\n" % ended)
            assert "left behind by a host that crashed" in command(state, "ls")[0]
            equal(embedded(state), [])
            assert alive(live)
            command(state, "kill", lives["id"])
            command(state, "wait", lives["id"], code=143)
            assert not alive(live)
            done = json.loads(command(state, "history", "--json")[0])["history"]
            equal([e["act"] for e in done], ["import", "import", "kill"])


def test_what_was_taken_over_outlives_the_daemon_like_any_other():
    with Folder() as state:
        pid, = crashed(state, "exec sleep 600")
        with Daemon(state) as d:
            equal([t["id"] for t in tasks(d)], ["bash-1"])
            d.kill()
            d.start()
            equal([(t["id"], t["status"]) for t in tasks(d)], [("bash-1", "running")])
            with d.operator() as op:
                op.ask("errand/kill", id="bash-1")
                op.ask("errand/wait", id="bash-1")
        assert not alive(pid)


def test_a_running_daemon_takes_over_when_somebody_looks():
    with Daemon() as d:
        crashed(d.state, "exec sleep 600")
        said = command(d.state, "ls")[0]
        assert "running" in said and "left behind" in said, said
        equal(embedded(d.state), [])


def test_a_running_daemon_takes_over_when_an_agent_comes():
    with Daemon() as d:
        crashed(d.state, "exec sleep 600")
        with d.agent():
            equal(embedded(d.state), [])


def test_a_live_host_s_tasks_are_its_own_and_are_mentioned():
    with Daemon() as d, host(d.state) as c:
        start(c, "exec sleep 600")
        wait_for(lambda: glob.glob(d.state + "/embedded/*/tasks/*"), 10)  # behind its reply
        out, err = command(d.state, "ls")
        equal(out, "no tasks\n")
        equal(err, "1 more tasks belong to 1 hosts inside `errand mcp`; only their agents see "
                   "them\n")
        equal(len(embedded(d.state)), 1)
        assert "running" in text_of(c.tool("task_list"))


def test_without_a_daemon_it_is_said_who_takes_over():
    with Folder() as state:
        crashed(state, "exec sleep 600")
        assert "1 hosts inside `errand mcp` have crashed" in command(state, "ls", code=4)[1]
        command(state, "run", "--wait", "true")
        assert "left behind" in command(state, "ls")[0]


def test_more_than_may_live_at_once_are_taken_over_as_they_end():
    with Folder() as state:
        pids = crashed(state, *["exec sleep 600"] * 3)
        with Daemon(state, env={"ERRAND_LIMITS_LIVE_TASKS": "2"}) as d:
            equal(len(tasks(d)), 2)
            equal(len(embedded(state)), 1)
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            wait_for(lambda: len(tasks(d)) == 3, 10)
            wait_for(lambda: all("finishedAt" in t for t in tasks(d)), 10)
            equal(embedded(state), [])


def test_many_ends_are_taken_over_at_once():
    with Folder() as state:
        crashed(state, *["true"] * 40)
        with Daemon(state) as d:
            equal(len(tasks(d)), 40)
            with d.operator() as op:
                for task in op.ask("errand/list")["tasks"]:
                    equal(op.ask("errand/wait", id=task["id"])["task"]["detail"], "exit code: 0")


def test_folders_that_no_row_names_become_tasks_again():
    with Daemon() as d:
        with d.operator() as op:
            for line in ("exec sleep 600", "echo hi"):
                op.ask("errand/run", argv=[line])
            op.ask("errand/wait", id="bash-2")
            d.kill()
        for name in ("errand.db", "errand.db-wal", "errand.db-shm"):
            os.unlink(os.path.join(d.state, name))
        d.start()
        with d.operator() as op:
            wait_for(lambda: sum("finishedAt" in t for t in op.ask("errand/list")["tasks"]), 10)
        equal(sorted((t["status"], t["ownerSession"]) for t in tasks(d)),
              [("completed", "recovered"), ("running", "recovered")])
        d.kill()
        d.start()
        equal(len(tasks(d)), 2)


def test_a_daemon_that_dies_between_the_move_and_the_row_takes_over_again():
    with Folder() as state:
        pid, = crashed(state, "exec sleep 600")
        name, = embedded(state)
        with Daemon(state) as d:
            equal(len(tasks(d)), 1)
            d.kill()
            # As if the move had been all that was done.
            db = sqlite3.connect(os.path.join(state, "errand.db"))
            with db:
                db.execute("DELETE FROM task")
                db.execute("DELETE FROM run")
            db.close()
            d.start()
            equal([t["status"] for t in tasks(d)], ["running"])
            equal(tasks(d)[0]["ownerSession"], "recovered")
            assert alive(pid) and name not in embedded(state)


def test_what_is_taken_over_at_a_start_begins_now_and_not_in_1970():
    with Folder() as state:
        crashed(state, "exec sleep 600")
        with Daemon(state) as d:
            age = time.time() - tasks(d)[0]["startedAt"] / 1000
            assert abs(age) < 86400, age


def test_a_link_among_the_run_folders_is_no_task_and_is_not_followed():
    with Folder() as state, Folder() as elsewhere:
        os.mkdir(os.path.join(state, "tasks"), 0o700)
        os.symlink(elsewhere, os.path.join(state, "tasks", "0" * 32))
        with Daemon(state) as d:
            equal(tasks(d), [])
            equal(os.listdir(elsewhere), [])


def test_a_fifo_in_a_run_folder_makes_nobody_wait():
    with Daemon() as d:
        with d.operator() as op:
            task = op.ask("errand/run", argv=["echo hi"])["id"]
            op.ask("errand/wait", id=task)
            status = os.path.join(op.ask("errand/log", id=task)["folder"], "status")
        os.unlink(status)
        os.mkfifo(status, 0o600)
        equal(command(d.state, "logs", task)[0], "hi\n")
        equal(command(d.state, "output", task)[0], "hi\n")


def test_what_cannot_be_moved_stays_for_the_next_daemon():
    only_root()
    with Folder() as state:
        pid, = crashed(state, "true")
        wait_for(lambda: not alive(pid), 10)
        other = os.path.join(state, "tasks")
        os.mkdir(other, 0o700)
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700", "none", other], check=True)
        try:
            with Daemon(state) as d:
                equal(tasks(d), [])
                assert "cannot take over" in d.said()
                command(state, "gc")
        finally:
            subprocess.run(["umount", "-l", other], check=True)
        with Daemon(state) as d:
            equal([t["status"] for t in tasks(d)], ["completed"])
            equal(command(state, "logs", "bash-1")[0], "%d\n" % pid)


if __name__ == "__main__":
    run_tests(globals())
