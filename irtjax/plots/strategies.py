"""How each strategy of filtering and of curricula looks: the same in every picture, so that colours can be learned."""

from collections.abc import Iterable
from typing import NamedTuple

from matplotlib.axes import Axes

from irtjax.plots.style import COLOURS, literal
from irtjax.selection.choices import NO_EFFECT

BLUE, VERMILLION, GREEN, PINK, ORANGE, SKY, GREY, BLACK = COLOURS


class Look(NamedTuple):
    """Of a strategy, by the names of matplotlib's arguments: `axis.plot(x, y, **look(name)._asdict())`."""

    color: str
    marker: str
    linestyle: str = "-"


# What others are compared with is black or grey. Strategies that choose nearly the same examples have one colour: those
# by percent correct that of their counterpart by difficulty, with gaps in the line, which would hide it otherwise.
LOOKS = {
    "baseline": Look(BLACK, "o"),
    NO_EFFECT: Look(GREY, "s", "--"),
    "random": Look(GREY, "s", "--"),
    "DDaCLAE": Look(BLUE, "D"),
    "DDaCLAE-hard": Look(SKY, "d"),
    "window": Look(GREEN, "P"),
    "CB-linear": Look(ORANGE, "^"),
    "CB-root": Look(VERMILLION, "v"),
    "CB-linear-average": Look(ORANGE, "p", "--"),
    "CB-root-average": Look(VERMILLION, "h", "--"),
    "CB-linear-length": Look(ORANGE, "<", ":"),
    "CB-root-length": Look(VERMILLION, ">", ":"),
    "AVI": Look(BLUE, "D"),
    "AVI, median": Look(SKY, "d"),
    "AVI, midpoint": Look(BLUE, "p", ":"),
    "AVI, ability": Look(SKY, "h", ":"),
    "AVO": Look(GREEN, "P"),
    "AVO, median": Look(GREEN, "X", "--"),
    "AVO, midpoint": Look(GREEN, "p", ":"),
    "AVO, ability": Look(GREEN, "h", ":"),
    "UB": Look(ORANGE, "v"),
    "PCLB": Look(ORANGE, "<", ":"),
    "LB": Look(VERMILLION, "^"),
    "PCUB": Look(VERMILLION, ">", ":"),
}
_OTHERS = tuple(Look(PINK, marker, line) for line in ("-", "--", ":", "-.") for marker in ("o", "*", "<", ">"))


def looks(strategies: Iterable[str]) -> dict[str, Look]:
    """The look of each strategy; those that have none of their own are pink, and differ in line and marker."""
    names = list(strategies)
    others = [name for name in names if name not in LOOKS]
    return {name: LOOKS.get(name) or _OTHERS[others.index(name) % len(_OTHERS)] for name in names}


def shown(strategy: str) -> str:
    """The name of a strategy in a legend."""
    return f"{strategy} (null control)" if strategy == NO_EFFECT else literal(strategy)


def dot(axis: Axes, row: float, value: float, low: float, high: float, style: Look) -> None:
    """A value and its interval, in a row of their own."""
    axis.plot([low, high], [row, row], color=style.color, linewidth=1.8, solid_capstyle="butt")
    axis.plot([value], [row], **style._asdict() | {"linestyle": "none"}, markersize=6.5)
