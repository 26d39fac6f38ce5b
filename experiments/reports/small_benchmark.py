"""The report of small benchmarks: how far predicted scores are off, the coverage of intervals, which items to ask."""

from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from experiments.reports import document
from irtjax.evaluation.bank import Bank
from irtjax.evaluation.forms import Form
from irtjax.evaluation.study import PREFERRED, Method, of_all
from irtjax.plots.evaluation import error_by_size, predicted_scores
from irtjax.plots.style import save_figure
from irtjax.storage.files import write_csv

FILES = (*document.FILES, "errors.csv", "errors.png", "predicted.png")
FORMER = ("forms", "predictions.csv")  # not the same in every run


class Study(NamedTuple):
    """What a run found.

    Attributes:
        errors: of `irtjax.evaluation.study.hold_out`.
        bank: of all subjects.
        best: the method of the forms that are written.
        forms: by size, chosen with all subjects.
        predicted: by size, scores of the held-out subjects of the first split by the best method, and true ones.
    """

    errors: pd.DataFrame
    bank: Bank
    best: Method
    forms: dict[int, Form]
    predicted: dict[int, pd.DataFrame]


def write(study: Study, flags: dict[str, Any], directory: Path) -> str:
    """Writes the table, the picture and report.md; returns the verdict."""
    errors, best = study.errors, study.best
    write_csv(errors, directory / "errors.csv")
    responses = study.bank.responses
    size = f"{responses.num_subjects:,} models × {responses.num_items:,} items"
    unit = study.bank.unit
    save_figure(error_by_size(of_all(errors), _shown(errors, best), size, unit.name), directory / "errors.png")
    title = f"{best}: {errors.predicted.iloc[0]:,} held-out models of the first split"
    save_figure(predicted_scores(study.predicted, title, unit.name), directory / "predicted.png")
    given = {"size": size, "unit": unit, "flags": flags}
    return "\n".join(document.write("small_benchmark", values(study) | given, directory))


def values(study: Study) -> dict[str, Any]:
    """Errors and coverage of the best method and of those to beat, of all by number of items, and the smallest form."""
    errors, best = study.errors, study.best
    rows = of_all(errors)
    means = rows.groupby(["method", "num_items"])[["mae", "rmse", "coverage_90", "width_90"]].mean()
    return {
        "best": best,
        "of_best": means.loc[str(best)].loc[list(study.forms)],
        "whole": study.bank.whole,
        "splits": errors.seed.nunique(),
        "held_out": errors.predicted.iloc[0],
        "preferred": PREFERRED,
        "shown": means.loc[_shown(errors, best)].reset_index(),
        "by_size": {number: _by_size(rows[rows.num_items == number]) for number in study.forms},
        "by_calibration": _by_calibration(errors, best),
        "smallest": study.bank.items().iloc[study.forms[min(study.forms)].items],
    }


def _shown(errors: pd.DataFrame, best: Method) -> list[str]:
    """The best method and those to beat: the usual predictions from its items and from random ones, and anchors."""
    names = [
        str(best),
        f"{best.form} ridge",
        "anchors gp-irt",
        f"random {best.predictor}",
        "random ridge",
        "random mean",
    ]
    there = set(errors.method)
    return [name for name in dict.fromkeys(names) if name in there]


def _by_size(rows: pd.DataFrame) -> pd.DataFrame:
    """Mean absolute errors of all methods with one number of items, the least of them bold."""
    means = rows.groupby(["form", "predictor"], sort=False).mae.mean().unstack()
    means = means.reindex(index=rows.form.unique(), columns=rows.predictor.unique())
    least = means.min().min()
    return means.map(lambda value: f"**{value:.2f}**" if value == least else f"{value:.2f}")


def _by_calibration(errors: pd.DataFrame, best: Method) -> pd.DataFrame:
    """How errors depend on the number of models that calibrate; empty if there is only one number."""
    if errors.calibration.nunique() < 2:
        return pd.DataFrame()
    methods = dict.fromkeys([str(best), "random mean", "random ridge", "anchors gp-irt", "variance ridge"])
    means = errors.groupby(["method", "calibration", "num_items"])[["mae", "coverage_90"]].mean()
    cells = means.mae.map("{:.2f}".format) + means.coverage_90.map(" ({:.0%})".format)
    return cells.unstack().loc[[name for name in methods if name in set(errors.method)]].reset_index()
