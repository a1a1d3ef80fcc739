# SPDX-License-Identifier: MIT
"""The programs of examples/ do what they say, with the library as it is installed."""
import os
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.dont_write_bytecode = True
from mcpclient import build_dir, run_tests  # noqa: E402

PYTHON_SAYS = """\
{"taskId": "run-1"}
run-1 [run] running — echo hello
background task run-1 (run: echo hello) finished [status: completed, exit code: 0]. \
Read its output with task_output.
hello
[status: completed, exit code: 0]
Error: unknown task run-2
"""


def output_of(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 0, done
    return done.stdout


def test_embed_py_plays_a_task_from_start_to_notice():
    example = os.path.join(HERE, "..", "..", "examples", "embed.py")
    said = output_of(sys.executable, example, os.path.join(build_dir(), "liberrand.so"))
    assert said == PYTHON_SAYS, said


if __name__ == "__main__":
    run_tests(globals())
