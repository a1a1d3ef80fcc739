# SPDX-License-Identifier: MIT
"""A daemon in trouble: full and read-only disks, a database taken away or damaged, no descriptors
left, a clock set back, a second daemon. Nothing is lost, and who asks is told why."""
import contextlib
import fcntl
import os
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from daemon import ERRAND, Agent, Daemon, Refused  # noqa: E402
from mcpclient import alive, notices_of, only_root, run_tests, text_of, wait_for  # noqa: E402


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def start(a, command):
    return a.text("bash", command=command, description="d", run_in_background=True).split()[-1]


class Disk(tempfile.TemporaryDirectory):
    """A small file system of its own."""

    def __init__(self, size):
        only_root()
        super().__init__(prefix="errand-test-")
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=700,size=%s" % size, "none",
                        self.name], check=True)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        subprocess.run(["umount", "-l", self.name], check=True)
        super().__exit__(kind, value, trace)

    def fill(self, but):
        free = os.statvfs(self.name)
        with open(os.path.join(self.name, "filler"), "wb") as f:
            f.write(bytes(max(0, free.f_bavail * free.f_frsize - but)))

    def drain(self):
        os.unlink(os.path.join(self.name, "filler"))


# ---- the disk ----

def test_a_start_on_a_full_disk_is_refused_and_nothing_runs():
    with Disk("8m") as disk, tempfile.TemporaryDirectory() as top, Daemon(disk.name) as d:
        with d.agent(session="s") as a, d.operator() as op:
            disk.fill(but=200000)
            mark = os.path.join(top, "mark")
            said = a.tool("bash", command="touch " + mark, description="d")
            assert said["isError"], said
            for part in ("cannot start a task", disk.name, "is full", "nothing was started"):
                assert part in text_of(said), said
            try:
                op.ask("errand/run", argv=["touch " + mark])
                raise AssertionError("it was started")
            except Refused as e:
                assert "is full" in str(e), e
            equal((op.ask("errand/list")["tasks"], os.path.exists(mark)), ([], False))
            disk.drain()
            equal(a.text("bash", command="touch %s; echo done" % mark, description="d"),
                  "done\n")


def unkeepable(d, is_so):
    """No file of the daemon's may grow, or be written at all; the tasks' limits are their own."""
    hard = resource.prlimit(d.proc.pid, resource.RLIMIT_FSIZE)[1]
    resource.prlimit(d.proc.pid, resource.RLIMIT_FSIZE, (0 if is_so else hard, hard))


def test_an_end_that_cannot_be_kept_is_told_from_memory_and_flagged():
    with Daemon() as d, tempfile.TemporaryDirectory() as top:
        with d.agent(session="s") as a:
            task = start(a, "echo hello; while [ ! -e %s/go ]; do sleep 0.01; done; exit 3" % top)
            wait_for(lambda: os.path.exists(os.path.join(d.state, "tasks")), 10)
            unkeepable(d, True)
            with open(top + "/go", "wb"):
                pass
            with d.operator() as op:
                equal(op.ask("errand/wait", id=task)["task"]["detail"], "exit code: 3")
            reply = a.tool("task_output", task_id=task, wait=True)
            equal(text_of(reply), "hello\n[status: completed, exit code: 3]")
            reply = a.tool("task_list")
            assert reply["_meta"]["errand/unsaved"], reply
            said = a.tool("bash", command="true", description="d")
            assert "cannot be kept" in text_of(said) and said["isError"], said
            unkeepable(d, False)
            wait_for(lambda: "errand/unsaved" not in a.tool("task_list").get("_meta", {}), 10)
            equal(a.text("bash", command="echo again", description="d"), "again\n")
            a.request("ping")
        d.kill()
        d.start()
        with d.agent(session="s") as a:
            reply = a.tool("task_output", task_id=task)
            equal((text_of(reply), notices_of(reply)),
                  ("(no new output)\n[status: completed, exit code: 3]", []))
        equal(d.said().count("kept again"), 1)


def all_is_kept(d):
    """Of @d's tasks, which have ended and were told."""
    with contextlib.closing(sqlite3.connect(os.path.join(d.state, "errand.db"))) as db:
        return db.execute("SELECT min(reported) AND NOT EXISTS (SELECT 1 FROM request) "
                          "FROM task").fetchone()[0]


def test_what_was_planned_when_the_disk_began_to_refuse_is_told_and_never_runs():
    with Daemon() as d, tempfile.TemporaryDirectory() as top:
        mark = os.path.join(top, "mark")
        with d.agent(session="s") as a:
            equal(a.text("bash", command="echo before", description="d"), "before\n")
            wait_for(lambda: all_is_kept(d), 10)  # the next start is the first that is refused
            unkeepable(d, True)
            reply = a.tool("bash", command="touch " + mark, description="d")
            for part in ("[failed: nothing was started", "make room, then start it again"):
                assert part in text_of(reply), reply
            assert reply["_meta"]["errand/unsaved"], reply
            unkeepable(d, False)
            wait_for(lambda: "errand/unsaved" not in a.tool("task_list").get("_meta", {}), 10)
            equal(a.text("bash", command="echo again", description="d"), "again\n")
        d.kill()
        d.start()
        with d.operator() as op:
            told = [t.get("detail", "") for t in op.ask("errand/list")["tasks"]]
            assert "make room, then start it again" in told[1], told
        assert not os.path.exists(mark)


def test_a_daemon_that_dies_with_what_it_could_not_keep_tells_it_again():
    with Daemon() as d:
        with d.agent(session="s") as a:
            task = start(a, "read x; exit 3")
            with d.operator() as op:
                op.ask("errand/wait", id=task)
            unkeepable(d, True)
            equal(len(notices_of(a.tool("task_list"))), 1)
            wait_for(lambda: "errand/unsaved" in a.tool("task_list").get("_meta", {}), 10)
        d.kill()
        d.start()
        with d.agent(session="s") as a:
            told = notices_of(a.tool("task_list"))
            assert len(told) == 1 and "exit code: 3" in told[0], told


def test_a_read_only_state_folder_is_refused_with_its_path():
    with Disk("8m") as disk:
        subprocess.run(["mount", "-o", "remount,ro", disk.name], check=True)
        done = subprocess.run([ERRAND, "daemon", "--state", disk.name], capture_output=True,
                              timeout=20, check=False)
        equal((done.returncode, done.stdout), (1, b""))
        assert disk.name.encode() in done.stderr and b"Read-only" in done.stderr, done.stderr
        done = subprocess.run([ERRAND, "mcp"], input=b"", capture_output=True,
                              timeout=20, check=False,
                              env={**os.environ, "ERRAND_STATE": disk.name})
        assert done.returncode != 0 and disk.name.encode() in done.stderr, done


# ---- the database ----

def test_a_database_that_is_removed_or_moved_away_is_written_anew():
    def unlink(state):
        os.unlink(os.path.join(state, "errand.db"))

    def unlink_all(state):
        for part in ("", "-wal", "-shm"):
            os.unlink(os.path.join(state, "errand.db" + part))

    def move(state):
        os.rename(os.path.join(state, "errand.db"), os.path.join(state, "mine.db"))

    def replace(state):
        shutil.copyfile(os.path.join(state, "errand.db"), os.path.join(state, "x"))
        os.rename(os.path.join(state, "x"), os.path.join(state, "errand.db"))

    for take_away in (unlink, unlink_all, move, replace):
        with Daemon() as d:
            with d.agent(session="s") as a:
                task = start(a, "echo hello; exec sleep 600")
                take_away(d.state)
                if take_away is replace:  # nothing was removed that could be seen
                    a.text("bash", command="true", description="d")
                wait_for(lambda: "written anew" in d.said(), 10, d.said())
                equal(stat.S_IMODE(os.stat(os.path.join(d.state, "errand.db")).st_mode), 0o600)
                second = start(a, "exec sleep 600")
            d.kill()
            d.start()
            with d.agent(session="s") as a:
                listed = a.text("task_list")
                assert task in listed and second in listed, (take_away, listed)
                equal(a.text("task_output", task_id=task).split("\n")[0], "hello")


def damage(state):
    for part in ("", "-wal"):
        path = os.path.join(state, "errand.db" + part)
        with open(path, "r+b") as f:
            f.write(b"\xa5" * os.path.getsize(path))


def test_a_damaged_database_is_moved_aside_and_no_output_goes():
    with Daemon() as d:
        with d.agent(session="s") as a:
            start(a, "echo precious")
            with d.operator() as op:
                op.ask("errand/wait", id="bash-1")
        damage(d.state)
        d.kill()
        d.start()
        assert "errand.db.corrupt-1" in d.said(), d.said()
        with d.agent(session="s") as a:
            equal(a.text("task_list"), "(no background tasks)")
            equal(a.text("bash", command="echo hi", description="d"), "hi\n")
        logs = []
        for uid in os.listdir(os.path.join(d.state, "tasks")):
            with open(os.path.join(d.state, "tasks", uid, "out"), "rb") as f:
                logs.append(f.read())
        equal(sorted(logs), [b"hi\n", b"precious\n"])


def test_a_database_that_is_damaged_under_a_daemon_never_makes_it_crash_or_lie():
    with Daemon() as d:
        with d.agent(session="s") as a:
            for _ in range(5):
                a.text("bash", command="echo hi", description="d")
            damage(d.state)
            try:
                for _ in range(20):
                    equal(a.text("bash", command="echo hi", description="d"), "hi\n")
            except EOFError:
                equal(d.proc.wait(10), 1)  # it has said why
                assert "cannot keep what happens" in d.said(), d.said()
        if d.proc.poll() is None:
            d.kill()
        d.start()
        with d.agent(session="s") as a:
            equal(a.text("bash", command="echo hi", description="d"), "hi\n")


# ---- the folder ----

def put_another(state, moved):
    os.rename(state, moved)
    os.mkdir(state, 0o700)


def in_a_folder_that_goes(top, then):
    """A daemon with a live task; @then gets it, its client, the path, and another one."""
    state, moved = os.path.join(top, "state"), os.path.join(top, "moved")
    with Daemon(state) as d:
        with d.agent(session="s") as a:
            task = start(a, "echo $$; exec sleep 600")
            pid = int(wait_for(lambda: (lambda t: t if t[0].isdigit() else None)(
                a.text("task_output", task_id=task)), 10).split()[0])
            then(d, a, state, moved)
        assert "state folder was moved or replaced" in d.said(), d.said()
        assert alive(pid), "the task was ended"
    with Daemon(moved) as d, d.agent(session="s") as a:
        assert task + " [bash] running" in a.text("task_list"), a.text("task_list")


def test_a_folder_that_is_moved_under_a_daemon_is_left_and_its_tasks_run_on():
    def move(d, _a, state, moved):
        os.rename(state, moved)
        equal(d.proc.wait(10), 1)
        assert not os.path.exists(state)
    with tempfile.TemporaryDirectory() as top:
        in_a_folder_that_goes(top, move)


def test_a_daemon_touches_nothing_in_the_folder_that_has_taken_the_place_of_its_own():
    def replace(d, _a, state, moved):
        put_another(state, moved)
        equal(d.proc.wait(10), 1)
        equal(os.listdir(state), [])
        with Daemon(state) as other, other.agent(session="s") as b:
            equal(b.text("task_list"), "(no background tasks)")
    with tempfile.TemporaryDirectory() as top:
        in_a_folder_that_goes(top, replace)


def test_a_folder_above_that_is_moved_is_noticed_when_something_is_to_be_kept():
    def move_above(d, a, state, moved):
        top = os.path.dirname(state)
        os.rename(top, top + "-away")
        os.makedirs(state, 0o700)
        a.post_tool("bash", command="true", description="d")
        equal(d.proc.wait(10), 1)
        equal(os.listdir(state), [])
        os.rename(top + "-away/state", moved)
    with tempfile.TemporaryDirectory() as above:
        os.mkdir(above + "/top")
        in_a_folder_that_goes(above + "/top", move_above)


def test_a_folder_that_is_replaced_while_a_daemon_starts_is_not_mixed_with_the_other():
    with tempfile.TemporaryDirectory() as top:
        state, moved = os.path.join(top, "state"), os.path.join(top, "moved")
        os.mkdir(state, 0o700)
        with open(os.path.join(state, "host.lock"), "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            with subprocess.Popen([ERRAND, "daemon", "--state", state],
                                  stderr=subprocess.PIPE) as starting:
                def has_opened_it():
                    folder = "/proc/%d/fd" % starting.pid
                    return any(os.readlink(os.path.join(folder, fd)) == state + "/host.lock"
                               for fd in os.listdir(folder))
                wait_for(has_opened_it, 10)
                put_another(state, moved)
                fcntl.flock(lock, fcntl.LOCK_UN)
                said = starting.stderr.read()
        equal(starting.returncode, 1)
        assert b"was moved or replaced" in said and state.encode() in said, said
        equal((os.listdir(state), os.listdir(moved)), ([], ["host.lock"]))


# ---- the clock ----

def test_a_clock_that_was_set_back_harms_nobody():
    with Daemon() as d, tempfile.TemporaryDirectory() as top:
        with d.agent(session="s") as a:
            task = start(a, "while [ ! -e %s/go ]; do sleep 0.01; done; exit 3" % top)
        d.kill()
        db = sqlite3.connect(os.path.join(d.state, "errand.db"))
        with db:  # as if it had been a year later then
            db.execute("UPDATE task SET started = started + 31536000000")
        db.close()
        d.start()
        with open(top + "/go", "wb"):
            pass
        with d.operator() as op:
            ended = op.ask("errand/wait", id=task)["task"]
            equal(ended["detail"], "exit code: 3")
            assert ended["finishedAt"] >= ended["startedAt"], ended
        d.kill()
        d.start()
        with d.agent(session="s") as a:
            equal(len([t for t in notices_of(a.tool("task_list")) if "exit code: 3" in t]), 1)
        assert "corrupt" not in d.said(), d.said()


# ---- others ----

def test_a_second_daemon_is_refused_however_its_folder_is_spelled():
    with tempfile.TemporaryDirectory() as home:
        os.symlink(home, home + "-link")
        env = {k: v for k, v in os.environ.items() if k != "ERRAND_STATE"}
        with Daemon(os.path.join(home, ".local/state/errand")) as d:
            for spelled in (home, home + "/", home + "/./../" + os.path.basename(home),
                            home + "-link"):
                done = subprocess.run(
                    [ERRAND, "daemon"], capture_output=True, timeout=20, check=False,
                    env={**env, "HOME": spelled, "XDG_STATE_HOME": "/nonexistent",
                         "XDG_RUNTIME_DIR": "/nonexistent", "XDG_DATA_HOME": home})
                assert done.returncode == 1 and \
                    b"another host (pid %d)" % d.proc.pid in done.stderr, done
        os.unlink(home + "-link")


def test_without_descriptors_new_clients_are_told_and_others_go_on():
    with Daemon() as d, d.agent(session="s") as a:
        task = start(a, "exec sleep 600")
        used = len(os.listdir("/proc/%d/fd" % d.proc.pid))
        resource.prlimit(d.proc.pid, resource.RLIMIT_NOFILE, (used + 9, used + 9))
        others, said = [], None
        try:
            for _ in range(20):
                others.append(Agent(d.state, session="s"))
        except Refused as e:
            said = str(e)
        assert said and "limit of open files" in said and others, said
        equal(a.request("ping"), {})
        others[-1].initialize()
        assert task in others[-1].text("task_list")
        refused = a.tool("bash", command="true", description="d")
        assert refused["isError"] or "failed" in text_of(refused) or \
            "cannot" in text_of(refused), refused
        for other in others:
            other.close()

        def is_let_in():
            try:
                Agent(d.state, session="s").close()
                return True
            except Refused:
                return False
        wait_for(is_let_in, 10)
        equal(a.text("bash", command="echo hi", description="d"), "hi\n")


# ---- what others may see ----

def modes(state):
    for top, folders, files in os.walk(state):
        for name in folders + files:
            path = os.path.join(top, name)
            st = os.lstat(path)
            yield path, stat.S_ISDIR(st.st_mode), stat.S_IMODE(st.st_mode), st.st_uid


def test_all_files_of_a_busy_daemon_are_its_users_alone():
    umask = os.umask(0)
    try:
        with Daemon() as d, d.agent(session="s", umask=0) as a:
            for i in range(6):
                a.text("bash", command="seq %d; sleep 0.%d" % (10 ** i, i), description="d",
                       run_in_background=i % 2 == 0)
            task = start(a, "echo up; exec sleep 600")
            wait_for(lambda: "up" in a.text("task_output", task_id=task), 10)
            seen = set()
            for path, is_folder, mode, uid in modes(d.state):
                equal((path, uid, mode), (path, os.geteuid(), 0o700 if is_folder else 0o600))
                seen.add(os.path.basename(path))
            for name in ("errand.db", "errand.db-wal", "host.lock", "host.sock", "tasks", "out",
                         "status", "lock", "sock"):
                assert name in seen, (name, sorted(seen))
    finally:
        os.umask(umask)


def test_another_user_can_neither_list_nor_read_nor_kill_nor_connect():
    only_root()
    with Daemon() as d, d.agent(session="s") as a:
        task = start(a, "echo secret; exec sleep 600")
        wait_for(lambda: "secret" in a.text("task_output", task_id=task), 10)
        uid, = os.listdir(os.path.join(d.state, "tasks"))
        nobody = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        for words in (["ls", d.state], ["cat", os.path.join(d.state, "errand.db")],
                      ["cat", os.path.join(d.state, "tasks", uid, "out")],
                      ["kill", str(d.proc.pid)],
                      *([ERRAND, command, "--state", d.state, *more]
                        for command, more in (("ls", []), ("logs", [task]), ("output", [task]),
                                              ("kill", [task]), ("run", ["true"])))):
            done = subprocess.run(nobody + words, capture_output=True, timeout=20, check=False)
            assert done.returncode != 0 and b"secret" not in done.stdout, (words, done)
        assert " running " in a.text("task_list")


# ---- signals ----

def test_a_supervisor_ends_whatever_signals_come_meanwhile():
    """A host's SIGCONT may reach it in its last steps, those of a sanitizer included."""
    for _ in range(20):
        shim = subprocess.Popen([ERRAND + "-shim"], env={}, stdin=subprocess.DEVNULL,
                                stderr=subprocess.DEVNULL)
        try:
            def gone(shim=shim):
                for _ in range(1000):
                    shim.send_signal(signal.SIGCONT)
                return shim.poll() is not None
            wait_for(gone, 10, "the supervisor's end")
        finally:
            shim.kill()
            shim.wait()


if __name__ == "__main__":
    run_tests(globals())
