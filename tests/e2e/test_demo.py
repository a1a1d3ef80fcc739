# SPDX-License-Identifier: MIT
"""`make demo` is the first thing that a stranger runs; it must hold."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.dont_write_bytecode = True
from mcpclient import build_dir, run_tests  # noqa: E402


def test_the_demo_comes_as_expected():
    demo = os.path.join(HERE, "..", "..", "scripts", "demo")
    proc = subprocess.run([sys.executable, demo, build_dir()], text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    assert proc.returncode == 0, proc.stdout


if __name__ == "__main__":
    run_tests(globals())
