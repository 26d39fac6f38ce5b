r"""A million subjects with a few answers each: time and memory of a fit by the answer, and what it recovers.

  python -m benchmarks.sparse --num_subjects=1000000 --num_items=20000 --answers=50
  python -m benchmarks.sparse --num_subjects=1000000 --num_items=20000 --answers=50 --model=1pl --estimator=svi

Simulates answers (`benchmarks.sparse_data`), fits them, and prints time and memory, the time of a pass over the answers
in units of what memory allows, measured in the same run, and recovery and coverage by the number of answers to an item.
Expected duration on 2 CPU cores: ten seconds with the defaults, four minutes for the first command, five for the
second.
"""

import time
from typing import Any

import numpy as np
import pandas as pd
from absl import flags
from scipy.stats import pearsonr

import irtjax
from benchmarks.sparse_data import SELECTIONS, Simulated, simulate
from experiments.common import app
from experiments.common.memory import peak_memory
from irtjax.integration import sparse_e_step
from irtjax.integration.curves import Curves
from irtjax.integration.encode import to_answers
from irtjax.integration.sparse_answers import SparseAnswers
from irtjax.integration.sparse_e_step import shared_out, threads
from irtjax.item_models.binary import BINARY
from irtjax.kernels.models import ItemParameters
from irtjax.kernels.quadrature import rectangular

_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 100_000, "J", lower_bound=2)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 2000, "I", lower_bound=2)
_ANSWERS = flags.DEFINE_integer("answers", 20, "of each subject", lower_bound=1)
_SELECTION = flags.DEFINE_enum("selection", "adaptive", SELECTIONS, "what the items of a subject depend on")
_MODEL = flags.DEFINE_enum("model", "2pl", ["1pl", "2pl"], "item response model")
_ESTIMATOR = flags.DEFINE_enum("estimator", "mml", irtjax.fitting.ESTIMATORS, "estimator")
_SEED = flags.DEFINE_integer("seed", 0, "seed of the data and of svi")
NODES = 61  # that subjects share
AT_LEAST = (1, 30, 100, 300, 1000, 3000, 10_000)  # answers to an item
ROWS = 2**13  # of a table that fits into the cache


def limit(num_cells: int) -> float:
    """Nanoseconds of an answer: a row of the table is read, and one of the sums is read and written, in their cache.

    Measured as sums of rows of NODES numbers in tables of this size, on all cores.
    """
    rows = np.random.default_rng(0).standard_normal((num_cells, NODES))
    number, at_once, times = 64, threads(2**30), 2**20 // num_cells + 1

    def add(parts: range) -> None:
        total = np.zeros_like(rows)
        for _ in parts:
            for _ in range(times):
                np.add(total, rows, out=total)

    began = time.perf_counter()
    shared_out(add, number, at_once)
    return (time.perf_counter() - began) / (number * times * num_cells) * 1e9


def of_a_pass(simulated: Simulated) -> float:
    """Nanoseconds of an answer in an E-step of the 2PL."""
    a, b = simulated.a, simulated.b
    none = np.full(len(a), np.inf)
    grid = rectangular(NODES)
    found = BINARY.natural(ItemParameters(a[:, None], -a * b, -none, none), grid.nodes, asymptotes=False)
    powers = np.concatenate([grid.nodes, grid.nodes**2], axis=1)
    answers = to_answers(simulated.responses.values)
    assert isinstance(answers, SparseAnswers)
    times = []
    for _ in range(3):
        began = time.perf_counter()
        sparse_e_step.everywhere(Curves(*found, grid.log_weights, powers), answers, False)
        times.append(time.perf_counter() - began)
    return min(times) / simulated.responses.num_answers * 1e9


def recovery(simulated: Simulated, fit: irtjax.Fit) -> pd.DataFrame:
    """Error of difficulties and slopes by the number of answers to an item, and how often 95% intervals cover."""
    _, observed = simulated.responses.counts(axis=0)
    mean, sd = simulated.theta.mean(), simulated.theta.std()
    slopes = _MODEL.value == "2pl"
    b, a = (simulated.b - mean) / (sd if slopes else 1.0), simulated.a * sd
    rows = []
    for low, high in zip(AT_LEAST, (*AT_LEAST[1:], np.inf), strict=True):
        at = (observed >= low) & (observed < high)
        if not at.any():
            continue
        error = fit.difficulty[at] - b[at]
        row = {
            "answers to an item": f"{low:,} to {high - 1:,}" if np.isfinite(high) else f"{low:,} or more",
            "items": int(at.sum()),
            "b: RMSE": float(np.sqrt(np.mean(error**2))),
            "b: bias": float(error.mean()),
            "b: covered": float(np.mean(np.abs(error) < 1.96 * fit.difficulty_se[at])),
        }
        if slopes:
            error = fit.item_columns["discrimination"][at] - a[at]
            covered = np.abs(error) < 1.96 * fit.item_columns["discrimination_se"][at]
            row |= {
                "a: RMSE": float(np.sqrt(np.mean(error**2))),
                "a: bias": float(error.mean()),
                "a: covered": float(np.mean(covered)),
            }
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Measures and prints."""
    size = _NUM_SUBJECTS.value, _NUM_ITEMS.value
    simulated = simulate(*size, _ANSWERS.value, _SELECTION.value, _MODEL.value, _SEED.value)
    responses = simulated.responses
    print(f"{responses}: {responses.num_answers:,} answers", flush=True)
    before, began = peak_memory(), time.perf_counter()
    options: dict[str, Any] = {"seed": _SEED.value} if _ESTIMATOR.value == "svi" else {}
    fit = irtjax.fit(responses, _MODEL.value, _ESTIMATOR.value, **options)
    taken = time.perf_counter() - began
    print(fit)
    print(
        f"{taken / 60:.1f} minutes, {taken / fit.iterations / responses.num_answers * 1e9:.0f} ns an answer and "
        f"iteration; peak memory {peak_memory() / 1024:.2f} GiB, {before / 1024:.2f} GiB before the fit",
        flush=True,
    )
    if _ESTIMATOR.value == "mml":
        one, least = of_a_pass(simulated), limit(2 * responses.num_items)
        print(
            f"an E-step on {NODES} nodes takes {one:.0f} ns an answer, {one / least:.1f} times the {least:.0f} ns in "
            f"which a row of a table of {2 * responses.num_items:,} is read, and one is read and written, in order"
        )
    right = pearsonr(fit.ability, simulated.theta).statistic
    covered = np.mean(
        np.abs(fit.ability - (simulated.theta - simulated.theta.mean()) / simulated.theta.std()) < 1.96 * fit.ability_se
    )
    print(f"abilities: correlation {right:.3f}, 95% intervals cover {covered:.1%}")
    print(recovery(simulated, fit).to_string(index=False, float_format="{:.3f}".format))


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
