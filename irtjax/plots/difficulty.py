"""Pictures of difficulties and abilities: their densities, the easiest and hardest items, and two sources compared."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde, spearmanr

from irtjax.plots.style import COLOURS, line_styles, literal, plain


def densities(samples: dict[str, np.ndarray], title: str, xlabel: str = "logits") -> Figure:
    """Kernel densities of several samples on one axis, with a mark below for each value."""
    figure = Figure(figsize=(7, 3.6))
    axis = figure.subplots()
    grid = _grid(list(samples.values()))
    tops = []
    for (name, values), colour in zip(samples.items(), COLOURS, strict=False):
        heights = gaussian_kde(values)(grid) if np.ptp(values) > 0 else np.zeros_like(grid)
        tops.append(heights.max())
        axis.plot(grid, heights, color=colour, label=f"{name} (n = {values.size:,})")
        axis.fill_between(grid, heights, color=colour, alpha=0.15)
    for row, ((_, values), colour) in enumerate(zip(samples.items(), COLOURS, strict=False)):
        marks = np.full(values.size, -(row + 1) * 0.05 * max(tops))
        axis.plot(values, marks, "|", color=colour, markersize=6, alpha=min(1.0, 60 / values.size + 0.05))
    axis.set(title=title, xlabel=xlabel, ylabel="density", ylim=(-(len(samples) + 1) * 0.05 * max(tops), None))
    axis.set_yticks([tick for tick in axis.get_yticks() if tick >= 0])
    axis.legend(frameon=False)
    return plain(figure)


def class_densities(difficulty: np.ndarray, labels: np.ndarray, classes: Sequence[str], title: str) -> Figure:
    """Kernel density of the difficulties of each class that has at least two examples.

    Args:
        difficulty: (N,) in logits.
        labels: (N,) gold labels.
        classes: names of the labels 0 to C - 1.
        title: of the figure.
    """
    figure = Figure(figsize=(8, 3.8))
    axis = figure.subplots()
    grid = _grid([difficulty[labels == label] for label in range(len(classes)) if (labels == label).any()])
    for label, (name, style) in enumerate(zip(classes, line_styles(len(classes)), strict=True)):
        values = difficulty[labels == label]
        if values.size > 1 and np.ptp(values) > 0:
            axis.plot(grid, gaussian_kde(values)(grid), **style, label=f"{literal(name)} (n = {values.size:,})")
    axis.set(title=title, xlabel="difficulty (logits)", ylabel="density", ylim=(0, None))
    axis.legend(frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return plain(figure)


def _grid(samples: Sequence[np.ndarray]) -> np.ndarray:
    """Points from where the first density begins to where the last ends, three bandwidths beyond the values."""
    reach = [
        3 * float(gaussian_kde(values).covariance[0, 0]) ** 0.5 if values.size > 1 and np.ptp(values) > 0 else 0.0
        for values in samples
    ]
    low = min(values.min() - beyond for values, beyond in zip(samples, reach, strict=True))
    high = max(values.max() + beyond for values, beyond in zip(samples, reach, strict=True))
    return np.linspace(low, high, 400)


def contact_sheet(
    images: np.ndarray, labels: np.ndarray, classes: Sequence[str], difficulty: np.ndarray, title: str
) -> Figure:
    """The easiest and the hardest image of each class, with their difficulties.

    Args:
        images: (N, H, W, channels) integers; each image is stretched to its own range of brightness.
        labels: (N,) gold labels.
        classes: names of the labels 0 to C - 1.
        difficulty: (N,) in logits.
        title: of the figure.
    """
    present = np.unique(labels)
    figure = Figure(figsize=(1.05 * len(present), 3.3))
    axes = figure.subplots(2, len(present), squeeze=False)
    for column, label in enumerate(present):
        members = np.flatnonzero(labels == label)
        ranked = members[np.argsort(difficulty[members], kind="stable")]
        for axis, item in ((axes[0, column], ranked[0]), (axes[1, column], ranked[-1])):
            axis.imshow(images[item].squeeze(), cmap="gray_r" if images.shape[-1] == 1 else None)
            axis.set(xticks=[], yticks=[])
            axis.set_xlabel(f"{difficulty[item]:.2f}", fontsize=9)
        axes[0, column].set_title(classes[label], fontsize=12 if max(map(len, classes)) < 8 else 9)
    axes[0, 0].set_ylabel("easiest")
    axes[1, 0].set_ylabel("hardest")
    figure.suptitle(title, y=1.02)
    return figure


def against_each_other(
    table: pd.DataFrame, groups: pd.Series | None, title: str, label: str = "difficulty, {} (logits)"
) -> Figure:
    """Each two columns against each other: one panel per pair, one point per row.

    Args:
        table: two columns or more, such as difficulties from several sources, with one row per item.
        groups: what colours stand for, such as the label of each item; None for one colour.
        title: of the figure.
        label: of an axis, with {} for the name of its column.
    """
    sources, last = list(table), table.shape[1] - 1
    figure = Figure(figsize=(1.2 + 3.6 * last, 1.0 + 3.6 * last))
    axes = figure.subplots(last, last, squeeze=False, sharex="col", sharey="row")
    names = [None] if groups is None else sorted(groups.dropna().unique())
    alpha = min(0.8, 25 / len(table) ** 0.6 + 0.03)
    size = 16 if len(table) < 500 else 5
    for (row, column), axis in np.ndenumerate(axes):
        if column > row:
            axis.remove()
            continue
        below, beside = sources[column], sources[row + 1]
        for name, colour in zip(names, COLOURS, strict=False):
            some = table if name is None else table[groups == name]
            shown = None if name is None else literal(str(name))
            axis.scatter(some[below], some[beside], s=size, color=colour, alpha=alpha, linewidths=0, label=shown)
        correlation = spearmanr(table[below], table[beside]).statistic
        axis.set_title(f"Spearman {correlation:.2f}", fontsize=10)
        if row == last - 1:
            axis.set_xlabel(label.format(literal(below)))
        if column == 0:
            axis.set_ylabel(label.format(literal(beside)))
    if groups is not None:
        legend = axes[0, 0].legend(frameon=False, fontsize=8, loc="best", markerscale=1.5)
        for handle in legend.legend_handles:
            handle.set_alpha(1)
    figure.suptitle(literal(title))
    return plain(figure)
