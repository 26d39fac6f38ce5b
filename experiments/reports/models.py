"""The report of a comparison of models: tables, a picture of calibration, and a recommendation."""

from pathlib import Path
from typing import Any

import pandas as pd

from experiments.reports import document, markdown
from irtjax import Comparison, ResponseMatrix
from irtjax.comparison.candidates import Candidate
from irtjax.plots.models import calibration
from irtjax.plots.style import save_figure
from irtjax.storage.files import write_csv

FILES = (*document.FILES, "comparison.csv", "folds.csv", "calibration.csv", "calibration.png")


def write(comparison: Comparison, responses: ResponseMatrix, flags: dict[str, Any], directory: Path) -> str:
    """Writes the tables, the picture and report.md; returns the recommendation."""
    table = comparison.table
    flagged = table.assign(**{name: table[name].astype(int) for name in ("converged", "priors")})
    write_csv(flagged.drop(columns="seconds"), directory / "comparison.csv")
    write_csv(comparison.folds.assign(converged=comparison.folds["converged"].astype(int)), directory / "folds.csv")
    write_csv(comparison.calibration, directory / "calibration.csv")
    size = f"{responses.num_subjects:,} subjects × {responses.num_items:,} items"
    named = comparison.calibration.assign(candidate=_candidates(comparison.calibration).map(str))
    save_figure(calibration(named, f"Predicted and observed, {size}"), directory / "calibration.png")
    given = {"file": Path(flags["responses"]).name, "size": size, "flags": flags}
    (advice,) = document.write("models", values(comparison) | given, directory)
    return advice


def values(comparison: Comparison) -> dict[str, Any]:
    """The tables by what was held out, and the recommended candidate beside the best and the next."""
    table = markdown.intervals(comparison.table, "_se").assign(candidate=_candidates(comparison.table))
    tables = {by: table[table["by"] == by] for by in table["by"].unique()}
    first = next(iter(tables))
    ranked = comparison.table[comparison.table["by"] == first].sort_values("log_loss").index
    chosen = comparison.recommended(first)
    return {
        "tables": tables,
        "chosen": chosen,
        "of_chosen": next(row for _, row in tables[first].iterrows() if row["candidate"] == chosen),
        "best": table["candidate"][ranked[0]],
        "second": table["candidate"][ranked[1]] if len(ranked) > 1 else None,
        "of_second": table.loc[ranked[1]] if len(ranked) > 1 else None,
        "fits": table.drop_duplicates(list(Candidate._fields)),
        "warnings": _warnings(comparison.warnings),
        "num_folds": int(comparison.folds["fold"].max()),
    }


def _warnings(table: pd.DataFrame) -> list[dict[str, Any]]:
    """All warnings of the fits to all responses, and the first of each kind of fold."""
    table = table.assign(candidate=_candidates(table))
    groups = table.groupby([*Candidate._fields, "by"], sort=False)
    table = table.assign(folds=groups["fold"].transform("nunique"))
    kept = [rows.head(1) if by else rows for (*_, by), rows in table.groupby([*Candidate._fields, "by"], sort=False)]
    return pd.concat(kept).to_dict("records") if kept else []


def _candidates(table: pd.DataFrame) -> pd.Series:
    """The candidate of each row."""
    rows = table[list(Candidate._fields)].itertuples(index=False)
    return pd.Series([Candidate(model, int(dims), estimator) for model, dims, estimator in rows], table.index, object)
