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


def limits_of_the_page():
    """name -> (usual, least, most), from the table under LIMITS."""
    rows = re.findall(r"^\|  _(\w+)_\n:  (\d+)\n:  (\d+)\n:  (\d+)\n",
                      text_of("man", "errand.3.scd"), re.M)
    return {name: tuple(map(int, numbers)) for name, *numbers in rows}


def limits_of_the_header():
    rows = re.findall(r"^\t \*   (\w+) +(\d+) +(\w+) +(\d+) ", text_of("include", "errand.h"),
                      re.M)
    return {name: (int(usual), int(usual if least == "as" else least), int(most))
            for name, usual, least, most in rows}


def limits_of_the_code():
    sizes = {name: eval(value, {"KIB": lambda n: n << 10, "MIB": lambda n: n << 20})
             for name, value in re.findall(r"^#define (MAX_\w+) ([\w()]+?)u?$",
                                           text_of("src", "base", "limits.h"), re.M)}
    sizes.update(KIB=lambda n: n << 10, MIB=lambda n: n << 20)
    table = re.sub(r"\s+", " ", text_of("src", "core", "maxima.c"))
    rows = re.findall(r'\{"(\w+)", offsetof\([^)]*\), ([^{}]+?),? ?\}', table)
    limits = {}
    for name, numbers in rows:
        least, usual, most = eval(numbers, dict(sizes))
        limits[name] = (usual, least, most)
    return limits


def test_the_limits_are_the_same_in_page_header_and_code():
    code = limits_of_the_code()
    assert len(code) == 8, code
    assert limits_of_the_page() == code, (limits_of_the_page(), code)
    assert limits_of_the_header() == code, (limits_of_the_header(), code)


if __name__ == "__main__":
    run_tests(globals())
