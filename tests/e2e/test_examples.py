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
Error: let it run
background task run-1 (run: echo hello) finished [status: completed, exit code: 0]. \
Read its output with task_output.
hello
[status: completed, exit code: 0]
Error: unknown task run-2
"""

C_SAYS = """\
ann: command {"run":"echo password=1234"}
person: yes
log: command begins
log: command ended
result: \\"started command-1\\"
notice: background task command-1 (command: echo password=1234) finished [status: completed, exit code: 0]. \
Read its output with task_output.
ann: task_output {"task_id":"command-1"}
log: task_output begins
log: task_output ended
result: [a password was here]
bob: task_output {"task_id":"command-1"}
log: task_output begins
log: task_output ended
result: Error: task command-1 belongs to another session
cid: command {"run":"true"}
result: Error: unknown tool \\"command\\"
cid: timer {}
result: \\"started timer-1\\"
cid: task_kill {"task_id":"timer-1"}
result: Error: a scout stops nothing
cid: task_output {"task_id":"timer-1","wait":true}
result: time is up\\n[status: completed]
"""


def output_of(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False, timeout=60)
    assert done.returncode == 0, done
    return done.stdout


def test_embed_py_plays_a_task_from_start_to_notice():
    example = os.path.join(HERE, "..", "..", "examples", "embed.py")
    said = output_of(sys.executable, example, os.path.join(build_dir(), "liberrand.so"))
    assert said == PYTHON_SAYS, said


def test_embed_c_plays_three_agents_under_a_policy():
    said = output_of(os.path.join(build_dir(), "examples", "embed"))
    assert said == C_SAYS, said


if __name__ == "__main__":
    run_tests(globals())
