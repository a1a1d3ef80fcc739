# SPDX-License-Identifier: MIT
"""`errand daemon`: its lock and socket, who may come in, what clients see of each other."""
import json
import os
import re
import signal
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from daemon import ERRAND, Agent, Daemon, Lines, Refused, hello  # noqa: E402
from mcpclient import Client, alive, only_root, run_tests, wait_for  # noqa: E402


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def refused(fn):
    try:
        fn()
    except Refused as e:
        return str(e)
    raise AssertionError("it was let in")


def sleeper(a):
    """Starts a task that prints its pid and stays; returns its id and the pid."""
    text = a.text("bash", command="echo $$; exec sleep 600", description="d",
                  run_in_background=True)
    task = text.split()[-1]
    pid = wait_for(lambda: (lambda t: t if t[0].isdigit() else None)(
        a.text("task_output", task_id=task)), 10)
    return task, int(pid.split()[0])


# ---- lock and socket ----

def test_folder_and_socket_are_private():
    with tempfile.TemporaryDirectory() as top:
        state = os.path.join(top, "a", "b")
        with Daemon(state):
            equal(stat.S_IMODE(os.stat(state).st_mode), 0o700)
            for name in ("host.sock", "host.lock"):
                equal(stat.S_IMODE(os.stat(os.path.join(state, name)).st_mode), 0o600)


def test_a_state_path_may_be_longer_than_a_sockets_name():
    with tempfile.TemporaryDirectory() as top:
        state = os.path.join(top, "x" * 120, "y" * 120)
        with Daemon(state) as d, d.operator() as op:
            equal(op.ask("errand/stat")["state"], state)


def test_a_second_daemon_is_refused_and_names_the_first():
    with Daemon() as d:
        done = subprocess.run([ERRAND, "daemon", "--state", d.state], capture_output=True,
                              timeout=10, check=False)
        equal((done.returncode, done.stdout), (1, b""))
        assert b"another host (pid %d)" % d.proc.pid in done.stderr, done.stderr
        with d.operator() as op:
            equal(op.ask("errand/stat")["pid"], d.proc.pid)


def test_the_socket_of_a_dead_daemon_is_replaced():
    with Daemon() as d:
        d.kill()
        assert os.path.exists(os.path.join(d.state, "host.sock"))
        d.start()
        with d.operator() as op:
            equal(op.ask("errand/stat")["pid"], d.proc.pid)


def test_a_removed_socket_is_bound_again():
    with Daemon() as d, d.operator() as before:
        os.unlink(os.path.join(d.state, "host.sock"))
        wait_for(d.is_up, 10, "the socket again")
        with d.operator() as after:
            equal(after.ask("errand/stat")["pid"], d.proc.pid)
        equal(before.ask("errand/stat")["pid"], d.proc.pid)


def test_a_daemon_without_its_folder_leaves_with_its_tasks():
    with tempfile.TemporaryDirectory() as top:
        state = os.path.join(top, "s")
        with Daemon(state) as d:
            with d.agent(session="s") as a:
                _, pid = sleeper(a)
            wait_for(lambda: subprocess.run(["rm", "-rf", state], check=False,
                                            stderr=subprocess.DEVNULL).returncode == 0, 10)
            equal(d.proc.wait(10), 0)
            wait_for(lambda: not alive(pid), 10)


def test_a_signal_ends_it_and_removes_the_socket():
    for sig in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        with Daemon() as d:
            equal(d.kill(sig), 0)
            assert not os.path.exists(os.path.join(d.state, "host.sock"))


def test_it_goes_when_nobody_needs_it_any_more():
    with Daemon(env={"ERRAND_DAEMON_IDLE_S": "1"}) as d:
        equal(d.proc.wait(20), 0)


def test_a_client_and_a_live_task_keep_it():
    with Daemon(env={"ERRAND_DAEMON_IDLE_S": "1"}) as d:
        with d.agent(session="s") as a:
            task, _ = sleeper(a)
        with d.operator() as op:
            equal(op.ask("errand/stat")["busy"], True)
            op.ask("errand/kill", id=task)
            op.ask("errand/wait", id=task)
        equal(d.proc.wait(20), 0)


def wakes(pid):
    """How often any thread of @pid has slept and gone on."""
    total = 0
    for thread in os.listdir("/proc/%d/task" % pid):
        with open("/proc/%d/task/%s/status" % (pid, thread), encoding="ascii") as f:
            total += int(re.search(r"^voluntary_ctxt_switches:\s*(\d+)", f.read(), re.M).group(1))
    return total


def rests(*pids):
    """Waits for a second and a half in which none of them wakes."""
    seen = {"count": -1, "since": 0}

    def is_quiet():
        count = sum(wakes(pid) for pid in pids)
        if count != seen["count"]:
            seen.update(count=count, since=time.monotonic())
        return time.monotonic() - seen["since"] > 1.5
    wait_for(is_quiet, 20, "a daemon that rests")


def test_who_has_nothing_to_do_sleeps():
    with Daemon() as d:
        rests(d.proc.pid)
        with Client.errand("--session", "s", env=d.env) as c:
            c.initialize()
            c.tool("bash", command="exec sleep 600", description="d", run_in_background=True)
            waiting = c.post_tool("task_output", task_id="bash-1", wait=True, timeout_ms=60000)
            rests(d.proc.pid, c.proc.pid)
            assert not c.has(waiting)


def test_wrong_usage_and_settings_are_told():
    done = subprocess.run([ERRAND, "daemon", "--state", ""], capture_output=True, check=False)
    equal(done.returncode, 2)
    done = subprocess.run([ERRAND, "daemon"], capture_output=True, check=False,
                          env={**os.environ, "ERRAND_DAEMON_IDLE_S": "-1"})
    equal(done.returncode, 2)
    assert b"ERRAND_DAEMON_IDLE_S" in done.stderr, done.stderr


# ---- who may come in ----

def connect_as(state, *prefix):
    """The host's first line to a client that runs under @prefix."""
    code = ("import socket,sys; s=socket.socket(socket.AF_UNIX); s.connect(sys.argv[1])\n"
            "try: s.sendall(sys.stdin.buffer.read())\n"
            "except BrokenPipeError: pass\n"
            "f=s.makefile('rb')\n"
            "try: print(f.readline().decode())\n"
            "except ConnectionResetError: print(f.readline().decode())")
    done = subprocess.run([*prefix, sys.executable, "-c", code,
                           os.path.join(state, "host.sock")],
                          input=hello("operator"), capture_output=True, timeout=20, check=False)
    assert done.stdout.strip(), done.stderr
    return json.loads(done.stdout)["errand"]


def test_another_user_is_refused_and_told_why():
    only_root()
    with Daemon() as d:
        # Modes keep others out; without them the kernel's word about the peer has to.
        os.chmod(d.state, 0o755)
        os.chmod(os.path.join(d.state, "host.sock"), 0o666)
        said = connect_as(d.state, "setpriv", "--reuid", "65534", "--regid", "65534",
                          "--clear-groups")
        assert "uid 0 only" in said["error"] and "uid 65534" in said["error"], said


def test_a_contained_client_is_refused_unless_configured():
    only_root()
    contained = ("unshare", "--pid", "--fork")
    with Daemon() as d:
        assert "namespace of your own" in connect_as(d.state, *contained)["error"]
    with Daemon(env={"ERRAND_DAEMON_CONTAINED_CLIENTS": "1"}) as d:
        assert "error" not in connect_as(d.state, *contained)


def test_a_bad_hello_is_refused_with_a_reason():
    bad = ((b"GET / HTTP/1.1\n", "not JSON"),
           (b"{}\n", "expected {\"errand\""),
           (hello(protocol=2), "speaks version 1"),
           (hello(role="king"), "role"),
           (hello(nonce="x" * 32), "nonce"),
           (hello(session="~operator"), "session"),
           (hello(session=""), "session"),
           (hello(umask=-1), "umask"),
           (hello(limits=[[0, "x", None]]), "limits"),
           (hello(limits=[[7, 1, 1]]), "limits"),
           (hello(context=b"relative\0"), "not absolute"),
           (hello(context=b"/x"), "end with a NUL"),
           (hello(context_bytes=0), "context_bytes"),
           (hello(context_bytes=5 << 20), "context_bytes"),
           (b'{"errand":"' + b"x" * 70000 + b'"}\n', "longer than"))
    with Daemon() as d:
        for said, why in bad:
            with Lines(d.state, said) as lines:
                text = refused(lines.welcome)
                assert why in text, (said[:80], text)
                equal(lines.line(), None)
        with d.operator() as op:
            equal(op.ask("errand/stat")["clients"], 1)


def test_a_hello_may_come_byte_by_byte_and_half_of_one_harms_nobody():
    with Daemon() as d, Lines(d.state) as slow, Lines(d.state) as half:
        half.send(hello()[:20])
        for byte in hello("operator", context=b"/\0A=\xff\0"):
            slow.send(bytes([byte]))
        equal(slow.welcome()["pid"], d.proc.pid)


def test_what_is_no_numbered_line_ends_the_connection():
    for junk in (b"hello\n", b"0 {}\n", b"-1 {}\n", b"ack\n", b"99999999999999999999999 {}\n"):
        with Daemon() as d, Agent(d.state) as a:
            a.send(junk)
            equal(a.next(), None)
            with d.agent() as other:
                equal(other.request("ping"), {})


# ---- what clients see of each other ----

def test_two_clients_see_only_their_own_tasks_and_the_operator_sees_all():
    with Daemon() as d, d.agent() as a, d.agent() as b, d.operator() as op:
        a_task, a_pid = sleeper(a)
        b_task, b_pid = sleeper(b)
        assert a_task in a.text("task_list") and b_task not in a.text("task_list")
        equal(b.text("task_kill", task_id=a_task),
              "Error: task %s belongs to another session" % a_task)
        equal([t["id"] for t in op.ask("errand/list")["tasks"]], [a_task, b_task])
        equal(op.ask("errand/kill", id=b_task), {"requested": True})
        wait_for(lambda: not alive(b_pid), 10)
        assert alive(a_pid)


def test_an_operator_looks_on_without_taking_anything_away():
    with Daemon() as d, d.agent() as a, d.operator() as op:
        task, _ = sleeper(a)
        op.ask("errand/kill", id=task)
        ended = op.ask("errand/wait", id=task)["task"]
        equal((ended["status"], op.ask("errand/get", id=task)["task"]), ("killed", ended))
        equal(op.ask("errand/kill", id=task), {"requested": False})
        notices = [block["text"] for block in a.tool("task_list")["content"][1:]]
        equal(len(notices), 1)
        assert task in notices[0], notices


def test_operators_errors_name_the_id_and_the_method():
    with Daemon() as d, d.agent() as a, d.operator() as op:
        equal(refused(lambda: op.ask("errand/get", id="bash-9")), "unknown task bash-9")
        assert "id must be a string" in refused(lambda: op.ask("errand/kill"))
        assert "no such method" in refused(lambda: op.ask("errand/nope"))
        task, _ = sleeper(a)
        assert "timeout" in refused(lambda: op.ask("errand/wait", id=task, timeoutMs=-1))


def test_a_wait_may_time_out_and_others_are_answered_meanwhile():
    with Daemon() as d, d.agent() as a, d.operator() as op:
        task, _ = sleeper(a)
        waiting = op.post("errand/wait", id=task)
        equal(op.ask("errand/wait", id=task, timeoutMs=10)["task"]["status"], "running")
        op.post("errand/kill", id=task)
        answers = [op.answer(), op.answer()]
        equal(sorted(answer["id"] for answer in answers), [waiting, waiting + 2])


def test_an_operator_that_goes_while_it_waits_harms_nobody():
    with Daemon() as d, d.agent() as a:
        task, pid = sleeper(a)
        with d.operator() as op:
            op.post("errand/wait", id=task)
            op.ask("errand/stat")
        assert alive(pid)
        a.tool("task_kill", task_id=task)
        wait_for(lambda: not alive(pid), 10)
        equal(a.request("ping"), {})


def test_a_client_that_a_task_has_started_is_no_operator():
    with Daemon() as d, d.agent() as a, d.agent() as b:
        mine, _ = sleeper(a)
        theirs, _ = sleeper(b)
        code = ("import sys; sys.path.insert(0, %r); sys.dont_write_bytecode = True\n"
                "from daemon import Operator\n"
                "op = Operator(%r)\n"
                "print(*[t['id'] for t in op.ask('errand/list')['tasks']])\n"
                "try: op.ask('errand/kill', id=%r)\n"
                "except Exception as e: print(e)\n"
                % (os.path.join(os.path.dirname(__file__), "..", "lib"), d.state, theirs))
        for prefix in ("", "setsid ", "env -u ERRAND_TASK "):
            got = a.text("bash", command="%s%s - <<'E'\n%sE" % (prefix, sys.executable, code),
                         description="d").splitlines()
            assert mine in got[0].split() and theirs not in got[0].split(), got
            equal(got[1], "task %s belongs to another session" % theirs)


# ---- what a client hands on ----

def test_each_client_hands_on_its_own_folder_environment_umask_and_limits():
    show = "pwd; echo $WHO; umask; ulimit -n; echo ${ANTHROPIC_API_KEY-none}"
    path = b"PATH=" + os.environb[b"PATH"]
    one = b"\0".join((b"/", b"WHO=one", path, b"ANTHROPIC_API_KEY=k", b""))
    two = b"\0".join((b"/tmp", b"WHO=\xff\xfe", path, b""))
    limits = [[i, None, None] for i in range(7)] + [[7, 100, 100]]
    with Daemon() as d, d.agent(context=one, umask=0o27, limits=limits) as a, \
            d.agent(context=two, umask=0o77) as b:
        equal(a.text("bash", command=show, description="d").split(),
              ["/", "one", "0027", "100", "none"])
        got = b.text("bash", command=show + "; printf %s \"$WHO\" | wc -c",
                     description="d").split()
        equal((got[0], got[2], got[5]), ("/tmp", "0077", "2"))


def test_a_client_without_a_folder_can_run_nothing_relative():
    with Daemon() as d, d.agent(context=b"\0PATH=/bin:/usr/bin\0") as a:
        assert "folder is gone" in a.text("bash", command="pwd", description="d")
        equal(a.text("bash", command="pwd", description="d", workdir="/"), "/\n")


# ---- numbered lines ----

def test_each_line_is_answered_under_its_number_or_told_to_have_no_answer():
    with Daemon() as d, Agent(d.state) as a:
        ask = b'{"jsonrpc":"2.0","id":"x","method":"ping"}'
        note = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
        a.send(b"7 %s\n8 %s\n9 \nlong 10\n" % (ask, note))
        equal(a.next(), (7, b'{"jsonrpc":"2.0","id":"x","result":{}}'))
        equal(a.next(), (8, b""))
        equal(a.next(), (9, b""))
        number, text = a.next()
        assert number == 10 and b"longer than 16 MiB" in text, text


def test_a_handshake_is_to_be_kept_and_a_cancelled_call_has_no_answer():
    with Daemon() as d, Agent(d.state) as a:
        a.initialize()
        equal(a.seen[0], ("keep", b"1"))
        number = a.post_tool("bash", command="exec sleep 600", description="d")
        a.send(b'50 {"jsonrpc":"2.0","method":"notifications/cancelled","params":'
               b'{"requestId":%d}}\n' % number)
        equal(sorted([a.next(), a.next()]), [(number, b""), (50, b"")])


def test_what_was_not_acknowledged_is_told_again():
    with Daemon() as d, d.agent(session="s", acks=False) as a, d.operator() as op:
        a.tool("bash", command="echo hi", description="d", run_in_background=True)
        op.ask("errand/wait", id="bash-1")
        equal(a.text("task_output", task_id="bash-1").splitlines()[0], "hi")
        a.close()
        with d.agent(session="s") as b:
            assert len(b.tool("task_list")["content"]) == 2
            equal(b.text("task_output", task_id="bash-1").splitlines()[0], "hi")
            equal(b.text("task_output", task_id="bash-1").splitlines()[0], "(no new output)")


def test_what_a_client_acknowledges_last_before_it_goes_is_not_told_again():
    with Daemon() as d, d.operator() as op:
        for n in range(20):
            a = d.agent(session="s%d" % n)
            a.text("bash", command="echo hi", description="d")
            a.close()
            wait_for(lambda: op.ask("errand/stat")["clients"] == 1, 10)
            with d.agent(session="s%d" % n) as b:
                assert "hi" not in b.text("task_output", task_id="bash-%d" % (n + 1)), n


def test_bye_is_answered_behind_what_was_asked_before():
    with Daemon() as d, d.agent() as a:
        a.send(b'5 {"jsonrpc":"2.0","id":5,"method":"ping"}\n'
               b'6 {"jsonrpc":"2.0","id":6,"method":"tools/call",'
               b'"params":{"name":"task_list"}}\nbye\n')
        got = [a.next() for _ in range(3)]
        equal([first for first, _ in got], [5, 6, "bye"])


# ---- owners ----

def test_a_client_without_a_name_takes_its_tasks_along_after_a_grace():
    with Daemon(env={"ERRAND_SESSIONS_GRACE_S": "1"}) as d:
        with d.agent() as a:
            _, pid = sleeper(a)
        wait_for(lambda: not alive(pid), 10)
        with d.operator() as op:
            wait_for(lambda: op.ask("errand/stat")["owners"] == 0, 10)
            equal(op.ask("errand/list")["tasks"], [])


def test_a_client_that_comes_back_in_time_goes_on():
    nonce = "ab" * 16
    with Daemon() as d:
        with d.agent(nonce=nonce) as a:
            task, pid = sleeper(a)
        with d.agent(nonce=nonce) as a:
            assert task in a.text("task_list")
            assert alive(pid)


def test_a_named_session_is_kept_and_shared():
    with Daemon(env={"ERRAND_SESSIONS_GRACE_S": "1"}) as d:
        with d.agent(session="s") as a, d.agent(session="s") as b:
            task, pid = sleeper(a)
            assert task in b.text("task_list")
        with d.agent() as other:
            equal(other.text("task_list"), "(no background tasks)")
        with d.agent(session="s") as a:
            assert task in a.text("task_list") and alive(pid)


def test_a_client_killed_in_the_middle_of_a_line_is_as_gone_as_any():
    with Daemon() as d:
        a = d.agent()
        a.send(b"77 {\"jsonrpc\":")
        a.close()
        with d.operator() as op:
            wait_for(lambda: op.ask("errand/stat")["clients"] == 1, 10)


if __name__ == "__main__":
    run_tests(globals())
