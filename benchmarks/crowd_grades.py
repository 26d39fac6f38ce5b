r"""Variational inference of grades, counts and shares at crowd scale, in steps of that of right and wrong answers.

  python -m benchmarks.crowd_grades
  python -m benchmarks.crowd_grades --model=binomial
  python -m benchmarks.crowd_grades --num_subjects=500 --num_items=200 --whole
  python -m benchmarks.crowd_grades --num_items=10000 --whole --estimators=mml

Simulates responses by the model: grades 0 to 4, successes of 5 trials, or shares of which some are 0 and 1; and
right/wrong answers from them. Prints the seconds of a step of `estimator=svi` of both (medians over chunks of steps,
both in this run), of a fit of so many steps, and the peak of memory. With --whole it fits until convergence, and prints
how far abilities, slopes and places of the items are from the truth, in standard errors. Expected duration on 2 CPU
cores: ten minutes; a minute for the third command.
"""

import itertools
import resource
import sys
import time
from typing import Any

import numpy as np
from absl import flags
from scipy.special import expit
from tqdm import tqdm

import irtjax
from experiments.common import app
from irtjax.responses.scaled import Scale, ScaledResponses

_NUM_SUBJECTS = flags.DEFINE_integer("num_subjects", 1000, "J", lower_bound=2)
_NUM_ITEMS = flags.DEFINE_integer("num_items", 100_000, "I", lower_bound=2)
_NUM_STEPS = flags.DEFINE_integer("num_steps", 50, "steps of either estimator", lower_bound=30)
_MODEL = flags.DEFINE_enum("model", "graded", ["graded", "gpcm", "binomial", "ordered_beta"], "of the responses")
_WHOLE = flags.DEFINE_bool("whole", False, "fit until convergence, and compare with the truth")
_ESTIMATORS = flags.DEFINE_list("estimators", ["svi", "mml"], "that are compared with the truth")
_SEED = flags.DEFINE_integer("seed", 0, "seed of the data")
_TOP = 4  # the highest grade
_TRIALS = 5
_PRECISION, _CUTS = 8.0, (-3.0, 3.0)  # of shares
_BLOCK = 2**20  # responses drawn at once: the peak of memory is to be that of the fit


def _grades(x: np.ndarray, drops: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Of predictors x (J, I), thresholds being so far below."""
    drawn = rng.random(x.shape, np.float32)
    return sum((drawn < expit(x - drops[:, k])).astype(np.int8) for k in range(_TOP))


def _grades_by_steps(x: np.ndarray, drops: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The same by the generalised partial credit model."""
    eta = np.cumsum(x[:, :, None] - drops[None], axis=2)
    weights = np.concatenate([np.ones_like(eta[:, :, :1]), np.exp(eta)], axis=2).cumsum(axis=2)
    drawn = rng.random(x.shape, np.float32)[:, :, None] * weights[:, :, -1:]
    return (weights < drawn).sum(axis=2).astype(np.int8)


def _successes(x: np.ndarray, drops: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return rng.binomial(_TRIALS, expit(x)).astype(np.int8)


def _shares(x: np.ndarray, drops: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    drawn, mean = rng.random(x.shape, np.float32), np.clip(expit(x), 0.01, 0.99)
    inner = np.clip(rng.beta(mean * _PRECISION, (1 - mean) * _PRECISION), 1e-6, 1 - 1e-6)
    none, whole = 1 - expit(x - _CUTS[0]), expit(x - _CUTS[1])
    return np.where(drawn < none, 0.0, np.where(drawn > 1 - whole, 1.0, inner)).astype(np.float32)


_DRAWN_BY = {"graded": _grades, "gpcm": _grades_by_steps, "binomial": _successes, "ordered_beta": _shares}


def simulate() -> tuple[ScaledResponses, np.ndarray, np.ndarray, np.ndarray]:
    """Responses, and the abilities (J,), slopes (I,) and thresholds (I, 4) or difficulties (I, 1) behind them."""
    num_subjects, num_items, model = _NUM_SUBJECTS.value, _NUM_ITEMS.value, _MODEL.value
    rng = np.random.default_rng(_SEED.value)
    theta = rng.standard_normal(num_subjects)
    theta = (theta - theta.mean()) / theta.std()
    slope = np.exp(0.3 * rng.standard_normal(num_items))
    gaps = np.cumsum(np.exp(0.4 * rng.standard_normal((num_items, _TOP))), axis=1)
    thresholds = rng.standard_normal((num_items, 1)) + gaps - gaps.mean(axis=1, keepdims=True)
    graded = model in ("graded", "gpcm")
    places = thresholds if graded else thresholds.mean(axis=1, keepdims=True)
    values = np.zeros((num_subjects, num_items), np.float32 if model == "ordered_beta" else np.int8)
    size = max(1, _BLOCK // num_subjects)
    for at in tqdm(range(0, num_items, size), "responses", disable=not sys.stderr.isatty()):
        part = slice(at, at + size)
        middle = places[part].mean(axis=1)
        drops = slope[part, None] * (places[part] - middle[:, None])
        values[:, part] = _DRAWN_BY[model](slope[part] * (theta[:, None] - middle), drops, rng)
    subjects, items = (
        np.char.mod(f"{kind}%d", np.arange(size)) for kind, size in (("s", num_subjects), ("i", num_items))
    )
    scale = Scale(tuple(range(_TOP + 1)) if graded else None)
    trials = np.full(values.shape, _TRIALS, np.int8) if model == "binomial" else None
    return ScaledResponses(values, subjects, items, (scale,) * num_items, trials), theta, slope, places


def seconds_a_step(responses: Any, model: str) -> tuple[float, float]:
    """The median over chunks of steps, but for the first, which compiles; and seconds of all."""
    times: list[tuple[int, float]] = []
    began = time.perf_counter()
    irtjax.fit(
        responses,
        model,
        "svi",
        start="proportions",
        max_steps=_NUM_STEPS.value,
        on_chunk=lambda steps, _: times.append((steps, time.perf_counter())),
    )
    whole = time.perf_counter() - began
    each = [(after[1] - at[1]) / (after[0] - at[0]) for at, after in itertools.pairwise(times)]
    return float(np.median(each)), whole


def against_truth(fit: irtjax.Fit, theta: np.ndarray, slope: np.ndarray, places: np.ndarray) -> None:
    """Prints errors and the coverage of intervals."""
    columns = fit.item_columns
    names = [f"threshold_{k + 1}" for k in range(_TOP)] if places.shape[1] > 1 else ["difficulty"]
    end = "converged" if fit.converged else f"not converged ({fit.status.value})"
    print(f"{fit.model} by {fit.estimator}: {fit.iterations} iterations in {fit.seconds:.1f} s, {end}")
    for name, found, error, truth in (
        ("abilities", fit.ability, fit.ability_se, theta),
        ("slopes", columns["discrimination"], columns["discrimination_se"], slope),
        (
            "thresholds" if places.shape[1] > 1 else "difficulties",
            np.stack([columns[name] for name in names], axis=1),
            np.stack([columns[f"{name}_se"] for name in names], axis=1),
            places,
        ),
    ):
        found, error, truth = (one[np.isfinite(found)] for one in (found, error, truth))  # a grade that nobody got
        print(
            f"{name}: correlation {np.corrcoef(found, truth)[0, 1]:.4f}, "
            f"RMSE {np.sqrt(np.mean((found - truth) ** 2)):.4f}, median standard error {np.median(error):.4f}, "
            f"within 1.96 standard errors {100 * np.mean(np.abs(found - truth) < 1.96 * error):.1f}%"
        )


def peak_bytes() -> float:
    """Largest resident memory of this process so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def main() -> None:
    """Measures and prints."""
    responses, *truth = simulate()
    size, before, model = responses.values.nbytes, peak_bytes(), _MODEL.value
    shape = f"{responses.num_subjects:,} × {responses.num_items:,}"
    print(f"{shape} responses for the {model}: {size / 1e6:,.0f} MB")
    if _WHOLE.value:
        for estimator in _ESTIMATORS.value:
            against_truth(irtjax.fit(responses, model, estimator), *truth)
            print(f"peak memory {peak_bytes() / 1e6:,.0f} MB, of which {before / 1e6:,.0f} MB before")
        return
    of_model, seconds = seconds_a_step(responses, model)
    peak = peak_bytes()
    middle = {"binomial": _TRIALS // 2, "ordered_beta": 0.5}.get(model, _TOP // 2)
    right = (np.asarray(responses.values) > middle).astype(np.int8)
    binary, of_binary = seconds_a_step(irtjax.ResponseMatrix(right, responses.subject_ids, responses.item_ids), "2pl")
    print(f"a step of the {model} {of_model:.3f} s, of the 2pl {binary:.3f} s: {of_model / binary:.1f} times")
    print(f"{_NUM_STEPS.value} steps with the start and compilation {seconds:.0f} s, of the 2pl {of_binary:.0f} s")
    print(f"peak memory {peak / 1e6:,.0f} MB, of which {before / 1e6:,.0f} MB before")


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
