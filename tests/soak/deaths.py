#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""deaths.py [ROUNDS [CLIENTS [SEED]]] - kill -9 of the daemon at random instants, under load.

Each client is an `errand mcp` under a name of its own, and starts, reads, waits for and
kills tasks all the time. A round is one death of the daemon; every fourth comes right behind
another, while the next one recovers. What must hold is checked in the end, and told in figures:

    every call was answered, every command ran once (killed ones at most), no id was given twice
    every task ended as it should; its log is whole, and what was read of it has no gap
    every end was told; told or shown twice only when a death lies in between

Needs minutes, so it is no part of the suite.
"""
import collections
import os
import random
import re
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from daemon import ERRAND, daemon_of  # noqa: E402
from mcpclient import Client, Folder, alive, notices_of, text_of, wait_for  # noqa: E402

NOTICE = re.compile(r"^background task (bash-\d+) ", re.M)
STATUS = re.compile(r"\n?\[status: ([a-z]+)(?:, (.*))?\]$")
MAX_LIVE = 8
KNOWN = {"ERRAND_DAEMON_IDLE_S": "20", "ERRAND_BASH_GRACE_MS": "200",
         "ERRAND_LIMITS_FINISHED_TASKS": "100000", "ERRAND_LIMITS_LIVE_TASKS": "0"}


class Task:
    def __init__(self, number, is_long):
        self.number, self.is_long = number, is_long
        self.id = None
        self.code = number % 5
        self.lines = [] if is_long else ["%d-%d" % (number, i) for i in range(number % 7)]
        self.reads = []   # (when the call began, lines)
        self.told = []    # when notices of its end came
        self.is_shown = self.is_killed = False

    def command(self, log):
        begin = "echo %d >> %s; " % (self.number, log)
        if self.is_long:
            return begin + "exec sleep 600"
        step = "; sleep 0.0%d; " % (self.number % 4)
        return begin + step.join("echo " + line for line in self.lines or ["-n"]) + \
            "; exit %d" % self.code


class Load(threading.Thread):
    """One client and what it knows of its tasks."""

    def __init__(self, soak, index):
        super().__init__()
        self.soak, self.chance = soak, random.Random(soak.seed * 1000 + index)
        self.client = Client.errand("--session", "soak-%d" % index,
                                    state=soak.state, env={**os.environ, **KNOWN}, timeout=120)
        self.client.initialize()
        self.tasks, self.live, self.calls = [], [], 0
        self.told = collections.defaultdict(list)  # id -> when a notice of its end came
        self.problem = None

    def run(self):
        try:
            while not self.soak.is_over.is_set():
                self.chance.choice((self.start_one, self.start_one, self.foreground, self.read,
                                    self.read, self.wait, self.kill, self.list))()
            self.finish()
        except Exception as e:  # whatever it is, it is told in the end
            self.problem = "%s: %r" % (self.name, e)

    def call(self, tool, **arguments):
        began = time.monotonic()
        self.calls += 1
        reply = self.client.tool(tool, **arguments)
        for text in notices_of(reply):
            for id_ in NOTICE.findall(text):
                self.told[id_].append(time.monotonic())
        return began, text_of(reply)

    def begin(self, is_background, is_long=False):
        task = Task(self.soak.number(), is_long)
        self.tasks.append(task)
        began, text = self.call("bash", command=task.command(self.soak.log), description="d",
                                run_in_background=is_background)
        return task, began, text

    def start_one(self):
        if len(self.live) >= MAX_LIVE:
            return self.wait()
        task, _, text = self.begin(True, self.chance.random() < 0.2)
        task.id = text.split()[-1]
        task.told = self.told[task.id]  # may have come with this very reply
        self.live.append(task)

    def foreground(self):
        task, _, text = self.begin(False)
        want = "\n".join(task.lines + ["[exit code: %d]" % task.code] * bool(task.code))
        if (text.rstrip("\n") or "") != (want if task.lines else
                                         "\n".join(["(no output)"] + [want] * bool(task.code))):
            raise AssertionError("foreground %d: %r, not %r" % (task.number, text, want))
        task.is_shown = True

    def look(self, task, **arguments):
        began, text = self.call("task_output", task_id=task.id, **arguments)
        status = STATUS.search(text)
        if not status:
            raise AssertionError("%s: %r" % (task.id, text))
        body = text[:status.start()]
        task.reads.append((began, [] if body == "(no new output)" else body.split("\n")))
        if status[1] not in ("completed", "killed", "failed"):
            return
        want = ("killed", "signal: SIGTERM") if task.is_killed else \
            ("completed", "exit code: %d" % task.code)
        if (status[1], status[2]) != want:
            raise AssertionError("%s ended as %r, not %r" % (task.id, status.groups(), want))
        task.is_shown = True
        self.live.remove(task)

    def read(self):
        if self.live:
            self.look(self.chance.choice(self.live))

    def wait(self):
        if self.live:
            self.look(self.chance.choice(self.live), wait=True, timeout_ms=300)

    def kill(self):
        long = [t for t in self.live if t.is_long and not t.is_killed]
        if long:
            long[0].is_killed = True
            self.call("task_kill", task_id=long[0].id)

    def list(self):
        self.call("task_list")

    def finish(self):
        while self.live:
            self.kill()
            self.look(self.live[0], wait=True, timeout_ms=5000)
        self.list()
        self.list()  # acknowledges the one before


class Soak:
    def __init__(self, state, top, rounds, clients, seed):
        self.state, self.rounds, self.seed = state, rounds, seed
        self.log = os.path.join(top, "log")
        self.is_over = threading.Event()
        self.lock = threading.Lock()
        self.last, self.deaths = 0, []
        self.loads = [Load(self, i) for i in range(clients)]

    def number(self):
        with self.lock:
            self.last += 1
            return self.last

    def kill_one(self, before, delay):
        """The daemon that is not @before, so long after it was seen; its pid."""
        def next_pid():
            pid = daemon_of(self.state)
            return pid if pid and pid != before and alive(pid) else 0
        pid = wait_for(next_pid, 60, "a daemon")
        self.is_over.wait(delay)
        self.deaths.append(time.monotonic())
        os.kill(pid, signal.SIGKILL)
        return pid

    def run(self):
        chance, pid = random.Random(self.seed), 0
        for load in self.loads:
            load.start()
        for i in range(self.rounds):
            pid = self.kill_one(pid, chance.random() * (0.02 if i % 4 == 3 else 0.5))
            if any(load.problem for load in self.loads):
                break
        self.is_over.set()
        for load in self.loads:
            load.join()

    # ---- what must hold ----

    def was_death(self, since, until):
        return any(since <= at <= until for at in self.deaths)

    def check_reads(self, task, figures):
        seen = collections.Counter()
        for i, (_, lines) in enumerate(task.reads):
            seen.update(lines)
            again = [n for n in lines if seen[n] > 1]
            first = min((began for began, ls in task.reads[:i] if set(ls) & set(again)),
                        default=0)
            figures["lines read twice"] += len(again)
            if again and not self.was_death(first, time.monotonic()):
                yield "%s: %s read twice without a death" % (task.id, again)
        if task.reads and sorted(seen) != sorted(task.lines):
            yield "%s: read %s, not %s" % (task.id, sorted(seen), task.lines)

    def check_notices(self, task, figures):
        figures["ends told by a notice"] += bool(task.told)
        figures["notices told twice"] += max(0, len(task.told) - 1)
        for one, two in zip(task.told, task.told[1:]):
            if not self.was_death(one - 10, two):
                yield "%s: told twice without a death" % task.id
        if not task.told and not task.is_shown:
            yield "%s: its end was never told" % task.id

    def check_log(self, task, figures):
        done = subprocess.run([ERRAND, "logs", "--state", self.state, task.id],
                              capture_output=True, check=False, timeout=60)
        figures["logs compared"] += 1
        want = "".join(line + "\n" for line in task.lines).encode()
        if done.returncode != 0 or done.stdout != want:
            yield "%s: log %r (%r), not %r" % (task.id, done.stdout, done.stderr, want)

    def check_store(self, figures):
        db = sqlite3.connect("file:%s/errand.db?mode=ro" % self.state, uri=True)
        rows = db.execute("SELECT id, status, rank FROM task").fetchall()
        folders = len(os.listdir(os.path.join(self.state, "tasks")))
        runs, = db.execute("SELECT count(*) FROM run").fetchone()
        figures.update({"rows": len(rows), "run folders": folders})
        if db.execute("PRAGMA integrity_check").fetchall() != [("ok",)]:
            yield "the database is damaged"
        if [r for r in rows if r[2] is None] or len({r[2] for r in rows}) != len(rows):
            yield "ends without a place, or two in one"
        if len(rows) != self.last:
            yield "%d rows of %d tasks" % (len(rows), self.last)
        if folders != runs:
            yield "%d run folders, %d rows of them" % (folders, runs)
        db.close()

    def check(self, figures):
        tasks = [t for load in self.loads for t in load.tasks]
        for load in self.loads:
            if load.problem:
                yield load.problem
        with open(self.log, encoding="ascii") as f:
            ran = collections.Counter(int(line) for line in f)
        killed = {t.number for t in tasks if t.is_killed}  # maybe before its first step
        wrong = [(n, ran[n]) for n in range(1, self.last + 1)
                 if ran[n] != 1 and (ran[n] > 1 or n not in killed)]
        if wrong:
            yield "ran not once: %s" % wrong
        ids = [t.id for t in tasks if t.id]
        if len(set(ids)) != len(ids):
            yield "an id was given twice"
        for task in tasks:
            if task.id:
                yield from self.check_reads(task, figures)
                yield from self.check_notices(task, figures)
                yield from self.check_log(task, figures)
        yield from self.check_store(figures)


def main(rounds=200, clients=4, seed=4711):
    began, figures = time.monotonic(), collections.Counter()
    with Folder() as state, tempfile.TemporaryDirectory() as top:
        soak = Soak(state, top, rounds, clients, seed)
        soak.run()
        seconds = time.monotonic() - began
        problems = list(soak.check(figures))
        for load in soak.loads:
            load.client.close()
        print("%d deaths in %.0f s, %d clients, seed %d: %d calls, %d tasks"
              % (len(soak.deaths), seconds, clients, seed,
                 sum(load.calls for load in soak.loads), soak.last))
        for name, count in figures.items():
            print("%7d %s" % (count, name))
        for problem in problems:
            print("PROBLEM " + problem)
        print("%d problems" % len(problems))
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:])))
