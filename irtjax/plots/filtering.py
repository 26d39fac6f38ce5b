"""Pictures of filtering: what networks reach on which part of the data, and which classes are in it."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from irtjax.plots.strategies import dot, looks, shown
from irtjax.plots.style import plain
from irtjax.selection.filter_summary import CONTROL, accuracies, evenness

PER_ROW = 5  # at most, panels of shares


def accuracy_against_share(table: pd.DataFrame, strategies: Sequence[str]) -> Figure:
    """Test accuracy against the share of data kept, with one line and one 95% band per strategy.

    Where there is one share, the strategies stand one below the other, as `accuracy_dots` has them.

    Args:
        table: columns strategy, share, seed, test_accuracy.
        strategies: in the order of the legend.
    """
    cells = accuracies(table).reset_index()
    several = table.seed.nunique() > 1
    if table.share.nunique() == 1:
        order = {name: at for at, name in enumerate(strategies)}
        cells = cells[cells.strategy.isin(order)].sort_values("strategy", key=lambda names: names.map(order))
        return accuracy_dots(cells, "Which examples to train on?", "" if several else "test accuracy, one seed")
    figure = Figure(figsize=(8, 4.2))
    axis = figure.subplots()
    for strategy, style in looks(strategies).items():
        rows = cells[cells.strategy == strategy].sort_values("share")
        axis.plot(rows.share, rows["mean"], **style._asdict(), label=shown(strategy), markersize=5)
        axis.fill_between(rows.share, *_ends(rows), color=style.color, alpha=0.12, linewidth=0)
    axis.set(
        xscale="log",
        xlabel="training data kept",
        ylabel="test accuracy",
        title="Which examples to train on? Accuracy against data kept",
    )
    _share_ticks(axis, table.share)
    title = "mean of seeds,\n95% interval" if several else "one seed"
    axis.legend(frameon=False, title=title, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return plain(figure)


def accuracy_dots(cells: pd.DataFrame, title: str, xlabel: str = "") -> Figure:
    """Test accuracy of each strategy with its 95% interval: one row per strategy, one panel per share of data kept.

    A grey line marks the random choice, where it is among the strategies.

    Args:
        cells: columns strategy, share, mean and half, half the width of the interval (NaN for none); strategies from
            top to bottom in the order of the table.
        title: of the figure.
        xlabel: what is shown, by default test accuracy with its interval.
    """
    styles = looks(cells.strategy.unique())
    names, shares = list(styles), np.sort(cells.share.unique())
    rows = -(-len(shares) // PER_ROW)
    columns = -(-len(shares) // rows)
    figure = Figure(figsize=(2.2 + 2.1 * max(columns, 2), 0.9 + rows * (0.8 + 0.22 * len(names))), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharey=True).ravel()
    for axis, share in zip(axes, shares, strict=False):
        panel = cells[cells.share == share].set_index("strategy")
        if CONTROL in panel.index:
            axis.axvline(panel["mean"][CONTROL], color=styles[CONTROL].color, linewidth=1, zorder=1)
        for at, name in enumerate(names):
            if name in panel.index:
                low, high = map(float, _ends(panel.loc[name]))
                dot(axis, at, panel["mean"][name], low, high, styles[name])
        axis.set_title(f"{100 * share:g}% of the data", fontsize=10)
        axis.xaxis.set_major_locator(MaxNLocator(4, steps=[1, 2, 5, 10]))
    for axis in axes[len(shares) :]:
        axis.remove()
    axes[0].set_yticks(range(len(names)), [shown(name) for name in names])
    axes[0].set_ylim(len(names) - 0.4, -0.6)
    figure.suptitle(title, fontsize=12)
    figure.supxlabel(xlabel or "test accuracy, mean of seeds with its 95% interval", fontsize=10)
    return plain(figure)


def _ends(cells: pd.DataFrame | pd.Series) -> tuple[np.ndarray, np.ndarray]:
    """Ends of the intervals of accuracies, which with two seeds may reach beyond 0 and 1."""
    half = np.nan_to_num(cells["half"])
    return np.clip(cells["mean"] - half, 0, 1), np.clip(cells["mean"] + half, 0, 1)


def class_balance(table: pd.DataFrame) -> Figure:
    """Evenness of the classes among the examples kept against the share kept, with one line per strategy.

    Evenness is the entropy of the classes over log C: 1 if all classes are equally frequent, 0 if there is only one.
    Where there is one share, the strategies stand side by side.

    Args:
        table: columns strategy, share, class, share_of_kept.
    """
    figure = Figure(figsize=(8, 3.8))
    axis = figure.subplots()
    even = evenness(table)
    strategies = table.strategy.unique()
    axis.set(ylabel="evenness of classes", ylim=(-0.03, 1.03))
    if table.share.nunique() == 1:
        for at, (strategy, style) in enumerate(looks(strategies).items()):
            axis.plot([at], even.droplevel("share")[[strategy]], **style._asdict() | {"linestyle": "none"})
        axis.set_xticks(range(len(strategies)), strategies)
        share = f"{100 * table.share.iloc[0]:g}%"
        axis.set_title(f"Which classes are kept? Class entropy relative to its maximum, with {share} of the data")
        return plain(figure)
    for strategy, style in looks(strategies).items():
        axis.plot(even[strategy], **style._asdict(), label=shown(strategy), markersize=5)
    axis.set(xscale="log", xlabel="training data kept")
    axis.set_title("Which classes are kept? Class entropy relative to its maximum")
    _share_ticks(axis, table.share)
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return plain(figure)


def _share_ticks(axis: Axes, shares: pd.Series) -> None:
    ticks = np.sort(shares.unique())
    axis.set_xticks(ticks, [f"{100 * share:g}%" for share in ticks], minor=False)
    axis.minorticks_off()
