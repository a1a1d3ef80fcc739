# SPDX-License-Identifier: MIT
"""Whatever comes in on stdin, the server answers as JSON-RPC says, and goes on."""
import json
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from mcpclient import Client, run_tests, text_of, wait_for  # noqa: E402


def client():
    c = Client.errand()
    c.initialize()
    return c


def answers(c, line, code):
    """Sends one raw line and expects one error with @code; then the server still works."""
    c.write_bytes(line + b"\n")
    message = c.read_message()
    assert message.get("error", {}).get("code") in code, (line[:80], message)
    still_works(c)
    return message


def still_works(c):
    c.request("ping")


def call(arguments, tool="task_output"):
    return b'{"jsonrpc":"2.0","id":77,"method":"tools/call","params":{"name":"%s",' \
           b'"arguments":%s}}' % (tool.encode(), arguments)


def test_no_json_is_a_parse_error_without_an_id():
    with client() as c:
        for line in (b"{", b"hello", b'{"jsonrpc":"2.0",}', b"\x00", b"[1,", b'"\\ud800"'):
            message = answers(c, line, (-32700, -32600))
            assert message["id"] is None, message


def test_json_that_is_no_request_is_invalid():
    with client() as c:
        for line in (b"null", b"1", b'"x"', b"[]", b"{}", b'{"id":1}',
                     b'{"jsonrpc":"1.0","id":1,"method":"ping"}',
                     b'{"jsonrpc":"2.0","id":{},"method":"ping"}',
                     b'{"jsonrpc":"2.0","id":1,"method":5}'):
            answers(c, line, (-32600, -32700))


def test_a_batch_is_refused():
    with client() as c:
        answers(c, b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', (-32600,))


def test_empty_lines_are_nothing():
    with client() as c:
        c.write_bytes(b"\n\r\n  \n")
        still_works(c)


def test_an_unknown_method_is_not_found():
    with client() as c:
        answers(c, b'{"jsonrpc":"2.0","id":5,"method":"no/such"}', (-32601,))


def test_an_unknown_notification_is_nothing():
    with client() as c:
        c.notify("notifications/no_such", {"x": 1})
        c.notify("notifications/cancelled", {"requestId": 12345})
        c.notify("notifications/cancelled", {})
        still_works(c)


def test_an_unknown_tool_is_an_error():
    with client() as c:
        answers(c, call(b"{}", "no_such_tool"), (-32602,))


def test_a_line_of_32_mib_is_skipped():
    with client() as c:
        message = answers(c, b'{"jsonrpc":"2.0","id":1,"method":"' + b"x" * (32 << 20), (-32600,))
        assert message["id"] is None, message


def test_deep_nesting_is_refused():
    with client() as c:
        answers(c, b'{"jsonrpc":"2.0","id":1,"method":"ping","params":' + b"[" * 200000,
                (-32700, -32600, -32602))
        answers(c, b"[" * 200000 + b"]" * 200000, (-32700, -32600))


def test_invalid_utf_8_is_refused():
    with client() as c:
        answers(c, b'{"jsonrpc":"2.0","id":1,"method":"\xff\xfe"}', (-32700, -32600, -32601))


def test_half_a_surrogate_pair_is_a_character_like_others():
    with client() as c:
        text = c.text("bash", command="printf %s 'a\ud83db\udc00'", description="\ud800")
        assert text == "a\N{REPLACEMENT CHARACTER}b\N{REPLACEMENT CHARACTER}", text
        text = c.text("task_output", task_id="\ud800")
        assert text == "Error: unknown task \N{REPLACEMENT CHARACTER}", text


def test_timeouts_of_any_size_are_answered():
    with client() as c:
        c.tool("bash", command="exec sleep 600", description="d", run_in_background=True)
        for value, want in ((b"-1", "invalid wait timeout"), (b"0", "invalid wait timeout"),
                            (b"-0", "losslessly"), (b"1e999", "losslessly"),
                            (b"0.25", "[status: running]")):
            c.write_bytes(call(b'{"task_id":"bash-1","wait":true,"timeout_ms":%s}' % value)
                          + b"\n")
            reply = c.join(77)
            assert want in text_of(reply), (value, reply)


def test_a_nul_in_a_command_is_refused():
    with client() as c:
        reply = c.tool("bash", command="echo a\0b", description="d")
        assert reply.get("isError") is True, reply
        still_works(c)


def test_d16_ids_of_any_kind_come_back_as_they_were():
    with client() as c:
        for token in (b"0", b"-5", b'"x y"', b'""', b"9007199254740993", b'"\\u00e9"'):
            c.write_bytes(b'{"jsonrpc":"2.0","id":' + token + b',"method":"ping"}\n')
            message = c.read_message()
            assert message["id"] == json.loads(token), (token, message)


def test_many_lines_at_once_are_all_answered_in_order():
    with client() as c:
        c.write_bytes(b"".join(b'{"jsonrpc":"2.0","id":%d,"method":"ping"}\n' % n
                               for n in range(1000, 3000)))
        for n in range(1000, 3000):
            assert c.read_message()["id"] == n


def test_a_line_in_pieces_is_one_line():
    with client() as c:
        for byte in b'{"jsonrpc":"2.0","id":9,"method":"ping"}\n':
            c.write_bytes(bytes([byte]))
        assert c.read_message()["id"] == 9


def test_a_reader_that_stops_reading_stops_nobody_else():
    """Stdout is full while requests go on to come; all are answered in the end."""
    with client() as c:
        c.stop_reading()
        c.notify("notifications/initialized")
        task = 'printf "%09000d" 7; echo'
        ids = [c.post_tool("bash", command=task, description="d") for _ in range(24)]
        c.resume_reading()
        for request in ids:
            assert text_of(c.join(request)).count("0") > 5000


def test_the_servers_end_is_quick_and_clean():
    for sig in ("EOF", "SIGINT", "SIGTERM", "SIGHUP"):
        with client() as c:
            c.post_tool("bash", command="exec sleep 600", description="d")
            wait_for(lambda: " running " in c.text("task_list"))
            c.post_tool("task_output", task_id="bash-1", wait=True)
            still_works(c)
            if sig == "EOF":
                c.proc.stdin.close()
            else:
                c.proc.send_signal(getattr(signal, sig))
            code = c.wait_exit(2)
            assert code == 0, (sig, code)


if __name__ == "__main__":
    run_tests(globals())
