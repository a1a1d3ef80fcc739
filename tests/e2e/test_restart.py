# SPDX-License-Identifier: MIT
"""A daemon that is killed loses nothing: no task, no output, no end, and starts nothing twice."""
import fcntl
import json
import os
import random
import signal
import sqlite3
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from daemon import Agent, Daemon, Operator, daemon_of  # noqa: E402
from mcpclient import Client, Folder, alive, notices_of, run_tests, text_of, wait_for  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "12"))


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def start(a, command):
    return a.text("bash", command=command, description="d", run_in_background=True).split()[-1]


def crash(d):
    """kill -9, and the next daemon."""
    d.kill()
    return d.start()


def relay(state):
    """A client of `errand mcp`, which starts its daemon itself, and the next."""
    env = {**os.environ, "ERRAND_DAEMON_IDLE_S": "5", "ERRAND_BASH_GRACE_MS": "200"}
    c = Client.errand(state=state, env=env)
    c.initialize()
    return c


def kill_daemon(state):
    pid = wait_for(lambda: (lambda p: p if p and alive(p) else 0)(daemon_of(state)), 10)
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not alive(pid), 10)


# ---- tasks ----

def test_a_living_task_is_attached_and_its_output_is_whole():
    with Daemon() as d, tempfile.TemporaryDirectory() as top:
        go = os.path.join(top, "go")
        with d.agent(session="s") as a:
            task = start(a, "echo one; while [ ! -e %s ]; do sleep 0.01; done; echo two" % go)
            wait_for(lambda: a.text("task_output", task_id=task).startswith("one"), 10)
            a.request("ping")  # the acknowledgement before it has been taken
        crash(d)
        with d.agent(session="s") as a:
            assert " running " in a.text("task_list"), a.text("task_list")
            with open(go, "wb"):
                pass
            equal(a.text("task_output", task_id=task, wait=True),
                  "two\n[status: completed, exit code: 0]")


def test_an_end_that_nobody_saw_is_told_once():
    with Daemon() as d, tempfile.TemporaryDirectory() as top:
        go = os.path.join(top, "go")
        with d.agent(session="s") as a:
            task = start(a, "while [ ! -e %s ]; do sleep 0.01; done; exit 3" % go)
        d.kill()
        with open(go, "wb"):
            pass
        d.start()
        with d.operator() as op:
            equal(op.ask("errand/wait", id=task)["task"]["detail"], "exit code: 3")
        with d.agent(session="s") as a:
            told = notices_of(a.tool("task_list"))
            assert len(told) == 1 and "exit code: 3" in told[0], told
            a.request("ping")
        crash(d)
        with d.agent(session="s") as a:
            equal(notices_of(a.tool("task_list")), [])


def test_a_notice_that_was_pending_is_delivered_by_the_next_daemon():
    with Daemon() as d:
        with d.agent(session="s") as a:
            task = start(a, "true")
            with d.operator() as op:
                op.ask("errand/wait", id=task)
        crash(d)
        with d.agent(session="s") as a:
            equal(len(notices_of(a.tool("task_list"))), 1)


def test_a_kill_reaches_a_task_of_a_dead_daemon():
    with Daemon() as d:
        with d.agent(session="s") as a:
            task = start(a, "exec sleep 600")
        crash(d)
        with d.agent(session="s") as a:
            a.tool("task_kill", task_id=task)
            equal(a.text("task_output", task_id=task, wait=True),
                  "(no new output)\n[status: killed, signal: SIGTERM]")


def test_a_deadline_holds_while_there_is_no_daemon():
    with Daemon() as d:
        with d.agent(session="s") as a:
            task = a.text("bash", command="exec sleep 600", description="d", timeoutMs=300,
                          run_in_background=True).split()[-1]
        d.kill()
        d.start()
        with d.agent(session="s") as a:
            assert "timed out after 300ms" in a.text("task_output", task_id=task, wait=True)


def test_an_ended_task_can_still_be_read_and_its_number_is_not_given_again():
    with Daemon() as d:
        with d.agent(session="s") as a:
            equal(a.text("bash", command="echo hi", description="d"), "hi\n")
            equal(start(a, "echo there"), "bash-2")
            with d.operator() as op:
                op.ask("errand/wait", id="bash-2")
        crash(d)
        with d.agent(session="s") as a:
            equal(a.text("task_output", task_id="bash-2").split("\n")[0], "there")
            equal(start(a, "true"), "bash-3")


def test_a_signal_to_the_daemon_ends_no_task():
    with Daemon() as d:
        with d.agent(session="s") as a:
            task = start(a, "exec sleep 600")
        equal(d.kill(signal.SIGTERM), 0)
        d.start()
        with d.agent(session="s") as a:
            assert " running " in a.text("task_list")
            a.tool("task_kill", task_id=task)


def test_a_client_without_a_name_that_does_not_come_back_takes_its_tasks_along():
    with Daemon(env={"ERRAND_SESSIONS_GRACE_S": "1"}) as d:
        with d.agent() as a:
            task = start(a, "echo $$; exec sleep 600")
            pid = int(wait_for(lambda: (lambda t: t if t[0].isdigit() else None)(
                a.text("task_output", task_id=task)), 10).split()[0])
            crash(d)
        wait_for(lambda: not alive(pid), 10)
        with d.operator() as op:
            wait_for(lambda: op.ask("errand/list")["tasks"] == [], 10)


def test_the_folder_of_a_task_that_was_dropped_goes_unless_its_shim_is_there():
    with Daemon() as d:
        with d.agent(session="s") as a:
            ended, kept = start(a, "true"), start(a, "true")
            live = start(a, "echo $$; exec sleep 600")
            pid = int(wait_for(lambda: (lambda t: t if t[0].isdigit() else None)(
                a.text("task_output", task_id=live)), 10).split()[0])
            with d.operator() as op:
                for task in (ended, kept):
                    op.ask("errand/wait", id=task)
            a.request("ping")
        d.kill()
        db = sqlite3.connect(os.path.join(d.state, "errand.db"))
        uids = dict(db.execute("SELECT id, uid FROM task JOIN run USING (task)"))
        with db:  # as if the daemon had died right after it had dropped them
            db.execute("UPDATE task SET listed = 0, agent = NULL WHERE id = ?", (ended,))
            db.execute("UPDATE task SET listed = 0, agent = NULL, status = 'killed', detail = 'x',"
                       " finished = started, rank = 99 WHERE id = ?", (live,))
        db.close()
        d.start()
        tasks = os.path.join(d.state, "tasks")
        equal(sorted(os.listdir(tasks)), sorted([uids[live], uids[kept]]))
        with d.agent(session="s") as a:
            assert kept in a.text("task_list")
        with open(os.path.join(tasks, uids[live], "lock"), "rb") as f:
            try:
                fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
                raise AssertionError("the shim of %s is gone" % live)
            except BlockingIOError:
                pass
        os.kill(pid, signal.SIGKILL)


def test_the_folder_of_a_task_goes_only_when_its_drop_is_durable():
    with Daemon() as d:
        with d.agent(session="s") as a:
            equal(a.text("bash", command="echo hi", description="d"), "hi\n")
            a.request("ping")  # the acknowledgement before it has been taken
        db = sqlite3.connect(os.path.join(d.state, "errand.db"), isolation_level=None)
        folder = os.path.join(d.state, "tasks", db.execute("SELECT uid FROM run").fetchone()[0])
        with d.operator() as op:  # who comes while nothing can be kept is not greeted
            db.execute("BEGIN IMMEDIATE")
            op.post("errand/end-session", name="s")
            wait_for(lambda: "cannot keep what happens" in d.said(), 20)
            assert os.path.isdir(folder)
            d.kill()
        db.close()
        d.start()
        with d.agent(session="s") as a:
            assert "bash-1" in a.text("task_list")
            assert os.path.isdir(folder)
            with d.operator() as op:
                op.ask("errand/end-session", name="s")
            wait_for(lambda: not os.path.exists(folder), 10)


# ---- what was read ----

def test_what_was_read_is_not_read_again_what_was_not_acknowledged_is():
    with Daemon() as d:
        with d.agent(session="s", acks=False) as a:
            task = start(a, "echo one; exec sleep 600")
            a.ack(a.last)
            wait_for(lambda: "one" in a.text("task_output", task_id=task), 10)
            a.request("ping")
        crash(d)
        with d.agent(session="s") as a:
            equal(a.text("task_output", task_id=task).split("\n")[0], "one")
            a.request("ping")  # the acknowledgement before it has been taken
        crash(d)
        with d.agent(session="s") as a:
            equal(a.text("task_output", task_id=task).split("\n")[0], "(no new output)")
            a.tool("task_kill", task_id=task)


def test_an_end_is_told_at_once_and_is_the_same_after_a_death():
    with Daemon() as d, d.agent(session="s", acks=False) as a:
        task = start(a, "echo one; exit 3")
        end = a.text("task_output", task_id=task, wait=True)
        equal(end, "one\n[status: completed, exit code: 3]")
        crash(d)
        with d.agent(session="s") as b:
            equal(b.text("task_output", task_id=task), end)


def rows_of(state, what):
    """How many the store of a living daemon has."""
    db = sqlite3.connect("file:%s/errand.db?mode=ro" % state, uri=True)
    try:
        return db.execute("SELECT count(*) FROM " + what).fetchone()[0]
    finally:
        db.close()


def test_an_end_is_kept_also_when_nothing_comes_after_it():
    with Daemon() as d, d.agent(session="s", acks=False) as a:
        task = start(a, "true")
        a.text("task_output", task_id=task, wait=True)
        wait_for(lambda: rows_of(d.state, "task WHERE status = 'completed'") == 1, 10)


# ---- sessions ----

def edit(state, statement, *values):
    """Change what a dead daemon has left in its store."""
    db = sqlite3.connect(os.path.join(state, "errand.db"))
    with db:
        assert db.execute(statement, values).rowcount == 1, statement
    db.close()


def ends_in(d, name):
    with d.operator() as op:
        return {s["name"]: s.get("endsInMs") for s in op.ask("errand/sessions")["sessions"]
                }.get(name)


def left(d, name):
    with d.agent(session=name) as a:
        a.text("task_list")
    wait_for(lambda: ends_in(d, name) is not None, 10)
    d.kill(signal.SIGTERM)


def test_a_name_is_kept_from_its_last_client_on_and_not_from_the_last_start():
    hour = 3600 * 1000
    with Daemon(env={"ERRAND_SESSIONS_KEEP_FOR_S": "7200"}) as d:
        left(d, "s")
        edit(d.state, "UPDATE session SET seen = seen - ? WHERE name = 's'", hour)
        d.start()
        assert hour - 120000 < ends_in(d, "s") <= hour, ends_in(d, "s")
        crash(d)
        assert ends_in(d, "s") <= hour, ends_in(d, "s")


def test_a_name_whose_time_was_over_meanwhile_ends_after_a_grace_and_leaves_no_row():
    with Daemon(env={"ERRAND_SESSIONS_GRACE_S": "1"}) as d:
        left(d, "s")
        edit(d.state, "UPDATE session SET seen = 1")
        d.start()
        wait_for(lambda: ends_in(d, "s") is None, 10)
        d.kill(signal.SIGTERM)
        db = sqlite3.connect(os.path.join(d.state, "errand.db"))
        equal(db.execute("SELECT count(*) FROM session").fetchone(), (0,))
        db.close()


def test_a_name_whose_clock_was_set_back_is_kept_no_longer_than_from_now():
    with Daemon(env={"ERRAND_SESSIONS_KEEP_FOR_S": "7200"}) as d:
        left(d, "s")
        edit(d.state, "UPDATE session SET seen = seen + 1000000000")
        d.start()
        assert ends_in(d, "s") <= 7200000, ends_in(d, "s")


def test_a_client_that_was_connected_when_the_daemon_died_has_its_whole_time():
    with Daemon(env={"ERRAND_SESSIONS_KEEP_FOR_S": "7200"}) as d:
        with d.agent(session="s") as a:
            a.text("task_list")
            d.kill()
        edit(d.state, "UPDATE session SET seen = 1 WHERE pid > 0")
        d.start()
        assert ends_in(d, "s") > 7000000, ends_in(d, "s")


def resumed(reply):
    return [text for text in notices_of(reply) if "session resumed" in text]


def test_who_comes_back_to_a_session_is_told_once_what_it_holds():
    with Daemon() as d:
        with d.agent(session="s") as a:
            task = start(a, "echo hello; exec sleep 600")
            equal(resumed(a.tool("task_list")), [])
            done = start(a, "true")
            with d.operator() as op:
                op.ask("errand/wait", id=done)
        crash(d)
        with d.agent(session="s") as a:
            first, = resumed(a.tool("task_list"))
            assert first.startswith("[session resumed; running: %s; ended meanwhile: %s; "
                                    "unread output: %s 6 bytes]\nbackground task %s "
                                    % (task, done, task, done)), first
            equal(resumed(a.tool("task_list")), [])
            a.request("ping")  # the acknowledgement before it has been taken
        with d.agent(session="s") as a:  # what was told is no news
            equal(resumed(a.tool("task_list")),
                  ["[session resumed; running: %s; unread output: %s 6 bytes]" % (task, task)])


def test_a_client_that_was_never_away_is_told_nothing():
    with Folder() as state:
        with relay(state) as c:
            task = start(c, "exec sleep 600")
            kill_daemon(state)
            equal(resumed(c.tool("task_list")), [])
            c.tool("task_kill", task_id=task)


# ---- requests ----

def asked(number, **arguments):
    body = {"jsonrpc": "2.0", "id": number, "method": "tools/call",
            "params": {"name": "bash", "arguments": {"description": "d", **arguments}}}
    return b"%d %s\n" % (number, json.dumps(body).encode())


def test_a_start_that_is_asked_again_is_answered_and_not_repeated():
    nonce = "cd" * 16
    with Daemon() as d, tempfile.TemporaryDirectory() as top:
        log = os.path.join(top, "log")
        line = asked(7, command="echo ran >> %s; exec sleep 600" % log, run_in_background=True)
        with d.agent(nonce=nonce) as a:
            a.send(line)
            wait_for(lambda: os.path.exists(log), 10)
            crash(d)
        with d.agent(nonce=nonce) as a:
            a.send(line)
            first = text_of(a.answer(7))
            assert "bash-1" in first, first
            assert "bash-2" not in a.text("task_list"), a.text("task_list")
            a.tool("task_kill", task_id="bash-1")
        with open(log, encoding="ascii") as f:
            equal(f.read(), "ran\n")


def test_an_answered_start_is_forgotten_and_the_number_of_another_client_is_none():
    with Daemon() as d:
        with d.agent(nonce="ab" * 16, session="s") as a:
            a.send(asked(7, command="true", run_in_background=True))
            assert "bash-1" in text_of(a.answer(7))
            wait_for(lambda: rows_of(d.state, "request") == 0, 10)
        crash(d)
        with d.agent(nonce="ab" * 16, session="s") as a, d.agent(nonce="ef" * 16) as b:
            for client, task in ((a, "bash-2"), (b, "bash-3")):
                client.send(asked(7, command="true", run_in_background=True))
                assert task in text_of(client.answer(7))


def test_each_start_of_a_batch_is_found_again():
    nonce = "cd" * 16
    with Daemon() as d, tempfile.TemporaryDirectory() as top:
        calls = [json.loads(asked(n, command="echo %d >> %s/log; sleep 600" % (n, top),
                                  run_in_background=True).split(b" ", 1)[1])
                 for n in (1, 2, 3)]
        line = b"9 " + json.dumps(calls).encode() + b"\n"

        def connect():
            a = Agent(d.state, nonce=nonce)
            a.request("initialize", protocolVersion="2025-03-26")
            a.send(line)
            return a

        with connect():
            wait_for(lambda: os.path.exists(top + "/log") and
                     len(open(top + "/log", encoding="ascii").readlines()) == 3, 10)
            crash(d)
        with connect() as a:
            while (got := a.next())[0] != 9:
                pass
            texts = sorted(text_of(m["result"]) for m in json.loads(got[1]))
            for n, text in enumerate(texts, 1):
                assert text.endswith("bash-%d" % n), texts
        with d.operator() as op:
            equal(len(op.ask("errand/list")["tasks"]), 3)
            for n in (1, 2, 3):
                op.ask("errand/kill", id="bash-%d" % n)


# ---- through the relay ----

def test_a_foreground_call_is_answered_whole_across_the_death():
    with Folder() as state, tempfile.TemporaryDirectory() as top:
        command = "echo begun >> %s/log; echo one; while [ ! -e %s/go ]; do sleep 0.01; " \
            "done; echo two" % (top, top)
        with relay(state) as c:
            number = c.post_tool("bash", command=command, description="d")
            wait_for(lambda: os.path.exists(top + "/log"), 10)
            kill_daemon(state)
            with open(top + "/go", "wb"):
                pass
            equal(text_of(c.join(number)), "one\ntwo\n")
            with open(top + "/log", encoding="ascii") as f:
                equal(f.read(), "begun\n")


def test_a_wait_goes_on_across_the_death():
    with Folder() as state, tempfile.TemporaryDirectory() as top:
        with relay(state) as c:
            task = start(c, "while [ ! -e %s/go ]; do sleep 0.01; done; echo end" % top)
            number = c.post_tool("task_output", task_id=task, wait=True)
            c.request("ping")
            kill_daemon(state)
            with open(top + "/go", "wb"):
                pass
            equal(text_of(c.join(number)), "end\n[status: completed, exit code: 0]")
            equal(notices_of(c.tool("task_list")), [])


def test_at_whatever_instant_the_daemon_dies_nothing_is_lost_and_nothing_runs_twice():
    """Each round: some starts and reads, and a kill at a random moment among them."""
    chance = random.Random(int(os.environ.get("SEED", "4711")))
    with Folder() as state, tempfile.TemporaryDirectory() as top, relay(state) as c:
        told, started, n = [], [], 0
        for _ in range(ROUNDS):
            posted = []
            for _ in range(4):
                n += 1
                posted.append((n, c.post_tool(
                    "bash", command="echo %d >> %s/log; echo out-%d" % (n, top, n),
                    description="d", run_in_background=n % 2 == 0)))
            killer = threading.Timer(chance.random() * 0.05, kill_daemon, [state])
            killer.start()
            for number, request in posted:
                reply = c.join(request)
                told += notices_of(reply)
                if number % 2:
                    equal(text_of(reply), "out-%d\n" % number)
                else:
                    started.append(text_of(reply).split()[-1])
            killer.join()
        c.request("ping")  # there is a daemon
        with Operator(state) as op:
            for task in op.ask("errand/list")["tasks"]:
                equal(op.ask("errand/wait", id=task["id"])["task"]["detail"], "exit code: 0")
        told += notices_of(c.tool("task_list"))
        with open(top + "/log", encoding="ascii") as f:
            equal(sorted(map(int, f.read().split())), list(range(1, n + 1)))
        # Across a death an end may be told more than once; none is never told.
        ends = [word for text in told for word in text.split() if word.startswith("bash-")]
        equal((len(set(started)), set(started) - set(ends)), (n // 2, set()))


if __name__ == "__main__":
    run_tests(globals())
