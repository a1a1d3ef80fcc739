# SPDX-License-Identifier: MIT
"""The command line for people, on a daemon of its own: what it prints, and its exit codes."""
import argparse
import glob
import contextlib
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from daemon import ERRAND, Daemon, Operator, Refused  # noqa: E402
from mcpclient import Client, Folder, alive, run_tests, text_of, wait_for  # noqa: E402
from people import (COMMANDS, at_the_gate, env_of, equal, err, errand, in_terminal,  # noqa: E402
                    kill_host, left_on_screen, no_daemon, out, run, running, shims_of, tasks)

# ---- words and codes ----

def test_help_and_version_of_each_command():
    said = subprocess.run([ERRAND, "--help"], capture_output=True, check=True).stdout.decode()
    for name in COMMANDS:
        assert "\n  %s " % name in said, said
        own = subprocess.run([ERRAND, name, "--help"], capture_output=True,
                             check=True).stdout.decode()
        assert own.startswith("usage: errand %s " % name), own
    said = subprocess.run([ERRAND, "--version"], capture_output=True, check=True).stdout
    assert re.fullmatch(rb"errand \d+\.\d+\.\d+\n", said), said


def test_wrong_usage_is_two_and_says_what_is_wrong():
    for args, word in ((("logs",), "missing 'ID'"), (("ls", "--jsn"), "--jsn"),
                       (("ls", "bash-1"), "bash-1"), (("logs", "bash-1", "bash-2"), "bash-2"),
                       (("wait", "bash-1", "--timeout"), "--timeout"),
                       (("wait", "bash-1", "--timeout", "5"), "90s, 15m, 2h, 1h30m"),
                       (("run", "--timeout", "1x", "true"), "'1x'"),
                       (("extend", "bash-1", "soon"), "'soon'"), (("run",), "missing"),
                       (("run", "--session", "", "true"), "--session"),
                       (("logs", "bash-1", "--range", "9-1"), "--range"),
                       (("logs", "bash-1", "--lines", "0-1"), "from 1 on"),
                       (("logs", "bash-1", "--tail", "-1"), "--tail"),
                       (("logs", "bash-1", "--tail", "1", "--range", "1-2"), "only one"),
                       (("sessions", "stop", "x"), "end NAME"), (("sessions", "end"), "end NAME"),
                       (("completion", "tcsh"), "tcsh"), (("fly",), "no command 'fly'")):
        done = subprocess.run([ERRAND, *args], capture_output=True, check=False)
        assert done.returncode == 2 and word in done.stderr.decode(), (args, done)
        equal(done.stdout, b"")


def test_where_no_host_runs_none_is_started_and_it_is_said():
    with tempfile.TemporaryDirectory() as state:
        for args in (("ls",), ("wait", "bash-1"), ("kill", "bash-1"), ("logs", "bash-1"),
                     ("output", "bash-1"), ("extend", "bash-1", "1h"), ("sessions",)):
            done = subprocess.run([ERRAND, *args, "--state", state], capture_output=True,
                                  check=False)
            equal((done.returncode, done.stdout), (4, b""))
            assert b"no host runs" in done.stderr and b"errand mcp" in done.stderr, done
        equal(os.listdir(state), [])


def test_whoever_only_looks_makes_no_state_folder_and_names_the_one_that_is_missing():
    with tempfile.TemporaryDirectory() as top:
        state = top + "/a/typo"
        for args in (("ls",), ("ls", "--all"), ("ls", "--json"), ("output", "x"), ("logs", "x"),
                     ("wait", "x"), ("sessions",), ("sessions", "end", "x"), ("history",),
                     ("history", "--json", "x"), ("kill", "x"), ("extend", "x", "1h"), ("gc",)):
            done = subprocess.run([ERRAND, *args, "--state", state], capture_output=True,
                                  check=False)
            equal((done.returncode, done.stdout), (4, b""))
            assert b"no state folder '%s'" % state.encode() in done.stderr, done
            equal((done.stderr.count(b"\n"), b"`errand run` makes it" in done.stderr), (1, True))
        done = subprocess.run([ERRAND, "doctor", "--state", state], capture_output=True,
                              check=False)
        assert done.returncode == 0 and b"note  state folder  there is no" in done.stdout, done
        equal(os.listdir(top), [])


def test_an_unknown_task_is_three():
    with Daemon() as d:
        for args in (("wait", "bash-9"), ("kill", "bash-9"), ("logs", "bash-9"),
                     ("output", "bash-9"), ("extend", "bash-9", "1h"),
                     ("kill", "--leftovers", "bash-9")):
            assert "unknown task bash-9" in err(d, *args, code=3), args


def test_an_id_may_be_anything_and_stays_harmless():
    with Daemon() as d:
        for task in ("../../etc", "bash-1\033[31m", "", "\"}", "bash-99999999999999999999"):
            shown, code = in_terminal(d, "wait", task)
            equal(code, 3)
            assert "\033" not in shown, shown


# ---- run ----

def test_a_task_runs_with_the_callers_folder_environment_and_umask():
    with Daemon() as d, tempfile.TemporaryDirectory() as cwd:
        old = os.umask(0o027)
        try:
            task = run(d, "pwd; umask; echo $COLOUR", cwd=cwd, COLOUR="blue")
        finally:
            os.umask(old)
        out(d, "wait", task)
        equal(out(d, "logs", task).split(), [os.path.realpath(cwd), "0027", "blue"])


def test_one_word_is_a_shell_line_and_several_are_a_program_and_its_arguments():
    with Daemon() as d:
        equal(errand(d, "run", "--wait", "echo $((1 + 2))")[0], "3\n")
        words = ["printf", "<%s>", "a b", "$HOME", "it's", "", "*", "-f"]
        equal(errand(d, "run", "--wait", "--", *words)[0], "<a b><$HOME><it's><><*><-f>")
        equal(errand(d, "run", "--wait", *words)[0], "<a b><$HOME><it's><><*><-f>")
        equal([t["label"] for t in tasks(d).values()][1], " ".join(words))


def test_a_label_that_is_too_long_is_refused_and_nothing_runs():
    with Daemon() as d:
        run(d, "--label", "l" * 4096, "true")
        equal(tasks(d)["bash-1"]["label"], "l" * 4096)
        said = err(d, "run", "--label", "l" * 4097, "true", code=1)
        assert "the label has 4097 bytes, and at most 4096" in said, said
        equal(list(tasks(d)), ["bash-1"])


def test_en_08_a_label_that_looks_like_an_option_is_a_label():
    with Daemon() as d:
        said, _ = errand(d, "run", "--wait", "--label", "--help", "--", "echo dash-ok")
        equal(said, "dash-ok\n")
        equal(tasks(d)["bash-1"]["label"], "--help")
        equal(errand(d, "run", "--wait", "--label=-x", "--", "echo", "-n", "ok")[0], "ok")


def test_run_and_wait_prints_the_output_and_ends_as_the_task_does():
    with Daemon() as d:
        for command, code in (("echo a; exit 7", 7), ("echo a; kill -9 $$", 137),
                              ("echo a", 0)):
            said, trouble = errand(d, "run", "--wait", command, code=code)
            equal(said, "a\n")
            assert re.match(r"bash-\d+\n", trouble), trouble


def test_run_and_wait_of_what_cannot_start_has_no_code():
    with Daemon() as d, tempfile.TemporaryDirectory() as path:
        with open(os.path.join(path, "bash"), "w", encoding="ascii") as shell:
            shell.write("#!/no/such/interpreter\n")
        os.chmod(shell.name, 0o755)
        trouble = err(d, "run", "--wait", "true", code=125, PATH=path)
        assert "failed" in trouble and "cannot run 'bash'" in trouble, trouble


def test_a_timeout_ends_the_task():
    with Daemon() as d:
        assert "timed out after" in err(d, "run", "--wait", "--timeout", "100ms", "sleep 600",
                                        code=143)


def test_what_a_person_starts_stays_when_the_person_goes():
    with Daemon(env={"ERRAND_SESSIONS_GRACE_S": "1"}) as d:
        run(d, "sleep 600")
        run(d, "--session", "mine", "true")
        run(d, "true", ERRAND_SESSION="theirs")
        equal([t["ownerSession"] for t in tasks(d).values()], ["people", "mine", "theirs"])
        with d.operator() as op:
            equal(op.ask("errand/wait", id="bash-1", timeoutMs=2500)["task"]["status"],
                  "running")


def test_an_agent_reads_what_was_started_for_its_session():
    with Daemon() as d, d.agent(session="mine") as a:
        task = run(d, "--session", "mine", "echo hi")
        out(d, "wait", task)
        assert a.text("task_output", task_id=task).startswith("hi\n")


def test_a_bad_session_is_refused():
    with Daemon() as d:
        assert "'~'" in err(d, "run", "--session", "~x", "true", code=1)
        assert "256" in err(d, "run", "--session", "x" * 257, "true", code=1)
        equal(tasks(d), {})


def test_what_a_task_runs_belongs_to_the_tasks_owner():
    with Daemon() as d:
        said, _ = errand(d, "run", "--session", "mine", "--wait",
                         "%s run --session other true" % ERRAND)
        equal(tasks(d)[said.strip()]["ownerSession"], "mine")
        trouble = errand(d, "run", "--wait", "%s sessions 2>&1" % ERRAND, code=1)[0]
        assert "may not" in trouble, trouble


# ---- the daemon, started on demand ----

def test_run_starts_a_daemon_that_stays():
    with no_daemon() as d:
        equal(run(d, "echo hi; exec sleep 600"), "bash-1")
        wait_for(lambda: out(d, "logs", "bash-1") == "hi\n", 10)
        equal([t["status"] for t in tasks(d).values()], ["running"])


def test_runs_at_the_same_time_start_one_daemon():
    with no_daemon() as d:
        all_of_them = [subprocess.Popen([ERRAND, "run", "true"], env=env_of(d),
                                        stdout=subprocess.PIPE) for _ in range(5)]
        said = sorted(p.communicate(timeout=30)[0] for p in all_of_them)
        equal(said, [b"bash-%d\n" % i for i in range(1, 6)])


def test_a_state_folder_that_cannot_be_used_is_said():
    with tempfile.TemporaryDirectory() as state:
        os.chmod(state, 0o755)
        done = subprocess.run([ERRAND, "run", "--state", state, "true"], capture_output=True,
                              check=False)
        equal((done.returncode, done.stdout), (1, b""))
        assert state.encode() in done.stderr and b"chmod 700" in done.stderr, done


# ---- a host that is killed, and the next one ----

def crash(d):
    d.kill()
    return d.start()


def test_what_a_person_has_started_outlives_the_host():
    with Daemon() as d:
        task, let_go = at_the_gate(d, "--label", "mine")
        wait_for(lambda: out(d, "logs", task) == "here\n", 10)
        crash(d)
        equal([(t["id"], t["label"], t["status"], t["ownerSession"])
               for t in tasks(d).values()], [(task, "mine", "running", "people")])
        let_go()
        out(d, "wait", task, code=7)
        equal(out(d, "logs", task), "here\ndone\n")


def test_a_wait_outlives_the_host_and_starts_the_next():
    with no_daemon() as d:
        task, let_go = at_the_gate(d)
        done = run(d, "exit 0")
        with running(d, "wait", "--timeout", "1h", done, task) as p:
            with Operator(d.state) as op:
                wait_for(lambda: op.ask("errand/stat")["clients"] == 2, 10)
                op.ask("errand/wait", id=done)
            kill_host(d)
            let_go()
            equal(p.wait(20), 7)


def test_run_and_wait_outlives_the_host():
    with no_daemon() as d:
        go = d.state + "/go"
        with running(d, "run", "--wait", "echo here; while [ ! -e \"$GO\" ]; do sleep 0.02; "
                     "done; echo done; exit 7", GO=go) as p:
            equal(p.stdout.readline(), b"here\n")
            kill_host(d)
            with open(go, "w"):
                pass
            equal((p.stdout.read(), p.wait(20)), (b"done\n", 7))


def test_an_ended_session_is_history_also_for_the_next_host():
    with Daemon() as d:
        out(d, "wait", run(d, "--label", "old", "exit 3"), code=3)
        out(d, "sessions", "end", "people")
        wait_for(lambda: tasks(d) == {}, 10)
        crash(d)
        equal(tasks(d), {})
        lines = out(d, "ls", "--all").splitlines()
        assert re.match(r"bash-1 +bash +completed .* old +exit code: 3$", lines[1]), lines


# ---- ls ----

def test_a_list_has_a_line_for_each_task_and_is_plain_in_a_pipe():
    with Daemon() as d:
        equal(out(d, "ls"), "no tasks\n")
        done = run(d, "--label", "first", "echo one; exit 3")
        out(d, "wait", done, code=3)
        live = run(d, "--label", "a\033[31m\nb", "echo begun; exec sleep 600")
        wait_for(lambda: "begun" in out(d, "ls"), 10)
        lines = out(d, "ls").splitlines()
        equal(len(lines), 3)
        equal(lines[0].split(), "ID KIND STATUS AGE CPU MEMORY UNREAD LABEL LAST LINE".split())
        assert re.match(r"bash-1 +bash +completed +\S+ +\S+ +\S+ +4 +first +exit code: 3, took",
                        lines[1]), lines[1]
        assert re.match(r"bash-2 +bash +running +\S+ +\S+ +\S+ +6 +a \[31m b +begun$",
                        lines[2]), lines[2]
        equal(live, "bash-2")
        assert "\033" not in "".join(lines)


def test_a_list_fits_the_terminal_and_shows_no_escape():
    with Daemon() as d:
        run(d, "--label", "日本語 " * 30 + "\033[31m", "printf '\\033[1mx%0300d' 1; sleep 600")
        wait_for(lambda: "lastLine" in tasks(d)["bash-1"]["now"], 10)
        for columns in (40, 80, 132):
            shown, code = in_terminal(d, "ls", columns=columns)
            equal((code, "\033" in shown), (0, False))
            for line in shown.splitlines():
                cells = sum(2 if ord(c) > 0x2fff else 1 for c in line)
                assert cells <= columns, (columns, line)
            assert "…" in shown, shown


def test_json_has_what_the_table_shows():
    with Daemon() as d:
        run(d, "echo one; exec sleep 600")
        wait_for(lambda: "lastLine" in tasks(d)["bash-1"]["now"], 10)
        t = tasks(d)["bash-1"]
        equal((t["kind"], t["status"], t["label"], t["now"]["lastLine"]),
              ("bash", "running", "echo one; exec sleep 600", "one"))
        equal((t["facts"]["outputBytes"], t["facts"]["unreadBytes"]), (4, 4))
        assert t["now"]["memoryKiB"] > 0 and t["now"]["processes"] == 1, t
        assert t["now"]["cpuMs"] >= 0 and t["now"]["quietMs"] >= 0, t


def test_the_cpu_time_of_a_live_task_counts_its_children():
    with Daemon() as d:
        run(d, "(while :; do :; done) & wait")
        wait_for(lambda: tasks(d)["bash-1"]["now"].get("cpuMs", 0) >= 50, 20)
        equal(tasks(d)["bash-1"]["now"]["processes"], 2)


def grown(d, task, *seconds_ago):
    """Makes the log of @task look as if its files had grown so long ago, the first one first."""
    with d.operator() as op:
        folder = op.ask("errand/log", id=task)["folder"]
    names = sorted((n for n in os.listdir(folder) if n.startswith("out")),
                   key=lambda n: int(n[4:] or 0))
    equal(len(names), len(seconds_ago))
    for name, ago in zip(names, seconds_ago):
        os.utime(os.path.join(folder, name), (time.time() - ago,) * 2)


def test_silence_is_said_as_a_plain_fact():
    with Daemon() as d:
        run(d, "echo begun; exec sleep 600")
        run(d, "exec sleep 600")
        wait_for(lambda: "lastLine" in tasks(d)["bash-1"]["now"] and
                 "quietMs" in tasks(d)["bash-2"]["now"], 10)
        assert "no output" not in out(d, "ls")
        grown(d, "bash-1", 75)
        grown(d, "bash-2", 75)
        lines = out(d, "ls").splitlines()
        assert re.search(r"running .* no output for 1m1\ds: begun$", lines[1]), lines
        assert re.search(r"running .* no output for 1m1\ds$", lines[2]), lines


def test_of_a_log_in_pieces_the_newest_counts():
    with Daemon(env={"ERRAND_BASH_LOG_HEAD": "65536", "ERRAND_BASH_LOG_TAIL": "65536"}) as d:
        run(d, "head -c 70000 /dev/zero | tr '\\0' a; echo; echo end; exec sleep 600")
        wait_for(lambda: tasks(d)["bash-1"]["now"].get("lastLine") == "end", 10)
        for ago in ((1000, 100), (100, 1000)):
            grown(d, "bash-1", *ago)
            quiet = tasks(d)["bash-1"]["now"]["quietMs"]
            assert 100000 <= quiet < 200000, quiet


def test_all_is_the_past_too_and_needs_no_host():
    with Daemon() as d:
        run(d, "true")
        lists = json.loads(out(d, "ls", "--all", "--json"))
        equal([t["id"] for t in lists["history"] + lists["tasks"]], ["bash-1"])
    with tempfile.TemporaryDirectory() as state:
        d = argparse.Namespace(state=state)
        equal(json.loads(out(d, "ls", "--all", "--json")), {"history": [], "tasks": []})
        equal(out(d, "ls", "--all"), "no tasks\n")


def test_watch_needs_a_terminal_and_shows_the_list_again():
    with Daemon() as d:
        run(d, "sleep 600")
        assert "terminal" in err(d, "ls", "--watch", code=2)
        shown, _ = in_terminal(d, "ls", "--watch", until=lambda s: s.count(b"bash-1") >= 2)
        equal(shown.count("\033[H\033[2J") >= 2, True)


def test_watch_shows_no_more_than_the_screen_holds():
    with Daemon() as d:
        for _ in range(8):
            run(d, "true")
        shown, _ = in_terminal(d, "ls", "--watch", rows=6, until=lambda s: b"bash-8" in s)
        assert "bash-5" in shown and "bash-4" not in shown, shown


# ---- output and logs ----

def test_output_is_the_whole_text_and_waits_for_the_end():
    with Daemon() as d:
        task = run(d, "printf '\\033[31mred\\033[0m 10%%\\r20%%\\n'; seq 1 20000; printf end")
        said, status = errand(d, "output", "--wait", task)
        assert said.startswith("20%\n1\n2\n") and said.endswith("\n20000\nend"), said[:40]
        equal(status, "[status: completed, exit code: 0]\n")


def test_output_of_a_live_task_has_its_unfinished_line():
    with Daemon() as d:
        task = run(d, "echo a; printf b; exec sleep 600")
        wait_for(lambda: tasks(d)[task]["facts"]["outputBytes"] == 3, 10)
        said, status = errand(d, "output", task)
        equal((said, status), ("a\nb", "[status: running]\n"))


def test_reading_takes_nothing_from_the_owner_and_reports_nothing():
    with Daemon() as d, d.agent(session="mine") as a:
        task = a.text("bash", command="echo one; exit 3", description="d",
                      run_in_background=True).split()[-1]
        out(d, "wait", task, code=3)
        for args in (("output", task), ("logs", task), ("ls",), ("logs", task, "-f")):
            out(d, *args)
        equal(tasks(d)[task]["reported"], False)
        equal(tasks(d)[task]["facts"]["unreadBytes"], 4)
        equal(text_of(a.tool("task_output", task_id=task)),
              "one\n[status: completed, exit code: 3]")


def test_raw_logs_are_every_byte_also_those_that_are_no_text():
    with Daemon() as d:
        task = run(d, "head -c 300000 /dev/urandom | tee \"$COPY\"", COPY=d.state + "/copy")
        out(d, "wait", task)
        raw = subprocess.run([ERRAND, "logs", "--raw", task], env=env_of(d), check=True,
                             capture_output=True).stdout
        with open(d.state + "/copy", "rb") as f:
            equal(raw == f.read(), True)


def test_escapes_reach_a_terminal_only_when_asked_for():
    with Daemon() as d:
        task = run(d, "printf 'a\\033[31mb\\033]0;title\\007c\\n'")
        out(d, "wait", task)
        equal(in_terminal(d, "logs", task), ("abc\n", 0))
        equal(out(d, "logs", task), "abc\n")
        equal(in_terminal(d, "logs", "--raw", task), ("a\033[31mb\033]0;title\007c\n", 0))


def test_following_ends_with_the_task_and_has_all_of_it():
    with Daemon() as d:
        task = run(d, "for i in 1 2 3 4 5; do echo n$i; sleep 0.1; done; seq 1 50000")
        said = out(d, "logs", "-f", task)
        equal(said, "".join("n%d\n" % i for i in range(1, 6)) +
              "".join("%d\n" % i for i in range(1, 50001)))


def test_following_survives_the_host():
    with Daemon() as d:
        task = run(d, "echo begun; while [ ! -e \"$GO\" ]; do sleep 0.02; done; echo done",
                   GO=d.state + "/go")
        with subprocess.Popen([ERRAND, "logs", "-f", task], env=env_of(d),
                              stdout=subprocess.PIPE) as p:
            equal(p.stdout.readline(), b"begun\n")
            d.kill()
            with open(d.state + "/go", "w"):
                pass
            equal(p.stdout.read(), b"done\n")
            equal(p.wait(10), 0)


def test_what_was_dropped_is_told_in_its_place():
    with Daemon(env={"ERRAND_BASH_LOG_HEAD": "65536", "ERRAND_BASH_LOG_TAIL": "65536"}) as d:
        task = run(d, "seq 1 200000")
        out(d, "wait", task)
        said, trouble = errand(d, "logs", task)
        gap = re.search(r"\n\[(\d+) bytes dropped\]\n", said)
        assert gap and said.startswith("1\n2\n") and said.endswith("\n200000\n"), said[-100:]
        equal(trouble, "")
        raw, trouble = errand(d, "logs", "--raw", task)
        equal(len(raw) + int(gap.group(1)), tasks(d)[task]["facts"]["outputBytes"])
        equal(trouble, "[%s bytes dropped]\n" % gap.group(1))


def test_rd_01_two_readers_see_everything_once():
    with Daemon() as d, d.agent(session="mine") as a:
        task = a.text("bash", command="for i in $(seq 1 20); do echo n$i; sleep 0.02; done",
                      description="d", run_in_background=True).split()[-1]
        with subprocess.Popen([ERRAND, "logs", "-f", task], env=env_of(d),
                              stdout=subprocess.PIPE) as p:
            seen = []
            wait_for(lambda: seen.append(a.text("task_output", task_id=task)) or
                     "[status: completed" in seen[-1], 20)
            person = p.stdout.read().decode().split()
        agent = re.findall(r"n\d+", "\n".join(seen))
        equal(agent, ["n%d" % i for i in range(1, 21)])
        equal(person, agent)


def test_rd_03_parts_are_exact_and_move_no_cursor():
    with Daemon() as d, d.agent(session="mine") as a:
        task = a.text("bash", command="seq 1 1000", description="d",
                      run_in_background=True).split()[-1]
        out(d, "wait", task)

        def lines(first, last):
            return "".join("%d\n" % i for i in range(first, last + 1))
        equal(out(d, "logs", task, "--tail", "20"), lines(981, 1000))
        equal(out(d, "logs", task, "--lines", "500-549"), lines(500, 549))
        equal(out(d, "logs", task, "--range", "0-3"), "1\n2\n")
        equal(out(d, "logs", task, "--range", "18-20"), "10\n")
        equal(out(d, "logs", task, "--raw", "--range=3888-9999"), "1000\n")
        equal(out(d, "logs", task, "--tail", "0"), "")
        equal(out(d, "logs", task, "--lines", "2000-3000"), "")
        equal(a.text("task_output", task_id=task),
              lines(1, 1000) + "[status: completed, exit code: 0]")


# ---- wait ----

def test_a_wait_ends_as_its_task_does():
    with Daemon() as d:
        for command, code in (("exit 0", 0), ("exit 3", 3), ("kill -TERM $$", 143),
                              ("kill -KILL $$", 137)):
            equal(errand(d, "wait", run(d, command), code=code), ("", ""))


def test_a_wait_that_takes_too_long_is_124_and_leaves_the_task():
    with Daemon() as d:
        task = run(d, "sleep 600")
        out(d, "wait", "--timeout", "50ms", task, code=124)
        equal(tasks(d)[task]["status"], "running")


def test_a_wait_for_all_and_for_any():
    with Daemon() as d:
        long, short, bad = run(d, "sleep 600"), run(d, "exit 0"), run(d, "exit 5")
        out(d, "wait", short, bad, code=5)
        out(d, "wait", bad, short, code=5)
        equal(out(d, "wait", "--any", long, bad, code=5), bad + "\n")
        out(d, "wait", "--timeout", "50ms", short, long, code=124)
        out(d, "wait", short, "bash-9", code=3)


def test_the_first_code_is_that_of_the_first_argument_whichever_ends_first():
    with Daemon() as d:
        late = run(d, "while [ ! -e \"$GO\" ]; do sleep 0.02; done; exit 4", GO=d.state + "/go")
        early = run(d, "exit 5")
        with subprocess.Popen([ERRAND, "wait", late, early], env=env_of(d)) as p:
            out(d, "wait", early, code=5)
            with open(d.state + "/go", "w"):
                pass
            equal(p.wait(20), 4)


def test_wt_06_a_wait_for_any_names_the_one_and_the_others_run_on():
    with Daemon() as d:
        ids = [run(d, "sleep 600"), run(d, "sleep 0.3; exit 6"), run(d, "sleep 600")]
        equal(out(d, "wait", "--any", "--timeout", "20s", *ids, code=6), ids[1] + "\n")
        equal([tasks(d)[i]["status"] for i in ids], ["running", "completed", "running"])
        equal(out(d, "wait", "--any", "--timeout", "50ms", ids[0], ids[2], code=124), "")
        equal(out(d, "wait", "--any", "bash-9", ids[0], code=3), "")


def test_a_lost_task_has_no_code():
    with Daemon() as d:
        task = run(d, "sleep 600")
        shim = wait_for(lambda: shims_of(d), 10)[0]
        os.kill(shim, signal.SIGKILL)
        out(d, "wait", task, code=125)
        assert tasks(d)[task]["detail"].startswith("lost: "), tasks(d)[task]


def test_a_terminal_is_told_what_is_waited_for():
    with Daemon() as d:
        shown, code = in_terminal(d, "wait", run(d, "exit 3"))
        equal((left_on_screen(shown), code), ("bash-1: completed, exit code: 3\n", 3))


# ---- kill, extend, sessions ----

def test_kill_asks_for_the_end_and_says_so():
    with Daemon() as d:
        live, done = run(d, "sleep 600"), run(d, "true")
        out(d, "wait", done)
        equal(out(d, "kill", live, done, "--reason", "enough"),
              "%s: kill requested\n%s: had ended already\n" % (live, done))
        out(d, "wait", live, code=143)
        equal(tasks(d)[live]["detail"], "signal: SIGTERM")


def test_kill_goes_on_after_an_id_that_is_unknown():
    with Daemon() as d:
        live = run(d, "sleep 600")
        said, trouble = errand(d, "kill", "bash-9", live, code=3)
        equal((said, trouble), ("%s: kill requested\n" % live,
                                "errand kill: unknown task bash-9\n"))


def test_leftovers_that_have_cut_all_ties_are_ended_on_request_only():
    with Daemon() as d:
        task = run(d, "setsid sleep 600 </dev/null >/dev/null 2>&1 & echo $!; sleep 0.2")
        out(d, "wait", task)
        pid = int(out(d, "logs", task))
        out(d, "kill", task)
        assert alive(pid)
        equal(out(d, "kill", "--leftovers", task), "%s: 1 process found, 0 left\n" % task)
        assert not alive(pid)


def test_leftovers_of_a_live_task_are_its_own():
    with Daemon() as d:
        task = run(d, "sleep 600")
        err(d, "kill", "--leftovers", task, code=1)
        equal(tasks(d)[task]["status"], "running")


def test_a_deadline_is_set_and_taken_away():
    with Daemon() as d:
        a, b = run(d, "sleep 600"), run(d, "--timeout", "2h", "sleep 600")
        wait_for(lambda: len(shims_of(d)) == 2, 10)
        equal(out(d, "extend", b, "none"), "%s: has no deadline\n" % b)
        equal(out(d, "extend", a, "100ms"), "%s: ends in 100ms\n" % a)
        out(d, "wait", a, code=143)
        assert tasks(d)[a]["detail"].startswith("timed out"), tasks(d)[a]
        equal(tasks(d)[b]["status"], "running")
        equal(errand(d, "extend", a, "1h", code=1)[1],
              "errand extend: the task has ended\n")


def test_sessions_are_listed_and_ended_with_their_tasks():
    with Daemon() as d, d.agent(session="agents"):
        run(d, "sleep 600")
        out(d, "wait", run(d, "true"))
        lines = out(d, "sessions").splitlines()
        equal(lines[0].split(), ["SESSION", "CLIENTS", "TASKS", "LIVE", "ENDS", "IN"])
        assert re.match(r"agents +1 +0 +0 +-$", lines[1]), lines
        assert re.match(r"people +0 +2 +1 +6d23h$", lines[2]), lines
        shims = shims_of(d)
        equal(out(d, "sessions", "end", "people"), "1 live task is ended with it\n")
        wait_for(lambda: tasks(d) == {} and not any(map(alive, shims)), 20)
        assert "no session 'people'" in err(d, "sessions", "end", "people", code=1)


# ---- the methods behind them ----

def test_what_a_method_cannot_take_is_refused():
    with Daemon() as d, d.operator() as op:
        for method, params, word in (
                ("errand/run", {}, "argv"), ("errand/run", {"argv": []}, "argv"),
                ("errand/run", {"argv": [""]}, "argv"), ("errand/run", {"argv": [1]}, "argv"),
                ("errand/run", {"argv": ["a\0b"]}, "argv"),
                ("errand/run", {"argv": "true"}, "argv"),
                ("errand/run", {"argv": ["true"], "timeoutMs": 0}, "timeoutMs"),
                ("errand/run", {"argv": ["true"], "timeoutMs": "1"}, "timeoutMs"),
                ("errand/run", {"argv": ["true"], "label": ""}, "label"),
                ("errand/extend", {"id": "bash-1"}, "ms"),
                ("errand/extend", {"id": "bash-1", "ms": -1}, "ms"),
                ("errand/log", {"id": 3}, "id"), ("errand/sweep", {}, "id"),
                ("errand/end-session", {}, "name")):
            try:
                op.ask(method, **params)
            except Refused as e:
                assert word in str(e), (method, params, e)
            else:
                raise AssertionError("%s took %r" % (method, params))
        equal(op.ask("errand/list")["tasks"], [])


def stop_log(d):
    """A task whose log stops at 8 KiB, since its shim may write no more."""
    task = run(d, "echo here; until [ -e \"$GO\" ]; do sleep 0.02; done; "
               "head -c 20000 /dev/zero | tr '\\0' x; until [ -e \"$END\" ]; do sleep 0.02; done",
               GO=d.state + "/go", END=d.state + "/end")
    wait_for(lambda: out(d, "logs", task) == "here\n", 10)
    for shim in shims_of(d):
        resource.prlimit(shim, resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
    with open(d.state + "/go", "w", encoding="ascii"):
        return task


def test_a_log_that_has_stopped_says_why_while_its_task_lives_and_at_its_end():
    stop, end = "\n[no more output is kept: File too large]\n", " bytes dropped: File too large]\n"
    with Daemon() as d:
        task = stop_log(d)
        wait_for(lambda: out(d, "logs", task).endswith("x" + stop), 10)
        assert out(d, "output", task).endswith("x" + stop)
        with running(d, "logs", "-f", task) as p:
            for line in ("here", "xxx", stop.strip()):
                assert p.stdout.readline().decode().startswith(line)
            with open(d.state + "/end", "w", encoding="ascii"):
                pass
            assert p.communicate(timeout=20)[0].decode().endswith(end)
        for args in ((), ("-f",)):
            said = out(d, "logs", *args, task)
            assert said.endswith(end) and stop not in said, said
        assert errand(d, "logs", "--raw", task)[1].endswith(end)


# ---- gc, doctor, completion ----

def test_doctor_prints_the_path_of_an_installed_shim_without_detours():
    with tempfile.TemporaryDirectory() as top:
        for name in ("bin/errand", "libexec/errand/errand-shim"):
            os.makedirs(os.path.dirname(os.path.join(top, name)))
            shutil.copy(os.path.join(os.path.dirname(ERRAND), os.path.basename(name)),
                        os.path.join(top, name))
        said = subprocess.run([top + "/bin/errand", "doctor", "--state", top + "/none"],
                              capture_output=True, check=True).stdout.decode()
        assert " %s/libexec/errand/errand-shim\n" % os.path.realpath(top) in said, said


def test_gc_removes_what_left_in_order_and_keeps_what_crashed():
    with tempfile.TemporaryDirectory() as state:
        for name, lock in (("0123456789abcdef", False), ("fedcba9876543210", True)):
            folder = os.path.join(state, "embedded", name)
            os.makedirs(os.path.join(folder, "tasks", "x"), mode=0o700)
            if lock:
                with open(os.path.join(folder, "host.lock"), "w"):
                    pass
        os.chmod(os.path.join(state, "embedded"), 0o700)
        said = subprocess.run([ERRAND, "doctor", "--state", state], capture_output=True,
                              check=True).stdout.decode()
        assert re.search(r"^note +embedded +1 hosts .* have crashed", said, re.M), said
        said = subprocess.run([ERRAND, "gc", "--state", state], capture_output=True,
                              check=True).stdout.decode()
        equal(said, "1 folders of hosts that have left are removed\n"
                    "1 folders of hosts that have crashed are kept, for the next daemon\n")
        equal(os.listdir(os.path.join(state, "embedded")), ["fedcba9876543210"])


def test_gc_leaves_a_live_host_alone():
    with Client.errand("--embedded") as c:
        c.initialize()
        c.tool("bash", command="sleep 600", description="d", run_in_background=True)
        d = argparse.Namespace(state=c.state)
        assert re.search(r"^ok +embedded +1 hosts run", out(d, "doctor"), re.M)
        equal(out(d, "gc"), "0 folders of hosts that have left are removed\n")
        equal(text_of(c.tool("task_list")).count("running"), 1)


def test_gc_forgets_what_the_store_holds_beyond_its_limits_and_a_daemon_goes_on():
    with Daemon(env={"ERRAND_LIMITS_FINISHED_TASKS": "1"}) as d:
        with d.agent(session="s") as a:
            for _ in range(4):
                a.text("bash", command="echo hi", description="d")
                a.request("ping")
            said = out(d, "gc", ERRAND_HISTORY_TASKS="1").split("\n")
            equal(said[1], "2 tasks of the past, 0 entries of the history and 0 old requests "
                           "are forgotten")
            assert re.match("the store has given [1-9].*B back$", said[2]), said
            equal(os.path.getsize(os.path.join(d.state, "errand.db-wal")), 0)
            equal(a.text("bash", command="echo there", description="d"), "there\n")
            equal([t["id"] for t in json.loads(out(d, "ls", "--all", "--json"))["history"]],
                  ["bash-3", "bash-4"])


def test_gc_says_that_a_store_is_damaged_and_leaves_it():
    with Daemon() as d:
        d.kill()
        with open(os.path.join(d.state, "errand.db"), "r+b") as f:
            f.write(b"\0" * 4096)
        trouble = errand(d, "gc", code=1)[1]
        assert "it is not a database" in trouble, trouble
        assert not glob.glob(d.state + "/*corrupt*")


def test_doctor_finds_a_good_place_good():
    with Daemon() as d:
        said = out(d, "doctor")
        for what in ("state folder", "disk", "host", "errand-shim", "/proc", "clock"):
            assert re.search(r"^ok +%s " % what, said, re.M), said
        assert "pid %d" % d.proc.pid in said, said


# Our own control group is never the daemon's alone: the test is in it.
LIMITS = {"ERRAND_LIMITS_TASK_MEMORY_BYTES": "512MiB", "ERRAND_LIMITS_TASK_CPU_PERCENT": "50"}
KEYS = "limits.task_memory_bytes, limits.task_cpu_percent"


def test_a_limit_of_tasks_that_cannot_be_held_is_told_once_and_tasks_run():
    with Daemon(env=LIMITS) as d:
        equal(out(d, "run", "--wait", "echo a"), "a\n")
        equal(out(d, "run", "--wait", "echo b"), "b\n")
        line, = re.findall("^.*not held.*$", d.said(), re.M)
        assert line.startswith("errand: %s: not held for any task, since " % KEYS), line
        assert line.endswith("; see `errand doctor`"), line
    with Daemon() as d:
        assert "not held" not in d.said(), d.said()


def test_doctor_says_of_limits_of_tasks_whether_they_are_held():
    with Daemon() as d:
        assert re.search("^ok +limits +none is set for a task$", out(d, "doctor"), re.M)
        d.env.update(LIMITS)
        found, = re.findall("^note +limits +(.*)$", out(d, "doctor"), re.M)
        assert found.startswith(KEYS + ": not held for any task, since "), found
        assert "Delegate=yes" in found and "systemctl --user start errand" in found, found
        d.kill()
        found, = re.findall("^note +limits +(.*)$", out(d, "doctor"), re.M)
        assert found.startswith(KEYS + ": not held for any task: "), found
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(os.path.join(folder, "systemd"))
            with open(os.path.join(folder, "systemd", "private"), "w", encoding="ascii"):
                pass
            d.env["XDG_RUNTIME_DIR"] = folder
            found, = re.findall("^ok +limits +(.*)$", out(d, "doctor"), re.M)
            equal(found, KEYS + ": the next host can hold them, if systemd starts it")
            del d.env["XDG_RUNTIME_DIR"]
        d.start()


def test_doctor_finds_a_state_folder_that_is_open_to_others():
    with tempfile.TemporaryDirectory() as state:
        os.chmod(state, 0o755)
        done = subprocess.run([ERRAND, "doctor", "--state", state], capture_output=True,
                              check=False)
        equal(done.returncode, 1)
        assert re.search(rb"^WRONG +state folder .*chmod 700", done.stdout, re.M), done


def broken(d, what):
    """What `errand doctor` finds wrong with @what."""
    found, = re.findall(r"^WRONG +%s +(.*)$" % what, out(d, "doctor", code=1), re.M)
    return found


def test_doctor_finds_what_is_open_to_others_a_link_or_somebody_else_s():
    with Daemon() as d:
        assert re.search("^ok +modes ", out(d, "doctor"), re.M)
        d.kill()
        path = os.path.join(d.state, "errand.db")
        os.chmod(path, 0o640)
        assert not re.search("^ok +modes ", errand(d, "doctor", code=1)[0], re.M)
        equal(broken(d, "modes"), "'%s' is open to others (mode 0640): chmod go= it" % path)
        os.chmod(path, 0o600)
        log = os.path.join(d.state, "host.log")
        os.symlink("elsewhere", log)
        equal(broken(d, "modes"), "'%s' is a symbolic link: remove it" % log)
        os.unlink(log)
        d.start()


def test_doctor_counts_run_folders_and_finds_those_that_nobody_knows():
    with Daemon() as d:
        errand(d, "run", "--wait", "true")
        assert re.search("^ok +run folders +1, each", out(d, "doctor"), re.M)
        os.mkdir(os.path.join(d.state, "tasks", "0" * 32))
        assert re.search("^note +run folders +1 of 2 in ", out(d, "doctor"), re.M)
        os.rmdir(os.path.join(d.state, "tasks", "0" * 32))


def test_doctor_finds_a_host_that_holds_the_lock_and_does_not_answer():
    with Daemon() as d:
        d.kill()
        with open(os.path.join(d.state, "host.lock"), encoding="ascii") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            assert "pid %d holds the lock" % d.proc.pid in broken(d, "host")
        assert re.search("^ok +host +none runs", out(d, "doctor"), re.M)
        d.start()


def test_doctor_finds_a_store_that_is_damaged():
    with tempfile.TemporaryDirectory() as state:
        path = os.path.join(state, "errand.db")
        with open(path, "wb") as f:
            f.write(b"this is no database" * 1000)
        os.chmod(path, 0o600)
        done = subprocess.run([ERRAND, "doctor", "--state", state], capture_output=True,
                              check=False)
        equal(done.returncode, 1)
        assert re.search(rb"^WRONG +store ", done.stdout, re.M), done


def test_doctor_finds_a_task_whose_folder_has_been_deleted():
    with Daemon() as d:
        run(d, "exec sleep 600")
        wait_for(lambda: re.search(r"^ok +supervisors +1, ", out(d, "doctor"), re.M))
        shutil.rmtree(os.path.join(d.state, "tasks", os.listdir(d.state + "/tasks")[0]))
        said = out(d, "doctor")
        shim = re.search(r"^note +supervisors .*`kill (\d+)` ends it$", said, re.M)
        assert shim, said
        os.kill(int(shim.group(1)), signal.SIGTERM)
        out(d, "wait", "bash-1", code=143)
        wait_for(lambda: re.search(r"^ok +supervisors +0, ", out(d, "doctor"), re.M))


def completed(words):
    """What bash completes after @words."""
    script = ('source <("$1" completion bash); shift; COMP_WORDS=("$@"); '
              'COMP_CWORD=$(($# - 1)); _errand; printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, "bash", ERRAND, *words], check=True,
                          capture_output=True)
    equal(done.stderr, b"")
    return done.stdout.decode().split()


def test_bash_completes_commands_and_options():
    equal(completed(["errand", ""]), COMMANDS + ["--help", "--version"])
    equal(completed(["errand", "l"]), ["ls", "logs"])
    equal(completed(["errand", "run", "--l"]), ["--label"])
    equal(completed(["errand", "sessions", "e"]), ["end"])
    equal(completed(["errand", "completion", "z"]), ["zsh"])
    equal(completed(["errand", "logs", "bash-1", "--"]),
          ["--state", "--raw", "--tail", "--range", "--lines", "--help"])


def test_bash_completes_ids():
    with Daemon() as d:
        run(d, "true")
        run(d, "true")
        script = ('PATH="${1%/*}:$PATH"; source <(errand completion bash); '
                  'COMP_WORDS=(errand logs ""); COMP_CWORD=2; _errand; echo "${COMPREPLY[@]}"')
        said = subprocess.run(["bash", "-c", script, "bash", ERRAND], env=env_of(d), check=True,
                              capture_output=True).stdout
        equal(said, b"bash-1 bash-2\n")


def test_every_shell_gets_every_command_and_option():
    for shell in ("bash", "zsh", "fish"):
        said = subprocess.run([ERRAND, "completion", shell], capture_output=True,
                              check=True).stdout.decode()
        assert re.search(r"[ (\"]bash zsh fish[') \"]", said), shell
        for name in COMMANDS:
            assert re.search(r"\b%s\b" % name, said), (shell, name)
            help_text = subprocess.run([ERRAND, name, "--help"], capture_output=True,
                                       check=True).stdout.decode()
            for option in re.findall(r"^  --([a-z]+)", help_text, re.M):
                if option != "help":
                    assert re.search(r"(--|-l )%s\b" % option, said), (shell, name, option)


if __name__ == "__main__":
    run_tests(globals())
