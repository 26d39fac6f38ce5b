"""Runs binaries, each in a fork of a process that has imported the library once.

  python tests/many_commands.py

Reads one JSON list per line, and answers each with one line of JSON. A fork before JAX starts its threads costs
milliseconds; the imports cost seconds.

* `"run"`, a module (or the path of a script), its flags, and the largest file that it may write: exit status, and what
  was printed, once it has ended.
* `"begin"`, a module, its flags, and the file that it prints to: the id of a process that has begun.
* `"ended"`, such an id: its exit status, or null while it runs.
"""

import atexit
import gc
import importlib
import json
import os
import pkgutil
import resource
import runpy
import sys
import tempfile
import threading
import traceback

import irtjax

LATE = ("sklearn.datasets", "sklearn.metrics", "sklearn.utils.extmath", "scipy.stats")  # imported where they are used


def _end(name: str) -> None:
    """Runs a module or script, and ends this process without the fifth of a second that tearing Python down takes."""
    status: int | str | None = 0
    try:
        if name.endswith(".py"):
            runpy.run_path(name, run_name="__main__")
        else:
            runpy.run_module(name, run_name="__main__", alter_sys=True)
    except SystemExit as end:
        status = end.code
    except BaseException:
        traceback.print_exc()
        status = 1
    if isinstance(status, str):
        print(status, file=sys.stderr)
    threading._shutdown()
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status if isinstance(status, int) else status is not None)


def _fork(name: str, arguments: list[str], out: int, err: int, largest_file: int | None = None) -> int:
    """The id of a fork that does what `python -m name arguments` would do."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(out, 1)
        os.dup2(err, 2)
        sys.argv = [name, *arguments]
        if largest_file is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
        _end(name)
    return child


def run(name: str, arguments: list[str], largest_file: int | None) -> dict[str, int | str]:
    """What `python -m name arguments` would do."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = _fork(name, arguments, out.fileno(), err.fileno(), largest_file)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for file in (out, err):
            file.seek(0)
        return {"returncode": status, "stdout": out.read(), "stderr": err.read()}


def begin(name: str, arguments: list[str], log: str) -> int:
    """The id of a process that does so, and prints to a file."""
    with open(log, "wb") as file:
        return _fork(name, arguments, file.fileno(), file.fileno())


def ended(child: int) -> int | None:
    """The exit status of a process that has begun, asked for until there is one."""
    found, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if found else None


REQUESTS = {"run": run, "begin": begin, "ended": ended}

if __name__ == "__main__":
    sys.path[0] = os.getcwd()  # as with python -m
    for module in (*LATE, *(module.name for module in pkgutil.walk_packages(irtjax.__path__, "irtjax."))):
        importlib.import_module(module)
    gc.freeze()  # else each fork would walk through all of these modules when it ends
    for line in sys.stdin:
        request, *arguments = json.loads(line)
        print(json.dumps(REQUESTS[request](*arguments)), flush=True)
