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
FEW = 2  # models that stand one below the other
LEVELS = np.linspace(-LARGEST, LARGEST, 21)
PALETTE = "RdBu"  # blue where answers are right, red where they are wrong, for colour-blind readers too


def contours(models: Mapping[str, LogOdds], observed: pd.DataFrame) -> Figure:
    """Log-odds of a right answer: by each regression, and as observed beside it, in one scale of colours.

    Args:
        models: by title, one per pair of panels; more than two in two columns of pairs.
        observed: columns `title` as in the models; `size`, of training sets; `low` and `high`, the difficulties at the
            ends of a group of items; and `share`, of right answers of the networks of that size to these items. Where
            there are no items the picture is white.
    """
    pairs = 1 if len(models) <= FEW else 2  # in a row
    rows = -(-len(models) // pairs)
    figure = Figure(figsize=(1.2 + 5.6 * pairs, 0.7 + 2.6 * rows), layout="constrained")
    axes = figure.subplots(rows, 2 * pairs, squeeze=False)
    norm = CenteredNorm(0, LARGEST)
    # by columns, so that what is compared first stands one below the other
    places = axes.reshape(rows, pairs, 2).swapaxes(0, 1).reshape(-1, 2)
    for left, right in places[len(models) :]:
        left.remove()
        right.remove()
    for (title, model), (left, right) in zip(models.items(), places, strict=False):
        left.sharex(right)
        left.sharey(right)
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
        right.tick_params(labelleft=False)
    figure.supxlabel("training examples", fontsize=10)
    figure.colorbar(drawn, ax=figure.axes, label="log-odds of a right answer", shrink=min(1, 1.5 / rows))
    return plain(figure)


def _edges(sizes: np.ndarray) -> np.ndarray:
    """Ends of cells about each size, midway between the sizes on a log scale."""
    middle = np.sqrt(sizes[:-1] * sizes[1:])
    return np.array([sizes[0] ** 2 / middle[0], *middle, sizes[-1] ** 2 / middle[-1]])
