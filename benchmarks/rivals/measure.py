"""What the contestants of `benchmarks.versus_pyirt` share: settings in, stopwatch, results out.

Run by the interpreter of each contestant, therefore the standard library only.
"""

import json
import os
import re
import resource
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path


class Stopwatch:
    """Wall and CPU seconds since it was made."""

    def __init__(self):
        self._wall, self._cpu = time.perf_counter(), _cpu_seconds()

    def read(self) -> dict[str, float]:
        """Seconds so far, all threads and ended children included, and the time of day."""
        return {"wall": time.perf_counter() - self._wall, "cpu": _cpu_seconds() - self._cpu, "at": time.time()}


def _cpu_seconds() -> float:
    return sum(os.times()[:4])


def peak_mb() -> float:
    """Largest resident memory of this process so far, in units of 2²⁰ bytes."""
    try:
        # ru_maxrss would not do here: on Linux a new process inherits that of the one that started it
        return int(re.search(r"VmHWM:\s*(\d+) kB", Path("/proc/self/status").read_text())[1]) / 2**10
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def main(contestant: Callable[[dict], dict]) -> None:
    """Runs a contestant on the settings in the file argv[1], writes what it returns, or its error, to argv[2].

    Args:
        contestant: takes the settings and returns `versions`, a dictionary, and `runs`: a list of dictionaries with
            `label`, what `Stopwatch.read` gave, `peak_mb`, `steps`, `difficulty` (in logits, in the order of the
            item ids) and `mean_ability`. It does its own imports, so that one that fails is an error like any other.
    """
    settings = json.loads(Path(sys.argv[1]).read_text())
    try:
        result = contestant(settings)
    except Exception as error:
        traceback.print_exc()
        result = {"error": traceback.format_exception_only(error)[-1].splitlines()[0]}
    Path(sys.argv[2]).write_text(json.dumps(result))
