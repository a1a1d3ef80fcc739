# SPDX-License-Identifier: MIT
"""Many requests at once, slow readers, big lines: nobody waits for somebody else."""
import json
import os
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from cases import COUNTED  # noqa: E402
from mcpclient import META, Client, run_tests, text_of, wait_for  # noqa: E402


def client(**env):
    c = Client.errand(env={**os.environ, **env})
    c.initialize()
    return c


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


def sleeper(c):
    c.tool("bash", command="exec sleep 600", description="d", run_in_background=True)
    return "bash-1"


def test_a_thousand_calls_at_once_are_all_answered():
    with client() as c:
        asked = [c.post_tool("task_list") for _ in range(1000)]
        for request in asked:
            equal(text_of(c.join(request)), "(no background tasks)")


def test_replies_of_quick_calls_come_in_the_order_of_the_requests():
    with client() as c:
        call = '{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"task_list"}}\n'
        c.write_bytes("".join(call % n for n in range(5000, 5500)).encode())
        equal([c.read_message()["id"] for _ in range(500)], list(range(5000, 5500)))


def test_a_quick_call_does_not_wait_behind_fifty_waits():
    with client() as c:
        task = sleeper(c)
        waits = [c.post_tool("task_output", task_id=task, wait=True, timeout_ms=20000)
                 for _ in range(50)]
        began = time.monotonic()
        assert task in c.text("task_list")
        assert time.monotonic() - began < 1
        c.tool("task_kill", task_id=task)
        for request in waits:
            assert "[status: killed, signal: SIGTERM]" in text_of(c.join(request))


def test_a_client_that_does_not_read_is_not_read_from_until_it_does():
    """Replies pile up to a limit; then requests wait in the pipe, and nothing is lost."""
    with client() as c:
        c.stop_reading()
        long_id = "x" * 60000
        line = json.dumps({"jsonrpc": "2.0", "id": long_id, "method": "ping"}).encode() + b"\n"
        os.set_blocking(c.proc.stdin.fileno(), False)
        sent = left = 0
        quiet = time.monotonic() + 1
        while time.monotonic() < quiet and sent < 4000:
            try:
                wrote = os.write(c.proc.stdin.fileno(), line[left:])
                left += wrote
                quiet = time.monotonic() + 1
            except BlockingIOError:
                continue
            if left == len(line):
                sent, left = sent + 1, 0
        # With a daemon there are two: before it and behind it.
        assert 1000 < sent < 3000, "the server took %d requests of 60 kB" % sent
        os.set_blocking(c.proc.stdin.fileno(), True)
        c.resume_reading()
        c.write_bytes(line[left:] if left else line)
        for _ in range(sent + 1):
            equal(c.read_message()["result"], {})
        c.request("ping")


def test_progress_comes_while_a_call_with_a_token_waits():
    with client() as c:
        task = sleeper(c)
        reply = c.tool("task_output", _meta={"progressToken": "tok"}, task_id=task, wait=True,
                       timeout_ms=11000)
        equal(text_of(reply), "(no new output)\n[status: running]")
        told = [m["params"] for m in c.notifications
                if m["method"] == "notifications/progress"]
        equal([p["progressToken"] for p in told], ["tok", "tok"])
        assert told[0]["progress"] < told[1]["progress"], told


def test_a_subscription_holds_up_nobody():
    with Client.errand() as c:
        c.use_modern()
        listening = c.post("subscriptions/listen", {"notifications": {"toolsListChanged": True}},
                           "listen:0")
        wait_for(lambda: c.poll(0.1) and c.notifications)
        ack = c.notifications[0]
        equal(ack["method"], "notifications/subscriptions/acknowledged")
        equal(ack["params"], {"_meta": {META + "subscriptionId": "listen:0"},
                              "notifications": {}})
        c.request("server/discover")
        c.cancel(listening)
        equal(len(c.request("tools/list")["tools"]), 4)
        assert not c.has(listening)


def test_both_eras_share_one_process_and_one_owner():
    with client() as c:
        task = sleeper(c)
        c.use_modern()
        assert task in c.text("task_list")
        c.modern = False
        assert task in c.text("task_list")


def test_pages_without_a_limit_lose_nothing():
    with client(ERRAND_BASH_OUTPUT_LIMIT="0") as c:
        c.tool("bash", command="seq 1 1500000", description="d", run_in_background=True)
        pages = []

        def finished():
            text = c.text("task_output", task_id="bash-1", wait=True)
            body, _, status = text.rpartition("[status: ")
            if body == "(no new output)\n":
                return status.startswith("completed")
            pages.append(body)
            return False
        wait_for(finished, 30)
        # A page that ends amid a line gets a line feed before its status.
        got = "".join(pages).replace("\n", "")
        want = "".join(map(str, range(1, 1500001)))
        assert len(pages) > 1
        assert got == want, (len(pages), len(got), len(want))


def page_of(c, task):
    """The next page, and how long its line was. None: there is nothing more."""
    request = c.post_tool("task_output", task_id=task, wait=True)
    line = c.read_line()
    reply = json.loads(line)
    equal(reply["id"], request)
    body, _, status = text_of(reply["result"]).rpartition("[status: ")
    assert status.startswith("completed"), status
    return None if body == "(no new output)\n" else (body.replace("\n", ""), len(line))


def test_a_page_without_a_limit_is_at_most_8_mib_as_a_line_however_it_is_written():
    with client(ERRAND_BASH_OUTPUT_LIMIT="0") as c:
        # Each byte is two in JSON, or three in the text.
        for number, (byte, shown) in enumerate((('"', '"'), (r"\377", "\ufffd")), 1):
            c.tool("bash", command="head -c 3000000 /dev/zero | tr '\\0' '%s'" % byte,
                   description="d", run_in_background=True)
            got = []
            while (page := page_of(c, "bash-%d" % number)) is not None:
                assert page[1] <= 8 << 20, page[1]
                assert set(page[0]) == {shown}, set(page[0])
                got.append(len(page[0]))
            equal(sum(got), 3000000)


def memory_of(c):
    with open("/proc/%d/status" % c.host_pid()) as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS"))


def test_a_flood_costs_the_host_no_memory():
    with client() as c, tempfile.TemporaryDirectory() as folder:
        sleeper(c)
        before = memory_of(c)
        c.tool("bash", command="head -c 300M /dev/zero; touch %s/done" % folder,
               description="d", run_in_background=True)
        wait_for(lambda: os.path.exists(folder + "/done"), 60)
        assert memory_of(c) - before < 1024, (before, memory_of(c))
        c.text("task_output", task_id="bash-2", wait=True)
        facts = c.tool("task_list")["_meta"]["errand/facts"]["bash-2"]
        equal((facts["outputBytes"], facts["unreadBytes"]), (300 << 20, 0))
        assert (300 << 20) - facts["droppedBytes"] <= 64 << 20, facts


def test_a_large_reply_leaves_no_memory_behind():
    with client(ERRAND_BASH_OUTPUT_LIMIT="0", **COUNTED) as c:
        sleeper(c)
        before = memory_of(c)
        c.tool("bash", command="yes | head -c 1900000", description="d",
               run_in_background=True)
        while page_of(c, "bash-2") is not None:
            pass
        assert memory_of(c) - before < 2048, (before, memory_of(c))


if __name__ == "__main__":
    run_tests(globals())
