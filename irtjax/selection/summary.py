"""Summaries of trainings under several strategies: means over seeds with their intervals."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import t

from irtjax.errors import InputError
from irtjax.selection.strategies import BASELINE


def interval(values: pd.Series | np.ndarray | Sequence[float]) -> float:
    """Half width of the 95% interval of a mean by Student's t; NaN for a single value."""
    values = np.asarray(values)
    if values.size < 2:
        return float("nan")
    return float(t.ppf(0.975, values.size - 1) * values.std(ddof=1) / np.sqrt(values.size))


def summarise(table: pd.DataFrame) -> pd.DataFrame:
    """Curricula compared with the baseline, at the epoch of the best validation accuracy.

    Args:
        table: as from `compare_curricula`, the baseline among the strategies.

    Returns:
        One row per strategy: means over seeds, each with the half width of its 95% interval in the column of that name
        and `_ci`. `best_epoch` counts from 1; `examples_used` and `items_asked` are up to and including that epoch;
        `test_accuracy` is at it. The others compare with the baseline of the same seed, which began with the same
        weights. `examples_ratio` is the geometric mean over seeds of the examples used over those of the baseline, from
        `examples_ratio_low` to `examples_ratio_high` (95%). `accuracy_change_points` is in percentage points, and
        `accuracy_change_percent` in percent of the baseline's mean, whose uncertainty its interval leaves out.

    Raises:
        InputError: no baseline.
    """
    if BASELINE not in set(table.strategy):
        raise InputError(f"no strategy {BASELINE!r} in the table, to compare the others with")
    sums = table.groupby(["strategy", "seed"])[["examples_used", "items_asked"]].cumsum()
    table = table.assign(**sums, best_epoch=table.epoch + 1)
    best = table.loc[table.groupby(["strategy", "seed"], sort=False).dev_accuracy.idxmax()].set_index("seed")
    baseline = best[best.strategy == BASELINE]
    rows = []
    for strategy, group in best.groupby("strategy", sort=False):
        columns = {name: group[name] for name in ("best_epoch", "examples_used", "items_asked", "test_accuracy")}
        change = group.test_accuracy - baseline.test_accuracy
        columns["accuracy_change_percent"] = 100 * change / baseline.test_accuracy.mean()
        columns["accuracy_change_points"] = 100 * change
        row: dict[str, object] = {"strategy": strategy, "seeds": len(group)}
        for name, values in columns.items():
            row |= {name: values.mean(), f"{name}_ci": interval(values)}
        row |= _ratio(group.examples_used, baseline.examples_used)
        rows.append(row)
    return pd.DataFrame(rows)


def _ratio(used: pd.Series, of_baseline: pd.Series) -> dict[str, float]:
    """Geometric mean of ratios, and its interval by that of the mean logarithm; a sum of nothing counts as one."""
    logs = np.log(used.clip(lower=1)) - np.log(of_baseline.clip(lower=1))
    mean, half = logs.mean(), interval(logs)
    low, high = np.exp(mean - half), np.exp(mean + half)
    return {"examples_ratio": float(np.exp(mean)), "examples_ratio_low": float(low), "examples_ratio_high": float(high)}
