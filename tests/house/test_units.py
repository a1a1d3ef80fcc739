# SPDX-License-Identifier: MIT
"""The units of systemd are what systemd takes, and what tasks outlive."""
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
sys.dont_write_bytecode = True
from mcpclient import build_dir, run_tests  # noqa: E402


def unit():
    with open(os.path.join(build_dir(), "systemd", "errand.service"), encoding="utf-8") as f:
        return f.read()


def verify(text):
    """What systemd has against a unit of this text."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "errand.service")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        done = subprocess.run(["systemd-analyze", "--user", "--man=no", "verify", path],
                              env={**os.environ, "XDG_RUNTIME_DIR": folder}, timeout=60,
                              capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def settings():
    """Each line Name=value of the unit."""
    return dict(line.split("=", 1) for line in unit().splitlines()
                if "=" in line and not line.startswith("#"))


def runnable():
    """The unit with a program that is there before it is installed."""
    command = settings()["ExecStart"]
    program, rest = command.split(" ", 1)
    assert os.path.isabs(program) and rest == "daemon", command
    return unit().replace(program, os.path.join(build_dir(), "errand"))


def test_systemd_takes_the_unit():
    code, said = verify(runnable())
    assert code == 0 and "errand.service:" not in said, said


def test_systemd_would_say_what_it_does_not_take():
    code, said = verify(runnable().replace("KillMode=process", "KillMode=proces"))
    assert code != 0 or "errand.service:" in said, (code, said)


def test_tasks_outlive_a_stop_and_are_forbidden_nothing():
    said = settings()
    assert said["KillMode"] == "process" and said["OOMPolicy"] == "continue", said
    assert said["Delegate"] == "yes", said  # or it could limit no task
    allowed = {"Description", "Documentation", "Type", "ExecStart", "Environment", "UMask",
               "KillMode", "Restart", "OOMPolicy", "TasksMax", "Delegate", "WantedBy"}
    assert set(said) == allowed, set(said) ^ allowed


if __name__ == "__main__":
    run_tests(globals())
