r"""Do tests of DIF keep their level, and what do they find? Simulated groups, with and without DIF.

  python -m benchmarks.dif
  python -m benchmarks.dif --methods=score --replications=20

Answers by the 2PL; slopes are lognormal with σ = 0.3, difficulties standard normal. Prints for each setting and method
the share of p-values below 5% of items without DIF (type I error), and of items with it (power).
"""

import time
import warnings
from typing import NamedTuple

import numpy as np
import pandas as pd
from absl import flags
from scipy.special import expit

import irtjax
from experiments.common import app
from irtjax.groups.dif import METHODS

_METHODS = flags.DEFINE_list("methods", list(METHODS), "methods of irtjax.dif")
_REPLICATIONS = flags.DEFINE_integer("replications", 50, "data sets of each setting", lower_bound=1)
_ITEMS = flags.DEFINE_integer("num_items", 20, "I", lower_bound=5)


class Setting(NamedTuple):
    """Subjects in each group, mean of the second, and the shift of the difficulty of a tenth of the items there."""

    first: int
    second: int
    mean: float
    shift: float


SETTINGS = {
    "no DIF, equal means": Setting(500, 500, 0.0, 0.0),
    "no DIF, means differ by 1": Setting(500, 500, -1.0, 0.0),
    "no DIF, 900 and 100, by 1": Setting(900, 100, -1.0, 0.0),
    "no DIF, 5,000 and 28, by 1": Setting(5000, 28, -1.0, 0.0),
    "10% DIF of 0.5": Setting(500, 500, -0.5, 0.5),
    "10% DIF of 0.5, 900 and 100": Setting(900, 100, -0.5, 0.5),
    "10% DIF of 1, 5,000 and 28": Setting(5000, 28, -0.5, 1.0),
}


def main() -> None:
    """Simulates, tests, prints."""
    warnings.simplefilter("ignore", irtjax.FitWarning)
    rows = []
    for name, setting in SETTINGS.items():
        for method in _METHODS.value:
            rejected, began = [], time.perf_counter()
            for seed in range(_REPLICATIONS.value):
                answers, member = _simulated(setting, np.random.default_rng(seed))
                rejected.append((irtjax.dif(answers, member, method)["p_value"] < 0.05).to_numpy())
            with_dif = np.arange(_ITEMS.value) < (_ITEMS.value // 10 if setting.shift else 0)
            share = np.mean(rejected, axis=0)
            row = {"setting": name, "method": method, "type I": share[~with_dif].mean()}
            row["power"] = share[with_dif].mean() if with_dif.any() else np.nan
            rows.append(row | {"seconds": (time.perf_counter() - began) / _REPLICATIONS.value})
    error = np.sqrt(0.05 * 0.95 / (_REPLICATIONS.value * _ITEMS.value))
    print(f"{_ITEMS.value} items, {_REPLICATIONS.value} data sets; standard error of a level of 5%: {error:.3f}")
    print(pd.DataFrame(rows).round(3).to_string(index=False))


def _simulated(setting: Setting, rng: np.random.Generator) -> tuple[pd.DataFrame, list[str]]:
    """Answers, and the group of each subject."""
    second = np.arange(setting.first + setting.second) >= setting.first
    theta = rng.normal(size=second.size) + setting.mean * second
    slope, difficulty = rng.lognormal(0, 0.3, _ITEMS.value), rng.normal(size=_ITEMS.value)
    shifted = difficulty + np.outer(setting.shift * second, np.arange(_ITEMS.value) < _ITEMS.value // 10)
    right = rng.random(shifted.shape) < expit(slope * (theta[:, None] - shifted))
    return pd.DataFrame(right.astype(int)), np.where(second, "second", "first").tolist()


if __name__ == "__main__":
    app.run(main)
