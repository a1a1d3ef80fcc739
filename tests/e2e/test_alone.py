# SPDX-License-Identifier: MIT
"""Where no daemon can be had `errand mcp` is its own host, and says why and what follows."""
import os
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
import forbid  # noqa: E402
from daemon import ERRAND, Daemon  # noqa: E402
from mcpclient import (Client, Folder, host_process, only_with_namespaces,  # noqa: E402
                       run_tests, text_of, wait_for)

PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'
ENV = {**os.environ, "ERRAND_BASH_GRACE_MS": "200", "ERRAND_DAEMON_IDLE_S": "20"}
CONTAINED = ["unshare", "--user", "--map-root-user", "--pid", "--fork"]
FOLLOWS = "; this client keeps its tasks itself, and they end with it\n"


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def is_alone(c, why):
    """It works, and has said once why it has no daemon."""
    c.initialize()
    equal(c.text("bash", command="echo hi", description="d"), "hi\n")
    said = c.stderr_text()
    assert said.startswith("errand: no daemon: ") and said.endswith(FOLLOWS), said
    assert why in said and said.count("\n") == 1, said


def forbidding(what, error, state):
    return Client([sys.executable, forbid.__file__, what, error, ERRAND, "mcp"], env=ENV,
                  state=state)


# ---- what a sandbox refuses ----

def test_without_unix_sockets():
    for error, why in (("EPERM", "Operation not permitted"), ("EACCES", "Permission denied"),
                       ("EAFNOSUPPORT", "Address family not supported")):
        with Folder() as state, forbidding("unix", error, state) as c:
            is_alone(c, "cannot make a socket: " + why)


def test_where_a_daemon_may_not_listen():
    with Folder() as state, forbidding("bind", "EPERM", state) as c:
        began = time.monotonic()
        c.request("ping")
        assert time.monotonic() - began < 4, "it was waited for in vain"
        said = c.stderr_text()
        assert "no daemon: it ended at its start: cannot make '" in said, said
        assert "Operation not permitted" + FOLLOWS in said, said


def test_where_nothing_can_be_forked():
    for error, why in (("EAGAIN", "Resource temporarily unavailable"),
                       ("EPERM", "Operation not permitted")):
        with Folder() as state, forbidding("fork", error, state) as c:
            c.initialize()
            said = c.stderr_text()
            equal(said, "errand: no daemon: cannot start a daemon: " + why + FOLLOWS)
            text = c.text("bash", command="echo hi", description="d")
            assert why in text and "hi\n" not in text, text


# ---- folders ----

def read_only(home, *command):
    """@command where nothing in @home can be written, and no variable names another place."""
    script = 'mount --bind "$HOME" "$HOME" && mount -o remount,bind,ro "$HOME" && exec "$0" "$@"'
    return ["unshare", "--user", "--map-root-user", "--mount", "env", "-i", "HOME=" + home,
            "PATH=" + os.environ["PATH"], "TMPDIR=" + home + "-tmp", "sh", "-c", script, *command]


def test_with_a_home_that_cannot_be_written():
    only_with_namespaces()
    for is_there in (False, True):
        with Folder() as top:
            home = os.path.join(top, "home")
            os.mkdir(home)
            os.mkdir(home + "-tmp")
            if is_there:
                os.makedirs(os.path.join(home, ".local/state"))
                os.mkdir(os.path.join(home, ".local/state/errand"), 0o700)
            with Client(read_only(home, ERRAND, "mcp"), state=top) as c:
                is_alone(c, "Read-only file system")
                said = c.initialize()["_meta"]["errand/state"]
                assert said["temporary"] is True and said["folder"].startswith(home), said
                assert home + "/.local" in c.stderr_text(), c.stderr_text()


def test_without_a_home():
    with Folder() as top:
        command = ["env", "-u", "ERRAND_STATE", "HOME=/proc", "TMPDIR=" + top, ERRAND, "mcp"]
        with Client(command, state=top) as c:
            is_alone(c, "/proc/.local")


def test_an_explicit_folder_that_cannot_be_used_is_an_error():
    done = subprocess.run([ERRAND, "mcp", "--state", "/proc/x"], input=PING, capture_output=True,
                          timeout=20, check=False, env=ENV)
    equal((done.returncode, done.stdout), (1, b""))
    assert b"/proc/x" in done.stderr, done.stderr


def test_a_bad_setting_is_this_clients_mistake():
    with Folder() as state:
        done = subprocess.run([ERRAND, "mcp", "--state", state], input=PING, capture_output=True,
                              timeout=20, check=False, env={**ENV, "ERRAND_WAIT_MAX_MS": "soon"})
        equal((done.returncode, done.stdout), (2, b""))
        assert b"ERRAND_WAIT_MAX_MS" in done.stderr, done.stderr


# ---- namespaces ----

def test_in_a_container_a_daemon_outside_is_not_used():
    only_with_namespaces()
    with Daemon() as d:
        for more in ([], ["--mount-proc"]):
            with Client([*CONTAINED, *more, ERRAND, "mcp"], env=ENV, state=d.state) as c:
                is_alone(c, "namespace of your own")
        with d.operator() as op:
            equal(op.ask("errand/list")["tasks"], [])


def test_a_container_has_its_own_daemon_whose_tasks_end_with_it_and_are_told_as_lost():
    only_with_namespaces()
    with Folder() as state:
        inside = [*CONTAINED, "--mount-proc", ERRAND, "mcp", "--session", "s"]
        with Client(inside, env=ENV, state=state) as c:
            c.initialize()
            equal(c.text("bash", command="echo up; exec sleep 600", description="d",
                         run_in_background=True), "started background task bash-1")
            # One that has not begun is waited for: who asked for it may come back.
            wait_for(lambda: "up" in c.text("task_output", task_id="bash-1"))
            equal(c.stderr_text(), "")
        wait_for(lambda: not host_process(state), 10)
        with Client.errand("--session", "s", env=ENV, state=state) as c:
            c.initialize()
            text = c.text("task_output", task_id="bash-1", wait=True)
            assert "[status: failed, lost: " in text, text


# ---- inside a task ----

def from_a_task(state, **env):
    """What a client says that a task has started."""
    command = "echo '%s' | exec '%s' mcp --state '%s'" % (PING.decode().strip(), ERRAND, state)
    with Client.errand(env={**ENV, **env}) as c:
        c.initialize()
        return c.text("bash", command=command, description="d")


def test_inside_a_task_none_is_started_and_nothing_is_waited_for():
    with Folder() as state:
        began = time.monotonic()
        got = from_a_task(state)
        assert "from within a task none is started" in got and FOLLOWS in got, got
        assert PONG.decode() in got, got
        assert time.monotonic() - began < 4, "it was waited for in vain"
        assert not os.path.exists(os.path.join(state, "host.lock"))


def test_inside_a_task_systemds_user_manager_starts_it():
    with Folder() as state, tempfile.TemporaryDirectory() as top:
        os.mkdir(os.path.join(top, "systemd"))
        with open(os.path.join(top, "systemd", "private"), "wb"):
            pass
        # Whoever is started by this one is no part of the task.
        fake = os.path.join(top, "systemd-run")
        with open(fake, "w", encoding="ascii") as f:
            f.write('#!/bin/sh\nwhile [ "$1" != -- ]; do shift; done; shift\n'
                    'echo "$@" > "%s/wanted"\nuntil [ -e "%s/up" ]; do sleep 0.01; done\n'
                    % (top, top))
        os.chmod(fake, 0o755)
        starter = subprocess.Popen(["sh", "-c", 'until [ -s "$0/wanted" ]; do sleep 0.01; done\n'
                                    'read -r line < "$0/wanted"; touch "$0/up"; exec $line', top],
                                   env=ENV, stderr=subprocess.DEVNULL)
        with starter:
            # Only the client inside is to find it: the one outside is its own host.
            command = "echo '%s' | XDG_RUNTIME_DIR='%s' PATH=\"%s:$PATH\" '%s' mcp --state '%s'" % (
                PING.decode().strip(), top, top, ERRAND, state)
            with Client.errand(env=ENV) as c:
                c.initialize()
                equal(c.text("bash", command=command, description="d"), PONG.decode())
            equal(host_process(state), starter.pid)
            starter.terminate()


if __name__ == "__main__":
    run_tests(globals())
