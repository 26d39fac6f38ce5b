r"""An audit where each of many subjects answered few items, from the file to the report: time and memory by section.

  python -m benchmarks.sparse_audit
  python -m benchmarks.sparse_audit --num_subjects=10000
  python -m benchmarks.sparse_audit --num_items=1000

Simulates answers (`benchmarks.sparse_data`), writes them to a CSV, and does what `experiments.audit` does with it.
Nothing is wrong with the items. Expected duration on 2 CPU cores: a minute with the defaults.
"""

import tempfile
import time
from pathlib import Path

from absl import flags

import irtjax
from benchmarks.sparse_data import SELECTIONS, simulate
from experiments.common import app
from experiments.common.memory import peak_memory
from experiments.reports import audit as report

_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 100_000, "J", lower_bound=2)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 2000, "I", lower_bound=2)
_ANSWERS = flags.DEFINE_integer("answers", 20, "of each subject", lower_bound=1)
_SELECTION = flags.DEFINE_enum("selection", "adaptive", SELECTIONS, "what the items of a subject depend on")
_SEED = flags.DEFINE_integer("seed", 0, "seed of the data, and of the audit")


class Clock:
    """Prints how long each section took, when the next one begins."""

    def __init__(self, first: str) -> None:
        self.section, self.since, self.began = first, time.perf_counter(), time.perf_counter()

    def __call__(self, section: str) -> None:
        """Ends a section."""
        now = time.perf_counter()
        print(f"{self.section}: {now - self.since:.0f} s, peak memory {peak_memory() / 1024:.2f} GiB", flush=True)
        self.section, self.since = section, now


def main() -> None:
    """Simulates, audits and prints."""
    simulated = simulate(_NUM_SUBJECTS.value, _NUM_ITEMS.value, _ANSWERS.value, _SELECTION.value, "2pl", _SEED.value)
    print(f"{simulated.responses}: {simulated.responses.num_answers:,} answers", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        path, directory = Path(folder, "responses.csv"), Path(folder, "audit")
        irtjax.write_responses(simulated.responses, path)
        del simulated
        directory.mkdir()
        clock = Clock("reading")
        responses = irtjax.read_responses(path)
        found = irtjax.audit(responses, seed=_SEED.value, on_step=clock)
        clock("report")
        lines = report.write(found, {"level": 0.05}, directory)
        clock("")
    print(f"in all: {time.perf_counter() - clock.began:.0f} s")
    print("\n".join(lines))


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
