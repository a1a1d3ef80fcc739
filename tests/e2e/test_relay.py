# SPDX-License-Identifier: MIT
"""`errand mcp`: a daemon is found or started, and its death is no end of the client."""
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from daemon import ERRAND, Daemon, Operator, daemon_of  # noqa: E402
from mcpclient import Client, Folder, alive, run_tests, text_of, wait_for  # noqa: E402

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
ENV = {**os.environ, "ERRAND_DAEMON_IDLE_S": "5", "ERRAND_BASH_GRACE_MS": "200"}


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def client(state, *args, env=None, **more):
    c = Client.errand(*args, state=state, env={**ENV, **(env or {})}, **more)
    c.initialize()
    return c


def sleeper(c):
    task = c.text("bash", command="echo $$; exec sleep 600", description="d",
                  run_in_background=True).split()[-1]
    pid = wait_for(lambda: (lambda t: t if t[0].isdigit() else None)(
        c.text("task_output", task_id=task)), 10)
    return task, int(pid.split()[0])


# ---- a daemon is found or started ----

def test_the_first_client_starts_a_daemon_and_the_next_finds_it():
    with Folder() as state, client(state) as a, client(state) as b:
        pid = daemon_of(state)
        assert alive(pid)
        task, _ = sleeper(a)
        equal(b.text("task_list"), "(no background tasks)")
        assert task in a.text("task_list")
        with Operator(state) as op:
            equal(op.ask("errand/stat")["clients"], 3)
            equal(op.ask("errand/stat")["pid"], pid)


def test_clients_that_start_at_once_share_one_daemon():
    with Folder() as state:
        clients = [Client.errand(state=state, env=ENV) for _ in range(6)]
        try:
            for c in clients:
                c.initialize()
            with Operator(state) as op:
                equal(op.ask("errand/stat")["clients"], 7)
        finally:
            for c in clients:
                c.__exit__(None, None, None)


def test_a_started_daemon_is_of_no_client():
    with Folder() as state:
        with client(state, env={"ANTHROPIC_API_KEY": "secret", "ERRAND_SESSION": "s"}) as c:
            pid = daemon_of(state)
            with open("/proc/%d/environ" % pid, "rb") as f:
                env = f.read()
            assert b"secret" not in env and b"ERRAND_SESSION" not in env, env
            equal(os.readlink("/proc/%d/cwd" % pid), "/")
            equal(os.getsid(pid) == os.getsid(c.proc.pid), False)
            with open("/proc/%d/stat" % pid, encoding="ascii") as f:
                assert int(f.read().rsplit(")", 1)[1].split()[1]) != c.proc.pid
            equal([os.readlink("/proc/%d/fd/%d" % (pid, fd)) for fd in (0, 1, 2)],
                  ["/dev/null", "/dev/null", os.path.join(state, "host.log")])
            c.kill_server()
        assert alive(pid)


def test_a_stale_socket_is_no_daemon():
    with Daemon() as d:
        d.kill()
        with client(d.state) as c:
            equal(c.request("ping"), {})
        os.kill(daemon_of(d.state), signal.SIGTERM)


def test_the_user_manager_of_systemd_starts_it_where_there_is_one():
    with Folder() as state, tempfile.TemporaryDirectory() as top:
        os.mkdir(os.path.join(top, "systemd"))
        with open(os.path.join(top, "systemd", "private"), "wb"):
            pass
        fake = os.path.join(top, "systemd-run")
        with open(fake, "w", encoding="ascii") as f:
            f.write('#!/bin/sh\necho "$@" > "%s/said"\n'
                    'while [ "$1" != -- ]; do shift; done; shift\n'
                    'setsid "$@" </dev/null >/dev/null 2>&1 &\n' % top)
        os.chmod(fake, 0o755)
        env = {"XDG_RUNTIME_DIR": top, "PATH": top + ":" + os.environ["PATH"]}
        with client(state, env=env) as c:
            equal(c.text("bash", command="echo hi", description="d"), "hi\n")
        with open(os.path.join(top, "said"), encoding="utf-8") as f:
            said = f.read()
        assert said.startswith("--user --collect --quiet --property=KillMode=process "
                               "--property=OOMPolicy=continue --property=Delegate=yes "
                               "--setenv="), said
        assert "--setenv=ERRAND_DAEMON_IDLE_S=5" in said, said
        assert said.rstrip().endswith("daemon --state " + state), said


# ---- what passes through ----

def test_large_replies_and_requests_pass():
    with Folder() as state, client(state, env={"ERRAND_BASH_OUTPUT_LIMIT": "0"}) as c:
        command = "head -c 1500000 /dev/zero | tr '\\0' x; : " + "y" * 100000
        equal(len(c.text("bash", command=command, description="d")), 1500000)


def test_a_line_that_is_too_long_is_refused_and_the_next_is_answered():
    with Folder() as state, client(state) as c:
        c.proc.stdin.write(b"x" * (17 << 20) + b"\n")
        equal(c.request("ping"), {})
        wait_for(lambda: any("longer than 16 MiB" in str(m) for m in c.unread), 5)


def test_each_client_hands_on_its_own_environment_and_folder():
    with Folder() as state, tempfile.TemporaryDirectory() as one, \
            client(state, env={"WHO": "one"}, cwd=one) as a, \
            client(state, env={"WHO": "two"}, cwd="/") as b:
        equal(a.text("bash", command="echo $WHO; pwd", description="d").split(), ["one", one])
        equal(b.text("bash", command="echo $WHO; pwd", description="d").split(), ["two", "/"])


def test_a_named_session_goes_on_with_the_next_client():
    with Folder() as state:
        with client(state, "--session", "mine") as c:
            task, pid = sleeper(c)
        with client(state, "--session", "mine") as c:
            assert task in c.text("task_list") and alive(pid)


def test_each_way_to_go_is_quick():
    for way in ("EOF", "SIGINT", "SIGTERM", "SIGHUP"):
        with Folder() as state, client(state) as c:
            c.post_tool("bash", command="exec sleep 600", description="d")
            c.request("ping")
            began = time.monotonic()
            if way == "EOF":
                c.proc.stdin.close()
            else:
                c.proc.send_signal(getattr(signal, way))
            equal(c.wait_exit(2), 0)
            assert time.monotonic() - began < 0.5, way


# ---- the daemon's death ----

def test_after_the_daemons_death_the_next_request_is_answered_by_another():
    with Folder() as state, client(state) as c:
        first = daemon_of(state)
        os.kill(first, signal.SIGKILL)
        equal(c.request("ping"), {})
        equal(c.text("bash", command="echo hi", description="d"), "hi\n")
        assert daemon_of(state) not in (0, first)


def test_what_a_daemon_left_unanswered_is_asked_of_the_next():
    with Folder() as state, client(state) as c:
        first = daemon_of(state)
        os.kill(first, signal.SIGSTOP)
        asked = [c.post("ping") for _ in range(20)]
        os.kill(first, signal.SIGKILL)
        for number in asked:
            equal(c.join(number), {})


def test_a_client_of_the_modern_era_needs_no_handshake_again():
    with Folder() as state, Client.errand(state=state, env=ENV) as c:
        c.use_modern()
        c.request("tools/list")
        os.kill(daemon_of(state), signal.SIGKILL)
        equal(text_of(c.tool("bash", command="echo hi", description="d")), "hi\n")


def test_notifications_are_not_repeated_for_ever():
    with Folder() as state, client(state) as c:
        for _ in range(3):
            c.notify("notifications/initialized")
        c.request("ping")
        os.kill(daemon_of(state), signal.SIGKILL)
        equal(c.request("ping"), {})
        equal(c.unread, [])


if __name__ == "__main__":
    run_tests(globals())
