r"""Counts whose trials agree more than chance: intervals of abilities and held-out counts, by both models of counts.

  python -m benchmarks.over_dispersion
  python -m benchmarks.over_dispersion --counts=evalperf_counts.npz

The file has counts (`passes`, models x tasks) and the trials of each model (`samples`), such as those of EvalPerf.
Without one, counts are simulated: 10 sets of 30 subjects and 20 items of 20 trials, whose trials correlate by 1/7.
"""

from typing import Any

import numpy as np
from scipy.special import expit
from scipy.stats import betabinom, binom

import irtjax
from experiments.common import app
from experiments.common.path_flags import define_path
from irtjax.responses.from_arrays import of_counts
from irtjax.responses.scaled import ScaledResponses

_COUNTS = define_path("counts", "NPZ of counts; default: simulated ones")
MODELS = ("binomial", "beta_binomial")
NODES = 15
HELD_OUT = 0.1
TRIALS = 20
PHI = 6.0
SETS = 10


def main() -> None:
    """Prints a line for each model."""
    if _COUNTS.value is not None:
        table = np.load(_COUNTS.value)
        passes = table["passes"].astype(float)
        trials = np.broadcast_to(table["samples"][:, None], passes.shape)
        for model in MODELS:
            print(model, _held_out(model, passes, trials))
        return
    for model in MODELS:
        found = [_covered(model, np.random.default_rng(seed)) for seed in range(SETS)]
        coverage, error = np.mean(found, axis=0)
        print(f"{model}: coverage {coverage:.1%}, standard error {error:.3f}")


def _responses(counts: Any, trials: Any) -> ScaledResponses:
    ids = [f"s{j}" for j in range(len(counts))], [f"q{i}" for i in range(counts.shape[1])]
    return of_counts(counts, trials, *ids)


def _covered(model: str, rng: np.random.Generator) -> tuple[float, float]:
    """Share of abilities in 95% intervals, on a scale of mean 0 and variance 1, and the mean standard error."""
    theta = rng.normal(size=30)
    slope, difficulty = rng.uniform(0.8, 2.0, 20), rng.normal(size=20)
    p = expit(slope * (theta[:, None] - difficulty))
    counts = rng.binomial(TRIALS, rng.beta(p * PHI, (1 - p) * PHI))
    fit = irtjax.fit(_responses(counts, np.full(counts.shape, TRIALS)), model, standard_errors=False)
    scaled = (theta - theta.mean()) / theta.std()
    return float((np.abs(fit.ability - scaled) < 1.96 * fit.ability_se).mean()), float(fit.ability_se.mean())


def _held_out(model: str, counts: np.ndarray, trials: np.ndarray) -> str:
    """Log-loss of a tenth of the counts, the posterior of ability taken for normal; errors of abilities."""
    held = np.random.default_rng(0).random(counts.shape) < HELD_OUT
    fit = irtjax.fit(_responses(np.where(held, np.nan, counts), trials), model, standard_errors=False)
    points, weights = np.polynomial.hermite_e.hermegauss(NODES)
    theta = fit.ability[:, None] + fit.ability_se[:, None] * points
    p = expit(theta[..., None] * fit.parameters.slope[:, 0] + fit.parameters.intercept)
    k, n = counts[:, None], trials[:, None]
    if model == "binomial":
        chances = binom.pmf(k, n, p)
    else:
        phi = np.exp(fit.parameters.others[:, 0])
        chances = betabinom.pmf(k, n, p * phi, (1 - p) * phi)
    predicted = (chances * (weights / weights.sum())[:, None]).sum(axis=1)
    loss = -np.log(np.maximum(predicted[held], np.finfo(float).tiny)).mean()
    dispersion = fit.details.get("dispersion")
    return f"log-loss {loss:.3f} of {held.sum()} counts, standard error {np.median(fit.ability_se):.3f} (median)" + (
        "" if dispersion is None else f", dispersion {dispersion:.1f}"
    )


if __name__ == "__main__":
    app.run(main)
