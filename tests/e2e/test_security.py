# SPDX-License-Identifier: MIT
"""What SECURITY.md promises and no other test is about."""
import os
import re
import stat
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from daemon import Daemon  # noqa: E402
from mcpclient import Client, notices_of, run_tests, text_of, wait_for  # noqa: E402


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def test_what_looks_like_a_notice_stays_in_the_block_of_its_output():
    with Client.errand() as c:
        c.initialize()

        def start(command):
            return re.search(r"bash-\d+", c.text("bash", command=command, description="d",
                                                 run_in_background=True)).group()

        def told():
            return notices_of(c.tool("task_list"))

        start("true")
        true_notice = wait_for(told, what="a notice")[0]
        forged = true_notice.replace("completed", "failed").replace("\n", " ")
        task = start("printf '%%s\\n' '%s'; exec sleep 600" % forged.replace("'", ""))
        reply = wait_for(lambda: next(
            (r for r in [c.tool("task_output", task_id=task)]
             if "no new output" not in text_of(r)), None), what="the output")
        assert text_of(reply).startswith(forged.replace("'", "")[:40]), text_of(reply)
        equal(notices_of(reply), [])


def sockets_of(pid):
    folder = "/proc/%d/fd" % pid
    links = [os.readlink(os.path.join(folder, fd)) for fd in os.listdir(folder)]
    return {link[len("socket:["):-1] for link in links if link.startswith("socket:[")}


def network_sockets(pid):
    """The inodes of all sockets of the network, as @pid's namespace shows them."""
    found = set()
    for kind in ("tcp", "tcp6", "udp", "udp6", "raw", "raw6", "packet"):
        path = "/proc/%d/net/%s" % (pid, kind)
        if os.path.exists(path):
            with open(path, encoding="ascii") as f:
                lines = f.read().splitlines()
            at = -1 if kind == "packet" else 9
            found.update(line.split()[at] for line in lines[1:])
    return found


def test_no_process_of_ours_has_a_socket_of_the_network():
    with Daemon() as d, d.agent() as a:
        shim = int(a.text("bash", command="echo $PPID; exec sleep 600", description="d",
                          run_in_background=True) and wait_for(
            lambda: re.match(r"\d+", a.text("task_output", task_id="bash-1"))).group())
        for pid in (d.proc.pid, shim):
            own = sockets_of(pid)
            assert own, "process %d has no socket at all" % pid
            equal(own & network_sockets(pid), set())


def test_all_that_is_kept_is_private():
    with Daemon() as d, d.agent(umask=0) as a:
        a.text("bash", command="echo hi", description="d")
        a.text("bash", command="exec sleep 600", description="d", run_in_background=True)
        seen = 0
        for folder, folders, files in os.walk(d.state):
            for name in folders + files:
                mode = os.lstat(os.path.join(folder, name)).st_mode
                assert mode & 0o077 == 0, (name, oct(mode))
                seen += stat.S_ISREG(mode)
        assert seen >= 4, seen


if __name__ == "__main__":
    run_tests(globals())
