"""What all pictures share: colours, axes, and how they are written to files."""

from pathlib import Path
from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from irtjax.storage.files import whole_file

# Okabe and Ito (2008): colour-blind readers can tell them apart too.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F", "#000000")


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


def plain(figure: Figure) -> Figure:
    """Removes the box around each axis and adds a faint grid."""
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(alpha=0.25)
    figure.tight_layout()
    return figure
