r"""Regressions of the locations of items on features: are the weights of a simulation in their intervals?

  python -m benchmarks.recovery_features --model=graded

Twenty sets of 300 subjects and 60 items, half of whose responses are missing. Three minutes.
"""

from typing import NamedTuple

import numpy as np
from absl import flags
from scipy.special import expit

import irtjax
from experiments.common import app
from irtjax.responses.from_arrays import of_counts, of_grades
from irtjax.responses.scaled import ScaledResponses
from irtjax.types import Float

_MODEL = flags.DEFINE_enum("model", "graded", ["graded", "binomial"], "of the responses")
_SETS = flags.DEFINE_integer("sets", 20, "simulated sets")
SUBJECTS, ITEMS, TRIALS = 300, 60, 5
WEIGHTS = np.array([0.8, -0.5, 0.0])
RESIDUAL = 0.4


class Recovered(NamedTuple):
    """Weights less their truth, the same of least squares on the true difficulties, errors, and the residual's sd."""

    off: Float[np.ndarray, " F"]
    of_truth: Float[np.ndarray, " F"]
    error: Float[np.ndarray, " F"]
    residual_sd: float


def main() -> None:
    """Prints what twenty sets say."""
    found = [recovered(_MODEL.value, seed) for seed in range(_SETS.value)]
    off, of_truth, error, residual_sd = (np.array(leaf) for leaf in zip(*found, strict=True))
    inside = (np.abs(off) < 1.96 * error).mean()
    print(f"{_MODEL.value}: {off.size} weights, {inside:.1%} in their 95% intervals, mean error {off.mean():+.3f}")
    print(f"least squares on the true difficulties: mean error {of_truth.mean():+.3f}")
    print(f"root mean squared error {np.sqrt((off**2).mean()):.3f}, standard error {error.mean():.3f} (mean)")
    print(f"residual {residual_sd.mean():.3f} (mean), {RESIDUAL} in truth")


def recovered(model: str, seed: int) -> Recovered:
    """A fit of one set."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(ITEMS, WEIGHTS.size))
    difficulty = 0.3 + features @ WEIGHTS + RESIDUAL * rng.normal(size=ITEMS)
    slope = np.exp(0.3 * features[:, 2] + 0.1 * rng.normal(size=ITEMS))
    responses = simulated(model, rng, slope, difficulty)
    found = irtjax.fit(responses, model, features=features).regression
    assert found is not None
    error = np.sqrt(np.diag(found.covariance))[1:] / np.asarray(found.scale)
    weights = np.asarray(found.weights) / np.asarray(found.scale)
    columns = np.column_stack([np.ones(ITEMS), features])
    of_truth = np.linalg.lstsq(columns, difficulty, rcond=None)[0][1:]
    return Recovered(weights - WEIGHTS, of_truth - WEIGHTS, error, float(found.residual_sd))


def simulated(
    model: str, rng: np.random.Generator, slope: Float[np.ndarray, " I"], difficulty: Float[np.ndarray, " I"]
) -> ScaledResponses:
    """Responses of a standard normal population; grades are from 0 to 3."""
    theta, shape = rng.normal(size=(SUBJECTS, 1)), (SUBJECTS, len(slope))
    ids = [f"s{j}" for j in range(SUBJECTS)], [f"q{i}" for i in range(len(slope))]
    missing = rng.random(shape) < 0.5
    if model == "binomial":
        right = rng.binomial(TRIALS, expit(slope * (theta - difficulty)))
        return of_counts(np.where(missing, np.nan, right), TRIALS, *ids)
    steps = np.sort(rng.normal(size=(len(slope), 3)), axis=1)
    places = difficulty[:, None] + steps - steps.mean(axis=1, keepdims=True)
    above = expit(slope[:, None] * (theta[:, :, None] - places))
    grades = (rng.random((*shape, 1)) < above).sum(axis=2)
    return of_grades(np.where(missing, np.nan, grades), *ids, labels=range(4))


if __name__ == "__main__":
    app.run(main)
