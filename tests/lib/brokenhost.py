# SPDX-License-Identifier: MIT
"""A host whose connections break: between a person's command and the daemon that it asks."""
import contextlib
import json
import os
import socket
import tempfile
import threading

from daemon import Lines

# How a connection may break at a request.
BREAKS = (
    "before",  # it cannot be written
    "unread",  # it is written, and nobody reads it: a reset
    "asked",   # it is read, and goes no further
    "done",    # the daemon has done it, and its answer goes no further
    "half",    # half of the answer comes
)


class BrokenHost:
    """Passes on what comes to a state folder of its own; each pair (n, how) of @breaks ends one
    connection, in that order, at its nth request; bytes are what is answered then. What comes
    after them is passed on whole."""

    def __init__(self, daemon, breaks=()):
        self.daemon = daemon
        self.folder = tempfile.TemporaryDirectory(prefix="errand-test-")
        self.state = self.folder.name
        self.env = daemon.env
        self.breaks = list(breaks)
        self.n_broken = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(os.path.join(self.state, "host.sock"))
        self.listener.listen(100)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                here, _ = self.listener.accept()
                how = self.breaks.pop(0) if self.breaks else None
                with here, contextlib.suppress(OSError):
                    self.converse(here, how)

    def converse(self, here, how):
        """One connection after the other: a command has one at a time."""
        said = line_of(here)
        context = here.recv(json.loads(said)["errand"]["context_bytes"], socket.MSG_WAITALL)
        with Lines(self.daemon.state, said + context) as there:
            welcome = there.line() + b"\n"
            if how == (1, "before"):
                here.shutdown(socket.SHUT_RD)
            here.sendall(welcome)
            if how is None:
                pump(there.socket, here)
                while (line := line_of(here)):
                    there.send(line)
                return
            if self.breaks_at(here, there, *how):
                self.n_broken += 1

    @staticmethod
    def breaks_at(here, there, at, how):
        """False: whoever asks had enough before."""
        for n in range(1, at):
            line = request_of(here)
            if not line:
                return False
            there.send(line)
            answer = there.line()
            if (n + 1, how) == (at, "before"):
                here.shutdown(socket.SHUT_RD)
            here.sendall(answer + b"\n")
        if how in ("before", "unread"):
            return how == "before" or b'"id"' in here.recv(65536, socket.MSG_PEEK)
        line = request_of(here)
        if isinstance(how, bytes):
            here.sendall(how)
        elif line and how != "asked":
            there.send(line)
            answer = there.line()
            if how == "half":
                here.sendall(answer[:len(answer) // 2])
        return line != b""

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(5)
        self.folder.cleanup()


def line_of(sock):
    """The next line, and no byte more: what is not read is not."""
    line = b""
    while not line.endswith(b"\n"):
        there = sock.recv(65536, socket.MSG_PEEK)
        more = sock.recv(there.find(b"\n") + 1 or len(there))
        if not more:
            break
        line += more
    return line


def request_of(sock):
    """The next one; none behind a goodbye."""
    line = line_of(sock)
    return b"" if b'"errand/bye"' in line else line


def pump(source, sink):
    def copy():
        with contextlib.suppress(OSError):
            while (data := source.recv(65536)):
                sink.sendall(data)
    threading.Thread(target=copy, daemon=True).start()
