#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""spoiled.py RUN_VECTORS FILE... - a runner that cannot fail proves nothing.

For each file: its first row of each kind (of traces: the first step of each kind), with one
expectation changed, must fail and be named, each expectation in turn; a row or file of no
known kind must fail too.
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
TRACES = {"later_scenarios", "scenarios", "scenarios_random_1"}


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


def run(runner, folder, name, *rows):
    path = os.path.join(folder, name)
    with open(path, "w", encoding="utf-8") as f:
        f.writelines(json.dumps(row) + "\n" for row in rows)
    done = subprocess.run([runner, path], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def rows_of(source):
    with open(source, encoding="utf-8") as f:
        return [json.loads(line) for line in f]


def spoiled_rows(kind, source):
    """One row of each kind that the file has, spoiled."""
    firsts = {}
    for row in rows_of(source):
        firsts.setdefault(row.get("what") or row.get("stage"), row)
    for row in firsts.values():
        yield from spoiled_row(kind, row)


def spoiled_row(kind, row):
    """The row with each of its expectations changed in turn."""
    cases = [dict(row, **{key: spoil(row[key])})
             for key in sorted(set(row) - INPUTS[kind]) if row[key] is not None]
    return cases + [dict(row, unheard_of=1) if kind != "surface" else dict(row, what="x")]


def kinds_in(step):
    """What a step does, and what it tells of."""
    return {(step["op"], step.get("fn"))} | {e["ev"] for e in step.get("events", [])}


def spoiled_traces(source):
    """Traces with a step of each kind that gives or tells something else, or is of no kind."""
    seen = set()
    for row in rows_of(source):
        for i, step in enumerate(row["steps"]):
            if kinds_in(step) <= seen:
                continue
            seen |= kinds_in(step)
            for change in ({"out": spoil(step["out"])},
                           {"events": spoil(step.get("events", []))},
                           {"op": "x"}, {"unheard_of": 1}):
                steps = list(row["steps"])
                steps[i] = dict(step, **change)
                yield dict(row, steps=steps)
    yield dict(row, unheard_of=1)


def one_bad_row_costs_no_other(runner, folder):
    """A row that ends the process that plays it is named; the next one is played."""
    good = {"n": 2, "kind": "bash", "label": "a", "status": "completed", "detail": None,
            "summary": "bash a [status: completed]", "utf16": 26, "lone_surrogate": False}
    code, out = run(runner, folder, "summary.jsonl", dict(good, status="x"), good)
    return code == 1 and "ended in line 1" in out and "1 passed, 1 failed" in out


def check(runner, folder, source, problems):
    name = os.path.basename(source)
    kind = name.rsplit(".", 1)[0].replace("_own", "")
    cases = spoiled_traces(source) if kind in TRACES else spoiled_rows(kind, source)
    count = 0
    for case in cases:
        count += 1
        code, out = run(runner, folder, name, case)
        if code != 1 or "%s #%d\n" % (name, case["n"]) not in out:
            problems.append("%s: a spoiled row passed: %s" % (name, json.dumps(case)))
    return count


def main(argv):
    problems, count = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for source in argv[2:]:
            count += check(argv[1], folder, source, problems)
        code, _ = run(argv[1], folder, "unheard_of.jsonl", {"n": 1})
        if code != 1:
            problems.append("a file of no known kind passed")
        if not one_bad_row_costs_no_other(argv[1], folder):
            problems.append("a row that ends the runner took others with it")
    for problem in problems:
        print(problem)
    print("%d passed, %d failed" % (max(0, count + 2 - len(problems)), len(problems)))
    return 1 if problems or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
