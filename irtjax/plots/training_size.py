"""A picture of right answers over training-set size and difficulty."""

from collections.abc import Mapping

import numpy as np
import pandas as pd
from matplotlib.colors import CenteredNorm
from matplotlib.figure import Figure
from scipy.special import logit as logit_of

from irtjax.comparison.training_size import LogOdds
from irtjax.plots.style import literal, plain

LARGEST = 5.0  # log-odds at either end of the colours: 0.7% and 99.3%
LEVELS = np.linspace(-LARGEST, LARGEST, 21)
PALETTE = "RdBu"  # blue where answers are right, red where they are wrong, for colour-blind readers too


def contours(models: Mapping[str, LogOdds], observed: pd.DataFrame) -> Figure:
    """Log-odds of a right answer: by each regression, and as observed beside it, in one scale of colours.

    Args:
        models: by title, one per row of panels.
        observed: columns `title` as in the models; `size`, of training sets; `low` and `high`, the difficulties at the
            ends of a group of items; and `share`, of right answers of the networks of that size to these items. Where
            there are no items the picture is white.
    """
    figure = Figure(figsize=(9, 0.9 + 3.1 * len(models)), layout="constrained")
    axes = figure.subplots(len(models), 2, squeeze=False, sharex="row", sharey="row")
    norm = CenteredNorm(0, LARGEST)
    for (title, model), (left, right) in zip(models.items(), axes, strict=True):
        cells = observed[observed.title == title]
        edges = _edges(np.sort(cells["size"].unique()))
        sizes = np.geomspace(edges[0], edges[-1], 100)
        difficulty = np.linspace(cells.low.min(), cells.high.max(), 100)
        surface = np.clip(model.at(difficulty[:, None], sizes), -LARGEST, LARGEST)
        drawn = left.contourf(sizes, difficulty, surface, LEVELS, cmap=PALETTE, norm=norm)
        lines = left.contour(sizes, difficulty, surface, LEVELS[::2], colors="black", linewidths=0.5)
        left.clabel(lines, fontsize=7)
        for cell in cells.to_dict("records"):
            at = np.searchsorted(edges, cell["size"]) - 1
            logit = np.clip(logit_of(cell["share"]), -LARGEST, LARGEST)
            ends = [cell["low"], cell["high"]]
            right.pcolormesh(edges[at : at + 2], ends, [[logit]], cmap=PALETTE, norm=norm)
        left.set(xscale="log", ylabel="difficulty (logits)", title=f"{literal(title)}: regression")
        right.set(xscale="log", xlim=(edges[0], edges[-1]), title="observed")
        for axis in (left, right):
            axis.set_xlabel("training examples")
    figure.colorbar(drawn, ax=axes, label="log-odds of a right answer", shrink=min(1, 1.5 / len(models)))
    return plain(figure)


def _edges(sizes: np.ndarray) -> np.ndarray:
    """Ends of cells about each size, midway between the sizes on a log scale."""
    middle = np.sqrt(sizes[:-1] * sizes[1:])
    return np.array([sizes[0] ** 2 / middle[0], *middle, sizes[-1] ** 2 / middle[-1]])
