"""The report of the fit of items, subjects, pairs and the whole test."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.reports import document, markdown
from experiments.reports.overall import in_words
from irtjax import Fit, versions
from irtjax.scale.overall_fit import OverallFit
from irtjax.storage.files import write_csv

FILES = (*document.FILES, "item_fit.csv", "person_fit.csv", "local_dependence.csv", "overall_fit.json")
LEVEL = 0.05
SHOWN = 10
FAR = 0.3  # of the mean of lz*, from which on items have followed their responses
OF_ITEMS = {
    "item": "{item_id!i}", "S-X²": "{s_x2:.1f}", "df": "{degrees_of_freedom}", "p (Holm)": "{p_holm:.3f}",
    "RMSD": "{rmsd:.3f}", "infit": "{infit:.2f}", "t": "{infit_t:.1f}", "outfit": "{outfit:.2f}",
    "t of outfit": "{outfit_t:.1f}",
}  # fmt: skip
OF_SUBJECTS = {
    "subject": "{subject_id!i}", "responses": "{num_responses}", "ability": "{ability:.2f}", "lz*": "{lz_star:.2f}",
    "infit": "{infit:.2f}", "outfit": "{outfit:.2f}",
}  # fmt: skip
OF_PAIRS = {
    "item": "{first!i}", "and": "{second!i}", "subjects": "{num_subjects}", "Q3": "{q3:.2f}",
    "excess": "{q3_excess:.2f}", "p (Holm)": "{p_holm:.3f}",
}  # fmt: skip


class Found(NamedTuple):
    """What `irtjax.item_fit` and its kin found; why there is no overall fit in its place."""

    items: pd.DataFrame
    subjects: pd.DataFrame
    pairs: pd.DataFrame
    overall: OverallFit | str


def write(found: Found, fit: Fit, flags: dict[str, Any], pairs: int, directory: Path) -> list[str]:
    """Writes tables and report; returns its main lines."""
    write_csv(found.items, directory / "item_fit.csv")
    write_csv(found.subjects, directory / "person_fit.csv")
    write_csv(found.pairs.head(pairs), directory / "local_dependence.csv")
    record = found.overall._asdict() if isinstance(found.overall, OverallFit) else {"not_computed": found.overall}
    document.write_json(record, directory / "overall_fit.json")
    lines = [
        _of_test(found.overall, len(found.subjects)),
        _of_items(found.items),
        _of_pairs(found.pairs),
        _of_subjects(found.subjects),
    ]
    worst = found.items.iloc[np.argsort(-found.items[["infit_t", "outfit_t"]].abs().max(axis=1).fillna(0))]
    parts = [
        "# Does the model fit?",
        f"{fit.model} of {len(found.subjects):,} subjects × {len(found.items):,} items.",
        *lines,
        "## Items\n\nThose whose mean squares are farthest from 1 for their sampling error.\n\n"
        + markdown.table_of(worst.head(SHOWN), OF_ITEMS),
        "## Pairs\n\n" + markdown.table_of(found.pairs.head(SHOWN), OF_PAIRS),
        "## Subjects\n\nThose whose responses go least with their ability.\n\n"
        + markdown.table_of(_worst_subjects(found.subjects).head(SHOWN), OF_SUBJECTS),
        document.provenance(flags, versions()),
    ]
    document.write(parts, directory)
    return lines


def _of_test(overall: OverallFit | str, num_subjects: int) -> str:
    if isinstance(overall, str):
        return f"Whole test: not computed. {overall}."
    return (
        f"Whole test: {overall.name} = {overall.m2:.1f} with {overall.degrees_of_freedom} degrees of freedom "
        f"(p = {overall.p_value:.3g}); RMSEA {overall.rmsea:.3f} (90% interval {overall.rmsea_low:.3f} to "
        f"{overall.rmsea_high:.3f}), SRMSR {overall.srmsr:.3f}, TLI {overall.tli:.3f}, CFI {overall.cfi:.3f}. "
        + in_words(overall, num_subjects)
    )


def _of_items(items: pd.DataFrame) -> str:
    tested, number = int(items["p_holm"].notna().sum()), int((items["p_holm"] < LEVEL).sum())
    sums = (
        f"S-X² (Holm) is significant for {number} of {tested}"
        if tested
        else "no S-X², which needs 30 subjects who answered the same items, and categories or counts of equal trials"
    )
    has_t = items["infit_t"].notna()
    squares = (
        f"infit or outfit has |t| > 3 for {int((items[['infit_t', 'outfit_t']].abs() > 3).any(axis=1).sum())} of "
        f"{int(has_t.sum())}"
        if has_t.any()
        else "mean squares have no t, as too few responses decide on each"
    )
    return f"Items: {sums}; {squares}."


def _of_pairs(pairs: pd.DataFrame) -> str:
    tested = int(pairs["p_holm"].notna().sum())
    if not tested:
        return "Pairs: no tests of Q3, which need 30 subjects."
    return f"Pairs: Q3 (Holm) is significant for {int((pairs['p_holm'] < LEVEL).sum()):,} of {tested:,}."


def _of_subjects(subjects: pd.DataFrame) -> str:
    known = subjects["lz_star"].dropna()
    if not len(known):
        return "Subjects: no lz*, as no subject has responses that could be other than they are."
    text = f"Subjects: lz* has p < 0.05 for {(subjects['p_value'] < LEVEL).sum():,} of {len(known):,}."
    if known.mean() > FAR:
        text += (
            f" Its mean is {known.mean():.1f} and not 0: the items were fitted to few subjects and follow their "
            "responses. Compare subjects with each other, and take no p-value at its word."
        )
    return text


def _worst_subjects(subjects: pd.DataFrame) -> pd.DataFrame:
    by = "lz_star" if subjects["lz_star"].notna().any() else "outfit"
    return subjects.sort_values(by, ascending=by == "lz_star", kind="stable")
