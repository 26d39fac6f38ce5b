r"""Recovery of simulated grades and categories: bias, error and coverage of the defaults, against the truth.

  python -m benchmarks.recovery_grades --sizes=500x20,2000x20,30x100 --models=graded,gpcm,nominal --seeds=10

Items have four categories. For each model and size prints, over all items and seeds, the bias and the root mean square
of errors, and the share of 95% intervals that hold the truth. Abilities are compared on the scale of the sample.
Expected duration on 2 CPU cores: four minutes.
"""

import time
import warnings

import numpy as np
from absl import app, flags
from scipy.special import expit, softmax

from irtjax import FitWarning
from irtjax.estimation.families import fit_families
from irtjax.responses.scaled import of_grades

_SIZES = flags.DEFINE_list("sizes", ["500x20", "2000x20", "30x100"], "subjects x items")
_MODELS = flags.DEFINE_list("models", ["graded", "gpcm", "nominal"], "item response models")
_SEEDS = flags.DEFINE_integer("seeds", 10, "data sets of each kind", lower_bound=1)
TOP = 3


def truth_of(model: str, num_items: int, rng: np.random.Generator) -> dict[str, np.ndarray]:
    """Columns of `items.csv` (I,) to draw responses with."""
    if model == "nominal":
        found: dict[str, np.ndarray] = {}
        for name, middle in (("slope", np.linspace(-1.2, 1.2, TOP + 1)), ("intercept", np.zeros(TOP + 1))):
            each = rng.normal(middle, 0.5, (num_items, TOP + 1))
            each -= each.mean(axis=1, keepdims=True)
            found |= {f"{name}_{k}": each[:, k] for k in range(TOP + 1)}
        return found
    b = rng.normal(0, 0.7, (num_items, 1)) + np.sort(rng.normal(np.linspace(-1, 1, TOP), 0.3, (num_items, TOP)))
    return {"discrimination": rng.lognormal(0, 0.3, num_items)} | {f"threshold_{k + 1}": b[:, k] for k in range(TOP)}


def respond(model: str, truth: dict[str, np.ndarray], theta: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Categories (J, I)."""
    if model == "nominal":
        slope, intercept = (
            np.stack([truth[f"{name}_{k}"] for k in range(TOP + 1)], axis=1) for name in ("slope", "intercept")
        )
        p = softmax(theta[:, None, None] * slope + intercept, axis=2)
    else:
        b = np.stack([truth[f"threshold_{k + 1}"] for k in range(TOP)], axis=1)
        x = truth["discrimination"][:, None] * (theta[:, None, None] - b)
        if model == "graded":
            p = -np.diff(expit(x), axis=2, prepend=1.0, append=0.0)
        else:
            p = softmax(np.pad(np.cumsum(x, axis=2), ((0, 0), (0, 0), (1, 0))), axis=2)
    return (rng.random((*p.shape[:2], 1)) > p.cumsum(axis=2)[:, :, :-1]).sum(axis=2)


def measure(model: str, num_subjects: int, num_items: int) -> list[str]:
    """Rows of the table: slopes, thresholds or intercepts, and abilities."""
    rng = np.random.default_rng(1)
    truth = truth_of(model, num_items, rng)
    kinds = {"slope_": "slopes", "intercept_": "intercepts", "discrimination": "slopes", "threshold_": "thresholds"}
    found: dict[str, list[np.ndarray]] = {}
    began = time.perf_counter()
    for seed in range(_SEEDS.value):
        rng = np.random.default_rng(100 + seed)
        theta = rng.normal(size=num_subjects)
        values = respond(model, truth, theta, rng).astype(float)
        subjects, items = np.char.mod("s%d", np.arange(num_subjects)), np.char.mod("i%d", np.arange(num_items))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            fit = fit_families(of_grades(values, list(subjects), list(items), list(range(TOP + 1))), model)
        for column, expected in truth.items():
            kind = next(kind for start, kind in kinds.items() if column.startswith(start))
            se = fit.item_columns.get(f"{column}_se", np.full(num_items, np.nan))
            error = fit.item_columns.get(column, np.full(num_items, np.nan)) - expected
            known = np.isfinite(error) & (se > 0)
            found.setdefault(kind, []).append(np.stack([error, se])[:, known])
        white = (theta - theta.mean()) / theta.std()
        found.setdefault("abilities", []).append(np.stack([fit.ability - white, fit.ability_se]))
    seconds = (time.perf_counter() - began) / _SEEDS.value
    rows = []
    for kind, parts in found.items():
        error, se = np.concatenate(parts, axis=1)
        covered = np.mean(np.abs(error) < 1.96 * se)
        rows.append(
            f"| {model} | {num_subjects} x {num_items} | {kind} | {error.mean():+.3f} | "
            f"{np.sqrt(np.mean(error**2)):.3f} | {covered:.1%} | {seconds:.1f} |"
        )
    return rows


def main(_: list[str]) -> None:
    """Simulates, fits and prints."""
    print("| model | size | of | bias | RMSE | coverage of 95% intervals | seconds a fit |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for size in _SIZES.value:
        for model in _MODELS.value:
            num_subjects, num_items = (int(number) for number in size.split("x"))
            print("\n".join(measure(model, num_subjects, num_items)), flush=True)


if __name__ == "__main__":
    app.run(main)
