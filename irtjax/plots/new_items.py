"""Pictures of difficulties that are predicted from features; `style.save_figure` writes them."""

import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.collections import Collection
from matplotlib.figure import Figure
from matplotlib.ticker import StrMethodFormatter
from scipy.stats import spearmanr

from irtjax.plots.style import COLOURS, line_styles, literal, plain

MOST_POINTS = 1000
FEWEST = 3  # items of a mean


def predicted_and_fitted(predicted: np.ndarray, fitted: np.ndarray, title: str) -> Figure:
    """Difficulties (I,) of responses against those predicted while the item was held out, in logits."""
    figure = Figure(figsize=(4.6, 4.6))
    axis = figure.subplots()
    alpha = min(0.8, 25 / predicted.size**0.6 + 0.03)
    axis.scatter(predicted, fitted, s=16 if predicted.size < 500 else 5, color=COLOURS[0], alpha=alpha, linewidths=0)
    ends = predicted.min(), predicted.max()
    axis.plot(ends, ends, color="0.4", linewidth=1)
    axis.set(title=f"{title}\nSpearman {spearmanr(predicted, fitted).statistic:.2f}")
    axis.set(xlabel="predicted difficulty (logits)", ylabel="difficulty by responses (logits)")
    return plain(figure)


def error_by_number(curve: pd.DataFrame, title: str) -> Figure:
    """Error of difficulties against the number of responses per new item.

    Args:
        curve: of `irtjax.explanatory.few_responses.by_number`.
        title: of the figure.
    """
    figure = Figure(figsize=(5.6, 3.8))
    axis = figure.subplots()
    for given, label, colour in ((False, "responses alone", COLOURS[6]), (True, "responses and text", COLOURS[0])):
        rows = curve[curve.features == given]
        axis.plot(rows.responses, rows.rmse, "o-", color=colour, label=label, markersize=4)
    axis.set_xscale("symlog", linthresh=1, linscale=0.5)
    numbers = curve.responses.unique()
    axis.set_xticks(numbers, [f"{number:,}" for number in numbers])
    axis.xaxis.set_minor_locator(axis.xaxis.get_major_locator())
    axis.set(title=title, xlabel="responses per new item", ylabel="error of difficulty (logits)", ylim=(0, None))
    axis.legend(frameon=False)
    return plain(figure)


def item_map(places: np.ndarray, difficulty: np.ndarray, title: str) -> Figure:
    """Items as points of a plane, coloured by difficulty; of more than 1,000 items the means of those close together.

    Args:
        places: (I, 2).
        difficulty: (I,) in logits; colours run from the 2% to the 98% point of what is shown.
        title: of the figure.
    """
    figure = Figure(figsize=(7.0, 5.4))
    axis = figure.subplots()
    if len(places) > MOST_POINTS:  # points on top of one another show whichever was drawn last
        points: Collection = axis.hexbin(
            places[:, 0],
            places[:, 1],
            C=difficulty,
            gridsize=36,
            mincnt=FEWEST,
            reduce_C_function=np.mean,
            linewidths=0.2,
        )
        label = f"mean difficulty of {FEWEST} items or more (logits)"
    else:
        points = axis.scatter(
            places[:, 0], places[:, 1], c=difficulty, s=60 / len(places) ** 0.25, alpha=0.7, linewidths=0
        )
        label = "difficulty (logits)"
    points.set_cmap("viridis")
    points.set_clim(*np.percentile(np.ma.compressed(np.ma.asarray(points.get_array())), (2, 98)))
    opaque = ScalarMappable(points.norm, points.get_cmap())
    figure.colorbar(opaque, ax=axis, label=label, format=StrMethodFormatter("{x:.1f}"), extend="both")
    axis.set(title=title, xticks=[], yticks=[], xlabel="first direction of the features", ylabel="second direction")
    return plain(figure)


def difficulties_by_set(table: pd.DataFrame) -> Figure:
    """Distributions of predicted difficulty, one curve per set of examples.

    Args:
        table: columns `set` and `predicted`, in logits.
    """
    figure = Figure(figsize=(6.4, 3.8))
    axis = figure.subplots()
    low, high = table.predicted.quantile([0.001, 0.999])
    smallest = table["set"].value_counts().min()
    edges = np.linspace(low, high, 1 + int(np.clip(2 * smallest ** (1 / 3), 12, 60)))  # Rice's rule
    for (name, group), style in zip(table.groupby("set", sort=False), line_styles(table["set"].nunique()), strict=True):
        shares, _ = np.histogram(np.clip(group.predicted, low, high), edges)
        axis.stairs(shares / len(group), edges, label=literal(str(name)), fill=name == "test", alpha=0.9, **style)
    axis.set(xlabel="predicted difficulty (logits)", ylabel="share of the examples")
    axis.legend(frameon=False)
    return plain(figure)
