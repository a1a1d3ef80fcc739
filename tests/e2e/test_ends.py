# SPDX-License-Identifier: MIT
"""What ends with what (docs/daemon.md): sessions, their clients, their tasks, clients in tasks."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from daemon import ERRAND, Daemon  # noqa: E402
from mcpclient import Client, alive, run_tests, text_of, wait_for  # noqa: E402
from people import equal, out, tasks  # noqa: E402

GRACE = {"ERRAND_SESSIONS_GRACE_S": "1"}


def client(d, *options):
    c = Client.errand(*options, state=d.state)
    c.initialize()
    return c


def start(c, line):
    said = c.tool("bash", command=line, description="d", run_in_background=True)
    return text_of(said).split()[-1]


def sessions(d):
    """name -> clients, tasks, live ones, and whether its end is due."""
    with d.operator() as op:
        return {s["name"]: (s["clients"], s["tasks"], s["live"], "endsInMs" in s)
                for s in op.ask("errand/sessions")["sessions"]}


def lives(d):
    return {t for t, s in tasks(d).items() if s["status"] == "running"}


def test_the_end_of_a_session_ends_its_tasks_and_nobody_elses():
    with Daemon() as d, client(d, "--session", "a") as a, client(d, "--session", "b") as b:
        mine, theirs = start(a, "exec sleep 600"), start(b, "exec sleep 600")
        out(d, "sessions", "end", "a")
        wait_for(lambda: mine not in tasks(d), 10)
        equal((lives(d), sessions(d)), ({theirs}, {"b": (1, 1, 1, False)}))


def test_a_client_whose_session_was_ended_goes_on_and_its_name_is_held_by_it():
    with Daemon(env=GRACE) as d, client(d, "--session", "a") as a, client(d) as nameless:
        for c in (a, nameless):
            start(c, "exec sleep 600")
        names = list(sessions(d))
        for name in names:
            out(d, "sessions", "end", name)
        wait_for(lambda: not sessions(d), 10)
        again = {start(c, "exec sleep 600") for c in (a, nameless)}
        equal(sessions(d), {name: (1, 1, 1, False) for name in names})
        equal(lives(d), again)


def test_a_nameless_session_ends_after_its_last_connection_and_says_why_its_tasks_did():
    with Daemon(env=GRACE) as d:
        with client(d) as a, client(d, "--session", "kept") as b:
            mine, kept = start(a, "exec sleep 600"), start(b, "exec sleep 600")
        wait_for(lambda: mine not in tasks(d), 10)
        equal(lives(d), {kept})
        trail = json.loads(out(d, "history", "--json", mine))["history"]
        equal([(e["door"], e["act"], e["detail"]) for e in trail],
              [("mcp", "start", "exec sleep 600"), ("host", "kill", "owner disposed"),
               ("host", "drop", "its session has ended")])


def test_ps_10_a_named_session_keeps_its_task_and_a_nameless_one_records_that_its_owner_ended():
    with Daemon(env=GRACE) as d:
        go = d.state + "/go"
        with client(d, "--session", "kept") as a, client(d) as b:
            kept = start(a, "until [ -e %s ]; do sleep 0.02; done; seq 10" % go)
            gone = start(b, "exec sleep 600")
        wait_for(lambda: gone not in tasks(d), 10)
        with open(go, "w", encoding="ascii"):
            out(d, "wait", kept)
        with client(d, "--session", "kept") as a:
            said = text_of(a.tool("task_output", task_id=kept))
            assert said.startswith("\n".join(str(i) for i in range(1, 11))), said
        assert "owner disposed" in out(d, "history", gone)


def test_a_connection_that_is_not_the_last_of_its_name_takes_nothing_along():
    with Daemon(env=GRACE) as d, client(d, "--session", "a") as a:
        with client(d, "--session", "a") as other:
            task = start(other, "exec sleep 600")
        wait_for(lambda: sessions(d) == {"a": (1, 1, 1, False)}, 10)
        assert task in text_of(a.tool("task_list"))


def test_a_client_in_a_task_goes_with_the_task_and_takes_its_own_along():
    inner = ("import sys; sys.path.insert(0, %r); sys.dont_write_bytecode = True\n"
             "from mcpclient import Client\n"
             "c = Client([%r, 'mcp'], state=%r); c.initialize()\n"
             "c.tool('bash', description='d', run_in_background=True,\n"
             "       command='echo $$ >%s/pid.new && mv %s/pid.new %s/pid; exec sleep 600')\n"
             "import signal; signal.pause()\n")
    lib = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib")
    with Daemon(env=GRACE) as d, client(d, "--session", "a") as a:
        task = start(a, "%s - <<'E'\n%sE" % (sys.executable, inner % (
            lib, ERRAND, d.state, d.state, d.state, d.state)))
        wait_for(lambda: os.path.exists(d.state + "/pid"), 20)
        with open(d.state + "/pid", encoding="ascii") as f:
            pid = int(f.read())
        equal((len(lives(d)), alive(pid)), (2, True))
        a.tool("task_kill", task_id=task)
        wait_for(lambda: not alive(pid), 20)
        equal(list(tasks(d)), [task])


if __name__ == "__main__":
    run_tests(globals())
