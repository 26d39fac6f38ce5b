r"""Can the intervals of abilities be believed? Fits of two random halves of the items, by models of counts and shares.

  python -m benchmarks.split_halves --responses=evalperf_counts.npz --name=passes --trials=samples
  python -m benchmarks.split_halves --responses=livecodebench_generation_2025.npz --name=pass_at_1 --halves=2

Reads an array of shares, subjects × items, NaN where missing, or of successes, with an array of trials. Prints for each
way, as means over the divisions: the correlation of the abilities of two halves, that of their ranks, and the standard
deviation of the differences of abilities in standard errors of these, which is 1 where the errors are right. Subjects
with nothing but successes or failures are left out.
"""

from typing import Any

import numpy as np
import pandas as pd
from absl import flags
from scipy.stats import spearmanr

import irtjax
from experiments.common import app
from experiments.common.path_flags import define_path
from irtjax.responses.from_arrays import of_counts, of_shares
from irtjax.responses.scaled import ScaledResponses

_RESPONSES = define_path("responses", "NPZ file", required=True)
_NAME = flags.DEFINE_string("name", None, "array in it, of shares or of successes", required=True)
_TRIALS = flags.DEFINE_string("trials", None, "array of trials in it: of each response or each subject; 0 is missing")
_MODEL = flags.DEFINE_string("model", None, "binomial or beta_binomial of counts, of shares ordered_beta")
_HALVES = flags.DEFINE_integer("halves", 5, "random divisions of the items", lower_bound=1)


def main() -> None:
    """Reads responses, fits halves of the items and prints."""
    responses, rng, rows = _read(), np.random.default_rng(0), []
    for _ in range(_HALVES.value):
        parts = np.array_split(rng.permutation(responses.num_items), 2)
        one, other = (_ways(responses.choose_items(part)) for part in parts)
        rows += [{"way": way, **_agreement(one[way], other[way])} for way in one]
    whole = _ways(responses)
    table = pd.DataFrame(rows).groupby("way", sort=False).mean()
    table.insert(0, "median_se", [np.median(whole[way][1]) for way in table.index])
    print(f"{responses.num_subjects:,} subjects × {responses.num_items:,} items")
    print(table.round(3).to_string())


def _read() -> ScaledResponses:
    with np.load(_RESPONSES.value, allow_pickle=False) as file:
        table = np.asarray(file[_NAME.value], float)
        trials: Any = None if _TRIALS.value is None else np.asarray(file[_TRIALS.value], float)
    if trials is not None:
        trials = np.broadcast_to(trials[:, None] if trials.ndim == 1 else trials, table.shape)
        table = np.where(trials > 0, table, np.nan)
    share = np.nanmean(table if trials is None else table / np.maximum(trials, 1), axis=1)
    kept = (share > 0) & (share < 1)
    ids = [f"s{j}" for j in np.flatnonzero(kept)], [f"i{i}" for i in range(table.shape[1])]
    return of_shares(table[kept], *ids) if trials is None else of_counts(table[kept], np.maximum(trials, 1)[kept], *ids)


def _ways(responses: ScaledResponses) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Abilities and their standard errors by each way; mean shares have none."""
    share = responses.worths()
    cut = np.where(np.isnan(share), np.nan, share > 0.5)
    model = _MODEL.value or ("ordered_beta" if responses.trials is None else "binomial")
    found = {
        model: irtjax.fit(responses, model, standard_errors=False),
        "2pl of more than half": irtjax.fit(cut, "2pl"),
    }
    ways = {name: (fit.ability, fit.ability_se) for name, fit in found.items()}
    return ways | {"mean share": (np.nanmean(share, axis=1), np.full(len(share), np.nan))}


def _agreement(one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]) -> dict[str, float]:
    apart = (one[0] - other[0]) / np.hypot(one[1], other[1])
    correlation = float(np.corrcoef(one[0], other[0])[0, 1])
    ranks = float(spearmanr(one[0], other[0]).statistic)
    return {"correlation": correlation, "of_ranks": ranks, "differences_in_se": float(apart.std())}


if __name__ == "__main__":
    app.run(main)
