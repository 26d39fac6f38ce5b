"""Pictures of differential item functioning: effect against significance, and responses of each group by score."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from irtjax.plots.style import COLOURS, line_styles, plain, short
from irtjax.types import Float, Int

NAMED = 12  # items with their names
SMALLEST = 1e-16  # p-value that is drawn
BINS = 6  # of scores, with as many subjects each
PANELS = 6
FLAGGED, OTHERS = COLOURS[1], COLOURS[6]


def dif(table: pd.DataFrame, title: str, effect: str, level: float = 0.05) -> Figure:
    """Effect of each item against its adjusted p-value; those below `level` have their names.

    Args:
        table: of `irtjax.dif`.
        title: of the picture.
        effect: what the effect is.
        level: of the false-discovery rate.
    """
    figure = Figure(figsize=(7, 4.6))
    axis = figure.subplots()
    p_value = np.maximum(table["p_adjusted"].fillna(1.0).to_numpy(), SMALLEST)
    flagged = p_value < level
    for chosen, colour, label in ((~flagged, OTHERS, "others"), (flagged, FLAGGED, f"adjusted p < {level:g}")):
        axis.scatter(
            table["effect"][chosen], -np.log10(p_value[chosen]), s=24, color=colour, label=f"{chosen.sum():,} {label}"
        )
    axis.axhline(-np.log10(level), color="0.6", linewidth=0.8, linestyle=":")
    order = np.argsort(p_value)
    for i in order[: min(NAMED, int(flagged.sum()))]:
        axis.annotate(
            short(table["item_id"].iloc[i], 18),
            (table["effect"].iloc[i], -np.log10(p_value[i])),
            xytext=(5, 3),
            textcoords="offset points",
            fontsize=8,
        )
    axis.set(title=title, xlabel=effect, ylabel="-log₁₀ adjusted p")
    axis.margins(x=0.15, y=0.12)
    axis.legend(frameon=False, fontsize=8, loc="upper left" if (table["effect"] >= 0).all() else "best")
    return plain(figure)


def dif_curves(
    y: Float[np.ndarray, "J N"],
    score: Float[np.ndarray, " J"],
    member: Int[np.ndarray, " J"],
    groups: Sequence[str],
    items: Sequence[str],
) -> Figure:
    """Mean response of each group to some items, by score, with 95% intervals.

    Args:
        y: responses, NaN where missing.
        score: of the subjects, on the anchors.
        member: the number of each subject's group.
        groups: their names.
        items: names of the items, of which the first six are drawn.
    """
    number = min(len(items), PANELS)
    columns = min(number, 3)
    rows = -(-number // columns)
    figure = Figure(figsize=(3.2 * columns + 0.4, 2.7 * rows + 0.4))
    axes = np.ravel(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False))
    edges = np.unique(np.quantile(score, np.linspace(0, 1, BINS + 1)))
    bins = np.clip(np.searchsorted(edges, score, side="right") - 1, 0, max(len(edges) - 2, 0))
    for axis, item, responses in zip(axes, items[:number], y.T, strict=False):
        for group, (name, style) in enumerate(zip(groups, line_styles(len(groups)), strict=True)):
            places = []
            for at in range(max(len(edges) - 1, 1)):
                chosen = responses[(bins == at) & (member == group) & ~np.isnan(responses)]
                if len(chosen) > 1:
                    inside = score[(bins == at) & (member == group)].mean()
                    places.append((inside, chosen.mean(), 1.96 * chosen.std(ddof=1) / np.sqrt(len(chosen))))
            if places:
                x, mean, half = np.array(places).T
                ends = np.nanmin(y), np.nanmax(y)  # no mean response is beyond these
                bars = np.stack([mean - np.clip(mean - half, *ends), np.clip(mean + half, *ends) - mean])
                look = {"marker": "o", "markersize": 3.5, "capsize": 2, "linewidth": 1.2, **style}
                axis.errorbar(x, mean, bars, label=short(name, 16), **look)
        axis.set_title(short(item, 24), fontsize=9)
    for axis in axes[number:]:
        axis.set_visible(False)
    for axis in axes[max(0, number - columns) : number]:
        axis.set_xlabel("score on the anchors")
    axes[0].set_ylabel("mean response")
    axes[0].legend(frameon=False, fontsize=8)
    return plain(figure)
