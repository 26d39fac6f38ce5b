"""The report of differential item functioning."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from experiments.reports import document
from irtjax.groups.choices import BY_MODEL
from irtjax.groups.dif import BY_ANCHORS, Matched
from irtjax.groups.matching import anchor_scores, answered_some, responses_to
from irtjax.plots.dif import PANELS, dif, dif_curves
from irtjax.plots.style import save_figure
from irtjax.storage.files import write_csv

FILES = (*document.FILES, "dif.csv", "dif.png", "dif_curves.png")
EFFECTS = {
    "logistic": "change of Nagelkerke's R²",
    "mantel_haenszel": "Δ, negative where harder for the second group",
    **dict.fromkeys((*BY_MODEL, "lord"), "difference of expected responses at equal ability"),
    "raju": "area between the curves of the groups, in units of ability",
}
SHOWN = 20  # items in the report
OF_GRADES = "difference of mean responses of equal scores"


def write(table: pd.DataFrame, data: Matched, flags: dict[str, Any], directory: Path) -> list[str]:
    """Writes table, pictures and report; returns its main lines."""
    write_csv(table, directory / "dif.csv")
    level, effect = flags["level"], EFFECTS[flags["method"]]
    stratified, classes = flags["method"] == "mantel_haenszel", bool((table["class"] != "").any())
    if stratified and not classes:
        effect = OF_GRADES
    save_figure(dif(table, "Differential item functioning", effect, level), directory / "dif.png")
    flagged = table[table["p_adjusted"] < level].sort_values("p_value")
    if len(flagged):
        drawn = flagged.head(PANELS)
        y = responses_to(data.responses, drawn.index.to_numpy())
        score = anchor_scores(data.responses, table["anchor"].to_numpy())
        known = np.isfinite(score)  # of those who answered an anchor
        member = data.responses.member[known]
        figure = dif_curves(y[known], score[known], member, data.names.tolist(), drawn["item_id"].tolist())
        save_figure(figure, directory / "dif_curves.png")
    answered = np.ones(len(data.responses.member), bool)
    if flags["method"] in BY_ANCHORS:
        answered = answered_some(data.responses, table["anchor"].to_numpy())
    sizes = pd.Series(data.names[data.responses.member[answered]]).value_counts()
    values = {
        "items": table,
        "sizes": sizes[data.names],
        "without_anchor": int((~answered).sum()),
        "flagged": len(flagged),
        "large": int((flagged["class"] == "C").sum()),
        "classes": classes,
        "anchors": int(table["anchor"].sum()),
        "effect": effect if stratified else f"the {effect}",
        "shown": SHOWN,
        "flags": flags,
    }
    return document.write("dif", values, directory)
