"""A fit of responses that are larger than the memory it may take, from a folder of shards.

  python -m benchmarks.from_files --num_subjects=1000 --num_items=5000000

Draws responses of the Rasch model, a shard at a time, and fits them in this process. Prints the peak of its memory as a
share of the matrix (1 byte per response), and the correlation of estimated and true difficulties.
"""

import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from absl import flags

import irtjax
from experiments.common import app

_SUBJECTS = flags.DEFINE_integer("num_subjects", 1000, "subjects")
_ITEMS = flags.DEFINE_integer("num_items", 1_000_000, "items")
_MODEL = flags.DEFINE_enum("model", "2pl", ["1pl", "2pl"], "item response model")
_FOLDER = flags.DEFINE_string("folder", None, "where shards are kept; default: a folder that is removed at the end")
SHARD = 50_000  # items


def draw(num_subjects: int, difficulty: np.ndarray) -> Iterator[tuple[np.ndarray, list[str]]]:
    """Responses of standard normal subjects to items of slope 1, a shard at a time."""
    rng = np.random.default_rng(1)
    ability = rng.normal(size=(num_subjects, 1)).astype(np.float32)
    for at in range(0, difficulty.size, SHARD):
        part = difficulty[at : at + SHARD]
        right = rng.random((num_subjects, part.size), np.float32) < 1 / (1 + np.exp(part - ability))
        yield right.astype(np.int8), [f"item_{item}" for item in range(at, at + part.size)]


def peak() -> float:
    """The most memory that this process has had, in bytes."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return 1024.0 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))


def main() -> None:
    """Draws, fits and prints."""
    difficulty = np.random.default_rng(0).normal(size=_ITEMS.value).astype(np.float32)
    given = _FOLDER.value
    folder = Path(given or tempfile.mkdtemp()) / "responses.shards"
    if not folder.exists():
        subjects = [f"subject_{subject}" for subject in range(_SUBJECTS.value)]
        irtjax.write_shards(draw(_SUBJECTS.value, difficulty), subjects, folder)
    before, size, began = peak(), _SUBJECTS.value * _ITEMS.value, time.perf_counter()
    fit = irtjax.fit(folder, _MODEL.value)
    seconds, correlation = time.perf_counter() - began, np.corrcoef(fit.difficulty, difficulty)[0, 1]
    print(fit)
    each = 1e9 * seconds / size / fit.iterations
    print(
        f"responses {size / 1e9:.2f} GB; peak {peak() / 1e9:.2f} GB, {peak() / size:.2f} of them (before: "
        f"{before / 1e9:.2f} GB); {seconds:.0f} s, {each:.2f} ns per response and step, "
        f"correlation of difficulties with the true ones {correlation:.4f}"
    )
    if given is None:
        shutil.rmtree(folder.parent)


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
