# SPDX-License-Identifier: MIT
"""errand.h as other compilers, other languages and their generators of bindings see it."""
import ctypes
import os
import re
import shutil
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.dont_write_bytecode = True
try:
    import cffi
except ImportError:  # a python3 beside the system's, which has the package
    if sys.executable == "/usr/bin/python3":
        raise
    os.execv("/usr/bin/python3", ["python3"] + sys.argv)
from mcpclient import build_dir, run_tests  # noqa: E402

INCLUDE = os.path.join(HERE, "..", "..", "include")
HEADER = os.path.join(INCLUDE, "errand.h")

# What sizeof says of each struct where a pointer has 64 bits. They only ever grow.
SIZES = {
    "errand_str": 16,
    "errand_host_options": 120,
    "errand_agent_options": 64,
    "errand_frame_view": 88,
    "errand_tool": 128,
    "errand_listener": 48,
    "errand_call_options": 80,
    "errand_producer": 56,
    "errand_task_spec": 120,
}

C_PROGRAM = r"""
#include "errand.h"
#include "errand.h"
#include <stdio.h>

int main(void)
{
	struct errand_host_options o = {.size = sizeof(o), .abi = ERRAND_ABI};
	errand_host *h = NULL;

	o.config_json.len = ERRAND_NUL;
	if (errand_host_new(&o, &h, NULL) != ERRAND_OK)
		return 1;
	if (errand_run(h, 0, 0, 0) != 0 || errand_next_deadline(h) != ERRAND_NEVER)
		return 1;
	errand_host_free(h);
	puts(errand_version());
	return 0;
}
"""

CPP_PROGRAM = r"""
#include "errand.h"
#include "errand.h"
#include <cstdio>

namespace {
void on_wake(void *, errand_host *, errand_agent)
{
}
}

int main()
{
	errand_host_options o{};
	errand_agent_options a{};
	errand_host *h = nullptr;
	errand_agent agent = 0;

	o.size = sizeof o;
	o.abi = ERRAND_ABI;
	a.size = sizeof a;
	a.session = {"a", ERRAND_NUL};
	a.wake = on_wake;
	if (errand_host_new(&o, &h, nullptr) != ERRAND_OK ||
	    errand_agent_new(h, &a, &agent, nullptr) != ERRAND_OK)
		return 1;
	errand_host_free(h);
	std::puts(errand_version());
	return 0;
}
"""

COMMON = ["-Werror", "-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wsign-conversion",
          "-Wshadow", "-Wundef"]
COMPILERS = {
    "gcc": ["-std=c11", "-Wstrict-prototypes", "-Wc++-compat"],
    "clang": ["-std=c11", "-Weverything", "-Wno-padded"],
    "g++": ["-std=c++17", "-Wold-style-cast", "-Wzero-as-null-pointer-constant"],
    "clang++": ["-std=c++17", "-Weverything", "-Wno-padded", "-Wno-c++98-compat",
                "-Wno-c++98-compat-pedantic"],
}


def run(*command, **options):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False, timeout=100, **options)
    assert done.returncode == 0, (command, done.stdout)
    return done.stdout


def version():
    with open(os.path.join(HERE, "..", "..", "meson.build"), encoding="utf-8") as f:
        return re.search(r"version: '([\d.]+)'", f.read()).group(1)


def compile_and_run(compiler):
    is_cpp = compiler.endswith("++")
    with tempfile.TemporaryDirectory(prefix="errand-header-") as folder:
        source = os.path.join(folder, "a.cpp" if is_cpp else "a.c")
        program = os.path.join(folder, "a")
        with open(source, "w", encoding="utf-8") as f:
            f.write(CPP_PROGRAM if is_cpp else C_PROGRAM)
        run(compiler, *COMMON, *COMPILERS[compiler], "-I" + INCLUDE, source, "-o", program,
            "-L" + build_dir(), "-lerrand", "-Wl,-rpath," + build_dir())
        said = run(program)
    assert said == version() + "\n", said


def test_each_compiler_takes_it_without_a_warning():
    present = [c for c in COMPILERS if shutil.which(c)]
    assert "gcc" in present or "clang" in present
    for compiler in present:
        compile_and_run(compiler)


# ---- what a generator reads ----

def header():
    with open(HEADER, encoding="utf-8") as f:
        return f.read()


def plain_c():
    """The declarations alone: no attributes, nothing of what is included."""
    with tempfile.TemporaryDirectory(prefix="errand-header-") as folder:
        for name in ("stddef.h", "stdint.h"):
            with open(os.path.join(folder, name), "w", encoding="utf-8"):
                pass
        cc = shutil.which("gcc") or shutil.which("clang")
        return run(cc, "-E", "-P", "-U__GNUC__", "-nostdinc", "-I" + folder, HEADER)


def declared():
    return set(re.findall(r"\b(errand_\w+)\(", plain_c()))


def test_no_macro_stands_in_a_signature_but_the_two_marks():
    code = re.sub(r"/\*.*?\*/", "", header(), flags=re.S)
    assert not re.findall(r"^\s*#\s*define\s+\w+\(", code, re.M)
    for declaration in re.findall(r"^ERRAND_(?:API|FN)\b([^;]*);", code, re.M):
        assert not re.search(r"\bERRAND_|\.\.\.", declaration), declaration
    assert "__attribute__" not in plain_c()


def test_what_it_declares_is_what_the_library_shows():
    lines = run("nm", "-D", "--defined-only", os.path.join(build_dir(), "liberrand.so"))
    shown = set(re.findall(r"\b[TW] (errand_\w+)@@ERRAND_1$", lines, re.M))
    assert declared() == shown, declared() ^ shown


# ---- python3-cffi ----

def ffi_of_header():
    ffi = cffi.FFI()
    ffi.cdef(plain_c())
    return ffi, ffi.dlopen(os.path.join(build_dir(), "liberrand.so"))


def test_cffi_reads_it_and_sees_the_sizes():
    ffi, lib = ffi_of_header()
    for name in declared():
        assert getattr(lib, name), name
    if ctypes.sizeof(ctypes.c_void_p) == 8:
        got = {n: ffi.sizeof(n if n == "errand_str" else "struct " + n) for n in SIZES}
        assert got == SIZES, got
    assert (lib.ERRAND_EGONE, lib.ERRAND_STAGE_POST) == (-4, 6)


def test_a_program_in_cffi_lists_tasks():
    ffi, lib = ffi_of_header()
    results = []

    @ffi.callback("int(void *, errand_host *, errand_call, errand_lease, const char *, size_t)")
    def on_result(_ud, _host, _call, _lease, text, size):
        results.append(ffi.string(text, size).decode())
        return lib.ERRAND_DELIVERED

    def text(s):
        kept.append(ffi.new("char[]", s))
        return {"ptr": kept[-1], "len": len(s)}

    kept = []
    host, agent, reg = ffi.new("errand_host **"), ffi.new("errand_agent *"), ffi.new("uint64_t *")
    error = ffi.new("errand_error **")
    options = ffi.new("struct errand_host_options *", {"abi": lib.errand_abi()})
    options.size = ffi.sizeof(options[0])
    assert lib.errand_host_new(options, host, ffi.NULL) == 0
    h = host[0]
    who = ffi.new("struct errand_agent_options *", {"session": text(b"a")})
    who.size = ffi.sizeof(who[0])
    assert lib.errand_agent_new(h, who, agent, error) == 0
    assert lib.errand_mount(h, 0, b"{}", 2, reg, error) == 0
    call = ffi.new("struct errand_call_options *",
                   {"agent": agent[0], "tool": text(b"task_list"), "on_result": on_result})
    call.size = ffi.sizeof(call[0])
    assert lib.errand_call_new(h, call, reg, error) == 0
    while lib.errand_run(h, 1, 1, 0) == 1:
        pass
    assert "(no background tasks)" in results[0], results
    assert lib.errand_mount(h, 0, b"{}", 2, reg, error) == lib.ERRAND_EREFUSED
    assert b"already" in ffi.string(lib.errand_error_message(error[0], ffi.NULL))
    lib.errand_error_free(error[0])
    lib.errand_host_free(h)


# ---- bindgen, for Rust ----

def bindings():
    mine = "(errand|ERRAND)_.*"
    return run("bindgen", "--allowlist-function", mine, "--allowlist-type", mine,
               "--allowlist-var", mine, HEADER)


if shutil.which("bindgen"):
    def test_bindgen_makes_rust_of_all_of_it():
        rust = bindings()
        functions = set(re.findall(r"pub fn (errand_\w+)\(", rust))
        assert functions == declared(), functions ^ declared()
        assert "pub const ERRAND_ABI: u32 = 1;" in rust
        sizes = re.findall(r"size_of::<(errand_\w+)>\(\)\s*,\s*(\d+)usize", rust)
        if ctypes.sizeof(ctypes.c_void_p) == 8:
            assert {n: int(size) for n, size in sizes} == SIZES, sizes


if __name__ == "__main__":
    run_tests(globals())
