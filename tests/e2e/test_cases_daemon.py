# SPDX-License-Identifier: MIT
"""What people have reported about systems like this one, case by case: restarts, several
clients, sessions that are kept, and waits for text, all with a daemon (see test_cases.py)."""
import json
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from cases import EXIT_0, end, equal, running, start  # noqa: E402
from daemon import ERRAND, Daemon  # noqa: E402
from mcpclient import Client, Folder, notices_of, run_tests, text_of, wait_for  # noqa: E402


def person(d, *args):
    done = subprocess.run([ERRAND, *args], env=d.env, capture_output=True, timeout=60,
                          check=False)
    return done.stdout.decode()


# ---- restarts ----

def newest_record(state):
    wal = os.path.join(state, "errand.db-wal")
    return wal if os.path.getsize(wal) else os.path.join(state, "errand.db")


def newest_status(state):
    tasks = os.path.join(state, "tasks")
    return max((os.path.join(tasks, uid, "status") for uid in os.listdir(tasks)),
               key=os.path.getmtime)


def test_ps_04_of_a_record_that_is_cut_nothing_else_suffers():
    for newest in (newest_record, newest_status):
        with Daemon() as d:
            with d.agent(session="s") as a:
                for n in range(1, 6):
                    equal(end(a, start(a, "echo %d" % n)), "%d\n%s" % (n, EXIT_0))
                a.request("ping")  # what was acknowledged before it is kept
            d.kill()
            path = newest(d.state)
            os.truncate(path, os.path.getsize(path) - 7)
            d.start()
            with d.agent(session="s") as a:
                listed = a.text("task_list").splitlines()
                equal([line.split()[:3] for line in listed[:5]],
                      [["bash-%d" % n, "[bash]", "completed"] for n in range(1, 6)])
                equal(end(a, start(a, "echo on")), "on\n" + EXIT_0)


# ---- several clients ----

def test_ps_07_two_servers_on_one_store_share_all_and_repeat_nothing():
    env = {**os.environ, "ERRAND_DAEMON_IDLE_S": "5", "ERRAND_LIMITS_LIVE_TASKS": "0"}
    with Folder() as state:
        clients = [Client.errand("--session", "s", state=state, env=env)
                   for _ in range(2)]
        try:
            for c in clients:
                c.initialize()
            go = os.path.join(state, "go")
            asked = [(c, c.post_tool("bash", description="d", run_in_background=True,
                                     command="until [ -e %s ]; do sleep 0.1; done" % go))
                     for _ in range(20) for c in clients]
            ids = {text_of(c.join(number)).split()[-1] for c, number in asked}
            equal(len(ids), 40)
            lists = [c.text("task_list") for c in clients]
            equal(lists[0], lists[1])
            equal(set(re.findall(r"^bash-\d+", lists[0], re.M)), ids)
            with open(go, "wb"):
                pass
            told = []

            def all_told():
                for c in clients:
                    for notice in notices_of(c.tool("task_list")):
                        told.extend(re.findall(r"bash-\d+(?= )", notice))
                return set(told) == ids
            wait_for(all_told, 20)
            for c in clients:
                equal(notices_of(c.tool("task_list")), [])
            equal(len(told), 40)
        finally:
            for c in clients:
                c.__exit__(None, None, None)


# ---- sessions ----

def test_a_named_session_keeps_its_task_and_a_nameless_one_ends_its_own():
    command = "for i in 1 2 3 4 5 6 7 8 9 10; do echo k$i; sleep 0.05; done"
    with Daemon(env={"ERRAND_SESSIONS_GRACE_S": "1"}) as d:
        with d.agent(session="s") as a:
            named = start(a, command)
        with d.agent() as a:
            nameless = start(a, "exec sleep 600")
        with d.agent(session="s") as a:
            equal(end(a, named), "".join("k%d\n" % i for i in range(1, 11)) + EXIT_0)

        def ended():
            past = json.loads(person(d, "ls", "--all", "--json"))["history"]
            return [t for t in past if t["id"] == nameless]
        equal(wait_for(ended, 10)[0]["status"], "killed")


def test_ps_11_a_new_connection_that_knows_no_id_is_told_all():
    with Daemon() as d:
        with d.agent(session="s") as a:
            live, done = start(a, "echo up; exec sleep 60"), start(a, "echo lots; exit 3")
            with d.operator() as op:
                op.ask("errand/wait", id=done)
                wait_for(lambda: op.ask("errand/list")["tasks"][0]["facts"]["outputBytes"])
        with d.agent(session="s") as a:
            reply = a.tool("task_list")
            listed = text_of(reply).splitlines()
            equal(listed[0], live + " [bash] running \u2014 echo up; exec sleep 60")
            assert listed[1].startswith(done + " [bash] completed"), listed
            facts = reply["_meta"]["errand/facts"]
            assert facts[live]["ageMs"] >= 0, facts
            equal([facts[t]["unreadBytes"] for t in (live, done)], [3, 5])
            a.tool("task_kill", task_id=live)
            assert "killed" in end(a, live)


# ---- waits for text ----

def until_line(d, task, pattern):
    """What a shell makes of it: the first whole line with @pattern, or none at the end."""
    script = '"$1" logs -f "$2" | grep -m 1 -e "$3"'
    done = subprocess.run(["timeout", "20", "bash", "-c", script, "-", ERRAND, task, pattern],
                          env=d.env, capture_output=True, check=False)
    assert done.returncode in (0, 1), done  # not 124: the pipe has ended by itself
    return done.stdout.decode()


def test_wt_07_a_wait_for_a_line_ends_with_it_and_the_task_runs_on():
    with Daemon() as d:
        with d.agent(session="s") as a:
            task = start(a, "echo starting; sleep 0.2; "
                            "echo 'Server running on port 8080'; exec sleep 3260.%d"
                         % os.getpid())
            equal(until_line(d, task, "running on port"), "Server running on port 8080\n")
            wait_for(lambda: len(running("sleep 3260.%d" % os.getpid())) == 1, 10)
            equal(until_line(d, start(a, "echo other; exit 1"), "running on port"), "")


def test_out_23_a_wait_for_a_line_sees_whole_lines_only():
    with Daemon() as d:
        with d.agent(session="s") as a:
            task = start(a, "for k in 1 2 3; do printf 'Still wait'; sleep 0.1; "
                            "printf 'ing...\\n'; done; echo READY")
            equal(until_line(d, task, "^READY$"), "READY\n")
            equal(until_line(d, task, "^ing"), "")


if __name__ == "__main__":
    run_tests(globals())
