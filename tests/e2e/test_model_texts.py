# SPDX-License-Identifier: MIT
"""docs/model-experience.md quotes what a model reads: here the program must say the same.

A quoted text is a fenced block `text NAME` or `json NAME`; `<...>` in it stands for what
differs from run to run. The table of costs gives each one's bytes.
"""
import json
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "lib"))
sys.dont_write_bytecode = True
from daemon import Daemon  # noqa: E402
from mcpclient import (LEGACY, Client, Folder, build_dir, notices_of, run_tests,  # noqa: E402
                       text_of, wait_for)

PAGE = os.path.join(HERE, "..", "..", "docs", "model-experience.md")
BLOCK = re.compile(r"^```(?:text|json) (\S+)\n(.*?)\n```$", re.M | re.S)
ROW = re.compile(r"^\| `(\S+)` \| (\d+) \| (\d+) \|", re.M)


def page():
    with open(PAGE, encoding="utf-8") as f:
        return f.read()


def quoted():
    blocks = BLOCK.findall(page())
    assert len(dict(blocks)) == len(blocks), "a name is used twice"
    return dict(blocks)


def client(**env):
    c = Client.errand(env={**os.environ, **env})
    c.initialize()
    return c


# ---- the texts, by the names that the page gives them ----

def start(c, command, **more):
    return c.text("bash", command=command, description="d", run_in_background=True, **more)


def run(c, command, **more):
    return c.text("bash", command=command, description="d", **more)


def read(c, task="bash-1", **more):
    return c.text("task_output", task_id=task, **more)


def until_notice(c):
    def ask():
        return notices_of(c.tool("task_list"))
    return wait_for(ask)[0]


def of_the_start(texts):
    with client() as c:
        tools = c.request("tools/list", {})["tools"]
        texts["started"] = start(c, "exec sleep 600")
        texts["nothing-new"] = read(c)
        texts["list"] = c.text("task_list")
        texts["kill"] = c.text("task_kill", task_id="bash-1")
        texts["killed"] = read(c, wait=True)
        texts["kill-late"] = c.text("task_kill", task_id="bash-1")
    for tool in tools:
        texts["tool-" + tool["name"]] = json.dumps(tool, ensure_ascii=False,
                                                   separators=(",", ":"))


def of_the_prefix(texts):
    with Client.errand() as c:
        texts["instructions"] = c.initialize()["instructions"]
    texts["prompt"] = texts["instructions"].rsplit(" Task ids such as", 1)[0]


def of_the_foreground(texts):
    with client() as c:
        texts["silent"] = run(c, "true")
        texts["failed"] = run(c, "echo 'no rule to make target all'; exit 2")
        texts["signal"] = run(c, "kill -SEGV $$")
        texts["deadline"] = run(c, "exec sleep 600", timeoutMs=50)
    with client(ERRAND_BASH_FOREGROUND_MS="50") as c:
        texts["promoted"] = run(c, "exec sleep 600")


def of_the_output(texts):
    with client() as c:
        start(c, "echo 'all tests passed'")
        texts["ended"] = read(c, wait=True)
        start(c, "seq 1 20000")
        texts["cut"] = "\n".join(read(c, "bash-2", wait=True).splitlines()[-3:])
        start(c, "test -e /no/such")
        texts["notice"] = until_notice(c)
    with client(ERRAND_BASH_OUTPUT_LIMIT="80") as c:
        start(c, "test -e /no/such")
        texts["notice-cut"] = until_notice(c)


def of_a_session(texts):
    with Daemon() as d:
        with d.agent(session="s") as a:
            start(a, "echo compiling; exec sleep 600")
            start(a, "true")
            with d.operator() as op:
                op.ask("errand/wait", id="bash-2")
                wait_for(lambda: op.ask("errand/list")["tasks"][0]["facts"]["outputBytes"])
        with d.agent(session="s") as a:
            texts["resumed"] = until_notice(a).splitlines()[0]


def of_the_errors(texts):
    with client() as c:
        texts["list-empty"] = c.text("task_list")
        texts["unknown"] = read(c, "bash-7")
        start(c, "exec sleep 600")
        foreign = c.tool("task_output", task_id="bash-1", _meta={"errand/owner": "other"})
        texts["foreign"] = text_of(foreign)
        texts["bad-timeout"] = read(c, wait=True, timeout_ms=0)
        texts["bad-arguments"] = c.text("task_output", wait="yes")


def all_texts():
    texts = {}
    for make in (of_the_start, of_the_prefix, of_the_foreground, of_the_output,
                 of_a_session, of_the_errors):
        make(texts)
    return texts


# ---- tests ----

def is_said(want, text):
    """@text is @want; where a line says <something>, anything may stand."""
    parts = re.split(r"<\w+>", want)
    return re.fullmatch(".+".join(re.escape(part) for part in parts), text) is not None


def test_the_page_quotes_what_the_program_says():
    said, page_says = all_texts(), quoted()
    assert sorted(said) == sorted(page_says), sorted(set(said) ^ set(page_says))
    for name, text in said.items():
        assert is_said(page_says[name], text), (
            "%s: the page has %r, the program %r" % (name, page_says[name], text))


def test_the_table_gives_each_text_and_its_bytes():
    costs = {name: int(size) for name, size, _ in ROW.findall(page())}
    blocks = quoted()
    assert sorted(costs) == sorted(blocks), sorted(set(costs) ^ set(blocks))
    for name, block in blocks.items():
        assert costs[name] == len(block.encode()), (name, len(block.encode()))


def raw_prefix(env, cwd, work=()):
    """The lines that carry instructions and tools, as bytes, from a process of its own."""
    requests = [{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": LEGACY, "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"}}},
        {"jsonrpc": "2.0", "method": "notifications/initialized"}]
    requests += [{"jsonrpc": "2.0", "id": 100 + i, "method": "tools/call", "params": call}
                 for i, call in enumerate(work)]
    requests.append({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    with Folder() as state:
        server = subprocess.Popen([os.path.join(build_dir(), "errand"), "mcp"], cwd=cwd,
                                  env={**env, "ERRAND_STATE": state},
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with server, server.stdin, server.stdout:
            lines = {}
            for request in requests:
                server.stdin.write(json.dumps(request).encode() + b"\n")
                server.stdin.flush()
                while "id" in request and request["id"] not in lines:
                    line = server.stdout.readline()
                    lines[json.loads(line)["id"]] = line
    return lines[1], lines[2]


def test_the_prefix_has_the_same_bytes_in_every_run():
    home = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    plain = raw_prefix(home, "/")
    other = raw_prefix({**home, "LANG": "tr_TR.UTF-8", "TZ": "Asia/Tokyo",
                        "ERRAND_SESSION": "s", "ERRAND_BASH_OUTPUT_LIMIT": "80"}, "/usr")
    assert plain == other, (plain, other)


def test_the_tools_have_the_same_bytes_after_work():
    home = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
    work = [{"name": "bash", "arguments": {
        "command": "true", "description": "d", "run_in_background": True}},
        {"name": "task_output", "arguments": {"task_id": "bash-1", "wait": True}}]
    assert raw_prefix(home, "/") == raw_prefix(home, "/", work)


if __name__ == "__main__":
    run_tests(globals())
