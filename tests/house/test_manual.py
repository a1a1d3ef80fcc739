# SPDX-License-Identifier: MIT
"""errand(3) names each function of errand.h, and none that is not there."""
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


def declared():
    """The functions that the header declares for the user."""
    code = re.sub(r"/\*.*?\*/", "", text_of("include", "errand.h"), flags=re.S)
    return set(re.findall(r"^ERRAND_(?:API|FN)\b[^;(]*?\b(errand_\w+)\(", code, re.M))


def named():
    """The functions that have a line of their own, or share one."""
    lines = [line for line in text_of("man", "errand.3.scd").split("\n")
             if line.startswith("*errand_")]
    return re.findall(r"\*(errand_\w+)\*\(\)", "\n".join(lines))


def test_the_page_names_each_function_once():
    names = named()
    assert len(declared()) > 40, declared()
    assert sorted(names) == sorted(set(names)), "a function is named twice"
    missing, unknown = declared() - set(names), set(names) - declared()
    assert not missing and not unknown, (sorted(missing), sorted(unknown))


def test_each_line_that_names_functions_says_what_they_do():
    page = text_of("man", "errand.3.scd")
    for line, after in zip(page.split("\n"), page.split("\n")[1:]):
        if line.startswith("*errand_") and line.endswith("*()"):
            assert after.startswith("\t"), line


if __name__ == "__main__":
    run_tests(globals())
