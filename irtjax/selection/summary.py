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
        `test_accuracy` is at it. `examples_change_percent` and `accuracy_change_percent` are means over seeds of the
        difference from the baseline of the same seed, which began with the same weights, in percent of the baseline's
        mean. Their intervals leave out the uncertainty of that mean. `accuracy_change_points` is in percentage points.

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
        for name, column in (("examples", "examples_used"), ("accuracy", "test_accuracy")):
            change = group[column] - baseline[column]
            columns[f"{name}_change_percent"] = 100 * change / baseline[column].mean()
        columns["accuracy_change_points"] = 100 * (group.test_accuracy - baseline.test_accuracy)
        row: dict[str, object] = {"strategy": strategy, "seeds": len(group)}
        for name, values in columns.items():
            row |= {name: values.mean(), f"{name}_ci": interval(values)}
        rows.append(row)
    return pd.DataFrame(rows)
