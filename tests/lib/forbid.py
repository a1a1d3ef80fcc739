# SPDX-License-Identifier: MIT
"""forbid.py WHAT ERRNO COMMAND... - runs COMMAND where the kernel refuses WHAT with ERRNO.

WHAT: unix (sockets of that kind), bind, fork. By seccomp, as sandboxes do it; for COMMAND and all
that it starts.
"""
import ctypes
import errno
import os
import platform
import struct
import sys

CALLS = {"x86_64": {"socket": 41, "bind": 49, "clone": 56, "fork": 57, "vfork": 58, "clone3": 435},
         "aarch64": {"socket": 198, "bind": 200, "clone": 220, "clone3": 435}}
# Of a filter: load, jump if equal, return; where the number and the first argument are.
LOAD, IF_EQUAL, RETURN = 0x20, 0x15, 0x06
NUMBER, FIRST = 0, 16
ALLOW, FAIL = 0x7fff0000, 0x00050000


def filter_of(what, error):
    known = CALLS[platform.machine()]
    fail = (RETURN, 0, 0, FAIL | error)
    code = [(LOAD, 0, 0, NUMBER)]
    if what == "unix":
        code += [(IF_EQUAL, 0, 3, known["socket"]), (LOAD, 0, 0, FIRST), (IF_EQUAL, 0, 1, 1), fail]
    else:
        names = ("clone", "fork", "vfork", "clone3") if what == "fork" else (what,)
        for name in names:
            if name in known:
                code += [(IF_EQUAL, 0, 1, known[name]), fail]
    return code + [(RETURN, 0, 0, ALLOW)]


def forbid(what, error):
    code = filter_of(what, error)
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *c) for c in code))
    program = struct.pack("HxxxxxxP", len(code), ctypes.addressof(filters))
    libc = ctypes.CDLL(None, use_errno=True)
    assert libc.prctl(38, 1, 0, 0, 0) == 0, "PR_SET_NO_NEW_PRIVS"
    assert libc.prctl(22, 2, program, 0, 0) == 0, "PR_SET_SECCOMP"


if __name__ == "__main__":
    forbid(sys.argv[1], getattr(errno, sys.argv[2]))
    os.execv(sys.argv[3], sys.argv[3:])
