r"""The published parameters of the scales of Lalor, Wu and Yu (2016), and ours of the same items.

  python -m benchmarks.published_scales --data_dir=DIR

`DIR` is the folder of the published responses to 180 SNLI pairs (`irt_file_4_coded.csv`, `group_4.txt` and those of
group 5). Fits the 2PL to the items of each scale that the study retained, and prints the least and the greatest
difficulty and slope beside the published ones, and the difficulty of the items that the dissertation shows as examples
(Lalor 2020, chapter 3). Expected duration: 10 seconds.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
import pandas as pd

import irtjax
from experiments.common import app
from experiments.common.path_flags import define_path

_DATA = define_path("data_dir", "folder of the published responses", required=True)


class Scale(NamedTuple):
    """Pairs of SNLI with one gold label, on which 4 or all 5 annotators agreed, and what the study says of them."""

    group: int
    label: str
    removed: frozenset[int]  # positions among the 30 items of this label, from 1
    published: tuple[float, float, float, float] | None = None  # least, greatest difficulty; least, greatest slope
    examples: Mapping[str, float] = MappingProxyType({})  # published difficulty of an item


SCALES = {
    "5GS contradiction": Scale(
        5, "contradiction", frozenset({9, 10, 11, 14, 19, 20, 22, 26, 28, 30}), (-2.765, 0.704, 0.846, 2.731)
    ),
    "5GS entailment": Scale(
        5, "entailment", frozenset({1, 22}), (-3.253, -1.898, 0.78, 2.61), {"3182490419.jpg#4r1e": -2.74}
    ),
    "5GS neutral": Scale(
        5, "neutral", frozenset({3, 7}), (-2.082, -0.555, 1.271, 3.598), {"7428276152.jpg#2r1n": -1.92}
    ),
    # Which 20 items the study retained is not published: ours are of all 30.
    "4GS contradiction": Scale(
        4, "contradiction", frozenset(), None, {"430292291.jpg#2r1c": 0.51, "2760167.jpg#4r1c": 0.08}
    ),
    "4GS neutral": Scale(4, "neutral", frozenset({17, 23}), (-2.148, 0.386, 1.133, 3.313)),
}


def estimates(folder: Path, scale: Scale) -> pd.DataFrame:
    """The items of a scale with their parameters by the 2PL, of the files in a folder."""
    responses = irtjax.read_responses(folder / f"irt_file_{scale.group}_coded.csv")
    gold = pd.read_csv(folder / f"group_{scale.group}.txt", sep=r"\s+", header=None, index_col=0)[1]
    of_label = np.flatnonzero(gold.loc[responses.item_ids] == scale.label)
    kept = np.delete(of_label, [position - 1 for position in scale.removed])
    return irtjax.fit(responses.choose_items(kept), "2pl").items()


def extremes(items: pd.DataFrame) -> tuple[float, float, float, float]:
    """Least and greatest difficulty, least and greatest slope."""
    b, a = items["difficulty"], items["discrimination"]
    return b.min(), b.max(), a.min(), a.max()


def main() -> None:
    """Fits the scales and prints both tables."""
    ranges, examples = [], []
    for name, scale in SCALES.items():
        items = estimates(Path(_DATA.value), scale)
        difficulty = items.set_index("item_id")["difficulty"]
        examples += [(name, item, value, difficulty[item]) for item, value in scale.examples.items()]
        if scale.published:
            ours = extremes(items)
            difference = max(np.abs(np.subtract(ours, scale.published)))
            ranges.append((name, len(items), _written(scale.published), _written(ours), difference))
    of_ranges = ["scale", "items", "published: difficulty, slope", "ours", "largest difference"]
    for rows, columns in ((ranges, of_ranges), (examples, ["scale", "item", "published: difficulty", "ours"])):
        print(pd.DataFrame(rows, columns=columns).round(3).to_string(index=False), end="\n\n")


def _written(four: tuple[float, float, float, float]) -> str:
    return "{:.3f} to {:.3f}, {:.3f} to {:.3f}".format(*four)


if __name__ == "__main__":
    app.run(main)
