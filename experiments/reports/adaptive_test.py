"""The report of adaptive tests over recorded answers: how many items they need, beside random ones and a fixed form."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from experiments.reports import document, markdown
from irtjax import versions
from irtjax.evaluation.adaptive_study import Study
from irtjax.plots.evaluation import error_by_number, exposure
from irtjax.plots.style import save_figure
from irtjax.responses.matrix import MISSING, ResponseMatrix
from irtjax.responses.scaled import ScaledResponses
from irtjax.storage.files import write_csv

FILES = (
    "subjects.csv",
    "answers.csv",
    "exposure.csv",
    "comparison.csv",
    *document.FILES,
    "errors.png",
    "exposure.png",
)
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
    verdict = _verdict(found)
    parts = [
        f"# An adaptive test: {size}",
        "\n".join(f"* {line}" for line in verdict.splitlines()),
        _what_scores_are(found),
        _comparison(found),
        _needed(study),
        _ends(found.subjects),
        _exposure(found),
        document.provenance(flags, versions()),
    ]
    document.write(parts, directory)
    return verdict


def _verdict(found: Found) -> str:
    """How long the tests were, and how far off after as many items as the median test had."""
    number, error = found.subjects.num_items, found.subjects.ability_se
    rows = found.study.errors
    at = max(int(number.median()), 1)
    off = rows[rows.num_items == at].set_index("method").ability_mae
    others = ", ".join(f"{off[name]:.2f} by the {what}" for name, what in NAMES.items() if name != "adaptive")
    return (
        (
            f"{number.median():.0f} items at the median ({number.min()} to {number.max()}), "
            f"standard error {error.median():.2f}\n"
            f"after {at} items abilities are off by {off['adaptive']:.2f} logits on average, {others}"
        )
        .replace("by the random items", "by random items")
        .replace("by the fixed form", "by a fixed form")
    )


def _what_scores_are(found: Found) -> str:
    responses = found.responses
    if isinstance(responses, ScaledResponses):
        missing, what = float((~responses.observed).mean()), "mean response"
        unit = (
            "a mean grade"
            if found.grades
            else "the mean of responses as shares, from 0 for the lowest response to an item to 1 for the highest,"
        )
        text = f"""A score is {unit} over the bank of {responses.num_items:,} items. That of a test is predicted: its
answers, and the expected responses to all other items, averaged over what the test leaves possible as the ability. It
is compared with the mean of all recorded answers of the subject. An ability is compared with that of all recorded
answers (EAP), in logits. Both include the answers of the test. The next item has the most Fisher information at the
ability that is estimated now."""
    else:
        missing, what = float((responses.values == MISSING).mean()), "share right"
        text = f"""A score is a share of right answers over the bank of {responses.num_items:,} items, 0 to 1. That of a
test is predicted: its right answers, and the probabilities of right answers to all other items, averaged over what the
test leaves possible as the ability. It is compared with the share right of all recorded answers of the subject. An
ability is compared with that of all recorded answers (EAP), in logits. Both include the answers of the test."""
    if not missing:
        return text
    return f"""{text}

{missing:.1%} of the answers are missing, and were never asked for. Where a subject lacks answers to hard items or to
easy ones, the {what} is that of an easier or a harder bank: the error of the score then is too large."""


def _numbers(errors: pd.DataFrame) -> list[int]:
    """Numbers of items of the table: the usual ones that a test has, and the largest."""
    most = int(errors.num_items.max())
    return sorted({*(number for number in NUMBERS if number < most), most})


def _comparison(found: Found) -> str:
    """Errors by number of items."""
    errors = found.study.errors
    numbers = _numbers(errors)
    lines = []
    for method, name in NAMES.items():
        rows = errors[errors.method == method].set_index("num_items")
        lines += [
            [name, "ability, logits", *(f"{rows.ability_mae[number]:.3f}" for number in numbers)],
            [name, "score", *(f"{rows.score_mae[number]:.4f}" for number in numbers)],
        ]
    together = f" Items are asked {found.at_a_time} at a time." if found.at_a_time > 1 else ""
    return f"""## How far off, after how many items?

Mean absolute errors. None of the three ends before its largest number of items here, other than for want of items; who
has none left keeps the last estimate.{together} Each subject has other random items. The fixed form has the
items with the most Fisher information, averaged over the population, best first; it is the same for all. All three are
scored alike.

![Error against number of items](errors.png)

{markdown.table(["items", "error of", *(f"after {number}" for number in numbers)], lines)}"""


def _needed(study: Study) -> str:
    """How many items until a standard error."""
    table = study.needed.set_index(["method", "target"])
    targets = study.needed.target.unique()

    def cell(method: str, target: float) -> str:
        median, reached = table.loc[(method, target)]
        return f"{f'{median:.0f}' if np.isfinite(median) else '–'} ({reached:.0%})"

    lines = [[name, *(cell(method, target) for target in targets)] for method, name in NAMES.items()]
    return f"""## How many items until which standard error?

Median number of items, and in brackets the share of subjects who reached it at all. – stands where fewer than half did.

{markdown.table(["items", *(f"standard error {target}" for target in targets)], lines)}"""


def _ends(subjects: pd.DataFrame) -> str:
    """Why tests ended."""
    lines = [
        [REASONS[reason], f"{len(rows):,}", f"{rows.num_items.median():.0f}", f"{rows.ability_se.median():.2f}"]
        for reason, rows in subjects.groupby("reason", sort=False)
    ]
    return f"""## Why tests ended

{markdown.table(["because of", "subjects", "median of items", "median standard error"], lines)}"""


def _exposure(found: Found) -> str:
    """How evenly items were asked."""
    table, more = found.exposure, ""
    if not isinstance(found.responses, ScaledResponses):
        more = " `--randomesque` and `--progressive` spread items\nmore evenly."
    never, most = (table.times_asked == 0).sum(), table.loc[table.times_asked.idxmax()]
    often = (table.share > 0.2).sum()
    return f"""## How often items were asked

{never:,} of {len(table):,} items were never asked, {often:,} were asked of more than a fifth of the subjects. Most
often asked was {markdown.inline(most.item_id)}, of {most.share:.0%}.{more}

![Share of subjects asked, against difficulty](exposure.png)"""
