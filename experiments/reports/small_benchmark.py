"""The report of small benchmarks: how far predicted scores are off, the coverage of intervals, which items to ask."""

from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from experiments.reports import document, markdown
from irtjax import versions
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
    verdict = "\n".join(_verdict(errors, best, number, unit.name) for number in study.forms)
    number = errors.seed.nunique()
    splits = "one split" if number == 1 else f"each of {number} splits"
    what = "the mean over all items" if study.bank.whole else "given by `--scores`, of the whole benchmark"
    parts = [
        f"# A small benchmark of {size}",
        "\n".join(f"* {line}" for line in verdict.splitlines()),
        f"""Scores are in {unit.text}: {what}. In {splits},
{errors.predicted.iloc[0]:,} models were held out: they had no part in calibrating items, choosing them, or setting
intervals. The forms that are written are by {best}, chosen with all models: the method with the least error, or
{PREFERRED} where that is no more than one standard error behind.""",
        "## Errors and intervals\n\n![Error against items asked](errors.png)\n\n"
        "![Predicted against true scores of held-out models](predicted.png)",
        _best_and_baselines(errors, best),
        *(_by_size(errors, number, unit.name) for number in study.forms),
        _calibration(errors, best, unit.name),
        _forms(study),
        document.provenance(flags, versions()),
    ]
    document.write(parts, directory)
    return verdict


def _verdict(errors: pd.DataFrame, best: Method, number: int, unit: str) -> str:
    rows = of_all(errors)
    rows = rows[(rows.method == str(best)) & (rows.num_items == number)]
    return (
        f"{number:,} items ({best}): scores of held-out models are off by {rows.mae.mean():.2f} {unit} on average "
        f"(root mean square {rows.rmse.mean():.2f}); 90% intervals cover {rows.coverage_90.mean():.1%}"
    )


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


def _best_and_baselines(errors: pd.DataFrame, best: Method) -> str:
    """RMSE, MAE, coverage and width of the methods of the picture."""
    rows = of_all(errors)
    means = rows.groupby(["method", "num_items"])[["mae", "rmse", "coverage_90", "width_90"]].mean()
    columns = {
        "items, prediction": "{method}",
        "number": "{num_items:,}",
        "MAE": "{mae:.2f}",
        "RMSE": "{rmse:.2f}",
        "coverage of 90% intervals": "{coverage_90:.1%}",
        "their width": "{width_90:.1f}",
    }
    return markdown.table_of(means.loc[_shown(errors, best)].reset_index(), columns)


def _by_size(errors: pd.DataFrame, number: int, unit: str) -> str:
    """Mean absolute errors of all methods with one number of items."""
    rows = of_all(errors)
    rows = rows[rows.num_items == number]
    means = rows.groupby(["form", "predictor"], sort=False).mae.mean().unstack()
    means = means.reindex(index=rows.form.unique(), columns=rows.predictor.unique())
    least = means.min().min()
    cell = lambda value: f"**{value:.2f}**" if value == least else f"{value:.2f}"  # noqa: E731
    lines = [[form, *map(cell, means.loc[form])] for form in means.index]
    return f"""## {number:,} items

Mean absolute error in {unit}. One row per way to choose items, one column per way to predict.

{markdown.table(["items", *means.columns], lines)}"""


def _calibration(errors: pd.DataFrame, best: Method, unit: str) -> str:
    """How errors depend on the number of models that calibrate; nothing if there is only one number."""
    if errors.calibration.nunique() < 2:
        return ""
    sizes = sorted(errors.num_items.unique())
    methods = list(
        dict.fromkeys(
            [
                str(best),
                *(
                    name
                    for name in ("random mean", "random ridge", "anchors gp-irt", "variance ridge")
                    if name in set(errors.method)
                ),
            ]
        )
    )
    means = errors.groupby(["method", "calibration", "num_items"])[["mae", "coverage_90"]].mean()
    lines = [
        [method, f"{models:,}"]
        + [
            f"{means.loc[(method, models, size), 'mae']:.2f} ({means.loc[(method, models, size), 'coverage_90']:.0%})"
            for size in sizes
        ]
        for method in methods
        for models in sorted(errors.calibration.unique())
    ]
    return f"""## How many models to calibrate with?

Mean absolute error in {unit}, and in brackets the coverage of 90% intervals, by number of items asked.

{markdown.table(["items, prediction", "models", *(f"{size:,}" for size in sizes)], lines)}"""


def _forms(study: Study) -> str:
    """Where the forms are, and the first items of the smallest."""
    smallest = min(study.forms)
    items = study.bank.items().iloc[study.forms[smallest].items]
    columns = {
        "item": "{item_id!i}",
        "difficulty": "{difficulty:.2f}",
        "discrimination": "{discrimination:.2f}" if "discrimination" in items else "1.00",
        **({"right": "{proportion_correct:.0%}"} if "proportion_correct" in items else {"mean": "{mean_response:.2f}"}),
    }
    names = ", ".join(f"`forms/{study.best.form}_{size}.csv`" for size in study.forms)
    return f"""## The forms

{names}: items in the order in which they were chosen, so that the first items of a longer form make a shorter one by
`variance` and `information`. Ask a new model these items, and give its answers as --new_responses. The {smallest}
items of the smallest:

{markdown.table_of(items, columns)}"""
