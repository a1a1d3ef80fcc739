# SPDX-License-Identifier: MIT
"""A daemon of this build in a state folder of its own, and raw clients of its socket."""
import json
import os
import signal
import socket
import subprocess
import tempfile

from mcpclient import LEGACY, build_dir, end_shims, text_of, wait_for

ERRAND = os.path.join(build_dir(), "errand")


class Refused(Exception):
    """The host has answered the hello with an error."""


def hello(role="mcp", context=None, **more):
    """The bytes of a hello; @more replaces members, None leaves one out."""
    if context is None:
        context = b"\0".join([os.getcwdb()] + [b"%s=%s" % pair
                                               for pair in os.environb.items()]) + b"\0"
    said = {"protocol": 1, "version": "0.0.1", "role": role, "nonce": os.urandom(16).hex(),
            "umask": 0o022, "limits": [], "pid": os.getpid(), "context_bytes": len(context),
            **more}
    said = {k: v for k, v in said.items() if v is not None}
    return json.dumps({"errand": said}).encode() + b"\n" + context


class Lines:
    """A connection to @state's socket, by lines."""

    def __init__(self, state, said=None):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        here = os.open(state, os.O_DIRECTORY)
        try:
            self.socket.connect("/proc/self/fd/%d/host.sock" % here)
        finally:
            os.close(here)
        self.file = self.socket.makefile("rb")
        if said is not None:
            self.send(said)

    def send(self, data):
        try:
            self.socket.sendall(data)
        except BrokenPipeError:
            pass  # what the other side said before is still to be read

    def line(self):
        """The next line without its end; None when the other side has closed."""
        try:
            line = self.file.readline()
        except ConnectionResetError:
            line = self.file.readline()
        return line[:-1] if line else None

    def welcome(self):
        line = self.line()
        if line is None:
            raise EOFError("nobody answers the hello")
        said = json.loads(line)["errand"]
        if "error" in said:
            raise Refused(said["error"])
        return said

    def close(self):
        self.file.close()
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()


class Operator(Lines):
    """What a person's command is."""

    def __init__(self, state, **more):
        super().__init__(state, hello("operator", **more))
        self.said = self.welcome()
        self.last_id = 0

    def post(self, method, **params):
        self.last_id += 1
        self.send(json.dumps({"jsonrpc": "2.0", "id": self.last_id, "method": method,
                              "params": params}).encode() + b"\n")
        return self.last_id

    def answer(self):
        return json.loads(self.line())

    def ask(self, method, **params):
        self.post(method, **params)
        answer = self.answer()
        if "error" in answer:
            raise Refused(answer["error"]["message"])
        return answer["result"]


class Agent(Lines):
    """What the relay of an agent is: numbered lines, each answer acknowledged."""

    def __init__(self, state, acks=True, **more):
        super().__init__(state, hello("mcp", **more))
        self.said = self.welcome()
        self.last = 0
        self.acks = acks
        self.seen = []  # (number, text) of what was read on the way to an answer

    def post(self, method, **params):
        self.last += 1
        body = {"jsonrpc": "2.0", "id": self.last, "method": method, "params": params}
        self.send(b"%d %s\n" % (self.last, json.dumps(body).encode()))
        return self.last

    def next(self):
        """(number, rest) of the next line; a word for a number where one stands there."""
        line = self.line()
        if line is None:
            return None
        first, _, rest = line.partition(b" ")
        return (int(first) if first.isdigit() else first.decode(), rest)

    def answer(self, number):
        while True:
            got = self.next()
            if got is None:
                raise EOFError("no answer to %d" % number)
            self.seen.append(got)
            if got[0] == number:
                break
        if self.acks:
            self.ack(number)
        return json.loads(got[1])["result"] if got[1] else None

    def ack(self, number):
        self.send(b"ack %d\n" % number)

    def request(self, method, **params):
        return self.answer(self.post(method, **params))

    def initialize(self):
        return self.request("initialize", protocolVersion=LEGACY, capabilities={},
                            clientInfo={"name": "t", "version": "1"})

    def post_tool(self, tool, **arguments):
        return self.post("tools/call", name=tool, arguments=arguments)

    def tool(self, tool, **arguments):
        return self.answer(self.post_tool(tool, **arguments))

    def text(self, tool, **arguments):
        return text_of(self.tool(tool, **arguments))


def end_tasks(state):
    """A daemon's tasks outlive it; those of a test are not to."""
    try:
        with Operator(state) as op:
            for task in op.ask("errand/list")["tasks"]:
                if task["status"] in ("running", "stopping"):
                    op.ask("errand/kill", id=task["id"])
                    op.ask("errand/wait", id=task["id"])
    except (OSError, EOFError):
        pass  # there is no daemon that could be asked


def end_sessions(state):
    """All that a daemon keeps for its clients, who are gone."""
    try:
        with Operator(state) as op:
            for session in op.ask("errand/sessions")["sessions"]:
                op.ask("errand/end-session", name=session["name"])
            wait_for(lambda: not op.ask("errand/stat")["busy"], 10, "the end of all tasks")
    except (OSError, EOFError, Refused):
        pass  # there is no daemon that could be asked


class Daemon:
    """`errand daemon`, in the foreground; ended with its tasks when the block is left."""

    def __init__(self, state=None, env=None, command=None):
        self.own = None if state else tempfile.TemporaryDirectory(
            prefix="errand-test-", ignore_cleanup_errors=True)
        self.state = state or self.own.name
        self.env = {**os.environ, "ERRAND_STATE": self.state, "ERRAND_BASH_GRACE_MS": "200",
                    **(env or {})}
        self.log = tempfile.TemporaryFile()
        self.command = command or [ERRAND, "daemon"]
        self.start()

    def start(self):
        self.proc = subprocess.Popen(self.command, env=self.env, stdin=subprocess.DEVNULL,
                                     stdout=subprocess.DEVNULL, stderr=self.log)
        wait_for(self.is_up, 10, "a daemon that listens: " + self.said())
        return self

    def is_up(self):
        if self.proc.poll() is not None:
            raise AssertionError("the daemon ended: " + self.said())
        try:
            with Operator(self.state) as op:
                return op.said["pid"] == self.proc.pid
        except (OSError, EOFError):
            return False

    def said(self):
        self.log.seek(0)
        return self.log.read().decode("utf-8", "replace")

    def kill(self, sig=signal.SIGKILL):
        self.proc.send_signal(sig)
        return self.proc.wait(10)

    def agent(self, **more):
        a = Agent(self.state, **more)
        a.initialize()
        return a

    def operator(self, **more):
        return Operator(self.state, **more)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if self.proc.poll() is None:
            end_tasks(self.state)
            self.kill(signal.SIGTERM)
        end_shims(self.state)
        if kind is not None:
            print("# daemon: " + self.said())
        self.log.close()
        if self.own:
            self.own.cleanup()


def daemon_of(state):
    """The pid in the lock; 0: nobody has it."""
    try:
        with open(os.path.join(state, "host.lock"), encoding="ascii") as f:
            return int(f.read() or 0)
    except FileNotFoundError:
        return 0
