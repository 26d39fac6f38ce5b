r"""Variational inference of grades at crowd scale, in steps of that of right and wrong answers of the same shape.

  python -m benchmarks.crowd_grades
  python -m benchmarks.crowd_grades --num_subjects=500 --num_items=200 --whole

Simulates grades 0 to 4 by the graded response model, and right/wrong answers from the same abilities. Prints the
seconds of a step of `estimator=svi` of both (medians over chunks of steps, both in this run) and the peak of memory.
With --whole it fits until convergence, and prints how far abilities, slopes and thresholds are from the truth, in
standard errors; by `mml` too, if there are up to 300 items. Expected duration on 2 CPU cores: ten minutes; a minute for
the second command.
"""

import itertools
import resource
import sys
import time
from typing import Any

import numpy as np
from absl import app, flags
from scipy.special import expit
from tqdm import tqdm

import irtjax
from irtjax.responses.scaled import Scale, ScaledResponses

_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 1000, "J", lower_bound=2)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 100_000, "I", lower_bound=2)
_NUM_STEPS = flags.DEFINE_integer("num_steps", 50, "steps of either estimator", lower_bound=30)
_MODEL = flags.DEFINE_enum("model", "graded", ["graded", "gpcm"], "of the grades")
_WHOLE = flags.DEFINE_bool("whole", False, "fit until convergence, and compare with the truth")
_SEED = flags.DEFINE_integer("seed", 0, "seed of the data")
_TOP = 4  # the highest grade
_BLOCK = 2**20  # responses drawn at once: the peak of memory is to be that of the fit
_MOST_BY_MML = 300


def simulate() -> tuple[ScaledResponses, np.ndarray, np.ndarray, np.ndarray]:
    """Grades, and the abilities (J,), slopes (I,) and thresholds (I, 4) that they were drawn from."""
    num_subjects, num_items = _NUM_SUBJECTS.value, _NUM_ITEMS.value
    rng = np.random.default_rng(_SEED.value)
    theta = rng.standard_normal(num_subjects)
    theta = (theta - theta.mean()) / theta.std()
    slope = np.exp(0.3 * rng.standard_normal(num_items))
    gaps = np.cumsum(np.exp(0.4 * rng.standard_normal((num_items, _TOP))), axis=1)
    thresholds = rng.standard_normal((num_items, 1)) + gaps - gaps.mean(axis=1, keepdims=True)
    values = np.zeros((num_subjects, num_items), np.int8)
    size = max(1, _BLOCK // num_subjects)
    for at in tqdm(range(0, num_items, size), "grades", disable=not sys.stderr.isatty()):
        part = slice(at, at + size)
        drawn = rng.random((num_subjects, len(slope[part])), np.float32)
        for k in range(_TOP):
            values[:, part] += drawn < expit(slope[part] * (theta[:, None] - thresholds[part, k]))
    subjects, items = (
        np.char.mod(f"{kind}%d", np.arange(size)) for kind, size in (("s", num_subjects), ("i", num_items))
    )
    return (
        ScaledResponses(values, subjects, items, (Scale(tuple(range(_TOP + 1))),) * num_items),
        theta,
        slope,
        thresholds,
    )


def seconds_a_step(responses: Any, model: str) -> float:
    """The median over chunks of steps, but for the first, which compiles."""
    times: list[tuple[int, float]] = []
    irtjax.fit(
        responses,
        model,
        "svi",
        start="proportions",
        max_steps=_NUM_STEPS.value,
        on_chunk=lambda steps, _: times.append((steps, time.perf_counter())),
    )
    return float(np.median([(after[1] - at[1]) / (after[0] - at[0]) for at, after in itertools.pairwise(times)]))


def against_truth(fit: irtjax.Fit, theta: np.ndarray, slope: np.ndarray, thresholds: np.ndarray) -> None:
    """Prints errors and the coverage of intervals."""
    columns = fit.item_columns
    names = [f"threshold_{k + 1}" for k in range(_TOP)]
    end = "converged" if fit.converged else f"not converged ({fit.status.value})"
    print(f"{fit.model} by {fit.estimator}: {fit.iterations} iterations in {fit.seconds:.1f} s, {end}")
    for name, found, error, truth in (
        ("abilities", fit.ability, fit.ability_se, theta),
        ("slopes", columns["discrimination"], columns["discrimination_se"], slope),
        (
            "thresholds",
            np.stack([columns[name] for name in names], axis=1),
            np.stack([columns[f"{name}_se"] for name in names], axis=1),
            thresholds,
        ),
    ):
        print(
            f"{name}: correlation {np.corrcoef(found.ravel(), truth.ravel())[0, 1]:.4f}, "
            f"RMSE {np.sqrt(np.mean((found - truth) ** 2)):.4f}, median standard error {np.median(error):.4f}, "
            f"within 1.96 standard errors {100 * np.mean(np.abs(found - truth) < 1.96 * error):.1f}%"
        )


def peak_bytes() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main(_: list[str]) -> None:
    """Measures and prints."""
    responses, *truth = simulate()
    size, before = responses.values.nbytes, peak_bytes()
    print(f"{responses.num_subjects:,} × {responses.num_items:,} grades 0 to {_TOP}")
    if _WHOLE.value:
        for estimator in ("svi", "mml")[: 2 if responses.num_items <= _MOST_BY_MML else 1]:
            against_truth(irtjax.fit(responses, _MODEL.value, estimator), *truth)
    else:
        of_grades = seconds_a_step(responses, _MODEL.value)
        peak = peak_bytes()
        right = (np.asarray(responses.values) > _TOP // 2).astype(np.int8)
        binary = seconds_a_step(irtjax.ResponseMatrix(right, responses.subject_ids, responses.item_ids), "2pl")
        print(
            f"a step of the {_MODEL.value} {of_grades:.3f} s, of the 2pl {binary:.3f} s: {of_grades / binary:.1f} times"
        )
        print(f"peak memory {peak / 1e6:,.0f} MB, {(peak - before) / size:.1f} × the matrix of grades over what it was")


if __name__ == "__main__":
    app.run(main)
