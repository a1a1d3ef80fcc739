# SPDX-License-Identifier: MIT
"""One daemon after another: a newer version takes over, and nothing is lost or done twice."""
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from daemon import ERRAND, Daemon, Lines, Operator, Refused, hello  # noqa: E402
from mcpclient import (Client, Folder, alive, host_process, run_tests, text_of,  # noqa: E402
                       wait_for)

ENV = {**os.environ, "ERRAND_DAEMON_IDLE_S": "20", "ERRAND_BASH_GRACE_MS": "200"}
OURS = subprocess.run([ERRAND, "--version"], capture_output=True, check=True,
                      text=True).stdout.split()[1]
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def version(step):
    """Ours, its last number changed by @step; of the same length."""
    head, last = OURS.rsplit(".", 1)
    assert 0 <= int(last) + step <= 9, "no digit is left for another version"
    return "%s.%d" % (head, int(last) + step)


def older():
    """As long as ours, and all zeros."""
    return re.sub(r"\d", "0", OURS)


def program(top, other):
    """This build's errand, which says that it is version @other."""
    folder = os.path.join(top, other)
    if not os.path.isdir(folder):
        os.mkdir(folder)
        with open(ERRAND, "rb") as f:
            code = f.read()
        path = os.path.join(folder, "errand")
        with open(path, "wb") as f:
            f.write(code.replace(OURS.encode() + b"\0", other.encode() + b"\0"))
        os.chmod(path, 0o700)
        os.symlink(os.path.join(os.path.dirname(ERRAND), "errand-shim"),
                   os.path.join(folder, "errand-shim"))
        said = subprocess.run([path, "--version"], capture_output=True, check=True).stdout
        equal(said, b"errand %s\n" % other.encode())
    return os.path.join(folder, "errand")


def client(command, state, *args, env=None):
    c = Client([command, "mcp", *args], state=state, env={**ENV, **(env or {})})
    c.initialize()
    return c


def sleeper(c):
    c.tool("bash", command="echo $$; exec sleep 600", description="d", run_in_background=True)
    return int(wait_for(lambda: (lambda t: t if t[0].isdigit() else None)(
        c.text("task_output", task_id="bash-1"))).split()[0])


def said_version(state):
    with Operator(state) as op:
        return op.said["version"]


# ---- it takes over ----

def test_a_newer_client_has_the_daemon_replaced_and_tasks_and_clients_go_on():
    with Folder() as top, Folder() as state, client(ERRAND, state) as a:
        pid, first = sleeper(a), host_process(state)
        go = os.path.join(top, "go")
        call = a.post_tool("bash", description="d", command="echo once >> %s/ran; until [ -e %s ]; "
                           "do sleep 0.01; done; echo done" % (top, go))
        wait_for(lambda: os.path.exists(os.path.join(top, "ran")))
        with client(program(top, version(1)), state) as b:
            equal(b.text("bash", command="echo hi", description="d"), "hi\n")
            equal(said_version(state), version(1))
            wait_for(lambda: not alive(first))
            assert alive(pid) and host_process(state) != first
            with open(go, "wb"):
                pass
            equal(text_of(a.join(call)), "done\n")
            assert "bash-1 [bash] running" in a.text("task_list"), a.text("task_list")
        with open(os.path.join(top, "ran"), encoding="ascii") as f:
            equal(f.read(), "once\n")
        equal((a.stderr_text(), a.unread), ("", []))
        with open(os.path.join(state, "host.log"), encoding="utf-8") as f:
            said = f.read()
        assert "errand: this is errand %s, and makes way for errand %s\n" % (
            OURS, version(1)) in said, said


def test_a_newer_daemon_that_is_started_by_hand_takes_over():
    with Folder() as top, Daemon() as d:
        with d.agent(session="s") as a:
            pid = int(a.text("bash", command="echo $PPID; exec sleep 600", description="d",
                             run_in_background=True) and wait_for(lambda: re.match(
                                 r"\d+", a.text("task_output", task_id="bash-1"))).group())
        command = [program(top, version(1)), "daemon", "--state", d.state]
        with Daemon(d.state, command=command) as newer:
            equal(d.proc.wait(10), 0)
            assert alive(pid)
            with newer.agent(session="s") as a:
                assert "bash-1 [bash] running" in a.text("task_list")


def test_at_many_handovers_every_call_is_answered_and_runs_once():
    versions = (1, 2, 3)
    with Folder() as top, Folder() as state:
        log, enough, asked, wrong = os.path.join(top, "log"), threading.Event(), [], []

        def work(name):
            with client(ERRAND, state, "--session", name) as c:
                while not enough.is_set():
                    mark = "%s-%d" % (name, len(asked))
                    asked.append(mark)
                    text = c.text("bash", command="echo %s >> %s; echo %s" % (mark, log, mark),
                                  description="d")
                    if text != mark + "\n":
                        wrong.append((mark, text))
        newer = [program(top, version(step)) for step in versions]
        threads = [threading.Thread(target=work, args=(name,)) for name in ("x", "y", "z")]
        with client(ERRAND, state):
            for thread in threads:
                thread.start()
            try:
                for command, step in zip(newer, versions):
                    with client(command, state) as c:
                        c.request("ping")
                        equal(said_version(state), version(step))
                        # The next one comes when this one has work of its own.
                        before = len(asked)
                        wait_for(lambda n=before: len(asked) > n + 6)
            finally:
                enough.set()
                for thread in threads:
                    thread.join()
        equal(wrong, [])
        with open(log, encoding="ascii") as f:
            equal(sorted(f.read().split()), sorted(asked))


# ---- it does not ----

def test_a_client_of_the_same_or_an_older_version_uses_the_daemon_that_is_there():
    with Folder() as top, Folder() as state, client(ERRAND, state) as a:
        pid, first = sleeper(a), host_process(state)
        for command in (ERRAND, program(top, older())):
            with client(command, state) as c:
                equal(c.text("bash", command="echo hi", description="d"), "hi\n")
                equal(c.stderr_text(), "")
            equal(host_process(state), first)
        done = subprocess.run([program(top, older()), "daemon", "--state", state],
                              capture_output=True, timeout=20, check=False)
        equal(done.returncode, 1)
        assert b"another host (pid %d)" % first in done.stderr, done.stderr
        assert alive(pid) and alive(first)


def ask(state, said):
    with Lines(state, hello("handover", version=said)) as lines:
        return lines.welcome()


def test_who_is_not_newer_is_told_so():
    with Daemon() as d:
        for said in (OURS, older(), "", "x", "v99", "-1", OURS + "-rc1", OURS + ".0"):
            try:
                ask(d.state, said)
                raise AssertionError("it made way for %r" % said)
            except Refused as e:
                equal(str(e), "errand %s makes way for a newer one only, not for errand %s"
                      % (OURS, said))
        equal(d.is_up(), True)
        equal(ask(d.state, OURS + ".1")["version"], OURS)
        equal(d.proc.wait(10), 0)


def test_a_task_ends_no_daemon():
    with Daemon() as d, d.agent() as a:
        code = ("import sys; sys.path.insert(0, %r); sys.dont_write_bytecode = True\n"
                "from daemon import Lines, hello\n"
                "print(Lines(%r, hello('handover', version='99')).line().decode())"
                % (os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"), d.state))
        for prefix in ("", "setsid ", "env -u ERRAND_TASK "):
            text = a.text("bash", command="%s%s - <<'E'\n%s\nE" % (prefix, sys.executable, code),
                          description="d")
            assert "a task may not end the host" in text, text
        equal(d.is_up(), True)


def test_a_daemon_that_cannot_keep_what_happens_stays_and_serves():
    with Folder() as top, Daemon() as d, d.agent(session="s") as a:
        go = os.path.join(top, "go")
        a.tool("bash", command="until [ -e %s ]; do sleep 0.01; done" % go, description="d",
               run_in_background=True)
        hard = resource.prlimit(d.proc.pid, resource.RLIMIT_FSIZE)[1]
        resource.prlimit(d.proc.pid, resource.RLIMIT_FSIZE, (0, hard))
        with open(go, "wb"):
            pass
        wait_for(lambda: "errand/unsaved" in a.tool("task_list").get("_meta", {}), 10)
        with client(program(top, version(1)), d.state) as c:
            c.request("ping")
            equal(said_version(d.state), OURS)
        resource.prlimit(d.proc.pid, resource.RLIMIT_FSIZE, (hard, hard))
        wait_for(lambda: "errand/unsaved" not in a.tool("task_list").get("_meta", {}), 10)
        with client(program(top, version(1)), d.state):
            equal(said_version(d.state), version(1))


# ---- they do not understand each other ----

class Stranger:
    """A host that speaks another protocol."""

    def __init__(self, state, said):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(os.path.join(state, "host.sock"))
        self.socket.listen(8)
        self.line = json.dumps({"errand": {"protocol": 2, "version": said, "pid": 4711,
                                           "error": "version 2 only"}}).encode() + b"\n"
        threading.Thread(target=self.answer, daemon=True).start()

    def answer(self):
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            with connection:
                connection.sendall(self.line)
                while connection.recv(65536):
                    pass

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()


def test_a_daemon_of_another_protocol_is_named_with_both_versions_and_what_to_do():
    for said, advice in (("99.0", "use the newer program"),
                         (older(), "end the daemon, no task ends with it")):
        with Folder() as state, Stranger(state, said):
            # Nobody may have it taken away.
            with open(os.path.join(state, "host.lock"), "wb") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                want = ("the daemon is errand %s (pid 4711) and speaks version 2 of the protocol, "
                        "this is errand %s and speaks version 1: %s" % (said, OURS, advice))
                done = subprocess.run([ERRAND, "ls", "--state", state], capture_output=True,
                                      timeout=20, check=False, text=True)
                assert done.returncode == 1 and want in done.stderr, done
                done = subprocess.run([ERRAND, "mcp", "--state", state], input=PING,
                                      capture_output=True, timeout=20, check=False)
                equal((done.returncode, done.stdout), (0, PONG))
                equal(done.stderr.decode(), "errand: no daemon: %s; this client keeps its tasks "
                      "itself, and they end with it\n" % want)
            os.unlink(os.path.join(state, "host.sock"))


def test_an_older_errand_does_not_touch_what_a_newer_one_keeps():
    with Folder() as state:
        with Daemon(state) as d:
            d.kill(signal.SIGTERM)
        path = os.path.join(state, "errand.db")
        with sqlite3.connect(path) as db:
            db.execute("PRAGMA user_version = 999")
        db.close()
        before = {name: open(os.path.join(state, name), "rb").read()
                  for name in os.listdir(state) if name.startswith("errand.db")}
        done = subprocess.run([ERRAND, "mcp", "--state", state], input=PING, capture_output=True,
                              timeout=20, check=False)
        equal((done.returncode, done.stdout), (0, PONG))
        said = done.stderr.decode()
        assert "is of a newer errand (version 999" in said and "keeps its tasks itself" in said, said
        after = {name: open(os.path.join(state, name), "rb").read()
                 for name in os.listdir(state) if name.startswith("errand.db")}
        equal(after, before)


def test_doctor_says_which_of_both_is_older():
    with Folder() as top, Daemon() as d:
        for command, want in ((program(top, version(1)), "it makes way for the next"),
                              (program(top, older()), "this one is outdated")):
            done = subprocess.run([command, "doctor", "--state", d.state], capture_output=True,
                                  text=True, timeout=20, check=False)
            assert re.search("^note +host +pid %d is version %s.*%s" % (
                d.proc.pid, re.escape(OURS), want), done.stdout, re.M), done.stdout
        equal(d.is_up(), True)


if __name__ == "__main__":
    run_tests(globals())
