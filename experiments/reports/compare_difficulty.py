"""The report of a comparison of difficulties: agreement, a picture, and the items that sources disagree on."""

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.reports import document, markdown
from irtjax.comparison.rank_agreement import ALL, agreement_table
from irtjax.plots.difficulty import against_each_other
from irtjax.plots.style import COLOURS, save_figure
from irtjax.storage.files import write_csv

FILES = (*document.FILES, "agreement.csv", "difficulty.csv", "difficulty.png")
LONGEST = 120  # characters of a text in a table
EXTREME = 3  # easiest and hardest items of a class


class Compared(NamedTuple):
    """Difficulties of the same items from several sources.

    Attributes:
        table: one row per item, one column of logits per source; the index is the item id.
        texts: `label` and `text` of these items, where they are known.
        reliabilities: of each source; NaN where it is not known.
        sizes: number of items of each source, joined or not.
        abilities: of the subjects of each source, in its logits; none of sources whose responses are not known.
    """

    table: pd.DataFrame
    texts: pd.DataFrame
    reliabilities: dict[str, float]
    sizes: dict[str, int]
    abilities: dict[str, np.ndarray]


def write(compared: Compared, flags: dict[str, Any], directory: Path) -> str:
    """Writes the tables, the picture and report.md; returns one line per pair of sources."""
    table, texts = compared.table, compared.texts
    rows = agreement_table(table, texts.get("label"), compared.reliabilities, flags["seed"])
    write_csv(rows, directory / "agreement.csv")
    labels = texts["label"] if "label" in texts else pd.Series(np.nan, texts.index)
    grouped = 2 <= labels.nunique() <= len(COLOURS)
    write_csv(pd.concat([table, texts], axis=1).reset_index(names="item_id"), directory / "difficulty.csv")
    title = f"Difficulty of {len(table):,} items"
    picture = against_each_other(table, labels if grouped else None, title, first=True)
    save_figure(picture, directory / "difficulty.png")
    values = {
        "num_items": len(table),
        "agreement": rows.assign(
            pair=rows.one + " and " + rows.other,
            spearman=list(map(markdown.Limits, rows.spearman, rows.low, rows.high)),
        ),
        "all": ALL,
        "sources": table.agg(["mean", "std"]).T.assign(
            size=pd.Series(compared.sizes), reliability=pd.Series(compared.reliabilities)
        ),
        "abilities": abilities(compared),
        "disagreements": {pair: disagreement(compared, pair, flags["shown"]) for pair in combinations(table, 2)},
        "extremes": {name: extremes(compared, name) for name in table},
        "by_label": labels.nunique() > 1,
        "flags": flags,
    }
    return "\n".join(document.write("compare_difficulty", values, directory))


def abilities(compared: Compared) -> pd.DataFrame:
    """How abilities of each source's subjects are distributed, and the share of items below the greatest."""
    rows = {name: pd.Series(ability).describe([0.1, 0.5, 0.9]) for name, ability in compared.abilities.items()}
    below = {name: (compared.table[name] < ability.max()).mean() for name, ability in compared.abilities.items()}
    return pd.DataFrame(rows).T.assign(below=pd.Series(below))


def disagreement(compared: Compared, pair: tuple[str, str], shown: int) -> dict[str, pd.DataFrame]:
    """The items that are harder for one source than for the other, by ranks, in both directions."""
    one, other = pair
    ranks = compared.table[list(pair)].rank()
    apart = (ranks[one] - ranks[other]).sort_values(kind="stable")
    found = {}
    for harder, ids in ((one, apart.index[apart > 0][::-1][:shown]), (other, apart.index[apart < 0][:shown])):
        of_both = ranks.loc[ids].map("{:,.0f}".format).add_prefix("rank, ")
        found[harder] = of_both.join(_texts(compared, ids))
    return found


def extremes(compared: Compared, source: str) -> pd.DataFrame:
    """The easiest and the hardest items of each label, for one source."""
    difficulty = compared.table[source].sort_values(kind="stable")
    labels = compared.texts.get("label", pd.Series("", compared.table.index)).reindex(difficulty.index)
    ids: list[str] = []
    for label in sorted(labels.dropna().unique()):
        some = difficulty.index[labels == label]
        ids += dict.fromkeys([*some[:EXTREME], *some[::-1][:EXTREME][::-1]])
    return pd.DataFrame({"difficulty": difficulty[ids]}).join(_texts(compared, ids))


def _texts(compared: Compared, ids: Sequence[str]) -> pd.DataFrame:
    """The labels and texts of items, as far as they are known; long ones cut."""
    about = compared.texts.loc[ids].fillna("").astype(str)
    return about.map(lambda text: text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")
