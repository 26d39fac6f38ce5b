"""Pictures of difficulties and abilities: their densities, the easiest and hardest items, and two sources compared."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from scipy.stats import gaussian_kde, spearmanr

from irtjax.plots.style import COLOURS, line_styles, literal, plain, short

MOST_ALL_PAIRS = 4  # columns of which each two have a panel
MOST_POINTS = 2000
MOST_PICTURED = 20  # classes, or difficulties, of which images are shown
LONGEST_CLASS = 15  # characters of the name of a class above a small image
FEWEST_OUTLINED = 10
OUTERMOST = 0.01


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
    """Kernel density of the difficulties of each class that has at least two examples; of many, of the largest.

    Args:
        difficulty: (N,) in logits.
        labels: (N,) gold labels.
        classes: names of the labels 0 to C - 1.
        title: of the figure.
    """
    figure = Figure(figsize=(8, 3.8))
    axis = figure.subplots()
    grid = _grid([difficulty[labels == label] for label in range(len(classes)) if (labels == label).any()])
    largest = np.sort(np.argsort(-np.bincount(labels, minlength=len(classes)), kind="stable")[:MOST_PICTURED])
    for label, style in zip(largest, line_styles(len(largest)), strict=True):
        name, values = classes[label], difficulty[labels == label]
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
    """The easiest and the hardest image of each class, with their difficulties; of many classes, of the largest.

    Args:
        images: (N, H, W, channels); each image is stretched to its own range of brightness. Of other than one, three or
            four channels, their mean is shown.
        labels: (N,) gold labels.
        classes: names of the labels 0 to C - 1.
        difficulty: (N,) in logits.
        title: of the figure.
    """
    present, counts = np.unique(labels, return_counts=True)
    present = np.sort(present[np.argsort(-counts, kind="stable")[:MOST_PICTURED]])
    figure = Figure(figsize=(1.05 * len(present), 3.3))
    axes = figure.subplots(2, len(present), squeeze=False)
    for column, label in enumerate(present):
        members = np.flatnonzero(labels == label)
        ranked = members[np.argsort(difficulty[members], kind="stable")]
        for axis, item in ((axes[0, column], ranked[0]), (axes[1, column], ranked[-1])):
            axis.imshow(*_shown(images[item]))
            axis.set(xticks=[], yticks=[])
            axis.set_xlabel(f"{difficulty[item]:.2f}", fontsize=9)
        axes[0, column].set_title(classes[label], fontsize=12 if max(map(len, classes)) < 8 else 9)
    axes[0, 0].set_ylabel("easiest")
    axes[1, 0].set_ylabel("hardest")
    figure.suptitle(title, y=1.02)
    return figure


def by_level(
    images: np.ndarray, labels: np.ndarray, classes: Sequence[str], difficulty: np.ndarray, title: str
) -> Figure:
    """The first image of each class, in rows, at each difficulty, in columns; of many, at `MOST_PICTURED` of them.

    Args:
        images: (N, H, W, channels), shown as in `contact_sheet`.
        labels: (N,).
        classes: names of the labels 0 to C - 1; at most `MOST_PICTURED` are shown.
        difficulty: (N,) in logits, of a few values.
        title: of the figure.
    """
    rows, levels = np.unique(labels)[:MOST_PICTURED], np.unique(difficulty)
    levels = levels[np.unique(np.linspace(0, levels.size - 1, MOST_PICTURED).round().astype(int))]
    figure = Figure(figsize=(0.75 * len(levels) + 1.2, 0.75 * len(rows) + 0.8), layout="constrained")
    axes = figure.subplots(len(rows), len(levels), squeeze=False)
    for line, label in zip(axes, rows, strict=True):
        for axis, level in zip(line, levels, strict=True):
            found = np.flatnonzero((labels == label) & (difficulty == level))
            if found.size:
                axis.imshow(*_shown(images[found[0]]))
            axis.set(xticks=[], yticks=[])
        line[0].set_ylabel(short(classes[label], LONGEST_CLASS), fontsize=9, rotation=0, ha="right", va="center")
    for axis, level in zip(axes[0], levels, strict=True):
        axis.set_title(f"{level:.2f}", fontsize=9)
    figure.suptitle(literal(title))
    return figure


def suspect_sheet(images: np.ndarray, labels: Sequence[str], instead: Sequence[str], title: str) -> Figure:
    """Images whose labels are doubted, the most doubtful first, with the label and what the image may be instead.

    Args:
        images: (N, H, W, channels), shown as in `contact_sheet`.
        labels: their labels, at least N.
        instead: other classes, at least N.
        title: of the figure.
    """
    columns = min(8, len(images))
    rows = -(-len(images) // columns)
    figure = Figure(figsize=(max(1.35 * columns, 5), 1.75 * rows + 0.5), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False)
    for axis in axes.ravel()[len(images) :]:
        axis.remove()
    for axis, image, label, other in zip(axes.ravel(), images, labels, instead, strict=False):
        axis.imshow(*_shown(image))
        axis.set(xticks=[], yticks=[])
        names = [short(label, LONGEST_CLASS), *([f"{short(other, LONGEST_CLASS)}?"] if other else [])]
        axis.set_title("\n".join(names), fontsize=9)
    figure.suptitle(literal(title))
    return figure


def _shown(image: np.ndarray) -> tuple[np.ndarray, str | None]:
    """An image as `imshow` takes it, with the colours of one channel."""
    if image.shape[-1] not in (1, 3, 4):
        image = image.mean(-1, keepdims=True)
    if image.dtype.kind == "f" and image.shape[-1] > 1:  # colours are from 0 to 1
        low, high = image.min(), image.max()
        image = (image - low) / (high - low if high > low else 1)
    return (image[..., 0], "gray_r") if image.shape[-1] == 1 else (image, None)


def against_each_other(
    table: pd.DataFrame,
    groups: pd.Series | None,
    title: str,
    label: str = "difficulty, {} (logits)",
    *,
    first: bool = False,
) -> Figure:
    """Each two columns against each other, or, of more than four, each against the last; one panel per pair.

    One point per row. Of more than 2,000 the points are grey, and the half of each group that lies closest together is
    outlined in its colour: colours on top of one another mix. Axes leave out the outermost 1% at either end; what is
    beyond is drawn at the edge.

    Args:
        table: two columns or more, such as difficulties from several sources, with one row per item.
        groups: what colours stand for, such as the label of each item; None for one colour.
        title: of the figure.
        label: of an axis, with {} for the name of its column.
        first: of more than four columns each against the first, not the last.
    """
    pairs, shape = _pairs(list(table), first)
    figure = Figure(figsize=(0.8 + 3.4 * shape[1], 0.9 + 3.4 * shape[0]), layout="constrained")
    axes = figure.subplots(*shape, squeeze=False)
    names = [None] if groups is None else sorted(groups.dropna().unique())
    limits = {name: _limits(values) for name, values in table.items()}
    shown = pd.DataFrame({name: values.clip(*limits[name]) for name, values in table.items()})
    many = len(table) > MOST_POINTS
    handles = {}
    for (row, column), axis in np.ndenumerate(axes):
        if (row, column) not in pairs:
            axis.remove()
            continue
        below, beside = pairs[row, column]
        if many:
            axis.scatter(shown[below], shown[beside], s=4, color="0.6", alpha=0.25, linewidths=0, rasterized=True)
        for name, style in zip(names, line_styles(len(names)), strict=True):
            some = shown if name is None else shown[groups == name]
            if many:
                _outline_half(axis, some[below].to_numpy(), some[beside].to_numpy(), style)
                handles[name] = Line2D([], [], **style, linewidth=2)
            else:
                alpha = min(0.8, 25 / len(table) ** 0.6 + 0.1)
                axis.scatter(some[below], some[beside], s=16, color=style["color"], alpha=alpha, linewidths=0)
                handles[name] = Line2D([], [], color=style["color"], marker="o", linestyle="none")
        correlation = spearmanr(table[below], table[beside]).statistic
        axis.set_title(f"Spearman {correlation:.2f}", fontsize=10)
        axis.set(xlabel=label.format(literal(below)), ylabel=label.format(literal(beside)))
        axis.margins(0.04)
    if groups is not None:
        labels = [literal(str(name)) for name in handles]
        heading = "around the half of each that lies closest together" if many else None
        figure.legend(list(handles.values()), labels, title=heading, loc="outside lower center", ncols=4, frameon=False)
    figure.suptitle(literal(title))
    return plain(figure)


def _pairs(names: Sequence[str], first: bool) -> tuple[dict[tuple[int, int], tuple[str, str]], tuple[int, int]]:
    """What is on the axes of each panel, by row and column, and the numbers of rows and columns."""
    if len(names) <= MOST_ALL_PAIRS:
        triangle = [(row, column) for row in range(len(names) - 1) for column in range(row + 1)]
        return {(row, column): (names[column], names[row + 1]) for row, column in triangle}, (len(names) - 1,) * 2
    one, others = (names[0], names[1:]) if first else (names[-1], names[:-1])
    rows = -(-len(others) // MOST_ALL_PAIRS)
    return {divmod(at, MOST_ALL_PAIRS): (name, one) for at, name in enumerate(others)}, (rows, MOST_ALL_PAIRS)


def _limits(values: pd.Series) -> tuple[float, float]:
    """Ends of an axis for values of which a few may lie far out."""
    low, high = values.quantile([OUTERMOST, 1 - OUTERMOST])
    spare = 0.1 * (high - low)
    return max(values.min(), low - spare), min(values.max(), high + spare)


def _outline_half(axis: Axes, x: np.ndarray, y: np.ndarray, style: dict[str, Any]) -> None:
    """A line around where the density is at least the median of that at the points, so that half of them are inside."""
    if len(x) < FEWEST_OUTLINED or np.ptp(x) == 0 or np.ptp(y) == 0:
        return
    some = np.random.default_rng(0).permutation(len(x))[:MOST_POINTS]  # which suffice for a smooth density
    density = gaussian_kde([x[some], y[some]])
    columns, rows = (np.linspace(values.min(), values.max(), 60) for values in (x, y))
    heights = density([part.ravel() for part in np.meshgrid(columns, rows)]).reshape(60, 60)
    level = np.median(density([x[some], y[some]]))
    axis.contour(
        columns, rows, heights, [level], colors=style["color"], linestyles=style["linestyle"], linewidths=2, zorder=3
    )
