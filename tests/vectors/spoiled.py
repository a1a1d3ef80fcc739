#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""spoiled.py RUN_VECTORS FILE... - a runner that cannot fail proves nothing.

For each file: its first row of each kind, with one expectation changed, must fail and be
named, each expectation in turn; a row or file of no known kind must fail too.
"""
import json
import os
import subprocess
import sys
import tempfile

# What a row gives; the rest is what it expects.
INPUTS = {
    "args": {"n", "tool", "args", "limit"},
    "policy": {"n", "tool", "limit", "stage", "policy", "spec"},
    "kill_render": {"n", "kind", "state", "detail", "limit", "reason", "cancel_throws"},
    "list_render": {"n", "tasks"},
    "notice": {"n", "kind", "label", "status", "detail", "limit"},
    "notice_high_ordinals": {"n", "kind", "label", "status", "detail", "limit"},
    "output_render": {"n", "mode", "text", "status", "detail", "limit"},
    "retention": {"n", "kind", "max", "text", "chunks"},
    "summary": {"n", "raw", "kind", "label", "status", "detail", "lone_surrogate"},
    "surface": {"n", "what", "name", "config", "spec"},
}
TRACES = {"later_scenarios", "later_scenarios_own", "scenarios", "scenarios_own",
          "scenarios_random_1"}


def spoil(value):
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    if isinstance(value, list):
        return value + ["x"]
    return dict(value, spoiled=1)


def run(runner, folder, name, row):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(json.dumps(row) + "\n")
    done = subprocess.run([runner, path], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def check(runner, folder, source, problems):
    name = os.path.basename(source)
    count = 0
    for row in first_rows(source):
        count += check_row(runner, folder, name, row, problems)
    return count


def first_rows(source):
    """One row of each kind that the file has."""
    rows = {}
    with open(source, encoding="utf-8") as f:
        for line in f:
            row = json.loads(line)
            rows.setdefault(row.get("what") or row.get("stage"), row)
    return list(rows.values())


def spoiled_row(kind, row):
    """The row with each of its expectations changed in turn."""
    cases = [dict(row, **{key: spoil(row[key])})
             for key in sorted(set(row) - INPUTS[kind]) if row[key] is not None]
    return cases + [dict(row, unheard_of=1) if kind != "surface" else dict(row, what="x")]


def spoiled_trace(row):
    """A trace whose steps give or tell something else, or are of no known kind."""
    cases = [dict(row, unheard_of=1)]
    for i, step in enumerate(row["steps"]):
        for change in ({"out": spoil(step["out"])}, {"events": spoil(step.get("events", []))},
                       {"op": "x"}, {"unheard_of": 1}):
            steps = list(row["steps"])
            steps[i] = dict(step, **change)
            cases.append(dict(row, steps=steps))
    return cases


def check_row(runner, folder, name, row, problems):
    kind = name.rsplit(".", 1)[0]
    cases = spoiled_trace(row) if kind in TRACES else spoiled_row(kind, row)
    for case in cases:
        code, out = run(runner, folder, name, case)
        if code != 1 or "%s #%d\n" % (name, row["n"]) not in out:
            problems.append("%s: a spoiled row passed: %s" % (name, json.dumps(case)))
    return len(cases)


def main(argv):
    problems, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for source in argv[2:]:
            count += check(argv[1], folder, source, problems)
        code, _ = run(argv[1], folder, "unheard_of.jsonl", {"n": 1})
        if code != 1:
            problems.append("a file of no known kind passed")
    for problem in problems:
        print(problem)
    print("%d passed, %d failed" % (max(0, count + 1 - len(problems)), len(problems)))
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
