"""The report of an audit."""

from pathlib import Path
from typing import Any

import pandas as pd

from experiments.reports import document, markdown
from irtjax import versions
from irtjax.auditing.audit import Audit
from irtjax.auditing.findings import DOUBTFUL, HIGHEST, LOWEST
from irtjax.plots import auditing
from irtjax.plots.style import save_figure
from irtjax.storage.files import write_csv

PICTURES = ("items.png", "keys.png", "ranks.png", "gains.png")
FILES = (*document.FILES, "audit.csv", "ranking.csv", "pairs.csv", "gains.csv", *PICTURES)
SHOWN, RANKED = 30, 20
FEW = 50  # subjects, below which wrong keys by scores alone are a guess
ITEMS = {
    "item": "{item_id!i}", "reasons": "{reasons}", "mean": "{mean_response:.2f}",
    "discrimination": "{discrimination:.2f} ± {discrimination_se:.2f}",
}  # fmt: skip
KEYS = {
    "key": "{key!i}", "chosen by": "{share_key:.0%}", "instead": "{instead!i}", "chosen by ": "{share_instead:.0%}",
    "evidence (nats)": "{evidence:.1f}",
}  # fmt: skip
RANKS = {
    "rank": "{rank}", "range": "{best_rank} to {worst_rank}", "subject": "{subject_id!i}",
    "ability": "{ability:.2f} ± {ability_se:.2f}", "P(beats the next)": "{p_beats_next:.2f}",
}  # fmt: skip
GAINS = {
    "subject": "{subject_id!i}", "cutoff": "{cutoff:%Y-%m-%d}", "items before": "{before:,}", "after": "{after:,}",
    "gain (logits)": "{gain:+.2f} ± {standard_error:.2f}", "gain (points of 100)": "{points:+.1f}",
    "p, adjusted": "{p_adjusted:.3f}",
}  # fmt: skip


def write(found: Audit, flags: dict[str, Any], directory: Path) -> list[str]:
    """Writes tables, pictures and report; returns its main lines."""
    write_csv(found.items, directory / "audit.csv")
    write_csv(found.ranking, directory / "ranking.csv")
    if found.pairs is not None:
        write_csv(found.pairs[found.pairs["p_holm"] < flags["level"]], directory / "pairs.csv")
    save_figure(auditing.audited_items(found.items), directory / "items.png")
    save_figure(auditing.rank_ranges(found.ranking), directory / "ranks.png")
    lines = _lines(found)
    parts = [
        "# Is the benchmark sound?",
        "\n".join(f"* {line}" for line in lines),
        "## Items\n\n" + _items(found),
        "![discrimination against mean response](items.png)",
        _keys(found, directory),
        _contamination(found, directory),
        "## Ranking\n\n"
        "All ranges of ranks hold at once with a probability of 95%. P(beats the next) is the probability that a "
        "subject is more able than the one below it.",
        markdown.table_of(found.ranking.head(RANKED), RANKS),
        "![ranges of ranks](ranks.png)",
        document.provenance(flags, versions()),
    ]
    document.write(parts, directory)
    return lines


def _lines(found: Audit) -> list[str]:
    """What the audit says, in a few lines."""
    items, subjects = found.items, found.fit.responses.num_subjects
    number, some = len(items), int((items["reasons"] != "").sum())
    only = int(items["reasons"].isin([LOWEST, HIGHEST]).sum())
    because = f", {only:,} of these only because all or none succeed" if only else ""
    lines = [
        f"{subjects:,} subjects, {number:,} items: {some:,} deserve a look{because}.",
        f"Reliability, from one half of the items to the other: {found.reliability:.3f}; with shuffled responses "
        f"{found.shuffled:.2f}.",
        f"{int(items['needed'].sum()):,} of the items measure as well as all, to within 0.01 of the reliability that "
        f"the model says; the others could be left out.",
    ]
    if found.second is not None:
        more = found.second.share / found.second.expected
        beyond = "not more than chance" if found.second.p_value > 0.05 else f"{more:.1f} times what chance makes"
        lines.append(
            f"A second dimension explains {found.second.share:.1%} of what the first leaves, {beyond} "
            f"({found.second.expected:.1%} in simulated responses)."
        )
    if found.contamination is not None:
        clear = int((found.contamination.subjects["p_adjusted"] < 0.05).sum())
        lines.append(
            f"{clear} of {len(found.contamination.subjects)} subjects with items on both sides of their cutoff do "
            f"better before it; on average by {found.contamination.gain:.2f} ± "
            f"{found.contamination.standard_error:.2f} logits ({markdown.p_value(found.contamination.p_value)})."
        )
    first = found.ranking.iloc[0]
    if first["worst_rank"] == 1:
        lines.append(f"{markdown.inline(first['subject_id'])} is first, beyond doubt.")
    else:
        lines.append(f"{int((found.ranking['best_rank'] == 1).sum()):,} subjects could be first.")
    return lines


def _items(found: Audit) -> str:
    """Numbers of items by reason, beside the false alarms, and the first of them."""
    rows = []
    for name, number in found.reasons.items():
        alarms = "" if found.alarms is None else f"{found.alarms[name]:,}"
        if number or alarms not in ("", "0"):
            rows.append([name, f"{number:,}", alarms])
    said = "" if found.alarms is None else (
        "\n\nThe last column counts the same in responses that were simulated by the fit, with right keys and one "
        "dimension: so many false alarms are to be expected."
    )  # fmt: skip
    counted = markdown.table(["reason", "items", "if all were sound"], rows) if rows else "No item has a reason."
    several = found.items[~found.items["reasons"].isin(["", LOWEST, HIGHEST])].head(SHOWN)
    listed = markdown.table_of(several, ITEMS) if len(several) else ""
    return "\n\n".join(filter(None, [counted + said, listed]))


def _keys(found: Audit, directory: Path) -> str:
    """Items with a likely wrong key."""
    items: pd.DataFrame = found.items
    if "p_wrong_key" not in items:
        return ""
    likely = items[items["reasons"].str.startswith(DOUBTFUL)]
    if "key" not in items:
        if found.fit.responses.num_subjects >= FEW or not len(likely):
            return ""
        return "Without the options that were chosen, wrong keys of so few subjects are a guess: give the choices."
    save_figure(auditing.keys(items), directory / "keys.png")
    said = (
        f"{len(likely):,} of {len(items):,} keys are in doubt: by the model they are wrong with a probability above a "
        "half. Whether one is wrong, or two answers are right, or the item is a trap that nearly all fall into, only "
        "reading it can tell."
    )
    columns = {"item": ITEMS["item"], **KEYS}
    return "\n\n".join(
        ["## Keys", said, markdown.table_of(likely.head(SHOWN), columns), "![key against the other option](keys.png)"]
    )


def _contamination(found: Audit, directory: Path) -> str:
    """Gains on items that could be known."""
    if found.contamination is None:
        return ""
    table = found.contamination.subjects
    write_csv(table, directory / "gains.csv")
    save_figure(auditing.gains(table), directory / "gains.png")
    said = (
        "Gains on items before the cutoff, over items after it and over the other subjects. Standard errors and "
        "p-values are by permutation of the dates. A subject may also be better at what older items ask for."
    )
    shown = table.assign(points=100 * table["points"]).sort_values("gain", ascending=False)
    return "\n\n".join(
        ["## Contamination", said, markdown.table_of(shown.head(SHOWN), GAINS), "![gains of subjects](gains.png)"]
    )
