# SPDX-License-Identifier: MIT
"""docs/compare.md says of errand what errand does."""
import importlib.machinery
import importlib.util
import os
import shutil
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
sys.dont_write_bytecode = True
from mcpclient import build_dir, run_tests  # noqa: E402


def load():
    loader = importlib.machinery.SourceFileLoader("compare",
                                                  os.path.join(ROOT, "bench", "compare"))
    spec = importlib.util.spec_from_loader("compare", loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


compare = load()
MEASURED_ONCE = {"2 s of `yes`"}  # a size, other on each run


def documented():
    with open(os.path.join(ROOT, "docs", "compare.md"), encoding="utf-8") as f:
        rows = [line.split(" | ") for line in f if line.startswith("| ")]
    assert rows[0][1] == "errand", rows[0]
    return {row[0][2:]: row[1] for row in rows[1:]}


def check(title, measure):
    home = tempfile.mkdtemp(prefix="errand-compare-")
    peer = compare.Errand(build_dir(), home)
    peer.open()
    try:
        got = measure(peer)
    finally:
        peer.close()
        shutil.rmtree(home, ignore_errors=True)
    want = documented()[title]
    assert got == want, "documented %r, measured %r" % (want, got)


def test_the_table_has_every_line_of_the_script():
    assert list(documented()) == [title for title, _ in compare.LINES]


def make_test(title, measure):
    return lambda: check(title, measure)


globals().update({"test_" + title: make_test(title, measure)
                  for title, measure in compare.LINES if title not in MEASURED_ONCE})

if __name__ == "__main__":
    run_tests(globals())
