# SPDX-License-Identifier: MIT
"""What people who run agents have reported about systems like this one, case by case: ends,
kills, and what a task gets from outside; what it prints and who is told is in
test_cases_text.py.

A test has the id of its case in front. tests/house/cases.txt lists all of them, with what
those wait for that no test shows yet.
"""
import hashlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from cases import (COUNTED, ERRAND, EXIT_0, client, end, equal, facts_of,  # noqa: E402
                   first_number, own_folder, own_sleep, read, resident_kb, run, running, start,
                   until_says, with_notice)
from mcpclient import (Folder, alive, notices_of, only_with_namespaces,  # noqa: E402
                       run_tests, text_of, wait_for)


# ---- how it ends ----

def test_ex_01_an_exit_code_is_completed():
    equal(run("exit 7"), "(no new output)\n[status: completed, exit code: 7]")
    with client() as c:
        facts = facts_of(c, start(c, "exit 7"))
        equal((facts["cause"], facts["exitCode"]), ("exit", 7))


def test_ex_11_an_exit_code_is_what_the_kernel_gives():
    with client() as c:
        for given, shown in (("300", 44), ("-1", 255), ("256", 0), ("255", 255), ("65535", 255)):
            equal(end(c, start(c, "exit " + given)),
                  "(no new output)\n[status: completed, exit code: %d]" % shown)


def test_ex_10_a_file_that_is_not_executable_is_126():
    text = run('f=$(mktemp); printf "echo hi\\n" > "$f"; chmod 600 "$f"; '
               'trap \'rm "$f"\' EXIT; bash -c "exec $f"')
    assert "Permission denied" in text and "exit code: 126]" in text, text
    assert run("exec /tmp").endswith("exit code: 126]")
    assert run("/no/such/program").endswith("exit code: 127]")


def test_ex_08_who_cleans_up_on_sigterm_and_exits_is_killed_with_its_code():
    with client() as c:
        task = start(c, "trap 'echo cleanup; exit 0' TERM; echo up; "
                        "while :; do sleep 0.05; done")
        until_says(c, task, "up")
        c.tool("task_kill", task_id=task)
        text = end(c, task)  # bash may tell of its sleep's end as well
        assert text.endswith("cleanup\n[status: killed, exit code: 0]"), text


def test_ex_12_a_deadline_is_named_and_takes_the_children():
    sleep = own_sleep()
    with client() as c:
        begin = time.monotonic()
        task = start(c, sleep + "; :", timeoutMs=1000)
        equal(end(c, task), "(no new output)\n[status: killed, timed out after 1000ms]")
        assert 0.9 < time.monotonic() - begin < 5
        equal(facts_of(c, task)["cause"], "deadline")
        equal(running(sleep), [])


def test_ex_13_a_deadline_is_said_to_be_final_for_a_model_and_is():
    with client() as c:
        tool = next(t for t in c.request("tools/list")["tools"] if t["name"] == "bash")
        said = tool["inputSchema"]["properties"]["timeoutMs"]["description"]
        assert "you cannot change it later" in said, said
        task = start(c, "echo up; exec sleep 60", timeoutMs=1000)
        read(c, task, timeoutMs=60000)
        c.tool("bash", command="true", description="d", timeoutMs=60000)
        text = end(c, task)
        assert text.endswith("[status: killed, timed out after 1000ms]"), text


def test_ex_06_a_kill_from_outside_is_told_apart_from_task_kill():
    with client(ERRAND_BASH_GRACE_MS="200") as c:
        task = start(c, "echo $$; exec sleep 300")
        pid = first_number(c, task)
        os.kill(pid, signal.SIGKILL)
        reply = wait_for(lambda: with_notice(c))
        assert "[status: killed, signal: SIGKILL]" in notices_of(reply)[0], reply
        equal(facts_of(c, task)["cause"], "signal")
        task = start(c, "trap '' TERM; echo up; while :; do sleep 0.1; done")
        until_says(c, task, "up")
        c.tool("task_kill", task_id=task)
        facts = facts_of(c, task)
        equal((facts["cause"], facts["signal"]), ("kill", "SIGKILL"))


def test_ps_02_a_killed_supervisor_is_lost_and_never_exit_0():
    with client() as c:
        task = start(c, "echo $PPID; kill -9 $PPID; "
                        "for i in $(seq 1 500); do sleep 0.2; done")
        lost = "[status: failed, lost: the supervisor was killed]"
        assert end(c, task).endswith(lost)
        facts = facts_of(c, task)
        assert facts["cause"] == "lost" and "exitCode" not in facts, facts
        equal(notices_of(c.tool("task_list")), [])
        sleep = own_sleep()
        task = start(c, "setsid %s & kill -9 $PPID; %s" % (sleep, sleep))
        reply = wait_for(lambda: with_notice(c))
        assert task in notices_of(reply)[0] and lost in notices_of(reply)[0], reply
        for _ in range(5):
            equal(notices_of(c.tool("task_list")), [])
        wait_for(lambda: not running(sleep))


def test_kill_14_no_zombie_is_left():
    with client() as c:
        task = start(c, "echo $PPID; " + 'python3 -c "import os,select\n'
                     "for i in range(40):\n"
                     "    if os.fork()==0:\n"
                     "        if os.fork()==0: os._exit(0)\n"
                     "        select.select([],[],[],0.02); os._exit(0)\n"
                     'select.select([],[],[])"')
        shim = first_number(c, task)

        def no_zombies():
            out = subprocess.run(["ps", "-o", "stat=", "--ppid", str(shim)], check=False,
                                 stdout=subprocess.PIPE, text=True).stdout.split()
            return out and not any(s.startswith("Z") for s in out)
        wait_for(no_zombies)


# ---- kills ----

def test_kill_05_who_ignores_sigterm_goes_after_the_grace():
    with client(ERRAND_BASH_GRACE_MS="700") as c:
        task = start(c, "trap '' TERM INT HUP; echo up; while :; do sleep 0.1; done")
        until_says(c, task, "up")
        begin = time.monotonic()
        c.tool("task_kill", task_id=task)
        assert time.monotonic() - begin < 0.6
        assert "] stopping" in c.text("task_list"), c.text("task_list")
        equal(end(c, task), "(no new output)\n[status: killed, signal: SIGKILL]")
        assert time.monotonic() - begin < 2.7


def test_kill_08_a_kill_of_its_own_group_hits_nobody_else():
    with client() as c:
        task = start(c, "echo hi; kill -TERM 0; sleep 5")
        equal(end(c, task), "hi\n[status: killed, signal: SIGTERM]")
        equal(end(c, start(c, "echo next")), "next\n" + EXIT_0)


def test_mu_04_a_pattern_kill_cannot_hit_a_supervisor():
    with client() as c:
        first = start(c, "exec sleep 60 # uniq-%d" % os.getpid())
        second = start(c, "pkill -f uniq-%d; echo pkill-rc=$?" % os.getpid())
        text = end(c, second)
        assert "pkill-rc=" in text or "signal: SIGTERM" in text, text
        assert first + " [bash] running" in c.text("task_list"), c.text("task_list")


def test_kill_10_a_kill_of_what_has_ended_changes_nothing():
    with client() as c:
        task = start(c, "echo out")
        wait_for(lambda: "completed" in c.text("task_list"))
        for _ in range(2):
            equal(c.text("task_kill", task_id=task),
                  "task %s had already finished %s" % (task, EXIT_0))
        equal(read(c, task), "out\n" + EXIT_0)
        equal(notices_of(c.tool("task_list")), [])


def test_kill_03_an_own_session_is_no_way_out():
    sleep = own_sleep()
    with client(ERRAND_BASH_GRACE_MS="200") as c:
        task = start(c, "setsid %s </dev/null >/dev/null 2>&1 & wait; sleep 600" % sleep)
        wait_for(lambda: running(sleep))
        c.tool("task_kill", task_id=task)
        end(c, task)
        equal(running(sleep), [])


def test_kill_03_neither_is_any_other():
    ways = ("nohup %s >/dev/null 2>&1 &", "(%s &) &", "setsid -f %s >/dev/null 2>&1",
            "python3 -c 'import os\nfor _ in range(3):\n    if os.fork(): os._exit(0)\n"
            "    os.setsid()\nos.execvp(\"sleep\", \"%s\".split())'",
            "env -i /bin/%s &", "trap '' TERM HUP INT; %s &", "%s & disown", "coproc %s")
    with client(ERRAND_BASH_GRACE_MS="200") as c:
        for way in ways:
            sleep = own_sleep()
            task = start(c, way % sleep + "\nwhile :; do sleep 0.1; done")
            line = "/bin/" + sleep if "env" in way else sleep
            wait_for(lambda line=line: running(line), 10, way)
            c.tool("task_kill", task_id=task)
            assert "[status: killed" in end(c, task), way
            equal(running(line), [])


def test_kill_05_who_is_stopped_goes_too():
    with client() as c:
        task = start(c, "echo $$; exec sleep 60")
        os.kill(first_number(c, task), signal.SIGSTOP)
        c.tool("task_kill", task_id=task)
        equal(end(c, task), "(no new output)\n[status: killed, signal: SIGTERM]")


def test_kill_05_a_supervisor_that_was_stopped_kills_all_the_same():
    with client() as c:
        task = start(c, "echo $PPID; exec sleep 60")
        os.kill(first_number(c, task), signal.SIGSTOP)
        equal(c.text("task_kill", task_id=task), "requested cancellation of task " + task)
        equal(end(c, task), "(no new output)\n[status: killed, signal: SIGTERM]")


def test_kill_02_a_loop_does_not_go_on_to_its_next_child():
    sleep = own_sleep()
    with client() as c:
        task = start(c, "for i in 1 2 3 4 5; do timeout 60 %s; done" % sleep)
        wait_for(lambda: running(sleep))
        c.tool("task_kill", task_id=task)
        assert "[status: killed" in end(c, task)
        equal(running(sleep), [])


def test_kill_06_who_forks_while_it_is_killed_is_gone():
    sleep = own_sleep()
    with client(ERRAND_BASH_GRACE_MS="200") as c:
        task = start(c, "while :; do %s & sleep 0.02; done" % sleep)
        wait_for(lambda: len(running(sleep)) > 10)
        c.tool("task_kill", task_id=task)
        end(c, task)
        equal(running(sleep), [])


def test_kill_11_a_kill_at_birth_is_obeyed_every_time():
    sleep = own_sleep()
    with client(ERRAND_LIMITS_LIVE_TASKS="0") as c:
        asked = []
        for n in range(1, 51):
            asked.append(c.post_tool("bash", command="exec " + sleep, description="d",
                                     run_in_background=True))
            asked.append(c.post_tool("task_kill", task_id="bash-%d" % n))
        for n, request in enumerate(asked):
            text = text_of(c.join(request))
            assert "unknown" not in text, (n, text)
        for n in range(1, 51):
            assert "[status: killed" in end(c, "bash-%d" % n), n
        equal(running(sleep), [])


def test_kill_12_who_was_given_an_old_pid_is_not_killed():
    """In a pid namespace of its own, where the next pid can be chosen."""
    only_with_namespaces()
    sleep = own_sleep()
    with client(["unshare", "--user", "--map-root-user", "--pid", "--fork", "--mount-proc",
                 ERRAND, "mcp"]) as c:
        task = start(c, "echo $$")
        pid = int(end(c, task).split()[0])
        other = start(c, "exec 3>/proc/sys/kernel/ns_last_pid; echo %d >&3; %s & echo $!; "
                         "wait" % (pid - 1, sleep))
        equal(first_number(c, other), pid)
        for _ in range(2):
            c.tool("task_kill", task_id=task)
        equal(end(c, start(c, "kill -0 %d && echo lives" % pid)), "lives\n" + EXIT_0)
        equal(len(running(sleep)), 1)
    wait_for(lambda: not running(sleep))


def test_io_01_a_background_child_with_the_pipe_is_counted_and_can_be_ended():
    sleep = own_sleep()
    with client() as c:
        begin = time.monotonic()
        task = start(c, sleep + " & echo started")
        equal(end(c, task), "started\n[status: completed, exit code: 0, 1 process left]")
        assert time.monotonic() - begin < 5
        c.tool("task_kill", task_id=task)
        wait_for(lambda: not running(sleep))


def test_io_03_a_child_with_only_stderr_holds_nothing_up():
    sleep = own_sleep()
    text = run(sleep + " </dev/null >/dev/null & echo half")
    equal(text, "half\n[status: completed, exit code: 0, 1 process left]")
    wait_for(lambda: not running(sleep))


# ---- what it gets from outside ----

def test_lm_07_a_task_inherits_no_mask_and_no_ignored_signal():
    odd = "trap '' HUP PIPE CHLD TERM; exec %s mcp" % ERRAND
    with client(["sh", "-c", odd]) as c:
        text = end(c, start(c, "exec grep -E '^Sig(Blk|Ign)' /proc/self/status"))
        equal(re.findall(r"^Sig\w+:\s*([0-9a-f]+)", text, re.M), ["0" * 16, "0" * 16])
    odd = ("import os, signal as s; s.pthread_sigmask(s.SIG_BLOCK, s.valid_signals()); "
           "os.execv('%s', ['errand', 'mcp'])" % ERRAND)
    with client(["python3", "-c", odd]) as c:
        text = end(c, start(c, "exec grep -E '^Sig(Blk|Ign)' /proc/self/status"))
        equal(re.findall(r"^Sig\w+:\s*([0-9a-f]+)", text, re.M), ["0" * 16, "0" * 16])


def test_lm_06_a_task_has_no_descriptor_but_its_three():
    equal(run("exec ls /proc/self/fd"), "0\n1\n2\n3\n" + EXIT_0)  # 3 is what ls reads


def test_lm_04_tasks_leave_no_descriptor_and_no_supervisor():
    with client() as c:
        def fds():
            return len(os.listdir("/proc/%d/fd" % c.host_pid()))

        def shims():
            out = subprocess.run(["ps", "-o", "args=", "--ppid", str(c.host_pid())],
                                 check=False, stdout=subprocess.PIPE, text=True).stdout
            return out.count("errand-shim")
        c.tool("bash", command="true", description="d")
        before = fds()
        for _ in range(100):
            c.tool("bash", command="true", description="d")
        wait_for(lambda: fds() <= before + 3)
        wait_for(lambda: shims() == 0)


def test_en_02_a_folder_that_is_gone_is_named():
    with client() as c:
        gone = tempfile.mkdtemp(prefix="errand-test-")
        os.rmdir(gone)
        reply = c.tool("bash", command="pwd", description="d", workdir=gone)
        assert reply["isError"] and gone in text_of(reply), reply
        equal(c.text("task_list"), "(no background tasks)")


def test_en_04_no_rc_file_moves_a_task():
    with tempfile.TemporaryDirectory() as home:
        for name in (".bashrc", ".profile", ".bash_profile"):
            with open(os.path.join(home, name), "w", encoding="utf-8") as f:
                f.write("cd /\n")
        with client(HOME=home) as c:
            equal(end(c, start(c, "pwd", workdir="/tmp")), "/tmp\n" + EXIT_0)


def test_en_06_a_heredoc_arrives_as_it_was():
    text = run("cat <<'X' | tr a-z A-Z\nline one $HOME\n  indented \"quotes\" 'single'\nX")
    equal(text, "LINE ONE $HOME\n  INDENTED \"QUOTES\" 'SINGLE'\n" + EXIT_0)


def test_en_06_a_command_arrives_byte_for_byte():
    odd = ("'\"'\"'", "\\ \\\\ $'\\t'", "$HOME `x` $(y) ${z}", "a\tb \x7f",
           "grün 日本 🎉 e\u0301", "\u202e \ufeff \u2028", "!! !$ ^a^b", "%s %d %%",
           "\r\n", "# no comment", "-n -e", "a" * 100000)
    with client() as c:
        for text in odd:
            command = ("printf %s \"$BASH_EXECUTION_STRING\" | sha256sum\n: <<'X'\n"
                       + text + "\nX\n")
            want = hashlib.sha256(command.encode()).hexdigest()
            equal(end(c, start(c, command)), "%s  -\n%s" % (want, EXIT_0))


def test_en_09_a_secret_is_nowhere_but_in_its_tasks():
    secret = "abc123secret%d" % os.getpid()
    with client(TOKEN_X=secret) as c:
        task = start(c, "echo up; exec sleep 60")
        until_says(c, task, "up")
        for name in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open("/proc/%s/cmdline" % name, "rb") as f:
                    assert secret.encode() not in f.read(), name
            except OSError:
                pass
        assert secret not in c.text("task_list")
        text = end(c, start(c, "tr '\\0' '\\n' </proc/$PPID/environ | grep -c TOKEN_X"))
        assert text.startswith("0\n"), text
        folder = own_folder(c)
        assert "spec" not in os.listdir(folder), os.listdir(folder)
        for at, _, files in os.walk(c.state):
            for name in files:
                path = os.path.join(at, name)
                if os.path.isfile(path):
                    with open(path, "rb") as f:
                        assert secret.encode() not in f.read(), path


def test_en_12_bytes_pass_whatever_the_locale():
    with client(LC_ALL="C", LANG="C") as c:
        task = start(c, "printf 'gr\\303\\274n \\346\\227\\245\\346\\234\\254\\n'")
        equal(end(c, task), "grün 日本\n" + EXIT_0)


def test_en_13_a_broken_pipe_ends_only_its_writer():
    equal(run("yes | head -n 1; echo done"), "y\ndone\n" + EXIT_0)


def test_io_04_stdin_is_empty():
    equal(run("cat; echo after-cat"), "after-cat\n" + EXIT_0)


def test_io_05_a_prompt_gets_nothing_and_does_not_hang():
    text = run("read -p 'Ok to proceed? (y) ' a; echo \"got:[$a] rc=$?\"")
    assert text.startswith("got:[] rc="), text
    text = run("read -p 'Password: ' a </dev/tty; echo \"got:[$a] rc=$?\"")
    assert "/dev/tty" in text and "got:[] rc=1\n" in text, text


def test_io_16_an_interactive_shell_stops_nobody():
    text = run("bash --norc -i -c 'echo from-interactive; exit 4'")
    assert "from-interactive\n" in text and text.endswith("exit code: 4]"), text


def test_lm_01_the_eleventh_is_refused_and_does_not_run():
    with client(ERRAND_LIMITS_LIVE_TASKS="10") as c, tempfile.TemporaryDirectory() as tmp:
        for _ in range(10):
            start(c, "exec sleep 60")
        path = os.path.join(tmp, "it-ran")
        reply = c.tool("bash", command="touch " + path, description="d",
                       run_in_background=True)
        equal(text_of(reply),
              "Error: background task limit reached for this owner (limit: 10); use task_kill "
              "to stop an unneeded task, wait for it to finish, then retry")
        assert reply["isError"], reply
        equal(c.text("task_list").count("] running"), 10)
        assert not os.path.exists(path)


def test_lm_03_a_list_of_many_is_bounded_and_the_memory_too():
    with client(ERRAND_LIMITS_LIVE_TASKS="0", **COUNTED) as c:
        def run_many():
            for _ in range(10):
                for call in [c.post_tool("bash", command="true", description="d")
                             for _ in range(30)]:
                    equal(text_of(c.join(call)), "(no output)")
            wait_for(lambda: len(c.text("task_list").splitlines()) <= 100)
            return resident_kb(c.host_pid())
        before = run_many()
        assert run_many() - before < 4096, before
        equal(len(c.text("task_list").splitlines()), 100)


def test_lm_09_who_has_no_memory_is_told_and_nobody_else_is_hit():
    with client() as c:
        other = start(c, "exec sleep 60")
        text = end(c, start(c, "ulimit -v 300000; "
                               "python3 -c 'x=bytearray(10**9); print(len(x))'"))
        assert "MemoryError" in text and "exit code: 1]" in text, text
        assert other + " [bash] running" in c.text("task_list")


def as_another_user(tmp, processes):
    """A server that may have so many processes beside those that its user has: a limit of a
    user's, and none of root's. It is in @tmp: the build may be where no other user comes."""
    for name in "errand", "errand-shim":
        shutil.copy(os.path.join(os.path.dirname(ERRAND), name), tmp)
    os.chmod(tmp, 0o755)
    os.mkdir(os.path.join(tmp, "state"), 0o700)
    command = [os.path.join(tmp, "errand"), "mcp", "--state", os.path.join(tmp, "state")]
    if os.geteuid() == 0:
        user = 100000 + os.getpid()  # who has no other process
        os.chown(os.path.join(tmp, "state"), user, user)
        return ["env", "-C", tmp, "setpriv", "--reuid=%d" % user, "--regid=%d" % user,
                "--clear-groups", "prlimit", "--nproc=%d:%d" % (processes, processes), *command]
    own = subprocess.run(["ps", "-L", "-o", "pid=", "-u", str(os.geteuid())], check=True,
                         stdout=subprocess.PIPE, text=True).stdout.count("\n")
    return ["prlimit", "--nproc=%d:%d" % (own + processes, own + processes), *command]


def test_lm_11_who_may_have_no_more_processes_is_told_and_goes_with_all_of_them():
    sleep = own_sleep()
    with Folder() as tmp, client(as_another_user(tmp, 60)) as c:
        task = start(c, "for i in $(seq 400); do %s & done; wait" % sleep)
        until_says(c, task, "Resource temporarily unavailable")
        equal(c.text("task_list").count("] running"), 1)
        text = c.text("bash", command="true", description="d")
        assert "[failed: cannot start '" in text and "temporarily unavailable" in text, text
        c.tool("task_kill", task_id=task)
        assert "[status: killed" in end(c, task)
        equal(running(sleep), [])
        equal(c.text("bash", command="echo next", description="d"), "next\n")


def test_lm_10_silence_is_no_stall():
    with client() as c:
        task = start(c, "exec >/dev/null 2>&1; for i in $(seq 1 400); do sleep 0.5; done")
        equal(read(c, task, wait=True, timeout_ms=2500),
              "(no new output)\n[status: running]")
        assert task + " [bash] running" in c.text("task_list")


if __name__ == "__main__":
    run_tests(globals())
