"""The report on networks on the scales of people: abilities, percentiles, and how they go together with accuracy."""

from pathlib import Path
from typing import Any

import pandas as pd

from experiments.reports import document
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
    shown = pd.concat([_shown(group) for _, group in table.groupby(["crowd", "scale"], sort=False)])
    shares = shown.filter(regex="^accuracy_").reindex(columns=["accuracy_scale", "accuracy_extra", "accuracy_test"])
    values = {
        "listed": LISTED,
        "abilities": shown.assign(**100 * shares),
        "num_networks": len(wide),
        "correlations": wide.corr("spearman"),
        "flags": flags,
    }
    document.write("score_networks", values, directory)


def together(table: pd.DataFrame) -> tuple[pd.DataFrame, pd.Series]:
    """One row per network: its ability on each scale and its test accuracy; and the crowd that it is of."""
    wide = table.pivot(index=["crowd", "subject_id"], columns="scale", values="ability")[list(table.scale.unique())]
    wide.columns = [f"ability, {scale}" for scale in wide]
    accuracy = table.drop_duplicates(["crowd", "subject_id"]).set_index(["crowd", "subject_id"]).accuracy_test
    wide["test accuracy"] = accuracy
    crowds = pd.Series(wide.index.get_level_values("crowd"), wide.index)
    return wide.reset_index(drop=True), crowds.reset_index(drop=True)


def _shown(group: pd.DataFrame) -> pd.DataFrame:
    """The networks of a crowd on a scale; of a large crowd those at quantiles of test accuracy."""
    if len(group) <= LISTED:
        return group.assign(shown=group.subject_id)
    ranked = group.sort_values("accuracy_test", kind="stable")
    places = [round(share * (len(group) - 1)) for share in QUANTILES.values()]
    return ranked.iloc[places].assign(shown=list(QUANTILES))
