# SPDX-License-Identifier: MIT
"""What a person sees: commands on a terminal, of whatever width, and interrupted there."""
import contextlib
import fcntl
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import termios

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from daemon import ERRAND, Daemon  # noqa: E402
from mcpclient import run_tests, wait_for  # noqa: E402
from people import (at_the_gate, env_of, equal, in_terminal, left_on_screen, out, run, tasks)  # noqa: E402

CLEAR = "\033[H\033[2J"
# Text, and how many cells it takes.
TEXTS = [("plain", 5), ("日本語", 6), ("e\u0301a\u0308o\u0302", 3), ("\uff21\uff22", 4), ("👍", 2),
         ("한국어", 6), ("a\u200bb", 2)]


def cells(line):
    """Of a line of ASCII, of "…" and of TEXTS."""
    for text, width in TEXTS:
        line = line.replace(text, "x" * width)
    return sum(0 if 0x300 <= ord(c) < 0x370 or c == "\u200b" else
               2 if ord(c) >= 0x1100 and c not in "…\ufffd" else 1 for c in line)


class Terminal:
    """A command that has a terminal for its own, to be typed at; ended with the block."""

    def __init__(self, d, *command, columns=80, rows=24, **env):
        self.shown = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.execve(command[0], command, env_of(d, TERM="xterm", **env))
        self.resize(columns, rows)

    def resize(self, columns, rows=24):
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, keys):
        os.write(self.fd, keys)

    def read(self, timeout):
        """False: nothing has come, or nothing will."""
        if not select.select([self.fd], [], [], timeout)[0]:
            return False
        try:
            more = os.read(self.fd, 65536)
        except OSError:
            more = b""
        self.shown += more
        return more != b""

    def text(self):
        return self.shown.decode("utf-8", "replace").replace("\r\n", "\n")

    def sees(self, what):
        wait_for(lambda: what in self.text() or (self.read(0.2), what in self.text())[1], 20,
                 "%r in %r" % (what, self.text()))

    def end(self):
        """The exit code, negative for a signal, when all is read."""
        while self.read(20):
            pass
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        self.pid = 0
        return code

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        os.close(self.fd)


def errand_at(d, *args, **more):
    return Terminal(d, ERRAND, *args, **more)


# ---- the list ----

def test_a_list_fits_terminals_of_any_width_and_its_columns_stand_in_line():
    with Daemon(env={"ERRAND_LIMITS_LIVE_TASKS": "0"}) as d:
        for text, _ in TEXTS:
            run(d, "--label", text * 20, "printf '%s\\n' \"$S\"; sleep 600", S=text * 30)
        wait_for(lambda: all("lastLine" in t.get("now", {}) for t in tasks(d).values()), 10)
        for columns in (1, 20, 40, 60, 80, 100, 200, 400):
            shown, code = in_terminal(d, "ls", columns=columns)
            lines = shown.splitlines()
            equal((code, len(lines)), (0, len(TEXTS) + 1))
            for line in lines:
                assert cells(line) <= columns, (columns, cells(line), line)
            if columns >= 40:
                at = lines[0].index("STATUS")
                label = lines[0].index("LABEL")
                for line in lines[1:]:
                    equal(line[at:at + 9], "running  ")
                    equal((line[label - 2:label], line[label] != " "), ("  ", True))


def test_a_narrow_list_leaves_out_what_can_be_done_without():
    with Daemon() as d:
        run(d, "--label", "l" * 50, "echo begun; exec sleep 600")
        wait_for(lambda: "lastLine" in tasks(d)["bash-1"]["now"], 10)
        for columns, titles in (
                (36, ["ID", "STATUS", "LABEL", "LAST LINE"]),
                (52, ["ID", "STATUS", "AGE", "LABEL", "LAST LINE"]),
                (200, ["ID", "KIND", "STATUS", "AGE", "CPU", "MEMORY", "UNREAD", "LABEL",
                       "LAST LINE"])):
            shown, _ = in_terminal(d, "ls", columns=columns)
            equal(re.split(r"  +", shown.splitlines()[0]), titles)
            assert shown.splitlines()[1].endswith("  begun"), shown


def test_a_terminal_of_the_usual_width_shows_how_a_task_has_ended():
    with Daemon() as d:
        out(d, "wait", run(d, "--label", "l" * 50, "exit 117"), code=117)
        shown, _ = in_terminal(d, "ls", columns=80)
        assert re.search(r"l…  exit code: 117, took \d+ms$", shown.splitlines()[1]), shown


def test_who_types_at_a_server_is_told_what_it_waits_for():
    with Daemon() as d, Terminal(d, ERRAND, "mcp") as t:
        t.sees("errand mcp: waits for what an MCP client writes")
        t.type(b"\x04")
        equal(t.end(), 0)


def test_each_column_shows_what_its_title_says():
    with Daemon() as d:
        run(d, "--label", "one", "head -c 5000 /dev/zero | tr '\\0' x; echo; echo end; sleep 600")
        wait_for(lambda: tasks(d)["bash-1"].get("now", {}).get("lastLine") == "end", 10)
        out(d, "wait", run(d, "--label", "two", "exit 9"), code=9)
        lines = [re.split(r"  +", line) for line in out(d, "ls").splitlines()]
        equal(lines[0], "ID,KIND,STATUS,AGE,CPU,MEMORY,UNREAD,LABEL,LAST LINE".split(","))
        one, two = (dict(zip(lines[0], line)) for line in lines[1:])
        equal([one[k] for k in ("ID", "KIND", "STATUS", "UNREAD", "LABEL", "LAST LINE")],
              ["bash-1", "bash", "running", "4.8K", "one", "end"])
        equal([two[k] for k in ("ID", "KIND", "STATUS", "UNREAD", "LABEL")],
              ["bash-2", "bash", "completed", "0", "two"])
        assert re.fullmatch(r"exit code: 9, took \d+m?s", two["LAST LINE"]), two
        for line in (one, two):
            for column, shape in (("AGE", r"\d+m?s"), ("CPU", r"\d+m?s"),
                                  ("MEMORY", r"\d+(\.\d)?[KM]")):
                assert re.fullmatch(shape, line[column]), (column, line)


def test_nothing_that_a_task_says_or_is_called_moves_the_cursor():
    evil = "a\033[2J\033]0;t\a\033P1;2|x\033\\b\u009b31m\u0090x\u009c\bc\rd\x0e\x7f\u202ee\u2066f\tg\vh"
    with Daemon() as d:
        run(d, "--label", evil, "printf '%s\\n\\033[31m\\233 2J\\n' \"$S\"; sleep 600", S=evil)
        wait_for(lambda: "lastLine" in tasks(d)["bash-1"].get("now", {}), 10)
        shown, _ = in_terminal(d, "ls", columns=200)
        for line in shown.splitlines():
            assert not re.search("[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", line), line
        for args in (("logs", "bash-1"), ("output", "bash-1"), ("logs", "--tail", "1", "bash-1"),
                     ("logs", "--range", "2-60", "bash-1"), ("logs", "--lines", "1-9", "bash-1")):
            shown, _ = in_terminal(d, *args)
            assert not re.search("[\x00-\x07\x0b-\x0c\x0e-\x1f\x7f-\x9f]", shown), (args, shown)


def test_an_escape_that_comes_in_pieces_is_one_all_the_same():
    with Daemon() as d:
        task, let_go = at_the_gate(d)
        out(d, "kill", task)
        go = d.state + "/go2"
        task = run(d, "printf 'a\\033'; while [ ! -e \"$GO\" ]; do sleep 0.02; done; "
                   "printf '[31mb\\n'", GO=go)
        wait_for(lambda: tasks(d)[task]["facts"]["outputBytes"] == 2, 10)
        with errand_at(d, "logs", "-f", task) as t:
            t.sees("a")
            let_go()
            with open(go, "w"):
                pass
            equal(t.end(), 0)
            equal(t.text(), "ab\n")


# ---- the list, again and again ----

def test_a_list_that_is_watched_is_drawn_anew_and_ends_with_an_interrupt():
    with Daemon() as d:
        run(d, "sleep 600")
        with errand_at(d, "ls", "--watch") as t:
            t.sees("bash-1")
            run(d, "sleep 600")
            t.sees("bash-2")
            t.type(b"\x03")
            equal(t.end(), -signal.SIGINT)
        frames = t.text().split(CLEAR)
        equal((frames[0], len(frames) > 2), ("", True))
        for frame in frames[1:]:
            assert frame.startswith("ID "), frame
            assert "\033" not in frame, frame
        equal([x["status"] for x in tasks(d).values()], ["running"] * 2)


def test_a_list_that_is_watched_follows_the_size_of_its_terminal():
    with Daemon() as d:
        for _ in range(6):
            run(d, "--label", "x" * 100, "true")
        with errand_at(d, "ls", "--watch", columns=120) as t:
            t.sees("bash-6")
            t.resize(40, rows=5)
            at = len(t.text())
            wait_for(lambda: t.read(0.2) and t.text()[at:].count(CLEAR) >= 3, 20)
        frame = t.text().split(CLEAR)[-2]
        equal(len(frame.splitlines()), 4)
        for line in frame.splitlines():
            assert cells(line) <= 40, line


def test_a_list_of_nothing_is_watched_too():
    with Daemon() as d, errand_at(d, "ls", "--watch") as t:
        t.sees("no tasks\n")
        run(d, "sleep 600")
        t.sees("bash-1")


# ---- interrupts ----

def test_an_interrupt_ends_the_looking_and_not_the_task():
    with Daemon() as d:
        task = run(d, "echo here; exec sleep 600")
        for args, seen in ((("logs", "-f", task), "here\n"),
                           (("wait", task), "waiting for 1 task, 1s"),
                           (("output", "--wait", task), "waiting for 1 task, 1s"),
                           (("run", "--wait", "echo here; exec sleep 600"), "here\n")):
            with errand_at(d, *args) as t:
                t.sees(seen)
                t.type(b"\x03")
                equal(t.end(), -signal.SIGINT)
        equal([x["status"] for x in tasks(d).values()], ["running"] * 2)


def test_a_terminal_that_is_closed_ends_the_looking_and_not_the_task():
    with Daemon() as d:
        task = run(d, "echo here; exec sleep 600")
        with errand_at(d, "logs", "-f", task) as t:
            t.sees("here\n")
            os.close(t.fd)
            t.fd = os.open("/dev/null", os.O_RDWR)
            equal(os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1]), -signal.SIGHUP)
            t.pid = 0
        equal(tasks(d)[task]["status"], "running")


# ---- waiting ----

def test_each_end_is_told_when_it_comes():
    with Daemon() as d:
        a, let_go = at_the_gate(d)
        b = run(d, "exit 3")
        out(d, "wait", b, code=3)
        with errand_at(d, "wait", a, b) as t:
            t.sees("bash-2: completed, exit code: 3\n")
            t.sees("waiting for 2 tasks, ")
            let_go()
            equal(t.end(), 7)
            equal(left_on_screen(t.text()),
                  "bash-2: completed, exit code: 3\nbash-1: completed, exit code: 7\n")


def test_a_wait_shows_its_time_on_one_line_of_any_width_and_erases_it():
    with Daemon() as d:
        task, let_go = at_the_gate(d)
        with errand_at(d, "wait", task, columns=10) as t:
            t.sees("\rwaiting …\033[K")
        with errand_at(d, "wait", task) as t:
            t.sees("\rwaiting for 1 task, 1s\033[K")
            let_go()
            equal(t.end(), 7)
            equal(left_on_screen(t.text()), "bash-1: completed, exit code: 7\n")


def test_no_time_is_shown_where_stderr_is_no_terminal():
    with Daemon() as d:
        task, let_go = at_the_gate(d)
        p = subprocess.Popen([ERRAND, "wait", task], env=env_of(d), stderr=subprocess.PIPE)
        with d.operator() as op:
            wait_for(lambda: op.ask("errand/stat")["clients"] == 2, 10)
        let_go()
        equal((p.communicate(timeout=20)[1], p.returncode), (b"", 7))


def test_output_that_is_waited_for_says_so_and_comes_with_its_status():
    with Daemon() as d:
        task = run(d, "printf '\\033[1mhi\\033[0m\\n'; exit 3")
        shown, code = in_terminal(d, "output", "--wait", task)
        equal((left_on_screen(shown), code), ("hi\n[status: completed, exit code: 3]\n", 0))


# ---- what a task prints ----

BIDI = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def test_what_would_reorder_a_line_is_shown_on_a_terminal_and_kept_elsewhere():
    with Daemon() as d:
        task = run(d, "--label", "l\u200fl", "printf 'a%sz\\n' \"$S\"; echo é؛‐", S=BIDI)
        out(d, "wait", task)
        for command in ("logs", "output"):
            shown, _ = in_terminal(d, command, task)
            assert shown.startswith("a" + "\ufffd" * len(BIDI) + "z\né؛‐\n"), shown
            equal(out(d, command, task), "a" + BIDI + "z\né؛‐\n")
        equal(in_terminal(d, "logs", "--lines", "1-1", task)[0],
              "a" + "\ufffd" * len(BIDI) + "z\n")
        equal(in_terminal(d, "logs", "--raw", task)[0], "a" + BIDI + "z\né؛‐\n")
        assert "l\ufffdl" in in_terminal(d, "ls")[0]


def test_run_and_wait_shows_what_would_reorder_a_line():
    with Daemon() as d:
        equal(left_on_screen(in_terminal(d, "run", "--wait", "printf 'a\u202eb\\n'")[0]),
              "bash-1\na\ufffdb\n")


# ---- completion ----

@contextlib.contextmanager
def programs():
    """A folder for PATH in which errand says what it was called with; only what a shell asks for
    when it completes comes from the real one."""
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/errand", "w") as f:
            f.write("#!/bin/sh\ncase $1 in completion|ls) exec '%s' \"$@\";; esac\n"
                    "echo \"called: $*.\"\n" % ERRAND)
        os.chmod(folder + "/errand", 0o755)
        yield folder


SHELLS = {
    "bash": (["--norc", "--noprofile", "-i"], "source <(errand completion bash)"),
    "zsh": (["-f", "-i"], "source <(errand completion zsh)"),
    "fish": (["--no-config", "-i"], "errand completion fish | source"),
}


def test_a_shell_at_a_terminal_completes_what_is_typed():
    with Daemon() as d, programs() as folder:
        run(d, "sleep 600")
        for shell, (options, load) in SHELLS.items():
            if not shutil.which(shell):
                continue  # bash always is there
            with Terminal(d, shutil.which(shell), *options, columns=200,
                          PATH=folder + ":" + os.environ["PATH"]) as t:
                t.type(load.encode() + b"; errand lo''aded\n")
                t.sees("called: loaded.")
                for typed, said in (("ext\tx", "extend x"), ("logs --ra\t", "logs --ra"),
                                    ("logs --raw ba\t-f", "logs --raw bash-1 -f"),
                                    ("kill --reason why bash-\t", "kill --reason why bash-1"),
                                    ("kill --left\tba\t", "kill --leftovers bash-1"),
                                    ("sess\te\tx", "sessions end x")):
                    t.type(b"errand %s\n" % typed.encode())
                    t.sees("called: %s." % said)


def test_what_is_no_id_is_not_completed():
    with programs() as folder, tempfile.TemporaryDirectory() as state:
        script = ('source <(errand completion bash); complete -p errand; '
                  'COMP_WORDS=(errand wait ""); COMP_CWORD=2; _errand; echo "${#COMPREPLY[@]}"')
        said = subprocess.run(
            ["bash", "-euc", script], check=True, capture_output=True,
            env={**os.environ, "ERRAND_STATE": state, "PATH": folder + ":" + os.environ["PATH"]})
        equal((said.stdout, said.stderr), (b"complete -o default -F _errand errand\n0\n", b""))


if __name__ == "__main__":
    run_tests(globals())
