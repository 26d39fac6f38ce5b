r"""Recovery of simulated grades, categories, counts and shares: bias, error and coverage of the defaults.

  python -m benchmarks.recovery_grades --sizes=500x20,2000x20,30x100,25x1000 --seeds=10
  python -m benchmarks.recovery_grades --estimator=svi --seeds=3

Items have four categories, ten trials, or shares (`benchmarks/simulated_scales.py`). For each model and size prints,
over all items and seeds, the bias and the root mean square of errors (of abilities on the scale of the sample), and
the coverage of 95% intervals: on the scale of the population, and on that of the sample, in which the subjects have
mean 0 and variance 1. A few subjects have a
mean and a spread of their own, which the errors of the items do not include; abilities by svi are on the scale of the
sample. Expected duration on 2 CPU cores: 15 minutes, most of them for 25x1000.
"""

import time
import warnings

import numpy as np
from absl import flags

import irtjax
from benchmarks.simulated_scales import RASCH, Columns, respond, truth_of
from experiments.common import app
from irtjax import FitWarning
from irtjax.fits.result import Fit

MODELS = ["graded", "gpcm", "pcm", "rsm", "nominal", "binomial", "ordered_beta", "beta"]
_SIZES = flags.DEFINE_list("sizes", ["500x20", "2000x20", "30x100", "25x1000"], "subjects x items")
_MODELS = flags.DEFINE_list("models", MODELS, "item response models")
_ESTIMATOR = flags.DEFINE_enum("estimator", "mml", ["mml", "svi"], "what fits")
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


def of_sample(truth: Columns, mean: float, sd: float) -> Columns:
    """The same items where such subjects have mean 0 and variance 1."""
    moved = {}
    for column, value in truth.items():
        kind, _, number = column.rpartition("_")
        if kind == "slope" or column == "discrimination":
            value = sd * value
        elif kind == "intercept":
            value = value + mean * truth[f"slope_{number}"]
        elif kind == "threshold" or column == "difficulty":
            value = (value - mean) / sd
        moved[column] = value
    return moved


def errors_of(fit: Fit, truth: Columns, sample: Columns) -> dict[str, list[np.ndarray]]:
    """By what is estimated, arrays (3, N) of errors, of those on the scale of the sample, and of standard errors."""
    found: dict[str, list[np.ndarray]] = {}
    for column, expected in truth.items():
        unknown = np.full(len(expected), np.nan)
        estimate, se = (fit.item_columns.get(name, unknown) for name in (column, f"{column}_se"))
        of_population, of_sample = expected, sample[column]
        if column == "precision":  # positive and skewed
            estimate, se = np.log(estimate), se / estimate
            of_population, of_sample = np.log(of_population), np.log(of_sample)
        known = np.isfinite(estimate) & (se > 0)
        kind = next(kind for start, kind in KINDS.items() if column.startswith(start))
        errors = np.stack([estimate - of_population, estimate - of_sample, se])[:, known]
        found.setdefault(kind, []).append(errors)
    return found


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
            fit = irtjax.fit(responses, model, _ESTIMATOR.value)
        mean, sd = float(theta.mean()), 1.0 if model in RASCH else float(theta.std())  # theirs are in logits
        for kind, errors in errors_of(fit, truth, of_sample(truth, mean, sd)).items():
            found.setdefault(kind, []).extend(errors)
        abilities = np.stack([fit.ability - theta, fit.ability - (theta - mean) / sd, fit.ability_se])
        found.setdefault("abilities", []).append(abilities)
    seconds = (time.perf_counter() - began) / _SEEDS.value
    rows = []
    for kind, parts in found.items():
        error, of_scale, se = np.concatenate(parts, axis=1)
        covered, of_scale_covered = (f"{np.mean(np.abs(each) < 1.96 * se):.1%}" for each in (error, of_scale))
        what = f"| {model} | {num_subjects} x {num_items} | {kind}"
        own = of_scale if kind == "abilities" else error
        size = np.sqrt(np.mean(own**2))
        rows.append(f"{what} | {own.mean():+.3f} | {size:.3f} | {covered} | {of_scale_covered} | {seconds:.1f} |")
    return rows


def main() -> None:
    """Simulates, fits and prints."""
    print(
        "| model | size | of | bias | RMSE | coverage of 95% intervals | on the scale of the sample | seconds a fit |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for size in _SIZES.value:
        for model in _MODELS.value:
            num_subjects, num_items = (int(number) for number in size.split("x"))
            print("\n".join(measure(model, num_subjects, num_items)), flush=True)


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
