"""The report of a comparison of difficulties: agreement, a picture, and the items that sources disagree on."""

import itertools
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.reports import document, markdown
from irtjax import versions
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
    save_figure(against_each_other(table, labels if grouped else None, title), directory / "difficulty.png")
    verdicts = [
        f"{row.one} and {row.other}: Spearman {_with_limits(row.spearman, row.low, row.high)} over {row.items:,} items"
        for row in rows[rows.group == ALL].itertuples()
    ]
    parts = [
        "# Who finds which items hard?",
        "\n".join(f"* {markdown.inline(verdict)}" for verdict in verdicts),
        sources(compared),
        agreement_section(rows),
        "## Difficulty against difficulty\n\n![Difficulties of each two sources](difficulty.png)",
        *(disagreement(compared, pair, flags["shown"]) for pair in itertools.combinations(table, 2)),
        *(extremes(compared, name) for name in table),
        document.provenance(flags, versions()),
    ]
    document.write(parts, directory)
    return "\n".join(verdicts)


def sources(compared: Compared) -> str:
    """The tables of sources: of their items, and of their subjects."""
    rows = compared.table.agg(["mean", "std"]).T.reset_index(names="name")
    rows = rows.assign(size=rows.name.map(compared.sizes), reliability=rows.name.map(compared.reliabilities))
    columns = {
        "source": "{name!i}",
        "items": "{size:,}",
        "mean difficulty": "{mean:.2f}",
        "standard deviation": "{std:.2f}",
        "split-half reliability": "{reliability:.3f}",
    }
    return f"""## Sources

{len(compared.table):,} items are in all of them. Means and standard deviations are of these, in logits, each on the
scale of its own source. Reliability is the rank correlation of difficulties from two halves of the subjects, raised to
the length of the whole (Spearman and Brown: 2r / (1 + r)).

{markdown.table_of(rows, columns)}{_subjects(compared)}"""


def _subjects(compared: Compared) -> str:
    if not compared.abilities:
        return ""
    rows = [
        [
            markdown.inline(name),
            f"{ability.size:,}",
            f"{ability.std(ddof=1):.2f}",
            *(f"{value:.2f}" for value in np.percentile(ability, (0, 10, 50, 90, 100))),
            f"{(compared.table[name] < ability.max()).mean():.1%}",
        ]
        for name, ability in compared.abilities.items()
    ]
    header = ["source", "subjects", "standard deviation", "least", "10%", "median", "90%", "greatest", "items below it"]
    return f"""

Abilities of the subjects, on the same scales. An item below the greatest ability is one that the most able subject is
more likely to answer right than wrong. Where many items are above it, these are hard for all, and hard to tell apart.

{markdown.table(header, rows)}"""


def agreement_section(rows: pd.DataFrame) -> str:
    """The table of pairs."""
    columns = {
        "sources": lambda row: markdown.inline(f"{row['one']} and {row['other']}"),
        "label": "{group!i}",
        "items": "{items:,}",
        "Spearman": lambda row: _with_limits(row["spearman"], row["low"], row["high"]),
        "disattenuated": "{disattenuated:.3f}",
        "mean rank difference": "{rank_difference:,.1f}",
        "random": "{random_rank_difference:,.1f}",
    }
    return f"""## Agreement

Spearman's rank correlation of the difficulties, with its 95% interval by the bootstrap over items. Disattenuated is
what it would be without the sampling error of either source: divided by the root of the product of the reliabilities.
The mean absolute difference of ranks stands beside what random ranks would have.

{markdown.table_of(rows, columns)}"""


def disagreement(compared: Compared, pair: tuple[str, str], shown: int) -> str:
    """The items that are harder for one source than for the other, by ranks, in both directions."""
    one, other = pair
    ranks = compared.table[list(pair)].rank()
    apart = (ranks[one] - ranks[other]).sort_values(kind="stable")
    parts = [f"## {markdown.inline(one)} against {markdown.inline(other)}: where they disagree most"]
    for harder, easier, ids in ((one, other, apart.index[::-1]), (other, one, apart.index)):
        ids = [item for item in ids[:shown] if ranks[harder][item] > ranks[easier][item]]
        columns = {f"rank, {name}": [f"{ranks[name][item]:,.0f}" for item in ids] for name in pair}
        if ids:
            parts.append(f"Harder for {markdown.inline(harder)}. Ranks run from 1, the easiest, to {len(ranks):,}.")
            parts.append(_items(compared, ids, columns))
    return "\n\n".join(parts)


def extremes(compared: Compared, source: str) -> str:
    """The easiest and the hardest items of each label, for one source."""
    difficulty = compared.table[source].sort_values(kind="stable")
    labels = compared.texts.get("label", pd.Series("", compared.table.index)).reindex(difficulty.index)
    ids: list[str] = []
    for label in sorted(labels.dropna().unique()):
        some = difficulty.index[labels == label]
        ids += dict.fromkeys([*some[:EXTREME], *some[::-1][:EXTREME][::-1]])
    of_each = " of each label" if labels.nunique() > 1 else ""
    columns = {"difficulty": [f"{difficulty[item]:.2f}" for item in ids]}
    return f"## {markdown.inline(source)}: the easiest and the hardest{of_each}\n\n" + _items(compared, ids, columns)


def _items(compared: Compared, ids: list[str], columns: dict[str, list[str]]) -> str:
    """A table of items: id, label and text as far as they are known, and further columns."""
    about = compared.texts.loc[ids]
    known = {name: [_text(cell) for cell in about[name]] for name in about}
    every = {"item": [markdown.inline(item) for item in ids], **columns, **known}
    return markdown.table(list(map(markdown.inline, every)), zip(*every.values(), strict=True))


def _text(cell: object) -> str:
    text = "" if pd.isna(cell) else str(cell)
    return markdown.inline(text if len(text) <= LONGEST else text[: LONGEST - 1] + "…")


def _with_limits(value: float, low: float, high: float) -> str:
    if np.isnan(value):
        return "none: one source has all equal"
    return f"{value:.3f}" if np.isnan(low) else f"{value:.3f} ({low:.3f} to {high:.3f})"
