r"""Fit of items and subjects, local dependence and DIF where each subject answered few items: time and memory.

  python -m benchmarks.sparse_diagnostics
  python -m benchmarks.sparse_diagnostics --num_subjects=300000 --num_items=20000 --answers=33 --methods=score

Simulates answers (`benchmarks.sparse_data`), fits the 2PL, and prints how long each analysis takes, the peak of memory
after it, and what it finds, where there is nothing to be found. Groups are drawn at random. Expected duration on 2 CPU
cores: two minutes with the defaults.
"""

import functools
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
from absl import flags

import irtjax
from benchmarks.sparse_data import SELECTIONS, simulate
from experiments.common import app
from experiments.common.memory import peak_memory

_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 100_000, "J", lower_bound=2)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 5000, "I", lower_bound=2)
_ANSWERS = flags.DEFINE_integer("answers", 20, "of each subject", lower_bound=1)
_SELECTION = flags.DEFINE_enum("selection", "adaptive", SELECTIONS, "what the items of a subject depend on")
_METHODS = flags.DEFINE_list("methods", ["mantel_haenszel", "logistic", "score"], "of DIF")
_SEED = flags.DEFINE_integer("seed", 0, "seed of the data")
LEVEL = 0.05


def main() -> None:
    """Measures and prints."""
    simulated = simulate(_NUM_SUBJECTS.value, _NUM_ITEMS.value, _ANSWERS.value, _SELECTION.value, "2pl", _SEED.value)
    responses = simulated.responses
    print(f"{responses}: {responses.num_answers:,} answers", flush=True)
    began = time.perf_counter()
    fit = irtjax.fit(responses, "2pl", standard_errors=False)
    print(f"fit: {time.perf_counter() - began:.0f} s, peak memory {peak_memory() / 1024:.2f} GiB", flush=True)
    groups = np.random.default_rng(_SEED.value).choice(["a", "b"], responses.num_subjects)
    analyses: dict[str, Callable[[], pd.DataFrame]] = {
        "person_fit": lambda: irtjax.person_fit(fit),
        "item_fit": lambda: irtjax.item_fit(fit),
        "local_dependence": lambda: irtjax.local_dependence(fit),
    }
    for method in _METHODS.value:
        analyses[f"dif, {method}"] = functools.partial(irtjax.dif, responses, groups, method)
    for name, analyse in analyses.items():
        began = time.perf_counter()
        found = analyse()
        taken = time.perf_counter() - began
        p_value = found["p_value"].dropna()
        said = f"{len(p_value):,} p-values, {(p_value < LEVEL).mean():.1%} below {LEVEL}" if len(p_value) else "no S-X2"
        print(
            f"{name}: {taken:.0f} s, peak memory {peak_memory() / 1024:.2f} GiB; {len(found):,} rows, {said}",
            flush=True,
        )


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
