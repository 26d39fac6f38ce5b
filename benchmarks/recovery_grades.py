r"""Recovery of simulated grades, categories, counts and shares: bias, error and coverage of the defaults.

  python -m benchmarks.recovery_grades --sizes=500x20,2000x20,30x100,25x1000 --seeds=10

Items have four categories, ten trials, or shares (`benchmarks/simulated_scales.py`). For each model and size prints,
over all items and seeds, the bias and the root mean square of errors, and the share of 95% intervals that hold the
truth. Abilities are compared on the scale of the sample. Expected duration on 2 CPU cores: 25 minutes, most of them for
25x1000.
"""

import time
import warnings

import numpy as np
from absl import app, flags

from benchmarks.simulated_scales import respond, truth_of
from irtjax import FitWarning
from irtjax.estimation.families import fit_families

MODELS = ["graded", "gpcm", "nominal", "binomial", "ordered_beta", "beta"]
_SIZES = flags.DEFINE_list("sizes", ["500x20", "2000x20", "30x100", "25x1000"], "subjects x items")
_MODELS = flags.DEFINE_list("models", MODELS, "item response models")
_SEEDS = flags.DEFINE_integer("seeds", 10, "data sets of each kind", lower_bound=1)
KINDS = {
    "slope_": "slopes",
    "discrimination": "slopes",
    "intercept_": "intercepts",
    "threshold_": "thresholds",
    "difficulty": "difficulties",
    "precision": "log precisions",
    "cut_": "cuts",
}


def measure(model: str, num_subjects: int, num_items: int) -> list[str]:
    """Rows of the table: slopes, what else the items have, and abilities."""
    truth = truth_of(model, num_items, np.random.default_rng(1))
    found: dict[str, list[np.ndarray]] = {}
    began = time.perf_counter()
    for seed in range(_SEEDS.value):
        rng = np.random.default_rng(100 + seed)
        theta = rng.normal(size=num_subjects)
        responses = respond(model, truth, theta, rng)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FitWarning)
            fit = fit_families(responses, model)
        for column, expected in truth.items():
            kind = next(kind for start, kind in KINDS.items() if column.startswith(start))
            unknown = np.full(num_items, np.nan)
            estimate, se = (fit.item_columns.get(name, unknown) for name in (column, f"{column}_se"))
            if column == "precision":  # positive and skewed
                estimate, se, expected = np.log(estimate), se / estimate, np.log(expected)
            known = np.isfinite(estimate) & (se > 0)
            found.setdefault(kind, []).append(np.stack([estimate - expected, se])[:, known])
        white = (theta - theta.mean()) / theta.std()
        found.setdefault("abilities", []).append(np.stack([fit.ability - white, fit.ability_se]))
    seconds = (time.perf_counter() - began) / _SEEDS.value
    rows = []
    for kind, parts in found.items():
        error, se = np.concatenate(parts, axis=1)
        covered = f"{np.mean(np.abs(error) < 1.96 * se):.1%}" if error.size else "no errors"
        middle, size = (error.mean(), np.sqrt(np.mean(error**2))) if error.size else (np.nan, np.nan)
        what = f"| {model} | {num_subjects} x {num_items} | {kind}"
        rows.append(f"{what} | {middle:+.3f} | {size:.3f} | {covered} | {seconds:.1f} |")
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
