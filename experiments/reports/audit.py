"""The report of an audit."""

from pathlib import Path
from typing import Any

import pandas as pd

from experiments.reports import document
from irtjax.auditing.audit import Audit
from irtjax.auditing.findings import DOUBTFUL, HIGHEST, LOWEST
from irtjax.plots import auditing
from irtjax.plots.style import save_figure
from irtjax.storage.files import write_csv

PICTURES = ("items.png", "keys.png", "ranks.png", "gains.png")
SHOWN = 20  # subjects of the ranking
MANY = 1000  # subjects, of whom a reader looks at few
FEW = 0.1  # of the items, which a subject answered
FILES = (*document.FILES, "audit.csv", "ranking.csv", "pairs.csv", "gains.csv", *PICTURES)


def write(found: Audit, flags: dict[str, Any], directory: Path) -> list[str]:
    """Writes tables, pictures and report; returns its main lines."""
    write_csv(found.items, directory / "audit.csv")
    write_csv(found.ranking, directory / "ranking.csv")
    if found.pairs is not None:
        write_csv(found.pairs[found.pairs["p_holm"] < flags["level"]], directory / "pairs.csv")
    save_figure(auditing.audited_items(found.items), directory / "items.png")
    save_figure(auditing.rank_ranges(found.ranking), directory / "ranks.png")
    if "p_wrong_key" in found.items and "key" in found.items:
        save_figure(auditing.keys(found.items), directory / "keys.png")
    if found.contamination is not None:
        write_csv(found.contamination.subjects, directory / "gains.csv")
        save_figure(auditing.gains(found.contamination.subjects), directory / "gains.png")
    return document.write("audit", values(found) | {"flags": flags}, directory)


def values(found: Audit) -> dict[str, Any]:
    """Numbers of items by reason beside the false alarms, items that deserve a look, doubtful keys, and ranks."""
    items, ranking, responses = found.items, found.ranking, found.fit.responses
    ranked = ranking.loc[ranking["rank"] > 0, "worst_rank"]
    pairs = len(ranked) * (len(ranked) - 1) // 2
    answered = float(responses.counts(axis=0)[1].sum()) / responses.num_subjects
    reasons = pd.DataFrame({"number": found.reasons, "alarms": found.alarms or {}}, list(found.reasons), dtype=float)
    return {
        "num_subjects": responses.num_subjects,
        "answered": answered,
        "sparse": answered < FEW * len(items),
        "items": items,
        "some": int((items["reasons"] != "").sum()),
        "only": int(items["reasons"].isin([LOWEST, HIGHEST]).sum()),
        "reliability": found.reliability,
        "shuffled": found.shuffled,
        "needed": int(items["needed"].sum()),
        "second": found.second,
        "contamination": found.contamination,
        "ranking": ranking,
        "many": len(ranking) > MANY,
        "shown": SHOWN,
        "pairs": pairs,
        "told_apart": float((len(ranked) - ranked).sum()) / max(pairs, 1),
        "could_be_first": int((ranking["best_rank"] == 1).sum()),
        "reasons": reasons[reasons.any(axis=1)],
        "alarms": found.alarms is not None,
        "several": items[~items["reasons"].isin(["", LOWEST, HIGHEST])],
        "keyed": "p_wrong_key" in items and "key" in items,
        "doubtful": items[items["reasons"].str.startswith(DOUBTFUL)] if "p_wrong_key" in items else items[:0],
    }
