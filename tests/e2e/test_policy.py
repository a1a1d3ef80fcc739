# SPDX-License-Identifier: MIT
"""[policy] command: a program of the operator's that is asked before each tool call."""
import json
import os
import stat
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from mcpclient import Client, Folder, alive, build_dir, run_tests, text_of, wait_for  # noqa: E402

ERRAND = os.path.join(build_dir(), "errand")
BLAME = "so this call is refused; the operator has to mend it"


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


class Policy(Folder):
    """A folder with a program of the lines @body, and clients that are judged by it."""

    def __init__(self, body, **settings):
        super().__init__()
        self.program = self.path("policy")
        with open(self.program, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\ncd '%s' || exit 99\n%s\n" % (self.name, body))
        os.chmod(self.program, 0o700)
        self.settings = {"ERRAND_POLICY_COMMAND": self.program + " a  b",
                         **{"ERRAND_POLICY_" + k.upper(): v for k, v in settings.items()}}

    def __enter__(self):
        return self

    def path(self, name):
        return os.path.join(self.name, name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def client(self, **env):
        return Client.errand(env={**os.environ, **self.settings, **env})


def says(decision, **more):
    return "cat >/dev/null; printf '%%s\\n' '%s'" % json.dumps({"decision": decision, **more})


def run(c, command="echo ran >&2; echo ran"):
    return c.tool("bash", command=command, description="d")


def refused(policy, why):
    """A call under @policy does not run and says @why."""
    with policy, policy.client() as c:
        c.initialize()
        got = run(c, "touch %s" % policy.path("ran"))
        equal((got.get("isError"), text_of(got)), (True, "Error: " + why))
        assert not os.path.exists(policy.path("ran"))


def broken(policy, how):
    refused(policy, "the operator's policy program %s, %s" % (how, BLAME))


# ---- decisions ----

def test_what_is_allowed_runs():
    with Policy(says("allow")) as p, p.client() as c:
        c.initialize()
        equal(text_of(run(c, "echo hi")), "hi\n")


def test_what_is_denied_does_not_run_and_the_model_reads_why():
    refused(Policy(says("deny", reason="no network here")), "no network here")
    refused(Policy(says("deny")), "the operator's policy denies this call")


def test_to_ask_without_a_channel_is_to_deny_as_the_contract_says():
    refused(Policy(says("ask", reason="shall it?")), "shall it?")
    refused(Policy(says("ask")), 'tool "bash" requires approval (not yet supported)')


def test_a_reason_is_one_line_without_controls_and_of_bounded_length():
    refused(Policy(says("deny", reason="a\x1b[2J\nb\u202e")), "a [2J b")
    with Policy(says("deny", reason="x" * 9000)) as p, p.client() as c:
        c.initialize()
        equal(text_of(run(c)), "Error: " + "x" * 4096)


# ---- the question ----

def test_the_program_is_told_tool_arguments_owner_and_folder():
    with Policy("cat > asked; echo \"$@\" > args; env > env; echo '{\"decision\":\"allow\"}'") \
            as p, p.client(ERRAND_SESSION="me", OPENAI_API_KEY="k") as c:
        c.initialize()
        run(c, 'echo "é"')
        equal(json.loads(p.read("asked")),
              {"tool": "bash", "arguments": {"command": 'echo "é"', "description": "d"},
               "owner": "me", "folder": os.getcwd()})
        equal(p.read("args"), "a b\n")
        assert "API_KEY" not in p.read("env") and "PATH=" in p.read("env"), p.read("env")


def test_every_tool_is_asked_about():
    with Policy("cat >> asked; " + says("allow")) as p, p.client() as c:
        c.initialize()
        c.tool("task_list")
        c.tool("task_kill", task_id="bash-9")
        equal([json.loads(line)["tool"] for line in p.read("asked").splitlines()],
              ["task_list", "task_kill"])


def test_a_long_question_may_be_left_unread():
    with Policy("echo '{\"decision\":\"allow\"}'; exit 0") as p, p.client() as c:
        c.initialize()
        equal(text_of(run(c, "echo hi #" + "x" * 100000)), "hi\n")


def test_a_long_question_arrives_whole():
    with Policy("wc -c > size; " + says("allow")) as p, p.client() as c:
        c.initialize()
        run(c, "echo hi #" + "x" * 120000)
        assert int(p.read("size")) > 120000


# ---- programs that do not answer ----

def test_a_program_that_hangs_is_killed_with_what_it_has_started():
    policy = Policy("sleep 600 & echo $! $$ > pids; wait", timeout_ms="1s")
    with policy, policy.client() as c:
        c.initialize()
        got = run(c)
        equal(text_of(got), "Error: the operator's policy program did not answer within "
              "1000ms, " + BLAME)
        pids = [int(pid) for pid in policy.read("pids").split()]
        wait_for(lambda: not any(alive(pid) for pid in pids), what="end of %s" % pids)


def test_a_program_that_fails_refuses_even_if_it_has_allowed():
    broken(Policy(says("allow") + "; exit 3"), "failed with exit code 3")
    broken(Policy(says("allow") + "; kill -SEGV $$"), "was ended by signal 11")


def test_what_is_no_decision_refuses():
    how = 'did not answer {"decision":"allow"|"deny"|"ask"}'
    for body in ("true", "echo yes", "echo '{\"decision\":\"maybe\"}'", "echo '[]'",
                 "echo '{\"decision\":\"allow\"} {}'", "printf '{\"decision\":\"allow\\377\"}'",
                 "echo '{\"decision\":1e999}'"):
        broken(Policy("cat >/dev/null; " + body), how)


def test_a_flood_refuses_and_is_stopped():
    policy = Policy("echo $$ > pid; cat >/dev/null; exec cat /dev/zero")
    broken(policy, "answered with more than 65536 bytes")


def test_a_program_that_goes_later_refuses():
    with Policy(says("allow")) as p, p.client() as c:
        c.initialize()
        os.unlink(p.program)
        equal(text_of(run(c)), "Error: the operator's policy program cannot be run (no such "
              "file or directory), " + BLAME)


def test_whoever_started_the_host_may_have_blocked_or_ignored_its_childrens_ends():
    code = ("import os, signal, sys\n"
            "signal.signal(signal.SIGCHLD, signal.SIG_IGN)\n"
            "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])\n"
            "os.execv(sys.argv[1], sys.argv[1:])")
    with Policy(says("allow")) as p, \
            Client([sys.executable, "-c", code, ERRAND, "mcp"],
                   env={**os.environ, **p.settings}) as c:
        c.initialize()
        equal(text_of(run(c, "echo hi")), "hi\n")


# ---- many, and those that go ----

def test_many_at_once_are_all_judged_and_few_at_a_time():
    """Each program waits until eight are there, so eight do run together; and none more."""
    body = ("cat >/dev/null; mkdir running.$$; ls -d running.* | wc -l >> seen\n"
            "until [ $(cat seen | wc -l) -ge 8 ]; do :; done\n"
            "rmdir running.$$; echo '{\"decision\":\"allow\"}'")
    with Policy(body) as p, p.client() as c:
        c.initialize()
        ids = [c.post("tools/call", {"name": "task_list", "arguments": {}})
               for _ in range(24)]
        for i in ids:
            assert not c.join(i).get("isError")
        counts = [int(n) for n in p.read("seen").split()]
        equal((len(counts), max(counts) <= 8), (24, True))


def test_while_one_is_judged_others_are_served():
    body = ("case $(cat) in *slow*) until [ -e go ]; do :; done;; esac\n"
            "echo '{\"decision\":\"allow\"}'")
    with Policy(body) as p, p.client() as c:
        c.initialize()
        slow = c.post("tools/call", {"name": "bash", "arguments":
                                     {"command": "echo slow", "description": "d"}})
        equal(text_of(run(c, "echo fast")), "fast\n")
        with open(p.path("go"), "w", encoding="utf-8"):
            pass
        equal(text_of(c.join(slow)), "slow\n")


def test_a_cancelled_call_ends_its_program():
    with Policy("cat > asked; echo $$ > new; mv new pid; exec sleep 600") as p, p.client() as c:
        c.initialize()
        number = c.post("tools/call", {"name": "task_list", "arguments": {}})
        wait_for(lambda: os.path.exists(p.path("pid")), what="the program")
        c.notify("notifications/cancelled", {"requestId": number})
        wait_for(lambda: not alive(int(p.read("pid"))), what="the program's end")
        equal(c.request("ping"), {})


def test_a_host_that_leaves_takes_its_programs_along():
    with Policy("cat > asked; echo $$ > new; mv new pid; exec sleep 600") as p:
        with p.client() as c:
            c.initialize()
            c.post("tools/call", {"name": "task_list", "arguments": {}})
            wait_for(lambda: os.path.exists(p.path("pid")), what="the program")
        wait_for(lambda: not alive(int(p.read("pid"))), what="the program's end")


# ---- the start ----

def test_a_program_that_is_not_there_or_cannot_run_ends_the_start():
    with Policy("true") as p:
        os.chmod(p.program, 0o600)
        for command, why in ((p.program, "Permission denied"), (p.name, "is no file"),
                             (p.path("none"), "No such file")):
            done = subprocess.run(
                [ERRAND, "mcp", "--state", p.path("state")], input=b"", timeout=20,
                env={**os.environ, "ERRAND_POLICY_COMMAND": command}, capture_output=True,
                check=False)
            equal((done.returncode, done.stdout), (2, b""))
            said = done.stderr.decode()
            assert "policy.command: '%s'" % command in said and why in said, said
        assert stat.S_ISREG(os.stat(p.program).st_mode)


if __name__ == "__main__":
    run_tests(globals())
