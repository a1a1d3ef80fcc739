# SPDX-License-Identifier: MIT
"""The words of the command line: arguments, bad ones too, where its output goes, JSON, codes."""
import argparse
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from brokenhost import BrokenHost  # noqa: E402
from daemon import ERRAND, Daemon  # noqa: E402
from mcpclient import alive, run_tests, wait_for  # noqa: E402
from people import (COMMANDS, at_the_gate, env_of, equal, err, errand, in_terminal,  # noqa: E402
                    out, run, running, shims_of, tasks)

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@contextlib.contextmanager
def nowhere():
    """A state folder that nobody serves."""
    with tempfile.TemporaryDirectory() as state:
        yield argparse.Namespace(state=state)


def in_shell(d, line, code=0, **env):
    """stdout and stderr of a line in which $E is errand."""
    done = subprocess.run(["bash", "-c", "exec 3>&-; " + line], check=False, timeout=60,
                          capture_output=True, env=env_of(d, E=ERRAND, **env))
    assert done.returncode == code, (line, done)
    return done.stdout.decode(), done.stderr.decode()


# ---- arguments ----

def test_a_slip_of_the_pen_gets_the_word_that_was_meant():
    with nowhere() as d:
        for args, word in ((("lgos",), "logs"), (("lss",), "ls"), (("kil", "x"), "kill"), (("sesions",), "sessions"),
                           (("--hlep",), None), (("ls", "--jsn"), "--json"),
                           (("ls", "--al"), "--all"), (("run", "--lable", "x", "true"), "--label"),
                           (("run", "--labl=x", "true"), "--label"),
                           (("logs", "--folow", "x"), None), (("kill", "--left", "x"),
                                                             "--leftovers"),
                           (("wait", "--hlep"), "--help"), (("fly",), None)):
            said, trouble = errand(d, *args, code=2)
            equal((args, "did you mean" in trouble), (args, word is not None))
            assert not word or "did you mean '%s'?" % word in trouble, (args, trouble)
            equal(said, "")


def test_an_unknown_command_says_where_the_commands_are():
    with nowhere() as d:
        equal(errand(d, "bogus", code=2)[1], "errand: no command 'bogus', see `errand --help`\n")


def test_an_option_lacks_its_value_or_has_one_too_many():
    with nowhere() as d:
        for args, word in ((("ls", "--json=1"), "unwanted value for '--json'"),
                           (("ls", "--help=1"), "wrong option '--help=1'"),
                           (("ls", "--state"), "no value for '--state'"),
                           (("ls", "--state="), "no value for '--state'"),
                           (("run", "--label=", "true"), "no value for '--label'"),
                           (("run", "--"), "missing '[--] COMMAND...'"),
                           (("logs", "-x", "bash-1"), "wrong option '-x'"),
                           (("logs", "-ff", "bash-1"), "did you mean '-f'?"),
                           (("extend", "bash-1"), "missing 'ID"),
                           (("kill",), "missing 'ID...'"), (("wait",), "missing 'ID...'"),
                           (("output", "a", "b"), "too many arguments: 'b'"),
                           (("gc", "x"), "'x'"), (("doctor", "x"), "'x'"), (("config", "x"), "'x'"),
                           (("mcp", "x"), "'x'"), (("daemon", "x"), "'x'"),
                           (("mcp", "--era", "new"), "'new'"), (("mcp", "--session="), "--session"),
                           (("sessions", "end", "a", "b"), "'b'"),
                           (("extend", "bash-1", "0s"), "'0s' is no duration"),
                           (("extend", "bash-1", "1h1h"), "'1h1h'"),
                           (("wait", "bash-1", "--timeout", "367d"), "at most 366d"),
                           (("logs", "bash-1", "--tail", "1.5"), "not '1.5'"),
                           (("logs", "bash-1", "--tail", "99999999999999999999"), "--tail"),
                           (("logs", "bash-1", "--range", "5"), "such as"),
                           (("logs", "bash-1", "--range", "5-"), "such as"),
                           (("logs", "bash-1", "--range", "-5"), "such as"),
                           (("logs", "bash-1", "--lines", "1-2-3"), "such as"),
                           (("logs", "bash-1", "--lines", "2-1"), "such as")):
            trouble = err(d, *args, code=2)
            assert word in trouble, (args, trouble)
        equal(os.listdir(d.state), [])


def test_nothing_at_all_is_answered_with_the_commands():
    done = subprocess.run([ERRAND], capture_output=True, check=False)
    equal((done.returncode, done.stdout), (2, b""))
    for name in COMMANDS:
        assert b"\n  %s " % name.encode() in done.stderr, done


def test_options_may_stand_anywhere_and_two_dashes_end_them():
    with Daemon() as d:
        task = run(d, "seq 1 9")
        out(d, "wait", task)
        for args in (("logs", task, "--tail", "2"), ("logs", "--tail=2", task),
                     ("logs", "--tail", "2", "--", task), ("logs", "--tail", "7", task, "--tail=2")):
            equal(out(d, *args), "8\n9\n")
        assert "unknown task --tail" in err(d, "logs", "--", "--tail", code=3)


def test_no_help_text_is_wider_than_a_terminal():
    for name in COMMANDS:
        said = subprocess.run([ERRAND, name, "--help"], capture_output=True, check=True).stdout
        for line in said.decode().splitlines():
            assert len(line) <= 80, (name, line)


def test_no_argument_reaches_a_terminal_raw():
    evil = "x\033]0;evil\a\033[2J\u009b31m\r"
    with Daemon() as d:
        for args in ((evil,), ("ls", evil), ("ls", "--" + evil), ("ls", "--state=" + evil),
                     ("completion", evil), ("mcp", "--era", evil), ("wait", evil),
                     ("kill", evil, evil), ("logs", evil), ("output", evil), ("extend", evil, "1h"),
                     ("extend", "bash-1", evil), ("run", "--timeout", evil, "true"),
                     ("wait", "x", "--timeout", evil), ("logs", "x", "--tail", evil),
                     ("logs", "x", "--range", evil), ("logs", "x", "--lines", evil),
                     ("sessions", evil), ("sessions", "end", evil), ("kill", "--leftovers", evil),
                     ("run", "--session", "~" + evil, "true")):
            shown, code = in_terminal(d, *args)
            assert code, args
            for bad in "\033\a\u009b\r":
                assert bad not in shown, (args, shown)


def test_an_id_that_no_task_can_have_is_an_unknown_task():
    with Daemon() as d:
        for task in ("", "/etc/passwd", "../../x", "bash-1/..", "bash-01", "bash-0", "bash--1",
                     "BASH-1", "bash-1 ", "bash-\u0661", "x" * 100000, "%s%n", "\udcff\udcfe"):
            for args in (("wait", task), ("kill", task), ("logs", task), ("output", task),
                         ("extend", task, "1h"), ("kill", "--leftovers", task),
                         ("wait", "--any", task)):
                trouble = err(d, *args, code=3)
                assert trouble.startswith("errand %s: unknown task " % args[0]), trouble
                assert len(trouble) < 2000, len(trouble)
        equal(tasks(d), {})


def test_of_several_ids_one_is_wrong_and_the_others_are_served():
    with Daemon() as d:
        a, b = run(d, "exit 0"), run(d, "exit 0")
        equal(errand(d, "wait", a, "bash-9", b, code=3),
              ("", "errand wait: unknown task bash-9\n"))
        equal(errand(d, "kill", a, "bash-9", b, "bash-8", code=3),
              ("%s: had ended already\n%s: had ended already\n" % (a, b),
               "errand kill: unknown task bash-9\nerrand kill: unknown task bash-8\n"))
        equal(errand(d, "kill", "--leftovers", a, "bash-9", b, code=3),
              ("%s: 0 processes found, 0 left\n%s: 0 processes found, 0 left\n" % (a, b),
               "errand kill: unknown task bash-9\n"))


# ---- where output goes ----

def test_output_that_cannot_be_written_is_one_and_is_said():
    with Daemon() as d:
        task = run(d, "--label", "x" * 4096, "seq 1 10000")
        out(d, "wait", task)
        for args in ("ls", "ls --json", "ls --all", "logs " + task, "logs --raw " + task,
                     "output " + task, "wait --any " + task, "kill " + task, "sessions",
                     "run true", "config", "doctor", "--help", "--version", "ls --help",
                     "completion bash", "run --wait echo hi", "extend %s none" % run(d, "sleep 60")):
            for to in ("/dev/full", "&-"):
                said, trouble = in_shell(d, '"$E" %s >%s' % (args, to), code=1)
                equal(said, "")
                assert "cannot write" in trouble, (args, to, trouble)


def test_closed_descriptors_are_nobodys_files():
    with Daemon() as d:
        task = run(d, "echo hi")
        out(d, "wait", task)
        for closed in ("<&-", "2>&-", "<&- 2>&-"):
            assert task in in_shell(d, '"$E" ls ' + closed)[0]
            equal(in_shell(d, '"$E" logs %s %s' % (task, closed))[0], "hi\n")
            equal(in_shell(d, '"$E" run --wait "echo hi" ' + closed)[0], "hi\n")
        in_shell(d, '"$E" run true <&- >&- 2>&-', code=1)
        equal([t["status"] for t in tasks(d).values()][:4], ["completed"] * 4)
        equal(d.said(), "")


def test_a_task_has_none_of_the_commands_descriptors():
    with Daemon() as d:
        said = in_shell(d, 'exec 7</dev/null; "$E" run --wait -- ls /proc/self/fd')[0]
        equal(said.split(), ["0", "1", "2", "3"])  # the last is that of ls


def test_a_pipe_that_is_read_no_more_ends_the_command():
    with Daemon() as d:
        task = run(d, "seq 1 100000")
        out(d, "wait", task)
        for args in ("logs " + task, "logs --raw " + task, "output " + task, "logs -f " + task):
            said, trouble = in_shell(d, '"$E" %s | head -n 2; echo "${PIPESTATUS[0]}"' % args)
            equal(said, "1\n2\n141\n")
            equal(trouble, "")


def test_where_no_such_signal_comes_it_is_an_error():
    with Daemon() as d:
        task = run(d, "seq 1 100000")
        out(d, "wait", task)
        said, trouble = in_shell(
            d, 'trap "" PIPE; "$E" logs %s | head -n 1; echo "${PIPESTATUS[0]}"' % task)
        equal(said, "1\n1\n")
        assert "cannot write the output: Broken pipe" in trouble, trouble


def test_who_follows_a_silent_task_ends_with_the_reader_of_the_pipe():
    with Daemon() as d:
        task = run(d, "echo ready; exec sleep 600")
        for args in ("logs -f " + task, "logs -f --raw " + task,
                     "run --wait 'echo ready; exec sleep 600'"):
            said, _ = in_shell(d, '"$E" %s | grep -m1 ready; echo "${PIPESTATUS[0]}"' % args)
            equal(said, "ready\n141\n")
        equal([t["status"] for t in tasks(d).values()], ["running"] * 2)


# ---- JSON ----

STRINGS = ["plain", "\"", "\\", "a\nb\tc\rd", "\033[31m\u009b1m\x7f\x01", "\u2028\u2029\u202e",
           "日本語 e\u0301 👩\u200d👩\u200d👧", "\ufffe\uffff\U0010ffff", "</script>&'<", "{}[],:",
           "null", "-0", "x" * 4000, " "]
BYTES = [(b"\xff\xfe", "\ufffd\ufffd"), (b"a\xc3", "a\ufffd"), (b"\xed\xa0\x80", None),
         (b"\xf4\x90\x80\x80", None), (b"\xc0\xaf", None)]


def test_json_is_json_whatever_stands_in_it():
    with Daemon(env={"ERRAND_LIMITS_LIVE_TASKS": "0"}) as d:
        for label in STRINGS:
            run(d, "--label", label, "printf '%s' \"$S\"", S=label[:5000])
        for raw, _ in BYTES:
            run(d, "--label", raw, "printf '%s' \"$S\"; sleep 600", S=raw)
        wait_for(lambda: all("lastLine" in t.get("now", {}) for t in
                             list(tasks(d).values())[len(STRINGS):]), 10)
        done = subprocess.run([ERRAND, "ls", "--json", "--all"], env=env_of(d), check=True,
                              capture_output=True).stdout
        equal(done.count(b"\n"), 1)
        lists = json.loads(done.decode("utf-8", "strict"))
        labels = [t["label"] for t in lists["tasks"]]
        equal(labels[:len(STRINGS)], STRINGS)
        for (_, want), got in zip(BYTES, labels[len(STRINGS):]):
            assert got == want if want else set(got) == {"\ufffd"}, (want, got)


def documented(*under):
    """Words in bold of the section JSON of errand(1)."""
    with open(os.path.join(ROOT, "man", "errand.1.scd"), encoding="utf-8") as f:
        text = f.read().split("\n# JSON\n")[1].split("\n# ")[0]
    return set(re.findall(r"\*(\w+)\*", text)) | set(under)


def test_json_has_the_members_that_the_manual_names_and_no_others():
    with Daemon() as d:
        run(d, "echo hi; exit 3")
        out(d, "wait", "bash-1", code=3)
        run(d, "--session", "gone", "true")
        out(d, "wait", "bash-2")
        out(d, "sessions", "end", "gone")
        run(d, "echo hi; sleep 600")
        wait_for(lambda: "lastLine" in tasks(d).get("bash-3", {}).get("now", {}), 10)
        wait_for(lambda: "bash-2" not in tasks(d), 10)
        lists = json.loads(out(d, "ls", "--json", "--all"))
        equal(set(lists), {"tasks", "history"})
        seen = {k for t in lists["tasks"] + lists["history"] for k in t}
        seen |= {k for t in lists["tasks"] for k in t.get("now", {})}
        equal(seen - documented(), set())
        live, ended = tasks(d)["bash-3"], tasks(d)["bash-1"]
        equal({"finishedAt", "detail"} & set(live), set())
        equal({"id", "kind", "label", "status", "ownerSession", "startedAt", "reported", "facts",
               "now"} - set(live), set())
        equal({"finishedAt", "detail"} - set(ended) | {"now"} & set(ended), set())
        equal({"id", "session", "uid"} - set(lists["history"][0]), set())


# ---- exit codes ----

def test_every_code_and_every_signal_is_the_tasks_own():
    with Daemon() as d:
        for command, code in (("exit 1", 1), ("exit 2", 2), ("exit 124", 124), ("exit 125", 125),
                              ("exit 255", 255), ("kill -SEGV $$", 139), ("kill -INT $$", 130),
                              ("kill -34 $$", 162), ("kill -64 $$", 192), ("kill -USR1 $$", 138),
                              ("nosuchcommand", 127)):
            task = run(d, "ulimit -c 0; " + command)
            out(d, "wait", task, code=code)
            out(d, "wait", "--any", task, code=code)
            out(d, "run", "--wait", "ulimit -c 0; " + command, code=code)


def test_a_task_that_nobody_saw_end_has_no_code_for_any_command():
    with Daemon() as d:
        task = run(d, "echo hi; exec sleep 600")
        wait_for(lambda: out(d, "logs", task) == "hi\n", 10)
        with running(d, "wait", task) as waiting, \
                running(d, "logs", "-f", task) as following, \
                running(d, "output", "--wait", task) as reading:
            os.kill(wait_for(lambda: shims_of(d), 10)[0], signal.SIGKILL)
            equal((waiting.wait(20), following.wait(20), reading.wait(20)), (125, 0, 0))
        said, status = errand(d, "output", task)
        equal(said, "hi\n")
        assert status.startswith("[status: failed, lost: "), status
        equal(out(d, "kill", task), task + ": had ended already\n")
        assert "ended" in err(d, "extend", task, "1h", code=1)


def test_a_run_whose_shim_is_killed_has_no_code():
    with Daemon() as d:
        with running(d, "run", "--wait", "echo hi; exec sleep 600") as p:
            equal(p.stdout.readline(), b"hi\n")
            os.kill(wait_for(lambda: shims_of(d), 10)[0], signal.SIGKILL)
            equal(p.wait(20), 125)


def test_a_task_that_is_ended_twice_is_ended():
    with Daemon(env={"ERRAND_BASH_GRACE_MS": "100"}) as d:
        task = run(d, "trap '' TERM; echo up; while :; do sleep 0.05; done")
        wait_for(lambda: out(d, "logs", task) == "up\n", 10)
        for _ in range(3):
            assert out(d, "kill", task, "--reason", "\033[31mwhy\nnot") in (
                task + ": kill requested\n", task + ": had ended already\n")
        out(d, "wait", task, code=137)
        equal(out(d, "kill", task), task + ": had ended already\n")


# ---- waiting ----

def test_the_longest_time_is_taken_and_a_host_that_waits_less_is_asked_again():
    live = b'{"jsonrpc":"2.0","id":1,"result":{"task":{"id":"bash-1","status":"running"}}}\n'
    with Daemon() as d:
        task = run(d, "exit 3")
        for args in (("--timeout", "366d"), ("--timeout", "25d"), (), ("--any",)):
            out(d, "wait", task, *args, code=3)
            with BrokenHost(d, [(1, live), (1, live)]) as host:
                out(host, "wait", task, *args, code=3)
                equal(host.n_broken, 2)
        with BrokenHost(d, [(1, live)]) as host:
            out(host, "wait", task, "--timeout", "500ms", code=124)


def test_as_many_as_may_be_are_waited_for_and_their_answers_are_long():
    with Daemon() as d:
        task = run(d, "--label", "x" * 4096, "exit 3")
        out(d, "wait", *[task] * 1000, code=3)
        assert "too many arguments" in err(d, "wait", *[task] * 1001, code=2)


def test_an_interrupted_wait_leaves_the_task():
    with Daemon() as d:
        task, let_go = at_the_gate(d)
        with running(d, "wait", task) as p:
            with d.operator() as op:
                wait_for(lambda: op.ask("errand/stat")["clients"] == 2, 10)
            p.send_signal(signal.SIGINT)
            equal(p.wait(10), -signal.SIGINT)
        let_go()
        out(d, "wait", task, code=7)


# ---- logs ----

SMALL_LOGS = {"ERRAND_BASH_LOG_HEAD": "65536", "ERRAND_BASH_LOG_TAIL": "65536"}


def test_a_reader_that_is_too_slow_is_told_what_it_missed():
    with Daemon(env=SMALL_LOGS) as d:
        go = d.state + "/go"
        task = run(d, "echo first; while [ ! -e \"$GO\" ]; do sleep 0.02; done; seq 1 300000", GO=go)
        for args in (("logs", "-f", task), ("logs", "-f", "--raw", task)):
            with subprocess.Popen([ERRAND, *args], env=env_of(d), stdout=subprocess.PIPE,
                                  stderr=subprocess.PIPE, bufsize=0) as p:
                equal(p.stdout.readline(), b"first\n")
                with open(go, "w"):
                    pass
                out(d, "wait", task)  # the pipe is full long before
                said, trouble = p.communicate(timeout=30)
            said = "first\n" + said.decode()
            gap = r"\[(\d+) bytes dropped\]\n"
            dropped = sum(map(int, re.findall(gap, said + trouble.decode())))
            assert dropped > 0 and said.endswith("\n300000\n"), (said[-50:], trouble)
            if "--raw" in args:
                equal(len(said) + dropped, tasks(d)[task]["facts"]["outputBytes"])
            else:
                lines = [int(n) for n in re.sub(gap, "", said).split()[1:] if n.isdigit()]
                equal(lines[:3] + lines[-3:], [1, 2, 3, 299998, 299999, 300000])


def test_followers_go_along_with_every_piece_of_a_log():
    with Daemon(env={"ERRAND_BASH_LOG_HEAD": "65536", "ERRAND_BASH_LOG_TAIL": "16777216"}) as d:
        task = run(d, "for i in 1 2 3 4 5 6 7 8; do seq 1 40000; sleep 0.02; done")
        want = "".join("%d\n" % i for i in range(1, 40001)) * 8
        equal(out(d, "logs", "-f", task) == want, True)
        equal(out(d, "logs", "--raw", task) == want, True)
        equal(out(d, "logs", "--range", "1000000-1000009", "--raw", task), want[1000000:1000010])


def test_a_range_that_lies_in_a_gap_is_what_is_left_of_it():
    with Daemon(env=SMALL_LOGS) as d:
        task = run(d, "seq 1 300000")
        out(d, "wait", task)
        total = tasks(d)[task]["facts"]["outputBytes"]
        said, trouble = errand(d, "logs", "--raw", "--range", "100000-200000", task)
        equal(said, "")
        equal(trouble, "[100001 bytes dropped]\n")
        said, trouble = errand(d, "logs", "--raw", "--range", "65530-100000", task)
        equal((len(said), trouble), (6, "[34465 bytes dropped]\n"))
        equal(errand(d, "logs", "--raw", "--range", "%d-%d" % (total - 7, total + 7), task),
              ("300000\n", ""))
        equal(errand(d, "logs", "--raw", "--range", "%d-%d" % (total, total + 7), task), ("", ""))
        equal(out(d, "logs", "--tail", "2", task), "299999\n300000\n")


def test_following_begins_where_it_is_told_and_ends_where_it_is_told():
    with Daemon() as d:
        task, let_go = at_the_gate(d)
        wait_for(lambda: out(d, "logs", task) == "here\n", 10)
        equal(out(d, "logs", "-f", "--lines", "1-1", task), "here\n")
        equal(out(d, "logs", "-f", "--range", "0-3", "--raw", task), "here")
        with running(d, "logs", "-f", "--tail", "0", task) as p:
            let_go()
            said = p.communicate(timeout=20)[0]
            assert said in (b"done\n", b""), said  # it may have come too late to see it
        equal(out(d, "logs", "-f", "--tail", "1", task), "done\n")


def test_a_log_whose_folder_is_gone_is_no_task_any_more():
    with Daemon() as d:
        task = run(d, "echo hi")
        out(d, "wait", task)
        with d.operator() as op:
            folder = op.ask("errand/log", id=task)["folder"]
        with running(d, "logs", "-f", run(d, "sleep 600")) as p:
            for name in os.listdir(folder):
                os.unlink(os.path.join(folder, name))
            os.rmdir(folder)
            trouble = err(d, "logs", task, code=1)
            assert "No such file" in trouble, trouble
            assert p.poll() is None and alive(p.pid)


if __name__ == "__main__":
    run_tests(globals())
