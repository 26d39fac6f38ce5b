"""The report of differential item functioning."""

from pathlib import Path
from typing import Any

import pandas as pd

from experiments.reports import document, markdown
from irtjax import versions
from irtjax.groups.by_fits import BY_MODEL
from irtjax.groups.dif import Matched
from irtjax.groups.matching import scores
from irtjax.plots.dif import dif, dif_curves
from irtjax.plots.style import save_figure
from irtjax.storage.files import write_csv

FILES = (*document.FILES, "dif.csv", "dif.png", "dif_curves.png")
SHOWN = 20
EFFECTS = {
    "logistic": "change of Nagelkerke's R²",
    "mantel_haenszel": "Δ, negative where harder for the second group",
    **dict.fromkeys((*BY_MODEL, "lord"), "difference of expected responses at equal ability"),
    "raju": "area between the curves of the groups, in units of ability",
}
OF_GRADES = "difference of mean responses of equal scores"
COLUMNS = {
    "item": "{item_id!i}", "χ²": "{statistic:.1f}", "df": "{df}", "p": "{p_value:.2g}",
    "p (false-discovery rate)": "{p_adjusted:.2g}", "effect": "{effect:.3f}", "class": "{class}",
}  # fmt: skip


def write(table: pd.DataFrame, data: Matched, flags: dict[str, Any], directory: Path) -> list[str]:
    """Writes table, pictures and report; returns its main lines."""
    write_csv(table, directory / "dif.csv")
    level, effect = flags["level"], EFFECTS[flags["method"]]
    if flags["method"] == "mantel_haenszel" and (table["class"] == "").all():
        effect = OF_GRADES
    flagged = table[table["p_adjusted"] < level].sort_values("p_value")
    large = int((flagged["class"] == "C").sum())
    sizes = pd.Series(data.names[data.responses.member]).value_counts()
    of_groups = ", ".join(f"{sizes[name]:,} {name}" for name in data.names)
    number = f"{len(flagged):,} item{'s show' if len(flagged) != 1 else ' shows'} DIF"
    lines = [
        f"{len(table):,} items, {len(data.responses.member):,} subjects: {of_groups}.",
        f"{number} at a false-discovery rate of {level:g}"
        + (f", {large} of them of class C (large)" if (table["class"] != "").any() else "")
        + f"; {int(table['anchor'].sum()):,} items are anchors.",
    ]
    save_figure(dif(table, "Differential item functioning", effect, level), directory / "dif.png")
    pictures = ["![effect and significance](dif.png)"]
    if len(flagged):
        chosen = flagged.index.to_numpy()
        score = scores(data.responses.y, table["anchor"].to_numpy())
        figure = dif_curves(
            data.responses.y[:, chosen], score, data.responses.member, data.names.tolist(), flagged["item_id"].tolist()
        )
        save_figure(figure, directory / "dif_curves.png")
        pictures.append("![responses by score](dif_curves.png)")
    parts = [
        "# Do the items measure the same for all groups?",
        *lines,
        f"The effect is the {effect}." if flags["method"] != "mantel_haenszel" else f"The effect is {effect}.",
        *pictures,
        "## Items\n\n" + markdown.table_of(table.sort_values("p_value").head(SHOWN), COLUMNS),
        document.provenance(flags, versions()),
    ]
    document.write(parts, directory)
    return lines
