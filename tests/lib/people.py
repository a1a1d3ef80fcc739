# SPDX-License-Identifier: MIT
"""What a person does at a terminal: commands of this build, on a daemon's state folder."""
import argparse
import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import tempfile
import termios

from daemon import ERRAND, Operator
from mcpclient import alive, end_shims, wait_for

COMMANDS = ["run", "ls", "output", "logs", "wait", "kill", "extend", "sessions", "history", "gc",
            "doctor", "config", "completion", "mcp", "daemon"]


def equal(got, want):
    assert got == want, "got %.2000r, expected %.2000r" % (got, want)


def env_of(d, **env):
    full = {**os.environ, **getattr(d, "env", {}), "ERRAND_STATE": d.state}
    full.pop("ERRAND_SESSION", None)
    return {**full, **env}


def errand(d, *args, code=0, cwd=None, **env):
    """stdout and stderr of `errand ARGS`, which has to end with @code."""
    done = subprocess.run([ERRAND, *args], capture_output=True, timeout=60, check=False,
                          cwd=cwd, env=env_of(d, **env))
    assert done.returncode == code, (args, done)
    return done.stdout.decode(), done.stderr.decode()


def out(d, *args, **more):
    return errand(d, *args, **more)[0]


def err(d, *args, **more):
    return errand(d, *args, **more)[1]


def run(d, *args, **more):
    """The id of a task that `errand run ARGS` starts."""
    said = out(d, "run", *args, **more)
    assert re.fullmatch(r"bash-\d+\n", said), said
    return said.strip()


def tasks(d):
    return {t["id"]: t for t in json.loads(out(d, "ls", "--json"))["tasks"]}


def in_terminal(d, *args, columns=80, rows=24, until=None):
    """What `errand ARGS` shows on a terminal of that size, and its exit code; or, with @until, what
    it has shown when that holds of it."""
    here, there = pty.openpty()
    fcntl.ioctl(there, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    p = subprocess.Popen([ERRAND, *args], stdin=there, stdout=there, stderr=there,
                         env=env_of(d), start_new_session=True)
    os.close(there)
    shown = b""
    with contextlib.suppress(OSError):
        while not (until and until(shown)):
            more = os.read(here, 65536)
            if not more:
                break
            shown += more
    if until:
        p.kill()
    os.close(here)
    return shown.decode().replace("\r\n", "\n"), p.wait(10)


def left_on_screen(shown):
    """Of lines that are written over and erased, what stands there at last."""
    return re.sub(r"[^\n]*\r\033\[K", "", shown.replace("\033[K", "\r\033[K").replace(
        "\r\r", "\r"))


@contextlib.contextmanager
def no_daemon():
    """A state folder without a host; one that comes is ended with its tasks."""
    with tempfile.TemporaryDirectory(prefix="errand-test-",
                                     ignore_cleanup_errors=True) as state:
        # One that was started beside the first may come to life when that has gone.
        nobody = argparse.Namespace(state=state, env={"ERRAND_DAEMON_IDLE_S": "2"})
        try:
            yield nobody
        finally:
            with contextlib.suppress(OSError):
                with Operator(state) as op:
                    host = op.said["pid"]
                    end_all(op)
                os.kill(host, signal.SIGTERM)
                wait_for(lambda: not alive(host), 10)
            end_shims(state)


def end_all(op):
    for task in op.ask("errand/list")["tasks"]:
        op.ask("errand/kill", id=task["id"])
        op.ask("errand/wait", id=task["id"], timeoutMs=10000)


def at_the_gate(d, *options):
    """A task that says so and then waits to be let go, to end with 7; and how to."""
    go = d.state + "/go"

    def let_go():
        with open(go, "w"):
            pass
    return run(d, *options, "echo here; while [ ! -e \"$GO\" ]; do sleep 0.02; done; "
               "echo done; exit 7", GO=go), let_go


@contextlib.contextmanager
def running(d, *args, **env):
    """`errand ARGS` while the block lasts."""
    p = subprocess.Popen([ERRAND, *args], env=env_of(d, **env), stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL)
    try:
        yield p
    finally:
        p.kill()
        p.communicate()


def kill_host(d):
    with Operator(d.state) as op:
        host = op.said["pid"]
    os.kill(host, signal.SIGKILL)
    wait_for(lambda: not alive(host), 10)


def shims_of(d):
    said = subprocess.run(["ps", "-o", "pid=,comm=", "--ppid", str(d.proc.pid)], check=False,
                          capture_output=True).stdout.decode()
    return [int(line.split()[0]) for line in said.splitlines() if "errand-shim" in line]
