"""Summaries of filtering: how accurate networks are on what each strategy keeps, and which classes that is."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from scipy.stats import entropy, ttest_ind

from irtjax.selection.filtering import threshold
from irtjax.selection.summary import interval
from irtjax.types import AnyArray, Float, Int

CONTROL = "random"  # the strategy that the others are compared with


def accuracies(table: pd.DataFrame, measure: str = "test_accuracy") -> pd.DataFrame:
    """The test accuracy of each strategy at each share of the data, or another measure.

    Args:
        table: columns strategy, share and that of the measure; one row per network.
        measure: such as test_geometric_mean.

    Returns:
        By strategy and share: `mean` over the networks, and `half`, half the width of its 95% interval.
    """
    return table.groupby(["strategy", "share"])[measure].agg(mean="mean", half=interval)


def against_control(table: pd.DataFrame) -> pd.DataFrame:
    """The test accuracy of each strategy minus that of the random choice of as many examples.

    Args:
        table: columns strategy, share, test_accuracy; one row per network.

    Returns:
        By strategy and share, in the order of the table: `difference` of the means in percentage points, from `low` to
        `high` (95% by Welch's t test; NaN where accuracies do not vary). Empty without a random choice, without another
        strategy, or with one network of each.
    """
    points = 100 * table.set_index(["strategy", "share"]).test_accuracy
    rows = {}
    for (strategy, share), one in points.groupby(["strategy", "share"], sort=False):
        other = points[[(CONTROL, share)]] if (CONTROL, share) in points.index else points[:0]
        if strategy != CONTROL and min(one.size, other.size) > 1:
            low, high = ttest_ind(one, other, equal_var=False).confidence_interval()
            rows[strategy, share] = (one.mean() - other.mean(), low, high)
    index = pd.MultiIndex.from_tuples(list(rows), names=["strategy", "share"]) if rows else points.index[:0]
    return pd.DataFrame(list(rows.values()), index, columns=["difference", "low", "high"], dtype=float)


def kept_classes(
    kept: Mapping[tuple[str, float], Int[AnyArray, " _"]],
    labels: Int[AnyArray, " N"],
    classes: Sequence[str],
    scales: tuple[Float[AnyArray, " N"], Float[AnyArray, " N"]],
    centre: str,
    *,
    by_class: bool = False,
) -> pd.DataFrame:
    """Which classes each strategy keeps.

    Args:
        kept: by strategy and share, the indices of the examples that it keeps.
        labels: (N,) of all examples.
        classes: names of the labels.
        scales: difficulty and percent correct, (N,) each, that strategies go by.
        centre: one of `filtering.CENTRES`.
        by_class: whether each class has a threshold of its own (`filtering.within_classes`).

    Returns:
        One row per strategy, share and class: `threshold` d, NaN for random, and for a class of which none is kept; the
        `class`; how many `examples` of it are kept, and their `share_of_kept`.
    """
    tables = []
    for (strategy, share), chosen in kept.items():
        counts = np.bincount(labels[chosen], minlength=len(classes))
        columns = {"class": list(classes), "examples": counts, "share_of_kept": counts / chosen.size}
        of = [chosen[labels[chosen] == c] for c in range(len(classes))] if by_class else [chosen] * len(classes)
        d = [threshold(strategy, *scales, some, centre) if some.size else np.nan for some in of]
        tables.append(pd.DataFrame({"strategy": strategy, "share": share, "threshold": d, **columns}))
    return pd.concat(tables, ignore_index=True)


def largest_classes(kept: pd.DataFrame) -> pd.DataFrame:
    """The largest class among the examples that each strategy keeps: those rows of `kept_classes`, by both."""
    most = kept.groupby(["strategy", "share"], sort=False).examples.idxmax()
    return kept.loc[most].set_index(["strategy", "share"])


def evenness(kept: pd.DataFrame) -> pd.Series:
    """Evenness of the classes among the examples kept, by strategy and share.

    The entropy of the classes over log C: 1 if all are equally frequent, 0 if there is only one.

    Args:
        kept: columns strategy, share, class, share_of_kept, as from `kept_classes`.
    """
    wide = kept.pivot(index=["strategy", "share"], columns="class", values="share_of_kept").fillna(0)
    return pd.Series(entropy(wide.to_numpy(), axis=1) / np.log(wide.shape[1]), wide.index)
