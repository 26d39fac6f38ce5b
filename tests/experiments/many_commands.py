"""Runs a binary with several lists of flags, each in a fork of a process that has imported it once.

  python tests/experiments/many_commands.py experiments.crowd < lists_of_flags.json > results.json

A fork before JAX starts its threads costs milliseconds, an import seconds.
"""

import importlib
import json
import os
import sys
import tempfile


def run(module, arguments: list[str]) -> dict:
    """Exit status and what was printed."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if child == 0:
            os.dup2(out.fileno(), 1)
            os.dup2(err.fileno(), 2)
            sys.argv = [module.__file__, *arguments]
            try:
                module.app.run(module.main)
            except SystemExit as stop:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(stop.code if isinstance(stop.code, int) else stop.code is not None)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        for file in (out, err):
            file.seek(0)
        return {"returncode": status, "stdout": out.read(), "stderr": err.read()}


if __name__ == "__main__":
    binary = importlib.import_module(sys.argv[1])
    print(json.dumps([run(binary, arguments) for arguments in json.load(sys.stdin)]))
