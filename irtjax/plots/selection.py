"""Pictures of filtering and curricula."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from pandas.core.groupby import SeriesGroupBy
from scipy.stats import entropy

from irtjax.plots.style import line_styles, plain
from irtjax.selection.summary import interval

ACCURACY_LIMITS = (0.02, 0.995)  # a logit axis ends before 0 and 1
ACCURACY_TICKS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99)
# strategies by percent correct would almost hide those by difficulty: their lines have gaps
FILTER_STYLES = {"random": "--", "PCUB": ":", "PCLB": ":"}


def accuracy_against_share(table: pd.DataFrame, strategies: Sequence[str]) -> Figure:
    """Test accuracy against the share of data kept, with one line and one 95% band per strategy.

    Where there is one share, the strategies stand side by side.

    Args:
        table: columns strategy, share, seed, test_accuracy.
        strategies: in the order of the legend.
    """
    if table.share.nunique() == 1:
        return _accuracies(table, strategies)
    figure = Figure(figsize=(8, 4.2))
    axis = figure.subplots()
    for strategy, style in zip(strategies, line_styles(len(strategies)), strict=True):
        groups = table[table.strategy == strategy].groupby("share").test_accuracy
        _band(axis, groups, strategy, style["color"], FILTER_STYLES.get(strategy, "-"))
    axis.set(
        xscale="log",
        xlabel="training data kept",
        ylabel="test accuracy",
        title="Which examples to train on? Accuracy against data kept",
    )
    _share_ticks(axis, table.share)
    low, high = axis.get_ylim()
    axis.set_ylim(max(low, -0.02), min(high, 1.02))  # intervals of a few seeds may go beyond 0 and 1
    several = table.seed.nunique() > 1
    title = "mean of seeds,\n95% interval" if several else "one seed"
    axis.legend(frameon=False, title=title, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return plain(figure)


def _accuracies(table: pd.DataFrame, strategies: Sequence[str]) -> Figure:
    """Test accuracies at one share, each with its 95% interval."""
    figure = Figure(figsize=(8, 4.2))
    axis = figure.subplots()
    accuracies = table.groupby("strategy").test_accuracy
    mean, half = accuracies.mean()[list(strategies)], accuracies.apply(interval)[list(strategies)].fillna(0)
    axis.errorbar(range(len(strategies)), mean, half, fmt="o", capsize=4)
    axis.set_xticks(range(len(strategies)), list(strategies))
    seeds = "mean of seeds, 95% interval" if table.seed.nunique() > 1 else "one seed"
    share = f"{100 * table.share.iloc[0]:g}%"
    axis.set(ylabel=f"test accuracy, {seeds}", title=f"Which examples to train on? Accuracy with {share} of the data")
    low, high = axis.get_ylim()
    axis.set_ylim(max(low, -0.02), min(high, 1.02))
    return plain(figure)


def class_balance(table: pd.DataFrame) -> Figure:
    """Evenness of the classes among the examples kept against the share kept, with one line per strategy.

    Evenness is the entropy of the classes over log C: 1 if all classes are equally frequent, 0 if there is only one.
    Where there is one share, the strategies stand side by side.

    Args:
        table: columns strategy, share, class, share_of_kept.
    """
    figure = Figure(figsize=(8, 3.8))
    axis = figure.subplots()
    wide = table.pivot(index=["strategy", "share"], columns="class", values="share_of_kept").fillna(0)
    evenness = pd.Series(entropy(wide.to_numpy(), axis=1) / np.log(wide.shape[1]), wide.index)
    strategies = table.strategy.unique()
    axis.set(ylabel="evenness of classes", ylim=(-0.03, 1.03))
    if table.share.nunique() == 1:
        axis.plot(range(len(strategies)), evenness.droplevel("share")[strategies], "o")
        axis.set_xticks(range(len(strategies)), strategies)
        share = f"{100 * table.share.iloc[0]:g}%"
        axis.set_title(f"Which classes are kept? Entropy of the classes over its largest, with {share} of the data")
        return plain(figure)
    for strategy, style in zip(strategies, line_styles(len(strategies)), strict=True):
        if strategy in FILTER_STYLES:
            style |= {"linestyle": FILTER_STYLES[strategy]}
        axis.plot(evenness[strategy], **style, label=strategy, marker="o", markersize=4)
    axis.set(xscale="log", xlabel="training data kept")
    axis.set_title("Which classes are kept? Entropy of the classes, over its largest")
    _share_ticks(axis, table.share)
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return plain(figure)


def curricula(table: pd.DataFrame, strategies: Sequence[str]) -> Figure:
    """Test accuracy and share of data against epoch, with one line per strategy.

    A triangle marks the mean best validation epoch of a strategy, and the mean accuracy there. Lines are dotted from
    where the first seed has stopped: each seed keeps its last value, as the mean over the others would jump. The axis
    of accuracy is on the logit scale, which shows both the rise from chance and the last percent.

    Args:
        table: columns strategy, seed, epoch, share, ability, dev_accuracy, test_accuracy.
        strategies: in the order of the legend.
    """
    figure = Figure(figsize=(12, 4))
    accuracy_axis, share_axis = figure.subplots(1, 2)
    for strategy, style in zip(strategies, line_styles(len(strategies)), strict=True):
        colour = style["color"]
        rows = table[table.strategy == strategy]
        last = table.epoch.max()
        for axis, column in ((accuracy_axis, "test_accuracy"), (share_axis, "share")):
            wide = rows.pivot(index="epoch", columns="seed", values=column)
            stops = wide.apply(lambda seed: seed.last_valid_index())
            wide = wide.reindex(range(int(last) + 1)).ffill().loc[: int(stops.max())]
            wide.index += 1  # as the tables count
            if axis is accuracy_axis:
                wide = wide.clip(*ACCURACY_LIMITS)
            mean, first = wide.mean(axis=1), int(stops.min()) + 1
            axis.plot(mean.loc[:first], color=colour, label=strategy)
            axis.plot(mean.loc[first:], ":", color=colour)
            axis.fill_between(wide.index, wide.min(axis=1), wide.max(axis=1), color=colour, alpha=0.15)
        best = rows.loc[rows.groupby("seed").dev_accuracy.idxmax()]
        accuracy_axis.plot(best.epoch.mean() + 1, best.test_accuracy.mean(), "v", color=colour, markersize=7)
    accuracy_axis.set(
        xlabel="epoch", ylabel="test accuracy (logit scale)", title="Accuracy", yscale="logit", xlim=(0.5, None)
    )
    low, high = accuracy_axis.get_ylim()  # setting ticks would widen these limits
    accuracy_axis.set_yticks(ACCURACY_TICKS, [f"{tick:g}" for tick in ACCURACY_TICKS])
    accuracy_axis.minorticks_off()
    accuracy_axis.set_ylim(low, high)
    share_axis.set(xlabel="epoch", ylabel="share of training data selected", title="Data used", xlim=(0.5, None))
    title = "mean and range of seeds;\ndotted: some have stopped,\nand keep their last value"
    share_axis.legend(frameon=False, title=title, loc="center left", bbox_to_anchor=(1.0, 0.5))
    for axis in figure.axes:
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    accuracy_axis.text(
        0.98, 0.04, "▾ best validation epoch, mean of seeds", transform=accuracy_axis.transAxes, ha="right"
    )
    return plain(figure)


def _band(axis: Axes, groups: SeriesGroupBy, label: str, colour: str, style: str) -> None:
    mean, half = groups.mean(), groups.apply(interval).fillna(0)
    axis.plot(mean.index, mean, style, color=colour, label=label, marker="o", markersize=4)
    axis.fill_between(mean.index, mean - half, mean + half, color=colour, alpha=0.12, linewidth=0)


def _share_ticks(axis: Axes, shares: pd.Series) -> None:
    ticks = np.sort(shares.unique())
    axis.set_xticks(ticks, [f"{100 * share:g}%" for share in ticks], minor=False)
    axis.minorticks_off()


def monitored(table: pd.DataFrame, strategies: Sequence[str], number: int) -> Figure:
    """Ability and predicted accuracy of networks after each epoch, beside true accuracies; means of seeds.

    Bands reach 1.645 mean standard errors of a single network to either side. Seeds that have stopped have no part.

    Args:
        table: columns strategy, seed, epoch, those of `irtjax.selection.tracking.Tracked`, and dev_accuracy.
        strategies: one row of the picture each.
        number: of items that networks were asked.
    """
    figure = Figure(figsize=(10, 3.2 * len(strategies)))
    axes = figure.subplots(len(strategies), 2, squeeze=False)
    predicted, train, validation = line_styles(3)
    for (ability_axis, score_axis), strategy in zip(axes, strategies, strict=True):
        mean = table[table.strategy == strategy].groupby("epoch").mean(numeric_only=True)
        for axis, name in ((ability_axis, "monitor_ability"), (score_axis, "monitor_score")):
            reach = 1.645 * mean[f"{name}_se"]
            axis.plot(mean.index, mean[name], **predicted, label=f"predicted from {number} items")
            axis.fill_between(
                mean.index, mean[name] - reach, mean[name] + reach, color=predicted["color"], alpha=0.15, linewidth=0
            )
            axis.set_xlabel("epoch")
        score_axis.plot(mean.index, mean.train_accuracy, **train, label="training examples")
        score_axis.plot(mean.index, mean.dev_accuracy, **validation, label="validation examples")
        ability_axis.set(ylabel="ability, logits")
        ability_axis.set_title(strategy, loc="left")
        score_axis.set(ylabel="accuracy", ylim=(0, 1.02))
    axes[0, 1].legend(frameon=False, loc="lower right")
    return plain(figure)
