r"""Do tests of DIF keep their level, and what do they find? Simulated groups, with and without DIF.

  python -m benchmarks.dif --methods=mantel_haenszel,logistic,score --replications=50
  python -m benchmarks.dif --methods=score --replications=20 --output=runs/dif.csv
  python -m benchmarks.dif --time --num_items=10000

Answers by the 2PL; slopes are lognormal with σ = 0.3, difficulties standard normal. Prints for each setting and method
the share of p-values below 5% of items without DIF (type I error), and of items with it (power), and the share of items
that have a test. Standard errors are from the spread between data sets, and never below those of independent items.
With `--output` each data set is a row of a file, and the same command goes on where it was stopped; one with more
replications or methods adds to it. On 2 CPU cores a data set takes a second or less, with `likelihood_ratio` and `wald`
two to twenty. `--time` gives the seconds of the score test of 500 and 500 subjects instead, compilation included.
"""

import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from absl import flags
from scipy.special import expit

import irtjax
from experiments.common import app
from irtjax.groups.choices import DIF_METHODS

SIGNED = "raju_signed"  # raju with test="uniform"
_METHODS = flags.DEFINE_list(
    "methods", [*DIF_METHODS, SIGNED], f"methods of irtjax.dif; {SIGNED} tests the signed area"
)
_REPLICATIONS = flags.DEFINE_integer("replications", 50, "data sets of each setting", lower_bound=2)
_ITEMS = flags.DEFINE_integer("num_items", 20, "I", lower_bound=5)
_OUTPUT = flags.DEFINE_string("output", None, "CSV file with a row of each data set, which is added to")
_TIME = flags.DEFINE_bool("time", False, "time the score test of one data set, with and without purification")
LEVEL = 0.05
KEYS = ["setting", "method", "seed"]


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
    if _TIME.value:
        _time()
        return
    path = None if _OUTPUT.value is None else Path(_OUTPUT.value)
    rows = pd.read_csv(path).to_dict("records") if path is not None and path.exists() else []
    done = {tuple(row[key] for key in KEYS) for row in rows}
    for row in _rows(done):
        rows.append(row)
        if path is not None:
            header = not path.exists()
            pd.DataFrame([row]).to_csv(path, mode="a", header=header, index=False, float_format="%.6g")
    print(_summary(pd.DataFrame(rows)).to_string(index=False))


def _time() -> None:
    """Prints seconds."""
    answers, member = _simulated(SETTINGS["10% DIF of 0.5"], np.random.default_rng(0))
    for purify in (False, True):
        began, began_cpu = time.perf_counter(), time.process_time()
        table = irtjax.dif(answers, member, "score", purify=purify)
        wall, cpu = time.perf_counter() - began, time.process_time() - began_cpu
        print(
            f"{len(table):,} items, {len(member):,} subjects, {table.attrs['rounds']} rounds of purification: "
            f"{wall:.1f} s, {cpu:.1f} s of CPU"
        )


def _rows(done: set[tuple[str, str, int]]) -> Iterator[dict[str, object]]:
    """Shares of a data set, of those that are not done, all methods of one after the other."""
    for name, setting in SETTINGS.items():
        with_dif = np.arange(_ITEMS.value) < (_with_dif() if setting.shift else 0)
        for seed in range(_REPLICATIONS.value):
            answers, member = _simulated(setting, np.random.default_rng(seed))
            for method in _METHODS.value:
                if (name, method, seed) in done:
                    continue
                began = time.process_time()
                p_value = _p_values(answers, member, method)
                tested, rejected = np.isfinite(p_value), p_value < LEVEL
                yield {
                    "setting": name,
                    "method": method,
                    "seed": seed,
                    "type_i": _share(rejected, tested & ~with_dif),
                    "power": _share(rejected, tested & with_dif),
                    "tested": tested.mean(),
                    "cpu_seconds": time.process_time() - began,
                }


def _with_dif() -> int:
    """Items with DIF, where some have it."""
    return _ITEMS.value // 10


def _share(chosen: np.ndarray, among: np.ndarray) -> float:
    return float(chosen[among].mean()) if among.any() else np.nan


def _p_values(answers: pd.DataFrame, member: list[str], method: str) -> np.ndarray:
    """Of all items; NaN where a group does not determine a fit of its own."""
    options: dict[str, Any] = {"method": "raju", "test": "uniform"} if method == SIGNED else {"method": method}
    try:
        return irtjax.dif(answers, member, **options)["p_value"].to_numpy()
    except irtjax.InputError as error:
        if "do not determine a fit" not in str(error) and "have an estimate in both" not in str(error):
            raise
        return np.full(_ITEMS.value, np.nan)


def _summary(rows: pd.DataFrame) -> pd.DataFrame:
    """Means over the data sets, in percent, with standard errors."""
    found = []
    for (setting, method), sets in rows.groupby(["setting", "method"], sort=False):
        row = {"setting": setting, "method": method, "sets": len(sets)}
        for name in ("type_i", "power"):
            values, items = (
                sets[name].dropna(),
                sets["tested"].sum() * (_ITEMS.value if name == "type_i" else _with_dif()),
            )
            share = values.mean()
            independent = np.sqrt(share * (1 - share) / max(items, 1))
            row[name] = round(100 * share, 1)
            row[f"{name}_se"] = round(100 * max(values.std(ddof=1) / np.sqrt(max(len(values), 1)), independent), 1)
        row |= {"tested": round(100 * sets["tested"].mean(), 1), "cpu_seconds": round(sets["cpu_seconds"].median(), 2)}
        found.append(row)
    order = {name: at for at, name in enumerate(SETTINGS)}
    return pd.DataFrame(found).sort_values("setting", key=lambda names: names.map(order), kind="stable")


def _simulated(setting: Setting, rng: np.random.Generator) -> tuple[pd.DataFrame, list[str]]:
    """Answers, and the group of each subject."""
    second = np.arange(setting.first + setting.second) >= setting.first
    theta = rng.normal(size=second.size) + setting.mean * second
    slope, difficulty = rng.lognormal(0, 0.3, _ITEMS.value), rng.normal(size=_ITEMS.value)
    shifted = difficulty + np.outer(setting.shift * second, np.arange(_ITEMS.value) < _with_dif())
    right = rng.random(shifted.shape) < expit(slope * (theta[:, None] - shifted))
    return pd.DataFrame(right.astype(int)), np.where(second, "second", "first").tolist()


if __name__ == "__main__":
    app.run(main, compiles_anew=True)
