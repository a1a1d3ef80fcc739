# SPDX-License-Identifier: MIT
"""Start and end of `errand mcp`: state folder, settings, kinds of stdin, ways to go."""
import json
import os
import pty
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from mcpclient import Client, Folder, alive, build_dir, run_tests, text_of, wait_for  # noqa: E402

ERRAND = os.path.join(build_dir(), "errand")
MODE = os.environ.get("ERRAND_TEST_MCP", "").split()
MCP = [ERRAND, "mcp", *MODE]
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def run(*args, stdin=b"", env=None, unset=(), **more):
    full = {k: v for k, v in {**os.environ, **(env or {})}.items() if k not in unset}
    command = [*MCP, *args[1:]] if args[:1] == ("mcp",) else [ERRAND, *args]
    return subprocess.run(command, input=stdin, env=full, capture_output=True,
                          timeout=20, check=False, **more)


# ---- the command line ----

def test_version_and_help_are_printed():
    equal(run("--version").stdout.split()[0], b"errand")
    helped = run("--help")
    assert helped.returncode == 0 and b"mcp" in helped.stdout, helped
    assert b"--state DIR" in run("mcp", "--help").stdout


def test_wrong_usage_is_told_and_exits_2():
    for args in ((), ("nope",), ("mcp", "--nope"), ("mcp", "--era", "new"),
                 ("mcp", "--state"), ("mcp", "--session", "")):
        done = run(*args)
        assert done.returncode == 2 and done.stderr and not done.stdout, (args, done)


# ---- settings ----

def test_a_bad_setting_is_named_and_nothing_runs():
    for name, value in (("ERRAND_LIMITS_LIVE_TASKS", "many"),
                        ("ERRAND_BASH_FOREGROUND_MS", "0"),
                        ("ERRAND_WAIT_MAX_MS", "99999999999"),
                        ("ERRAND_BASH_WITHHELD_ENV", "no-name")):
        with Folder() as state:
            done = run("mcp", stdin=PING, env={name: value, "ERRAND_STATE": state})
            equal((done.returncode, done.stdout), (2, b""))
            assert name.encode() in done.stderr, done.stderr
            assert value.encode() in done.stderr, done.stderr
            equal(os.listdir(state), [])


def test_a_task_has_its_clients_limits_although_the_host_raises_its_own():
    limited = "ulimit -Sn 200; exec %s mcp --embedded" % ERRAND
    with Client(["sh", "-c", limited]) as c:
        c.initialize()
        equal(c.text("bash", command="ulimit -Sn", description="d").strip(), "200")
        with open("/proc/%d/limits" % c.proc.pid, encoding="ascii") as f:
            own = next(line for line in f if line.startswith("Max open files"))
        assert int(own.split()[3]) >= 200 and own.split()[3] == own.split()[4], own


def test_a_limit_on_the_size_of_files_ends_neither_server_nor_task():
    def client(kib):
        # Python ignores the signal, and whoever it starts would.
        return Client(["python3", "-c", "import os, resource as r, signal as s\n"
                       "s.signal(s.SIGXFSZ, s.SIG_DFL)\n"
                       "r.setrlimit(r.RLIMIT_FSIZE, (%d, %d))\n"
                       "os.execv('%s', ['errand', 'mcp'])" % (kib << 10, kib << 10, ERRAND)])
    with client(0) as c:
        c.initialize()
        text = c.text("bash", command="true", description="d")
        assert "cannot write the spec: File too large" in text, text
    with client(100) as c:
        c.initialize()
        text = c.text("bash", command="seq 1 100000; trap; exit 2", description="d")
        assert " bytes were dropped: File too large]\n" in text, text
        assert text.endswith("[exit code: 2]"), text
        text = c.text("bash", command="grep SigIgn /proc/$$/status", description="d")
        equal(text.split(), ["SigIgn:", "0" * 16])


def names_in_the_manual():
    """What errand.conf(5) says is withheld by default."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    with open(os.path.join(root, "man", "errand.conf.5.scd"), encoding="utf-8") as f:
        entry = f.read().replace("\\", "").split("*withheld_env*")[1].split("\n\n")[0]
    return re.findall(r"[A-Z]+(?:_[A-Z]+)+", entry)


def test_d11_what_the_manual_lists_is_withheld_and_nothing_else():
    names = names_in_the_manual()
    assert len(names) > 10, names
    # No scrub by pattern.
    others = ["MY_API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "OPENAI_API_KEYS"]
    with Client.errand(env={**os.environ, **{name: "x" for name in names + others}}) as c:
        c.initialize()
        there = c.text("bash", command="env -0 | cut -z -d= -f1 | tr '\\0' ' '",
                       description="d").split()
    equal([name for name in names + others if name in there], others)


def test_d11_credentials_of_agents_are_withheld_from_tasks():
    env = {**os.environ, "ANTHROPIC_API_KEY": "k1", "OPENAI_API_KEY": "k2", "MINE": "k3"}
    show = "echo ${ANTHROPIC_API_KEY-no} ${OPENAI_API_KEY-no} ${MINE-no}"
    with Client.errand(env=env) as c:
        c.initialize()
        equal(c.text("bash", command=show, description="d"), "no no k3\n")
    with Client.errand(env={**env, "ERRAND_BASH_WITHHELD_ENV": "MINE"}) as c:
        c.initialize()
        equal(c.text("bash", command=show, description="d"), "k1 k2 no\n")


def test_waits_are_cut_at_the_cap():
    with Client.errand(env={**os.environ, "ERRAND_WAIT_MAX_MS": "100"}) as c:
        c.initialize()
        c.tool("bash", command="exec sleep 600", description="d", run_in_background=True)
        began = time.monotonic()
        text = c.text("task_output", task_id="bash-1", wait=True, timeout_ms=60000)
        equal(text, "(no new output)\n[status: running]")
        assert time.monotonic() - began < 3


# ---- the state folder ----

def test_a_state_folder_is_made_private():
    with Folder() as top:
        state = os.path.join(top, "a", "b")
        with Client.errand("--embedded", "--state", state) as c:
            c.initialize()
            equal(stat.S_IMODE(os.stat(state).st_mode), 0o700)
            own = os.listdir(os.path.join(state, "embedded"))
            equal(len(own), 1)
            assert os.path.exists(os.path.join(state, "embedded", own[0], "host.lock"))
        equal(os.listdir(os.path.join(state, "embedded")), [])


def test_a_state_folder_may_have_any_name():
    with Folder() as top:
        for name in ("a b  c", "a\nb", "日本é", "\x1b[31m", "a\"'b$(x)", "-",
                     "d" * 200 + "/" + "e" * 200, "/".join(["d" * 200] * 10)):
            with Client.errand("--state", os.path.join(top, name)) as c:
                c.initialize()
                equal(c.text("bash", command="echo hi; exit 3", description="d"),
                      "hi\n[exit code: 3]")
        done = run("mcp", "--state", os.path.join(top, "/".join(["d" * 200] * 25)), stdin=PING)
        equal((done.returncode, done.stdout), (1, b""))
        assert b"state folder" in done.stderr, done.stderr


def test_an_environment_of_any_bytes_and_size_reaches_a_task():
    env = {**os.environb, b"ODD": b"a\nb=c\xff\xfe", **{b"BIG%d" % n: b"x" * 100000
                                                       for n in range(12)}}
    with Client(MCP, env=env) as c:
        c.initialize()
        equal(c.text("bash", command="printf %s \"$ODD\" | od -An -tx1", description="d").split(),
              ["61", "0a", "62", "3d", "63", "ff", "fe"])
        equal(c.text("bash", command="echo ${#BIG11} " + "y" * 100000 + " | wc -c",
                     description="d"), "100008\n")


def test_en_11_an_open_foreign_or_linked_state_folder_is_refused():
    with Folder() as top:
        shared = os.path.join(top, "shared")
        os.mkdir(shared)
        os.chmod(shared, 0o755)
        linked = os.path.join(top, "linked")
        os.symlink(top, linked)
        plain = os.path.join(top, "plain")
        with open(plain, "w", encoding="utf-8"):
            pass
        for state in (shared, linked, plain):
            done = run("mcp", "--state", state, stdin=PING)
            equal((done.returncode, done.stdout), (1, b""))
            assert state.encode() in done.stderr, done.stderr
        equal(sorted(os.listdir(top)), ["linked", "plain", "shared"])
        equal(os.listdir(shared), [])


def test_en_11_a_link_inside_the_state_folder_is_not_followed():
    with Folder() as top:
        target = os.path.join(top, "target")
        os.mkdir(target, 0o700)
        for aim in (target, os.path.join(top, "nowhere"), "/etc/passwd"):
            state = os.path.join(top, "state")
            os.mkdir(state, 0o700)
            os.symlink(aim, os.path.join(state, "embedded"))
            done = run("mcp", "--embedded", "--state", state, stdin=PING)
            equal((done.returncode, done.stdout), (1, b""))
            assert os.path.join(state, "embedded").encode() in done.stderr, done.stderr
            equal(os.listdir(target), [])
            assert not os.path.lexists(os.path.join(top, "nowhere"))
            os.unlink(os.path.join(state, "embedded"))
            os.rmdir(state)


def test_ps_06_an_explicit_folder_that_cannot_be_written_is_an_error_with_its_path():
    for state in ("/proc/errand", "/dev/null/x"):
        done = run("mcp", "--state", state, stdin=PING)
        equal((done.returncode, done.stdout), (1, b""))
        assert state.encode() in done.stderr, done.stderr
        done = run("mcp", stdin=PING, env={"ERRAND_STATE": state})
        equal((done.returncode, done.stdout), (1, b""))


def test_the_default_folder_is_below_home_whatever_xdg_says():
    with Folder() as home:
        for more, made in (((), "embedded" if MODE else "host.sock"),
                           (("--embedded",), "embedded")):
            done = run("mcp", *more, stdin=PING, unset=("ERRAND_STATE",),
                       env={"HOME": home, "XDG_STATE_HOME": "/proc", "XDG_DATA_HOME": "/proc"})
            equal((done.returncode, done.stdout), (0, PONG))
            assert os.path.exists(os.path.join(home, ".local/state/errand", made)), made


def test_a_default_folder_that_cannot_be_written_is_replaced_and_that_is_said():
    with Folder() as tmp:
        command = ["env", "-u", "ERRAND_STATE", "HOME=/proc", "TMPDIR=" + tmp, *MCP]
        with Client(command) as c:
            said = c.initialize()["_meta"]["errand/state"]
            assert said["temporary"] is True and said["folder"].startswith(tmp), said
            equal(stat.S_IMODE(os.stat(said["folder"]).st_mode), 0o700)
            equal(c.text("bash", command="echo hi", description="d"), "hi\n")
            c.use_modern()
            equal(c.request("server/discover")["_meta"]["errand/state"], said)


def test_a_later_host_cleans_up_after_those_that_left_and_after_no_other():
    with Folder() as state:
        embedded = os.path.join(state, "embedded")
        os.makedirs(os.path.join(embedded, "left", "tasks", "x"), 0o700)
        os.chmod(embedded, 0o700)
        for name in ("lock", "out"):
            with open(os.path.join(embedded, "left", "tasks", "x", name), "wb"):
                pass
        os.makedirs(os.path.join(embedded, "crashed", "tasks", "y"))
        with open(os.path.join(embedded, "crashed", "host.lock"), "wb"):
            pass
        with Client.errand("--embedded", state=state) as c:
            c.initialize()
            wait_for(lambda: not os.path.exists(os.path.join(embedded, "left")), 5)
            assert os.path.exists(os.path.join(embedded, "crashed", "tasks", "y"))


def test_nothing_runs_elsewhere_when_the_clients_own_folder_is_gone():
    with Folder() as state, Folder() as top:
        gone = os.path.join(top, "gone")
        os.mkdir(gone)
        shell = 'cd "$2" && rmdir "$2" && exec "$0" mcp --state "$1"'
        with Client(["sh", "-c", shell, ERRAND, state, gone]) as c:
            c.initialize()
            for more in ({}, {"workdir": "etc"}):
                text = c.text("bash", command="pwd", description="d", **more)
                assert text.startswith("Error: ") and "folder is gone" in text, text
            equal(c.text("bash", command="pwd", description="d", workdir="/"), "/\n")


def test_two_hosts_on_one_state_folder_do_not_meet():
    with Folder() as state, Client.errand("--embedded", state=state) as a, \
            Client.errand("--embedded", state=state) as b:
        a.initialize()
        b.initialize()
        a.tool("bash", command="exec sleep 600", description="d", run_in_background=True)
        equal(b.text("task_list"), "(no background tasks)")
        equal(len(os.listdir(os.path.join(state, "embedded"))), 2)


# ---- kinds of stdin and stdout ----

def with_state(fn):
    with Folder() as state:
        return fn({**os.environ, "ERRAND_STATE": state})


def test_requests_may_come_from_a_file_and_replies_go_to_one():
    def go(env):
        with tempfile.TemporaryFile() as requests, tempfile.TemporaryFile() as replies:
            requests.write(PING * 500)
            requests.seek(0)
            code = subprocess.run(MCP, stdin=requests, stdout=replies, env=env,
                                  timeout=20, check=False).returncode
            replies.seek(0)
            equal((code, replies.read()), (0, PONG * 500))
    with_state(go)


def test_dev_null_is_an_empty_client():
    def go(env):
        equal(subprocess.run(MCP, stdin=subprocess.DEVNULL,
                             stdout=subprocess.DEVNULL, env=env, timeout=20,
                             check=False).returncode, 0)
    with_state(go)


def test_a_socket_is_as_good_as_a_pipe():
    def go(env):
        ours, theirs = socket.socketpair()
        with ours, subprocess.Popen(MCP, stdin=theirs, stdout=theirs,
                                    env=env) as child:
            theirs.close()
            ours.settimeout(10)
            ours.sendall(PING)
            equal(ours.recv(1000), PONG)
            ours.shutdown(socket.SHUT_WR)
            equal(child.wait(5), 0)
    with_state(go)


def test_a_socket_that_is_both_ends_is_left_as_it_was():
    def go(env):
        ours, theirs = socket.socketpair()
        with ours, theirs, subprocess.Popen(MCP, stdin=theirs, stdout=theirs,
                                            env=env) as child:
            ours.settimeout(10)
            ours.sendall(PING)
            equal(ours.recv(1000), PONG)
            ours.shutdown(socket.SHUT_WR)
            equal(child.wait(5), 0)
            assert os.get_blocking(theirs.fileno())
    with_state(go)


def test_a_terminal_stays_in_blocking_mode():
    def go(env):
        leader, follower = pty.openpty()
        with subprocess.Popen(MCP, stdin=follower, stdout=follower,
                              env=env) as child:
            os.write(leader, PING)
            got = b""
            while PONG.rstrip() not in got:
                got += os.read(leader, 1000)
            assert os.get_blocking(follower), "the terminal was switched for everybody"
            os.write(leader, b"\x04")
            equal(child.wait(5), 0)
        os.close(leader)
        os.close(follower)
    with_state(go)


def test_closed_standard_descriptors_are_refused():
    with Folder() as state:
        for closed in ("<&-", ">&-"):
            shell = 'exec "$0" mcp --state "$1" %s' % closed
            done = subprocess.run(["sh", "-c", shell, ERRAND, state], input=PING, timeout=20,
                                  capture_output=True, check=False)
            equal((done.returncode, done.stdout), (1, b""))
        equal(os.listdir(state), [])


def test_what_was_asked_before_eof_is_answered_if_it_is_quick():
    with Folder() as state:
        asked = PING + b'{"jsonrpc":"2.0","id":2,"method":"initialize","params":' \
            b'{"protocolVersion":"2025-06-18"}}\n{"jsonrpc":"2.0","id":3,' \
            b'"method":"tools/call","params":{"name":"task_list"}}\n'
        done = run("mcp", stdin=asked, env={"ERRAND_STATE": state})
        ids = [json.loads(line)["id"] for line in done.stdout.splitlines()]
        equal((done.returncode, ids), (0, [1, 2, 3]))


# ---- the end ----

def leave_by(c, way):
    if way == "EOF":
        c.proc.stdin.close()
    elif way == "EPIPE":
        c.proc.stdout.close()
    else:
        c.proc.send_signal(getattr(signal, way))


def test_each_way_to_go_is_quick_and_takes_an_embedded_hosts_tasks_along():
    for way in ("EOF", "SIGINT", "SIGTERM", "SIGHUP"):
        env = {**os.environ, "ERRAND_BASH_GRACE_MS": "200"}
        with Client.errand("--embedded", env=env) as c:
            c.initialize()
            c.tool("bash", command="echo $$; exec sleep 600", description="d",
                   run_in_background=True)
            pid = int(wait_for(lambda: (lambda t: t if t[0].isdigit() else None)(
                c.text("task_output", task_id="bash-1"))).split()[0])
            c.post_tool("bash", command="exec sleep 600", description="d")
            c.post_tool("task_output", task_id="bash-1", wait=True)
            c.request("ping")
            began = time.monotonic()
            leave_by(c, way)
            equal(c.wait_exit(2), 0)
            took = time.monotonic() - began
            assert took < 0.1, "%s: %.0f ms" % (way, took * 1000)
            wait_for(lambda p=pid: not alive(p), 5, "the task's end after " + way)


def test_signals_that_the_starter_has_blocked_end_it_all_the_same():
    def block():
        signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGTERM, signal.SIGINT))

    for way in (signal.SIGTERM, signal.SIGINT):
        with Folder() as state, subprocess.Popen(
                [*MCP, "--state", state], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, preexec_fn=block) as child:
            child.stdin.write(PING)
            child.stdin.flush()
            equal(child.stdout.readline(), PONG)
            child.send_signal(way)
            equal(child.wait(5), 0)


def test_a_client_that_stops_listening_for_good_ends_the_server():
    with Folder() as state:
        ours, theirs = os.pipe()
        with subprocess.Popen([*MCP, "--state", state], stdin=subprocess.PIPE,
                              stdout=theirs) as child:
            os.close(theirs)
            child.stdin.write(PING)
            child.stdin.flush()
            equal(os.read(ours, 1000), PONG)
            os.close(ours)
            equal(child.wait(2), 0)
            child.stdin.close()


def test_a_killed_embedded_host_leaves_its_folder_for_a_later_one():
    with Folder() as state:
        with Client.errand("--embedded", state=state) as c:
            c.initialize()
            c.kill_server()
            c.wait_exit()
        with Client.errand("--embedded", state=state) as c:
            c.initialize()
            locks = [name for name in os.listdir(os.path.join(state, "embedded"))
                     if os.path.exists(os.path.join(state, "embedded", name, "host.lock"))]
            equal(len(locks), 2)


def test_only_the_tasks_own_descriptors_reach_a_task():
    with Client.errand() as c:
        c.initialize()
        equal(text_of(c.tool("bash", command="ls -l /proc/$$/fd 2>/dev/null | grep -c -e host.lock"
                                             " -e 'socket:'; true", description="d")), "0\n")


def test_a_state_folder_that_was_deleted_is_named():
    with Client.errand("--embedded") as c:
        c.initialize()
        shutil.rmtree(c.state)
        said = text_of(c.tool("bash", command="true", description="d"))
        assert c.state in said and "is gone; restart" in said, said


if __name__ == "__main__":
    run_tests(globals())
