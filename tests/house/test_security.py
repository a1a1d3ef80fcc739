# SPDX-License-Identifier: MIT
"""Each promise in SECURITY.md names tests, and they are there."""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
sys.dont_write_bytecode = True
from mcpclient import run_tests  # noqa: E402


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def promises():
    """The points below "What is promised", each on one line."""
    part = text_of("SECURITY.md").split("## What is promised")[1].split("\n## ")[0]
    return [" ".join(point.split("\n\n")[0].split()) for point in part.split("\n* ")[1:]]


def all_tests():
    """The names of all tests, and the paths of the files they are in."""
    names, paths = set(), set()
    for folder, _, files in os.walk(os.path.join(ROOT, "tests")):
        for file in files:
            path = os.path.relpath(os.path.join(folder, file), ROOT)
            paths.update((path, os.path.dirname(path)))
            if re.match(r"test_\w+\.(c|py)$", file):
                names.update(re.findall(r"^(?:TEST\(|def (?=test_))(\w+)", text_of(path), re.M))
    return names, paths


def test_each_promise_names_tests_that_are_there():
    names, paths = all_tests()
    assert len(promises()) >= 12, promises()
    for promise in promises():
        said, _, tests = promise.partition("Tests: ")
        named = re.findall(r"`([\w/.]+)`", tests)
        assert said and named, "no tests for: " + promise
        for test in named:
            assert test in names or test in paths, "no test %s for: %s" % (test, said)


if __name__ == "__main__":
    run_tests(globals())
