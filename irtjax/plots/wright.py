"""Wright maps: abilities of subjects and difficulties of items on one scale."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.figure import Figure

from irtjax.plots.style import COLOURS, literal, plain, short

BIN = 0.25  # logits
MOST_NAMES = 60
MOST_SUBJECTS = 40
LONGEST_NAME = 24
BLUE, ORANGE = COLOURS[:2]


def wright_map(
    ability: np.ndarray,
    difficulty: np.ndarray,
    names: Sequence[str],
    title: str,
    subjects: Sequence[str] = (),
    extreme: np.ndarray | None = None,
    what: str = "items",
) -> Figure:
    """Abilities of subjects and difficulties of items on one scale (Wright and Stone 1979).

    Up to 60 items and 40 subjects are named, more are counted.

    Args:
        ability: (J,) in logits.
        difficulty: (I,) in logits.
        names: (I,) of the items.
        title: of the figure.
        subjects: (J,) names; none to count subjects however few.
        extreme: (I,) 1 for items that nobody answered right, -1 for those that everybody did, else 0: a count of items
            tells them apart, as their difficulties are a matter of the prior.
        what: the difficulties are of.
    """
    low, high = min(ability.min(), difficulty.min(), -3), max(ability.max(), difficulty.max(), 3)
    bins = np.arange(np.floor(low), high + BIN, BIN)
    subjects = subjects if len(subjects) <= MOST_SUBJECTS else ()
    names = names if len(names) <= MOST_NAMES else ()
    widths = _width(ability, bins, subjects), _width(difficulty, bins, names)
    figure = Figure(figsize=(1.2 + sum(widths), 1.1 + 0.2 * len(bins)))
    left, right = figure.subplots(1, 2, sharey=True, width_ratios=widths)
    left.set(title="subjects", ylabel="ability and difficulty (logits)", xlabel="number")
    right.set(title=what, xlabel="number")
    if subjects:
        _name(left, ability, bins, subjects, BLUE, "right")
    else:
        left.hist(ability, bins=bins, orientation="horizontal", color=BLUE, alpha=0.8)
    left.invert_xaxis()
    if names:
        _name(right, difficulty, bins, names, ORANGE, "left")
    else:
        _count(right, difficulty, bins, extreme)
    figure.suptitle(literal(title))
    return plain(figure)


def _places(values: np.ndarray, bins: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The bin of each value, and its place among those of the bin, ascending: in rows, names do not overlap."""
    level = np.digitize(values, bins) - 1
    order = np.argsort(values, kind="stable")
    place = np.zeros(len(values), int)
    for row in np.unique(level):
        members = order[level[order] == row]
        place[members] = np.arange(len(members))
    return level, place


def _width(values: np.ndarray, bins: np.ndarray, names: Sequence[str]) -> float:
    """Inches that names need side by side; of a histogram without names."""
    if not names:
        return 2.8
    longest = max(min(len(name), LONGEST_NAME) for name in names)
    return max((0.25 + 0.065 * longest) * (_places(values, bins)[1].max() + 1), 1.6)


def _name(axis: Axes, values: np.ndarray, bins: np.ndarray, names: Sequence[str], colour: str, side: str) -> None:
    """The names in the rows of their values, from one side on."""
    level, place = _places(values, bins)
    for x, row, name in zip(place, level, names, strict=True):
        shown = short(name, LONGEST_NAME)
        axis.text(x + 0.05, bins[row] + BIN / 2, shown, fontsize=8, va="center", ha=side, color=colour)
    axis.set(xlim=(0, place.max() + 1), xticks=[], xlabel="")


def _count(axis: Axes, difficulty: np.ndarray, bins: np.ndarray, extreme: np.ndarray | None) -> None:
    """Numbers of items by difficulty, those that everybody or nobody answered right in paler colours."""
    extreme = np.zeros(len(difficulty)) if extreme is None else extreme
    kinds = ((0, "", 0.85), (1, "nobody right", 0.45), (-1, "everybody right", 0.25))
    shown = [(difficulty[extreme == kind], label, alpha) for kind, label, alpha in kinds if (extreme == kind).any()]
    axis.hist(
        [values for values, *_ in shown],
        bins=bins.tolist(),
        orientation="horizontal",
        stacked=True,
        color=[to_rgba(ORANGE, alpha) for *_, alpha in shown],
        label=[f"{label} ({len(values):,})" if label else "items" for values, label, _ in shown],
    )
    if len(shown) > 1:
        axis.legend(frameon=False, fontsize=8)
