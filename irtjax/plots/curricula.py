"""Pictures of curricula: what networks gain over the baseline, and how they come to it."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator, StrMethodFormatter
from scipy.special import logit

from irtjax.errors import InputError
from irtjax.plots.strategies import Look, dot, looks, shown
from irtjax.plots.style import line_styles, plain
from irtjax.selection.choices import BASELINE, NO_EFFECT
from irtjax.selection.measures import learning_curves
from irtjax.selection.summary import interval

ACCURACY_LIMITS = (0.02, 0.995)  # a logit axis ends before 0 and 1
# the first are wanted most
ACCURACY_TICKS = (0.5, 0.9, 0.1, 0.99, 0.8, 0.6, 0.95, 0.3, 0.7, 0.2, 0.4, 0.98, 0.05, 0.97, 0.85, 0.65, 0.55)
GRID = 200  # numbers of examples at which curves are compared
RATIOS = (1, 0.1, 10, 0.5, 2, 0.2, 5, 20, 0.05, 0.7, 1.5, 3, 0.3, 7, 0.8, 1.2, 0.6, 0.4, 4, 0.9, 1.1)
LINEAR = 5.0  # percentage points about the baseline; differences at the start of training may be far larger
POINTS = (-50, -20, -10, -5, -2.5, 0, 2.5, 5, 10, 20, 50)
MOST_TICKS = 8


def curricula(table: pd.DataFrame, strategies: Sequence[str]) -> Figure:
    """What curricula gain with as many training examples: accuracy against examples used, beside the baseline's.

    The large panel has the test accuracy minus that of the baseline of the same seed after as many examples: mean of
    the seeds with its 95% interval, from where the baseline has ended its first epoch. The small ones have the accuracy
    on the logit scale, which shows both the rise from chance and the last percent, with a mark at the best validation
    epoch; and the share of the data in use, both with the range of the seeds. Between epochs values are interpolated.
    Lines are dotted from where the first seed has stopped: each seed keeps its last value, as the mean over the others
    would jump.

    Args:
        table: columns strategy, seed, epoch, share, examples_used, dev_accuracy, test_accuracy.
        strategies: in the order of the legend.

    Raises:
        InputError: no baseline among the strategies.
    """
    if BASELINE not in strategies:
        raise InputError(f"no strategy {BASELINE!r} in the table, to compare the others with")
    curves = learning_curves(table)
    curves["used"] = curves.used.clip(lower=1)  # who selects nothing at first has no place on a log axis
    used = curves.groupby(["strategy", "seed"]).used
    ends = np.concatenate([used.min(), used.max()])  # lines begin and end there
    grid = np.unique(np.append(np.geomspace(ends.min(), ends.max(), GRID), ends))
    figure = Figure(figsize=(11, 5.4), layout="constrained")
    panels = figure.subplot_mosaic([["change", "accuracy"], ["change", "share"]], width_ratios=(3, 2))
    panels["accuracy"].sharex(panels["share"])
    of_baseline = _by_seed(curves[curves.strategy == BASELINE], grid, "test_accuracy")
    for strategy, style in looks(strategies).items():
        rows = curves[curves.strategy == strategy]
        ends = rows.groupby("seed").used.max()
        accuracy = _by_seed(rows, grid, "test_accuracy")
        change = 100 * (accuracy - of_baseline)
        half = change.apply(interval, axis=1).fillna(0)
        _line(panels["change"], change, change.mean(axis=1) - half, change.mean(axis=1) + half, ends, strategy, style)
        for name, values in (
            ("accuracy", accuracy.clip(*ACCURACY_LIMITS)),
            ("share", _by_seed(rows, grid, "share")),
        ):
            _line(panels[name], values, values.min(axis=1), values.max(axis=1), ends, strategy, style)
        best = rows.loc[rows.groupby("seed").dev_accuracy.idxmax()]
        at = np.exp(np.log(best.used).mean()), best.test_accuracy.mean()
        panels["accuracy"].plot(*at, style.marker, color=style.color, markersize=7, markeredgecolor="white")
    _label(panels, change_seen=curves.seed.nunique() > 1)
    figure.legend(*panels["change"].get_legend_handles_labels(), loc="outside upper center", ncols=5, frameon=False)
    return plain(figure)


def _by_seed(rows: pd.DataFrame, grid: np.ndarray, column: str) -> pd.DataFrame:
    """A column of a strategy after so many examples, one column per seed; NaN before its first epoch has ended."""
    curves = {seed: np.interp(grid, curve.used, curve[column], left=np.nan) for seed, curve in rows.groupby("seed")}
    return pd.DataFrame(curves, grid)


def _line(
    axis: Axes, values: pd.DataFrame, low: pd.Series, high: pd.Series, ends: pd.Series, strategy: str, style: Look
) -> None:
    """The mean of seeds (columns) with a band, dotted from where the first seed has stopped until the last has."""
    mean = values.mean(axis=1, skipna=False).dropna().loc[: ends.max()]
    axis.plot(mean.loc[: ends.min()], style.linestyle, color=style.color, label=shown(strategy))
    axis.plot(mean.loc[ends.min() :], ":", color=style.color)
    axis.fill_between(mean.index, low[mean.index], high[mean.index], color=style.color, alpha=0.13, linewidth=0)


def _label(panels: dict[str, Axes], change_seen: bool) -> None:
    """Scales, ticks and titles of the panels of curricula."""
    change, accuracy, share = panels["change"], panels["accuracy"], panels["share"]
    means = np.concatenate([line.get_ydata() for line in change.get_lines()])
    low, high = means.min(), means.max()
    spare = max(0.5 * (high - low), 1.0)  # intervals of two seeds may be wider than all that there is to see
    limits = change.get_ylim()
    change.set(
        xscale="log",
        xlabel="training examples used",
        ylabel="test accuracy − baseline's, points (log beyond ±5)",
        ylim=(max(limits[0], low - spare), min(limits[1], high + spare)),
    )
    change.set_yscale("symlog", linthresh=LINEAR, linscale=2)
    change.yaxis.set_major_locator(FixedLocator(POINTS))
    change.yaxis.set_minor_locator(NullLocator())
    change.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    change.set_title("Gain over the baseline, " + ("mean of seeds and its 95% interval" if change_seen else "one seed"))
    accuracy.set(ylabel="test accuracy (logit scale)", yscale="logit", title="Accuracy; mark: best validation epoch")
    limits = accuracy.get_ylim()  # setting ticks would widen these limits
    ticks = _spread(ACCURACY_TICKS, logit(ACCURACY_TICKS), logit(limits))
    accuracy.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    accuracy.yaxis.set_minor_locator(NullLocator())
    accuracy.set_ylim(limits)
    share.set(xscale="log", xlabel="training examples used", ylabel="share of data selected", ylim=(-0.02, 1.04))
    accuracy.tick_params(labelbottom=False)
    for axis in (change, share):
        numbers_in_full(axis)
    share.set_title("Data in use")


def numbers_in_full(axis: Axes) -> None:
    """A log axis whose numbers are written out, within two decades those that begin with 2 and 5 too."""
    axis.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    low, high = axis.get_xlim()
    between = high < 100 * low
    axis.xaxis.set_minor_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}" if between and f"{x:e}"[0] in "25" else ""))


def forest(summary: pd.DataFrame) -> Figure:
    """Differences of each strategy from the baseline, with their 95% intervals.

    Examples until the best validation epoch and until 99% of the baseline's best validation accuracy, as multiples of
    the baseline's, and the change of the test accuracy. A hollow mark is too low: some seeds never came so far, and all
    their examples count. Where none came, there is no mark. The null control, where it is among the strategies, is the
    grey area: what no effect looks like.

    Args:
        summary: of `irtjax.selection.summarise`; without the columns of `reach_ratio` that panel is left out.

    Raises:
        InputError: the baseline alone.
    """
    rows = summary[summary.strategy != BASELINE].reset_index(drop=True)
    if rows.empty:
        raise InputError("the baseline alone: nothing to compare with it")
    change, half = rows.accuracy_change_points, rows.accuracy_change_points_ci
    examples = [f"examples_ratio{end}" for end in ("", "_low", "_high")]
    panels = {"examples until the best epoch,\ntimes the baseline's": rows[examples].to_numpy()}
    if "reach_ratio" in rows:
        reach = [f"reach_ratio{end}" for end in ("", "_low", "_high")]
        panels["examples until 99% of the baseline's\nbest (hollow: reached by n of N seeds)"] = rows[reach].to_numpy()
    panels["change of the test accuracy,\npercentage points"] = np.stack([change, change - half, change + half], axis=1)
    styles = list(looks(rows.strategy).values())
    figure = Figure(figsize=(2.6 + 2.8 * len(panels), 1.5 + 0.36 * len(rows)), layout="constrained")
    axes = figure.subplots(1, len(panels), sharey=True)
    for axis, (label, values) in zip(axes, panels.items(), strict=True):
        ratio = axis is not axes[-1]
        axis.axvline(1 if ratio else 0, color="black", linewidth=1, zorder=1)
        for at, (cells, style) in enumerate(zip(values, styles, strict=True)):
            value, low, high = np.where(np.isnan(cells), cells[0], cells)
            if "hollow" in label and rows.reached[at] == 0:
                text = f"0 of {rows.seeds[at]}"
                axis.annotate(text, (1, at), (6, 0), textcoords="offset points", fontsize=7, va="center")
                continue
            dot(axis, at, value, low, high, style)
            if rows.strategy[at] == NO_EFFECT:
                axis.axvspan(low, high, color=style.color, alpha=0.13, linewidth=0, zorder=0)
            if "hollow" in label and rows.reached[at] < rows.seeds[at]:
                axis.get_lines()[-1].set_markerfacecolor("white")
                text = f"{rows.reached[at]} of {rows.seeds[at]}"
                axis.annotate(text, (value, at), (0, 6), textcoords="offset points", fontsize=7, ha="center")
        axis.set_xlabel(label)
        if ratio:
            _ratio_ticks(axis)
    axes[0].set_yticks(range(len(rows)), [shown(strategy) for strategy in rows.strategy])
    axes[0].set_ylim(len(rows) - 0.4, -0.7)
    return plain(figure)


def _ratio_ticks(axis: Axes) -> None:
    """A log axis of ratios, with ticks at plain numbers."""
    axis.set_xscale("log")
    low, high = axis.get_xlim()
    limits = min(low, 0.9), max(high, 1.12)
    axis.set_xlim(limits)
    ticks = _spread(RATIOS, np.log(RATIOS), np.log(limits).tolist())
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.xaxis.set_minor_locator(NullLocator())


def _spread(ticks: Sequence[float], places: np.ndarray, limits: Sequence[float]) -> list[float]:
    """Ticks whose places are within limits and, taken in their order, far enough from those before for their labels."""
    least = (limits[1] - limits[0]) / MOST_TICKS
    kept: list[int] = []
    for at in np.flatnonzero((places >= limits[0]) & (places <= limits[1])):
        if all(abs(places[at] - places[other]) >= least for other in kept):
            kept.append(int(at))
    return [ticks[at] for at in kept]


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
