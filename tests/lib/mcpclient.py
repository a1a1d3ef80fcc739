# SPDX-License-Identifier: MIT
"""A small MCP client on stdio, a way to wait, and a TAP runner: what e2e tests share.

    from mcpclient import Client, wait_for, run_tests, text_of

    def test_a_task_has_an_id():
        with Client.errand() as c:
            c.initialize()
            reply = c.tool("bash", command="true", description="d", run_in_background=True)
            assert "bash-1" in text_of(reply)

    if __name__ == "__main__":
        run_tests(globals())

Whoever runs the tests keeps their own settings, home and sessions to themselves: with this import
the environment has others. A test fails by any exception. Nothing here sleeps for luck: wait_for() asks a condition
again and again until it holds or its time is over, and is the only place that may.
"""
import atexit
import io
import json
import os
import queue
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback

LEGACY = "2025-06-18"
MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
EOF = object()


def own_world():
    home = tempfile.mkdtemp(prefix="errand-test-home-")
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    # A compiler may live there.
    os.environ.setdefault("RUSTUP_HOME", os.path.expanduser("~/.rustup"))
    for name in list(os.environ):
        if name.startswith("XDG_") or name in ("ERRAND_STATE", "ERRAND_SESSION", "ERRAND_TASK",
                                               "CLAUDE_CODE_SESSION_ID"):
            del os.environ[name]
    os.environ.update(HOME=home, XDG_RUNTIME_DIR=home)


own_world()


class Timeout(Exception):
    """Something did not come in time."""


class Closed(Exception):
    """The server's stdout ended before what was waited for came."""


class RpcError(Exception):
    """The server answered a request with a JSON-RPC error."""

    def __init__(self, error):
        super().__init__("%s: %s" % (error.get("code"), error.get("message")))
        self.code = error.get("code")
        self.message = error.get("message")
        self.data = error.get("data")


def wait_for(cond, timeout=10.0, what=None):
    """Returns cond()'s first true value; raises Timeout after @timeout seconds."""
    end = time.monotonic() + timeout
    pause = 0.002
    while True:
        value = cond()
        if value:
            return value
        if time.monotonic() >= end:
            raise Timeout(what or getattr(cond, "__name__", "condition"))
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


def text_of(reply):
    """The first text block of a tool's result: what belongs to this call."""
    return reply["content"][0]["text"]


def notices_of(reply):
    """The texts of the blocks after the first: notices of other tasks' ends."""
    return [block["text"] for block in reply["content"][1:]]


def build_dir():
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return os.environ.get("ERRAND_BUILD") or os.path.join(root, "build")


def alive(pid):
    """Is @pid a process that still runs? A zombie is not."""
    try:
        with open("/proc/%d/stat" % pid) as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def host_process(state):
    """The pid of who listens in @state, as the kernel tells it; 0: nobody, or not to be seen."""
    try:
        here = os.open(state, os.O_DIRECTORY)
    except FileNotFoundError:
        return 0
    try:
        with socket.socket(socket.AF_UNIX) as s:
            s.connect("/proc/self/fd/%d/host.sock" % here)
            return struct.unpack("3i", s.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))[0]
    except OSError:
        return 0
    finally:
        os.close(here)


def end_daemon(state):
    """Ends all sessions of @state's daemon, their tasks, and then itself, if there is one."""
    pid = host_process(state)
    if not pid:
        return
    from daemon import end_sessions
    end_sessions(state)
    try:
        os.kill(pid, signal.SIGTERM)
    except ProcessLookupError:
        pass
    wait_for(lambda: not alive(pid), 10, "the daemon's end")
    # Nobody sees its exit code.
    try:
        with open(os.path.join(state, "host.log"), encoding="utf-8", errors="replace") as f:
            said = f.read()
    except FileNotFoundError:
        return
    assert "Sanitizer" not in said and "runtime error" not in said, said


def end_daemons(top):
    """Those of all state folders in @top, and tasks that have lost theirs."""
    for folder, _, names in os.walk(top):
        if "host.sock" in names:
            end_daemon(folder)
    end_shims(top)


def shims_in(top):
    """Those whose run folders are, or were, in @top."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/comm" % pid, encoding="ascii", errors="replace") as f:
                name = f.read()
            if name == "errand-shim\n" and os.readlink("/proc/%s/cwd" % pid).startswith(top + "/"):
                found.append(int(pid))
        except OSError:
            pass  # it has gone
    return found


def end_shims(top):
    """Ends the tasks that no host of @top is there to end: a shim takes SIGTERM for a kill."""
    for pid in shims_in(top):
        try:
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)
        except ProcessLookupError:
            pass
    wait_for(lambda: not shims_in(top), 20, "the end of all tasks in " + top)


class Folder(tempfile.TemporaryDirectory):
    """A folder for state folders; their daemons end with it."""

    def __init__(self):
        super().__init__(prefix="errand-test-", ignore_cleanup_errors=True)

    def __exit__(self, kind, value, trace):
        end_daemons(self.name)
        super().__exit__(kind, value, trace)


class Client:
    """One server process and one conversation with it.

    Use it with `with`: however the block ends, the server ends too, and a state folder
    that the client made itself goes, with its daemon. Replies may come in any order; each is kept under
    its id until somebody asks for it. Notifications pile up in .notifications.
    """

    def __init__(self, command, env=None, cwd=None, timeout=20.0, state=None):
        self.timeout = timeout
        self.own_state = None
        self.notifications = []
        self.unread = []  # lines that are no JSON, or answer to no id
        self.replies = {}
        self.next_id = 1
        self.modern = False
        self.meta = {}
        self.stderr = tempfile.TemporaryFile()
        self.lines = queue.Queue()
        self.closed = False
        full = dict(os.environ if env is None else env)
        if state is None and "ERRAND_STATE" not in (env or {}):
            state = self.own_state = tempfile.mkdtemp(prefix="errand-test-")
        if state is not None:
            full["ERRAND_STATE"] = state
        self.state = full["ERRAND_STATE"]
        self.proc = subprocess.Popen(command, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE, stderr=self.stderr,
                                     env=full, cwd=cwd, bufsize=0,
                                     start_new_session=True)
        self.pump_go = threading.Event()
        self.pump_go.set()
        self.pump = threading.Thread(target=self._pump, daemon=True)
        self.pump.start()

    @classmethod
    def errand(cls, *args, **options):
        """A client of this build's `errand mcp`; @args go to the command. So does what the
        suite is run with in ERRAND_TEST_MCP: nothing, or --embedded."""
        more = os.environ.get("ERRAND_TEST_MCP", "").split()
        return cls([os.path.join(build_dir(), "errand"), "mcp", *more, *args], **options)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            err = self.stderr_text()
            if err:
                sys.stdout.write("".join("# stderr: %s\n" % line
                                         for line in err.splitlines()[-40:]))
        self.close()
        return False

    def close(self, timeout=5.0):
        """Ends stdin, waits, then kills. Returns the server's exit code."""
        self.resume_reading()
        try:
            self.proc.stdin.close()
        except OSError:
            pass
        try:
            self.proc.wait(timeout)
        except subprocess.TimeoutExpired:
            self.proc.kill()
            self.proc.wait()
        self.pump.join(2)
        if not self.pump.is_alive():
            self.proc.stdout.close()
        self.stderr.close()
        if self.own_state:
            end_daemons(self.own_state)
            # Shims may be writing their last record yet; what they make goes as well.
            gone = lambda: not shutil.rmtree(self.own_state, ignore_errors=True) \
                and not os.path.exists(self.own_state)
            try:
                wait_for(gone, 5)
            except Timeout:
                pass
            self.own_state = None
        return self.proc.returncode

    def host_pid(self):
        """Of who keeps the tasks: a daemon, or the server itself."""
        return host_process(self.state) or self.proc.pid

    def stderr_text(self):
        at = self.stderr.seek(0, os.SEEK_CUR)
        self.stderr.seek(0)
        text = self.stderr.read().decode("utf-8", "replace")
        self.stderr.seek(at)
        return text

    # Raw access.

    def _pump(self):
        out = io.BufferedReader(self.proc.stdout, 1 << 16)
        while True:
            self.pump_go.wait()
            try:
                line = out.readline()
            except (OSError, ValueError):
                break
            if not line:
                break
            self.lines.put(line[:-1] if line.endswith(b"\n") else line)
        self.lines.put(EOF)

    def stop_reading(self):
        """Lets the server's stdout fill up (the line being read right now still comes)."""
        self.pump_go.clear()

    def resume_reading(self):
        self.pump_go.set()

    def write_bytes(self, data):
        """Sends bytes as they are. Raises BrokenPipeError when the server is gone."""
        view = memoryview(data)
        while view:
            view = view[self.proc.stdin.write(view):]

    def send(self, message):
        self.write_bytes(json.dumps(message).encode() + b"\n")

    def read_line(self, timeout=None):
        """The next line as bytes, before any sorting. None: stdout ended."""
        if self.closed:
            return None
        try:
            line = self.lines.get(timeout=self.timeout if timeout is None else timeout)
        except queue.Empty:
            raise Timeout("a line from the server") from None
        if line is EOF:
            self.closed = True
            return None
        return line

    def read_message(self, timeout=None):
        line = self.read_line(timeout)
        if line is None:
            raise Closed("the server ended its stdout")
        return json.loads(line)

    # Requests and replies.

    def _sort(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            self.unread.append(line)
            return
        if not isinstance(message, dict):
            self.unread.append(message)
        elif "method" in message:
            message["at"] = time.monotonic()
            self.notifications.append(message)
        elif message.get("id") is None:
            self.unread.append(message)
        else:
            self.replies[self._key(message["id"])] = message

    @staticmethod
    def _key(request_id):
        return (type(request_id).__name__, request_id)

    def poll(self, timeout=0.0):
        """Sorts what has come, waiting at most @timeout for one line. False: nothing."""
        try:
            line = self.read_line(timeout)
        except Timeout:
            return False
        if line is None:
            return False
        self._sort(line)
        while not self.lines.empty():
            line = self.read_line(0)
            if line is None:
                break
            self._sort(line)
        return True

    def post(self, method, params=None, request_id=None):
        """Sends a request and returns its id at once; join() has the reply."""
        if request_id is None:
            request_id = self.next_id
            self.next_id += 1
        message = {"jsonrpc": "2.0", "id": request_id, "method": method}
        if params is not None or self.modern:
            params = dict(params or {})
            if self.modern or self.meta:
                params["_meta"] = {**(self.modern_meta() if self.modern else {}),
                                   **self.meta, **params.get("_meta", {})}
            message["params"] = params
        self.send(message)
        return request_id

    def has(self, request_id):
        """Has the reply to @request_id come? Takes in what is there, does not wait."""
        while self.poll(0):
            pass
        return self._key(request_id) in self.replies

    def join_message(self, request_id, timeout=None):
        """The whole reply to @request_id, with `result` or `error`."""
        key = self._key(request_id)
        end = time.monotonic() + (self.timeout if timeout is None else timeout)
        while key not in self.replies:
            left = end - time.monotonic()
            if left <= 0:
                raise Timeout("the reply to request %r" % (request_id,))
            if not self.poll(left) and self.closed:
                raise Closed("the server ended before it answered request %r\n%s"
                             % (request_id, self.stderr_text()))
        return self.replies.pop(key)

    def join(self, request_id, timeout=None):
        message = self.join_message(request_id, timeout)
        if "error" in message:
            raise RpcError(message["error"])
        return message["result"]

    def request(self, method, params=None, timeout=None):
        return self.join(self.post(method, params), timeout)

    def notify(self, method, params=None):
        message = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self.send(message)

    def cancel(self, request_id, reason="not needed any more"):
        self.notify("notifications/cancelled",
                    {"requestId": request_id, "reason": reason})

    # The two eras of the protocol.

    def initialize(self, version=LEGACY, name="errand-test"):
        """Legacy handshake; returns the server's answer."""
        result = self.request("initialize", {
            "protocolVersion": version,
            "capabilities": {},
            "clientInfo": {"name": name, "version": "1"},
        })
        self.notify("notifications/initialized")
        return result

    def use_modern(self):
        """From now on every request carries the modern _meta; there is no handshake."""
        self.modern = True

    @staticmethod
    def modern_meta():
        return {META + "protocolVersion": MODERN,
                META + "clientCapabilities": {},
                META + "clientInfo": {"name": "errand-test", "version": "1"}}

    # Tools.

    def post_tool(self, tool, _meta=None, **arguments):
        params = {"name": tool, "arguments": arguments}
        if _meta:
            params["_meta"] = _meta
        return self.post("tools/call", params)

    def tool(self, tool, _meta=None, _timeout=None, **arguments):
        """Calls a tool and returns its result ({"content": [...], ...})."""
        return self.join(self.post_tool(tool, _meta, **arguments), _timeout)

    def text(self, tool, **arguments):
        return text_of(self.tool(tool, **arguments))

    def kill_server(self, sig=signal.SIGKILL):
        self.proc.send_signal(sig)

    def wait_exit(self, timeout=5.0):
        """Waits for the server's own end; returns its exit code, negative for a signal."""
        return self.proc.wait(timeout)


class Skip(Exception):
    """This machine or user lacks what the test needs."""


def only_root():
    if os.geteuid() != 0:
        raise Skip("only for root")


def only_with_namespaces():
    """Who is in a chroot, or in a container as they are by default, may make none."""
    command = ["unshare", "--user", "--map-root-user", "--pid", "--mount", "--fork", "true"]
    if subprocess.run(command, stderr=subprocess.DEVNULL, check=False).returncode != 0:
        raise Skip("no user namespace can be made")


def run_tests(space, argv=None):
    """Runs every test_* function of @space (globals()) in order; prints TAP; exits."""
    names = (sys.argv if argv is None else argv)[1:]
    tests = [(n, f) for n, f in space.items()
             if n.startswith("test_") and callable(f)
             and (not names or any(want in n for want in names))]
    print("1..%d" % len(tests))
    bad = 0
    for number, (name, func) in enumerate(tests, 1):
        title = name[len("test_"):].replace("_", " ")
        try:
            func()
            print("ok %d - %s" % (number, title))
        except Skip as why:
            print("ok %d - %s # SKIP %s" % (number, title, why))
        except Exception:  # pylint: disable=broad-except
            bad += 1
            print("not ok %d - %s" % (number, title))
            for line in traceback.format_exc().splitlines():
                print("# " + line)
        sys.stdout.flush()
    sys.exit(1 if bad else 0)
