"""What contestants share: settings in, stopwatch, results out.

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
from typing import Any

FITS = {"first fit": "responses", "second fit": "responses", "fit of the training part": "training"}


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
    # ru_maxrss would not do on Linux: a new process inherits that of the one that started it
    status = Path("/proc/self/status")
    found = re.search(r"VmHWM:\s*(\d+) kB", status.read_text()) if status.exists() else None
    if found is not None:
        return int(found[1]) / 2**10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)


def fits(
    settings: dict, read: Callable[[str], Any], fit: Callable[[Any], Any], describe: Callable[[Any], dict]
) -> list[dict]:
    """The runs of a contestant that compiles or not: two fits of `responses`, and one of `training` where it is given.

    Args:
        settings: with paths of responses.
        read: responses from a path; not timed.
        fit: what is timed, from responses to a result.
        describe: entries of a run from a result; not timed.
    """
    runs = []
    for label, name in FITS.items():
        if name in settings:
            responses = read(settings[name])
            stopwatch = Stopwatch()
            result = fit(responses)
            seconds = stopwatch.read()
            runs.append({**seconds, "label": label, "peak_mb": peak_mb(), **describe(result)})
    return runs


def main(contestant: Callable[[dict], dict]) -> None:
    """Runs a contestant on the settings in the file argv[1], writes what it returns, or its error, to argv[2].

    Args:
        contestant: takes the settings and returns `versions`, a dictionary, and `runs`: a list of dictionaries with
            `label`, what `Stopwatch.read` gave, `peak_mb` and `steps`. For `benchmarks.versus_pyirt` they also have
            `difficulty` (in logits, in the order of the item ids) and `mean_ability`; for
            `benchmarks.versus_leaderboards` `log_likelihood`, as reported, `converged`, and `items`: the fields of
            `benchmarks.exact_likelihood.Items` as lists. The contestant does its own imports, so that one that fails
            is an error like any other.
    """
    settings = json.loads(Path(sys.argv[1]).read_text())
    try:
        result = contestant(settings)
    except Exception as error:
        traceback.print_exc()
        result = {"error": traceback.format_exception_only(error)[-1].splitlines()[0]}
    Path(sys.argv[2]).write_text(json.dumps(result))
