r"""Recovery of simulated parameters by marginal maximum likelihood: error against standard error, and coverage.

  python -m benchmarks.recovery --sizes=500x40,1000x10000,100x50000 --models=1pl,2pl,3pl,4pl --dims=1,2,3 --seeds=6

For each model and size prints, over all items and seeds, the root mean square of errors in standard errors (rms z), and
the coverage of 95% intervals; likewise for abilities, on the scale of the sample. Then Spearman's
correlation of the difficulties that two samples of subjects give to the same items. The reference is the truth. Items
with fewer than three right or three wrong answers are left out. With D > 1 items are compared as they are, rotation
included, and abilities after the rotation that brings them nearest to the truth. Expected duration on 2 CPU cores:
ten minutes.
"""

import sys
import time
import warnings

import numpy as np
from absl import flags
from scipy.linalg import orthogonal_procrustes
from scipy.special import expit
from scipy.stats import spearmanr
from tqdm import tqdm

import irtjax
from experiments.common import app
from irtjax import FitWarning

_SIZES = flags.DEFINE_list("sizes", ["500x40", "1000x10000", "100x50000"], "subjects x items")
_MODELS = flags.DEFINE_list("models", ["1pl", "2pl", "3pl", "4pl"], "item response models")
_DIMS = flags.DEFINE_list("dims", ["1", "2", "3"], "dimensions; more than 1 with the 2pl only")
_SEEDS = flags.DEFINE_integer("seeds", 6, "data sets of each kind", lower_bound=2)
BLOCK = 2048


def parameters(model: str, num_items: int, dims: int, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Slopes (I, D), intercepts, lower and upper asymptotes (I,) to draw answers with."""
    if dims == 1:
        slope = rng.lognormal(0, 0.3, (num_items, 1)) if model != "1pl" else np.full((num_items, 1), 1.2)
    else:
        slope = np.abs(rng.normal(0.8, 0.4, (num_items, dims))) * (rng.random((num_items, dims)) < 0.7)
        slope[:dims] = np.tril(slope[:dims])
        slope[np.arange(dims), np.arange(dims)] = 1.5
    intercept = -slope[:, 0] * rng.normal(size=num_items) if dims == 1 else rng.normal(size=num_items)
    lower = rng.uniform(0.1, 0.3, num_items) if model in ("3pl", "4pl") else np.zeros(num_items)
    upper = rng.uniform(0.9, 0.98, num_items) if model == "4pl" else np.ones(num_items)
    return slope, intercept, lower, upper


def answer(theta: np.ndarray, items: tuple[np.ndarray, ...], rng: np.random.Generator) -> np.ndarray:
    """Responses (J, I), int8."""
    slope, intercept, lower, upper = items
    values = np.empty((theta.shape[0], intercept.size), np.int8)
    for at in range(0, intercept.size, BLOCK):
        part = slice(at, at + BLOCK)
        p = lower[part] + (upper - lower)[part] * expit(theta @ slope[part].T + intercept[part])
        values[:, part] = rng.random(p.shape) < p
    return values


def pairs_of(items: tuple[np.ndarray, ...], dims: int) -> dict[str, np.ndarray]:
    """The true values of the columns of `items.csv`."""
    slope, intercept = items[:2]
    if dims == 1:
        return {"difficulty": -intercept / slope[:, 0], "discrimination": slope[:, 0]}
    return {"intercept": intercept} | {f"discrimination_{k + 1}": slope[:, k] for k in range(dims)}


def to_scale(theta: np.ndarray, ability: np.ndarray) -> np.ndarray:
    """True abilities (J, D) with mean 0 and covariance 1 in the sample, turned towards the estimates."""
    centred = theta - theta.mean(axis=0)
    white = np.linalg.solve(np.linalg.cholesky(np.cov(centred.T, bias=True).reshape(2 * theta.shape[1:])), centred.T).T
    return white @ orthogonal_procrustes(white, ability)[0]


def measure(num_subjects: int, num_items: int, model: str, dims: int) -> dict[str, str]:
    """One row of the table."""
    items = parameters(model, num_items, dims, np.random.default_rng(1))
    ids = (np.char.mod("s%d", np.arange(num_subjects)), np.char.mod("i%d", np.arange(num_items)))
    errors: dict[str, list[np.ndarray]] = {"b": [], "a": [], "theta": []}
    difficulties: list[np.ndarray] = []
    warned: set[str] = set()
    usable = np.ones(num_items, bool)
    began = time.perf_counter()
    for seed in range(_SEEDS.value):
        rng = np.random.default_rng(100 + seed)
        theta = rng.normal(size=(num_subjects, dims))
        values = answer(theta, items, rng)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", FitWarning)
            fit = irtjax.fit(irtjax.ResponseMatrix(values, *ids), model, dims=dims, extremes="keep")
        warned |= {str(warning.message).split(",")[0][:60] for warning in caught}
        right = (values == 1).sum(axis=0)
        varied = (right > 2) & (right < num_subjects - 2)
        for column, truth in pairs_of(items, dims).items():
            error, se = fit.item_columns[column] - truth, fit.item_columns[f"{column}_se"]
            errors["a" if column.startswith("disc") else "b"].append(np.stack([error, se])[:, varied & (se > 0)])
        # on the scale of this sample: the standard error of one ability does not hold that of the scale
        ability = fit.ability.reshape(num_subjects, -1)
        ability = ability - to_scale(theta, ability)
        errors["theta"].append(np.stack([ability.ravel(), fit.ability_se.ravel()]))
        usable &= varied
        difficulties.append(fit.item_columns["difficulty" if dims == 1 else "intercept"])
    row = {"": f"{model}, D = {dims}, {num_subjects} x {num_items}", "posteriors": fit.details["posteriors"]}
    row["seconds"] = f"{(time.perf_counter() - began) / _SEEDS.value:.1f}"
    for name, parts in errors.items():
        error, se = np.concatenate(parts, axis=1)
        row[f"{name}: rms z"] = f"{np.sqrt(np.mean((error / se) ** 2)):.2f}"
        row[f"{name}: cover"] = f"{np.mean(np.abs(error) < 1.96 * se):.3f}"
    row["two seeds"] = f"{spearmanr(*(b[usable] for b in difficulties[:2])).statistic:.3f}"
    return row | {"warned of": "; ".join(sorted(warned)) or "-"}


def main() -> None:
    """Simulates, fits and prints."""
    cases = [(size, model, 1) for size in _SIZES.value for model in _MODELS.value if "1" in _DIMS.value]
    cases += [(size, "2pl", int(dims)) for size in _SIZES.value for dims in _DIMS.value if dims != "1"]
    rows = []
    for size, model, dims in tqdm(cases, disable=not sys.stderr.isatty()):
        num_subjects, num_items = (int(number) for number in size.split("x"))
        rows.append(measure(num_subjects, num_items, model, dims))
        print(" | ".join(f"{name} {value}".strip() for name, value in rows[-1].items()), file=sys.stderr, flush=True)
    print("| " + " | ".join(rows[0]) + " |\n|" + " --- |" * len(rows[0]))
    for row in rows:
        print("| " + " | ".join(row.values()) + " |")


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
