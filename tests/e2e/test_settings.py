# SPDX-License-Identifier: MIT
"""What an operator sets: errand.conf in a home folder, variables, options."""
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
sys.dont_write_bytecode = True
from mcpclient import Folder, build_dir, run_tests  # noqa: E402

ERRAND = os.path.join(build_dir(), "errand")
PING = b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n'
PONG = b'{"jsonrpc":"2.0","id":1,"result":{}}\n'


def equal(got, want):
    assert got == want, "got %r, expected %r" % (got, want)


class Home(Folder):
    """A home folder with an errand.conf, in which nothing else is said."""

    def __init__(self, text):
        super().__init__()
        self.conf = os.path.join(self.name, ".config/errand/errand.conf")
        os.makedirs(os.path.dirname(self.conf))
        with open(self.conf, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.conf, 0o600)

    def __enter__(self):
        return self

    def path(self, *names):
        return os.path.join(self.name, *names)

    def run(self, *args, stdin=PING, **env):
        full = {k: v for k, v in os.environ.items() if not k.startswith("ERRAND_")}
        full.update(env, HOME=self.name)
        return subprocess.run([ERRAND, *args], input=stdin, env=full, capture_output=True,
                              timeout=20, check=False)


def test_the_state_folder_may_be_set_and_an_option_or_a_variable_goes_before():
    with Home("[state]\nfolder = ~/set\n") as home:
        for made, args, env in (("set", (), {}),
                                ("variable", (), {"ERRAND_STATE": home.path("variable")}),
                                ("option", ("--state", home.path("option")),
                                 {"ERRAND_STATE": home.path("other")})):
            done = home.run("mcp", *args, **env)
            equal((done.returncode, done.stdout), (0, PONG))
            assert os.path.exists(home.path(made, "host.sock")), os.listdir(home.name)
        equal(sorted(os.listdir(home.name)), [".config", "option", "set", "variable"])


def test_all_commands_look_into_the_folder_that_is_set():
    with Home("[state]\nfolder = ~/set\n") as home:
        assert home.path("set").encode() in home.run("doctor").stdout


def test_a_set_folder_that_cannot_be_written_is_not_replaced():
    with Home("[state]\nfolder = /proc/errand\n") as home:
        done = home.run("mcp")
        equal((done.returncode, done.stdout), (1, b""))
        assert b"/proc/errand" in done.stderr, done.stderr


def test_a_mistake_in_the_file_is_named_and_nothing_is_started_or_made():
    with Home("[bash]\n\ngrace_ms = long\n") as home:
        for command in ("mcp", "daemon", "config"):
            done = home.run(command)
            equal((done.returncode, done.stdout), (2, b""))
            said = done.stderr.decode()
            assert "%s:3: grace_ms = long: expected" % home.conf in said, said
        for command in (("ls",), ("run", "true"), ("wait", "bash-1")):
            done = home.run(*command)
            equal((done.returncode, done.stdout), (2, b""))
            assert done.stderr.startswith(b"errand %s: %s:3: " % (
                command[0].encode(), home.conf.encode())), done.stderr
        assert home.run("doctor").stdout.startswith(b"WRONG settings")
        equal(os.listdir(home.name), [".config"])


def test_a_file_that_others_may_write_ends_the_start():
    with Home("") as home:
        os.chmod(home.conf, 0o666)
        done = home.run("mcp")
        equal((done.returncode, done.stdout), (2, b""))
        assert b"can be written by others" in done.stderr, done.stderr


def test_config_shows_what_is_set_and_where_without_controls():
    with Home("[limits]\nlive_tasks = 7\n") as home:
        done = home.run("config", ERRAND_BASH_GRACE_MS="1s", ERRAND_STATE_FOLDER="/\x1b[2J")
        said = done.stdout.decode()
        assert "# from %s, line 2\nlive_tasks = 7\n" % home.conf in said, said
        assert "# from ERRAND_BASH_GRACE_MS\ngrace_ms = 1000\n" in said, said
        assert "\x1b" not in said, said


if __name__ == "__main__":
    run_tests(globals())
