r"""Can the ranks and P(A beats B) of a fit be believed? On simulated tests, and on halves of the items of a real one.

  python -m benchmarks.ranking --num_subjects=25 --num_items=500 --datasets=200
  python -m benchmarks.ranking --responses=metabench_arc.npz

Simulated: fits answers by the 2PL and prints in how many data sets all true ranks are in their ranges at once, in how
many of the ranges a true rank is, and how wide they are. Real: abilities come from a random half of the items; of pairs
of subjects it is predicted which has more right answers on the other half, and compared with what happened. Either way
prints, by the predicted probability, how often the one that was predicted was better; a tie counts half.
"""

import warnings

import numpy as np
import pandas as pd
from absl import flags
from scipy.special import expit, ndtr
from scipy.stats import rankdata

import irtjax
from experiments.common import app
from experiments.common.path_flags import define_path
from irtjax.auditing.ranking import ranks

_RESPONSES = define_path("responses", "file of right and wrong answers; simulated where it is not given")
_SUBJECTS = flags.DEFINE_integer("num_subjects", 25, "J of simulated answers", lower_bound=2)
_ITEMS = flags.DEFINE_integer("num_items", 500, "I of simulated answers", lower_bound=4)
_DATASETS = flags.DEFINE_integer("datasets", 200, "simulated data sets, or divisions of the items", lower_bound=1)
_LEVEL = flags.DEFINE_float("level", 0.95, "probability with which all ranks are in their ranges", 0.5, 0.999)
EDGES = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99, 0.999)  # of predicted probabilities
MOST_PAIRS = 200_000  # of a division


def main() -> None:
    """Simulates or reads, and prints."""
    warnings.simplefilter("ignore", irtjax.FitWarning)
    outcomes = _simulated() if _RESPONSES.value is None else _on_halves()
    predicted, better = np.concatenate(outcomes, axis=1)
    predicted, better = np.maximum(predicted, 1 - predicted), np.where(predicted < 0.5, 1 - better, better)
    table = pd.DataFrame({"predicted": predicted, "observed": better, "pairs": 1})
    by = table.groupby(np.digitize(predicted, EDGES))
    print(by.agg({"predicted": "mean", "observed": "mean", "pairs": "sum"}).round(3).to_string(index=False))


def _simulated() -> list[np.ndarray]:
    """P(A beats B) and whether it is so, of all pairs of each data set; prints the coverage of ranks."""
    outcomes, rows = [], []
    for seed in range(_DATASETS.value):
        rng = np.random.default_rng(seed)
        theta, b = rng.normal(size=_SUBJECTS.value), rng.normal(size=_ITEMS.value)
        p = expit(rng.lognormal(0, 0.4, b.size) * (theta[:, None] - b))
        fit = irtjax.fit((rng.random(p.shape) < p).astype(np.int8), "2pl")
        found, true = ranks(fit.ability, fit.ability_se, _LEVEL.value), theta.size + 1 - rankdata(theta)
        inside = (found.best <= true) & (true <= found.worst)
        rows.append((inside.all(), inside.mean(), (found.worst - found.best + 1).mean()))
        one, other = np.triu_indices(theta.size, 1)
        apart = (fit.ability[one] - fit.ability[other]) / np.hypot(fit.ability_se[one], fit.ability_se[other])
        outcomes.append(np.stack([ndtr(apart), theta[one] > theta[other]]))
    joint, single, width = np.mean(rows, axis=0)
    print(f"{_SUBJECTS.value:,} subjects × {_ITEMS.value:,} items, {_DATASETS.value} data sets")
    print(f"all ranks in their ranges {joint:.1%}, a rank in its range {single:.2%}, mean width {width:.1f} ranks")
    return outcomes


def _on_halves() -> list[np.ndarray]:
    """Whether one of two subjects is predicted to have more right answers on the other half, and whether it has."""
    responses = irtjax.read_responses(_RESPONSES.value, sparse=False)
    items, rng, outcomes = irtjax.fit(responses, "2pl").items(), np.random.default_rng(0), []
    print(f"{responses.num_subjects:,} subjects × {responses.num_items:,} items, {_DATASETS.value} divisions")
    for _ in range(_DATASETS.value):
        known, asked = np.array_split(rng.permutation(responses.num_items), 2)
        scored = irtjax.score(items.iloc[known], responses.choose_items(known))
        ability, error = scored["ability"].to_numpy(), scored["ability_se"].to_numpy()
        values = np.asarray(responses.choose_items(asked).values)
        a, b = (items[name].to_numpy()[asked] for name in ("discrimination", "difficulty"))
        p = expit(a * (ability[:, None] - b)) * (values >= 0)
        by_ability = (a * p * (1 - p)).sum(axis=1)
        variance = (p * (1 - p)).sum(axis=1) + (by_ability * error) ** 2
        one, other = rng.integers(0, responses.num_subjects, (2, MOST_PAIRS))
        one, other = one[one != other], other[one != other]
        mean, right = p.sum(axis=1), (values == 1).sum(axis=1)
        apart = (mean[one] - mean[other]) / np.sqrt(variance[one] + variance[other])
        outcomes.append(np.stack([ndtr(apart), 0.5 + 0.5 * np.sign(right[one] - right[other])]))
    return outcomes


if __name__ == "__main__":
    app.run(main)
