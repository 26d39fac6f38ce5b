"""Pictures of small benchmarks, adaptive tests and monitors."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from irtjax.plots.style import COLOURS, line_styles, literal, plain
from irtjax.types import Float

WITHIN_90 = 1.645  # standard deviations


def error_by_size(errors: pd.DataFrame, methods: Sequence[str], title: str, unit: str = "points") -> Figure:
    """Mean absolute error of predicted scores against the number of items, and the coverage of their 90% intervals.

    Coverage is in the legend. Means of seeds, with the range from the best of them to the worst. Where there is one
    number of items, the methods stand one below the other.

    Args:
        errors: of `irtjax.evaluation.study.hold_out`.
        methods: to show, in the order of the legend.
        title: of the picture.
        unit: of the scores.
    """
    sizes = np.sort(errors.num_items.unique())
    labels = [_with_coverage(errors[errors.method == method], method) for method in methods]
    if len(sizes) == 1:
        figure = Figure(figsize=(8, 1.4 + 0.4 * len(methods)))
        axis = figure.subplots()
        for at, (method, style) in enumerate(zip(methods, line_styles(len(methods)), strict=True)):
            mae = errors[errors.method == method].mae
            axis.plot([mae.min(), mae.max()], [at, at], color=style["color"], linewidth=1.8)
            axis.plot([mae.mean()], [at], "o", color=style["color"])
        axis.set_yticks(range(len(methods)), labels)
        axis.set(ylim=(len(methods) - 0.5, -0.5), xlim=(0, None), title=f"{literal(title)}, {sizes[0]:,} asked")
        axis.set_xlabel(f"mean absolute error, {unit} (90% intervals: share of scores within)")
        return plain(figure)
    figure = Figure(figsize=(9, 4.4))
    axis = figure.subplots()
    for method, label, style in zip(methods, labels, line_styles(len(methods)), strict=True):
        mae = errors[errors.method == method].groupby("num_items").mae
        axis.plot(mae.mean(), **style, label=label, marker="o", markersize=4)
        axis.fill_between(sizes, mae.min(), mae.max(), color=style["color"], alpha=0.12, linewidth=0)
    axis.set(xscale="log", xlabel="items asked", ylim=(0, None), ylabel=f"mean absolute error, {unit}")
    axis.set_title(literal(title))
    axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axis.minorticks_off()
    heading = "items, prediction\n(90% intervals: scores within)"
    axis.legend(frameon=False, title=heading, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return plain(figure)


def _with_coverage(rows: pd.DataFrame, method: str) -> str:
    """The name of a method, with the coverage of its 90% intervals, from the lowest to the highest number of items."""
    coverage = 100 * rows.groupby("num_items").coverage_90.mean()
    low, high = f"{coverage.min():.0f}", f"{coverage.max():.0f}"
    return f"{literal(method)} ({low if low == high else f'{low} to {high}'}%)"


def predicted_scores(predicted: Mapping[int, pd.DataFrame], title: str, unit: str = "points") -> Figure:
    """Predicted against true scores of held-out subjects with their intervals, one panel per number of items.

    Args:
        predicted: by number of items: `score`, `low`, `high` and `truth`.
        title: of the picture.
        unit: of the scores.
    """
    columns = min(len(predicted), 4)
    rows = -(-len(predicted) // columns)
    figure = Figure(figsize=(0.8 + 3.2 * max(columns, 2), 0.9 + 3.2 * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    for axis, (size, table) in zip(axes, predicted.items(), strict=False):
        reach = np.abs(table[["low", "high"]].to_numpy().T - table["score"].to_numpy())
        faint = min(0.8, 12 / len(table) ** 0.7)
        axis.errorbar(table.truth, table["score"], reach, fmt="none", ecolor=COLOURS[0], alpha=faint, linewidth=0.8)
        axis.plot(table.truth, table["score"], ".", color=COLOURS[0], markersize=4)
        ends = [table.truth.min(), table.truth.max()]
        axis.plot(ends, ends, color="0.2", linewidth=1)
        error = (table["score"] - table.truth).abs().mean()
        axis.set_title(f"{size:,} items: {error:.2f} {unit} off", fontsize=10)
    for axis in axes[len(predicted) :]:
        axis.remove()
    figure.suptitle(literal(title))
    figure.supxlabel(f"score on the whole benchmark, {unit}", fontsize=10)
    figure.supylabel(f"predicted with its 90% interval, {unit}", fontsize=10)
    return plain(figure)


def error_by_number(errors: pd.DataFrame, names: Mapping[str, str], title: str, score: str = "share right") -> Figure:
    """Mean absolute error of abilities and of predicted scores against the number of items, one line per test.

    Args:
        errors: of `irtjax.evaluation.adaptive_study.compare_tests`.
        names: of the methods to show, in the order of the legend.
        title: of the picture.
        score: what a score is.
    """
    figure = Figure(figsize=(11, 4.2))
    ability_axis, score_axis = figure.subplots(1, 2)
    for (method, name), style in zip(names.items(), line_styles(len(names)), strict=True):
        rows = errors[errors.method == method]
        ability_axis.plot(rows.num_items, rows.ability_mae, **style, label=literal(name))
        score_axis.plot(rows.num_items, rows.score_mae, **style)
    for axis, what in ((ability_axis, "ability, logits"), (score_axis, f"score, {score}")):
        axis.set(xlabel="items asked", ylabel=f"mean error of the {what}", ylim=(0, None))
    ability_axis.set_title(literal(title), loc="left")
    ability_axis.legend(frameon=False)
    return plain(figure)


def exposure(share: Float[np.ndarray, " I"], difficulty: Float[np.ndarray, " I"], title: str) -> Figure:
    """Share of the subjects that each item was asked, against its difficulty.

    Args:
        share: (I,) 0 to 1.
        difficulty: (I,) in logits.
        title: of the picture.
    """
    figure = Figure(figsize=(5.5, 4))
    axis = figure.subplots()
    axis.plot(difficulty, share, ".", color=COLOURS[0], markersize=4, alpha=0.6)
    axis.set(xlabel="difficulty, logits", ylabel="share of subjects asked", title=literal(title), ylim=(0, 1.02))
    return plain(figure)


def monitor(table: pd.DataFrame, title: str) -> Figure:
    """Ability and predicted accuracy of a model in training against the step, with 90% bands.

    Args:
        table: of `irtjax.evaluation.monitor.Monitor`. Columns whose names end in `_accuracy` are true ones, and are
            drawn beside the predicted one.
        title: of the picture.
    """
    figure = Figure(figsize=(11, 4.2))
    ability_axis, score_axis = figure.subplots(1, 2)
    predicted, *others = line_styles(1 + sum(name.endswith("_accuracy") for name in table))
    reach = WITHIN_90 * table.ability_se
    ability_axis.plot(table.step, table.ability, **predicted)
    for axis, low, high in (
        (ability_axis, table.ability - reach, table.ability + reach),
        (score_axis, table.low, table.high),
    ):
        axis.fill_between(table.step, low, high, color=predicted["color"], alpha=0.15, linewidth=0)
        axis.set_xlabel("step")
    score_axis.plot(table.step, table.score, **predicted, label=f"predicted from {table.num_items.max()} items")
    true = [name for name in table if name.endswith("_accuracy")]
    for name, style in zip(true, others, strict=True):
        score_axis.plot(table.step, table[name], **style, label=literal(name.removesuffix("_accuracy")))
    ability_axis.set(ylabel="ability, logits")
    ability_axis.set_title(literal(title), loc="left")
    score_axis.set(ylabel="accuracy", ylim=(0, 1.02))
    score_axis.legend(frameon=False, loc="lower right")
    return plain(figure)
