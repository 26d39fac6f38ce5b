"""What all pictures share: colours, axes, and how they are written to files."""

import functools
from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, findfont, get_font
from matplotlib.text import Text

from irtjax.errors import printable
from irtjax.storage.files import whole_file

# Okabe and Ito (2008): colour-blind readers can tell them apart too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000")

UNKNOWN = "□"
COLOUR_BAR = "<colorbar>"  # how Matplotlib labels the axes of one


def save_figure(figure: Figure, path: str | Path, dpi: int = 130) -> None:
    """Writes a figure as PNG."""
    with whole_file(path) as partial:
        FigureCanvasAgg(figure).print_figure(partial, dpi=dpi, bbox_inches="tight", metadata={"Software": None})


def line_styles(number: int) -> list[dict[str, Any]]:
    """One style per line: a colour, and dashes if there are more lines than colours."""
    return [
        {"color": COLOURS[at % len(COLOURS)], "linestyle": ("-", "--", ":")[at // len(COLOURS) % 3]}
        for at in range(number)
    ]


def literal(text: str) -> str:
    """A name as a picture shows it: on one line, and without the dollar signs that would start a formula."""
    return printable(text).replace("$", r"\$")


def short(name: str, most: int) -> str:
    """A name of so many characters at most, as `literal` shows it; an ellipsis stands for its middle.

    Names of one source mostly begin alike, and differ at the end.
    """
    end = (most - 1) // 2
    return literal(name if len(name) <= most else f"{name[: most - 1 - end]}…{name[-end:]}")


def plain(figure: Figure) -> Figure:
    """Removes the box around each axis, puts a faint grid behind it all, and says which characters cannot be drawn."""
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
        if axis.get_label() != COLOUR_BAR:  # whose lines would be drawn over its colours
            axis.grid(alpha=0.25)
            axis.set_axisbelow(True)  # bars would be crossed by it
    replaced = [text for text in figure.findobj(Text) if _replace_unknown(text)]
    if figure.get_layout_engine() is None:  # one that was chosen places colour bars too
        figure.tight_layout()
    if replaced:
        figure.text(0.005, 0, f"{UNKNOWN}: a character that the font lacks", fontsize=7, color="0.4", va="top")
    return figure


def _replace_unknown(text: Text) -> bool:
    """Puts a box in place of each character that the font lacks; whether there were any."""
    shown = "".join(character if ord(character) in _glyphs() else UNKNOWN for character in text.get_text())
    known = shown == text.get_text()
    if not known:
        text.set_text(shown)
    return not known


@functools.cache
def _glyphs() -> frozenset[int]:
    """Code points that the font of all texts has."""
    return frozenset(get_font(findfont(FontProperties())).get_charmap()) | {ord("\n")}
