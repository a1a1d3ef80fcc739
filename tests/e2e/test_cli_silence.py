# SPDX-License-Identifier: MIT
"""Commands that ask a host which is stopped: a time holds, and it is said what is waited for."""
import contextlib
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from daemon import ERRAND, Daemon  # noqa: E402
from mcpclient import run_tests, wait_for  # noqa: E402
from people import env_of, equal, err, errand, run  # noqa: E402


@contextlib.contextmanager
def stopped(d):
    d.proc.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        d.proc.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def asking(d, *args):
    p = subprocess.Popen([ERRAND, *args], env=env_of(d), stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
    try:
        yield p
    finally:
        p.kill()
        p.communicate()


def test_the_time_of_a_wait_holds_when_the_host_is_stopped():
    with Daemon() as d:
        task = run(d, "sleep 600")
        with stopped(d):
            assert "does not answer" in err(d, "wait", "--timeout", "1s", task, code=124)


def test_the_time_of_a_wait_holds_when_the_host_is_stopped_meanwhile():
    with Daemon() as d:
        task = run(d, "sleep 600")
        with asking(d, "wait", "--timeout", "5s", task) as p:
            with d.operator() as op:
                wait_for(lambda: op.ask("errand/stat")["clients"] == 2, 10)
            with stopped(d):
                said = p.communicate(timeout=30)[1]
                equal((p.returncode, b"does not answer" in said), (124, True))


def test_others_say_what_they_wait_for_and_go_on_with_the_host():
    with Daemon() as d:
        task = run(d, "true")
        errand(d, "wait", task)
        for args in (("ls",), ("logs", task), ("output", task), ("wait", task), ("sessions",)):
            with stopped(d), asking(d, *args) as p:
                equal(p.stderr.readline(), b"errand %s: still waiting for the host, which does "
                      b"not answer: see `errand doctor`\n" % args[0].encode())
                d.proc.send_signal(signal.SIGCONT)
                p.communicate(timeout=30)
                equal(p.returncode, 0)


def test_who_waits_for_a_host_can_be_interrupted():
    with Daemon() as d, stopped(d), asking(d, "ls") as p:
        p.stderr.readline()
        p.send_signal(signal.SIGINT)
        equal(p.wait(20), -signal.SIGINT)


def test_doctor_names_a_host_that_is_stopped():
    with Daemon() as d, stopped(d):
        said = errand(d, "doctor", code=1)[0]
        assert "kill -CONT %d`" % d.proc.pid in said, said


if __name__ == "__main__":
    run_tests(globals())
