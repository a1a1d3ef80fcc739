# SPDX-License-Identifier: MIT
"""What has to be tested is in tables, and each line of them names tests that there are."""
import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
sys.dont_write_bytecode = True
from mcpclient import run_tests  # noqa: E402

SENTENCE = re.compile(r"^(?:[A-Z_]*TEST\((\w+)|def test_(\w+))", re.M)
NAMES = re.compile(r"[\w/]+\.\w+(?:, [\w/]+\.\w+)*")


def text_of(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def sentences():
    """{"start": {"a_kind_is_not_empty", ...}, "e2e/notices": {...}, ...} of all test files."""
    found = {}
    for folder in ("unit", "e2e", "crash", "fault", "golden"):
        for name in os.listdir(os.path.join(ROOT, "tests", folder)):
            match = re.fullmatch(r"test_(\w+)\.(?:c|py)", name)
            if match:
                key = match.group(1) if folder == "unit" else folder + "/" + match.group(1)
                text = text_of("tests", folder, name)
                found[key] = {a or b for a, b in SENTENCE.findall(text)}
    return found


def lines_of(text):
    return [line for line in text.split("\n") if line and not line.startswith("#")]


def problems_of(table, known):
    """What is wrong with a table of behaviours."""
    bad, heading, left = [], None, 0
    for line in [*lines_of(table), "[end, 0]"]:
        match = re.fullmatch(r"\[(.+), (\d+)\]", line)
        if match:
            if left > 0:
                bad.append("%s: %d behaviours are missing" % (heading, left))
            heading, left = match.group(1), int(match.group(2))
            continue
        left -= 1
        behaviour, _, names = line.rpartition(": ")
        if not behaviour or not NAMES.fullmatch(names):
            bad.append("no line of a behaviour: " + line)
            continue
        for name in names.split(", "):
            key, _, sentence = name.rpartition(".")
            if sentence not in known.get(key, ()):
                bad.append("%s: there is no test %s" % (behaviour, name))
    return bad


def test_each_behaviour_is_shown_by_tests_that_there_are():
    bad = problems_of(text_of("tests", "house", "behaviours.txt"), sentences())
    assert not bad, "\n".join(bad)


def test_a_table_with_a_gap_is_refused():
    known = {"start": {"a"}, "e2e/host": {"b"}}
    assert problems_of("# x\n[S, 2]\none: start.a\ntwo: start.a, e2e/host.b\n", known) == []
    for table, word in (("[S, 1]\none: start.c\n", "no test start.c"),
                        ("[S, 1]\none: host.b\n", "no test host.b"),
                        ("[S, 2]\none: start.a\n", "1 behaviours are missing"),
                        ("[S, 1]\nstart.a\n", "no line"),
                        ("[S, 1]\none: start.a and more\n", "no line")):
        bad = problems_of(table, known)
        assert len(bad) == 1 and word in bad[0], (table, bad)


# The short names of docs/crash-points.md.
PLACES = {"crash": "crash/crash", "prefixes": "crash/prefixes", "fault": "fault/fault",
          "attach": "attach", "run": "run", "proto": "proto", "ends": "shim_ends",
          "left": "shim_left", "signal": "shim_signal", "uid": "shim_uid",
          "restart": "e2e/restart"}
CELL = re.compile(r"(\w+): (`\w+`(?:, `\w+`)*)")


def crash_problems(page, known):
    """Rows of crash-points.md whose last cell does not name tests that there are."""
    bad, rows = [], 0
    for line in page.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("|") or cells[-1] == "test" or set(cells[-1]) == {"-"}:
            continue
        rows += 1
        matches = [CELL.fullmatch(part) for part in cells[-1].split("; ")]
        if not all(matches):
            bad.append("names no test: " + line)
            continue
        for match in matches:
            there = known.get(PLACES.get(match.group(1)), ())
            bad += ["there is no test %s: %s" % (match.group(1), name)
                    for name in re.findall(r"\w+", match.group(2)) if name not in there]
    return bad if rows else ["no rows"]


def test_each_crash_point_names_tests_that_there_are():
    bad = crash_problems(text_of("docs", "crash-points.md"), sentences())
    assert not bad, "\n".join(bad)


def test_a_crash_point_without_its_test_is_refused():
    known = {"crash/crash": {"a"}, "attach": {"b"}}
    head = "| step | test |\n|---|---|\n"
    assert crash_problems(head + "| x | crash: `a`; attach: `b`, `b` |\n", known) == []
    for row, word in (("| x | crash: `c` |\n", "no test crash: c"),
                      ("| x | elsewhere: `a` |\n", "no test elsewhere"),
                      ("| x | by hand |\n", "names no test"), ("", "no rows")):
        bad = crash_problems(head + row, known)
        assert len(bad) == 1 and word in bad[0], (row, bad)


def test_each_difference_has_tests_of_its_name_and_lines_in_the_table():
    names = [name for tests in sentences().values() for name in tests]
    lines = lines_of(text_of("tests", "house", "behaviours.txt"))
    items = re.findall(r"^D(\d+)\. \*\*|^D(\d+)\. ", text_of("docs", "spec.md"), re.M)
    items = [int(a or b) for a, b in items]
    assert items == list(range(1, 20)), items
    for item in items:
        assert any(n.startswith("d%d_" % item) for n in names), "D%d has no test" % item
        of_item = [line for line in lines if line.startswith("D%d " % item)]
        assert of_item, "D%d is not in the table" % item
        for line in of_item:
            assert "d%d_" % item in line or "e2e/cases." in line or item == 14, line


def cases():
    """{id: reason, or "" for one that a test shows}."""
    found = {}
    for line in lines_of(text_of("tests", "house", "cases.txt")):
        match = re.fullmatch(r"([a-z]+-\d+)(?:: (.+))?", line)
        assert match, line
        assert match.group(1) not in found, "twice: " + line
        found[match.group(1)] = match.group(2) or ""
    return found


def test_each_reported_case_is_a_test_or_has_its_reason():
    names = [name for tests in sentences().values() for name in tests]
    found = cases()
    assert len(found) == 83, len(found)
    for case, reason in found.items():
        is_shown = any(n.startswith(case.replace("-", "_") + "_") for n in names)
        assert is_shown != bool(reason), "%s: %s" % (case, "a test and a reason" if is_shown
                                                     else "neither a test nor a reason")


def test_each_file_of_rows_is_played_and_spoiled():
    listed = set(re.findall(r"'(\w+\.jsonl)'", text_of("tests", "vectors", "meson.build")))
    folder = os.path.join(ROOT, "tests", "vectors")
    there = {name for name in os.listdir(folder) if name.endswith(".jsonl")}
    assert listed == there and there, (sorted(listed ^ there))


if __name__ == "__main__":
    run_tests(globals())
