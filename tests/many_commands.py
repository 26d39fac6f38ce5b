"""Runs binaries, each in a fork of a process that has imported the library once.

  python tests/many_commands.py

Reads one JSON list per line: a module (or the path of a script), its flags, and the largest file that it may write.
Answers each with one line of JSON: exit status, and what was printed. A fork before JAX starts its threads costs
milliseconds; the imports cost seconds.
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


def run(name: str, arguments: list[str], largest_file: int | None) -> dict[str, int | str]:
    """What `python -m name arguments` would do."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv = [name, *arguments]
            if largest_file is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest_file, largest_file))
            _end(name)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for file in (out, err):
            file.seek(0)
        return {"returncode": status, "stdout": out.read(), "stderr": err.read()}


if __name__ == "__main__":
    sys.path[0] = os.getcwd()  # as with python -m
    for module in (*LATE, *(module.name for module in pkgutil.walk_packages(irtjax.__path__, "irtjax."))):
        importlib.import_module(module)
    gc.freeze()  # else each fork would walk through all of these modules when it ends
    for line in sys.stdin:
        print(json.dumps(run(*json.loads(line))), flush=True)
