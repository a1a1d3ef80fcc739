# SPDX-License-Identifier: MIT
"""cases.py - what the tests of reported cases share: a client, tasks, and what is left of them."""
import os
import re
import subprocess
import time

from mcpclient import Client, alive, build_dir, notices_of, text_of, wait_for

ERRAND = os.path.join(build_dir(), "errand")
EXIT_0 = "[status: completed, exit code: 0]"
serial = [0]


def client(command=None, **env):
    full = {**os.environ, **env}
    c = Client(command, env=full) if command else Client.errand(env=full)
    c.initialize()
    return c


def start(c, command, _meta=None, **more):
    text = text_of(c.tool("bash", _meta=_meta, command=command, description="d",
                          run_in_background=True, **more))
    match = re.fullmatch(r"started background task (bash-\d+)", text)
    assert match, text
    return match.group(1)


def read(c, task, **more):
    return c.text("task_output", task_id=task, **more)


def end(c, task):
    return read(c, task, wait=True, timeout_ms=20000)


def facts_of(c, task):
    """What stands beside the text of the reply that shows the end of @task."""
    reply = c.tool("task_output", task_id=task, wait=True, timeout_ms=20000)
    return reply["_meta"]["errand/facts"][task]


def run(command, **env):
    """The reply that shows the end of @command."""
    with client(**env) as c:
        return end(c, start(c, command))


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def until_says(c, task, text):
    """Read until @text has come; all that was read."""
    seen = []

    def says():
        seen.append(read(c, task))
        return text in "".join(seen)
    wait_for(says, 10, "%r of %s" % (text, task))
    return "".join(seen)


def first_number(c, task):
    """The number that @task prints first: a pid."""
    return int(wait_for(lambda: re.match(r"(\d+)\n", read(c, task))).group(1))


def own_sleep():
    serial[0] += 1
    return "sleep 32%02d.%d" % (serial[0], os.getpid())


def running(line):
    """The pids of those who run exactly @line."""
    found = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/cmdline" % name, "rb") as f:
                words = f.read().rstrip(b"\0").split(b"\0")
        except OSError:
            continue
        if b" ".join(words) == line.encode() and alive(int(name)):
            found.append(int(name))
    return found


def own_folder(c):
    """The only folder of a task of @c."""
    for folder, _, files in os.walk(c.state):
        if "status" in files:
            return folder
    return None


def log_size(c):
    """Bytes on disk of the only task's log."""
    folder, size = own_folder(c), 0
    for name in os.listdir(folder) if folder else ():
        if name.startswith("out"):
            try:
                size += os.path.getsize(os.path.join(folder, name))
            except FileNotFoundError:
                pass  # the oldest segment, just now
    return size


def with_notice(c):
    reply = c.tool("task_list")
    return reply if notices_of(reply) else None


# Under AddressSanitizer freed memory stays with the process for a while: not where it is counted.
COUNTED = {"ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":quarantine_size_mb=0"
                           ":thread_local_quarantine_size_kb=0"}


def resident_kb(pid):
    with open("/proc/%d/status" % pid, encoding="ascii", errors="replace") as f:
        return int(re.search(r"^VmRSS:\s*(\d+)", f.read(), re.M).group(1))


def open_list(c, owner):
    return text_of(c.tool("task_list", _meta=owner))
