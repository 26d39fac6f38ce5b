"""Summaries of trainings under several strategies: means over seeds with their intervals."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd
from scipy.stats import t
from statsmodels.stats.power import TTestPower

from irtjax.arguments import checks_types
from irtjax.errors import InputError
from irtjax.selection.choices import BASELINE
from irtjax.selection.measures import BUDGETS, REACHED_SHARE, accuracy_within, area, examples_to_reach, learning_curves

AT_BEST = "best_epoch", "examples_used", "items_asked", "test_accuracy", "test_geometric_mean"
POWER = 0.8
ANSWER_COST = 1 / 3  # of training on an example: a forward pass; the backward pass takes twice as long


@checks_types
def interval(values: pd.Series | np.ndarray | Sequence[float]) -> float:
    """Half width of the 95% interval of a mean by Student's t; NaN for a single value."""
    values = np.asarray(values)
    if values.size < 2:
        return float("nan")
    return float(t.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size))


def detectable(values: pd.Series | np.ndarray | Sequence[float]) -> float:
    """The mean that a two-sided t test at 5% finds with a probability of `POWER`, given the spread of these values.

    NaN for fewer than three values, or values that do not differ.
    """
    values = np.asarray(values, float)
    if values.size < 3 or not np.isfinite(values).all() or np.ptp(values) == 0:
        return float("nan")
    effect = TTestPower().solve_power(nobs=values.size, alpha=0.05, power=POWER, alternative="two-sided")
    return float(effect * values.std(ddof=1))


@checks_types
def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """Curricula compared with the baseline, at the epoch of the best validation accuracy and along the whole curve.

    Args:
        table: as from `compare_curricula`, the baseline among the strategies; the rows, also those of several runs, in
            any order and with any index.

    Returns:
        One row per strategy: means over seeds, each with the half width of its 95% interval in the column of that name
        and `_ci`. `best_epoch` counts from 1; `examples_used` and `items_asked` are up to and including that epoch;
        `test_accuracy` and `test_geometric_mean` (of the recalls of the classes; not there if the table has none) are
        at it. The others compare with the baseline of the same seed, which began with the same weights.

        * `examples_ratio`: the geometric mean over seeds of the examples used over those of the baseline, from
          `examples_ratio_low` to `examples_ratio_high` (95%). A saving (a ratio below 1) of `examples_detectable`, in
          percent, would have been found with a probability of 80%.
        * `examples_most`: that ratio if the last epoch that every seed was trained for were its best: no larger one can
          come out. Where patience ended the training, more epochs were allowed.
        * `reach_ratio`, with the same further columns: the same of the examples until the smoothed validation accuracy
          (`measures.learning_curves`) first was 99% of the baseline's best. `reached` counts the seeds in which it was.
          Where it was not, all examples count, so that the ratio is too small.
        * `area_change_points`: of the validation accuracy on average over the examples that the baseline uses in all,
          in percentage points (`measures.area`).
        * `accuracy_change_points` in percentage points, and `accuracy_change_percent` in percent of the baseline's
          mean, whose uncertainty its interval leaves out.
        * `within_10_change_points` and so on: of the test accuracy with 10, 25, 50 and 100% of the examples that the
          baseline uses in all; seeds without an epoch in that many are left out.

    Raises:
        InputError: no baseline.
    """
    if BASELINE not in set(table.strategy):
        raise InputError(f"no strategy {BASELINE!r} in the table, to compare the others with")
    table = table.sort_values("epoch", kind="stable", ignore_index=True)
    sums = table.groupby(["strategy", "seed"])[["examples_used", "items_asked"]].cumsum()
    counted = table.assign(**sums, best_epoch=table.epoch + 1)
    best = counted.loc[counted.groupby(["strategy", "seed"], sort=False).dev_accuracy.idxmax()].set_index("seed")
    along = _along(table)
    used = counted.groupby(["strategy", "seed"]).examples_used.max()
    baseline, baseline_along = best[best.strategy == BASELINE], along[along.strategy == BASELINE]
    rows = []
    for strategy, group in best.groupby("strategy", sort=False):
        curve = along[along.strategy == strategy]
        columns = {name: group[name] for name in AT_BEST if name in group}
        change = group.test_accuracy - baseline.test_accuracy
        columns["accuracy_change_percent"] = 100 * change / baseline.test_accuracy.mean()
        columns["accuracy_change_points"] = 100 * change
        columns["area_change_points"] = 100 * (curve.area - baseline_along.area)
        for share in BUDGETS:
            name = f"within_{100 * share:g}"
            columns[f"{name}_change_points"] = (100 * (curve[name] - baseline_along[name])).dropna()
        row: dict[str, object] = {"strategy": strategy, "seeds": len(group)}
        for name, values in columns.items():
            row |= {name: values.mean(), f"{name}_ci": interval(values)}
        row |= _ratio("examples", group.examples_used, baseline.examples_used)
        row["examples_most"] = float(np.exp(_log_ratios(used[strategy], baseline.examples_used).mean()))
        row["reached"] = int(curve.reached.sum())
        row |= _ratio("reach", curve.to_reach, baseline_along.to_reach)
        rows.append(row)
    return pd.DataFrame(rows)


class Saving(NamedTuple):
    """What a strategy by ability saves over the baseline, on average over the seeds, until their best epochs.

    Attributes:
        fewer: examples that it trains on; below 0 if it trains on more than the baseline.
        asked: examples that it answers for estimates of its ability.
        examples: saved in all, where an answer costs `ANSWER_COST` examples; below 0 for a loss.
        certain: whether the 95% interval of `examples_ratio` leaves 1 out.
        worse: percentage points by which its test accuracy is below the baseline's where the 95% interval of the change
            leaves 0 out, so that nothing is saved; else 0.
        change: of its test accuracy against the baseline's, percentage points.
        change_ci: half the width of its 95% interval, NaN of one seed.
    """

    fewer: float
    asked: float
    examples: float
    certain: bool
    worse: float
    change: float
    change_ci: float


def net_saving(summary: pd.DataFrame, strategy: str) -> Saving:
    """The examples that a strategy saves, less the cost of its answers.

    Args:
        summary: of `summarise`.
        strategy: one of its rows.
    """
    rows = summary.set_index("strategy")
    own, baseline = rows.loc[strategy], rows.loc[BASELINE]
    fewer = baseline.examples_used - own.examples_used
    certain = bool(own.examples_ratio_low > 1 or own.examples_ratio_high < 1)
    change, half = own.accuracy_change_points, own.accuracy_change_points_ci
    worse = float(-change) if change + half < 0 else 0.0  # of one seed there is no interval
    return Saving(fewer, own.items_asked, fewer - ANSWER_COST * own.items_asked, certain, worse, change, half)


def _along(table: pd.DataFrame) -> pd.DataFrame:
    """One row per strategy and seed, by seed: what `measures` say of its training."""
    whole = learning_curves(table)
    of_baseline = {seed: curve for seed, curve in whole[whole.strategy == BASELINE].groupby("seed")}
    rows = []
    for (strategy, seed), curve in whole.groupby(["strategy", "seed"], sort=False):
        baseline = of_baseline[seed]
        total = float(baseline.used.iloc[-1])
        to_reach, reached = examples_to_reach(curve, REACHED_SHARE * baseline.smoothed.max())
        within = {f"within_{100 * share:g}": accuracy_within(curve, share * total) for share in BUDGETS}
        row = {"strategy": strategy, "seed": seed, "to_reach": to_reach, "reached": reached, **within}
        rows.append(row | {"area": area(curve, total)})
    return pd.DataFrame(rows).set_index("seed")


def _log_ratios(used: pd.Series, of_baseline: pd.Series) -> pd.Series:
    """Of sums of examples, by seed; a sum of nothing counts as one."""
    return np.log(used.clip(lower=1)) - np.log(of_baseline.clip(lower=1))


def _ratio(name: str, used: pd.Series, of_baseline: pd.Series) -> dict[str, float]:
    """Geometric mean of ratios, and its interval by that of the mean logarithm."""
    logs = _log_ratios(used, of_baseline)
    mean, half = logs.mean(), interval(logs)
    return {
        f"{name}_ratio": float(np.exp(mean)),
        f"{name}_ratio_low": float(np.exp(mean - half)),
        f"{name}_ratio_high": float(np.exp(mean + half)),
        f"{name}_detectable": 100 * -float(np.expm1(-detectable(logs))),
    }
