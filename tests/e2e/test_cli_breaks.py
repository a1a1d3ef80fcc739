# SPDX-License-Identifier: MIT
"""Hosts that go while a person's command asks them: at whatever step, it is handled alike."""
import json
import os
import re
import socket
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from brokenhost import BREAKS, BrokenHost  # noqa: E402
from daemon import Daemon, Operator  # noqa: E402
from mcpclient import run_tests, wait_for  # noqa: E402
from people import (at_the_gate, env_of, equal, err, in_terminal, kill_host,  # noqa: E402
                    no_daemon, out, run, running, tasks)


def at_every_step(d, *args, code=0):
    """stdout of `errand ARGS` for each way in which connections may break at each request that
    it makes; all have to end with @code."""
    said = []
    for n in range(1, 10):
        n_broken = 0
        for how in BREAKS:
            for more in ((), ((1, "before"), (1, "half"))):
                with BrokenHost(d, [(n, how), *more]) as host:
                    said.append(out(host, *args, code=code))
                    n_broken += host.n_broken
        if not n_broken:
            return said
    raise AssertionError("%s asks without an end" % (args,))


def test_whoever_looks_sees_the_same_at_whatever_step_the_host_goes():
    with Daemon() as d:
        task = run(d, "--label", "x", "echo hi; exit 7")
        out(d, "wait", task, code=7)
        for args, code in ((("output", task), 0), (("logs", task), 0), (("logs", "-f", task), 0),
                           (("wait", task, task, task), 7), (("wait", "--any", task), 7),
                           (("output", "--wait", task), 0), (("output", "bash-9"), 3)):
            want = out(d, *args, code=code)
            for said in at_every_step(d, *args, code=code):
                equal((args, said), (args, want))
        for said in at_every_step(d, "ls", "--json"):
            equal([t["id"] for t in json.loads(said)["tasks"]], [task])
        for said in at_every_step(d, "ls"):
            assert re.search(r"^bash-1 .* x +exit code: 7", said, re.M), said
        for said in at_every_step(d, "sessions"):
            assert re.search(r"^people +0 +1 +0 ", said, re.M), said


def test_what_may_be_asked_twice_is_done_at_whatever_step_the_host_goes():
    with Daemon() as d:
        live = run(d, "sleep 600")
        for said in at_every_step(d, "extend", live, "1h"):
            equal(said, "%s: ends in 1h\n" % live)
        for said in at_every_step(d, "kill", live):
            assert said in (live + ": kill requested\n", live + ": had ended already\n"), said
        out(d, "wait", live, code=143)
        for said in at_every_step(d, "kill", "--leftovers", live):
            equal(said, "%s: 0 processes found, 0 left\n" % live)
        at_every_step(d, "kill", "bash-9", live, code=3)


def test_a_start_is_made_once_at_whatever_step_the_host_goes():
    with Daemon() as d:
        for n, how in enumerate(BREAKS, 1):
            with BrokenHost(d, [(1, how)]) as host:
                equal(out(host, "run", "true"), "bash-%d\n" % n)
            equal((how, len(tasks(d))), (how, n))


def test_run_and_wait_goes_on_at_whatever_step_the_host_goes():
    with Daemon() as d:
        for n in range(2, 5):
            for how in BREAKS:
                with BrokenHost(d, [(n, how), (1, how)]) as host:
                    equal(out(host, "run", "--wait", "echo hi; exit 7", code=7), "hi\n")


def test_the_end_of_a_session_is_told_alike_at_whatever_step_the_host_goes():
    with Daemon() as d:
        for how in BREAKS:
            out(d, "wait", run(d, "--session", "mine", "true"))
            with BrokenHost(d, [(1, how)]) as host:
                equal(out(host, "sessions", "end", "mine"), "0 live tasks are ended with it\n")


def test_a_host_that_goes_whenever_it_is_asked_is_given_up():
    with Daemon() as d:
        task = run(d, "true")
        for args in (("ls",), ("wait", task), ("run", "true"), ("logs", task)):
            with BrokenHost(d, [(1, "before")] * 100) as host:
                trouble = err(host, *args, code=1)
                assert "one host after the other" in trouble, trouble
                assert len(host.breaks) > 50, host.breaks


def test_a_host_that_says_nonsense_is_refused_in_words():
    for answer, word in ((b"no json\n", "not JSON"), (b"{}\n", "no result"),
                         (b'{"id":1,"result":[]', ""), (b"\xff\0\n", "not JSON"),
                         (b'{"jsonrpc":"2.0","id":77,"result":{}}\n', "what was not asked")):
        with Daemon() as d:
            task = run(d, "true")
            for args in (("wait", task),):
                with BrokenHost(d, [(1, answer)] * (1 if word else 30)) as host:
                    trouble = err(host, *args, code=1)
                    assert word in trouble, (answer, trouble)


class GoneInHello:
    """Whoever connects to @state's socket sees it close, after @n bytes of welcome; then nobody
    listens."""

    def __init__(self, state, n):
        self.path = os.path.join(state, "host.sock")
        self.n = n
        self.listener = socket.socket(socket.AF_UNIX)
        os.unlink(self.path)
        self.listener.bind(self.path)
        self.listener.listen(1)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with self.listener, self.listener.accept()[0] as here:
            here.recv(1, socket.MSG_PEEK)
            os.unlink(self.path)
            self.listener.close()
            here.sendall(b'{"errand":{"protocol":1,"version":"0'[:self.n])


def test_a_host_that_goes_during_the_hello_is_followed_by_the_next():
    with no_daemon() as d:
        task, let_go = at_the_gate(d)
        for n in (0, 1, 30):
            kill_host(d)
            GoneInHello(d.state, n)
            equal(list(tasks(d)), [task])
        kill_host(d)
        GoneInHello(d.state, 0)
        let_go()
        out(d, "wait", task, code=7)


def test_a_list_that_is_watched_goes_on_with_the_next_host():
    with no_daemon() as d:
        run(d, "sleep 600")
        killed = []

        def goes_on(shown):
            if not killed and b"bash-1" in shown:
                kill_host(d)
                killed.append(len(shown))
            return killed and b"bash-1" in shown[killed[0]:]
        shown, _ = in_terminal(d, "ls", "--watch", until=goes_on)
        assert "errand ls:" not in shown, shown


def test_a_wait_goes_on_through_any_number_of_hosts():
    with no_daemon() as d:
        task, let_go = at_the_gate(d)
        done = run(d, "exit 0")
        with running(d, "wait", "--timeout", "1h", done, task, task) as p:
            for _ in range(3):
                wait_for(lambda: clients_of(d) == 2, 20)
                kill_host(d)
            let_go()
            equal(p.wait(20), 7)


def clients_of(d):
    try:
        with Operator(d.state) as op:
            return op.ask("errand/stat")["clients"]
    except (OSError, EOFError):
        return 0


if __name__ == "__main__":
    run_tests(globals())
