"""Draws the pictures of the docs that no experiment makes: curves, the flow, the rooms, and tables of results.

Run it from the root of the repository: `python docs/make_pictures.py`. It writes docs/images/{one_pl,models,flow,rooms,
filtering_*,forest_*}.svg. The rooms are drawn from the imports that are really there, the results of filtering and of
curricula from docs/results/{filtering,curriculum}.csv.
"""

import ast
import functools
from collections.abc import Callable, Iterator
from pathlib import Path

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

from irtjax.plots import curricula
from irtjax.plots.filtering import accuracy_dots

DOCS = Path(__file__).parent
LIBRARY = DOCS.parent / "irtjax"
BLUE, ORANGE, GREEN, GREY = "#0072b2", "#d55e00", "#009e73", "#555555"
PALE_BLUE, PALE_ORANGE, PALE_GREEN, PALE_GREY = "#e3f0f8", "#fbe9dd", "#dff3ec", "#f1f1f1"
THETA = np.linspace(-4, 4, 161)

Point = tuple[float, float]


def sigmoid(x: np.ndarray | float) -> np.ndarray | float:
    """The logistic function σ."""
    return 1 / (1 + np.exp(-x))


def one_pl() -> Figure:
    """Curves of three items of the 1PL, and what one subject's chances at them are."""
    figure = Figure(figsize=(7.2, 4.4))
    axis = figure.subplots()
    ability = 0.5
    axis.axvline(ability, color=GREY, linewidth=1, linestyle="--")
    axis.text(ability + 0.1, 1.05, "a subject of ability θ = 0.5", color=GREY, fontsize=10, va="center")
    for difficulty, name, colour in ((-1, "easy item", GREEN), (0.5, "medium item", BLUE), (2, "hard item", ORANGE)):
        chance = sigmoid(ability - difficulty)
        axis.plot(THETA, sigmoid(THETA - difficulty), color=colour, linewidth=2, label=f"{name}, b = {difficulty:g}")
        axis.plot([ability], [chance], "o", color=colour)
        text = f"θ - b = {ability - difficulty:+g}: {100 * chance:.0f}%".replace("+0:", "0:")
        label = axis.annotate(text, (ability, chance), (9, -14), textcoords="offset points", color=colour, fontsize=10)
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1})
    axis.set(xlim=(-4, 4), ylim=(0, 1.1), yticks=[0, 0.25, 0.5, 0.75, 1])
    axis.set(xlabel="ability θ in logits", ylabel="probability of a right answer, σ(θ - b)")
    axis.legend(frameon=False, loc="upper left")
    return _plain(figure)


def models() -> Figure:
    """What difficulty, discrimination and the asymptotes do to a curve, one panel for each."""
    figure = Figure(figsize=(9.6, 3.1))
    panels = {
        "1PL: difficulty b moves it": {"b = -1": (-1, 1, 0, 1), "b = 0": (0, 1, 0, 1), "b = 1": (1, 1, 0, 1)},
        "2PL: discrimination a tilts it": {"a = 0.5": (0, 0.5, 0, 1), "a = 1": (0, 1, 0, 1), "a = 2.5": (0, 2.5, 0, 1)},
        "3PL, 4PL: asymptotes c and d": {
            "c = 0, d = 1": (0, 1.5, 0, 1), "c = 0.25": (0, 1.5, 0.25, 1), "d = 0.9": (0, 1.5, 0, 0.9)
        },
    }  # fmt: skip
    for axis, (title, curves) in zip(figure.subplots(1, 3, sharey=True), panels.items(), strict=True):
        for (label, (b, a, c, d)), colour in zip(curves.items(), (GREEN, BLUE, ORANGE), strict=True):
            axis.plot(THETA, c + (d - c) * sigmoid(a * (THETA - b)), color=colour, linewidth=2, label=label)
        axis.set_title(title, fontsize=11)
        axis.set(xlim=(-4, 4), ylim=(-0.02, 1.02), xlabel="ability θ", yticks=[0, 0.5, 1])
        axis.legend(frameon=False, fontsize=9, loc="upper left")
    figure.axes[0].set_ylabel("probability of a right answer")
    return _plain(figure)


def flow() -> Figure:
    """From data to difficulties and abilities, and what they are good for."""
    figure, axis = _canvas(11.2, 5.9)
    left, right, joined = (PALE_ORANGE, ORANGE), (PALE_BLUE, BLUE), (PALE_GREEN, GREEN)
    boxes = {
        "tasks": ((1.5, 5.0), "data sets as arrays", left),
        "networks": ((4.2, 5.0), "pure functions", left),
        "training": ((6.9, 5.0), "many at once", left),
        "crowd": ((9.6, 5.0), "all answer every example", left),
        "people": ((1.5, 3.6), "or a file of answers", (PALE_GREY, GREY)),
        "responses": ((5.1, 3.6), "subjects × items: 1, 0 or missing", right),
        "estimation": ((9.0, 3.6), "fits the curves σ(a (θ - b))", right),
        "items": ((5.1, 2.2), "their difficulties b", right),
        "abilities": ((9.0, 2.2), "of the subjects, θ", right),
        "scale": ((1.65, 0.8), "which items measure well?", right),
        "selection": ((5.1, 0.8), "which examples to train on, and when?", joined),
        "evaluation": ((9.0, 0.8), "a model's score from a few items", right),
    }
    arrows = (
        ("tasks", "networks"), ("networks", "training"), ("training", "crowd"), ("crowd", "responses"),
        ("people", "responses"), ("responses", "estimation"), ("estimation", "items"), ("estimation", "abilities"),
        ("items", "scale"), ("items", "selection"), ("items", "evaluation"), ("abilities", "evaluation"),
    )  # fmt: skip
    wide = {"responses": 2.9, "estimation": 2.7, "scale": 2.5, "selection": 3.4, "evaluation": 2.9}
    patches = {
        name: _box(axis, where, (wide.get(name, 2.2), 0.78), name, text, colours)
        for name, (where, text, colours) in boxes.items()
    }
    for start, end in arrows:
        _arrow(axis, boxes[start][0], boxes[end][0], patches[start], patches[end])
    axis.text(0.4, 5.56, "knows nothing of item response theory", color=ORANGE, fontsize=10)
    axis.text(0.4, 2.15, "does not care who answered", color=BLUE, fontsize=10)
    axis.text(5.1, 0.14, "joins both sides: trains networks by difficulty", color=GREEN, fontsize=10, ha="center")
    return figure


# Where a room stands from left to right, and its colours; one that is not named stands in the middle.
COLUMNS = {
    "tasks": 0, "networks": 0, "training": 0, "crowd": 0, "pretrained": 0, "storage": 0, "arguments": 1, "joint": 1,
    "synthetic": 0.5,
    "tensorboard": 2.4, "soft_labels": 2, "responses": 1.8, "processes": 2, "evaluation": 1.8, "selection": 1.5,
    "plots": 2.2, "scale": 3, "comparison": 3, "fitting": 3, "explanatory": 3, "estimation": 3, "integration": 2.4,
    "item_models": 3, "kernels": 3, "fits": 3, "scoring": 3, "svi": 2.4,
}  # fmt: skip
SIDES = (
    dict.fromkeys(("tasks", "networks", "training", "crowd"), (PALE_ORANGE, ORANGE))
    | dict.fromkeys(
        (
            "responses",
            "kernels",
            "item_models",
            "integration",
            "fits",
            "scoring",
            "estimation",
            "svi",
            "explanatory",
            "fitting",
            "comparison",
            "scale",
        ),
        (PALE_BLUE, BLUE),
    )
    | {"selection": (PALE_GREEN, GREEN)}
)


def imports(library: Path = LIBRARY) -> dict[str, set[str]]:
    """For each room (a folder, or a module at the top) of the library, the other rooms that it imports."""
    graph: dict[str, set[str]] = {}
    for path in sorted(library.rglob("*.py")):
        room = path.relative_to(library).parts[0].removesuffix(".py")
        if room != "__init__":  # the package's face takes from every room
            found = {name for name in _imported(path, library) if name != room}
            graph.setdefault(room, set()).update(found)
    return graph


def _imported(path: Path, library: Path) -> Iterator[str]:
    """Rooms named in the imports of a module, those within functions too."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            parts = name.split(".")
            if parts[0] == library.name and len(parts) > 1:
                yield parts[1]


def floors(graph: dict[str, set[str]]) -> dict[str, int]:
    """A room stands one floor above the highest of those that it imports; an import in a circle is an error."""
    found: dict[str, int] = {}

    def floor(room: str, above: tuple[str, ...]) -> int:
        if room in above:
            raise SystemExit(f"imports in a circle: {' -> '.join([*above, room])}")
        if room not in found:
            found[room] = 1 + max((floor(below, (*above, room)) for below in graph[room]), default=-1)
        return found[room]

    for room in graph:
        floor(room, ())
    return found


def not_implied(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without arrows that longer ways already imply."""

    def reached(room: str) -> set[str]:
        return graph[room].union(*map(reached, graph[room]))

    return {room: below - set().union(*map(reached, below)) for room, below in graph.items()}


def apart(places: list[float], least: float, most: float) -> list[float]:
    """Ascending places, moved as little to the right as keeps the least distance, and back from what lies beyond."""
    for at in range(1, len(places)):
        places[at] = max(places[at], places[at - 1] + least)
    for at in reversed(range(len(places))):
        places[at] = min(places[at], most - least * (len(places) - 1 - at))
    return places


def rooms() -> Figure:
    """The rooms of the library by floor, with the imports that no other way implies."""
    graph = imports()
    level = floors(graph)
    ground = sorted(room for room, floor in level.items() if floor == 0)
    graph = {room: below - set(ground) for room, below in graph.items() if room not in ground}
    height = 1.15
    top = max(level.values())
    figure, axis = _canvas(11.4, height * (top + 1) + 0.05)
    for floor in range(top + 1):
        axis.axhspan(
            height * floor + 0.1, height * (floor + 1) - 0.05, color="#fafafa" if floor % 2 else "#f1f3f5", zorder=0
        )
        axis.text(0.1, height * (floor + 0.5), str(floor), color="#999999", fontsize=11, va="center")
    where, wide = {}, {}
    for floor in set(level.values()):
        beside = sorted((room for room in graph if level[room] == floor), key=lambda room: COLUMNS.get(room, 1.5))
        least = min(2.5, (9.7 - 1.75) / max(1, len(beside) - 1))
        across = apart([1.75 + 2.65 * COLUMNS.get(room, 1.5) for room in beside], least, 9.7)
        where |= {room: (x, height * (floor + 0.5)) for room, x in zip(beside, across, strict=True)}
        wide |= dict.fromkeys(beside, least - 0.2)
    patches = {}
    for room, at in where.items():
        patches[room] = _box(axis, at, (wide[room], 0.66), room, None, SIDES.get(room, ("white", GREY)))
    for room, below in not_implied(graph).items():
        for other in sorted(below):
            _arrow(axis, where[room], where[other], patches[room], patches[other])
    _box(axis, (5.75, height * 0.5), (10.3, 0.66), "        ".join(ground), None, ("white", GREY))
    axis.text(10.7, height * 0.5, "for every room", color=GREY, fontsize=10, ha="right", va="center", zorder=5)
    return figure


# `data` in docs/results/filtering.csv, and what the picture calls it.
FILTERING = {
    "sst2": "SST-2",
    "snli": "SNLI",
    "mnist": "MNIST",
    "cifar10": "CIFAR-10",
    "sst2_frozen": "SST-2, a head on frozen vectors",
    "snli_frozen": "SNLI, a head on frozen vectors",
}
# Names of pictures, and their `data` in docs/results/curriculum.csv.
CURRICULA = {
    "sst2": "sst2",
    "sst2_study": "sst2_study",
    "sst2_study_20k": "sst2_study_20k",
    "snli": "snli",
    "snli_study": "snli_study",
    "mnist_study": "mnist_study",
    "cifar10": "cifar10",
    "cifar10_lenet": "cifar10_lenet",
    "frozen": "sst2_frozen",
    "bert": "sst2_finetuned",
}


def filtering(data: str, name: str) -> Figure:
    """Test accuracy of each strategy by the share of data kept, of one set of data in docs/results/filtering.csv."""
    rows = pd.read_csv(DOCS / "results" / "filtering.csv").query("data == @data")
    columns = {"share": rows.percent_kept / 100, "mean": rows.accuracy / 100, "half": rows.half_interval / 100}
    table = rows[["strategy"]].assign(**columns)
    table = table.sort_values("strategy", key=lambda names: names.map(ORDER.index), kind="stable")
    return accuracy_dots(table, f"{name}: which examples to train on?")


# Those that keep similar examples stand together. AVI and AVO are around the mean difficulty where nothing else stands.
CENTRES = ("", ", median", ", midpoint", ", ability")
ORDER = ["random", *(f"AVI{centre}" for centre in CENTRES), "UB", "PCLB", *(f"AVO{c}" for c in CENTRES), "LB", "PCUB"]


def forest(data: str) -> Figure:
    """Curricula against the baseline, of one set of data in docs/results/curriculum.csv."""
    rows = pd.read_csv(DOCS / "results" / "curriculum.csv").query("data == @data").dropna(axis=1, how="all")
    counts = {name: int for name in ("reached", "seeds") if name in rows}
    return curricula.forest(rows.astype(counts))


def _canvas(width: float, height: float) -> tuple[Figure, Axes]:
    """An empty picture, a unit being an inch."""
    figure = Figure(figsize=(width, height))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, width), ylim=(0, height))
    axis.axis("off")
    return figure, axis


def _box(
    axis: Axes, middle: Point, size: Point, name: str, text: str | None, colours: tuple[str, str]
) -> FancyBboxPatch:
    fill, edge = colours
    corner = middle[0] - size[0] / 2, middle[1] - size[1] / 2
    box = FancyBboxPatch(
        corner, *size, boxstyle="round,pad=0,rounding_size=0.12", facecolor=fill, edgecolor=edge, zorder=3
    )
    axis.add_patch(box)
    lines = 0 if text is None else 1 + text.count("\n")
    axis.text(middle[0], middle[1] + 0.1 * lines, name, ha="center", va="center", weight="bold", fontsize=12, zorder=4)
    if text is not None:
        axis.text(middle[0], middle[1] - 0.19, text, ha="center", va="center", fontsize=9, zorder=4, linespacing=1.1)
    return box


def _arrow(axis: Axes, start: Point, end: Point, from_box: FancyBboxPatch, to_box: FancyBboxPatch) -> None:
    axis.add_patch(
        FancyArrowPatch(
            start, end, patchA=from_box, patchB=to_box, arrowstyle="-|>", mutation_scale=13, color="#444444",
            linewidth=1.2, shrinkA=2, shrinkB=2, zorder=2,
        )
    )  # fmt: skip


def _plain(figure: Figure) -> Figure:
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def main() -> None:
    """Draws and saves them; the same bytes for the same code and imports."""
    matplotlib.rcParams.update({"svg.hashsalt": "irtjax", "font.family": "DejaVu Sans"})
    pictures: dict[str, Callable[[], Figure]] = {draw.__name__: draw for draw in (one_pl, models, flow, rooms)}
    for data, name in FILTERING.items():
        pictures[f"filtering_{data}"] = functools.partial(filtering, data, name)
    for name, data in CURRICULA.items():
        pictures[f"forest_{name}"] = functools.partial(forest, data)
    for name, draw in pictures.items():
        draw().savefig(DOCS / "images" / f"{name}.svg", metadata={"Date": None}, facecolor="white")


if __name__ == "__main__":
    main()
