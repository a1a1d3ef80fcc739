#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""embed.py LIBERRAND.SO - background tasks in an agent's loop, in Python with ctypes.

One agent, a tool `run` whose tasks are shell commands, a policy that lets nobody kill them, a
select() loop, and a scripted model: it starts a command, goes on, is told of the end, and reads the
output.
"""
import ctypes
import json
import os
import selectors
import subprocess
import sys
import time
from ctypes import (CFUNCTYPE, POINTER, Structure, byref, c_char_p, c_int, c_int32, c_int64,
                    c_size_t, c_uint32, c_uint64, c_void_p)

if len(sys.argv) != 2:
    sys.exit(__doc__.splitlines()[0])

STAGE_PRE = 1
CLAIM_STEP, DELIVERED = 1, 0
NUL = c_size_t(-1)
NEVER = 2 ** 63 - 1
Id = c_uint64


class Str(Structure):
    _fields_ = [("ptr", c_char_p), ("len", c_size_t)]


def text(s):
    return Str(s.encode(), len(s.encode()))


class FrameView(Structure):
    _fields_ = [("size", c_uint32), ("stage", c_int32), ("call", Id), ("agent", Id),
                ("signal", Id), ("tool", Str), ("args_json", Str), ("answer_json", Str),
                ("error", c_void_p)]


Enter = CFUNCTYPE(None, c_void_p, c_void_p, Id, POINTER(FrameView))
Result = CFUNCTYPE(c_int, c_void_p, c_void_p, Id, Id, c_void_p, c_size_t)
Start = CFUNCTYPE(c_int, c_void_p, c_void_p, Id, c_void_p)
Cancel = CFUNCTYPE(c_int, c_void_p, c_void_p, Id, c_char_p, c_size_t, c_void_p)
Read = CFUNCTYPE(c_int, c_void_p, Id, c_uint64, c_void_p, POINTER(c_uint64), c_void_p)


# The library takes a struct that lacks the newest members, as this one lacks limits_json.
class HostOptions(Structure):
    _fields_ = [("size", c_uint32), ("abi", c_uint32), ("config_json", Str)] + [
        (name, c_void_p) for name in ("warn", "message_id", "journal", "ud", "destroy", "alloc",
                                      "resize", "dealloc", "mem_ud", "oom")]


class AgentOptions(Structure):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("session", Str), ("scope", Id),
                ("log", c_void_p), ("wake", c_void_p), ("ud", c_void_p),
                ("destroy", c_void_p)]


class Tool(Structure):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("name", Str), ("description", Str),
                ("params_schema", Str), ("output_schema", Str), ("timeout_ms", c_int64),
                ("exec", Enter),
                ("render", c_void_p), ("finalize", c_void_p), ("card", c_void_p),
                ("ud", c_void_p), ("destroy", c_void_p)]


class Listener(Structure):
    _fields_ = [("size", c_uint32), ("stage", c_int32), ("flags", c_uint32), ("enter", Enter),
                ("back", c_void_p), ("ud", c_void_p), ("destroy", c_void_p)]


class CallOptions(Structure):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("agent", Id), ("signal", Id),
                ("tool", Str), ("args", Str), ("on_result", Result), ("ud", c_void_p),
                ("destroy", c_void_p)]


class Producer(Structure):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("start", Start), ("cancel", Cancel),
                ("read", Read), ("ud", c_void_p), ("destroy", c_void_p)]


class TaskSpec(Structure):
    _fields_ = [("size", c_uint32), ("flags", c_uint32), ("kind", Str), ("label", Str),
                ("limit_json", Str), ("owner", Id), ("producer", Producer)]


class Host:
    """An errand_host and its loop. Callbacks and what they need are kept as long as it."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.errand_text_data.restype = c_char_p
        self.lib.errand_error_message.restype = c_char_p
        self.lib.errand_next_deadline.restype = c_int64
        self.io = selectors.DefaultSelector()
        self.kept = []
        self.h = c_void_p()
        error = c_void_p()
        options = HostOptions(ctypes.sizeof(HostOptions), self.lib.errand_abi())
        self.check(self.lib.errand_host_new(byref(options), byref(self.h), byref(error)), error)
        self.run()

    def check(self, rc, error):
        if rc < 0:
            why = self.lib.errand_error_message(error, None).decode() if error else "no memory"
            self.lib.errand_error_free(error)
            raise RuntimeError(why)

    def do(self, name, *args):
        """A function of the library whose first argument is the host and last the error."""
        error = c_void_p()
        self.kept.append(args)
        self.check(getattr(self.lib, name)(self.h, *args, byref(error)), error)

    def take(self, t):
        data = self.lib.errand_text_data(t, None).decode()
        self.lib.errand_text_free(t)
        return data

    def run(self):
        self.lib.errand_run(self.h, c_int64(time.monotonic_ns() // 10 ** 6),
                            c_int64(time.time_ns() // 10 ** 6), 0)

    def until(self, condition):
        """The loop: what is due, then sleep until the next deadline or some output."""
        while not condition():
            due = self.lib.errand_next_deadline(self.h)
            pause = None if due == NEVER else max(0, due / 1000 - time.monotonic())
            for key, _ in self.io.select(pause):
                key.data()
            self.run()

    def call(self, agent, tool, **args):
        """One tool call of the model: its text."""
        results = []

        def on_result(_ud, _h, _call, _lease, result, size):
            results.append(json.loads(ctypes.string_at(result, size)))
            return DELIVERED

        self.do("errand_call_new", byref(CallOptions(
            ctypes.sizeof(CallOptions), 0, agent, 0, text(tool), text(json.dumps(args)),
            Result(on_result))), byref(Id()))
        self.until(lambda: results)
        return results[0]["content"][0]["text"]

    def messages(self, agent):
        """What waits for the agent; it counts as delivered."""
        lease, t = Id(), c_void_p()
        self.do("errand_claim", agent, CLAIM_STEP, Id(0), byref(lease), byref(t))
        self.lib.errand_lease_commit(self.h, lease)
        return [m["content"][0]["text"] for m in json.loads(self.take(t))]


class Command:
    """The producer of one task: a shell command and what it printed."""

    def __init__(self, host, owner, line):
        self.host, self.line, self.output = host, line, b""
        self.process = self.task = None
        self.killed = False
        producer = Producer(ctypes.sizeof(Producer), 0, Start(self.start),
                            Cancel(self.cancel), Read(self.read))
        spec = TaskSpec(ctypes.sizeof(TaskSpec), 0, text("run"), text(line), Str(), owner,
                        producer)
        name = c_void_p()
        host.do("errand_task_start", byref(spec), byref(Id()), byref(name))
        self.name = host.take(name)

    def start(self, _ud, _host, task, _error):
        self.task = Id(task)
        self.process = subprocess.Popen(["sh", "-c", self.line], stdout=subprocess.PIPE)
        self.host.io.register(self.process.stdout, selectors.EVENT_READ, self.on_output)
        return 0

    def cancel(self, *_):
        self.killed = True
        self.process.terminate()
        return 0

    def read(self, _ud, _task, begin, out, ret_next, _error):
        data = self.output[begin:]
        self.host.lib.errand_sink_write(c_void_p(out), data, c_size_t(len(data)))
        ret_next[0] = len(self.output)
        return 0

    def on_output(self):
        data = os.read(self.process.stdout.fileno(), 65536)
        self.output += data
        if data:
            return
        self.host.io.unregister(self.process.stdout)
        self.process.stdout.close()
        _, wait_status = os.waitpid(self.process.pid, 0)
        self.process.returncode = wait_status  # it is reaped
        status, detail = c_int(), c_void_p()
        self.host.lib.errand_process_outcome(wait_status, self.killed, c_int64(0), byref(status),
                                             byref(detail))
        self.host.lib.errand_settle(self.host.h, self.task, status,
                                    self.host.take(detail).encode(), NUL, None, c_size_t(0))


def add_run(host):
    """The tool: its body starts a task and answers with the task's name."""
    def body(_ud, _host, frame, view):
        args = json.loads(ctypes.string_at(view[0].args_json.ptr, view[0].args_json.len))
        command = Command(host, view[0].agent, args["command"])
        answer = json.dumps({"taskId": command.name}).encode()
        host.kept.append(command)
        host.lib.errand_answer(host.h, Id(frame), answer, NUL)

    tool = Tool(ctypes.sizeof(Tool), 0, text("run"), text("Run a shell command."),
                text('{"type":"object","properties":{"command":{"type":"string"}},'
                     '"required":["command"]}'),
                text('{"type":"object","properties":{"taskId":{"type":"string"}},'
                     '"required":["taskId"]}'), 0, Enter(body))
    host.do("errand_tool_add", Id(0), byref(tool), byref(Id()))


def forbid_kills(host):
    """A policy: before a call, answer for one tool, and leave the others to who comes next."""
    def enter(_ud, _host, frame, view):
        if ctypes.string_at(view[0].tool.ptr, view[0].tool.len) == b"task_kill":
            host.lib.errand_answer(host.h, Id(frame), b'{"kind":"deny","reason":"let it run"}',
                                   NUL)
        else:
            host.lib.errand_next(host.h, Id(frame))

    listener = Listener(ctypes.sizeof(Listener), STAGE_PRE, 0, Enter(enter))
    host.do("errand_listen", Id(0), byref(listener), byref(Id()))


def main():
    host = Host(sys.argv[1])
    agent = Id()
    options = AgentOptions(ctypes.sizeof(AgentOptions), 0, text("a"), 0)
    host.do("errand_mount", Id(0), b"{}", NUL, byref(Id()))
    host.do("errand_agent_new", byref(options), byref(agent))
    add_run(host)
    forbid_kills(host)
    # What a model would do.
    print(host.call(agent, "run", command="echo hello"))
    print(host.call(agent, "task_list"))
    print(host.call(agent, "task_kill", task_id="run-1"))
    told = []
    host.until(lambda: told.extend(host.messages(agent)) or told)
    print(*told, sep="\n")
    print(host.call(agent, "task_output", task_id="run-1"))
    print(host.call(agent, "task_output", task_id="run-2"))
    host.lib.errand_host_free(host.h)


if __name__ == "__main__":
    main()
