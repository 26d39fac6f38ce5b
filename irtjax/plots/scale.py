"""Pictures of a scale and of how it was built; `style.save_figure` writes them."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator

from irtjax.plots.fitted_items import RIGHT, ResponseAxis, common_scale
from irtjax.plots.style import COLOURS, literal, plain, short
from irtjax.responses.scaled import Scale
from irtjax.scale.curves import EmpiricalCurves
from irtjax.scale.dimensionality import ParallelAnalysis
from irtjax.types import Float

MOST_CURVES = 60
MOST_EIGENVALUES = 15
PER_ROW = 4
FEW_CURVES = 24
LONGEST_NAME = 24
LONGEST_TITLE = 25
PER_KEY = 12  # categories in a column of the legend
DOMINANT = 0.25  # share of the largest information
MOST_BOXES, FEW_BOXES = 12, 4
BLUE, ORANGE, GREEN = COLOURS[:3]


def scree(eigenvalues: ParallelAnalysis, title: str) -> Figure:
    """Eigenvalues of the tetrachoric or polychoric correlations, and those of noise."""
    figure = Figure(figsize=(6, 3.6))
    axis = figure.subplots()
    number = min(len(eigenvalues.observed), MOST_EIGENVALUES)
    at = np.arange(1, number + 1)
    axis.plot(at, eigenvalues.observed[:number], "o-", color=BLUE, label="responses")
    axis.plot(
        at, eigenvalues.noise[:number], "s--", color=ORANGE, markersize=4, label="independent items, 95% quantile"
    )
    axis.set(title=literal(title), xlabel="number", ylabel="eigenvalue", ylim=(0, None))
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.legend(frameon=False)
    return plain(figure)


def item_curves(
    names: Sequence[str],
    theta: Float[np.ndarray, " Q"],
    model: Float[np.ndarray, "Q I"],
    empirical: EmpiricalCurves,
    reasons: Sequence[str],
    title: str,
    response: ResponseAxis = RIGHT,
) -> Figure:
    """Item characteristic curves with the empirical curve and its band, one axis per item, removed items last.

    Args:
        names: (I,) ids.
        theta: (Q,) abilities that curves are shown at.
        model: (Q, I) expected responses.
        empirical: their empirical curves.
        reasons: (I,) why each item was removed; "" if it was not.
        title: of the figure.
        response: the axis of the responses.
    """
    removed = np.array([bool(reason) for reason in reasons])
    order = np.concatenate([np.flatnonzero(~removed), np.flatnonzero(removed)])
    if len(order) > MOST_CURVES:  # removed items are what the reader looks for
        spare = max(MOST_CURVES - int(removed.sum()), MOST_CURVES // 2)
        order = np.concatenate([np.flatnonzero(~removed)[:spare], np.flatnonzero(removed)])[:MOST_CURVES]
    figure, axes = panels(len(order), theta, response)
    inside = (empirical.theta >= theta[0]) & (empirical.theta <= theta[-1])
    for axis, item in zip(axes, order, strict=True):
        colour = ORANGE if removed[item] else BLUE
        band = empirical.low[inside, item], empirical.high[inside, item]
        axis.fill_between(empirical.theta[inside], *band, color="0.8", linewidth=0)
        axis.plot(empirical.theta[inside], empirical.share[inside, item], color="0.3", linewidth=1)
        axis.plot(theta, model[:, item], color=colour, linewidth=1.6)
        reason = f"\n{reasons[item]}" if removed[item] else ""
        axis.set_title(short(names[item], LONGEST_TITLE) + reason, fontsize=10.5, color=colour)
    some = f" ({len(order)} of {len(removed)} items)" if len(order) < len(removed) else ""
    figure.suptitle(literal(f"{title}{some}") + "\nmodel in colour, responses in grey with a 95% band", fontsize=12)
    return plain(figure)


def category_curves(
    names: Sequence[str],
    theta: Float[np.ndarray, " Q"],
    p: Float[np.ndarray, "Q I C"],
    scales: Sequence[Scale],
    title: str,
) -> Figure:
    """Category characteristic curves, one axis per item; a category has the same colour in all of them.

    Args:
        names: (I,) ids.
        theta: (Q,) abilities.
        p: (Q, I, C) probabilities of the categories of each item.
        scales: (I,) with the labels of these.
        title: of the figure.
    """
    common = common_scale(scales)
    of_all = [label for scale in scales for label in scale.labels or ()] if common is None else common.labels
    labels = list(dict.fromkeys(of_all or ()))
    colours = colormaps["viridis"](np.linspace(0, 0.95, len(labels)))
    figure, axes = panels(len(names), theta, RIGHT._replace(label="probability"))
    for i, (axis, name, scale) in enumerate(zip(axes, names, scales, strict=True)):
        for k, label in enumerate(scale.labels or ()):
            axis.plot(theta, p[:, i, k], color=colours[labels.index(label)], linewidth=1.5)
        axis.set_title(short(name, LONGEST_TITLE), fontsize=10.5)
    keys = [Line2D([], [], color=colour, linewidth=2) for colour in colours]
    texts = [short(str(label), LONGEST_NAME) for label in labels]
    figure.legend(keys, texts, loc="outside right upper", frameon=False, fontsize=9, ncols=-(-len(labels) // PER_KEY))
    figure.suptitle(literal(title), fontsize=12)
    return plain(figure)


def panels(number: int, theta: Float[np.ndarray, " Q"], response: ResponseAxis) -> tuple[Figure, list[Axes]]:
    """A figure with so many axes of responses against ability."""
    columns = min(number, PER_ROW if number <= FEW_CURVES else PER_ROW + 1)
    rows = -(-number // columns)
    figure = Figure(figsize=(0.6 + 2.4 * max(columns, 2), 1.0 + 2.0 * rows), layout="constrained")
    axes = list(figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel())
    for axis in axes[number:]:
        axis.remove()
    for axis in axes[number - columns : number]:
        axis.tick_params(labelbottom=True)  # the lowest of each column
    room = 0.02 * (response.high - response.low)
    axes[0].set(xlim=(theta[0], theta[-1]), ylim=(response.low - room, response.high + room))
    axes[0].set_yticks(response.ticks, [literal(text) for text in response.texts])
    figure.supxlabel("ability", fontsize=11)
    figure.supylabel(response.label, fontsize=11)
    return figure, axes[:number]


def precision(full: pd.DataFrame, form: pd.DataFrame, others: pd.DataFrame, dominant: str, title: str) -> Figure:
    """Test information and standard error of ability: of the scale, its short form, and without its dominant item.

    Args:
        full: from `irtjax.scale.information.information_table`.
        form: the same for the short form.
        others: the same for the scale without its most informative item.
        dominant: id of that item. Nothing is shown without it unless it makes a quarter of the maximum.
        title: of the figure.
    """
    figure = Figure(figsize=(10, 3.8))
    lines = [("scale", full, BLUE, "-"), ("short form", form, ORANGE, "--")]
    best = full["test"].idxmax()
    if full["test"][best] - others["test"][best] >= DOMINANT * full["test"][best]:
        lines.append((f"without {short(dominant, LONGEST_NAME)}", others, GREEN, ":"))
    for axis, column, label in zip(
        figure.subplots(1, 2), ("test", "standard_error"), ("information", "standard error of ability"), strict=True
    ):
        for what, table, colour, style in lines:
            name = f"{what}, {table.shape[1] - 3} items"
            axis.plot(table["theta"], table[column], style, color=colour, label=name)
        axis.set(xlabel="ability", ylabel=label, xlim=(-4, 4), ylim=(0, None))
        if column == "standard_error":
            axis.set_ylim(0, 2)
        axis.legend(frameon=False)
    figure.suptitle(literal(title))
    return plain(figure)


def ability_by_level(ability: np.ndarray, levels: pd.DataFrame, title: str) -> Figure:
    """Box plots of ability by level, one panel per covariate.

    Args:
        ability: (J,) estimates.
        levels: from `irtjax.scale.groups.levels`, of the same subjects.
        title: of the figure.
    """
    number = levels.shape[1]
    rows = -(-number // 3)
    figure = Figure(figsize=(4.2 * min(number, 3), 3.6 * rows))
    axes = figure.subplots(rows, min(number, 3), squeeze=False, sharey=True).ravel()
    for axis, (name, column) in zip(axes, levels.items(), strict=False):
        names = [level for level in column.cat.categories if (column == level).any()][:MOST_BOXES]
        parts = [ability[(column == level).to_numpy()] for level in names]
        boxes = axis.boxplot(parts, patch_artist=True, widths=0.6, medianprops={"color": "black"})
        for box in boxes["boxes"]:
            box.set(facecolor=BLUE, alpha=0.35)
        labels = [f"{short(level, LONGEST_NAME)}\n({len(part)})" for level, part in zip(names, parts, strict=True)]
        axis.set_xticks(range(1, len(names) + 1), labels, rotation=45 if len(names) > FEW_BOXES else 0, fontsize=8)
        axis.set_title(literal(str(name)), fontsize=10)
    for axis in axes[::3]:
        axis.set_ylabel("ability")
    for axis in axes[number:]:
        axis.set_visible(False)
    figure.suptitle(literal(title))
    return plain(figure)


def ability_against_score(
    score: np.ndarray, ability: np.ndarray, expected: pd.DataFrame, title: str, what: str = "number right"
) -> Figure:
    """Ability of each subject against its number of right answers, with the mean ability given that number alone.

    Args:
        score: (J,) numbers of right answers, or sums of grades.
        ability: (J,) estimates.
        expected: from `irtjax.scale.information.score_table`.
        title: of the figure.
        what: a score is.
    """
    figure = Figure(figsize=(6, 4))
    axis = figure.subplots()
    jitter = np.random.default_rng(0).uniform(-0.25, 0.25, len(score))
    axis.plot(score + jitter, ability, ".", color=BLUE, alpha=0.35, markersize=5, markeredgewidth=0, label="subjects")
    axis.plot(expected["score"], expected["ability"], color=ORANGE, label=f"mean given the {what}")
    low, high = (expected["ability"] + sign * expected["ability_se"] for sign in (-1, 1))
    axis.fill_between(
        expected["score"], low, high, color=ORANGE, alpha=0.15, linewidth=0, label="± one standard deviation"
    )
    axis.set(title=literal(title), xlabel=what, ylabel="ability")
    axis.legend(frameon=False)
    return plain(figure)
