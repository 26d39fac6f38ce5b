"""The binaries as a user runs them: `run` and `Fork` in forks of a warm process, `start` in a process of their own."""

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

from conftest import REPOSITORY


def run(*arguments, module="experiments.pipeline", largest_file=None):
    """Exit status and output of one command; a file that grows beyond `largest_file` bytes fails as on a full disk."""
    request = ["run", str(module), [str(argument) for argument in arguments], largest_file]
    return SimpleNamespace(**_asked(_server(), request))


class Fork:
    """A command that has begun and prints to a file; used as a `subprocess.Popen`.

    Its hashes have the seed that commands of several processes need: without it they would start Python anew.
    """

    def __init__(self, module, arguments, log):
        self._server, self.returncode = _server(PYTHONHASHSEED="0"), None
        self.pid = _asked(self._server, ["begin", module, list(arguments), str(log)])

    def poll(self):
        if self.returncode is None:
            self.returncode = _asked(self._server, ["ended", self.pid])
        return self.returncode

    def send_signal(self, number):
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def _asked(server, request):
    """What a warm process answers."""
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    return json.loads(server.stdout.readline())


@functools.cache
def _server(**variables):
    script = Path(__file__).with_name("many_commands.py")
    server = subprocess.Popen(
        [sys.executable, str(script)],
        cwd=REPOSITORY,
        env=_environment() | {"PYTHONPATH": str(REPOSITORY)} | variables,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    atexit.register(server.communicate)  # it ends where its input does
    return server


def start(*arguments, module="experiments.pipeline", **options):
    """A process that can be killed; options are those of `subprocess.Popen`."""
    command = [sys.executable, "-m", module, *map(str, arguments)]
    return subprocess.Popen(command, cwd=REPOSITORY, env=_environment(), **options)


def _environment():
    return {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}


def csv_files(directory):
    return {str(path.relative_to(directory)): path.read_bytes() for path in sorted(directory.rglob("*.csv"))}


def assert_one_line(result, message):
    assert result.returncode == 2, result.stderr
    lines = [line for line in result.stderr.splitlines() if line.strip()]
    assert len(lines) == 1, result.stderr
    assert lines[0].startswith("error: ")
    assert message in lines[0]
    assert "Traceback" not in result.stderr


def assert_bad_flags(module, cases, tmp_path):
    """Each list of flags ends in one line with the message, and makes no directory."""
    for arguments, message in cases:
        flags = [argument.format(tmp=tmp_path) for argument in arguments]
        result = run(f"--output_dir={tmp_path / 'run'}", *flags, module=module)
        assert_one_line(result, message.format(tmp=tmp_path))
    assert not (tmp_path / "run").exists()
