"""The report on networks on the scales of people: abilities, percentiles, and how they go together with accuracy."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.reports import document, markdown
from irtjax import versions
from irtjax.plots.difficulty import against_each_other
from irtjax.plots.style import COLOURS, save_figure
from irtjax.storage.files import write_csv

FILES = (*document.FILES, "networks.csv", "networks.png")
LISTED = 12  # networks of a crowd that are listed one by one
QUANTILES = {"least": 0, "10%": 0.1, "median": 0.5, "90%": 0.9, "best": 1}


def write(table: pd.DataFrame, flags: dict[str, Any], directory: Path) -> None:
    """Writes the table, the picture and report.md."""
    write_csv(table, directory / "networks.csv")
    wide, crowds = together(table)
    groups = crowds if 2 <= crowds.nunique() <= len(COLOURS) else None
    title = f"{len(wide):,} networks: abilities (logits) and test accuracy"
    save_figure(against_each_other(wide, groups, title, "{}"), directory / "networks.png")
    parts = [
        "# Networks on the scales of people",
        abilities(table),
        agreement(wide),
        "![Abilities on each scale and test accuracy against each other](networks.png)",
        document.provenance(flags, versions()),
    ]
    document.write(parts, directory)


def together(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """One row per network: its ability on each scale and its test accuracy; and the crowd that it is of."""
    wide = table.pivot(index=["crowd", "subject_id"], columns="scale", values="ability")[list(table.scale.unique())]
    wide.columns = [f"ability, {scale}" for scale in wide]
    accuracy = table.drop_duplicates(["crowd", "subject_id"]).set_index(["crowd", "subject_id"]).accuracy_test
    wide["test accuracy"] = accuracy
    crowds = pd.Series(wide.index.get_level_values("crowd"), wide.index)
    return wide.reset_index(drop=True), crowds.reset_index(drop=True)


def abilities(table: pd.DataFrame) -> str:
    """One row per network and scale, or per quantile of test accuracy of a large crowd."""
    rows = pd.concat([_shown(group) for _, group in table.groupby(["crowd", "scale"], sort=False)])
    shares = [name for name in rows if name.startswith("accuracy_")]
    columns = {
        "crowd": "{crowd!i}",
        "network": "{shown!i}",
        "scale": "{scale!i}",
        "items answered": "{answered:,} of {items:,}",
        "ability ± standard error": "{ability:.2f} ± {ability_se:.2f}",
        "percentile, people": "{percentile_people:.1f}",
        "percentile, normal": "{percentile_normal:.1f}",
        "right of these (%)": "{accuracy_scale:.1f}",
        "of all extra items": "{accuracy_extra:.1f}" if "accuracy_extra" in shares else "",
        "of the test split": "{accuracy_test:.1f}",
    }
    return f"""## Abilities

Abilities in logits, on the scale of its items. Percentiles are among the people of the scale, where their abilities are
known, and in a standard normal population. Of a crowd of more than {LISTED} networks those at quantiles of the test
accuracy are shown; `networks.csv` has all.

{markdown.table_of(rows.assign(**100 * rows[shares]), columns)}"""


def _shown(group: pd.DataFrame) -> pd.DataFrame:
    if len(group) <= LISTED:
        return group.assign(shown=group.subject_id)
    ranked = group.sort_values("accuracy_test", kind="stable")
    places = [round(share * (len(group) - 1)) for share in QUANTILES.values()]
    return ranked.iloc[places].assign(shown=list(QUANTILES))


def agreement(wide: pd.DataFrame) -> str:
    """Rank correlations of abilities with each other and with accuracy."""
    correlation = wide.corr("spearman")
    rows = [
        [markdown.inline(one), *("" if np.isnan(value) else f"{value:.2f}" for value in correlation.loc[one])]
        for one in correlation
    ]
    return f"""## Correlations

Spearman's correlation over the {len(wide):,} networks.

{markdown.table(["", *map(markdown.inline, correlation)], rows)}"""
