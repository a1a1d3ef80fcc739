# SPDX-License-Identifier: MIT
"""What people ask a daemon for: done once, whenever the daemon dies."""
import json
import os
import random
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from daemon import ERRAND, Daemon, Operator, Refused, daemon_of  # noqa: E402
from mcpclient import Folder, alive, run_tests, wait_for  # noqa: E402

ROUNDS = int(os.environ.get("ROUNDS", "12"))
NONCE = "cd" * 16


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def ids(op):
    return [task["id"] for task in op.ask("errand/list")["tasks"]]


def again(d, number, method, **params):
    """The request @number of the client NONCE, which has been connected before."""
    with Operator(d.state, nonce=NONCE, again=True) as op:
        op.last_id = number - 1
        return op.ask(method, **params)


# ---- requests that come again ----

def test_a_start_that_is_asked_again_is_answered_and_not_repeated():
    with Daemon() as d, tempfile.TemporaryDirectory() as top:
        argv = ["echo ran >> %s/log; exec sleep 600" % top]
        with d.operator(nonce=NONCE) as op:
            equal(op.ask("errand/run", argv=argv), {"id": "bash-1"})
            wait_for(lambda: os.path.exists(top + "/log"), 10)
            d.kill()
        d.start()
        equal(again(d, 1, "errand/run", argv=argv), {"id": "bash-1"})
        with d.operator() as op:
            equal(ids(op), ["bash-1"])
        equal(read(top + "/log"), "ran\n")


def test_a_start_whose_daemon_died_before_it_began_is_begun_by_the_next():
    with Daemon() as d, tempfile.TemporaryDirectory() as top:
        argv = ["echo ran >> %s/log" % top]
        with d.operator(nonce=NONCE) as op:
            op.ask("errand/run", argv=argv)
            op.ask("errand/wait", id="bash-1")
            d.kill()
        # As if there had been no time for a shim.
        os.unlink(top + "/log")
        db = sqlite3.connect(os.path.join(d.state, "errand.db"))
        with db:
            shutil.rmtree(os.path.join(d.state, "tasks",
                                       db.execute("SELECT uid FROM run").fetchone()[0]))
            db.execute("UPDATE task SET status = 'running', detail = NULL, output = NULL,"
                       " finished = NULL, rank = NULL, reported = 0, noticed = 0, told = 0")
            db.execute("DELETE FROM message")
        db.close()
        d.start()
        equal(again(d, 1, "errand/run", argv=argv), {"id": "bash-1"})
        with d.operator() as op:
            equal(op.ask("errand/wait", id="bash-1")["task"]["detail"], "exit code: 0")
            equal(ids(op), ["bash-1"])
        equal(read(top + "/log"), "ran\n")


def test_a_kill_and_the_end_of_a_session_have_the_same_answer_again():
    with Daemon() as d:
        with d.operator(nonce=NONCE, session="s") as op:
            op.ask("errand/run", argv=["exec sleep 600"])
            op.ask("errand/kill", id="bash-1")
            op.ask("errand/wait", id="bash-1")
            op.ask("errand/run", argv=["exec sleep 600"])
            equal(op.ask("errand/end-session", name="s"), {"live": 1})
            d.kill()
        d.start()
        with Operator(d.state, nonce=NONCE, again=True) as op:
            op.last_id = 1
            equal(op.ask("errand/kill", id="bash-1"), {"requested": True})
            op.last_id = 4
            equal(op.ask("errand/end-session", name="s"), {"live": 1})


def test_a_request_of_a_client_that_left_is_new():
    with Daemon() as d:
        with d.operator(nonce=NONCE) as op:
            equal(op.ask("errand/run", argv=["true"]), {"id": "bash-1"})
        equal(again(d, 1, "errand/run", argv=["true"]), {"id": "bash-1"})  # only its line broke
        with d.operator(nonce=NONCE) as op:
            op.send(b'{"jsonrpc":"2.0","method":"errand/bye"}\n')
            op.ask("errand/stat")
        d.kill(signal.SIGTERM)
        d.start()
        equal(again(d, 1, "errand/run", argv=["true"]), {"id": "bash-2"})


def test_a_number_that_is_used_twice_on_one_connection_is_two_requests():
    with Daemon() as d, d.operator(nonce=NONCE) as op:
        equal(op.ask("errand/run", argv=["true"]), {"id": "bash-1"})
        op.last_id = 0
        equal(op.ask("errand/run", argv=["true"]), {"id": "bash-2"})


def test_a_refused_request_is_asked_again_as_new():
    with Daemon() as d:
        with d.operator(nonce=NONCE) as op:
            try:
                op.ask("errand/kill", id="bash-1")
                raise AssertionError("there is no such task")
            except Refused:
                pass
            op.ask("errand/run", argv=["exec sleep 600"])
            d.kill()
        d.start()
        equal(again(d, 1, "errand/kill", id="bash-1"), {"requested": True})


# ---- who did what ----

def command(d, *args, code=0, **env):
    done = subprocess.run([ERRAND, *args], env={**d.env, **env}, capture_output=True, timeout=60,
                          check=False)
    equal((done.returncode, done.stderr.decode() if not code else ""), (code, ""))
    return done.stdout.decode(), done.stderr.decode()


def trail(d, *args):
    entries = json.loads(command(d, "history", "--json", *args)[0])["history"]
    return [(e["who"], e["door"], e["act"], e["task"], e["detail"]) for e in entries]


def test_the_history_tells_who_did_what_through_which_door():
    with Daemon() as d:
        command(d, "run", "--session", "s", "--label", "long", "exec sleep 600")
        with d.agent(session="s") as a:
            a.text("bash", command="exec sleep 601", description="d", run_in_background=True)
            command(d, "extend", "bash-1", "5m")
            command(d, "kill", "bash-1", "--reason", "not wanted")
            command(d, "wait", "bash-1", code=143)
            a.tool("task_kill", task_id="bash-2", reason="no more")
            a.text("task_output", task_id="bash-2", wait=True)
            command(d, "kill", "--leftovers", "bash-2")  # there are none
            a.request("ping")
        equal(trail(d), [
            ("operator", "people", "start", "bash-1", "long"),
            ("s", "mcp", "start", "bash-2", "exec sleep 601"),
            ("operator", "people", "extend", "bash-1", "5m"),
            ("operator", "people", "kill", "bash-1", "not wanted"),
            ("s", "mcp", "kill", "bash-2", "no more")])
        equal(trail(d, "bash-2"), [
            ("s", "mcp", "start", "bash-2", "exec sleep 601"),
            ("s", "mcp", "kill", "bash-2", "no more")])
        with d.operator() as op:
            equal([op.ask("errand/get", id=task)["task"]["facts"]["killReason"]
                   for task in ("bash-1", "bash-2")], ["not wanted", "no more"])
            op.ask("errand/end-session", name="s")
            wait_for(lambda: not ids(op), 10)
        why = "its session has ended"
        equal(trail(d)[5:], [("operator", "people", "end-session", None, "s"),
                             ("s", "host", "drop", "bash-1", why),
                             ("s", "host", "drop", "bash-2", why),
                             ("s", "host", "end-session", None, None)])
        table = command(d, "history")[0].split("\n")
        equal(table[0].split(), ["WHEN", "WHO", "THROUGH", "DID", "TASK", "DETAIL"])
        equal(table[1].split()[2:], ["operator", "people", "start", "bash-1", "long"])


def test_why_an_end_was_asked_for_outlives_the_daemon():
    def reasons():
        with d.operator() as op:
            return {t["id"]: t["facts"].get("killReason") for t in op.ask("errand/list")["tasks"]}

    with Daemon() as d:
        with d.agent(session="s") as a:
            for script in ("exec sleep 600", "trap '' TERM; sleep 601", "exec sleep 602"):
                a.text("bash", command=script, description="d", run_in_background=True)
            command(d, "kill", "bash-1", "--reason", "not \"wanted\"")
            command(d, "wait", "bash-1", code=143)
            a.tool("task_kill", task_id="bash-2", reason="no more")
            a.tool("task_kill", task_id="bash-2", reason="at last")  # the first one counts
            a.tool("task_kill", task_id="bash-3")
            told = {"bash-1": "not \"wanted\"", "bash-2": "no more", "bash-3": None}
            equal(reasons(), told)
        for _ in range(2):
            d.kill()
            d.start()
            equal(reasons(), told)


def test_what_a_task_starts_is_in_the_history_as_its_owner_s():
    with Daemon() as d:
        command(d, "run", "--session", "s", "exec %s run true >/dev/null" % ERRAND)
        command(d, "wait", "bash-1")
        equal([e[:4] for e in trail(d)], [("operator", "people", "start", "bash-1"),
                                          ("s", "task", "start", "bash-2")])


def test_a_session_that_ends_by_itself_has_ended_its_tasks():
    with Daemon(env={"ERRAND_SESSIONS_GRACE_S": "1"}) as d:
        with d.agent() as a:
            a.text("bash", command="exec sleep 600", description="d", run_in_background=True)
        with d.operator() as op:
            wait_for(lambda: not ids(op), 20)
        equal([e[1:4] for e in trail(d)], [("mcp", "start", "bash-1"), ("host", "kill", "bash-1"),
                                           ("host", "drop", "bash-1")])


def test_escapes_in_what_others_have_written_reach_no_terminal():
    with Daemon() as d:
        command(d, "run", "--session", "s\x1b[2J", "--label", "a\x1b[31mb\nc", "true")
        assert "\x1b" not in command(d, "history")[0]


def test_of_a_task_whose_output_is_gone_logs_says_when_and_why():
    with Daemon(env={"ERRAND_LIMITS_FINISHED_TASKS": "1"}) as d:
        with d.agent(session="s") as a:
            for n in range(3):
                a.text("bash", command="echo %d" % n, description="d")
                a.request("ping")
        for verb in ("logs", "output"):
            said = command(d, verb, "bash-1", code=3)[1]
            assert "unknown task bash-1" in said, said
            assert "bash-1 (completed, exit code: 0) is history" in said, said
            assert ": more tasks had ended than are kept\n" in said, said
            assert "limits.finished_tasks" in said, said
        assert "history" not in command(d, "logs", "bash-99", code=3)[1]
        equal(command(d, "logs", "bash-3")[0], "2\n")
        d.kill()
        assert "is history" in command(d, "logs", "bash-1", code=4)[1]
        assert "is history" not in command(d, "logs", "bash-3", code=4)[1]
        d.start()


# ---- what is kept ----

def print_bytes(a, n, tells=True):
    """A task that prints @n bytes, and whose owner is told of its end or not yet."""
    task = a.text("bash", command="head -c %d /dev/zero | tr '\\0' x" % n, description="d",
                  run_in_background=True).split()[-1]
    if tells:
        a.text("task_output", task_id=task, wait=True)
        a.request("ping")
    return task


def test_an_owner_s_oldest_output_goes_first_when_there_is_too_much():
    with Daemon(env={"ERRAND_LIMITS_OWNER_KEPT_BYTES": "100000"}) as d:
        with d.agent(session="s") as a, d.agent(session="other") as b:
            other = print_bytes(b, 90000)
            mine = [print_bytes(a, 60000), print_bytes(a, 10), print_bytes(a, 60000)]
            with d.operator() as op:
                wait_for(lambda: ids(op) == [other] + mine[1:], 10)
        equal([e[3:] for e in trail(d) if e[2] == "drop"],
              [(mine[0], "there was more output of ended tasks than is kept")])
        equal(len(os.listdir(os.path.join(d.state, "tasks"))), 3)


def test_all_owners_together_have_a_limit_too_also_after_a_crash():
    with Daemon() as d:
        with d.agent(session="s") as a, d.agent(session="other") as b:
            told = [print_bytes(a, 60000), print_bytes(b, 60000), print_bytes(a, 60000)]
        d.kill()
        d.env["ERRAND_LIMITS_KEPT_BYTES"] = "70000"
        d.start()
        with d.operator() as op:
            wait_for(lambda: ids(op) == told[2:], 10)


def test_neither_what_lives_nor_an_end_that_is_not_told_goes_for_room():
    with Daemon(env={"ERRAND_LIMITS_KEPT_BYTES": "1000"}) as d:
        with d.agent(session="s") as a:
            live = a.text("bash", command="head -c 5000 /dev/zero; exec sleep 600",
                          description="d", run_in_background=True).split()[-1]
            untold = print_bytes(a, 5000, tells=False)
            with d.operator() as op:
                op.ask("errand/wait", id=untold)
                told = print_bytes(a, 5000)  # its reply tells of the other one as well
                wait_for(lambda: ids(op) == [live], 10)
        equal([e[3] for e in trail(d) if e[2] == "drop"], [untold, told])


def test_a_daemon_that_goes_on_forgets_what_is_beyond_the_limits():
    with Daemon(env={"ERRAND_LIMITS_FINISHED_TASKS": "1", "ERRAND_HISTORY_TASKS": "3"}) as d:
        with d.agent(session="s") as a:
            for _ in range(103):
                a.text("bash", command=":", description="d")
            a.request("ping")
        past = json.loads(command(d, "ls", "--all", "--json")[0])["history"]
        assert len(past) <= 6, len(past)


# ---- the command ----

def kill_process(pid):
    if alive(pid):
        os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not alive(pid), 10)


def has_socket(pid):
    folder = "/proc/%d/fd" % pid
    return any(os.readlink(os.path.join(folder, fd)).startswith("socket:")
               for fd in os.listdir(folder))


def test_run_survives_a_daemon_that_dies_before_anything_was_durable():
    with Folder() as state, tempfile.TemporaryDirectory() as top:
        env = {**os.environ, "ERRAND_STATE": state, "ERRAND_DAEMON_IDLE_S": "5"}
        subprocess.run([ERRAND, "run", "--wait", "true"], env=env, check=True,
                       stderr=subprocess.DEVNULL)
        db = sqlite3.connect(os.path.join(state, "errand.db"), isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        p = subprocess.Popen([ERRAND, "run", "echo ran >> %s/log" % top], env=env,
                             stdout=subprocess.PIPE)
        wait_for(lambda: has_socket(p.pid), 10)
        kill_process(daemon_of(state))
        db.close()
        equal(p.communicate(timeout=60)[0], b"bash-2\n")
        with Operator(state) as op:
            op.ask("errand/wait", id="bash-2")
            equal(ids(op), ["bash-1", "bash-2"])
        equal(read(top + "/log"), "ran\n")


def test_at_whatever_instant_the_daemon_dies_a_command_runs_once():
    chance = random.Random(int(os.environ.get("SEED", "4711")))
    with Folder() as state, tempfile.TemporaryDirectory() as top:
        env = {**os.environ, "ERRAND_STATE": state, "ERRAND_DAEMON_IDLE_S": "5"}
        subprocess.run([ERRAND, "run", "true"], env=env, check=True, stdout=subprocess.DEVNULL)
        told = []
        for n in range(ROUNDS + 1):
            # One that is just starting is not meant: who starts it gives up with it.
            killer = threading.Timer(chance.random() * 0.03, kill_process, [daemon_of(state)])
            if n < ROUNDS:  # after the last one there is a daemon
                killer.start()
            told.append(subprocess.run([ERRAND, "run", "echo %d >> %s/log" % (n, top)], env=env,
                                       check=True, stdout=subprocess.PIPE).stdout.decode().strip())
            if n < ROUNDS:
                killer.join()
        subprocess.run([ERRAND, "wait", *told], env=env, check=True, capture_output=True)
        with Operator(state) as op:
            equal(ids(op), ["bash-1"] + told)
        equal(sorted(map(int, read(top + "/log").split())), list(range(ROUNDS + 1)))


if __name__ == "__main__":
    run_tests(globals())
