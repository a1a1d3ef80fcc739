# SPDX-License-Identifier: MIT
"""Each check of tools/ is fed a small tree that is bad in one way, and must say so."""
import contextlib
import importlib.machinery
import importlib.util
import io
import os
import shutil
import subprocess
import sys
import tempfile
import unittest.mock

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(ROOT, "tests", "lib"))
sys.dont_write_bytecode = True
from mcpclient import build_dir, run_tests  # noqa: E402

CC = os.environ.get("CC", "cc").split()


def tool(name, *args):
    proc = subprocess.run([os.path.join(ROOT, "tools", name), *args], text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    return proc.returncode, proc.stdout


class Tree:
    """A temporary source tree: path -> text."""

    def __init__(self):
        self.folder = tempfile.TemporaryDirectory(prefix="errand-house-")
        self.path = self.folder.name

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.folder.cleanup()

    def add(self, path, text):
        full = os.path.join(self.path, path)
        os.makedirs(os.path.dirname(full), exist_ok=True)
        with open(full, "w", encoding="utf-8") as f:
            f.write(text)
        return full


def refused(name, path, text, word):
    with Tree() as tree:
        tree.add(path, text)
        code, out = tool(name, tree.path)
        assert code == 1, "%s took %r in %s:\n%s" % (name, text, path, out)
        assert word in out, out


def taken(name, files):
    with Tree() as tree:
        for path, text in files.items():
            tree.add(path, text)
        code, out = tool(name, tree.path)
        assert code == 0, out


def test_layers_takes_what_is_allowed():
    taken("check-layers", {
        "src/base/json.c": '#include "json.h"\n#include <jansson.h>\n',
        "src/base/json.h": "",
        "src/core/a.c": '#include "errand.h"\n#include "base/buf.h"\n#include <string.h>\n',
        "src/shim/main.c": '#include "shim/proto.h"\n#include "base/err.h"\n#include <poll.h>\n',
        "src/run/a.c": '#include "shim/proto.h"\n#include "errand.h"\n',
        "src/host/a.c": '#include "transport/stdio.h"\n#include <uv.h>\n',
        "include/errand.h": "#include <stdint.h>\n",
    })


def test_layers_refuses_a_step_up():
    refused("check-layers", "src/core/a.c", '#include "run/bash.h"\n', "may not see run")
    refused("check-layers", "src/base/a.h", '#include "core/task.h"\n', "may not see core")
    refused("check-layers", "src/mcp/a.c", '#include "transport/stdio.h"\n', "transport")
    refused("check-layers", "src/shim/a.c", '#include "core/task.h"\n', "may not see core")


def test_layers_refuses_a_way_around():
    refused("check-layers", "src/core/a.c", '#include "../run/bash.h"\n', "way up")
    refused("check-layers", "src/util/a.c", "", "in no layer")
    refused("check-layers", "src/core/a.c", '#include "mystery.h"\n', "in no layer")


def test_layers_keeps_io_and_clocks_out_of_the_core():
    refused("check-layers", "src/core/a.c", "#include <unistd.h>\n", "no I/O")
    refused("check-layers", "src/core/a.c", "# include <time.h>\n", "no I/O")
    refused("check-layers", "src/core/a.c", '#include "base/clock.h"\n', "clock.h")


def test_layers_keeps_libraries_in_their_place():
    refused("check-layers", "src/core/a.c", "#include <jansson.h>\n", "base/json.c")
    refused("check-layers", "src/base/buf.c", "#include <jansson.h>\n", "base/json.c")
    refused("check-layers", "src/run/a.c", "#include <uv.h>\n", "transport/")
    refused("check-layers", "src/host/a.c", "#include <sqlite3.h>\n", "store/")
    refused("check-layers", "src/mcp/a.c", "#include <unistd.h>\n", "descriptor")


def test_layers_keeps_the_store_apart():
    refused("check-layers", "src/store/a.c", '#include "run/run.h"\n', "may not see run")
    refused("check-layers", "src/store/a.c", '#include "core/internal.h"\n', "core")


def test_layers_keeps_the_shim_private():
    refused("check-layers", "src/run/a.c", '#include "shim/state.h"\n', "for itself")
    refused("check-layers", "src/shim/a.c", '#include "base/json.h"\n', "json.h")


def test_layers_keeps_the_public_side_clean():
    refused("check-layers", "include/errand.h", "#include <jansson.h>\n", "public header")
    refused("check-layers", "tests/vectors/run_vectors.c", '#include "core/task.h"\n',
            "public API")


def compiled(tree, text, *args):
    source = tree.add("a.c", text)
    out = os.path.join(tree.path, args[-1])
    subprocess.run([*CC, *args[:-1], "-o", out, source], check=True)
    return out


def test_layers_finds_calls_in_the_core():
    calls = {
        "clock_gettime": "#include <time.h>\n"
                         "int f(struct timespec *t) { return clock_gettime(0, t); }\n",
        "write": "#include <unistd.h>\nlong f(void) { return write(1, \"x\", 1); }\n",
        "puts": "#include <stdio.h>\nvoid f(void) { puts(\"x\"); }\n",
        "open": "#include <fcntl.h>\nint f(void) { return open(\"x\", O_RDONLY); }\n",
    }
    for name, text in calls.items():
        with Tree() as tree:
            obj = compiled(tree, text, "-O2", "-D_FILE_OFFSET_BITS=64", "-c", "a.o")
            code, out = tool("check-layers", tree.path, obj)
            assert code == 1 and name in out, out
    with Tree() as tree:
        obj = compiled(tree, "#include <stdio.h>\n#include <stdlib.h>\n"
                             "void f(void) { fputs(\"out of memory\", stderr); abort(); }\n",
                       "-c", "a.o")
        code, out = tool("check-layers", tree.path, obj)
        assert code == 0, out


GOOD = "int errand_a(void); int errand_a(void) { return 0; }\n"
BAD = GOOD + "int helper(void); int helper(void) { return 1; }\n"
MAP = "ERRAND_1 {\nglobal: errand_*;\nlocal: *;\n};\n"


def fake_build(tree, so_text, a_text, shim_args, version=True):
    map_file = tree.add("lib.map", MAP)
    extra = ["-Wl,--version-script=" + map_file] if version else []
    compiled(tree, so_text, "-shared", "-fPIC", *extra, "liberrand.so")
    obj = compiled(tree, a_text, "-c", "a.o")
    subprocess.run(["ar", "rcs", os.path.join(tree.path, "liberrand.a"), obj], check=True)
    shim = tree.add("shim.c", "#include <math.h>\n#include <stdlib.h>\n"
                              "int main(int n, char **v) { (void)v; return (int)cos(n); }\n")
    subprocess.run([*CC, shim, "-o", os.path.join(tree.path, "errand-shim"), *shim_args],
                   check=True)


def symbols(*args, **options):
    with Tree() as tree:
        fake_build(tree, *args, **options)
        return tool("check-symbols", tree.path)


def test_symbols_takes_a_clean_library():
    code, out = symbols(GOOD, GOOD, ["-static", "-lm"])
    assert code == 0, out


def test_symbols_refuses_an_unprefixed_name():
    code, out = symbols(BAD, GOOD, ["-static", "-lm"], version=False)
    assert code == 1 and "shows helper" in out, out
    code, out = symbols(GOOD, BAD, ["-static", "-lm"])
    assert code == 1 and "defines helper" in out, out


def test_symbols_refuses_a_library_without_versions():
    code, out = symbols(GOOD, GOOD, ["-static", "-lm"], version=False)
    assert code == 1 and "without a version" in out, out


def test_symbols_refuses_a_shim_that_needs_more_than_libc():
    code, out = symbols(GOOD, GOOD, ["-Wl,--no-as-needed", "-lm"])
    assert code == 1 and "errand-shim needs libm" in out, out


def test_symbols_refuses_an_empty_build():
    with Tree() as tree:
        code, out = tool("check-symbols", tree.path)
        assert code == 1 and "is not there" in out, out


def function(lines, head="int f(int a)\n"):
    """A function of exactly @lines lines, from its head to its brace."""
    body = lines - head.count("\n") - 2
    return head + "{\n" + "\ta = a ? '{' : \"}{\"[0]; /* } */\n" * body + "}\n"


def test_size_takes_80_and_refuses_81_lines():
    taken("check-size", {"src/base/a.c": function(80) + function(80)})
    refused("check-size", "src/base/a.c", function(80) + function(81), "f has 81 lines")
    refused("check-size", "tests/unit/a.c", function(81), "f has 81 lines")
    refused("check-size", "src/base/a.c", function(81, "static int\nf(int a,\n  int b)\n"),
            "f has 81 lines")


def test_size_is_not_confused():
    long_table = "static const int t[] = {\n" + "\t1,\n" * 100 + "};\n"
    branches = "#ifdef A\nint f(void) {\n#else\nint f(long x) {\n#endif\n\treturn 0;\n}\n"
    taken("check-size", {"src/base/a.c": long_table + function(80) + branches * 20})
    refused("check-size", "src/base/a.c",
            'extern "C" {\n' + long_table + branches + function(81) + "}\n", "81 lines")


def test_size_refuses_a_file_above_800_lines():
    taken("check-size", {"src/base/a.h": "/* x */\n" * 800})
    refused("check-size", "src/base/a.h", "/* x */\n" * 801, "801 lines")


def test_size_counts_no_comments_of_the_installed_header():
    page = "/*\n * what it does\n */\n" + "int f(int a); /* and more */\n"
    taken("check-size", {"include/a.h": page * 800})
    refused("check-size", "include/a.h", page * 801, "801 lines of code")
    refused("check-size", "include/a.h", 'const char *f = "/*";\n' * 801, "801 lines of code")
    refused("check-size", "src/base/include/a.h", page * 201, "804 lines")


def lint_words(files):
    with Tree() as tree:
        for path, text in files.items():
            tree.add(path, text)
        return tool("check-words", tree.path)


def test_words_refuses_sleep_in_tests():
    code, out = lint_words({"tests/e2e/a.py": "import time\ntime.sl" + "eep(1)\n"})
    assert code == 1 and "sleep" in out, out
    code, out = lint_words({"tests/e2e/a.sh": "start\nsleep 1\n"})
    assert code == 1 and "sleep" in out, out
    code, out = lint_words({"tests/e2e/a.py": 'c.tool("bash", command="sleep 60")\n'})
    assert code == 0, out


def test_words_refuses_notes_to_oneself():
    code, out = lint_words({"src/base/a.c": "/* TO" + "DO: later */\n"})
    assert code == 1, out
    code, out = lint_words({"README.md": "FIX" + "ME\n"})
    assert code == 1, out


def test_words_refuses_a_source_that_is_in_no_list():
    code, out = lint_words({"src/base/a.c": "", "src/base/meson.build": "files('b.c')\n"})
    assert code == 1 and "src/base/a.c" in out, out
    code, out = lint_words({"src/base/a.c": "", "src/base/meson.build": "files('a.c')\n"})
    assert code == 0, out


def runner():
    loader = importlib.machinery.SourceFileLoader(
        "runner", os.path.join(ROOT, "tools", "run-tests"))
    module = importlib.util.module_from_spec(
        importlib.util.spec_from_loader("runner", loader))
    loader.exec_module(module)
    return module


def counts(text, code=0, timed_out=False, strict=False):
    run = runner()
    result = run.judge(run.Result("x"), text, code, timed_out, strict)
    return result.passed, result.failed


def test_runner_reads_tap():
    assert counts("1..2\nok 1 - a\nok 2 - b\n") == (2, 0)
    assert counts("1..2\nok 1 - a\nnot ok 2 - b\n# why\n", code=1) == (1, 1)


def test_runner_reads_a_total():
    assert counts("a.jsonl: 3 passed, 0 failed\n7 passed, 0 failed\n") == (7, 0)
    assert counts("7 passed, 2 failed, 1 differ\n", code=1) == (7, 2)


def test_runner_counts_silence_and_death():
    assert counts("") == (0, 1)
    assert counts("hello\n") == (0, 1)
    assert counts("ok 1 - a\n", code=-11) == (1, 1)
    assert counts("ok 1 - a\n", code=1) == (1, 1)
    assert counts("5 passed, 0 failed\n", code=3) == (5, 1)
    assert counts("1..3\nok 1 - a\n") == (1, 1)
    assert counts("ok 1 - a\n", code=-9, timed_out=True) == (1, 1)


def test_runner_counts_a_skip_as_failed_under_ci():
    text = "1..2\nok 1 - a\nok 2 - b # SKIP no cgroup\n"
    assert counts(text) == (1, 0)
    assert counts(text, strict=True) == (1, 1)


def run_in(folder, script, **env):
    """What the runner makes of a program of these lines of shell."""
    run = runner()
    os.environ.update(env)
    return run.run_one({"name": "x", "cmd": ["sh", "-c", script], "env": {"GIVEN": "it"}},
                       folder, False, folder)


def test_runner_runs_as_root_what_skips_for_others():
    with tempfile.TemporaryDirectory() as folder, \
            unittest.mock.patch.dict(os.environ), \
            unittest.mock.patch("os.geteuid", lambda: 1000):
        fake = os.path.join(folder, "sudo")
        with open(fake, "w") as f:
            f.write('#!/bin/sh\necho "$@" >>%s/asked\n[ "$1" = -n ] && shift\n'
                    '[ "$1" != true ] || exit $NO_SUDO\nunset TMPDIR\n'
                    'shift 2; IS_ROOT=here exec "$@"\n' % folder)
        os.chmod(fake, 0o755)
        path = folder + ":" + os.environ["PATH"]
        script = '[ "$IS_ROOT $GIVEN $TMPDIR" = "here it %s" ] || skip="# SKIP"; ' \
                 'echo "ok 1 - a $skip"' % folder
        said = run_in(folder, script, PATH=path, NO_SUDO="0")
        assert (said.passed, said.skipped, said.failed) == (1, 0, 0), vars(said)
        said = run_in(folder, script, PATH=path, NO_SUDO="1")
        assert (said.passed, said.skipped, said.failed) == (0, 1, 0), vars(said)
        os.unlink(os.path.join(folder, "asked"))
        said = run_in(folder, "echo ok 1 - a", PATH=path, NO_SUDO="0")
        assert said.passed == 1 and not os.path.exists(os.path.join(folder, "asked"))


def test_runner_shows_of_a_failing_program_what_failed():
    with tempfile.TemporaryDirectory() as folder:
        result = run_in(folder, "echo 1..3; echo ok 1 - fine; echo '# before'; "
                                "echo not ok 2 - bad; echo '# why'; echo ok 3 - a '# SKIP it'")
        assert result.output == "1..3\n# before\nnot ok 2 - bad\n# why\nok 3 - a # SKIP it\n"
        assert runner().failures(result) == "x: bad"
        assert runner().failures(run_in(folder, "exit 3")) == "x"


def test_runner_ends_what_a_test_has_left_and_counts_it():
    run = runner()
    with tempfile.TemporaryDirectory() as root:
        folders = [os.path.join(root, name) for name in ("a", "b", "ab")]
        for folder in folders:
            os.mkdir(folder)
        results = [run.Result(name) for name in "ab"]
        for result, folder in zip(results, folders):
            result.folder = folder
        left = [subprocess.Popen(["sleep", "600"], env=env, cwd=cwd) for env, cwd in (
            ({run.MARK: folders[0]}, "/"), ({}, folders[0]),
            ({run.MARK: folders[2]}, folders[2]))]
        os.mkdir(folders[0] + "/run")
        left.append(subprocess.Popen(["sleep", "600"], env={}, cwd=folders[0] + "/run"))
        shutil.rmtree(folders[0])
        said = io.StringIO()
        with contextlib.redirect_stdout(said):
            run.end_survivors(results, patience=0)
        others = left.pop(2)
        try:
            assert others.poll() is None
            assert [p.wait(10) for p in left] == [-9] * 3, left
            assert [r.failed for r in results] == [3, 0], said
            assert "FAIL a left running: %d sleep 600 (S (sleeping)" % left[0].pid \
                in said.getvalue(), said.getvalue()
        finally:
            for p in (others, *left):
                p.kill()
                p.wait()


def test_tests_know_nothing_of_whoever_runs_them():
    with tempfile.TemporaryDirectory() as home:
        os.makedirs(home + "/.config/errand")
        with open(home + "/.config/errand/errand.conf", "w") as f:
            f.write("this is no setting\n")
        env = {"PATH": os.environ["PATH"], "PYTHONPATH": os.path.join(ROOT, "tests", "lib"),
               "HOME": home, "XDG_CONFIG_HOME": home, "ERRAND_STATE": home,
               "ERRAND_SESSION": "mine", "CLAUDE_CODE_SESSION_ID": "mine"}
        said = subprocess.run(
            [sys.executable, "-c", "import mcpclient, os, subprocess\n"
             "print(*sorted(os.environ), os.environ['HOME'])\n"
             "subprocess.run([mcpclient.build_dir() + '/errand', 'config'], check=True)\n"],
            env={**env, "ERRAND_BUILD": build_dir()}, check=True, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout
        assert "[limits]" in said and home not in said, said
        for name in ("XDG_CONFIG_HOME", "ERRAND_STATE", "ERRAND_SESSION", "CLAUDE_CODE"):
            assert name not in said.splitlines()[0], said


if __name__ == "__main__":
    run_tests(globals())
