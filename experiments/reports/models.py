"""The report of a comparison of models: tables, a picture of calibration, and a recommendation."""

import functools
from pathlib import Path
from typing import Any

import pandas as pd

from experiments.reports import document, markdown
from irtjax import Comparison, ResponseMatrix, versions
from irtjax.comparison.candidates import RATES, Candidate
from irtjax.plots.models import calibration
from irtjax.plots.style import save_figure
from irtjax.storage.files import write_csv

FILES = (*document.FILES, "comparison.csv", "folds.csv", "calibration.csv", "calibration.png")
QUESTIONS = {
    "cells": "Random answers, predicted from the subject's other answers: how well does the model fill gaps?",
    "subjects": "Random subjects, on items that were fitted to the other subjects: are the items right for new ones? "
    "The log-loss is minus the marginal log-likelihood of a subject's answers, per answer. The other scores are of "
    "answers that are predicted from the subject's other answers.",
    "items": "Random items. They are fitted on half of the subjects, whose abilities are known from the other items, "
    "and predicted for the other half: how well can new items be added?",
}
SCORES = {"log_loss": "log-loss", "brier": "Brier score", "auc": "AUC", "calibration_error": "calibration error"}


def write(comparison: Comparison, responses: ResponseMatrix, flags: dict[str, Any], directory: Path) -> str:
    """Writes the tables, the picture and report.md; returns the recommendation."""
    table = comparison.table
    flagged = table.assign(**{name: table[name].astype(int) for name in ("converged", "priors")})
    write_csv(flagged.drop(columns="seconds"), directory / "comparison.csv")
    write_csv(comparison.folds.assign(converged=comparison.folds["converged"].astype(int)), directory / "folds.csv")
    write_csv(comparison.calibration, directory / "calibration.csv")
    size = f"{responses.num_subjects:,} subjects × {responses.num_items:,} items"
    named = comparison.calibration.assign(candidate=_names(comparison.calibration))
    save_figure(calibration(named, f"Predicted and observed, {size}"), directory / "calibration.png")
    ways = list(table["by"].unique())
    advice = recommendation(comparison, ways[0])
    parts = [
        "# Which model?",
        f"{markdown.inline(Path(flags['responses']).name)}: {size}. {flags['folds']} folds, each held out once; ± is "
        "the standard error over the folds.",
        f"**{advice}**",
        *(section(comparison, way) for way in ways),
        "## Calibration\n\n![Share of right answers against predicted probability](calibration.png)\n\n"
        "On the grey line predictions are right on average. Below: how many predictions there are.",
        all_responses(comparison),
        *said(comparison),
        document.provenance(flags, versions()),
    ]
    document.write(parts, directory)
    return advice


def recommendation(comparison: Comparison, by: str) -> str:
    """One line that says which model to take, and why."""
    chosen = comparison.recommended(by)
    rows = comparison.table[comparison.table["by"] == by]
    rows = rows.assign(candidate=_names(rows)).set_index("candidate")
    row, best = rows.loc[str(chosen)], rows["log_loss"].idxmin()
    loss = f"log-loss on held-out {by} ({row['log_loss']:.4f})"
    if best == str(chosen):
        why = f"its {loss} is the lowest"
        others = rows.drop(index=best)
        if len(others):
            second = others["log_loss"].idxmin()
            apart = _estimate(others.loc[second], "log_loss_difference")
            why += f"; that of the next best, the {second}, is higher by {apart}"
    else:
        apart = _estimate(row, "log_loss_difference")
        why = f"its {loss} is within a standard error of the lowest, that of the {best} (higher by {apart}), "
        simpler = chosen.complexity < _candidate(rows.loc[best]).complexity
        why += "and it has fewer parameters" if simpler else "and it has as many parameters"
    if chosen.model == RATES:
        their = why.replace("its", "their", 1).split(", and it")[0]
        return (
            "Recommendation: none of the models. The item rates, which are the same for every subject, predict as "
            f"well: {their}. These responses show no difference between subjects."
        )
    doubt = "" if row["converged"] else " Its fit to all responses has not converged."
    return f"Recommendation: the {chosen}. I" + why[1:] + "." + doubt


def _estimate(row: Any, score: str) -> str:
    return markdown.with_interval(row[score], row[f"{score}_se"], ".4f")


def section(comparison: Comparison, by: str) -> str:
    """The table of one way of holding out."""
    rows = comparison.table[comparison.table["by"] == by]
    columns: dict[str, Any] = {"model": "{name}"}
    for score, title in SCORES.items():
        columns[title] = functools.partial(_estimate, score=score)
    columns["log-loss above the lowest"] = lambda row: (
        _estimate(row, "log_loss_difference") if row["log_loss_difference"] else "0 (lowest)"
    )
    columns["folds converged"] = "{folds_converged:.0%}"
    return f"""## Held-out {by}

{QUESTIONS[by]} {rows["num_predicted"].max():,} predictions.

{markdown.table_of(rows.assign(name=_names(rows)), columns)}"""


def all_responses(comparison: Comparison) -> str:
    """The table of the fits to all responses."""
    rows = comparison.table.drop_duplicates(list(Candidate._fields))
    columns = {
        "model": "{name}",
        "log-likelihood": "{log_likelihood:,.1f}",
        "parameters": "{num_parameters:,.0f}",
        "priors": lambda row: "yes" if row["priors"] else "no",
        "AIC": "{aic:,.1f}",
        "BIC": "{bic:,.1f}",
        "converged": lambda row: "yes" if row["converged"] else "no",
        "seconds": "{seconds:.1f}",
    }
    under_priors = ""
    if rows["priors"].any():
        under_priors = (
            " Where parameters of items have priors, the log-likelihood is not at its maximum, and may be below that "
            "of a narrower model: there is no AIC, BIC or likelihood ratio, and only held-out answers compare it."
        )
    return f"""## Fits to all responses

Marginal log-likelihoods at the estimates. AIC and BIC (smaller is better) are those of maximum likelihood estimates.{
        under_priors
    }

{markdown.table_of(rows.assign(name=_names(rows)), columns)}"""


def said(comparison: Comparison) -> list[str]:
    """The section of the warnings of the fits: all of those to all responses, and the first of each kind of fold."""
    if comparison.warnings.empty:
        return []
    lines = []
    for (*fields, by), rows in comparison.warnings.groupby([*Candidate._fields, "by"], sort=False):
        first, name, where = rows.iloc[0], str(Candidate(*fields)), "all responses"
        if not by:
            lines += [f"* {name}, {where}: {markdown.inline(message)}" for message in rows["message"]]
            continue
        where = f"{rows['fold'].nunique()} of {_num_folds(comparison)} folds of {by}, such as fold {first['fold']}"
        lines.append(f"* {name}, {where}: {markdown.inline(first['message'])}")
    return ["## Warnings of the fits\n\n" + "\n".join(lines)]


def _num_folds(comparison: Comparison) -> int:
    return int(comparison.folds["fold"].max())


def _candidate(row: pd.Series) -> Candidate:
    return Candidate(row["model"], int(row["dims"]), row["estimator"])


def _names(table: pd.DataFrame) -> list[str]:
    return [str(_candidate(row)) for _, row in table.iterrows()]
