"""Runs the packages that a benchmark compares: each in a process of its own, rivals in environments of their own."""

import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import irtjax
from irtjax.errors import InputError
from irtjax.storage.files import writable_directory

SCRIPTS = Path(__file__).parent / "rivals"
OURS = {"PYTHONPATH": str(Path(irtjax.__file__).parents[1])}  # the irtjax of this process, installed or not


def say(line: str) -> None:
    """Shows progress."""
    print(f"{datetime.datetime.now():%H:%M:%S} {line}", file=sys.stderr, flush=True)


def cpu_cores() -> int:
    """How many cores this process may use, and those that it starts."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def script_of(name: str) -> Path:
    """The script of a contestant, which the first word of its name tells: rivals/with_WORD.py."""
    return SCRIPTS / f"with_{name.split()[0].replace('-', '')}.py"


def environments(directory: str | Path) -> Path:
    """The folder of the rivals' environments, made where missing and ignored by git.

    Raises:
        InputError: it cannot be written to.
    """
    directory = writable_directory(directory)
    (directory / ".gitignore").write_text("*\n")
    return directory.absolute()


def interpreter(rival: str, requirement: str, directory: str | Path, base: str) -> Path:
    """The Python of a rival; its environment is made where it is missing or half made.

    Args:
        rival: names the folder of its environment.
        requirement: what pip installs, separated by spaces.
        directory: of all environments.
        base: the interpreter to make them with.

    Raises:
        InputError: it cannot be made, with pip's error.
    """
    home = environments(directory) / rival
    python = home / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = home / "installed.txt"  # written last
    wanted = f"{requirement} {base}\n"
    if done.is_file() and done.read_text() == wanted:
        return python
    say(f"installing {requirement} into {home} (minutes)")
    make: list[str | Path] = [base, "-m", "venv", "--clear", home]
    install: list[str | Path] = [python, "-m", "pip", "install", "--disable-pip-version-check", *requirement.split()]
    for command in (make, install):
        try:
            ended = subprocess.run(command, capture_output=True, text=True, check=False)
        except OSError as error:
            raise InputError(f"--python={base}: cannot be run ({error.strerror})") from error
        if ended.returncode:
            lines = (ended.stderr + ended.stdout).strip().splitlines() or [f"exit status {ended.returncode}"]
            line = next((line for line in lines if line.startswith(("ERROR", "error"))), lines[-1])
            raise InputError(f"{requirement} cannot be installed by {base} (see --python): {line}")
    done.write_text(wanted)
    return python


def run(
    name: str,
    python: str | Path,
    settings: dict[str, Any],
    variables: dict[str, str] | None = None,
    timeout: float | None = None,
) -> dict[str, Any]:
    """Runs a contestant in a fresh process.

    Args:
        name: of the contestant, see `script_of`.
        python: its interpreter.
        settings: for its script.
        variables: of its environment, beside those of this process.
        timeout: seconds after which it is ended.

    Returns:
        What its script returned (see rivals/measure.py), with the time at which the process was started as `began`; or
        only `error`.
    """
    with tempfile.TemporaryDirectory() as folder:
        given, result, log = (Path(folder, file) for file in ("settings.json", "result.json", "log.txt"))
        given.write_text(json.dumps(settings))
        # the same cores for all, and nothing compiled before
        environment = os.environ | {"JAX_PLATFORMS": "cpu", "JAX_ENABLE_COMPILATION_CACHE": "false"} | (variables or {})
        environment |= OURS if name.startswith("irtjax") else {}
        command = [python, script_of(name), given, result]
        began = time.time()
        with log.open("w") as file:
            try:
                ended = subprocess.run(command, env=environment, stdout=file, stderr=file, timeout=timeout, check=False)
            except subprocess.TimeoutExpired:
                return {"error": f"no result within {timeout:,.0f} s"}
        if not result.is_file():
            lines = log.read_text(errors="replace").strip().splitlines()
            return {"error": f"exit status {ended.returncode}: {lines[-1] if lines else ''}"}
        return json.loads(result.read_text()) | {"began": began}
