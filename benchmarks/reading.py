"""How long a file of responses takes to be read, and how much memory beyond what a tiny file of its kind takes.

  python -m benchmarks.reading --responses=answers.csv --tiny=tiny.csv

Reads each file in a process of its own, as a fit with `model=auto` does, and holds it by the answer. Prints seconds,
and bytes an answer: the difference of both peaks of resident memory over the number of answers.
"""

import subprocess
import sys
import time

from absl import flags

from experiments.common import app
from experiments.common.memory import MIB, peak_memory
from irtjax.fits.reading import read

_RESPONSES = flags.DEFINE_string("responses", None, "the file", required=True)
_TINY = flags.DEFINE_string("tiny", None, "some lines of it; without it the file is read in this process")


def main() -> None:
    """Measures and prints."""
    if _TINY.value is None:
        began = time.perf_counter()
        responses, _ = read(_RESPONSES.value, "auto", sparse=True)
        print(responses.num_answers, time.perf_counter() - began, peak_memory())
        return
    (number, seconds, peak), (_, _, least) = (
        map(float, subprocess.check_output([sys.executable, "-m", "benchmarks.reading", f"--responses={path}"]).split())
        for path in (_RESPONSES.value, _TINY.value)
    )
    print(f"{int(number):,} answers, {seconds:.1f} s, {(peak - least) * MIB / number:.1f} bytes an answer")


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
