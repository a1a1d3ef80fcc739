#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""spoiled_traces.py TEST_LOOP FOLDER - each whole log of an agent's loop is re-enacted by name.

The test with the name of a row must pass with the row as it is, and fail with each of the
things changed that the core has a say in; what the row feeds in may be anything.
"""
import copy
import json
import os
import re
import subprocess
import sys
import tempfile


def test_name(name):
    name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
    return re.sub(r"[^a-z0-9]+", "_", name).strip("_")


def passed(program, folder):
    """The names of the tests that pass with the traces of @folder."""
    env = dict(os.environ, ERRAND_TRACES=folder, CMOCKA_MESSAGE_OUTPUT="TAP")
    done = subprocess.run([program], env=env, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True, check=False)
    return set(re.findall(r"^ok \d+ - (\w+)", done.stdout, re.M))


def is_ours(event):
    """The core writes it, by itself or because it was asked to."""
    return event["type"] in ("agent/inbox/spliced", "user/message", "tool/result",
                             "turn/start", "step/start", "step/end")


def spoiled_events(row):
    """The log with one event changed, each in turn."""
    for i, event in enumerate(row["log"]):
        if not is_ours(event):
            continue
        for key in sorted(set(event) & {"start", "removedCount", "turn", "step", "id"}):
            case = copy.deepcopy(row)
            case["log"][i][key] = event[key] + (1 if isinstance(event[key], int) else "x")
            yield "%s of event %d" % (key, i), case
        if event["type"] == "tool/result":
            case = copy.deepcopy(row)
            case["log"][i]["text"] += "x"
            yield "text of event %d" % i, case


def spoiled_rest(row):
    """What was sent to the model, and what is left, changed each in turn."""
    for n, request in enumerate(row["requests"]):
        case = copy.deepcopy(row)
        case["requests"][n] = request + [{"role": "user", "text": "x"}]
        yield "request %d" % n, case
    for key, value in (("status", "running"), ("warnings", ["x"]), ("tasks_after", 7),
                       ("pending", {"next_step": ["x"], "next_turn": []})):
        if key in row:
            yield key, dict(row, **{key: value})
    yield "an event more", dict(row, log=row["log"] + [{"type": "turn/end"}])


def rows_of(folder):
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), encoding="utf-8") as f:
            yield name, [json.loads(line) for line in f]


def check_row(program, name, row, problems):
    count = 0
    for what, case in [*spoiled_events(row), *spoiled_rest(row)]:
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(json.dumps(case) + "\n")
            count += 1
            if test_name(row["name"]) in passed(program, folder):
                problems.append("%s: %s passed with %s spoiled" % (name, row["name"], what))
    return count


def main(argv):
    program, folder = argv[1:]
    problems, count, whole = [], 0, passed(program, folder)
    for name, rows in rows_of(folder):
        for row in rows:
            count += 1
            if test_name(row["name"]) not in whole:
                problems.append("%s: no test passes for %s" % (name, row["name"]))
            count += check_row(program, name, row, problems)
    for problem in problems:
        print(problem)
    print("%d passed, %d failed" % (max(0, count - len(problems)), len(problems)))
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
