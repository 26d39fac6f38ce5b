"""The report of adaptive tests over recorded answers: how many items they need, beside random ones and a fixed form."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.reports import document
from irtjax.evaluation.adaptive_study import Study
from irtjax.plots.evaluation import error_by_number, exposure
from irtjax.plots.style import save_figure
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.responses.scaled import ScaledResponses
from irtjax.storage.files import write_csv

TABLES = ("subjects.csv", "answers.csv", "exposure.csv", "comparison.csv")
FILES = (*TABLES, *document.FILES, "errors.png", "exposure.png")
NAMES = {"adaptive": "adaptive test", "random": "random items", "form": "fixed form"}
NUMBERS = (5, 10, 20, 50)  # of items, whose errors are in the table
REASONS = {
    "max_items": "the largest number of items",
    "standard_error": "the standard error of the ability",
    "score_error": "the error of the score",
    "change": "the ability changed little",
    "no_items": "no item left with a recorded answer",
}


class Found(NamedTuple):
    """What a run found.

    Attributes:
        responses: that were asked for.
        difficulty: (I,) of the items, of grades the mean of the thresholds; NaN where the slope is 0.
        subjects: of `irtjax.evaluation.replay_tables.subjects_table`.
        exposure: likewise.
        study: the comparison.
        at_a_time: items that were asked together.
        grades: whether scores are mean grades; else they are shares.
    """

    responses: ResponseMatrix | ScaledResponses
    difficulty: np.ndarray
    subjects: pd.DataFrame
    exposure: pd.DataFrame
    study: Study
    at_a_time: int = 1
    grades: bool = False


def write(found: Found, flags: dict[str, Any], directory: Path) -> str:
    """Writes tables, pictures and report.md; returns the verdict."""
    responses, study = found.responses, found.study
    write_csv(found.subjects, directory / "subjects.csv")
    write_csv(found.exposure, directory / "exposure.csv")
    write_csv(study.errors, directory / "comparison.csv")
    size = f"{responses.num_subjects:,} subjects, {responses.num_items:,} items"
    scaled = isinstance(responses, ScaledResponses)
    unit = ("mean grade" if found.grades else "mean share") if scaled else "share right"
    save_figure(error_by_number(study.errors, NAMES, size, unit), directory / "errors.png")
    save_figure(exposure(found.exposure.share.to_numpy(), found.difficulty, size), directory / "exposure.png")
    given = {"size": size, "bank": responses.num_items, "scaled": scaled, "grades": found.grades, "flags": flags}
    return "\n".join(document.write("adaptive_test", values(found) | given, directory))


def values(found: Found) -> dict[str, Any]:
    """How long the tests were, and how far off; missing answers, reasons to end, and how often items were asked."""
    responses, number, errors = found.responses, found.subjects.num_items, found.study.errors
    missing = ~responses.observed if isinstance(responses, ScaledResponses) else responses.values == MISSING
    at = max(int(number.median()), 1)
    reasons = found.subjects.groupby("reason", sort=False)
    return {
        "num_items": number,
        "median_error": found.subjects.ability_se.median(),
        "at": at,
        "off": errors[errors.num_items == at].set_index("method").ability_mae,
        "missing": float(missing.mean()),
        "at_a_time": found.at_a_time,
        "errors": _errors(errors),
        "needed": _needed(found.study),
        "ends": reasons[["num_items", "ability_se"]].median().assign(size=reasons.size(), because=pd.Series(REASONS)),
        "exposure": found.exposure,
        "never": (found.exposure.times_asked == 0).sum(),
        "often": (found.exposure.share > 0.2).sum(),
        "most": found.exposure.loc[found.exposure.times_asked.idxmax()],
    }


def _errors(errors: pd.DataFrame) -> pd.DataFrame:
    """Mean absolute errors of the usual numbers of items that a test has, and of the largest."""
    most = int(errors.num_items.max())
    wide = errors.pivot(index="method", columns="num_items", values=["ability_mae", "score_mae"]).loc[list(NAMES)]
    numbers = sorted({*(number for number in NUMBERS if number < most), most})
    ability, score = wide.ability_mae[numbers].map("{:.3f}".format), wide.score_mae[numbers].map("{:.4f}".format)
    both = pd.concat([ability.assign(of="ability, logits"), score.assign(of="score")])
    return both.assign(items=both.index.map(NAMES)).loc[list(NAMES)]


def _needed(study: Study) -> pd.DataFrame:
    """How many items until a standard error, and the share of subjects who reached it."""
    numbers = study.needed["median"].map(lambda median: f"{median:.0f}" if np.isfinite(median) else "–")
    cells = study.needed.assign(cell=numbers + study.needed.reached.map(" ({:.0%})".format))
    wide = cells.pivot(index="method", columns="target", values="cell")
    return wide.loc[list(NAMES), study.needed.target.unique()].rename(index=NAMES)
