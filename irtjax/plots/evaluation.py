"""Pictures of small benchmarks, adaptive tests and monitors."""

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from irtjax.plots.style import line_styles, literal, plain
from irtjax.types import Float

WITHIN_90 = 1.645  # standard deviations


def error_by_size(errors: pd.DataFrame, methods: Sequence[str], title: str) -> Figure:
    """Mean absolute error of predicted scores, and coverage of their 90% intervals, against the number of items.

    Lines are means of seeds, and bands reach from the best of them to the worst.

    Args:
        errors: of `irtjax.evaluation.study.hold_out`.
        methods: to show, in the order of the legend.
        title: of the picture.
    """
    figure = Figure(figsize=(11, 4.2))
    error_axis, coverage_axis = figure.subplots(1, 2)
    for method, style in zip(methods, line_styles(len(methods)), strict=True):
        rows = errors[errors.method == method].groupby("num_items")
        for axis, column in ((error_axis, "mae"), (coverage_axis, "coverage_90")):
            mean = rows[column].mean()
            axis.plot(mean.index, mean, **style, label=literal(method), marker="o", markersize=4)
            if axis is error_axis:
                low, high = rows[column].min(), rows[column].max()
                axis.fill_between(mean.index, low, high, color=style["color"], alpha=0.12, linewidth=0)
    coverage_axis.axhline(0.9, color="0.4", linewidth=1)
    sizes = np.sort(errors.num_items.unique())
    for axis in figure.axes:
        axis.set(xscale="log", xlabel="items asked")
        axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
        axis.minorticks_off()
    error_axis.set(ylabel="mean absolute error, points", title=literal(title), ylim=(0, None))
    coverage_axis.set(ylabel="share of scores within", title="90% intervals", ylim=(0.6, 1.0))
    coverage_axis.legend(frameon=False, title="items, prediction", loc="center left", bbox_to_anchor=(1.0, 0.5))
    return plain(figure)


def predicted_scores(predicted: pd.DataFrame, truth: np.ndarray, title: str) -> Figure:
    """Predicted against true scores of held-out subjects, with their intervals.

    Args:
        predicted: `score`, `low` and `high`, in points.
        truth: (J,) in points.
        title: of the picture.
    """
    figure = Figure(figsize=(5, 4.6))
    axis = figure.subplots()
    score = predicted["score"].to_numpy()
    reach = np.abs(predicted[["low", "high"]].to_numpy().T - score)
    axis.errorbar(truth, score, reach, fmt="none", ecolor="#0072B2", alpha=0.15, linewidth=0.8)
    axis.plot(truth, score, ".", color="#0072B2", markersize=3)
    ends = [min(truth.min(), score.min()), max(truth.max(), score.max())]
    axis.plot(ends, ends, color="0.4", linewidth=1)
    axis.set(xlabel="score on the whole benchmark, points", ylabel="predicted, points", title=literal(title))
    return plain(figure)


def error_by_number(errors: pd.DataFrame, names: Mapping[str, str], title: str) -> Figure:
    """Mean absolute error of abilities and of predicted scores against the number of items, one line per test.

    Args:
        errors: of `irtjax.evaluation.adaptive_study.compare_tests`.
        names: of the methods to show, in the order of the legend.
        title: of the picture.
    """
    figure = Figure(figsize=(11, 4.2))
    ability_axis, score_axis = figure.subplots(1, 2)
    for (method, name), style in zip(names.items(), line_styles(len(names)), strict=True):
        rows = errors[errors.method == method]
        ability_axis.plot(rows.num_items, rows.ability_mae, **style, label=literal(name))
        score_axis.plot(rows.num_items, rows.score_mae, **style)
    for axis, what in ((ability_axis, "ability, logits"), (score_axis, "score, share right")):
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
    axis.plot(difficulty, share, ".", color="#0072B2", markersize=4, alpha=0.6)
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
